package app

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

func always(packets ...func(req []byte) []byte) reply {
	return func(_ int, req []byte) [][]byte {
		var out [][]byte
		for _, p := range packets {
			out = append(out, p(req))
		}
		return out
	}
}

func status(s mad.Status) func([]byte) []byte {
	return func(req []byte) []byte { return single(req, s, 0, nil) }
}

// rows is a table of two paths with any AttributeOffset.
func rows(offset uint16) func([]byte) []byte {
	return func(req []byte) []byte { return table(req, offset, paths(2)) }
}

// halfway is the first of three segments: 200 bytes are three paths and a piece.
func halfway(req []byte) []byte {
	return segment(req, 8, active|first, 1, 3*20+520, paths(4)[:200])
}

// An SA that goes wrong: the exit code, the message, how many records are there
// all the same, and when it is given up.
func TestFaults(t *testing.T) {
	getInfo := []string{"sa", "get", "classportinfo"}
	tablePath := []string{"sa", "table", "path"}
	kernel := []string{"--rmpp", "kernel", "-t", "20ms", "--retries", "0", "sa", "table", "path"}
	for _, tt := range []struct {
		name    string
		reply   reply
		args    []string
		code    int
		message string
		hint    string // in it; "": none
		records int
		after   time.Duration
	}{
		{"silence", always(), getInfo, 3,
			"SubnAdmGet(ClassPortInfo) to LID 1: wait for the answer: no answer in time (asked 3 times)", "'ports' shows", 0, 3 * time.Second},
		{"silence, other times", always(), slices.Concat([]string{"-t", "20", "--retries", "4"}, getInfo), 3,
			"no answer in time (asked 5 times)", "--timeout and --retries", 0, 100 * time.Millisecond},
		{"silence, kernel RMPP", always(), kernel, 3,
			"SubnAdmGetTable(PathRecord) to LID 1: wait for the answer: no answer in time", "'ports' shows", 0, 220 * time.Millisecond},
		{"silence, user RMPP", always(), slices.Concat([]string{"-t", "20ms", "--retries", "0"}, tablePath), 3,
			"SubnAdmGetTable(PathRecord) to LID 1: wait for the answer: no answer in time", "'ports' shows", 0, 20 * time.Millisecond},
		{"busy", always(status(mad.StatusBusy)), slices.Concat([]string{"--retries", "0"}, getInfo), 4,
			"SA at LID 1: Get ClassPortInfo: status 0x0001 (busy", "--retries", 0, 0},
		{"denied", always(status(mad.StatusSARequestDenied)), tablePath, 4,
			"SA at LID 1: GetTable PathRecord: status 0x0700 (SA: request denied)", "--partition", 0, 0},
		{"unsupported", always(status(mad.StatusBadAttribute)), getInfo, 4,
			"status 0x000c (method and attribute combination not supported)", "not every SA", 0, 0},
		{"redirect", always(func(req []byte) []byte {
			data, _ := (&mad.ClassPortInfo{RedirectLID: 77}).AppendBinary(nil)
			return single(req, mad.StatusRedirect, 0, data)
		}), getInfo, 4, "ask LID 77", "--sa", 0, 0},

		{"abort half way, user RMPP", always(halfway, func(req []byte) []byte { return abort(req, mad.RMPPStatusTooManyRetries) }), tablePath, 6,
			"the answer is incomplete, it ended after 3 records: SubnAdmGetTable(PathRecord) to LID 1: receive the answer: rmpp: peer ended the transfer after segment 1",
			"ask again", 3, 0},
		{"abort half way, kernel RMPP", always(halfway, func(req []byte) []byte { return abort(req, mad.RMPPStatusTooManyRetries) }), kernel, 3,
			"SubnAdmGetTable(PathRecord) to LID 1: wait for the answer: no answer in time", "'ports' shows", 0, 220 * time.Millisecond},
		{"abort at once", always(func(req []byte) []byte { return abort(req, mad.RMPPStatusTooManyRetries) }), tablePath, 4,
			"too many retries", "ask again", 0, 0},
		{"silence half way, user RMPP", always(halfway), slices.Concat([]string{"-t", "20ms"}, tablePath), 6,
			"the answer is incomplete, it ended after 3 records: SubnAdmGetTable(PathRecord) to LID 1", "ask again", 3, -1},
		{"silence half way, kernel RMPP", always(halfway), kernel, 3,
			"no answer in time", "'ports' shows", 0, 220 * time.Millisecond},

		{"AttributeOffset too small", always(rows(7)), tablePath, 1,
			"SA at LID 1: malformed answer for PathRecord (AttributeOffset 56 bytes, 128 bytes of records): records 56 bytes apart, but one has 64", "", 0, 0},
		{"AttributeOffset 0", always(rows(0)), tablePath, 1, "more than one record of 64 bytes, but no distance between them", "", -1, 0},
		{"AttributeOffset odd", always(rows(9)), tablePath, -1, "malformed answer for PathRecord (AttributeOffset 72 bytes", "", -1, 0},
		{"AttributeOffset huge", always(rows(0xffff)), tablePath, -1, "malformed answer for PathRecord (AttributeOffset 524280 bytes", "", -1, 0},
		{"record cut off", always(func(req []byte) []byte { return table(req, 8, paths(2)[:110]) }), tablePath, 6,
			"the answer is incomplete, it ended after 1 record: SA at LID 1: malformed answer for PathRecord", "", 1, 0},
		{"another method", always(func(req []byte) []byte {
			b := single(req, mad.StatusOK, 9, nil)
			b[mad.OffMethod] = byte(mad.MethodDeleteResp)
			return b
		}), getInfo, 1, "method DeleteResp does not answer Get", "", 0, 0},
	} {
		for _, format := range []string{"text", "json"} {
			t.Run(tt.name+"/"+format, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, demo(t))
					r.script(t, tt.reply)
					begin := time.Now()
					got := r.run(t.Context(), append([]string{"-o", format}, tt.args...)...)
					if took := time.Since(begin); tt.after >= 0 && took != tt.after {
						t.Errorf("it took %v, want %v", took, tt.after)
					}
					lines := strings.Split(got.stderr, "\n")
					if !strings.HasPrefix(lines[0], "ibsm: ") || !strings.Contains(lines[0], tt.message) {
						t.Errorf("stderr %q, want %q", got.stderr, tt.message)
					}
					if hint := strings.Join(lines[1:], " "); !strings.Contains(hint, tt.hint) || tt.hint == "" && hint != "" {
						t.Errorf("stderr hints %q, want %q", hint, tt.hint)
					}
					records := strings.Count(got.stdout, "PathRecord dump:")
					if format == "json" {
						records = checkError(t, got, tt.message)
					}
					want, wantRecords := tt.code, tt.records
					if want < 0 { // some records may be good enough to be printed
						want, wantRecords = map[bool]int{false: 1, true: 6}[records > 0], -1
					}
					if got.code != want || wantRecords >= 0 && records != wantRecords {
						t.Errorf("exit code %d after %d records, want %d after %d\n%s", got.code, records, want, wantRecords, got.stderr)
					}
				})
			})
		}
	}
}

// checkError looks at the one error in a document, and counts its records.
func checkError(t *testing.T, got outcome, message string) (records int) {
	t.Helper()
	d := got.document(t)
	kinds := map[int]string{1: "failed", 2: "usage", 3: "no_answer", 4: "error_status", 6: "incomplete"}
	if d.Schema != "ibsm/1" || d.On != "rig" || d.Complete || len(d.Errors) != 1 {
		t.Fatalf("document %+v", d)
	}
	e := d.Errors[0]
	if e.Type != "error" || e.Exit != got.code || e.Kind != kinds[got.code] || !strings.Contains(e.Message, message) {
		t.Errorf("error %+v, want exit %d and %q", e, got.code, message)
	}
	if !strings.Contains(got.stderr, e.Hint) {
		t.Errorf("hint %q, but stderr %q", e.Hint, got.stderr)
	}
	return len(d.Records)
}

// Where no answer is longer than a MAD, of the paths from all ports those that
// came are there, with the names that came.
func TestAllToIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, demo(t))
		node := func(name string, guid mad.GUID, lid mad.LID) []byte {
			data, _ := (&mad.NodeRecord{LID: lid, NodeInfo: mad.NodeInfo{PortGUID: guid}, NodeDescription: mad.MakeNodeDescription(name)}).AppendBinary(nil)
			return append(data, 0, 0, 0, 0)
		}
		var records []byte
		for i := range 3 {
			rec := mad.PathRecord{SGID: mad.MakeGID(mad.DefaultGIDPrefix, mad.GUID(i+1)), DGID: mad.MakeGID(mad.DefaultGIDPrefix, 9)}
			records, _ = rec.AppendBinary(records)
		}
		cut := func(req []byte, offset uint16, data []byte) []byte {
			b := single(req, mad.StatusOK, offset, append(data, bytes.Repeat([]byte{1}, mad.SADataSize)...))
			b[offFlags] = active // of RMPP version 0
			return b
		}
		r.script(t, func(_ int, req []byte) [][]byte {
			switch {
			case mad.AttributeID(binary.BigEndian.Uint16(req[mad.OffAttribute:])) == mad.AttrPathRecord:
				return [][]byte{cut(req, 8, records)}
			case binary.BigEndian.Uint64(req[offOffset+4:]) != 0: // the component mask
				return [][]byte{table(req, 14, node("nine", 9, 9))}
			}
			return [][]byte{cut(req, 14, node("one", 1, 1))}
		})
		got := r.run(t.Context(), "sa", "path", "--all-to", "9")
		if got.code != 6 || !strings.Contains(got.stderr, "after 3 records") {
			t.Errorf("exit code %d: %s", got.code, got.stderr)
		}
		for _, want := range []string{"# Path from one (LID 0) to nine ", "# Path from fe80::2 (LID 0) to nine ", "# Path from fe80::3 (LID 0) to nine "} {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%q is not in\n%s", want, got.stdout)
			}
		}
	})
}

// Busy at first: it is asked again and answers.
func TestBusyAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, demo(t))
		r.script(t, func(n int, req []byte) [][]byte {
			if n < 3 {
				return [][]byte{single(req, mad.StatusBusy, 0, nil)}
			}
			return [][]byte{single(req, mad.StatusOK, 9, []byte{1, 2})}
		})
		got := r.run(t.Context(), "-o", "json", "sa", "get", "classportinfo")
		d := got.document(t)
		if got.code != 0 || !d.Complete || len(d.Records) != 1 || d.Records[0]["ClassVersion"] != 2.0 {
			t.Errorf("%+v", got)
		}
	})
}

// A wait that somebody ends, and one after records have come.
func TestInterrupt(t *testing.T) {
	for _, tt := range []struct {
		reply   reply
		code    int
		message string
	}{
		{always(), 1, "ibsm: interrupted: SubnAdmGetTable(PathRecord) to LID 1: wait for the answer: context canceled\n"},
		{always(halfway), 6, "ibsm: the answer is incomplete, it ended after 3 records: interrupted: "},
		{always(status(mad.StatusBusy)), 1, "ibsm: interrupted: wait for a busy SA: "},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, demo(t))
			r.script(t, tt.reply)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			begin := time.Now()
			got := r.run(ctx, "--rmpp", "user", "--retries", "9", "sa", "table", "path")
			if took := time.Since(begin); took != 100*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			if got.code != tt.code || !strings.HasPrefix(got.stderr, tt.message) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("exit code %d and %q, want %d and %q", got.code, got.stderr, tt.code, tt.message)
			}
		})
	}
}

// The device goes away under a query.
func TestDeviceRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, demo(t))
		h2, _ := r.sub.NodeByName("h2")
		time.AfterFunc(10*time.Millisecond, func() {
			if err := r.fabric.Remove(h2, 1); err != nil {
				t.Error(err)
			}
		})
		got := r.run(t.Context(), "smp", "get", "NodeInfo", "77")
		if got.code != 1 || !strings.Contains(got.stderr, "LID 77") || !strings.Contains(got.stderr, port.ErrGone.Error()) {
			t.Errorf("%+v", got)
		}
	})
}

func TestOpenFails(t *testing.T) {
	r := &rig{open: func(context.Context, string) (port.Device, error) { return nil, errors.New("no such thing") }}
	for _, args := range [][]string{{"sa", "path", "h1", "h8"}, {"sa", "table", "path"}, {"smp", "get", "NI", "0,1"}, {"--sa", "h1", "sa", "get", "node"}} {
		if got := r.run(t.Context(), args...); got.code != 1 || got.stdout != "" || got.stderr != "ibsm: no such thing\n" {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// unmanaged is a port that no subnet manager has set up.
type unmanaged struct{ port.Device }

func (u unmanaged) Info() (port.Info, error) {
	info, err := u.Device.Info()
	info.State, info.LID, info.SMLID, info.GIDs = mad.PortStateInit, 0, 0, nil
	return info, err
}

func TestNoSubnetManager(t *testing.T) {
	r := newRig(t, demo(t))
	open := r.open
	r.open = func(ctx context.Context, on string) (port.Device, error) {
		dev, err := open(ctx, on)
		return unmanaged{dev}, err
	}
	for _, tt := range []struct{ args, message string }{
		{"sa path h1 h8", "no SA is known: port h2/1 is Initialize and its SM LID is 0: no subnet manager has set it up\nibsm: start a subnet manager, or name the SA with --sa\n"},
		{"smp get NI h8", "no SA is known"},
		{"sa table path", "port h2/1 has no GID: name the paths' source by SGID="},
		{"smp get NI 9:0,1", "port h2/1 has no LID"},
	} {
		got := r.run(t.Context(), strings.Fields(tt.args)...)
		if got.code == 0 || !strings.Contains(got.stderr, tt.message) {
			t.Errorf("%s: %+v, want %q", tt.args, got, tt.message)
		}
	}
	// What needs no LID works.
	if got := r.run(t.Context(), "smp", "get", "NodeDescription", "0,1"); got.code != 0 || !strings.Contains(got.stdout, "demo switch 1") {
		t.Errorf("%+v", got)
	}
}

// mangler is a device whose MADs come in with another length.
type mangler struct {
	port.Device
	length int
}

func (m mangler) Open() (port.Port, error) {
	p, err := m.Device.Open()
	return mangledPort{p, m.length}, err
}

type mangledPort struct {
	port.Port
	length int
}

func (p mangledPort) Recv(m *port.Message) error {
	err := p.Port.Recv(m)
	if err == nil && !m.TimedOut {
		m.Data = append(m.Data, make([]byte, 1000)...)[:p.length]
	}
	return err
}

// MADs that are too short are no answer; what is behind 256 bytes is not looked
// at.
func TestMangledMADs(t *testing.T) {
	for _, length := range []int{0, 1, 23, 24, 55, 56, 64, 255, 257, 1000} {
		for _, args := range []string{"smp get NodeDescription 0,1", "smp get NodeInfo 1", "sa get classportinfo", "--rmpp user sa table node"} {
			t.Run(fmt.Sprintf("%d bytes/%s", length, args), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, demo(t))
					r.script(t, always(func(req []byte) []byte { return single(req, mad.StatusOK, 14, []byte{1, 2}) }))
					open := r.open
					r.open = func(ctx context.Context, on string) (port.Device, error) {
						dev, err := open(ctx, on)
						return mangler{dev, length}, err
					}
					got := r.run(t.Context(), append([]string{"-o", "json"}, strings.Fields(args)...)...)
					d := got.document(t)
					switch {
					case length > mad.Size && got.code == 0 && d.Complete:
					case length < mad.Size && got.code != 0 && len(d.Errors) == 1 && len(d.Records) == 0:
						if got.code != 3 && got.code != 1 {
							t.Errorf("exit code %d: %s", got.code, got.stderr)
						}
					default:
						t.Errorf("%+v", got)
					}
				})
			})
		}
	}
}
