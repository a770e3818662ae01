package mad

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// AddrKind says which kind of address an [Addr] holds.
type AddrKind uint8

const (
	AddrNone     AddrKind = iota
	AddrLID               // 5, 0x5
	AddrGUID              // 0x0002c90300001234
	AddrGID               // fe80::2:c903:0:1234
	AddrRoute             // 0,1,3: directed route from the local port
	AddrCombined          // 5:0,1: LID-routed to LID 5, a directed route from there
	AddrName              // a node's name
)

// Addr is an address as people write it, the same in every command, in scripts
// and in programs. Which members count follows from Kind.
type Addr struct {
	Kind  AddrKind
	LID   LID // AddrLID, AddrCombined
	GUID  GUID
	GID   GID
	Route Route  // AddrRoute, AddrCombined
	Name  string // AddrName
}

// AddrError says why a text is no address.
type AddrError struct {
	Text     string
	Why      string
	Readings []string // what it might have meant, each as it can be written
}

func (e *AddrError) Error() string {
	s := fmt.Sprintf("address %q: %s", e.Text, e.Why)
	if len(e.Readings) > 0 {
		s += ": write " + strings.Join(e.Readings, " or ")
	}
	return s
}

// maxName is the length of a NodeDescription (IBA 14.2.5.2).
const maxName = 64

// The prefixes that settle doubt.
var addrPrefixes = map[string]func(text, rest string) (Addr, error){
	"lid":  parseLID,
	"guid": parseGUID,
	"gid":  parseGID,
	"dr":   parseDirected,
	"name": parseName,
}

// ParseAddr reads an address:
//
//	5, 0x5                 LID, 1 to 0xbfff
//	0x0002c90300001234     GUID: 0x and a number above 0xffff, or 16 digits
//	fe80::2:c903:0:1234    GID
//	0,1,3                  directed route; its first element is 0, the local port
//	5:0,1                  combined: LID, then a directed route from there
//	"node name", h1        name: anything else
//
// The prefixes lid:, guid:, gid:, dr: and name: say which one is meant; dr:0 is
// the local port itself. A text with several readings is an *AddrError that
// lists them, and so is a number that no node can have.
func ParseAddr(text string) (Addr, error) {
	s := strings.TrimSpace(text)
	if s == "" {
		return Addr{}, &AddrError{Text: text, Why: "is empty"}
	}
	if prefix, rest, ok := strings.Cut(s, ":"); ok {
		if parse := addrPrefixes[strings.ToLower(prefix)]; parse != nil {
			return parse(text, strings.TrimSpace(rest))
		}
	}
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return parseName(text, s)
	}
	if isNumber(s) {
		return parseNumber(text, s)
	}
	if isRouteText(s) {
		return parseRoute(text, s)
	}
	if lid, route, ok := strings.Cut(s, ":"); ok && isNumber(lid) && (isRouteText(route) || isNumber(route)) {
		return parseCombined(text, lid, route)
	}
	if ip, err := netip.ParseAddr(s); err == nil {
		if ip.Is4() {
			return Addr{}, &AddrError{Text: text, Why: "is an IP address, not a LID, GUID, GID, directed route or node name",
				Readings: []string{"name:" + s}}
		}
		return parseGID(text, s)
	}
	if len(s) == 16 && isHexDigits(s) {
		return Addr{}, &AddrError{Text: text, Why: "has two readings", Readings: []string{"guid:0x" + s, "name:" + s}}
	}
	return parseName(text, s)
}

// MustParseAddr is ParseAddr for addresses known to be right; it panics on
// others.
func MustParseAddr(text string) Addr {
	a, err := ParseAddr(text)
	if err != nil {
		panic(err)
	}
	return a
}

// String writes the address so that ParseAddr reads it back.
func (a Addr) String() string {
	switch a.Kind {
	case AddrLID:
		return a.LID.String()
	case AddrGUID:
		return a.GUID.String()
	case AddrGID:
		return a.GID.String()
	case AddrRoute:
		if a.Route.Hops() == 0 {
			return "dr:0"
		}
		return a.Route.String()
	case AddrCombined:
		return a.LID.String() + ":" + a.Route.String()
	case AddrName:
		if b, err := ParseAddr(a.Name); err != nil || b.Kind != AddrName || b.Name != a.Name {
			return `name:"` + a.Name + `"`
		}
		return a.Name
	}
	return "(no address)"
}

func isDigits(s string) bool    { return s != "" && strings.Trim(s, "0123456789") == "" }
func isHexDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == "" }

func hexDigits(s string) (digits string, ok bool) {
	if len(s) > 2 && (s[:2] == "0x" || s[:2] == "0X") && isHexDigits(s[2:]) {
		return s[2:], true
	}
	return "", false
}

func isNumber(s string) bool {
	_, hex := hexDigits(s)
	return hex || isDigits(s)
}

// isRouteText: numbers with commas between them.
func isRouteText(s string) bool {
	return strings.Contains(s, ",") && strings.Trim(s, "0123456789, ") == "" && strings.Trim(s, ", ") != ""
}

// parseNumber tells a LID from a GUID in a number without prefix.
func parseNumber(text, s string) (Addr, error) {
	digits, hex := hexDigits(s)
	if !hex {
		if s == "0" {
			return Addr{}, &AddrError{Text: text, Why: "LID 0 belongs to no port; the local port is a directed route of no hops", Readings: []string{"dr:0"}}
		}
		if s[0] == '0' {
			dec := strings.TrimLeft(s, "0")
			return Addr{}, &AddrError{Text: text, Why: "a decimal number with a leading zero may be meant as octal",
				Readings: []string{"lid:" + dec, "name:" + s}}
		}
		if n, err := strconv.ParseUint(s, 10, 64); err == nil && n > 0xffff {
			return Addr{}, &AddrError{Text: text, Why: "is too large for a LID (1 to 0xbfff)",
				Readings: []string{fmt.Sprintf("guid:0x%016x", n), "name:" + s}}
		}
		return parseLID(text, s)
	}
	switch n, err := strconv.ParseUint(digits, 16, 64); {
	case err != nil:
		return Addr{}, &AddrError{Text: text, Why: "is wider than the 64 bits of a GUID"}
	case n > 0xffff || len(digits) == 16:
		return parseGUID(text, s)
	case len(digits) <= 4:
		return parseLID(text, s)
	default:
		return Addr{}, &AddrError{Text: text, Why: "has two readings",
			Readings: []string{fmt.Sprintf("lid:%#x", n), fmt.Sprintf("guid:0x%016x", n)}}
	}
}

// ParseLID reads a unicast LID, decimal or 0x hexadecimal. Its errors say
// what the number is instead.
func ParseLID(s string) (LID, error) {
	a, err := parseLID(s, s)
	return a.LID, err
}

func parseLID(text, s string) (Addr, error) {
	digits, base := s, 10
	if h, ok := hexDigits(s); ok {
		digits, base = h, 16
	}
	if !isNumber(s) {
		return Addr{}, &AddrError{Text: text, Why: "a LID is a number from 1 to 0xbfff"}
	}
	n, err := strconv.ParseUint(digits, base, 64)
	switch {
	case err != nil || n > 0xffff:
		return Addr{}, &AddrError{Text: text, Why: "is too large for a LID (1 to 0xbfff)"}
	case n == 0:
		return Addr{}, &AddrError{Text: text, Why: "LID 0 is reserved and belongs to no port (1 to 0xbfff)"}
	case LID(n) == PermissiveLID:
		return Addr{}, &AddrError{Text: text, Why: "LID 0xffff is the permissive LID; the local port is a directed route of no hops", Readings: []string{"dr:0"}}
	case LID(n) >= FirstMulticast:
		return Addr{}, &AddrError{Text: text, Why: fmt.Sprintf("LID %#x is a multicast LID; a port has one from 1 to 0xbfff", n)}
	}
	return Addr{Kind: AddrLID, LID: LID(n)}, nil
}

// ParseGUID reads a GUID: hexadecimal, with or without 0x, or four groups of
// four digits with colons between them, as in sysfs.
func ParseGUID(s string) (GUID, error) {
	a, err := parseGUID(s, s)
	return a.GUID, err
}

func parseGUID(text, s string) (Addr, error) {
	digits, ok := hexDigits(s)
	if !ok {
		digits = s
		if g := strings.Split(s, ":"); len(g) == 4 && len(s) == 19 {
			digits = strings.Join(g, "")
		}
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	if !isHexDigits(digits) || err != nil {
		return Addr{}, &AddrError{Text: text, Why: "a GUID is 0x and up to 16 hexadecimal digits"}
	}
	if n == 0 {
		return Addr{}, &AddrError{Text: text, Why: "GUID 0 belongs to no port"}
	}
	return Addr{Kind: AddrGUID, GUID: GUID(n)}, nil
}

// ParseGID reads a GID: an IPv6 address without a zone.
func ParseGID(s string) (GID, error) {
	a, err := parseGID(s, s)
	return a.GID, err
}

func parseGID(text, s string) (Addr, error) {
	ip, err := netip.ParseAddr(s)
	if err != nil || !ip.Is6() || ip.Zone() != "" {
		return Addr{}, &AddrError{Text: text, Why: "a GID is written as an IPv6 address without a zone, such as fe80::2:c903:0:1234"}
	}
	if ip.IsUnspecified() {
		return Addr{}, &AddrError{Text: text, Why: "GID :: belongs to no port"}
	}
	return Addr{Kind: AddrGID, GID: ip.As16()}, nil
}

// ParsePKey reads a P_Key: a number of 16 bits, decimal or 0x hexadecimal. Key
// 0 of either membership is invalid (IBA 10.9.1).
func ParsePKey(s string) (PKey, error) {
	digits, base := s, 10
	if h, ok := hexDigits(s); ok {
		digits, base = h, 16
	}
	n, err := strconv.ParseUint(digits, base, 16)
	if err != nil || !isNumber(s) {
		return 0, &AddrError{Text: s, Why: "a P_Key is a number of 16 bits, such as 0xffff"}
	}
	if PKey(n).Base() == 0 {
		return 0, &AddrError{Text: s, Why: "is not a valid P_Key: its lower 15 bits are 0"}
	}
	return PKey(n), nil
}

// ParseRoute reads a directed route such as 0,1,3.
func ParseRoute(s string) (Route, error) {
	a, err := parseRoute(s, s)
	return a.Route, err
}

func parseRoute(text, s string) (Addr, error) {
	parts := strings.Split(s, ",")
	route := make(Route, len(parts))
	for i, p := range parts {
		p = strings.TrimSpace(p)
		n, err := strconv.ParseUint(p, 10, 8)
		switch {
		case err != nil || !isDigits(p) || n > 254: // IBA 14.2.5.4: ports are numbered 1 to 254
			return Addr{}, &AddrError{Text: text, Why: fmt.Sprintf("element %d (%q) of the directed route is no port number from 1 to 254", i, p)}
		case i == 0 && n != 0:
			fix := AddrError{Text: text, Why: "a directed route starts with 0, the local port"}
			if len(parts) < MaxDirectedHops {
				fix.Readings = []string{"0," + strings.ReplaceAll(s, " ", "")}
			}
			return Addr{}, &fix
		case i > 0 && n == 0:
			return Addr{}, &AddrError{Text: text, Why: fmt.Sprintf("element %d of the directed route is 0; only the first one is", i)}
		}
		route[i] = uint8(n)
	}
	if route.Hops() > MaxDirectedHops {
		return Addr{}, &AddrError{Text: text, Why: fmt.Sprintf("a directed route of %d hops; an SMP has room for %d", route.Hops(), MaxDirectedHops)}
	}
	return Addr{Kind: AddrRoute, Route: route}, nil
}

// parseDirected reads what dr: stands before: a route from the local port, or
// from a LID.
func parseDirected(text, s string) (Addr, error) {
	if lid, route, ok := strings.Cut(s, ":"); ok {
		return parseCombined(text, lid, route)
	}
	return parseRoute(text, s)
}

func parseCombined(text, lid, route string) (Addr, error) {
	l, err := parseLID(text, lid)
	if err != nil {
		return Addr{}, err
	}
	r, err := parseRoute(text, route)
	if err != nil {
		return Addr{}, err
	}
	return Addr{Kind: AddrCombined, LID: l.LID, Route: r.Route}, nil
}

func parseName(text, s string) (Addr, error) {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	switch {
	case s == "":
		return Addr{}, &AddrError{Text: text, Why: "the name is empty"}
	case len(s) > maxName:
		return Addr{}, &AddrError{Text: text, Why: fmt.Sprintf("a node's name has at most %d bytes, this one has %d", maxName, len(s))}
	case strings.ContainsRune(s, 0):
		return Addr{}, &AddrError{Text: text, Why: "a node's name has no NUL byte"}
	}
	return Addr{Kind: AddrName, Name: s}, nil
}
