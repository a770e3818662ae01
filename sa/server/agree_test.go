package server

import (
	"bytes"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/topo"
)

// modifiers say by which attribute modifier the agent at a record's LID is asked
// for what the record holds (IBA 14.2.5).
var modifiers = map[mad.AttributeID]func(row []byte) uint32{
	mad.AttrNodeRecord:       func([]byte) uint32 { return 0 },
	mad.AttrPortInfoRecord:   func(row []byte) uint32 { return uint32(row[2]) },
	mad.AttrSwitchInfoRecord: func([]byte) uint32 { return 0 },
	mad.AttrSMInfoRecord:     func([]byte) uint32 { return 0 },
	mad.AttrGUIDInfoRecord:   func(row []byte) uint32 { return uint32(row[2]) },
	mad.AttrPKeyTableRecord: func(row []byte) uint32 {
		return uint32(row[4])<<16 | uint32(binary.BigEndian.Uint16(row[2:]))
	},
	mad.AttrSLtoVLMappingTableRecord: func(row []byte) uint32 { return uint32(row[2])<<8 | uint32(row[3]) },
	mad.AttrVLArbitrationTableRecord: func(row []byte) uint32 { return uint32(row[3])<<16 | uint32(row[2]) },
	mad.AttrLinearForwardingTableRecord: func(row []byte) uint32 {
		return uint32(binary.BigEndian.Uint16(row[2:]))
	},
}

// Every record of an attribute of subnet management holds what the node's agent
// answers to the subnet manager.
func TestRecordsAgreeWithAgents(t *testing.T) {
	for _, spec := range []string{
		"demo", "two-level:leafs=4,spines=2,hosts=3,lmc=1", "ring:switches=3,hosts=1,ports=2,speed=mixed,width=mixed,routers=1",
	} {
		t.Run(spec, func(t *testing.T) {
			sub, err := topo.Generate(spec)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { compareWithAgents(t, sub) })
		})
	}
}

func compareWithAgents(t *testing.T, sub *topo.Subnet) {
	f, err := sim.New(sub, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dev, err := f.Device(sub.SM.Node, sub.SM.Num)
	if err != nil {
		t.Fatal(err)
	}
	sm, err := dev.HoldIsSM(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sm.Close()
	agents, err := smp.NewClient(dev, smp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer agents.Close()
	s := newServer(sub, Config{})
	for attr, modifier := range modifiers {
		k := kinds[attr]
		req := trusted(request(t, mad.MethodGetTable, attr, nil))
		status, rows := split(t, req, s.answer(sub.SM.LID, req), k.layout.Size)
		if status != mad.StatusOK || len(rows) == 0 {
			t.Errorf("%s: status %v, %d records", k.layout.Name, status, len(rows))
		}
		for _, row := range rows {
			lid := mad.LID(binary.BigEndian.Uint16(row))
			for i := range k.layout.Fields {
				field := &k.layout.Fields[i]
				if field.Kind != layout.KindStruct {
					continue
				}
				of := layout.AttributeOf(uint8(mad.ClassSubnLIDRouted), field.Of)
				data, err := agents.Get(t.Context(), mad.Addr{Kind: mad.AddrLID, LID: lid}, of, modifier(row))
				if err != nil {
					t.Fatal(err)
				}
				if of.Struct == layout.NodeInfo {
					// A switch's record is that of its port 0, by which no request comes (osm_sa_node_record.c).
					p, _ := sub.PortByLID(lid)
					data[36] = p.Num
				}
				if got := row[field.Off/8:][:field.Of.Size]; !bytes.Equal(got, data[:field.Of.Size]) {
					t.Errorf("%s % x:\n% x, but the agent says\n% x", k.layout.Name, row[:8], got, data[:field.Of.Size])
				}
			}
		}
	}
}
