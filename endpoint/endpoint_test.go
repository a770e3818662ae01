package endpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/smp"
)

// Where an endpoint stands, by all the ways to write one.
func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "one fabric.yaml")
	const fabric = "subnet: {sm: b}\nnodes: [{name: a/1, kind: ca, ports: 2}, {name: b, kind: ca, desc: the b}]\nlinks: [\"a/1[1] - b[1]\"]\n"
	if err := os.WriteFile(file, []byte(fabric), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		endpoint, device string
		port             uint8
	}{
		{"sim:demo", "h1", 1},
		{"sim:demo#h3", "h3", 1},
		{"sim:demo#h3/1", "h3", 1},
		{"sim:demo#s2", "s2", 0},
		{"sim:demo#s2/0", "s2", 0},
		{"sim:demo#demo switch 2", "s2", 0},
		{" sim : demo # h8/1 ", "h8", 1},
		{"sim:two-level:leafs=2,spines=1,hosts=2", "", 1},
		{"sim:" + file, "a/1", 1},
		{"sim:" + file + "#a/1", "a/1", 1}, // the whole is a name
		{"sim:" + file + "#a/1/2", "a/1", 2},
		{"sim:" + file + "#the b", "b", 1},
	} {
		t.Run(tt.endpoint, func(t *testing.T) {
			// What was started for the device ends with it, or the bubble does not.
			synctest.Test(t, func(t *testing.T) {
				dev, err := Open(t.Context(), tt.endpoint)
				if err != nil {
					t.Fatal(err)
				}
				info, err := dev.Info()
				if err != nil || tt.device != "" && info.Device != tt.device || info.Port != tt.port {
					t.Errorf("%s/%d, %v; want %s/%d", info.Device, info.Port, err, tt.device, tt.port)
				}
				if err := dev.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if _, err := dev.Open(); err == nil {
					t.Error("a closed device opens")
				}
			})
		})
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("nodes: [{name: a, kind: cow}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lonely := filepath.Join(dir, "lonely.yaml")
	if err := os.WriteFile(lonely, []byte("nodes: [{name: a, kind: ca}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ endpoint, text string }{
		{"demo", `endpoint "demo": unknown kind "demo": an endpoint is sim:FABRIC`},
		{"umad:mlx5_0/x", `"x" is no port number: write umad:DEVICE/PORT`},
		{"umad:mlx5_0/256", `"256" is no port number`},
		{"sim", "names no fabric"},
		{"sim:", "names no fabric"},
		{"sim: ", "names no fabric"},
		{"sim:#h1", "neither a fabric file nor one of demo, "},
		{"sim:nofile", `endpoint "sim:nofile": "nofile" is neither a fabric file nor one of demo, `},
		{"sim:no/file.yaml", "no/file.yaml"},
		{"sim:two-level:leafs=x", "leafs"},
		{"sim:" + bad, "bad.yaml:1:"},
		{"sim:demo#nohost", `the fabric has no node "nohost": 'ibsm --on sim:demo ports' lists those it has`},
		{"sim:demo#nohost/1", `no node "nohost"`},
		{"sim:demo#", `no node ""`},
		{"sim:demo#h1/x", `"x" is no port number`},
		{"sim:demo#h1/2", `node "h1" has no end port 2: it has 1 to 1`},
		{"sim:demo#s1/1", `node "s1" has no end port 1: it has 0 to 0`},
	} {
		dev, err := Open(t.Context(), tt.endpoint)
		_, listErr := List(t.Context(), tt.endpoint)
		for _, err := range []error{err, listErr} {
			var as *Error
			if dev != nil || !errors.As(err, &as) || as.Endpoint != tt.endpoint || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v, want %q", tt.endpoint, err, tt.text)
			}
		}
	}
}

// One port is chosen, the one that Open takes; each is named so that Open takes
// it.
func TestList(t *testing.T) {
	for _, tt := range []struct {
		endpoint, chosen string
		choices          int
	}{
		{"sim:demo", "h1", 10},
		{"sim:demo#h5", "h5", 1},
		{"sim: demo #demo switch 1", "s1", 1},
	} {
		choices, err := List(t.Context(), tt.endpoint)
		if err != nil || len(choices) != tt.choices {
			t.Fatalf("%s: %d choices, %v; want %d", tt.endpoint, len(choices), err, tt.choices)
		}
		for _, c := range choices {
			if c.Chosen != (c.Info.Device == tt.chosen) || c.Why == "" {
				t.Errorf("%s: %+v", tt.endpoint, c)
			}
			dev, err := Open(t.Context(), c.Endpoint)
			if err != nil {
				t.Fatal(err)
			}
			info, err := dev.Info()
			if err != nil || info.Device != c.Info.Device || info.Port != c.Info.Port || info.LID != c.Info.LID {
				t.Errorf("%s is %s/%d, want %s/%d (%v)", c.Endpoint, info.Device, info.Port, c.Info.Device, c.Info.Port, err)
			}
			if isSM := info.CapMask&mad.CapIsSM != 0; isSM != (info.LID == info.SMLID) || isSM != (c.Info.CapMask&mad.CapIsSM != 0) {
				t.Errorf("%s: IsSM is %t", c.Endpoint, isSM)
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The SM's port answers as one that has an SM, and has the SA. The user's agents
// can stand beside it.
func TestSubnetManager(t *testing.T) {
	for _, on := range []string{"sim:demo#h1", "sim:demo#h7"} {
		dev, err := Open(t.Context(), on)
		if err != nil {
			t.Fatal(err)
		}
		ask(t, dev)
		if err := dev.Close(); err != nil {
			t.Errorf("%s: Close: %v", on, err)
		}
	}
}

func ask(t *testing.T, dev port.Device) {
	t.Helper()
	smps, err := smp.NewClient(dev, smp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer smps.Close()
	info, err := smp.Get[mad.SMInfo](t.Context(), smps, mad.MustParseAddr("1"), 0)
	if err != nil || info.SMState != mad.SMStateMaster {
		t.Errorf("SMInfo %+v, %v", info, err)
	}
	admin, err := sa.NewClient(dev, sa.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if e, err := sa.NewResolver(admin).Resolve(t.Context(), mad.MustParseAddr("h8")); err != nil || e.LID != 8 {
		t.Errorf("h8: %+v, %v", e, err)
	}
}

// Who is still asking when the endpoint is closed hears that the device is gone,
// not what a half-closed fabric answers.
func TestCloseWhileAsking(t *testing.T) {
	for i := range 40 {
		dev, err := Open(t.Context(), "sim:demo")
		if err != nil {
			t.Fatal(err)
		}
		c, err := sa.NewClient(dev, sa.Config{})
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan struct{}, 1)
		failed := make(chan error)
		go func() {
			for n := 0; ; n++ {
				if _, err := sa.Get(t.Context(), c, sa.Match(mad.NodeRecord{LID: 3}, "LID")); err != nil {
					failed <- err
					return
				}
				if n == i {
					asked <- struct{}{}
				}
			}
		}()
		<-asked
		if err := dev.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-failed; !errors.Is(err, port.ErrGone) {
			t.Fatalf("round %d: %v, want ErrGone", i, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	}
}
