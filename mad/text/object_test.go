package text_test

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/text"
)

// A PathRecord put together by hand from IBA table 15.2.5.16.
const pathHex = "0000000000000106" + // ServiceID
	"fe80000000000000" + "0002c90300001234" + // DGID
	"fe80000000000000" + "0002c90300005678" + // SGID
	"0005" + "0003" + // DLID, SLID
	"00abcde0" + // RawTraffic 0, FlowLabel abcde -> 0 000 0000 1010 1011 1100 1101 1110, HopLimit
	"07" + "81" + // TClass, Reversible and NumbPath 1
	"ffff" + "1232" + // P_Key, QoSClass 0x123 and SL 2
	"85" + "97" + "8e" + // exactly: MTU 4096; code 23: 800 Gb/s; 2^14
	"00" + "000000000000"

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPathRecordJSON(t *testing.T) {
	var rec mad.PathRecord
	if err := rec.UnmarshalBinary(unhex(t, pathHex)); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(text.ObjectOf(&rec))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"ServiceID":"0x0000000000000106","DGID":"fe80::2:c903:0:1234","SGID":"fe80::2:c903:0:5678",` +
		`"DLID":5,"SLID":3,"RawTraffic":false,"FlowLabel":43981,"HopLimit":224,"TClass":7,"Reversible":true,"NumbPath":1,` +
		`"P_Key":65535,"QoSClass":291,"SL":2,"MTUSelector":"Exactly","MTU":"4096","RateSelector":"Exactly","Rate":"800 Gb/s",` +
		`"PacketLifeTimeSelector":"Exactly","PacketLifeTime":14,"Preference":0}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Embedded structures nest; arrays are lists; sets of bits are names; values
// without a name are numbers.
func TestObjectForms(t *testing.T) {
	rec := mad.NodeRecord{LID: 7}
	rec.NodeInfo.NodeType = 9
	rec.NodeInfo.NodeGUID = 0x0002c90300001234
	rec.NodeInfo.VendorID = 0x2c9
	rec.NodeDescription = mad.MakeNodeDescription(`<h1> & "h2"`)
	node, _ := text.ObjectOf(&rec).Get("NodeInfo")
	guid, _ := node.(text.Object).Get("NodeGUID")
	if guid != "0x0002c90300001234" {
		t.Errorf("NodeGUID is %v", guid)
	}
	kind, _ := node.(text.Object).Get("NodeType")
	if kind != uint64(9) {
		t.Errorf("unknown NodeType is %v (%T)", kind, kind)
	}

	port := mad.PortInfo{CapabilityMask: mad.CapIsSM | mad.CapIsTrapSupported | 1, LinkWidthEnabled: mad.LinkWidth1X | mad.LinkWidth4X, LinkWidthActive: 0x20}
	got := map[string]any{}
	for _, name := range []string{"CapabilityMask", "LinkWidthEnabled", "LinkWidthActive", "PortState", "LinkRoundTripLatency"} {
		got[name], _ = text.ObjectOf(&port).Get(name)
	}
	want := map[string]any{
		"CapabilityMask": "IsSM|IsTrapSupported|0x1", "LinkWidthEnabled": "1X or 4X", "LinkWidthActive": uint64(0x20),
		"PortState": "NoChange", "LinkRoundTripLatency": uint64(0),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	b, err := json.Marshal(text.ObjectOf(&mad.NodeDescription{NodeString: [64]byte{'<', '&', 0, 'x'}}))
	if err != nil || string(b) != `{"NodeString":"\u003c\u0026"}` {
		t.Errorf("description: %s, %v", b, err)
	}
	keys, _ := text.ObjectOf(&mad.PKeyTable{PKey: [32]mad.PKey{0: 0xffff}}).Get("P_Key")
	if list := keys.([]any); len(list) != 32 || list[0] != uint64(0xffff) {
		t.Errorf("P_Key: %v", list)
	}
}

// DataDetails is an object where the trap says what it holds, and bytes where not.
func TestObjectOfNotice(t *testing.T) {
	n := mad.Notice{IsGeneric: true, Type: mad.NoticeTypeUrgent, ProducerType: mad.ProducerTypeSwitch, TrapNumber: mad.TrapLocalLinkIntegrity}
	details := mad.Trap129Details{LIDADDR: 5, PORTNO: 3}
	details.EncodeTo(&n.DataDetails)
	for _, c := range []struct {
		generic bool
		want    string
	}{
		{true, `{"IsGeneric":true,"Type":"Urgent","ProducerType":"Switch","TrapNumber":"LocalLinkIntegrity","IssuerLID":0,` +
			`"NoticeToggle":false,"NoticeCount":0,"DataDetails":{"LIDADDR":5,"PORTNO":3},"IssuerGID":"::"}`},
		{false, `{"IsGeneric":false,"Type":"Urgent","ProducerType":"Switch","TrapNumber":"LocalLinkIntegrity","IssuerLID":0,` +
			`"NoticeToggle":false,"NoticeCount":0,"DataDetails":"0000000503` + strings.Repeat("00", 49) + `","IssuerGID":"::"}`},
	} {
		n.IsGeneric = c.generic
		got, err := json.Marshal(text.ObjectOf(&n))
		if err != nil || string(got) != c.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
		}
	}
}
