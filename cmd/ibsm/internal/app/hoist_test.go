package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestHoist(t *testing.T) {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}},
	}
	commands := []*cli.Command{
		{Name: "sa", Subcommands: []*cli.Command{{Name: "path", Flags: []cli.Flag{
			&cli.StringFlag{Name: "mtu"}, &cli.BoolFlag{Name: "reversible"},
		}}}},
		{Name: "ports"},
	}
	tests := []struct{ in, want string }{
		{"ibsm sa path h1 h8 -o json", "ibsm -o json sa path -- h1 h8"},
		{"ibsm sa path -q h1 h8 --output=json", "ibsm -q --output=json sa path -- h1 h8"},
		{"ibsm sa -o json path h1 -q", "ibsm -o json -q sa path -- h1"},
		{"ibsm -o json sa path h1 -x", "ibsm -o json sa path -x -- h1"},
		{"ibsm sa path h1 --help", "ibsm sa path --help"},
		{"ibsm sa path h1 -- -q h8", "ibsm sa path -- h1 -q h8"},
		{"ibsm sa path h1 h8 -o", "ibsm -o"},
		{"ibsm sa path sa path", "ibsm sa path -- sa path"}, // nodes may be called so
		{"ibsm sa path - ports", "ibsm sa path -- - ports"},
		{"ibsm -o -q ports", "ibsm -o -q ports"}, // -q is the value
		{"ibsm sa path --mtu >=2048 h1 h8", "ibsm sa path --mtu >=2048 -- h1 h8"},
		{"ibsm sa path h1 --mtu=2048 -o json h8", "ibsm -o json sa path --mtu=2048 -- h1 h8"},
		{"ibsm --mtu path --reversible sa path h1", "ibsm sa path --mtu path --reversible -- h1"},
		{"ibsm sa path h1 --mtu -q", "ibsm sa path --mtu -q -- h1"},
		{"ibsm -q sa path h1 h8 --mtu", "ibsm -q sa path --mtu"},
		{"ibsm ports --mtu 2048", "ibsm ports --mtu 2048"}, // which ports does not have
		{"ibsm nonsense sa", "ibsm -- nonsense sa"},
		{"ibsm", "ibsm"},
	}
	for _, tt := range tests {
		if got := hoist(strings.Fields(tt.in), flags, commands); !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("hoist(%s) = %s, want %s", tt.in, strings.Join(got, " "), tt.want)
		}
	}
	if got := hoist(nil, flags, commands); len(got) != 0 {
		t.Errorf("hoist(nil) = %q", got)
	}
}

// A flag of one name takes a value everywhere or nowhere: hoist meets it before
// it knows whose it is. None has the name of a global one.
func TestFlagNames(t *testing.T) {
	a := New(Host{})
	for _, f := range allFlags(a.Commands) {
		for _, name := range f.Names() {
			if lookUpFlag(a.Flags, name) != nil {
				t.Errorf("--%s is a global flag and one of a verb", name)
			}
			if same := lookUpFlag(allFlags(a.Commands), name); isSwitch(same) != isSwitch(f) {
				t.Errorf("--%s takes a value in some verbs only", name)
			}
		}
	}
}
