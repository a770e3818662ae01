package umad

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Where the kernel shows its ports.
const (
	classRDMA = "sys/class/infiniband"     // devices and their ports
	classMAD  = "sys/class/infiniband_mad" // device files
)

// attributes reads files of one folder of sysfs. What cannot be read or
// understood is zero, and a note says why.
type attributes struct {
	dir   string
	notes []string
}

func (a *attributes) note(name string, err error) {
	a.notes = append(a.notes, fmt.Sprintf("%s: %v", name, err))
}

// read reads one attribute.
func read[T any](a *attributes, name string, parse func(string) (T, error)) (v T) {
	text, err := readFile(under(a.dir, name))
	if err == nil {
		v, err = parse(text)
	}
	if err != nil {
		a.note(name, err)
	}
	return v
}

// maxAttribute is the most that an attribute of sysfs can be: a page.
const maxAttribute = 4096

// readFile reads the text of an attribute, without the newline at its end. A
// port may have more than a thousand of them, and os.ReadFile makes three times
// as many system calls.
func readFile(path string) (string, error) {
	const mode = syscall.O_RDONLY | syscall.O_CLOEXEC
	fd, err := syscall.Open(path, mode, 0)
	for err == syscall.EINTR {
		fd, err = syscall.Open(path, mode, 0)
	}
	if err != nil {
		return "", err
	}
	defer syscall.Close(fd)
	var b [maxAttribute]byte
	n, err := syscall.Read(fd, b[:])
	for err == syscall.EINTR {
		n, err = syscall.Read(fd, b[:])
	}
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(b[:n]), "\n"), nil
}

// table reads a folder with a file for each index, without the empty entries at
// its end. A table of no entries has no folder.
func table[T comparable](a *attributes, name string, parse func(string) (T, error)) (entries []T) {
	var empty T
	for _, i := range a.numbers(name) {
		v := read(a, fmt.Sprintf("%s/%d", name, i), parse)
		if v == empty {
			continue
		}
		entries = append(entries, make([]T, int(i)+1-len(entries))...)
		entries[i] = v
	}
	return entries
}

// numbers lists the numbers that are names in a folder, in order.
func (a *attributes) numbers(name string) (numbers []uint16) {
	dir, err := os.ReadDir(under(a.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.note(name, err)
	}
	for _, e := range dir {
		if i, err := strconv.ParseUint(e.Name(), 10, 16); err == nil {
			numbers = append(numbers, uint16(i))
		}
	}
	slices.Sort(numbers)
	return numbers
}

// readPort reads what sysfs tells of a port.
func (sys system) readPort(device string, num uint8) LocalPort {
	if sys.abi.illumos {
		return illumosPort(device)
	}
	p := LocalPort{Info: port.Info{Device: device, Port: num}}

	d, a := sys.deviceAttributes(device), sys.portAttributes(device, num)
	p.NodeType = read(d, "node_type", parseNamed[mad.NodeType])
	p.NodeGUID = read(d, "node_guid", parseGUID)
	p.NodeDesc = read(d, "node_desc", parseText)

	p.LinkLayer = read(a, "link_layer", parseLinkLayer)
	p.State = read(a, "state", parseNamed[mad.PortState])
	p.PhysState = read(a, "phys_state", parseNamed[mad.PortPhysState])
	p.LID = read(a, "lid", parseNumber[mad.LID])
	p.LMC = read(a, "lid_mask_count", parseNumber[uint8])
	p.SMLID = read(a, "sm_lid", parseNumber[mad.LID])
	p.SMSL = read(a, "sm_sl", parseNumber[uint8])
	p.CapMask = read(a, "cap_mask", parseNumber[mad.PortCapMask])
	if l := read(a, "rate", parseRate); p.State > mad.PortStateDown {
		p.Width, p.Rate = l.width, l.rate
	}
	p.PKeys = table(a, "pkeys", parseNumber[mad.PKey])
	p.GIDs = table(a, "gids", parseGID)
	p.GIDTypes = make([]string, len(p.GIDs))
	for i, gid := range p.GIDs {
		// The type of an empty entry cannot be read.
		if name := fmt.Sprintf("gid_attrs/types/%d", i); !gid.IsZero() && nodeExists(under(a.dir, name)) {
			p.GIDTypes[i] = read(a, name, parseText)
		}
	}
	if len(p.GIDs) > 0 {
		p.PortGUID = p.GIDs[0].GUID() // it has no attribute of its own
	}
	p.Notes = append(d.notes, a.notes...)
	p.UMAD, _ = sys.node("umad", device, num)
	p.ISSM, _ = sys.node("issm", device, num)
	return p
}

func (sys system) deviceAttributes(device string) *attributes {
	return &attributes{dir: under(sys.Root, classRDMA, device)}
}

func (sys system) portAttributes(device string, num uint8) *attributes {
	return &attributes{dir: under(sys.Root, classRDMA, device, "ports", strconv.Itoa(int(num)))}
}

// node gives the name of the device file of a kind, "umad" or "issm", that
// belongs to a port. Its number tells nothing, and devices may be renamed.
func (sys system) node(kind, device string, num uint8) (name string, ok bool) {
	if sys.abi.illumos {
		n, isUMAD := strings.CutPrefix(device, "umad")
		name = kind + n
		return name, isUMAD && num == 0 && nodeExists(under(sys.Root, sys.abi.dir, name))
	}
	dir, _ := os.ReadDir(under(sys.Root, classMAD))
	for _, e := range dir {
		if !strings.HasPrefix(e.Name(), kind) {
			continue
		}
		a := &attributes{dir: under(sys.Root, classMAD, e.Name())}
		ibdev, n := read(a, "ibdev", parseText), read(a, "port", parseNumber[uint8])
		if len(a.notes) == 0 && ibdev == device && n == num {
			return e.Name(), true
		}
	}
	return "", false
}

// find gives the name of a port's umad file, or an ErrNoPort that says what is
// missing.
func (sys system) find(device string, num uint8) (string, error) {
	if name, ok := sys.node("umad", device, num); ok {
		return name, nil
	}
	ports, err := sys.ports()
	var names []string
	isPort := false
	for _, p := range ports {
		names = append(names, portName(p.Device, p.Port))
		isPort = isPort || p.Device == device && p.Port == num
	}
	switch {
	case isPort:
		return "", refuse(ErrNoPort, nil, "%s", sys.withoutUMAD())
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", refuse(ErrNoPort, nil, "no such port, and this machine has no other: its adapter, or the driver of it, is missing")
	}
	return "", refuse(ErrNoPort, nil, "no such port; there are: %s", strings.Join(names, ", "))
}

// withoutUMAD says why a port has no umad file.
func (sys system) withoutUMAD() string {
	if !nodeExists(under(sys.Root, classMAD)) {
		return "no umad device: load the module ib_umad (modprobe ib_umad)"
	}
	return "no umad device: the port carries no MADs (iWARP and usNIC do not)"
}

// nodeExists tells whether there is a file.
func nodeExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// portNames lists the ports without reading more than their names, devices in
// alphabetical order as libibumad has them.
func (sys system) portNames() (names []port.Info, err error) {
	if sys.abi.illumos {
		return sys.illumosPorts()
	}
	dir, err := os.ReadDir(under(sys.Root, classRDMA))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range dir {
		a := &attributes{dir: under(sys.Root, classRDMA, e.Name())}
		for _, n := range a.numbers("ports") {
			if n <= 0xff {
				names = append(names, port.Info{Device: e.Name(), Port: uint8(n)})
			}
		}
	}
	return names, err
}
