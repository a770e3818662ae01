package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

// meetCommand is the command meet: it waits until the other guest of the pair calls
// it with the same words.
func meetCommand(args []string) error {
	pair, err := strconv.Atoi(os.Getenv(plan.PairEnv))
	if err != nil {
		return fmt.Errorf("only tests in a pair of guests can meet: %s: %w", plan.PairEnv, err)
	}
	return meet(context.Background(), pair, strings.Join(args, " "))
}

// meet waits until the other guest of a pair comes to the same place.
func meet(ctx context.Context, pair int, place string) error {
	addr := net.JoinHostPort(wire[0].ip(), "4000")
	if pair != 1 {
		return visit(ctx, addr, place)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return receive(ctx, l, place)
}

// receive waits for the peer to come, and closes the listener.
func receive(ctx context.Context, l net.Listener, place string) error {
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		if err != nil {
			return fmt.Errorf("the other guest did not come to %q: %w", place, err)
		}
		if theirs, err := greet(ctx, conn, place); err == nil {
			return compare(place, theirs)
		}
	}
}

// visit goes to the peer that receives at an address, as often as it takes.
func visit(ctx context.Context, addr, place string) error {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			var theirs string
			if theirs, err = greet(ctx, conn, place); err == nil {
				return compare(place, theirs)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the other guest does not receive at %q: %w", place, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// greet exchanges places with the peer. It fails where nobody is: at a listener
// that has met its peer and is about to go.
func greet(ctx context.Context, conn net.Conn, place string) (theirs string, err error) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, place+"\n"); err != nil {
		return "", err
	}
	theirs, err = bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSuffix(theirs, "\n"), err
}

func compare(ours, theirs string) error {
	if ours != theirs {
		return fmt.Errorf("this guest has come to %q, the other to %q", ours, theirs)
	}
	return nil
}
