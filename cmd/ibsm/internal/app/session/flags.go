package session

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/render"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Flags gives the global flags.
func Flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "on", EnvVars: []string{"IBSM_ON"}, Usage: "where ibsm stands: an `ENDPOINT` such as sim:demo (default: the first active InfiniBand port)"},
		&cli.StringFlag{Name: "Ca", Aliases: []string{"C"}, Usage: "stand at a port of the local `DEVICE`, such as mlx5_0"},
		&cli.IntFlag{Name: "Port", Aliases: []string{"P"}, Usage: "stand at the local port of number `N`", DefaultText: "the first active one"},
		&cli.StringFlag{Name: "timeout", Aliases: []string{"t"}, Value: "1s", Usage: "wait `TIME` for each answer: 500ms, 2s, or a number of milliseconds"},
		&cli.IntFlag{Name: "retries", Value: 2, Usage: "ask `N` times more when no answer comes"},
		&cli.StringFlag{Name: "partition", Usage: "send SA requests in the partition of `P_KEY`, such as 0xffff"},
		&cli.StringFlag{Name: "sm-key", EnvVars: []string{"IBSM_SM_KEY"}, Usage: "ask the SA as one who has its SM_Key `KEY`; OpenSM's is 1 if it was told no other"},
		&cli.StringFlag{Name: "sa", Usage: "ask the SA at `ADDRESS`, not the one that the port knows"},
		&cli.StringFlag{Name: "rmpp", Value: "user", Usage: "who puts long answers together, the device or ibsm: `kernel|user`"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: render.Text, Usage: "output `FORMAT`: " + render.FormatList},
		&cli.StringFlag{Name: "trace", Usage: "write every MAD that ibsm sends and receives to `FILE`, for Wireshark (pcapng)"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing on stderr but errors", DisableDefaultText: true},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "tell on stderr what was asked of whom and how long it took", DisableDefaultText: true},
	}
}

// flags are the global flags as they were understood.
type flags struct {
	on             string
	timeout        time.Duration
	retries        int
	partition      mad.PKey
	smKey          uint64
	sa             *mad.Addr
	rmpp           port.RMPPMode
	output         string
	trace          string
	quiet, verbose bool
}

func parseFlags(c *cli.Context) (f flags, err error) {
	f = flags{retries: c.Int("retries"), output: c.String("output"), trace: c.String("trace"), quiet: c.Bool("quiet"), verbose: c.Bool("verbose")}
	if f.on, err = parseOn(c); err != nil {
		return f, err
	}
	if f.timeout, err = parseTimeout(c.String("timeout")); err != nil {
		return f, err
	}
	if f.retries < 0 || f.retries > 1000 {
		return f, exit.Usagef("--retries %d: it is a number from 0 to 1000", f.retries)
	}
	if s := c.String("partition"); s != "" {
		if f.partition, err = mad.ParsePKey(s); err != nil {
			return f, exit.Usagef("--partition %q: it is a P_Key, such as 0xffff, whose lower 15 bits are not 0", s)
		}
	}
	if s := c.String("sm-key"); s != "" {
		if f.smKey, err = strconv.ParseUint(s, 0, 64); err != nil {
			return f, exit.Usagef("--sm-key: it is a number of 64 bits, decimal or hexadecimal after 0x")
		}
	}
	if s := c.String("sa"); s != "" {
		a, err := mad.ParseAddr(s)
		if err != nil {
			return f, fmt.Errorf("--sa: %w", err)
		}
		if a.Kind == mad.AddrRoute || a.Kind == mad.AddrCombined {
			return f, exit.Usagef("--sa %v: the SA is no SM attribute: a directed route does not lead to it, write its LID, GUID, GID or name", a)
		}
		f.sa = &a
	}
	if c.IsSet("trace") && f.trace == "" {
		return f, exit.Usagef("--trace: it is the name of a file")
	}
	switch mode := c.String("rmpp"); mode {
	case "kernel":
		f.rmpp = port.RMPPKernel
	case "user":
		f.rmpp = port.RMPPUser
	default:
		return f, exit.Usagef("--rmpp %q: it is kernel or user", mode)
	}
	return f, nil
}

// parseOn makes an endpoint of --on, --Ca and --Port. With an error it is --on.
func parseOn(c *cli.Context) (string, error) {
	on, device, num := c.String("on"), c.String("Ca"), c.Int("Port")
	if !c.IsSet("Ca") && !c.IsSet("Port") {
		return on, nil
	}
	switch strings.TrimSpace(on) {
	case "", "umad", "umad:":
	default:
		return on, exit.Usagef("--Ca and --Port name a port of this machine, and --on or IBSM_ON the endpoint %q: leave one of the two away", on)
	}
	if c.IsSet("Ca") && (device == "" || strings.Contains(device, "/")) {
		return on, exit.Usagef("--Ca %q: it is the name of an RDMA device, such as mlx5_0; 'ibsm --on umad: ports' lists them", device)
	}
	if !c.IsSet("Port") {
		return "umad:" + device, nil
	}
	if num < 0 || num > 255 {
		return on, exit.Usagef("--Port %d: it is a number from 0 to 255", num)
	}
	return fmt.Sprintf("umad:%s/%d", device, num), nil
}

// parseTimeout reads a duration, or a number of milliseconds as the diags take.
func parseTimeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if ms, atoiErr := strconv.ParseUint(s, 10, 32); atoiErr == nil {
		d, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil || d < time.Millisecond || d > time.Hour {
		return 0, exit.Usagef("--timeout %q: write 500ms, 2s, or a number of milliseconds, from 1ms to 1h", s)
	}
	return d, nil
}
