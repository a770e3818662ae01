package server

import (
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// respTime is how long an answer may take: OpenSM's default.
const respTime = 200 * time.Millisecond

// classPortInfo says that the SA supports no optional record and no multicast
// groups, and that it is asked at its own address.
func classPortInfo() records {
	info := mad.ClassPortInfo{
		BaseVersion:   mad.BaseVersion,
		ClassVersion:  ClassVersion,
		RespTimeValue: mad.CodeOf(respTime),
		RedirectQP:    mad.QPGSI,
		RedirectQKey:  mad.QKeyGSI,
		TrapQKey:      mad.QKeyGSI,
	}
	return records{mad.ClassPortInfoSize, [][]byte{encode(&info)}}
}

// nodes gives the NodeRecords of the end ports that share a partition with the
// requester and agree with each component of the query (IBA 15.2.5.2).
func (s *Server) nodes(q *query) records {
	found := records{size: mad.NodeRecordSize}
	var want mad.NodeRecord
	want.DecodeFrom((*[mad.NodeRecordSize]byte)(q.record))
	for p := range s.sub.EndPorts() {
		switch {
		case !share(q.from, p):
		case q.has(nodeLID) && !p.Has(want.LID): // any of a port's LIDs finds it
		default:
			if row := encode(nodeRecord(p)); agrees(row, q.record, q.mask&^nodeLID) {
				found.rows = append(found.rows, row)
			}
		}
	}
	return found
}

func nodeRecord(p *topo.Port) *mad.NodeRecord {
	n := p.Node
	return &mad.NodeRecord{
		LID: p.LID,
		NodeInfo: mad.NodeInfo{
			BaseVersion:     mad.BaseVersion,
			ClassVersion:    1, // of the SM class
			NodeType:        n.Type,
			NumPorts:        uint8(n.NumPorts()),
			SystemImageGUID: n.SystemImageGUID,
			NodeGUID:        n.GUID,
			PortGUID:        p.GUID,
			PartitionCap:    topo.MaxPKeys,
			DeviceID:        n.DeviceID,
			LocalPortNum:    p.Num,
			VendorID:        n.VendorID,
		},
		NodeDescription: mad.MakeNodeDescription(n.Desc),
	}
}

// agrees compares the components of two NodeRecords.
func agrees(row, want []byte, mask uint64) bool {
	for i, bits := range nodeComponents {
		if mask>>i&1 == 0 {
			continue
		}
		for b, selected := range bits {
			if (row[b]^want[b])&selected != 0 {
				return false
			}
		}
	}
	return true
}

func encode(rec mad.Structure) []byte {
	row, _ := rec.AppendBinary(nil) // never fails
	return row
}
