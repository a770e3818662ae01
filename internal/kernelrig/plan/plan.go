// Package plan is what the kernel rig's two sides tell each other: the host
// puts a Plan into the guest's file system, and the guest writes Events among
// the output of the tests on its second serial line.
package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Places in the guest's file system.
const (
	Path    = "/plan.json"
	Modules = "/modules" // kernel modules; they are loaded in the order of their names
)

// Environment variables for the tests in the guest. Elsewhere they are not set.
const (
	KernelEnv = "IBSM_KERNEL"       // the kernel's series, such as 6.12
	PairEnv   = "IBSM_KERNEL_PAIR"  // in a guest of a pair: which of the two it is, 1 or 2
	LocalEnv  = "IBSM_KERNEL_LOCAL" // in a guest of a pair: its own IPv6 address
	PeerEnv   = "IBSM_KERNEL_PEER"  // and the other's
)

// A Plan says what the guest is to run.
type Plan struct {
	Series string        // of the kernel, such as 6.12
	Pair   int           // 0 alone, or 1 and 2 for two guests on one link
	Limit  time.Duration // for all binaries together
	Tests  []Test        // of a pair, each begins in both guests at the same time
}

// A Test is a compiled test binary with its arguments.
type Test struct {
	Package string // for people: the package's folder in the tree
	Binary  string // absolute path in the guest
	Dir     string // where it runs, with the package's testdata
	Args    []string
}

// Mark begins a line of the testing framework or an Event, as distinct from what
// a test printed. It is the one that -test.v=test2json makes (cmd/internal/test2json).
const Mark = "\x16"

// An Event is what the guest reports; one of its parts is set.
type Event struct {
	Release string `json:",omitempty"` // the kernel's, once the device is there
	Begin   string `json:",omitempty"` // a package whose tests begin
	End     *End   `json:",omitempty"` // a package whose tests have ended
	Broken  string `json:",omitempty"` // the guest could not go on, and why
	Done    *Done  `json:",omitempty"` // all tests have been run
}

// End tells how a test binary ended.
type End struct {
	Package string
	Failure string // "" if the binary exited with status 0
}

// Done is the last event.
type Done struct {
	Taint uint64 // /proc/sys/kernel/tainted
}

// Line is the event as a line.
func (e Event) Line() string {
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // the type has nothing that JSON cannot hold
	}
	return Mark + string(b) + "\n"
}

// ParseEvent reads what follows a Mark in a line; ok is false if it is a line of
// the testing framework.
func ParseEvent(text string) (e Event, ok bool, err error) {
	if !strings.HasPrefix(text, "{") {
		return e, false, nil
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return e, false, fmt.Errorf("event %q: %w", text, err)
	}
	return e, true, nil
}
