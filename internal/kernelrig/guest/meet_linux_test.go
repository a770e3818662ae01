package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
)

// Two guests meet at one place, after a connection that came to nothing; guests at
// different places are told so; a guest whose time is up does not wait.
func TestMeet(t *testing.T) {
	for _, tt := range []struct{ received, visited, want string }{
		{"a test", "a test", ""},
		{"a test", "another", `this guest has come to "a test", the other to "another"`},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		gone, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		gone.Close()
		received := make(chan error, 1)
		go func() { received <- receive(t.Context(), l, tt.received) }()
		visited := visit(t.Context(), addr, tt.visited)
		if err := <-received; (err == nil) != (visited == nil) || err != nil && err.Error() != tt.want {
			t.Errorf("%q and %q meet: %v and %v, want %q", tt.received, tt.visited, err, visited, tt.want)
		}

		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := visit(stopped, addr, "a test"); err == nil || !strings.Contains(err.Error(), `receive at "a test"`) {
			t.Errorf("nobody receives: %v", err)
		}
		l, err = net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := receive(stopped, l, "a test"); !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), `come to "a test"`) {
			t.Errorf("nobody comes: %v", err)
		}
	}
}
