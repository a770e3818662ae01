package server

import (
	"iter"
	"sync"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/sma"
	"github.com/ibsm/ibsm/topo"
)

// kind is a kind of record that is found by comparing components. The first
// component of those that the subnet has any of is the LID of an end port.
type kind struct {
	layout *layout.Struct
	// list gives the records of an end port's LID, and the attribute modifiers by
	// which the port's agent gives the SM attributes in them. nil: the subnet has
	// no such records.
	list func(s *Server, q *query, p *topo.Port) iter.Seq2[mad.Structure, uint32]
	// in is the port that the agent is asked by. nil: the end port.
	in func(s *Server, p *topo.Port) uint8
	// trusted records are only for those that know the SM_Key (IBA 15.4.1.2).
	trusted bool
	// switchOnly are components that are reserved in the records of other nodes:
	// there they are not compared.
	switchOnly uint64
	// sets are components where a modifier with matchSets asks for bits instead of
	// a value.
	sets uint64

	// The rest follows from the layout, by prepare.
	components [][]byte // bits of a record that each bit of the mask selects, nil for a reserved one
	lids       []int    // offsets of the LIDs that identify a record
	held       []held
}

// held is an SM attribute in a record.
type held struct {
	attribute mad.AttributeID
	from, to  int
}

// prepare reads the layouts of the kinds. It takes too long for programs that have
// no server.
var prepare = sync.OnceFunc(func() {
	for _, k := range kinds {
		bits := map[string][]byte{"": nil} // reserved
		for _, f := range k.layout.Leaves() {
			bits[f.Name] = bitsOf(k.layout, &f)
		}
		for _, name := range k.layout.Mask {
			b, ok := bits[name]
			if !ok { // an element of an array
				if f, err := k.layout.Find(name); err == nil {
					b = bitsOf(k.layout, &f)
				}
			}
			k.components = append(k.components, b)
		}
		for i := range k.layout.Fields {
			switch f := &k.layout.Fields[i]; f.Kind {
			case layout.KindLID:
				k.lids = append(k.lids, f.Off/8)
			case layout.KindStruct:
				if a := layout.AttributeOf(uint8(mad.ClassSubnLIDRouted), f.Of); a != nil {
					k.held = append(k.held, held{mad.AttributeID(a.ID), f.Off / 8, (f.Off + f.Bits()) / 8})
				}
			}
		}
	}
})

func bitsOf(s *layout.Struct, f *layout.Field) []byte {
	bits := make([]byte, s.Size)
	for b := f.Off; b < f.Off+f.Bits(); b++ {
		bits[b/8] |= 0x80 >> (b % 8)
	}
	return bits
}

// matchSets is a bit of PortInfoRecord's attribute modifier: CapabilityMask and
// CapabilityMask2 are to have the bits of the query, and may have others (IBA
// 15.2.5.3).
const matchSets = 1 << 31

// kinds lists the records but for PathRecord. What has no list and is not kept by
// the server itself is empty on a subnet like this: its switches have no random
// forwarding tables and no groups in their multicast ones, and nobody subscribes.
var kinds = map[mad.AttributeID]*kind{
	mad.AttrNodeRecord: {layout: layout.NodeRecord, list: nodeRecords},
	mad.AttrPortInfoRecord: {layout: layout.PortInfoRecord, list: portInfoRecords, in: (*Server).fromSM,
		sets: layout.PortInfoRecord.MaskOf("PortInfo.CapabilityMask") | layout.PortInfoRecord.MaskOf("PortInfo.CapabilityMask2")},
	mad.AttrSwitchInfoRecord: {layout: layout.SwitchInfoRecord, list: switchInfoRecords},
	mad.AttrSMInfoRecord:     {layout: layout.SMInfoRecord, list: smInfoRecords},
	mad.AttrGUIDInfoRecord:   {layout: layout.GUIDInfoRecord, list: guidInfoRecords},
	mad.AttrPKeyTableRecord: {layout: layout.PKeyTableRecord, list: pkeyRecords, trusted: true,
		switchOnly: layout.PKeyTableRecord.MaskOf("PortNum")},
	mad.AttrSLtoVLMappingTableRecord: {layout: layout.SLtoVLMappingTableRecord, list: slToVLRecords,
		switchOnly: layout.SLtoVLMappingTableRecord.MaskOf("InputPortNum") | layout.SLtoVLMappingTableRecord.MaskOf("OutputPortNum")},
	mad.AttrVLArbitrationTableRecord: {layout: layout.VLArbitrationTableRecord, list: vlArbitrationRecords,
		switchOnly: layout.VLArbitrationTableRecord.MaskOf("OutputPortNum")},
	mad.AttrLinearForwardingTableRecord:    {layout: layout.LinearForwardingTableRecord, list: linearRecords},
	mad.AttrLinkRecord:                     {layout: layout.LinkRecord, list: linkRecords},
	mad.AttrRandomForwardingTableRecord:    {layout: layout.RandomForwardingTableRecord},
	mad.AttrMulticastForwardingTableRecord: {layout: layout.MulticastForwardingTableRecord},
	mad.AttrMCMemberRecord:                 {layout: layout.MCMemberRecord}, // listed by members
	mad.AttrServiceRecord:                  {layout: layout.ServiceRecord},  // listed by servicesOf
	mad.AttrServiceAssociationRecord:       {layout: layout.ServiceAssociationRecord},
	mad.AttrInformInfoRecord:               {layout: layout.InformInfoRecord},
}

func one(rec mad.Structure, modifier uint32) iter.Seq2[mad.Structure, uint32] {
	return func(yield func(mad.Structure, uint32) bool) { yield(rec, modifier) }
}

func nodeRecords(_ *Server, _ *query, p *topo.Port) iter.Seq2[mad.Structure, uint32] {
	return one(&mad.NodeRecord{LID: p.LID}, 0)
}

// switchInfoRecords names a record for any node: that of a CA comes to nothing,
// since its agent has no SwitchInfo.
func switchInfoRecords(_ *Server, _ *query, p *topo.Port) iter.Seq2[mad.Structure, uint32] {
	return one(&mad.SwitchInfoRecord{LID: p.LID}, 0)
}

// smInfoRecords names a record for any port: there is none where no SM is.
func smInfoRecords(_ *Server, _ *query, p *topo.Port) iter.Seq2[mad.Structure, uint32] {
	return one(&mad.SMInfoRecord{LID: p.LID}, 0)
}

func guidInfoRecords(_ *Server, _ *query, p *topo.Port) iter.Seq2[mad.Structure, uint32] {
	return one(&mad.GUIDInfoRecord{LID: p.LID}, 0)
}

// ports are the ports that have the LID of an end port: all those of a switch.
func ports(end *topo.Port) []topo.Port {
	n := end.Node
	if n.IsSwitch() {
		return n.Ports
	}
	return n.Ports[end.Num : end.Num+1]
}

// seesExtended is the bit of PortInfoRecord's Options by which a requester says
// that it knows extended speeds.
const seesExtended = 0x80

func portInfoRecords(_ *Server, q *query, end *topo.Port) iter.Seq2[mad.Structure, uint32] {
	var want mad.PortInfoRecord
	want.DecodeFrom((*[mad.PortInfoRecordSize]byte)(q.record))
	options := uint8(0)
	if q.has(portInfoOptions) {
		options = want.Options
	}
	return func(yield func(mad.Structure, uint32) bool) {
		for i := range ports(end) {
			p := &ports(end)[i]
			// The bit stands in the modifier's high byte, too.
			modifier := uint32(options&seesExtended)<<24 | uint32(p.Num)
			if !yield(&mad.PortInfoRecord{EndportLID: end.LID, PortNum: p.Num, Options: options}, modifier) {
				return
			}
		}
	}
}

func pkeyRecords(_ *Server, _ *query, end *topo.Port) iter.Seq2[mad.Structure, uint32] {
	return func(yield func(mad.Structure, uint32) bool) {
		for i := range ports(end) {
			p := &ports(end)[i]
			for block := range sma.PKeyBlocks(p) {
				rec := &mad.PKeyTableRecord{LID: end.LID, BlockNum: uint16(block), PortNum: p.Num}
				if !yield(rec, uint32(p.Num)<<16|uint32(block)) {
					return
				}
			}
		}
	}
}

// slToVLRecords gives one record for a CA's port, and for a switch one for each
// way through it.
func slToVLRecords(_ *Server, _ *query, end *topo.Port) iter.Seq2[mad.Structure, uint32] {
	if !end.Node.IsSwitch() {
		return one(&mad.SLtoVLMappingTableRecord{LID: end.LID}, 0)
	}
	return func(yield func(mad.Structure, uint32) bool) {
		last := uint8(end.Node.NumPorts())
		for out := range last + 1 {
			for in := range last + 1 {
				rec := &mad.SLtoVLMappingTableRecord{LID: end.LID, InputPortNum: in, OutputPortNum: out}
				if !yield(rec, uint32(in)<<8|uint32(out)) {
					return
				}
			}
		}
	}
}

func vlArbitrationRecords(_ *Server, _ *query, end *topo.Port) iter.Seq2[mad.Structure, uint32] {
	return func(yield func(mad.Structure, uint32) bool) {
		for i := range ports(end) {
			p := &ports(end)[i]
			for block := uint8(1); block <= sma.VLArbitrationBlocks; block++ {
				rec := &mad.VLArbitrationTableRecord{LID: end.LID, OutputPortNum: p.Num, BlockNum: block}
				if !yield(rec, uint32(block)<<16|uint32(p.Num)) {
					return
				}
			}
		}
	}
}

// linearRecords gives the blocks up to the highest LID in use.
func linearRecords(s *Server, _ *query, end *topo.Port) iter.Seq2[mad.Structure, uint32] {
	return func(yield func(mad.Structure, uint32) bool) {
		for block := range sma.LFTBlocks(s.sub) {
			if !yield(&mad.LinearForwardingTableRecord{LID: end.LID, BlockNum: uint16(block)}, uint32(block)) {
				return
			}
		}
	}
}

// linkRecords gives the links from the ports of a LID. All three, their two ends
// and the requester, share a partition.
func linkRecords(s *Server, q *query, from *topo.Port) iter.Seq2[mad.Structure, uint32] {
	return func(yield func(mad.Structure, uint32) bool) {
		for i := range ports(from) {
			p := &ports(from)[i]
			if p.Peer == nil {
				continue
			}
			to := endOf(p.Peer)
			if !s.shows(q, to) || !share(from, to) {
				continue
			}
			if !yield(&mad.LinkRecord{FromLID: from.LID, FromPort: p.Num, ToPort: p.Peer.Num, ToLID: to.LID}, 0) {
				return
			}
		}
	}
}

// endOf is the end port whose LID a port goes by.
func endOf(p *topo.Port) *topo.Port {
	if p.Node.IsSwitch() {
		return &p.Node.Ports[0]
	}
	return p
}
