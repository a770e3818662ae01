package capturetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// message makes a MAD of a class and attribute with random contents.
func message(r *rand.Rand, class mad.Class, version byte, method mad.Method, id mad.AttributeID) []byte {
	b := make([]byte, mad.Size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	b[0], b[mad.OffClass], b[mad.OffClassVersion], b[mad.OffMethod] = 1, byte(class), version, byte(method)
	binary.BigEndian.PutUint16(b[mad.OffAttribute:], uint16(id))
	return b
}

const (
	inREQ    = mad.HeaderSize // where a REQ starts
	reqSvcID = inREQ + 8
	reqGID   = inREQ + 56
	reqPriv  = inREQ + 140
)

// messages are those that Compare knows, with what it compares in each.
func messages(r *rand.Rand) (mads [][]byte, compared [][]string) {
	add := func(b []byte, names ...string) { mads, compared = append(mads, b), append(compared, names) }
	cm := func(id mad.AttributeID) []byte { return message(r, mad.ClassComMgt, 2, mad.MethodSend, id) }

	add(message(r, mad.ClassSubnLIDRouted, 1, mad.MethodGetResp, mad.AttrNodeInfo), "Header", "SMPLIDHeader", "NodeInfo")
	add(message(r, mad.ClassSubnLIDRouted, 1, mad.MethodGetResp, mad.AttrPortInfo), "Header", "SMPLIDHeader", "PortInfo")
	add(message(r, mad.ClassSubnDirected, 1, mad.MethodGetResp, mad.AttrPortInfo), "Header", "SMPDirectedHeader", "SMPDirectedPaths", "PortInfo")
	for _, rmpp := range []string{"\x01\x01\x41\x00", "\x01\x02\x41\x00", "\x00\x00\x00\x00"} { // DATA, ACK, none
		b := message(r, mad.ClassSubnAdm, 2, mad.MethodGetTableResp, mad.AttrPathRecord)
		copy(b[mad.OffRMPP:], rmpp)
		add(b, "Header", "RMPPHeader", "SAHeader", "PathRecord")
	}
	for range 20 {
		add(cm(mad.AttrConnectRequest), "Header", "ConnectRequest")
		add(cm(mad.AttrConnectReject), "Header", "ConnectReject")
		add(cm(mad.AttrConnectReply), "Header", "ConnectReply")
		add(cm(mad.AttrReadyToUse), "Header", "ReadyToUse")
		add(cm(mad.AttrDisconnectRequest), "Header", "DisconnectRequest")
		add(cm(mad.AttrDisconnectReply), "Header", "DisconnectReply")
	}
	// The service ids of the RDMA IP CM service, TCP port 0x1234 (IBA A11).
	for _, version := range []byte{4, 6} {
		b := cm(mad.AttrConnectRequest)
		copy(b[reqSvcID:], "\x00\x00\x00\x00\x01\x06\x12\x34")
		b[reqPriv], b[reqPriv+1] = 0, version<<4
		add(b, "Header", "ConnectRequest", "IPCMHeader")
	}
	// GIDs of RoCE ports with IPv4 addresses (IBA A17).
	b := cm(mad.AttrConnectRequest)
	for _, at := range []int{reqGID, reqGID + 16} {
		copy(b[at:], "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff")
	}
	add(b, "Header", "ConnectRequest")
	return mads, compared
}

// carrier puts MADs into packets.
type carrier struct {
	name string
	link layers.LinkType
	wrap func(m []byte) []byte
}

// transport is BTH and DETH to QP1, the MAD, and an ICRC of zeros.
func transport(m []byte) []byte {
	return slices.Concat([]byte("\x64\x00\xff\xff\x00\x00\x00\x01\x00\x00\x00\x00"), []byte("\x80\x01\x00\x00\x00\x00\x00\x01"), m, make([]byte, 4))
}

var carriers = []carrier{
	// Record type 21 of ERF: LRH with 72 words behind it, and a VCRC.
	{"InfiniBand", 197, func(m []byte) []byte {
		return slices.Concat(
			[]byte("\x00\x00\x00\x00\x80\x43\x6d\x38\x15\x04\x01\x32\x00\x00\x01\x22"),
			[]byte("\x00\x02\x00\x02\x00\x48\x00\x01"), transport(m), make([]byte, 2))
	}},
	{"RoCEv2 over IPv4", layers.LinkTypeEthernet, func(m []byte) []byte {
		return ethernet(m, &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{192, 0, 2, 1}, DstIP: []byte{192, 0, 2, 2}}, layers.EthernetTypeIPv4)
	}},
	{"RoCEv2 over IPv6", layers.LinkTypeEthernet, func(m []byte) []byte {
		own, far := append(make([]byte, 15), 1), append(make([]byte, 15), 2)
		own[0], far[0] = 0xfd, 0xfd
		return ethernet(m, &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: own, DstIP: far}, layers.EthernetTypeIPv6)
	}},
}

func ethernet(m []byte, ip gopacket.SerializableLayer, kind layers.EthernetType) []byte {
	b := gopacket.NewSerializeBuffer()
	udp := &layers.UDP{SrcPort: 49152, DstPort: 4791}
	if err := udp.SetNetworkLayerForChecksum(ip.(gopacket.NetworkLayer)); err != nil {
		panic(err)
	}
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: kind}, ip, udp, gopacket.Payload(transport(m)))
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

// decode writes a plain pcap file, as QEMU does, and has tshark read it.
func (c *carrier) decode(t *testing.T, mads [][]byte) []Packet {
	t.Helper()
	Need(t)
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(65536, c.link); err != nil {
		t.Fatal(err)
	}
	for i, m := range mads {
		b := c.wrap(m)
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(946684800, int64(i)*1000), CaptureLength: len(b), Length: len(b)}, b); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "trace.pcap")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	packets := Decode(t, name)
	if len(packets) != len(mads) {
		t.Fatalf("%s: %d packets, want %d", c.name, len(packets), len(mads))
	}
	return packets
}

// The field table and tshark agree about messages with random contents.
func TestTsharkAgrees(t *testing.T) {
	mads, want := messages(rand.New(rand.NewPCG(1, 2)))
	for _, c := range carriers {
		t.Run(c.name, func(t *testing.T) {
			for i, p := range c.decode(t, mads) {
				if b, _ := p.MAD(); !bytes.Equal(b, mads[i]) {
					t.Errorf("packet %d: MAD %x, want %x", p.Number, b, mads[i])
				}
				compared, bad := p.Compare()
				if !slices.Equal(compared, want[i]) {
					t.Errorf("packet %d: compared %q, want %q", p.Number, compared, want[i])
				}
				for _, b := range bad {
					t.Errorf("packet %d: %s", p.Number, b)
				}
			}
		})
	}
}

// Compare finds a change of any field that it compares, and one that is missing
// or new.
func TestTsharkCompareCanFail(t *testing.T) {
	mads, _ := messages(rand.New(rand.NewPCG(3, 4)))
	changed := 0
	for _, p := range carriers[0].decode(t, mads) {
		b, at := p.MAD()
		for _, v := range viewsOf(&p, b) {
			for i := range v.of.Fields {
				f := &v.of.Fields[i]
				if f.IsReserved() || v.skip[f.Name] != "" {
					continue
				}
				shown, _ := v.find(&p, f)
				if shown == nil {
					t.Fatalf("packet %d: no %s", p.Number, f.Name)
				}
				was := *shown
				expect := func(what string) {
					t.Helper()
					if _, bad := p.Compare(); len(bad) == 0 {
						t.Errorf("packet %d: %s of %s is not noticed", p.Number, what, was.Name)
					}
					*shown = was
					changed++
				}
				if n, err := shown.Uint(); err == nil && f.IsNumber() {
					shown.Show = fmt.Sprint(n ^ 1)
				} else {
					shown.Value = slices.Clone(shown.Value)
					shown.Value[len(shown.Value)-1] ^= 1
				}
				expect("another value")
				shown.Pos += shown.Size
				expect("another place")
				shown.Name = "gone"
				expect("the lack")
			}
		}
		p.Fields = append(p.Fields, Field{Name: "infiniband.cm.new", Show: "1", Pos: at + 30, Size: 1})
		if _, bad := p.Compare(); len(bad) != 1 || !strings.Contains(bad[0], "infiniband.cm.new") {
			t.Errorf("packet %d: a new field is reported as %q", p.Number, bad)
		}
	}
	if changed < 1000 {
		t.Errorf("only %d changes were tried", changed)
	}
}

// Each field of the six messages that tshark has is accounted for.
func TestTsharkFieldsAreKnown(t *testing.T) {
	Need(t)
	out, err := exec.CommandContext(t.Context(), "tshark", "-G", "fields").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{tree + "cm.req.ip_cm": true}
	prefixes := []string{}
	for _, v := range append([]*view{&ipCMHeader}, slices.Collect(maps.Values(attributes[mad.ClassComMgt]))...) {
		prefixes = append(prefixes, tree+v.prefix)
		for i := range v.of.Fields {
			names, ok := v.names[v.of.Fields[i].Name]
			if !ok {
				names = as(strings.ToLower(v.of.Fields[i].Name))
			}
			for _, n := range names {
				if absolute, ok := strings.CutPrefix(n.name, "."); ok {
					known[tree+absolute] = true
				} else {
					known[tree+v.prefix+n.name] = true
				}
			}
		}
		for _, name := range v.faults {
			known[tree+name] = true
		}
		for _, f := range v.parts {
			known[tree+v.prefix+f.Name] = true
		}
	}
	fields := 0
	for line := range strings.Lines(string(out)) {
		// F, label, name, type...
		columns := strings.Split(line, "\t")
		if columns[0] != "F" || !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(columns[2], p) }) {
			continue
		}
		fields++
		if !known[columns[2]] && !isContainer(columns[2]) {
			t.Errorf("%s (%s) is not known", columns[2], columns[1])
		}
	}
	if fields < 90 {
		t.Errorf("%d fields, tshark 4.0 has 99", fields)
	}
}

// Compare passes on what tshark complains of.
func TestTsharkMalformed(t *testing.T) {
	cut := carrier{"cut", 197, func(m []byte) []byte {
		b := carriers[0].wrap(m)[:16+8+4]                     // ERF, LRH, a third of a BTH
		binary.BigEndian.PutUint16(b[14:], uint16(len(b)-16)) // wire length
		return b
	}}
	for _, p := range cut.decode(t, [][]byte{message(rand.New(rand.NewPCG(5, 6)), mad.ClassComMgt, 2, mad.MethodSend, mad.AttrConnectRequest)}) {
		if _, bad := p.Compare(); len(p.Problems) == 0 || !slices.Contains(bad, p.Problems[0]) {
			t.Errorf("a packet that is cut: problems %q, Compare gives %q", p.Problems, bad)
		}
	}
}

// What is left out has a name in the table.
func TestSkippedFieldsExist(t *testing.T) {
	views := []*view{&header, &smpLID, &smpDirected, &smpPaths, &rmppHeader, &saHeader, &ipCMHeader}
	for _, of := range attributes {
		views = append(views, slices.Collect(maps.Values(of))...)
	}
	for _, v := range views {
		has := func(name string) bool {
			return slices.ContainsFunc(v.of.Fields, func(f layout.Field) bool { return f.Name == name })
		}
		for name := range v.skip {
			if !has(name) {
				t.Errorf("%s has no field %s to skip", v.of.Name, name)
			}
		}
		for name := range v.names {
			if !has(name) {
				t.Errorf("%s has no field %s to find", v.of.Name, name)
			}
		}
	}
}

// PDML as tshark 4.0.17 writes it, shortened.
func TestParse(t *testing.T) {
	const text = `<?xml version="1.0" encoding="utf-8"?>
<pdml version="0" creator="wireshark/4.0.17">
<packet>
  <proto name="geninfo" pos="0" showname="General information" size="290">
    <field name="timestamp" pos="0" show="Nov 29" showname="Captured Time" value="1795988991.157250853" size="290"/>
  </proto>
  <proto name="pkt_comment" showname="Packet comments" size="0" pos="0">
    <field name="frame.comment" showname="sent" size="0" pos="0" show="sent">
      <field name="_ws.expert" showname="Expert Info (Comment/Comment): sent" size="0" pos="0"/>
    </field>
  </proto>
  <proto name="frame" showname="Frame 7" size="290" pos="0">
    <field name="frame.time_epoch" showname="Epoch Time" size="0" pos="0" show="1795988991.157250853"/>
    <field name="frame.number" showname="Frame Number: 7" size="0" pos="0" show="7"/>
  </proto>
  <proto name="infiniband" showname="InfiniBand" size="290" pos="0">
    <field name="infiniband.lrh" showname="Local Route Header" size="8" pos="0" show="f0:02" value="f002000900480007">
      <field name="infiniband.lrh.vl" showname="Virtual Lane: 0xf" size="1" pos="0" show="0x0f" value="F" unmaskedvalue="f0"/>
      <field name="infiniband.lrh.dlid" showname="Destination Local ID: 9" size="2" pos="2" show="9" value="0009"/>
    </field>
    <field name="_ws.expert" showname="Expert Info (Error/Malformed): bad" size="0" pos="0"/>
  </proto>
  <proto name="_ws.malformed" showname="[Malformed Packet: InfiniBand]" size="0" pos="0"/>
</packet>
</pdml>`
	got, err := parse(strings.NewReader(text))
	if err != nil || len(got) != 1 {
		t.Fatalf("%d packets, error %v", len(got), err)
	}
	p := &got[0]
	if p.Number != 7 || p.Time.UnixNano() != 1795988991157250853 || !slices.Equal(p.Comments, []string{"sent"}) {
		t.Errorf("number %d, time %v, comments %q", p.Number, p.Time, p.Comments)
	}
	if want := []string{"Expert Info (Error/Malformed): bad", "[Malformed Packet: InfiniBand]"}; !slices.Equal(p.Problems, want) {
		t.Errorf("problems %q, want %q", p.Problems, want)
	}
	for name, want := range map[string]uint64{"infiniband.lrh.vl": 15, "infiniband.lrh.dlid": 9} {
		if n, err := p.Find(name).Uint(); err != nil || n != want {
			t.Errorf("%s is %d, error %v, want %d", name, n, err, want)
		}
	}
	if f := p.Find("infiniband.lrh.dlid"); f.Pos != 2 || f.Size != 2 || !bytes.Equal(f.Value, []byte{0, 9}) {
		t.Errorf("DLID %+v", f)
	}
	for _, broken := range []string{text[:len(text)/2], strings.Replace(text, "1795988991.157", "x.157", 2)} {
		if _, err := parse(strings.NewReader(broken)); err == nil {
			t.Error("a broken text is taken")
		}
	}
}
