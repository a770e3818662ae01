// Package ucmatest is the one test suite of everything that implements
// ucma.Device with the Linux dialect: [Run] plays scripts of commands, and compares
// the errno of each, its response, and the events that follow.
//
// What the scripts expect is what Linux does; where an emulation does otherwise, the
// kernel is right. The few values that are not the same everywhere are variables that a
// Bench can set. A line is one statement:
//
//	# a comment
//	a = create_id UID=1 PS=TCP
//	bind_ip a Addr=[fd00::1]:7471
//	listen a Backlog=-1 -> EINVAL
//	resolve_route b Timeout=1s
//	event b ROUTE_RESOLVED
//	query_route b -> NumPaths=1 PortNum=1 NodeGUID=$guid
//		Src=[fd00::1]:7472 Dst=[fd00::1]:7471
//
// A command has the kernel's name, without rdma_ucm_, and the fields of package
// ucma's structure, those of ConnParam and the like included; all others are zero. Behind
// the arrow stand the errno, or the response: its fields that are not zero, all of
// them. Field=* is any value, and Field=$name one that must be the same wherever $name
// stands; it can be used in commands then. Byte fields are text, hex:00ff or x*92; in
// responses and events zeros at the end are cut off, and the length follows: hello/56.
// A line that begins with a tab continues the one before.
//
// Commands take some more arguments: file=f2 writes to another file than the id's,
// in= and out= are put in the header as they are, and len= cuts the write off, or pads
// it. Before a command, eventually repeats it until it does what is expected.
//
// Other statements:
//
//	f2 = open                    one more file, beside the one that is there, main
//	close f2
//	c = event a CONNECT_REQUEST  the next event of a's, its uid, and its fields as of a
//	                             response; c is the new id
//	event b ADDR_ERROR after=1s  not earlier; in virtual time, exactly then
//	no_event 20ms                none of any id; without a time, GET_EVENT has none now
//	p = path Flags=0x2b MTU=3    $p is a struct ib_path_rec_data in hexadecimal
//	write hex:0d00000000000000   bytes as they are
//
// The order of the events of an id counts, that between ids does not. When a script is
// over there must be no event left.
package ucmatest

import (
	"embed"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/ucma"
)

// Bench is a back end to test.
type Bench struct {
	// Host makes a host for one script, in its bubble if Virtual, and gives the
	// function that opens its RDMA CM. The host has one RDMA device, with one port of
	// RoCE v2 over an interface whose MTU is 1500, and on it the addresses fd00::1/64
	// and 192.0.2.1/24, of which nobody else is there. What has to be
	// closed after the script is t's to clean up.
	Host func(t testing.TB) func() (File, error)

	// Virtual runs each script in a testing/synctest bubble, with exact instants.
	// Without it times are only bounded from below.
	Virtual bool

	// Except has the facts that are other ones here than on the kernel of the scripts.
	Except []Exception
}

// Exception is another value for a variable that scripts use without setting it.
type Exception struct {
	Name, Value string
	Why         string
}

// facts are the values of those variables: of Linux 6.12 with soft RoCE.
var facts = map[string]string{
	"access":   "0x30e", // of a queue pair with RDMA reads: write, read, atomic, and both flushes
	"lifetime": "16",    // of a packet: 4.096 us * 2^n (CMA_IBOE_PACKET_LIFETIME)
	"timeout":  "17",    // for an ACK, with the adapter's ACK delay of 15 (cm_ack_timeout)
}

// File is an open RDMA CM, with its number for MIGRATE_ID.
type File struct {
	ucma.Device
	FD uint32
}

//go:embed scripts/*.txt
var scripts embed.FS

// Run plays all scripts.
func Run(t *testing.T, b Bench) {
	names, err := fs.Glob(scripts, "scripts/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, e := range b.Except {
		if _, ok := facts[e.Name]; !ok {
			t.Fatalf("exception for $%s, which is no fact", e.Name)
		}
	}
	for _, file := range names {
		text, err := scripts.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(path.Base(file), ".txt")
		t.Run(name, func(t *testing.T) { b.play(t, name, string(text)) })
	}
}

// play plays one script.
func (b *Bench) play(t *testing.T, name, text string) {
	statements, err := parse(text)
	if err != nil {
		t.Fatalf("%s.txt: %v", name, err)
	}
	if b.Virtual {
		synctest.Test(t, func(t *testing.T) { playOn(t, b, name, statements) })
	} else {
		playOn(t, b, name, statements)
	}
}
