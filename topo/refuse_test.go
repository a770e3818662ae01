package topo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refused tells what Parse says of a text that it must not take.
func refused(t *testing.T, text string) string {
	t.Helper()
	_, err := Parse("f.yaml", []byte(text))
	if err == nil {
		t.Fatalf("accepted: %s", short(text))
	}
	return err.Error()
}

// Numbers that YAML 1.1, YAML 1.2, C and Go read differently.
func TestNumbers(t *testing.T) {
	for _, number := range []string{"010", "00", "0b11", "0o17", "1_0", "0x", "0x_1", "0X10", "+1", "-1", "1e1", "1.0", "''"} {
		const no = " is no number: they are decimal without leading zeros, or hexadecimal after 0x"
		if got := refused(t, "nodes:\n- {name: a, kind: ca, device: "+number+"}"); !strings.Contains(got, "f.yaml:2:31: ") || !strings.Contains(got, no) {
			t.Errorf("%s: %s", number, got)
		}
	}
	for number, want := range map[string]uint16{"0": 0, "10": 10, "0x0010": 16, "0xfF": 255, `"7"`: 7} {
		if got := parse(t, "nodes: [{name: a, kind: ca, device: "+number+"}]").Nodes[0].DeviceID; got != want {
			t.Errorf("%s is %d, want %d", number, got, want)
		}
	}
}

// A zero is not the same as nothing, and every number has its range.
func TestRanges(t *testing.T) {
	for value, want := range map[string]string{
		"ports: 0":              `"0" is not 1 to 254`,
		"guid: 0":               `"0" is not 0x1 to 0xffffffffffffffff`,
		"guid: 0x0":             `"0x0" is not 0x1 to 0xffffffffffffffff`,
		"system-guid: 0":        `"0" is not 0x1 to 0xffffffffffffffff`,
		"lid: 0":                `"0" is not 1 to 49151`,
		"port: {1: {lid: 0}}":   `"0" is not 1 to 49151`,
		"port: {1: {guid: 0}}":  `"0" is not 0x1 to 0xffffffffffffffff`,
		"port: {1: {lmc: 8}}":   `"8" is not 0 to 7`,
		"pkeys: [0]":            `"0" is not 1 to 65535`,
		"vendor: 0x1000000":     `"0x1000000" is not 0x0 to 0xffffff`,
		"device: 65536":         `"65536" is not 0 to 65535`,
		"guid: 0x1" + zeros(16): `"0x10000000000000000" is not 0x1 to 0xffffffffffffffff`,
	} {
		if got := refused(t, "nodes:\n- {name: a, kind: ca, "+value+"}"); !strings.HasPrefix(got, "f.yaml:2:") || !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", value, got, want)
		}
	}
	for value, want := range map[string]string{
		"prefix: 0":                  `"0" is not 0x1 to 0xfeffffffffffffff`,
		"prefix: 0xff00000000000000": `"0xff00000000000000" is not 0x1 to 0xfeffffffffffffff`,
		"sm-sl: 16":                  `"16" is not 0 to 15`,
		"timeout: 32":                `"32" is not 0 to 31`,
	} {
		if got := refused(t, "nodes: [{name: a, kind: ca}]\nsubnet: {"+value+"}"); !strings.HasPrefix(got, "f.yaml:2:") || !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", value, got, want)
		}
	}
	if s := parse(t, "nodes: [{name: a, kind: ca}]\nsubnet: {timeout: 0, sm-sl: 0}"); s.SubnetTimeOut != 0 {
		t.Errorf("timeout 0 gives %d", s.SubnetTimeOut)
	}
}

func zeros(n int) string { return strings.Repeat("0", n) }

// RFC 6890 and RFC 4291: these are no addresses of a host.
func TestAddressesOfNoPort(t *testing.T) {
	for ip, want := range map[string]string{
		"0.0.0.0": "no address", "0.1.2.3": "no address", "'::'": "no address",
		"127.0.0.1": "loopback", "'::1'": "loopback",
		"224.0.0.1": "multicast", "239.255.0.1": "multicast", "'ff02::1'": "multicast", "255.255.255.255": "broadcast",
		"'::ffff:10.0.0.1'": "write 10.0.0.1", "'fe80::1%ib0'": "zone", "010.0.0.1": "is no IP address",
		"10.0.0.0": "f.yaml:2:3: port a[1]: IP address 10.0.0.0 is that of the network 10.0.0.0/16", "10.0.255.255": "broadcast",
	} {
		if got := refused(t, "nodes:\n- {name: a, kind: ca, ip: "+ip+"}"); !strings.HasPrefix(got, "f.yaml:2:") || !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", ip, got, want)
		}
	}
	for prefix, want := range map[string]string{
		"10.0.0.5/24": "has bits set behind its first 24: the prefix is 10.0.0.0/24", "'fd00::1/64'": "the prefix is fd00::/64",
		"0.0.0.0/0": "no address", "'::/0'": "no address", "224.0.0.0/4": "multicast", "127.0.0.0/8": "loopback",
		"'::ffff:10.0.0.0/112'": "write 10.0.0.0",
	} {
		if got := refused(t, "nodes: [{name: a, kind: ca}]\nsubnet: {ipoib: "+prefix+"}"); !strings.HasPrefix(got, "f.yaml:2:17: ") || !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", prefix, got, want)
		}
	}
	// .0 is the network, .3 all ports of it: .1 and .2 are left.
	s := parse(t, "nodes: [{name: a, kind: ca, ports: 2}]\nsubnet: {ipoib: 10.0.0.0/30}")
	if ip := port(t, s, "a[2]").IP.String(); ip != "10.0.0.2" {
		t.Errorf("a[2] has %s", ip)
	}
	if got := refused(t, "nodes: [{name: a, kind: ca, ports: 3}]\nsubnet: {ipoib: 10.0.0.0/30}"); !strings.Contains(got, "a[3] gets none") {
		t.Error(got)
	}
}

// What is said twice is refused, with both places, even if it is the same.
func TestSaidTwice(t *testing.T) {
	for value, want := range map[string]string{
		"lid: 8, port: {1: {lid: 9}}":                   "f.yaml:2:47: port a[1]: its lid stands at the node already, at f.yaml:2:28",
		"port: {1: {lid: 8}}, lid: 8":                   "f.yaml:2:39: port a[1]: its lid stands at the node already, at f.yaml:2:49",
		"ip: 10.0.0.1, port: {1: {ip: 10.0.0.2}}":       "port a[1]: its ip stands at the node already, at f.yaml:2:27",
		"pkeys: [0xffff], port: {1: {pkeys: [0x8001]}}": "port a[1]: its pkeys stands at the node already, at f.yaml:2:30",
		"port: {1: {lid: 8}, 0x1: {lid: 9}}":            "f.yaml:2:43: port a[1] stands at f.yaml:2:30 already",
		"port: {1: {lid: 8}, 1: {lid: 9}}":              `f.yaml:2:43: port has key "1" twice, first in line 2`,
		"port: {1: {lid: 8}, 01: {lid: 9}}":             `f.yaml:2:43: node a has no end port "01"`,
		"ports: 2, lid: 8":                              "f.yaml:2:38: node a has 2 end ports: say its lid under port",
		"port0: enhanced":                               "f.yaml:2:30: node a is no switch: it has no port 0",
	} {
		if got := refused(t, "nodes:\n- {name: a, kind: ca, "+value+"}"); !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", value, got, want)
		}
	}
	const links = "nodes: [{name: a, kind: ca}, {name: b, kind: ca, ports: 2}]\nlinks:\n- a[1] - b[1]\n- a[0x1] - b[2]"
	if got := refused(t, links); !strings.Contains(got, "f.yaml:4:3: port a[1] has a link already, at f.yaml:3:3") {
		t.Error(got)
	}
	if got := refused(t, "nodes: [{name: a, kind: ca}]\nlinks:\n- a[01] - a[1]"); !strings.Contains(got, `f.yaml:3:3: link end "a[01]" is not of the form a[1]`) {
		t.Error(got)
	}
}

// A long name must not make a long message, nor a long computation.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	key := long[:1000] // YAML has no longer keys
	cut := `"` + strings.Repeat("x", 64) + `..."`
	const node = "nodes: [{name: a, kind: ca}]\n"
	for _, text := range []string{
		long, key + ": 1", "nodes: " + long, "nodes: [{name: " + long + ", kind: ca}]", "nodes: [{name: a, kind: " + long + "}]",
		"nodes: [{name: a, kind: ca, " + key + ": 1}]", "nodes: [{name: a, kind: ca, device: " + long + "}]",
		"nodes: [{name: a, kind: ca, desc: " + long + "}]", "nodes: [{name: a, kind: ca, port: {" + key + ": {}}}]",
		"nodes: [{name: a, kind: ca, ip: " + long + "}]", node + "links: [" + long + "]", node + "links: ['" + long + "[1] - a[1]']",
		node + "links: ['a[1] - " + long + "']", node + "subnet: {sm: " + long + "}", node + "defaults: {mtu: " + long + "}",
		node + "subnet: {ipoib: " + long + "}", node + "? " + long + "\n: 1\n? " + long + "\n: 2\n",
		"Switch 1 \"" + long + "\"", "Switch 1 \"S-0000000000000010\" # \"" + long + "\"",
		"Switch 1 \"S-0000000000000010\"\n[1] \"" + long + "\"[1]", "Switch " + long + " \"S-0000000000000010\"\nvendid=" + long,
	} {
		if got := refused(t, text); len(got) > 300 || !strings.Contains(got, cut) {
			t.Errorf("%s: %s (%d bytes)", short(text), short(got), len(got))
		}
	}
	if got := refused(t, "nodes: *"+long); len(got) > 300 {
		t.Errorf("alias: %d bytes", len(got))
	}
	for _, spec := range []string{long, "ring:" + long, "ring:" + long + "=1", "ring:switches=" + long, "demo:" + long, "ring:speed=" + long} {
		if _, err := Generate(spec); err == nil || len(err.Error()) > 600 {
			t.Errorf("Generate(%q): error of %d bytes", short(spec), len(err.Error()))
		}
	}
}

// The lines were counted by hand. yaml.v3 alone says none, or one too few, for
// most of these.
func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"nodes: {a: 1, b": "f.yaml:1: is no YAML: did not find expected ',' or '}'",
		"nodes: [a]]":     "f.yaml:1: is no YAML: did not find expected key",
		"a: b: c":         "f.yaml:1: is no YAML: mapping values are not allowed",
		"x: 1\na: b: c":   "f.yaml:2: is no YAML: mapping values are not allowed",
		"\tx: 1":          "f.yaml:1: is no YAML: found character that cannot start any token",
		"nodes:\n- {name: a kind: ca: x}\n- {name: b}": "f.yaml:2: is no YAML: did not find expected ',' or '}'",
		"nodes:\n- {name: a, kind: ca\n- {name: b}\n":  "f.yaml:2: is no YAML: did not find expected ',' or '}'",
		"nodes:\n\n\n- {name: a]":                      "f.yaml:4: is no YAML: did not find expected ',' or '}'",
		"nodes:\n- {name: a,, b}":                      "f.yaml:2: is no YAML: did not find expected node content",
		"nodes:\n- \"\\q\"":                            "f.yaml:2: is no YAML: found unknown escape character",
		"nodes:\n# *x\n- a: *x":                        `f.yaml:3: has an alias, "*x", which fabric files do not have`,
		"nodes:\n- a\x01":                              `f.yaml:2: has a control character, '\x01'`,
		"nodes:\n- a\xff":                              "f.yaml:2: has a byte that is no UTF-8 text",
		"a: 1\n---\nb: [":                              "f.yaml:3: is no YAML: did not find expected node content",
	} {
		if got := refused(t, text); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s\nwant %s", text, got, want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 64<<20+1); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		dir: "is not a regular file", os.DevNull: "is not a regular file", big: "is larger than 64 MiB",
	} {
		_, err := Load(name)
		var bad *FileError
		if !errors.As(err, &bad) || bad.File != name || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

// The generators tell what they take, and their examples can be had.
func TestGeneratorUsage(t *testing.T) {
	for kind, plan := range plans {
		_, err := Generate(kind)
		spec := kind + ":" + plan.example
		if err == nil || !strings.Contains(err.Error(), "for example "+spec) {
			t.Errorf("%s: error %v", kind, err)
		}
		generate(t, spec)
	}
	for _, number := range []string{"010", "+5", "0b11", "1_0"} {
		if _, err := Generate("ring:hosts=1,switches=" + number); err == nil || !strings.Contains(err.Error(), "is not 3 to 100") {
			t.Errorf("%s: error %v", number, err)
		}
	}
}

func TestNetDiscoverContradictions(t *testing.T) {
	const head = "Switch 2 \"S-0000000000000010\"\n[1] \"H-0000000000000020\"[1](21)\n"
	const host = "Ca 1 \"H-0000000000000020\"\n[1](21) \"S-0000000000000010\"[1]\n"
	for text, want := range map[string]string{
		"vendid=1\nvendid=2\n" + head + host:                  "f:2: vendid stands in line 1 already: this one counts",
		"sysimgguid=0x0\n" + head + host:                      "f:1: a GUID of 0 counts as none",
		strings.Replace(head, "(21)", "(0)", 1) + host:        "f:2: a GUID of 0 counts as none",
		strings.Replace(head, "(21)", "(22)", 1) + host:       "f:2: port H-0000000000000020[1] has GUID 0x0000000000000022 here and 0x0000000000000021 in line 4, which counts",
		"vendid=1\n" + head + "vendid=2\n" + host + "# end\n": "",
	} {
		s, err := Parse("f", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, w := range s.Warnings {
			got = append(got, w.String())
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{strings.Replace(head, "[1]", "[01]", 1) + host, strings.Replace(head, "2", "02", 1) + host} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), `not "0`) {
			t.Errorf("%s: error %v", text, err)
		}
	}
}
