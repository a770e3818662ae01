package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app"
	"github.com/ibsm/ibsm/ibsim/ibsimtest"
)

// What smp get prints is what smpquery does, to the byte: every attribute that
// both read and ibsim answers, of every port of every node, by directed route and
// by LID. There are 100 nodes if IBSM_BENCH is all, otherwise fewer.
func TestIbsimSmpquery(t *testing.T) {
	leafs, spines, hosts := 2, 1, 1 // hosts at each leaf
	if os.Getenv("IBSM_BENCH") == "all" {
		leafs, spines, hosts = 5, 5, 18
	}
	ibsimtest.Need(t, "opensm", "smpquery")
	b := ibsimtest.Start(t, ibsimtest.TwoLevel(leafs, spines, hosts), "H-0001")
	t.Setenv("IBSIM_SOCKNAME", b.Socket)

	queries := make(chan []string)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for q := range queries {
				kind := "-L"
				if strings.HasPrefix(q[1], "0,") {
					kind = "-D"
				}
				// On a busy machine smpquery's own time may run out.
				var want []byte
				var err error
				for range 3 {
					if want, err = b.Command("H-0001", "smpquery", append([]string{kind}, q...)...).Output(); err == nil {
						break
					}
				}
				if err != nil {
					t.Errorf("smpquery %q, three times: %v", q, err)
				}
				if diff := cmp.Diff(withoutXDR(string(want)), withoutXDR(smpGet(t, q...))); diff != "" {
					t.Errorf("%q (-smpquery +ibsm):\n%s", q, diff)
				}
			}
		})
	}
	query := func(ports int, isSwitch bool, route string) {
		doc, err := parse("json", smpGet(t, "PortInfo", route, "0", "-o", "json"))
		if err != nil {
			t.Fatal(err)
		}
		lid, err := at(doc, "records.0.LID")
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []string{route, fmt.Sprint(lid)} {
			for _, attribute := range []string{"NodeInfo", "NodeDesc", "GUIDInfo"} {
				queries <- []string{attribute, to}
			}
			if isSwitch {
				queries <- []string{"SwitchInfo", to}
			}
			for port := range ports + 1 {
				for _, attribute := range []string{"PortInfo", "PKeyTable", "SL2VLTable", "VLArbitration", "MlnxExtPortInfo"} {
					queries <- []string{attribute, to, fmt.Sprint(port)}
				}
			}
		}
	}
	// A leaf has its hosts at its first ports, then the spines; a spine has the leafs
	// in their order.
	toSpine := func(spine int) string { return fmt.Sprintf("0,1,%d", hosts+spine+1) }
	for spine := range spines {
		query(leafs, true, toSpine(spine))
	}
	for leaf := range leafs {
		route := "0,1"
		if leaf > 0 {
			route = fmt.Sprintf("%s,%d", toSpine(leaf%spines), leaf+1)
		}
		query(hosts+spines, true, route)
		for host := range hosts {
			query(1, false, fmt.Sprintf("%s,%d", route, host+1))
		}
	}
	close(queries)
	workers.Wait()
}

var smpGets sync.Mutex // one client of ibsim at a time in this process

func smpGet(t *testing.T, args ...string) string {
	t.Helper()
	smpGets.Lock()
	defer smpGets.Unlock()
	var stdout, stderr bytes.Buffer
	code := app.Run(t.Context(), app.Host{
		Args:   append([]string{"ibsm", "--on", "ibsim:H-0001", "smp", "get"}, args...),
		Stdout: &stdout, Stderr: &stderr,
	})
	if code != 0 {
		t.Errorf("%q: exit code %d: %s", args, code, stderr.String())
	}
	return stdout.String()
}

// withoutXDR leaves out the lines of PortInfo that smpquery has only since it
// knows XDR.
func withoutXDR(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if label, _, _ := strings.Cut(line, ":"); !strings.HasPrefix(label, "LinkSpeedExt") || !strings.HasSuffix(label, "2") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
