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
	context.AfterFunc(ctx, stop)   // a second signal ends ibsm at once
	signal.Ignore(syscall.SIGPIPE) // or what is open would stay so at ibsim
	code := app.Run(ctx, app.Host{
		Args:   os.Args,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
	})
	stop()
	os.Exit(code)
}
