package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cmtimeStep is a line of what cmtime prints: "connect      :      378.16 ...", the
// milliseconds for all connections together (librdmacm/examples/cmtime.c).
var cmtimeStep = regexp.MustCompile(`(?m)^([a-z ]+?) *: +([0-9.]+) `)

// BenchmarkKernelCmtime measures librdmacm, with its own program, as a peer for our
// benchmarks. The port talks to itself, over addresses that every guest has. The
// steps are those that cmtime knows, each for all connections before the next; it
// makes queue pairs and brings them to RTS, which is part of "connect" on both sides.
func BenchmarkKernelCmtime(b *testing.B) {
	inGuest(b)
	if _, err := exec.LookPath("cmtime"); err != nil {
		b.Skip("cmtime is not in this guest: the rig's -with cmtime puts it there")
	}
	const addr, conns = "fd00::1", 100
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	total := map[string]time.Duration{}
	runs := 0
	for b.Loop() {
		steps, err := cmtime(ctx, addr, conns)
		if err != nil {
			b.Fatal(err)
		}
		for name, took := range steps {
			total[name] += took
		}
		runs++
	}
	all := float64(runs * conns)
	var connected time.Duration
	for name, took := range total {
		b.ReportMetric(float64(took.Microseconds())/all, strings.ReplaceAll(name, " ", "-")+"-us/conn")
		if name != "disconnect" && name != "destroy" {
			connected += took
		}
	}
	b.ReportMetric(all/connected.Seconds(), "conns/s")
}

// cmtime makes connections to a server of its own, and gives the time of each step
// for all of them.
func cmtime(ctx context.Context, addr string, conns int) (steps map[string]time.Duration, err error) {
	// Without -b it does not hear at an IPv6 address. Version 44 cannot serve a second
	// client: it makes no queue pair after it has destroyed its last id.
	server := exec.CommandContext(ctx, "cmtime", "-b", addr)
	if err := server.Start(); err != nil {
		return nil, err
	}
	defer server.Wait()
	defer server.Process.Kill()
	for {
		client := exec.CommandContext(ctx, "cmtime", "-b", addr, "-s", addr, "-c", strconv.Itoa(conns))
		out, err := client.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", client, err, out)
		}
		if strings.Contains(string(out), "event: RDMA_CM_EVENT_REJECTED, error: 8\n") {
			continue // the server does not listen yet
		}
		if strings.Contains(string(out), "event:") { // a failure, which it shows and then exits with 0
			return nil, fmt.Errorf("%s could not connect\n%s", client, out)
		}
		steps = map[string]time.Duration{}
		for _, m := range cmtimeStep.FindAllStringSubmatch(string(out), -1) {
			ms, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", client, err)
			}
			steps[m[1]] = time.Duration(ms * float64(time.Millisecond))
		}
		if steps["connect"] == 0 {
			return nil, fmt.Errorf("%s shows no time for connect\n%s", client, out)
		}
		return steps, nil
	}
}
