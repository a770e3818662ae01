package sma

import "github.com/ibsm/ibsm/mad"

// The virtual lanes (VLs) of every port.
const (
	vlCap = mad.VLs0to7
	vls   = 8
	// vlArbitrationCap is the length of each of the two arbitration tables: it is
	// enough for all lanes.
	vlArbitrationCap = vls
	vlWeight         = 4 // of the lanes that are served
)

// slToVL gives the lanes of the service levels: lane 0 for level 0 and so on, and
// from 0 again when there is no lane left, as OpenSM sets them. On a switch the
// modifier is the two ports; other nodes have one table a port.
func (a *Agent) slToVL(modifier uint32, data *[mad.SMPDataSize]byte) mad.Status {
	if a.End.Node.IsSwitch() {
		if modifier>>16 != 0 || a.port(modifier>>8) == nil || a.port(modifier&0xff) == nil {
			return mad.StatusBadField
		}
	}
	var table mad.SLtoVLMappingTable
	for sl := range table.SLtoVL {
		table.SLtoVL[sl] = uint8(sl % vls)
	}
	table.EncodeTo((*[mad.SLtoVLMappingTableSize]byte)(data[:]))
	clear(data[mad.SLtoVLMappingTableSize:])
	return mad.StatusOK
}

// Blocks of VLArbitrationTable: each table has a lower and an upper half.
const (
	lowLower = 1 + iota
	lowUpper
	highLower
	highUpper

	// VLArbitrationBlocks is the number of the last block; the first is 1.
	VLArbitrationBlocks = highUpper
)

// vlArbitration gives one half of a table, by OpenSM's defaults: lane 0 has the
// high priority, all others the low one. The modifier is the block and, on a
// switch, in the lower half the port. Entries over the length of a table are 0.
func (a *Agent) vlArbitration(modifier uint32, data *[mad.SMPDataSize]byte) mad.Status {
	if a.End.Node.IsSwitch() && a.port(modifier&0xffff) == nil {
		return mad.StatusBadField
	}
	var table mad.VLArbitrationTable
	switch block := modifier >> 16; block {
	case lowLower, highLower:
		for vl := range vlArbitrationCap {
			entry := &table.VLWeight[vl]
			entry.VL = uint8(vl)
			if (vl == 0) == (block == highLower) {
				entry.Weight = vlWeight
			}
		}
	case lowUpper, highUpper:
	default:
		return mad.StatusBadField
	}
	table.EncodeTo(data)
	return mad.StatusOK
}
