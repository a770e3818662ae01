// Command ibsm asks InfiniBand subnets through management datagrams.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, second)
	signal.Ignore(syscall.SIGPIPE) // or what is open would stay so at ibsim
	code := app.Run(ctx, app.Host{
		Args:   os.Args,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
	})
	stop()
	os.Exit(code)
}

// second ends ibsm at once by a second signal, also where a shell has its jobs in the
// background ignore the first.
func second() {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	<-again
	os.Exit(1)
}
