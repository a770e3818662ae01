package system

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sim"
)

// Time limits of the queries here. What a kernel does not tell about a transfer
// shows in mode RMPPKernel only when the time for it has passed.
const (
	saTimeout  = time.Second
	saTransfer = 4 * time.Second
)

// ending is how a query ends.
type ending struct {
	as    any    // target of errors.As, or nil
	is    error  // target of errors.Is, or nil
	text  string // in the message
	after time.Duration
}

var (
	asStatus    *sa.StatusError
	asMalformed *sa.MalformedError
	asAbort     *rmpp.AbortError
	asAgent     *agents.Error

	kernelSilence = ending{&asAgent, agents.ErrTimeout, "SubnAdmGetTable(PathRecord) to LID 1: wait for the answer: no answer in time", saTimeout + saTransfer}
	userSilence   = ending{&asAgent, agents.ErrTimeout, "SubnAdmGetTable(PathRecord) to LID 1: wait for the answer: no answer in time", saTimeout}
)

func malformed(text string) ending { return ending{&asMalformed, nil, text, 0} }
func aborted(text string) ending   { return ending{&asAbort, nil, text, 0} }

// An SA that goes wrong in every way: the error says what was asked, of whom, and
// what is wrong; the SA is told if a transfer is refused; and the next query of
// the same client, which the SA answers well, is answered.
func TestBadSA(t *testing.T) {
	good := segments(8, somePaths(20)) // 7 segments
	table := func(all []packet) func(turn) []packet {
		return func(t turn) []packet { return t.window(all) }
	}
	once := func(p packet) func(turn) []packet {
		return func(turn) []packet { return []packet{p} }
	}
	broken := func(segment int, edit func(h *mad.RMPPHeader)) func(turn) []packet {
		return table(change(segments(8, somePaths(20)), segment, edit))
	}
	other := func(edit func(p *packet)) func(turn) []packet {
		p := segments(8, somePaths(3))[0]
		edit(&p)
		return once(p)
	}
	for _, tt := range []struct {
		name         string
		answer       func(turn) []packet
		kernel, user ending
		told         mad.RMPPStatus // to the SA
	}{
		{"no answer", func(turn) []packet { return nil }, kernelSilence, userSilence, 0},
		{"busy", once(single(mad.StatusBusy, 0, nil)),
			ending{&asStatus, sa.ErrBusy, "SA at LID 1: GetTable PathRecord: status 0x0001 (busy", 0},
			ending{&asStatus, sa.ErrBusy, "SA at LID 1: GetTable PathRecord: status 0x0001 (busy", 0}, 0},

		{"ABORT half way", func(t turn) []packet { return t.breakOff(good, mad.RMPPTypeAbort, mad.RMPPStatusTooManyRetries) },
			kernelSilence, aborted("LID 1: receive the answer: rmpp: peer ended the transfer after segment 2 by ABORT, status 126 (too many retries)"), 0},
		{"STOP half way", func(t turn) []packet { return t.breakOff(good, mad.RMPPTypeStop, mad.RMPPStatusResourcesExhausted) },
			kernelSilence, aborted("by STOP, status 1 (resources exhausted)"), 0},
		{"stops sending half way", func(t turn) []packet { return t.window(good[:6]) },
			kernelSilence, ending{&asAbort, agents.ErrTimeout, "segment 7 did not come", agents.DefaultIdleTimeout}, mad.RMPPStatusTimeTooLong},

		{"AttributeOffset 0", table(segments(0, somePaths(20))),
			malformed("more than one record"), malformed("more than one record"), 0},
		{"AttributeOffset too small", table(segments(7, somePaths(20))),
			malformed("AttributeOffset 56 bytes, 1280 bytes of records"), malformed("SA at LID 1: malformed answer for PathRecord"), 0},
		{"AttributeOffset too large", table(segments(9, somePaths(20))),
			malformed("bytes are left after the last record"), malformed("bytes are left after the last record"), 0},
		{"AttributeOffset beyond the table", table(segments(0xffff, somePaths(20))),
			malformed("AttributeOffset 524280 bytes"), malformed("AttributeOffset 524280 bytes"), 0},
		{"last record cut off", table(segments(8, somePaths(20)[:1270])),
			malformed("54 bytes are left"), malformed("54 bytes are left"), 0},

		{"ends before the announced length", broken(3, func(h *mad.RMPPHeader) { h.RMPPFlags |= mad.RMPPFlagLast; h.Data2 = 220 }),
			kernelSilence, aborted("segment 3 has flags 0x5"), mad.RMPPStatusBadLength},
		{"goes on after the announced length", broken(1, func(h *mad.RMPPHeader) { h.Data2 = 440 }),
			kernelSilence, aborted("440 bytes announced, segment 2"), mad.RMPPStatusBadLength},
		{"last segment longer than a MAD", broken(7, func(h *mad.RMPPHeader) { h.Data2 = 221 }),
			kernelSilence, aborted("PayloadLength 221"), mad.RMPPStatusBadLength},
		{"last segment shorter than its headers", broken(7, func(h *mad.RMPPHeader) { h.Data2 = 19 }),
			kernelSilence, aborted("PayloadLength 19"), mad.RMPPStatusBadLength},
		{"segment 2 says it is the first", broken(2, func(h *mad.RMPPHeader) { h.RMPPFlags |= mad.RMPPFlagFirst }),
			kernelSilence, aborted("segment 2 with flags 0x3"), mad.RMPPStatusBadSegment},
		{"unknown RMPP version", broken(2, func(h *mad.RMPPHeader) { h.RMPPVersion = 2 }),
			kernelSilence, aborted("version 2"), mad.RMPPStatusBadVersion},
		{"unknown RMPP type", broken(2, func(h *mad.RMPPHeader) { h.RMPPType = 9 }),
			kernelSilence, aborted("status 121 (bad RMPPType): RMPP type 9"), mad.RMPPStatusBadType},
		{"another base version", other(func(p *packet) { p.MAD[0] = 2 }), kernelSilence, userSilence, 0},
		{"another class", other(func(p *packet) { p.MAD[mad.OffClass] = byte(mad.ClassPerf) }), kernelSilence, userSilence, 0},
		{"a partition that the port is not in", other(func(p *packet) { p.PKey = 0x8123 }), kernelSilence, userSilence, 0},
		{"the method of a request", other(func(p *packet) { p.MAD[mad.OffMethod] = byte(mad.MethodGetTable) }), kernelSilence, userSilence, 0},
		{"the method of another answer", once(func() packet {
			p := single(mad.StatusOK, 8, somePaths(3))
			p.MAD[mad.OffMethod] = byte(mad.MethodDeleteResp)
			return p
		}()), malformed("malformed answer for PathRecord: method DeleteResp does not answer GetTable"),
			malformed("malformed answer for PathRecord: method DeleteResp does not answer GetTable"), 0},
		{"another class version", table(func() []packet {
			all := segments(8, somePaths(20))
			for i := range all {
				all[i].MAD[mad.OffClassVersion] = 1
			}
			return all
		}()),
			malformed("malformed answer for PathRecord: class version 1 does not answer 2"),
			malformed("malformed answer for PathRecord: class version 1 does not answer 2"), 0},
		{"another class version, and too old", once(func() packet {
			p := single(mad.StatusBadVersion, 0, nil)
			p.MAD[mad.OffClassVersion] = 1
			return p
		}()), ending{&asStatus, sa.ErrUnsupported, "GetTable PathRecord: status 0x0004", 0},
			ending{&asStatus, sa.ErrUnsupported, "GetTable PathRecord: status 0x0004", 0}, 0},
	} {
		for _, mode := range rmppModes {
			t.Run(tt.name+", "+mode.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := build(t, "demo", sim.Config{})
					bad := h.play()
					bad.answer = func(now turn) []packet {
						if now.asked == 1 {
							return tt.answer(now)
						}
						return now.window(good)
					}
					c := h.admin(h.port("h2"), sa.Config{RMPP: mode.mode, Timeout: saTimeout, Transfer: saTransfer, Retries: -1})
					want, told := tt.kernel, []mad.RMPPStatus{tt.told}
					switch {
					case mode.mode == port.RMPPKernel && tt.told == mad.RMPPStatusTimeTooLong:
						told[0] = mad.RMPPStatusOK // the client gives up before the kernel does
					case mode.mode == port.RMPPUser:
						want = tt.user
						if want.as == &asMalformed { // found while the rest was still coming, or not
							told = append(told, mad.RMPPStatusUnspecified)
						}
					}
					begin := time.Now()
					recs, err := collect(c.Paths(t.Context(), sa.PathQuery{}))
					if took := time.Since(begin); err == nil || took != want.after {
						t.Fatalf("%d records and error %v after %v, want an error after %v", len(recs), err, took, want.after)
					}
					if want.as != nil && !errors.As(err, want.as) || want.is != nil && !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.text) {
						t.Errorf("error %q, want %T, %v and %q", err, want.as, want.is, want.text)
					}
					if !strings.Contains(err.Error(), "PathRecord") || !strings.Contains(err.Error(), "LID 1") {
						t.Errorf("error %q does not say what was asked of whom", err)
					}
					synctest.Wait()
					if !slices.Contains(told, bad.told) {
						t.Errorf("the SA was told %v, want %v", bad.told, told)
					}
					if recs, err = collect(c.Paths(t.Context(), sa.PathQuery{})); err != nil || len(recs) != 20 || recs[19].DLID != 20 {
						t.Errorf("%d records and error %v afterwards", len(recs), err)
					}
				})
			})
		}
	}
}

// A table that is longer than the client takes. In user RMPP that is what has come
// and was not yet read: a slow reader has the SA stopped, a quick one reads any
// length.
func TestLongTable(t *testing.T) {
	const records, limit = 100, 2000
	for _, tt := range []struct {
		name string
		mode port.RMPPMode
		read time.Duration // of the first record
		told mad.RMPPStatus
	}{
		{"kernel", port.RMPPKernel, 0, mad.RMPPStatusOK},
		{"user, slow reader", port.RMPPUser, time.Second, mad.RMPPStatusResourcesExhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, "demo", sim.Config{})
				s := h.play()
				s.answer = func(now turn) []packet { return now.window(segments(8, somePaths(records))) }
				c := h.admin(h.port("h2"), sa.Config{RMPP: tt.mode, MaxMessage: limit})
				got := 0
				var err error
				for _, err = range c.Paths(t.Context(), sa.PathQuery{}) {
					if got == 0 {
						time.Sleep(tt.read)
					}
					if err == nil {
						got++
					}
				}
				if !errors.Is(err, agents.ErrTooLong) || !strings.Contains(err.Error(), "SubnAdmGetTable(PathRecord) to LID 1") || !strings.Contains(err.Error(), "2000") {
					t.Errorf("error %v, want one that names the limit", err)
				}
				if synctest.Wait(); got > limit/mad.PathRecordSize+4 || s.told != tt.told {
					t.Errorf("%d records were read and the SA was told %v, want %v", got, s.told, tt.told)
				}
			})
		})
	}
}

// A busy SA is asked again, each time after a longer break, and its table read
// when it comes.
func TestBusySA(t *testing.T) {
	for _, mode := range rmppModes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, "demo", sim.Config{})
				s := h.play()
				s.answer = func(now turn) []packet {
					if now.asked <= 2 {
						return []packet{single(mad.StatusBusy, 0, nil)}
					}
					return now.window(segments(8, somePaths(20)))
				}
				c := h.admin(h.port("h2"), sa.Config{RMPP: mode.mode, Timeout: saTimeout})
				begin := time.Now()
				recs, err := collect(c.Paths(t.Context(), sa.PathQuery{}))
				h.must(err)
				// Breaks of 1/8 and 2/8 of the time-out, of which half is random.
				took := time.Since(begin)
				if len(recs) != 20 || s.asked != 3 || took < saTimeout*3/16 || took > saTimeout*3/8 {
					t.Errorf("%d records after %d tries and %v", len(recs), s.asked, took)
				}
			})
		})
	}
}

// A real SA that cannot be reached any more, and then can.
func TestLostSA(t *testing.T) {
	for _, mode := range rmppModes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, "demo", sim.Config{})
				server := h.serve(h.sub, mode.mode)
				c := h.admin(h.port("h8"), sa.Config{RMPP: mode.mode, Timeout: saTimeout, Transfer: saTransfer})
				q := sa.PathQuery{DGID: h.port("h3").GID(h.sub.GIDPrefix)}
				ask := func() ([]mad.PathRecord, error) { return collect(c.Paths(t.Context(), q)) }
				before, err := ask()
				if err != nil || len(before) != 1 {
					t.Fatalf("at first: %d paths, %v", len(before), err)
				}

				h.must(h.fabric.Cut(h.sub.SM))
				begin := time.Now()
				_, err = ask()
				want := 3 * userSilence.after
				if mode.mode == port.RMPPKernel {
					want = 3 * kernelSilence.after
				}
				if took := time.Since(begin); !errors.Is(err, agents.ErrTimeout) || !strings.Contains(err.Error(), "to LID 1") || took != want {
					t.Errorf("cut off: %v after %v, want a time-out after %v", err, took, want)
				}
				h.must(h.fabric.Restore(h.sub.SM))
				if after, err := ask(); err != nil || !slices.Equal(after, before) {
					t.Errorf("mended: %+v, %v; want %+v", after, err, before)
				}

				// Nobody owns the methods of the SA any more. A kernel says so to a
				// Get, and drops a GetTable (mad.c, generate_unmatched_resp).
				h.must(server.Close())
				if _, err := sa.Get(t.Context(), c, sa.Query[mad.ClassPortInfo]{}); !errors.Is(err, sa.ErrUnsupported) {
					t.Errorf("Get of a port without SA: %v", err)
				}
				if _, err := ask(); !errors.Is(err, agents.ErrTimeout) {
					t.Errorf("GetTable of a port without SA: %v", err)
				}

				// The own device is pulled out while a query is in flight.
				ended := make(chan error)
				go func() {
					_, err := ask()
					ended <- err
				}()
				synctest.Wait()
				h.must(h.fabric.Remove(h.port("h8").Node, 1))
				if err := <-ended; !errors.Is(err, port.ErrGone) {
					t.Errorf("without a device: %v", err)
				}
			})
		})
	}
}

// The RMPP of the script is what the real server sends, so that what it breaks is
// broken in one point only.
func TestScriptIsGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, "demo", sim.Config{})
		h.play().answer = func(now turn) []packet { return now.window(segments(8, somePaths(20))) }
		for _, mode := range rmppModes {
			recs, err := collect(h.admin(h.port("h2"), sa.Config{RMPP: mode.mode}).Paths(t.Context(), sa.PathQuery{}))
			h.must(err)
			var lids []mad.LID
			for _, rec := range recs {
				lids = append(lids, rec.DLID)
			}
			if len(lids) != 20 || !slices.IsSorted(lids) || lids[0] != 1 || lids[19] != 20 {
				t.Errorf("%s: DLIDs %v", mode.name, lids)
			}
		}
	})
}
