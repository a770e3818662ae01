package ucma_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/ucma"
)

// open makes a channel on a fake, with n ids.
func open(t *testing.T, f *fakeKernel, ps ucma.PortSpace, n int) (*ucma.Channel, []*ucma.ID) {
	t.Helper()
	c := ucma.NewChannel(f)
	t.Cleanup(func() { c.Close() })
	ids := make([]*ucma.ID, n)
	for i := range ids {
		var err error
		if ids[i], err = c.CreateID(ps, 0); err != nil {
			t.Fatal(err)
		}
	}
	return c, ids
}

func TestCreateID(t *testing.T) {
	dialects(t, func(t *testing.T, d *ucma.Dialect) {
		f := newFake(d)
		var got []ucma.CreateID
		f.script(ucma.OpCreateID, func(_ *fakeKernel, cmd ucma.Command) error {
			got = append(got, cmd.(ucma.CreateID))
			return nil
		})
		_, ids := open(t, f, ucma.PortSpaceUDP, 2)
		// A kernel throws the events of uid 0 away.
		if got[0].UID == 0 || got[0].UID == got[1].UID || got[0].PS != ucma.PortSpaceUDP {
			t.Errorf("commands %+v: uids must differ from each other and from 0", got)
		}
		if ids[0].Num() != 1 || ids[1].Num() != 2 || ids[0].QPType() != ucma.QPTypeUD || ids[0].PortSpace() != ucma.PortSpaceUDP {
			t.Errorf("ids %v %v", ids[0], ids[1])
		}
	})
}

// The types of queue pairs of the port spaces: kernel ucma.c, ucma_get_qp_type.
func TestQPTypes(t *testing.T) {
	for _, tt := range []struct {
		ps   ucma.PortSpace
		ask  ucma.QPType
		want ucma.QPType
	}{
		{ucma.PortSpaceTCP, 0, ucma.QPTypeRC},
		{ucma.PortSpaceTCP, ucma.QPTypeUD, ucma.QPTypeRC},
		{ucma.PortSpaceUDP, 0, ucma.QPTypeUD},
		{ucma.PortSpaceIPoIB, 0, ucma.QPTypeUD},
		{ucma.PortSpaceIB, 0, ucma.QPTypeRC},
		{ucma.PortSpaceIB, ucma.QPTypeUD, ucma.QPTypeUD},
	} {
		c, _ := open(t, newFake(ucma.Linux), 0, 0)
		id, err := c.CreateID(tt.ps, tt.ask)
		if err != nil || id.QPType() != tt.want {
			t.Errorf("port space %v, asked for %v: %v, %v; want %v", tt.ps, tt.ask, id, err, tt.want)
		}
	}
}

func TestCreateIDRefused(t *testing.T) {
	f := newFake(ucma.Linux)
	f.refuse(ucma.OpCreateID, ucma.ENOMEM)
	c, _ := open(t, f, 0, 0)
	if _, err := c.CreateID(ucma.PortSpaceTCP, 0); !errors.Is(err, ucma.ENOMEM) {
		t.Errorf("error %v, want ENOMEM", err)
	}
}

// Events reach the id that they are for, in order, whoever waits first.
func TestDispatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		_, ids := open(t, f, ucma.PortSpaceTCP, 500)
		var all sync.WaitGroup
		for i, id := range ids {
			all.Go(func() {
				for want := range int32(3) {
					e, err := id.Next(t.Context())
					if err != nil || e.Type != ucma.EventAddrChange || e.Status != int32(i)*10+want {
						t.Errorf("id %d: event %v %d, %v; want %d", i, e.Type, e.Status, err, int32(i)*10+want)
					}
				}
			})
		}
		synctest.Wait()
		for n := range int32(3) {
			for i, id := range slices.Backward(ids) {
				f.send(f.event(id.Num(), ucma.EventAddrChange, int32(i)*10+n))
			}
		}
		all.Wait()
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		c, ids := open(t, f, ucma.PortSpaceTCP, 1)
		foreign := f.event(ids[0].Num(), ucma.EventAddrChange, 0)
		foreign.UID += 1 << 40
		f.send(foreign, f.event(ids[0].Num(), 77, 0), f.event(ids[0].Num(), ucma.EventEstablished, 0))
		// What is not known is passed over by who waits for something else, and can be
		// read by who takes everything.
		if e, err := ids[0].Wait(t.Context(), ucma.EventEstablished); err != nil || e.Type != ucma.EventEstablished {
			t.Errorf("event %v, %v; want ESTABLISHED", e.Type, err)
		}
		want := ucma.Stats{Events: 3, Unknown: 1, Unclaimed: 1}
		if got := c.Stats(); got != want {
			t.Errorf("stats %+v, want %+v", got, want)
		}
		f.send(f.event(ids[0].Num(), 77, 5))
		if e, err := ids[0].Next(t.Context()); err != nil || e.Type != 77 || e.Status != 5 {
			t.Errorf("event %v %d, %v; want 77 with status 5", e.Type, e.Status, err)
		}
	})
}

// A request whose listener is gone would have its peer wait for a minute.
func TestUnclaimedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		_, ids := open(t, f, ucma.PortSpaceTCP, 1)
		r := f.event(ids[0].Num(), ucma.EventConnectRequest, 0)
		r.UID += 1 << 40
		r.ID = f.create(0, 0)
		f.send(r)
		synctest.Wait()
		if got := f.commands(); !slices.Equal(got, []string{"CREATE_ID", "DESTROY_ID"}) {
			t.Errorf("commands %v, want the child destroyed", got)
		}
	})
}

func TestDestroy(t *testing.T) {
	dialects(t, func(t *testing.T, d *ucma.Dialect) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(d)
			c, ids := open(t, f, ucma.PortSpaceTCP, 1)
			waiting := make(chan error)
			go func() {
				_, err := ids[0].Wait(t.Context(), ucma.EventAddrResolved)
				waiting <- err
			}()
			synctest.Wait()
			if err := ids[0].Destroy(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-waiting; !errors.Is(err, ucma.ErrDestroyed) {
				t.Errorf("who waited got %v, want ErrDestroyed", err)
			}
			if _, err := ids[0].Next(t.Context()); !errors.Is(err, ucma.ErrDestroyed) {
				t.Errorf("Next: %v, want ErrDestroyed", err)
			}
			if err := ids[0].Destroy(t.Context()); err != nil {
				t.Errorf("a second Destroy: %v", err)
			}
			if got, want := f.commands(), []string{"CREATE_ID", "DESTROY_ID"}; !slices.Equal(got, want) {
				t.Errorf("commands %v, want %v", got, want)
			}
			if got := c.Stats().Missing; got != 0 {
				t.Errorf("%d events are missing", got)
			}
		})
	})
}

// A kernel's DESTROY_ID waits for the handlers of the id, for ever if they hang.
func TestDestroyBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		let := make(chan struct{})
		f.script(ucma.OpDestroyID, func(*fakeKernel, ucma.Command) error { <-let; return nil })
		_, ids := open(t, f, ucma.PortSpaceTCP, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		err := ids[0].Destroy(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v; want the context's end after 3 s", time.Since(start), err)
		}
		// Nobody else waits for it.
		f.send(f.event(ids[1].Num(), ucma.EventAddrChange, 0))
		if _, err := ids[1].Next(t.Context()); err != nil {
			t.Error(err)
		}
		close(let)
		if err := ids[0].Destroy(t.Context()); err != nil {
			t.Errorf("when the kernel has done: %v", err)
		}
	})
}

// A kernel counts the events of an id that were fetched; librdmacm waits until all of
// them were acknowledged. Here none may be on its way when Destroy returns.
func TestDestroySettles(t *testing.T) {
	f := newFake(ucma.Linux)
	fetched, let := make(chan struct{}), make(chan struct{})
	f.handing = func() { close(fetched); <-let }
	c, ids := open(t, f, ucma.PortSpaceTCP, 1)
	f.send(f.event(ids[0].Num(), ucma.EventAddrChange, 0))
	<-fetched
	f.script(ucma.OpDestroyID, func(*fakeKernel, ucma.Command) error {
		go func() {
			for range 10000 { // Destroy gets its chance to be too early
				runtime.Gosched()
			}
			close(let)
		}()
		return nil
	})
	if err := ids[0].Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Stats(), (ucma.Stats{Events: 1}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// Destroy compares the kernel's count with its own.
func TestDestroyCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		c, ids := open(t, f, ucma.PortSpaceTCP, 1)
		f.send(f.event(ids[0].Num(), ucma.EventAddrChange, 0), f.event(ids[0].Num(), ucma.EventAddrChange, 0))
		synctest.Wait() // both are fetched, and nobody took them
		if err := ids[0].Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := c.Stats(), (ucma.Stats{Events: 2}); got != want {
			t.Errorf("stats %+v, want %+v", got, want)
		}
		// Somebody else reads the same file: events are gone that this side never saw.
		id, err := c.CreateID(ucma.PortSpaceTCP, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.reported = 3
		if err := id.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.Stats().Missing; got != 3 {
			t.Errorf("%d events missing, want 3", got)
		}
	})
}

// On illumos DESTROY_ID empties the queue of the whole file (sol_ucma.c,
// sol_ucma_destroy_id): what other ids have there must be fetched before.
func TestDestroyKeepsOthersEvents(t *testing.T) {
	dialects(t, func(t *testing.T, d *ucma.Dialect) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(d)
			_, ids := open(t, f, ucma.PortSpaceTCP, 2)
			// The events come in while DESTROY_ID is being written, so that the channel's
			// own goroutine cannot have fetched them.
			f.busy.Lock()
			for range 4 {
				f.send(f.event(ids[0].Num(), ucma.EventAddrChange, 0), f.event(ids[1].Num(), ucma.EventAddrResolved, 0))
			}
			done := make(chan error)
			go func() { done <- ids[0].Destroy(t.Context()) }()
			f.busy.Unlock()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				if _, err := ids[1].Wait(t.Context(), ucma.EventAddrResolved); err != nil {
					t.Fatalf("event %d: %v", i, err)
				}
			}
		})
	})
}

func TestDestroyRefused(t *testing.T) {
	f := newFake(ucma.Linux)
	f.refuse(ucma.OpDestroyID, ucma.EINVAL)
	_, ids := open(t, f, ucma.PortSpaceTCP, 1)
	if err := ids[0].Destroy(t.Context()); !errors.Is(err, ucma.EINVAL) {
		t.Errorf("error %v, want EINVAL", err)
	}
}

func TestDeviceRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		_, ids := open(t, f, ucma.PortSpaceTCP, 1)
		f.send(f.event(ids[0].Num(), ucma.EventDeviceRemoval, 0))
		if _, err := ids[0].Wait(t.Context(), ucma.EventAddrResolved); !errors.Is(err, ucma.ErrGone) {
			t.Errorf("error %v, want ErrGone", err)
		}
		if err := ids[0].ResolveRoute(time.Second); !errors.Is(err, ucma.ErrGone) {
			t.Errorf("a command afterwards: %v, want ErrGone", err)
		}
		if err := ids[0].Destroy(t.Context()); err != nil {
			t.Errorf("the id must still be destroyed: %v", err)
		}
		if got, want := f.commands(), []string{"CREATE_ID", "DESTROY_ID"}; !slices.Equal(got, want) {
			t.Errorf("commands %v, want %v", got, want)
		}
	})
}

// The end of the device, by Close or otherwise, ends all that wait, and destroys all ids.
func TestChannelEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(f *fakeKernel, c *ucma.Channel)
		want error
	}{
		{"close", func(_ *fakeKernel, c *ucma.Channel) { c.Close() }, ucma.ErrClosed},
		{"gone", func(f *fakeKernel, _ *ucma.Channel) { f.stop(ucma.ErrGone) }, ucma.ErrGone},
		{"refused", func(f *fakeKernel, _ *ucma.Channel) { f.stop(ucma.EACCES) }, ucma.EACCES},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(ucma.Linux)
				c, ids := open(t, f, ucma.PortSpaceTCP, 1)
				waiting := make(chan error)
				go func() {
					_, err := ids[0].Next(t.Context())
					waiting <- err
				}()
				synctest.Wait()
				tt.end(f, c)
				if err := <-waiting; !errors.Is(err, tt.want) {
					t.Errorf("who waited got %v, want %v", err, tt.want)
				}
				if err := ids[0].Destroy(t.Context()); err != nil && tt.name != "refused" {
					t.Errorf("destroy afterwards: %v", err)
				}
				if err := errors.Join(c.Close(), c.Close()); err != nil {
					t.Errorf("close: %v", err)
				}
				if f.closed != 1 {
					t.Errorf("the device was closed %d times", f.closed)
				}
			})
		})
	}
}

// An id takes its events, fetched or not, to another channel.
func TestMigrate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, g := newFake(ucma.Linux), newFake(ucma.Linux)
		from := ucma.NewChannel(fakeFile{f})
		to := ucma.NewChannel(fakeFile{g})
		defer to.Close()
		defer from.Close()
		id, err := from.CreateID(ucma.PortSpaceTCP, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.send(f.event(id.Num(), ucma.EventAddrChange, 1))
		second := f.event(id.Num(), ucma.EventAddrChange, 2)
		synctest.Wait()
		var moved ucma.MigrateID
		g.script(ucma.OpMigrateID, func(_ *fakeKernel, cmd ucma.Command) error {
			moved = cmd.(ucma.MigrateID)
			return nil
		})
		if err := id.Migrate(to); err != nil {
			t.Fatal(err)
		}
		if want := (ucma.MigrateID{ID: id.Num(), FD: 42}); moved != want {
			t.Errorf("written to the new device: %+v, want %+v", moved, want)
		}
		g.objects[id.Num()] = &fakeObject{uid: second.UID}
		g.send(second)
		for want := range int32(2) {
			if e, err := id.Next(t.Context()); err != nil || e.Status != want+1 {
				t.Errorf("event %d, %v; want %d", e.Status, err, want+1)
			}
		}
		if err := id.Destroy(t.Context()); err != nil || !slices.Contains(g.commands(), "DESTROY_ID") {
			t.Errorf("destroy by the new channel: %v, %v", err, g.commands())
		}
	})
}

// fakeFile is a fake with a descriptor.
type fakeFile struct{ *fakeKernel }

func (fakeFile) FD() uint32 { return 42 }

func TestMigrateRefused(t *testing.T) {
	f, g := newFake(ucma.Linux), newFake(ucma.Linux)
	_, ids := open(t, f, ucma.PortSpaceTCP, 1)
	to, _ := open(t, g, 0, 0)
	if err := ids[0].Migrate(to); err == nil {
		t.Error("a device without a descriptor cannot give its ids away")
	}
	from := ucma.NewChannel(fakeFile{newFake(ucma.Linux)})
	defer from.Close()
	id, err := from.CreateID(ucma.PortSpaceTCP, 0)
	if err != nil {
		t.Fatal(err)
	}
	g.refuse(ucma.OpMigrateID, ucma.ENOENT)
	if err := id.Migrate(to); !errors.Is(err, ucma.ENOENT) {
		t.Errorf("error %v, want ENOENT", err)
	}
	if err := id.Destroy(t.Context()); err != nil {
		t.Errorf("it is still the old channel's: %v", err)
	}
}
