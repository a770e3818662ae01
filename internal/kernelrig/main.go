// Command kernelrig runs the tests named TestKernel... on real Linux kernels: it
// boots Debian's in virtual machines with a soft RoCE device, and no hardware
// is involved. docs/testing.md says how to use it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	r := rig{out: os.Stdout}
	var kernel string
	var fetch bool
	flag.BoolVar(&fetch, "fetch", false, "get the kernels that are not in the cache, and stop")
	flag.StringVar(&kernel, "kernel", "", "only this kernel `series`, such as 6.12")
	flag.StringVar(&r.run, "run", "", "only the tests that match this `regexp`, as for go test")
	flag.BoolVar(&r.pairOnly, "pair", false, "only the tests "+pairPrefix+"...")
	flag.StringVar(&r.pcap, "pcap", "", "keep in this `file` what the two guests of a pair send each other; it wants -kernel")
	flag.StringVar(&r.bench, "bench", "", "instead of tests, the benchmarks "+benchPrefix+"... that match this `regexp`, one kernel after another")
	flag.Func("with", "take this `program` of the host along, with its libraries; may be repeated", func(name string) error {
		r.with = append(r.with, name)
		return nil
	})
	flag.DurationVar(&r.limit, "limit", 4*time.Minute, "for all tests on one kernel")
	flag.StringVar(&r.root, "root", "../..", "the tree whose tests are run")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: kernelrig [FLAGS] [-- ARGUMENTS of the test binaries, such as -test.count=3]")
		flag.PrintDefaults()
	}
	flag.Parse()
	r.args = flag.Args()

	all := series
	if kernel != "" {
		if !slices.Contains(series, kernel) {
			usage("no kernel %q here, only %s", kernel, strings.Join(series, ", "))
		}
		all = []string{kernel}
	}
	if r.pcap != "" && kernel == "" {
		usage("-pcap holds what was sent on one kernel: -kernel says which")
	}
	if r.bench != "" && (r.run != "" || r.pairOnly) {
		usage("-bench runs no tests: leave out -run and -pair")
	}
	var err error
	if fetch {
		err = r.fetch(ctx, all)
	} else {
		err = r.test(ctx, all)
	}
	for _, m := range r.missing {
		fmt.Println("kernelrig:", m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernelrig:", err)
		os.Exit(1)
	}
	if len(r.missing) > 0 && !fetch && os.Getenv("IBSM_BENCH") == "all" {
		fmt.Fprintln(os.Stderr, "kernelrig: with IBSM_BENCH=all nothing may be skipped")
		os.Exit(1)
	}
}

func usage(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "kernelrig: "+format+"\n", args...)
	os.Exit(2)
}
