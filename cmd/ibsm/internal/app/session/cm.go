package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/port"
)

// Kind is the kind of the endpoint: "sim", "umad", "ibsim".
func (s *Session) Kind() string {
	kind, _, _ := strings.Cut(s.On, ":")
	if kind = strings.TrimSpace(kind); kind != "" {
		return kind
	}
	return "umad"
}

// Simulated tells whether the endpoint is a simulated fabric, where nothing can be
// broken.
func (s *Session) Simulated() bool { return s.Kind() == "sim" }

// Allow asks for --yes where the fabric is real. what is the verb, and why what it
// does there.
func (s *Session) Allow(what, why string) error {
	if s.Simulated() || s.Switch("yes") {
		return nil
	}
	return exit.Usagef("%s on a real fabric needs --yes: %s", what, why)
}

// CM opens the RDMA CM of the endpoint's host, of this machine if there is no device. A
// simulated host is as cfg says.
func (s *Session) CM(ctx context.Context, cfg endpoint.CMConfig) (endpoint.CM, error) {
	if s.trace != nil && !s.Simulated() {
		s.Say("the kernel sends and receives the CM's messages itself: the trace lacks them")
	}
	cfg.Trace = s.trace
	cm, err := endpoint.OpenCM(ctx, s.opened, cfg)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, cm.Close)
	return cm, nil
}

// Host opens the device beside which the RDMA CM is, or gives nil where the CM needs
// none: an IP address leads a kernel to its device, and a machine with RoCE alone has
// no port that is chosen by itself. A port that was named must be there.
func (s *Session) Host(ctx context.Context) (port.Device, error) {
	dev, err := s.Device(ctx)
	var none *endpoint.NoPortError
	if errors.As(err, &none) && strings.TrimSuffix(strings.TrimSpace(s.On), "umad:") == "" {
		return nil, nil
	}
	return dev, err
}

// Tries is how long an answer may take with all repetitions.
func (s *Session) Tries() time.Duration {
	return s.flags.timeout * time.Duration(s.flags.retries+1)
}

// startTrace makes the file of --trace, if that is given.
func (s *Session) startTrace() error {
	if s.flags.trace == "" {
		return nil
	}
	// A pipe that nobody reads is an error, not a wait.
	f, err := os.OpenFile(s.flags.trace, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	s.trace = capture.NewWriter(f)
	s.closers = append(s.closers, func() error {
		err := s.trace.Close()
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return fmt.Errorf("--trace %s: %w", s.flags.trace, err)
		}
		return nil
	})
	return nil
}

// Say tells people something on stderr, unless --quiet.
func (s *Session) Say(format string, args ...any) {
	if !s.flags.quiet {
		fmt.Fprintln(s.stderr, text.Printable(fmt.Sprintf(format, args...)))
	}
}
