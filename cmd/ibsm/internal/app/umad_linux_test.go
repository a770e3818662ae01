package app

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/umad"
)

// onMachine runs ibsm where the kernel has the ports of an archive of package
// umad; "": none.
func onMachine(t *testing.T, archive string, args ...string) outcome {
	t.Helper()
	root := t.TempDir()
	if archive != "" {
		a, err := txtar.ParseFile(filepath.Join("..", "..", "..", "..", "umad", "testdata", archive+".txtar"))
		if err == nil {
			err = txtar.Write(a, root)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := endpoint.Config{UMAD: umad.Config{Root: root}}
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), Host{Args: append([]string{"ibsm"}, args...), Stdout: &stdout, Stderr: &stderr, Open: c.Open, List: c.List})
	return outcome{code, stdout.String(), stderr.String()}
}

// Which port of the machine ibsm stands at.
func TestLocalPorts(t *testing.T) {
	t.Setenv("IBSM_ON", "")
	for _, tt := range []struct {
		machine, args string
		code          int
		on            string
		chosen        string // endpoint of the port, or what the message says
	}{
		{"dual", "", 0, "", "umad:ibp5s0/2"},
		{"dual", "--on umad:", 0, "umad:", "umad:ibp5s0/2"},
		{"dual", "-C ibp5s0 -P 1", 0, "umad:ibp5s0/1", "umad:ibp5s0/1"},
		{"dual", "--Ca mlx4_sw", 0, "umad:mlx4_sw", "umad:mlx4_sw/0"},
		{"dual", "--Port=2", 0, "umad:/2", "umad:ibp5s0/2"},
		{"dual", "--on umad: -P 2", 0, "umad:/2", "umad:ibp5s0/2"},
		{"dual", "--on umad:ibp5s0/1", 0, "umad:ibp5s0/1", "umad:ibp5s0/1"},
		{"rxe", "-C rxe0", 0, "umad:rxe0", "umad:rxe0/1"},
		{"dual", "-C mlx5_0", 1, "umad:mlx5_0", "ibp5s0/1: another port was named"},
		{"", "", 1, "", "this machine has no InfiniBand port: its adapter, or the driver of it, is missing; to stand elsewhere name it with --on or IBSM_ON, such as --on sim:demo"},
		{"dual", "-C ibp5s0 --on sim:demo", 2, "sim:demo", `--Ca and --Port name a port of this machine, and --on or IBSM_ON the endpoint "sim:demo"`},
		{"dual", "-P 1 --on umad:ibp5s0", 2, "umad:ibp5s0", `the endpoint "umad:ibp5s0"`},
		{"dual", "-P 256", 2, "", "--Port 256: it is a number from 0 to 255"},
		{"dual", "-P -1", 2, "", "--Port -1: it is a number from 0 to 255"},
		{"dual", "-C ibp5s0/1", 2, "", `--Ca "ibp5s0/1": it is the name of an RDMA device`},
		{"dual", "--Ca=", 2, "", `--Ca "": it is the name`},
	} {
		for _, args := range [][]string{ // flags stand anywhere
			append(strings.Fields(tt.args), "-o", "json", "ports"),
			append([]string{"-o", "json", "ports"}, strings.Fields(tt.args)...),
		} {
			got := onMachine(t, tt.machine, args...)
			doc := got.document(t)
			if got.code != tt.code || doc.On != tt.on || doc.Command != "ports" {
				t.Errorf("%v: exit code %d, %+v; want %d, on %q", args, got.code, doc, tt.code, tt.on)
				continue
			}
			if tt.code != 0 {
				if len(doc.Errors) != 1 || !strings.Contains(doc.Errors[0].Message, tt.chosen) {
					t.Errorf("%v: errors %+v, want %q", args, doc.Errors, tt.chosen)
				}
				continue
			}
			var chosen []any
			for _, r := range doc.Records {
				if r["chosen"] == true {
					chosen = append(chosen, r["endpoint"])
				}
			}
			if len(chosen) != 1 || chosen[0] != tt.chosen {
				t.Errorf("%v: chosen %v, want %s", args, chosen, tt.chosen)
			}
		}
	}
}

// Where no port is chosen ports lists them all, and other nouns say why.
func TestEthernetPort(t *testing.T) {
	t.Setenv("IBSM_ON", "")
	const why = "an Ethernet port has no LIDs: name it (--on umad:rxe0/1) and use GIDs"
	got := onMachine(t, "rxe", "ports")
	for _, line := range []string{
		"\t\tGID: fd00::1 (RoCE v2)\n", "\t\tLink layer: Ethernet\n", "\t\tChosen: no, " + why + "\n",
	} {
		if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, line) {
			t.Errorf("exit code %d, %s\n%s, want %q", got.code, got.stderr, got.stdout, line)
		}
	}
	doc := onMachine(t, "rxe", "-o", "json", "ports").document(t)
	types, _ := doc.Records[0]["GIDTypes"].([]any)
	gids, _ := doc.Records[0]["GIDs"].([]any)
	if len(types) != 3 || len(gids) != 3 || types[1] != "RoCE v2" || gids[1] != "fd00::1" {
		t.Errorf("GIDs %v of types %v", gids, types)
	}
	got = onMachine(t, "rxe", "sa", "get", "classportinfo")
	if got.code != 1 || !strings.Contains(got.stderr, "rxe0/1: "+why) || !strings.Contains(got.stderr, "--on sim:demo") {
		t.Errorf("exit code %d, %s", got.code, got.stderr)
	}
}

// What cannot be read is told.
func TestPortNotes(t *testing.T) {
	t.Setenv("IBSM_ON", "")
	got := onMachine(t, "broken", "ports")
	doc := onMachine(t, "broken", "-o", "json", "ports").document(t)
	notes, _ := doc.Records[0]["notes"].([]any)
	if len(notes) == 0 || !strings.Contains(got.stdout, "\t\tNot read: "+notes[0].(string)+"\n") {
		t.Errorf("notes %v in\n%s", notes, got.stdout)
	}
}
