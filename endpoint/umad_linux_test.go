package endpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibsm/ibsm/umad"
)

// machine has the ports of an archive of package umad; "": none.
func machine(t *testing.T, archive string) Config {
	t.Helper()
	root := t.TempDir()
	if archive != "" {
		a, err := txtar.ParseFile(filepath.Join("..", "umad", "testdata", archive+".txtar"))
		if err == nil {
			err = txtar.Write(a, root)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Config{UMAD: umad.Config{Root: root}}
}

func TestUMAD(t *testing.T) {
	for _, tt := range []struct {
		machine, endpoint string
		open              string   // the port that is opened, or the error
		list              []string // the ports listed, with "*" the chosen one
	}{
		{"dual", "", "ibp5s0/2", []string{"ibp5s0/1", "ibp5s0/2*", "iw0/1", "mlx4_sw/0"}},
		{"dual", " ", "ibp5s0/2", []string{"ibp5s0/1", "ibp5s0/2*", "iw0/1", "mlx4_sw/0"}},
		{"dual", "umad:", "ibp5s0/2", []string{"ibp5s0/1", "ibp5s0/2*", "iw0/1", "mlx4_sw/0"}},
		{"dual", "umad:/2", "ibp5s0/2", []string{"ibp5s0/1", "ibp5s0/2*", "iw0/1", "mlx4_sw/0"}},
		{"dual", "umad:ibp5s0", "ibp5s0/2", []string{"ibp5s0/1", "ibp5s0/2*"}},
		{"dual", "umad: ibp5s0/1", "ibp5s0/1", []string{"ibp5s0/1*", "ibp5s0/2"}},
		{"dual", "umad:mlx4_sw", "mlx4_sw/0", []string{"mlx4_sw/0*"}},
		{"dual", "umad:mlx4_sw/0", "mlx4_sw/0", []string{"mlx4_sw/0*"}},
		{"dual", "umad:/1", "ibp5s0/1: its state is Down: name it (--on umad:ibp5s0/1)", []string{"ibp5s0/1", "ibp5s0/2", "iw0/1", "mlx4_sw/0"}},
		{"dual", "umad:iw0", "iw0/1: no umad device: the port carries no MADs", []string{"iw0/1"}},
		{"dual", "umad:/3", "mlx4_sw/0: another port was named", nil},
		{"dual", "umad:mlx4_0", "ibp5s0/1: another port was named", nil},
		{"dual", "umad:ibp5s0/3", `endpoint "umad:ibp5s0/3": no port of this machine was chosen: ibp5s0/1: another port was named; `, nil},
		{"rxe", "", "no port of this machine was chosen: rxe0/1: an Ethernet port has no LIDs: name it (--on umad:rxe0/1) and use GIDs; to stand", []string{"rxe0/1"}},
		{"rxe", "umad:rxe0", "rxe0/1", []string{"rxe0/1*"}},
		{"rxe", "umad:rxe0/1", "rxe0/1", []string{"rxe0/1*"}},
		{"", "", "this machine has no InfiniBand port", nil},
		{"", "umad:mlx5_0/1", `endpoint "umad:mlx5_0/1": this machine has no InfiniBand port`, nil},
	} {
		t.Run(tt.machine+" "+tt.endpoint, func(t *testing.T) {
			c := machine(t, tt.machine)
			dev, err := c.Open(t.Context(), tt.endpoint)
			if err != nil {
				checkNoPort(t, err, tt.open)
			} else {
				info, err := dev.Info()
				if got := fmt.Sprintf("%s/%d", info.Device, info.Port); err != nil || got != tt.open {
					t.Errorf("opened %s, %v; want %s", got, err, tt.open)
				}
				if err := dev.Close(); err != nil {
					t.Error(err)
				}
			}
			choices, err := c.List(t.Context(), tt.endpoint)
			if err != nil {
				checkNoPort(t, err, tt.open)
			}
			var list []string
			for _, c := range choices {
				name := fmt.Sprintf("%s/%d", c.Info.Device, c.Info.Port)
				if c.Endpoint != "umad:"+name || c.Why == "" {
					t.Errorf("choice %+v", c)
				}
				if c.Chosen {
					name += "*"
				}
				list = append(list, name)
			}
			if d := cmp.Diff(tt.list, list); d != "" {
				t.Error(d)
			}
		})
	}
}

// checkNoPort wants an error that says what to do instead.
func checkNoPort(t *testing.T, err error, text string) {
	t.Helper()
	var none *NoPortError
	if !errors.As(err, &none) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "--on sim:demo") {
		t.Errorf("error %v, want a *NoPortError %q that names sim:demo", err, text)
	}
}

// What umad tells beyond a port.Info is handed on.
func TestUMADNotes(t *testing.T) {
	choices, err := machine(t, "rxe").List(t.Context(), "umad:")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"RoCE v2", "RoCE v2", "", "RoCE v2"}, choices[0].GIDTypes); d != "" {
		t.Error(d)
	}
	choices, err = machine(t, "broken").List(t.Context(), "umad:")
	if err != nil {
		t.Fatal(err)
	}
	if len(choices) == 0 || len(choices[0].Notes) == 0 {
		t.Errorf("no notes on attributes that cannot be read: %+v", choices)
	}
}
