package agents_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// An answer that stalls ends after the longest pause that its sender may make, an
// answer that takes long and goes on does not. OpenSM's sender, the kernel's with 3
// retries, sends a segment at 0, 2, 4 and 6 s and gives up at 8 s.
func TestSlowAnswers(t *testing.T) {
	const s = time.Second
	every := func(d time.Duration, n int) (at []time.Duration) {
		for i := range n {
			at = append(at, time.Duration(i)*d)
		}
		return at
	}
	for _, tt := range []struct {
		name     string
		cfg      agents.RMPPConfig
		timeout  time.Duration
		retries  int
		segments int
		at       []time.Duration // when they come
		want     time.Duration   // when the request ends
		text     string          // of the error; "": answered
	}{
		{"stalls after the first segment", agents.RMPPConfig{}, s, 0, 9, []time.Duration{0}, 8 * s, "segment 2 did not come, nor any new one for 8s"},
		{"stalls half way", agents.RMPPConfig{}, s, 0, 9, []time.Duration{0, 3 * s, 5 * s}, 13 * s, "segment 4 did not come, nor any new one for 8s"},
		{"a short time-out", agents.RMPPConfig{}, 10 * ms, 2, 9, []time.Duration{0}, 8 * s, "nor any new one for 8s"},
		{"a patient request", agents.RMPPConfig{}, 5 * s, 3, 9, []time.Duration{0, s}, 21 * s, "nor any new one for 20s"},
		{"own limit", agents.RMPPConfig{IdleTimeout: 300 * ms}, 5 * s, 3, 9, []time.Duration{0, 299 * ms}, 599 * ms, "nor any new one for 300ms"},
		{"the sender's last try", agents.RMPPConfig{}, s, 0, 3, []time.Duration{0, 6*s + ms, 12*s + 2*ms}, 12*s + 2*ms, ""},
		{"longer than a kernel's 40 s", agents.RMPPConfig{}, s, 0, 10, every(7*s, 10), 63 * s, ""},
		{"without end", agents.RMPPConfig{}, s, 0, 200, every(5*s, 120), 600 * s, "segment 121 did not come, 10m0s after the first"},
		{"own limit of the whole", agents.RMPPConfig{ReceiveTimeout: 40 * s}, s, 0, 10, every(7*s, 6), 40 * s, "segment 7 did not come, 40s after the first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakePort()
				conn, err := agents.Open(p, agents.Config{RMPP: tt.cfg})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				a := register(t, conn, saClient(port.RMPPUser))
				var got []byte
				ended := make(chan outcome, 1)
				begin := time.Now()
				go func() {
					err := a.Stream(t.Context(), &agents.Request{Addr: serverAddr, Data: sized(0), Long: true, Timeout: tt.timeout, Retries: tt.retries},
						func(_ *agents.Response, payload []byte) error { got = append(got, payload...); return nil })
					ended <- outcome{err: err, took: time.Since(begin)}
				}()
				synctest.Wait()
				sent := p.sends()[0]
				packets := segments(t, respond(sent.Data, pattern(tt.segments*perSegment)))
				for i, at := range tt.at {
					time.Sleep(time.Until(begin.Add(at)))
					p.in <- port.Message{Addr: sent.Addr, Data: packets[i]}
				}
				o := <-ended
				if o.took != tt.want {
					t.Errorf("ended after %v, want %v", o.took, tt.want)
				}
				if !bytes.Equal(got, pattern(tt.segments * perSegment)[:len(tt.at)*perSegment]) {
					t.Errorf("%d bytes came before the end, want those of %d segments", len(got), len(tt.at))
				}
				sends := p.sends()
				last := rmpp.ParseHeader((*[mad.Size]byte)(sends[len(sends)-1].Data))
				if tt.text == "" {
					if o.err != nil || last.RMPPType != mad.RMPPTypeACK {
						t.Errorf("got %v, and the peer %v", o.err, last.RMPPType)
					}
					return
				}
				// What was handed out cannot be taken back: no further try.
				var abort *rmpp.AbortError
				wantError(t, o.err, agents.ErrTimeout)
				if !errors.As(o.err, &abort) || abort.Segment != uint32(len(tt.at)) || !strings.Contains(o.err.Error(), tt.text) {
					t.Errorf("got %v, want %q", o.err, tt.text)
				}
				if last.RMPPType != mad.RMPPTypeAbort || last.RMPPStatus != 118 {
					t.Errorf("the peer was told %v %d, want ABORT 118", last.RMPPType, last.RMPPStatus)
				}
				if s := conn.Stats(); s.Resent != 0 || s.TimedOut != 1 || s.RMPP.Failed != 1 {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

// A request of which nothing was handed out is sent again when its answer stalls.
func TestStalledAnswerIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		a := register(t, conn, saClient(port.RMPPUser))
		end := doLater(t.Context(), a, agents.Request{Addr: serverAddr, Data: sized(0), Long: true, Retries: 1})
		requests := func() (all []port.Message) {
			for _, m := range p.sends() {
				if !rmpp.IsActive(m.Data) {
					all = append(all, m)
				}
			}
			return all
		}
		synctest.Wait()
		first := requests()[0]
		p.in <- port.Message{Addr: first.Addr, Data: segments(t, respond(first.Data, pattern(500)))[0]}
		time.Sleep(agents.DefaultIdleTimeout)
		synctest.Wait()
		all := requests()
		if len(all) != 2 || bytes.Equal(all[0].Data[mad.OffTID:16], all[1].Data[mad.OffTID:16]) {
			t.Fatalf("%d requests after the pause, want a second with its own transaction id", len(all))
		}
		for _, pkt := range segments(t, respond(all[1].Data, pattern(500))) {
			p.in <- port.Message{Addr: first.Addr, Data: pkt}
		}
		if o := <-end; o.err != nil || !bytes.Equal(o.response.Data[mad.OffSAData:], pattern(500)) {
			t.Errorf("got %+v", o)
		}
	})
}

// A request in segments that stalls is given up as the kernel does it: 40 s after
// its first segment, whatever came since, and not before.
func TestSlowRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		register(t, conn, saServer(port.RMPPUser, func(*agents.Incoming) { t.Error("an incomplete request is served") }))
		begin := time.Now()
		request := newMAD(mad.ClassSubnAdm, mad.MethodGetMulti, mad.AttrPathRecord, pattern(1000))
		for i, pkt := range segments(t, request)[:2] {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * 20 * time.Second)))
			p.in <- port.Message{Addr: serverAddr, Data: pkt}
		}
		time.Sleep(time.Until(begin.Add(40*time.Second - 1)))
		synctest.Wait()
		if sent := p.sends(); len(sent) != 1 {
			t.Fatalf("%d packets before 40 s, want one ACK", len(sent))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		sent := p.sends()
		if h := rmpp.ParseHeader((*[mad.Size]byte)(sent[len(sent)-1].Data)); len(sent) != 2 || h.RMPPType != mad.RMPPTypeAbort || h.RMPPStatus != 118 {
			t.Errorf("%d packets, the last %+v, want ABORT 118", len(sent), h)
		}
	})
}
