package fields_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/script"
)

// checkScript wants the language to know everything in a script of these steps.
func checkScript(t *testing.T, steps string) {
	t.Helper()
	fsys := fstest.MapFS{"s.yaml": {Data: []byte("version: 1\non: sim:demo\nsteps:\n" + steps)}}
	s, err := script.Load("s.yaml", fsys)
	if err == nil {
		err = s.Check(script.CheckEnv{})
	}
	if err != nil {
		t.Errorf("%v\n%s", err, steps)
	}
}

// What --yaml prints is a step of a script, as it is and with every field put in.
func TestStepsAreOfTheLanguage(t *testing.T) {
	for _, a := range layout.Attributes {
		bare, full := stepsOf(t, a)
		if bare == full {
			t.Errorf("%s: no field could be put in", a.Name)
		}
		checkScript(t, bare)
		checkScript(t, full)
	}
}

// Scripts set reserved rows by the names that are shown.
func TestReservedRowsAreOfTheLanguage(t *testing.T) {
	reserved := func(shown []field) string {
		var set strings.Builder
		for _, f := range shown {
			if f.Kind == "reserved" && f.Bits <= 64 {
				fmt.Fprintf(&set, "%q: 0, ", f.Name)
			}
		}
		return "{" + set.String() + "}"
	}
	const form = "  - send: {class: %v, method: Get, attribute: %s, %s: %s}\n"
	for _, a := range layout.Attributes {
		class := mad.Class(a.Class).String()
		if set := reserved(records[field](t, a.Name, "--class", class)); set != "{}" {
			checkScript(t, fmt.Sprintf(form, class, a.Name, "set", set))
		}
	}
	for _, of := range []struct {
		header    *layout.Struct
		class     mad.Class
		attribute string
	}{
		{layout.Header, mad.ClassComMgt, "ClassPortInfo"},
		{layout.SMPLIDHeader, mad.ClassSubnLIDRouted, "NodeInfo"},
		{layout.SMPDirectedHeader, mad.ClassSubnDirected, "NodeInfo"},
		{layout.SAHeader, mad.ClassSubnAdm, "ClassPortInfo"},
	} {
		set := reserved(records[field](t, of.header.Name))
		if set == "{}" {
			t.Fatalf("%s has no reserved rows", of.header.Name)
		}
		checkScript(t, fmt.Sprintf(form, of.class, of.attribute, "header", set))
	}
}
