package umad

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// The parsers of sysfs attributes (drivers/infiniband/core/sysfs.c). They get
// the text without the newline at its end.

// parseNumber reads what the kernel prints with %u, %d or 0x%x. Decimal numbers
// with a leading 0 do not occur.
func parseNumber[T ~uint8 | ~uint16 | ~uint32](s string) (T, error) {
	v, err := strconv.ParseUint(s, 0, 32)
	if err == nil && uint64(T(v)) != v {
		err = fmt.Errorf("%s is too large", s)
	}
	if err != nil {
		return 0, err
	}
	return T(v), nil
}

// parseNamed reads a number with its name: "4: ACTIVE".
func parseNamed[T ~uint8](s string) (T, error) {
	n, _, ok := strings.Cut(s, ":")
	if !ok {
		return 0, fmt.Errorf("%q is not of the form NUMBER: NAME", s)
	}
	return parseNumber[T](n)
}

// parseLinkLayer reads "InfiniBand" or "Ethernet".
func parseLinkLayer(s string) (port.LinkLayer, error) {
	switch s {
	case "InfiniBand":
		return port.LinkInfiniBand, nil
	case "Ethernet":
		return port.LinkEthernet, nil
	}
	return 0, fmt.Errorf("unknown link layer %q", s)
}

// parseGUID reads a GUID of four groups: "0002:c903:00ab:cdef".
func parseGUID(s string) (g mad.GUID, err error) {
	b, err := parseGroups(s, 4)
	if err != nil {
		return 0, err
	}
	for _, x := range b {
		g = g<<8 | mad.GUID(x)
	}
	return g, nil
}

// parseGID reads a GID of eight groups, none left out.
func parseGID(s string) (mad.GID, error) {
	b, err := parseGroups(s, 8)
	if err != nil {
		return mad.GID{}, err
	}
	return mad.GID(b), nil
}

// parseGroups reads n groups of four hexadecimal digits.
func parseGroups(s string, n int) ([]byte, error) {
	b := make([]byte, 0, 2*n)
	for group := range strings.SplitSeq(s, ":") {
		x, err := hex.DecodeString(group)
		if err != nil || len(x) != 2 {
			b = nil
			break
		}
		b = append(b, x...)
	}
	if len(b) != 2*n {
		return nil, fmt.Errorf("%q is not %d groups of 4 hexadecimal digits", s, n)
	}
	return b, nil
}

// link is what the attribute rate tells.
type link struct {
	width mad.LinkWidth
	rate  mad.Rate
}

var widths = map[string]mad.LinkWidth{
	"1X": mad.LinkWidth1X, "2X": mad.LinkWidth2X, "4X": mad.LinkWidth4X, "8X": mad.LinkWidth8X, "12X": mad.LinkWidth12X,
}

// The kernel's names of speeds. Old ones print none for SDR, and take what they
// do not know for SDR.
var speeds = map[string]mad.Speed{
	"": mad.SpeedSDR, "SDR": mad.SpeedSDR, "DDR": mad.SpeedDDR, "QDR": mad.SpeedQDR, "FDR10": mad.SpeedFDR10,
	"FDR": mad.SpeedFDR, "EDR": mad.SpeedEDR, "HDR": mad.SpeedHDR, "NDR": mad.SpeedNDR, "XDR": mad.SpeedXDR,
}

// parseRate reads "100 Gb/sec (4X EDR)". The rate is taken from width and speed:
// the number before is rounded.
func parseRate(s string) (link, error) {
	_, lanes, ok := strings.Cut(s, " Gb/sec (")
	lanes, closed := strings.CutSuffix(lanes, ")")
	w, speed, _ := strings.Cut(lanes, " ")
	width, known := widths[w]
	v, named := speeds[speed]
	if !ok || !closed || !known || !named {
		return link{}, fmt.Errorf("%q is not of the form 100 Gb/sec (4X EDR)", s)
	}
	return link{width, mad.RateOf(width, v)}, nil
}

// parseText takes what there is.
func parseText(s string) (string, error) { return s, nil }
