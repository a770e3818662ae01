package server

import (
	"encoding/binary"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// deviations are in the order of what they do: components and selectors that do not
// count, then what is wrong in records, headers and statuses.
var deviations = []Deviation{
	// Components of queries.
	{Name: "mask-ignored", Breaks: "no component of a query counts", IBA: "15.2.1.1", ask: func(_ *Server, req message) {
		if req.method() == mad.MethodGet || req.method() == mad.MethodGetTable {
			req.setMask(0)
		}
	}},
	{Name: "mask-everything", Breaks: "every component of a query counts, whatever the mask says", IBA: "15.2.1.1", ask: func(_ *Server, req message) {
		if req.method() == mad.MethodGet || req.method() == mad.MethodGetTable {
			req.setMask(^uint64(0))
		}
	}},
	{Name: "path-sgid-ignored", Breaks: "SGID does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "SGID")},
	{Name: "path-dgid-ignored", Breaks: "DGID does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "DGID")},
	{Name: "path-slid-ignored", Breaks: "SLID does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "SLID")},
	{Name: "path-dlid-ignored", Breaks: "DLID does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "DLID")},
	{Name: "path-pkey-ignored", Breaks: "P_Key does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "P_Key")},
	{Name: "path-sl-ignored", Breaks: "SL does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "SL")},
	{Name: "path-tclass-ignored", Breaks: "TClass does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "TClass")},
	{Name: "path-flow-label-ignored", Breaks: "FlowLabel does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "FlowLabel")},
	{Name: "path-hop-limit-ignored", Breaks: "HopLimit does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "HopLimit")},
	{Name: "path-qos-class-ignored", Breaks: "QoSClass does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "QoSClass")},
	{Name: "path-raw-ignored", Breaks: "RawTraffic does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "RawTraffic")},
	{Name: "path-preference-ignored", Breaks: "Preference does not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "Preference")},
	{Name: "path-numbpath-ignored", Breaks: "NumbPath does not count: all paths are given", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "NumbPath")},
	{Name: "path-mtu-ignored", Breaks: "MTU and its selector do not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "MTU", "MTUSelector")},
	{Name: "path-rate-ignored", Breaks: "Rate and its selector do not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "Rate", "RateSelector")},
	{Name: "path-life-ignored", Breaks: "PacketLifeTime and its selector do not count", IBA: "15.2.5.16", ask: ignore(mad.AttrPathRecord, layout.PathRecord, "PacketLifeTime", "PacketLifeTimeSelector")},
	{Name: "node-lid-ignored", Breaks: "LID of a NodeRecord does not count", IBA: "15.2.5.2", ask: ignore(mad.AttrNodeRecord, layout.NodeRecord, "LID")},
	{Name: "node-type-ignored", Breaks: "NodeType does not count", IBA: "15.2.5.2", ask: ignore(mad.AttrNodeRecord, layout.NodeRecord, "NodeInfo.NodeType")},
	{Name: "node-num-ports-ignored", Breaks: "NumPorts does not count", IBA: "15.2.5.2", ask: ignore(mad.AttrNodeRecord, layout.NodeRecord, "NodeInfo.NumPorts")},
	{Name: "node-guid-ignored", Breaks: "NodeGUID does not count", IBA: "15.2.5.2", ask: ignore(mad.AttrNodeRecord, layout.NodeRecord, "NodeInfo.NodeGUID")},
	{Name: "node-port-guid-ignored", Breaks: "PortGUID does not count", IBA: "15.2.5.2", ask: ignore(mad.AttrNodeRecord, layout.NodeRecord, "NodeInfo.PortGUID")},
	{Name: "node-description-ignored", Breaks: "NodeString does not count", IBA: "15.2.5.2", ask: ignore(mad.AttrNodeRecord, layout.NodeRecord, "NodeDescription.NodeString")},
	{Name: "port-lid-ignored", Breaks: "EndportLID of a PortInfoRecord does not count", IBA: "15.2.5.3", ask: ignore(mad.AttrPortInfoRecord, layout.PortInfoRecord, "EndportLID")},
	{Name: "port-num-ignored", Breaks: "PortNum of a PortInfoRecord does not count", IBA: "15.2.5.3", ask: ignore(mad.AttrPortInfoRecord, layout.PortInfoRecord, "PortNum")},
	{Name: "port-state-ignored", Breaks: "PortState does not count", IBA: "15.2.5.3", ask: ignore(mad.AttrPortInfoRecord, layout.PortInfoRecord, "PortInfo.PortState")},
	{Name: "port-capmask-ignored", Breaks: "CapabilityMask does not count", IBA: "15.2.5.3", ask: ignore(mad.AttrPortInfoRecord, layout.PortInfoRecord, "PortInfo.CapabilityMask")},
	{Name: "port-capmask-exact", Breaks: "bit 31 of the modifier does not make CapabilityMask a match of bits", IBA: "15.2.5.3", ask: func(_ *Server, req message) {
		if req.attribute() == mad.AttrPortInfoRecord {
			clear(req[mad.OffModifier : mad.OffModifier+4])
		}
	}},
	{Name: "link-from-ignored", Breaks: "FromLID and FromPort do not count", IBA: "15.2.5.13", ask: ignore(mad.AttrLinkRecord, layout.LinkRecord, "FromLID", "FromPort")},
	{Name: "link-to-ignored", Breaks: "ToLID and ToPort do not count", IBA: "15.2.5.13", ask: ignore(mad.AttrLinkRecord, layout.LinkRecord, "ToLID", "ToPort")},
	{Name: "switch-lid-ignored", Breaks: "LID of a SwitchInfoRecord does not count", IBA: "15.2.5.5", ask: ignore(mad.AttrSwitchInfoRecord, layout.SwitchInfoRecord, "LID")},
	{Name: "lft-lid-ignored", Breaks: "LID of a LinearForwardingTableRecord does not count", IBA: "15.2.5.6", ask: ignore(mad.AttrLinearForwardingTableRecord, layout.LinearForwardingTableRecord, "LID")},
	{Name: "lft-block-ignored", Breaks: "BlockNum of a LinearForwardingTableRecord does not count", IBA: "15.2.5.6", ask: ignore(mad.AttrLinearForwardingTableRecord, layout.LinearForwardingTableRecord, "BlockNum")},
	{Name: "guid-lid-ignored", Breaks: "LID of a GUIDInfoRecord does not count", IBA: "15.2.5.18", ask: ignore(mad.AttrGUIDInfoRecord, layout.GUIDInfoRecord, "LID")},
	{Name: "pkey-lid-ignored", Breaks: "LID of a P_KeyTableRecord does not count", IBA: "15.2.5.11", ask: ignore(mad.AttrPKeyTableRecord, layout.PKeyTableRecord, "LID")},
	{Name: "pkey-block-ignored", Breaks: "BlockNum of a P_KeyTableRecord does not count", IBA: "15.2.5.11", ask: ignore(mad.AttrPKeyTableRecord, layout.PKeyTableRecord, "BlockNum")},
	{Name: "sltovl-ports-ignored", Breaks: "the ports of an SLtoVLMappingTableRecord do not count", IBA: "15.2.5.4", ask: ignore(mad.AttrSLtoVLMappingTableRecord, layout.SLtoVLMappingTableRecord, "InputPortNum", "OutputPortNum")},
	{Name: "vlarb-block-ignored", Breaks: "BlockNum of a VLArbitrationTableRecord does not count", IBA: "15.2.5.9", ask: ignore(mad.AttrVLArbitrationTableRecord, layout.VLArbitrationTableRecord, "BlockNum")},
	{Name: "sminfo-lid-ignored", Breaks: "LID of an SMInfoRecord does not count", IBA: "15.2.5.10", ask: ignore(mad.AttrSMInfoRecord, layout.SMInfoRecord, "LID")},
	{Name: "service-id-ignored", Breaks: "ServiceID does not count", IBA: "15.2.5.14", ask: ignore(mad.AttrServiceRecord, layout.ServiceRecord, "ServiceID")},
	{Name: "service-name-ignored", Breaks: "ServiceName does not count", IBA: "15.2.5.14", ask: ignore(mad.AttrServiceRecord, layout.ServiceRecord, "ServiceName")},
	{Name: "group-mgid-ignored", Breaks: "MGID of a query for members does not count", IBA: "15.2.5.17", ask: ignore(mad.AttrMCMemberRecord, layout.MCMemberRecord, "MGID")},
	{Name: "group-mlid-ignored", Breaks: "MLID of a query for members does not count", IBA: "15.2.5.17", ask: ignore(mad.AttrMCMemberRecord, layout.MCMemberRecord, "MLID")},
	{Name: "group-pkey-ignored", Breaks: "P_Key of a query for members does not count", IBA: "15.2.5.17", ask: ignore(mad.AttrMCMemberRecord, layout.MCMemberRecord, "P_Key")},

	// Selectors.
	{Name: "mtu-greater-as-exactly", Breaks: "an MTU selector for greater means exactly", IBA: "15.2.5.16", ask: selector(mtuSelector, mad.SelectorGreaterThan, mad.SelectorExactly)},
	{Name: "mtu-less-as-exactly", Breaks: "an MTU selector for less means exactly", IBA: "15.2.5.16", ask: selector(mtuSelector, mad.SelectorLessThan, mad.SelectorExactly)},
	{Name: "mtu-exactly-as-largest", Breaks: "an MTU selector for exactly means the largest there is", IBA: "15.2.5.16", ask: selector(mtuSelector, mad.SelectorExactly, mad.SelectorBest)},
	{Name: "mtu-largest-as-exactly", Breaks: "an MTU selector for the largest means exactly", IBA: "15.2.5.16", ask: selector(mtuSelector, mad.SelectorBest, mad.SelectorExactly)},
	{Name: "selector-not-needed", Breaks: "an MTU, rate or packet life time without its selector means exactly that", IBA: "15.2.5.16", ask: asExactly},
	{Name: "rate-greater-as-exactly", Breaks: "a rate selector for greater means exactly", IBA: "15.2.5.16", ask: selector(rateSelector, mad.SelectorGreaterThan, mad.SelectorExactly)},
	{Name: "rate-less-as-exactly", Breaks: "a rate selector for less means exactly", IBA: "15.2.5.16", ask: selector(rateSelector, mad.SelectorLessThan, mad.SelectorExactly)},
	{Name: "rate-exactly-as-largest", Breaks: "a rate selector for exactly means the largest there is", IBA: "15.2.5.16", ask: selector(rateSelector, mad.SelectorExactly, mad.SelectorBest)},
	{Name: "rate-largest-as-exactly", Breaks: "a rate selector for the largest means exactly", IBA: "15.2.5.16", ask: selector(rateSelector, mad.SelectorBest, mad.SelectorExactly)},
	{Name: "life-greater-as-exactly", Breaks: "a life time selector for greater means exactly", IBA: "15.2.5.16", ask: selector(lifeSelector, mad.SelectorGreaterThan, mad.SelectorExactly)},
	{Name: "life-less-as-greater", Breaks: "a life time selector for less means greater", IBA: "15.2.5.16", ask: selector(lifeSelector, mad.SelectorLessThan, mad.SelectorGreaterThan)},
	{Name: "life-exactly-as-smallest", Breaks: "a life time selector for exactly means the smallest there is", IBA: "15.2.5.16", ask: selector(lifeSelector, mad.SelectorExactly, mad.SelectorBest)},

	// Keys of trust.
	{Name: "sm-key-unchecked", Breaks: "a request with a wrong SM_Key is answered", IBA: "15.4.1.2", ask: func(s *Server, req message) {
		if smKeyOf(req) != s.cfg.SMKey {
			setSMKey(req, 0)
		}
	}},
	{Name: "everyone-trusted", Breaks: "a request without SM_Key is answered as one with it", IBA: "15.4.1.2", ask: func(s *Server, req message) {
		if smKeyOf(req) == 0 {
			setSMKey(req, s.cfg.SMKey)
		}
	}},
	{Name: "nobody-trusted", Breaks: "a request with the SM_Key is answered as one without", IBA: "15.4.1.2", ask: func(_ *Server, req message) { setSMKey(req, 0) }},
	{Name: "sm-key-shown", Breaks: "responses show the SM_Key", IBA: "15.4.1.2", answer: func(s *Server, _, resp message) message {
		setSMKey(resp, s.cfg.SMKey)
		return resp
	}},
	{Name: "portinfo-mkey-shown", Breaks: "a PortInfoRecord shows an M_Key", IBA: "15.4.1.2", answer: edit(mad.AttrPortInfoRecord, func(r *mad.PortInfoRecord) { r.PortInfo.MKey = 1 })},
	{Name: "sminfo-key-shown", Breaks: "an SMInfoRecord shows an SM_Key", IBA: "15.4.1.2", answer: edit(mad.AttrSMInfoRecord, func(r *mad.SMInfoRecord) { r.SMInfo.SMKey = 1 })},

	// Set and Delete.
	forget(Deviation{Name: "service-set-forgotten", Breaks: "a service that is registered is not there afterwards", IBA: "15.2.5.14"}, mad.MethodSet, mad.AttrServiceRecord),
	forget(Deviation{Name: "service-delete-forgotten", Breaks: "a service that is deleted stays", IBA: "15.2.5.14"}, mad.MethodDelete, mad.AttrServiceRecord),
	{Name: "service-lease", Breaks: "ServiceLease does not count: every service stays", IBA: "15.2.5.14", ask: func(_ *Server, req message) {
		if req.attribute() == mad.AttrServiceRecord && req.method() == mad.MethodSet {
			req.setMask(req.mask() &^ srLease)
		}
	}},
	forget(Deviation{Name: "join-forgotten", Breaks: "who has joined a group is no member", IBA: "15.2.5.17"}, mad.MethodSet, mad.AttrMCMemberRecord),
	forget(Deviation{Name: "leave-forgotten", Breaks: "who has left a group stays a member", IBA: "15.2.5.17"}, mad.MethodDelete, mad.AttrMCMemberRecord),
	{Name: "set-response-method", Breaks: "the response to a Set is no GetResp", IBA: "13.4.5", answer: func(_ *Server, req, resp message) message {
		if req.method() == mad.MethodSet {
			resp[mad.OffMethod] = byte(mad.MethodSet | mad.ResponseBit)
		}
		return resp
	}},
	{Name: "delete-response-method", Breaks: "the response to a Delete is a GetResp", IBA: "13.4.5", answer: func(_ *Server, req, resp message) message {
		if req.method() == mad.MethodDelete {
			resp[mad.OffMethod] = byte(mad.MethodGetResp)
		}
		return resp
	}},
	{Name: "join-qkey-ignored", Breaks: "who joins a group with another Q_Key is let in", IBA: "15.2.5.17", ask: func(_ *Server, req message) {
		if req.attribute() == mad.AttrMCMemberRecord && req.method() == mad.MethodSet {
			req.setMask(req.mask() &^ mcQKey)
		}
	}},

	// Records.
	{Name: "path-mtu-wrong", Breaks: "the MTU is not that of the path", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.MTU++ })},
	{Name: "path-rate-wrong", Breaks: "the rate is not that of the path", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.Rate++ })},
	{Name: "path-life-wrong", Breaks: "the packet life time is not that of the path", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.PacketLifeTime++ })},
	{Name: "path-selectors-wrong", Breaks: "the selectors of a path do not say exactly", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) {
		r.MTUSelector, r.RateSelector, r.PacketLifeTimeSelector = 0, 0, 0
	})},
	{Name: "path-pkey-wrong", Breaks: "the P_Key is of a partition that the ports do not share", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.PKey ^= 0x0ffe })},
	{Name: "path-pkey-limited", Breaks: "the P_Key is that of a limited member", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.PKey &= 0x7fff })},
	{Name: "path-swapped", Breaks: "source and destination of a path are swapped", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) {
		r.SGID, r.DGID, r.SLID, r.DLID = r.DGID, r.SGID, r.DLID, r.SLID
	})},
	{Name: "path-slid-wrong", Breaks: "SLID is not a LID of the source", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.SLID += 0x100 })},
	{Name: "path-dlid-wrong", Breaks: "DLID is not a LID of the destination", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.DLID += 0x100 })},
	{Name: "path-irreversible", Breaks: "a path says that it is not reversible", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.Reversible = false })},
	{Name: "path-sl-wrong", Breaks: "the SL is not that of the path", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.SL ^= 8 })},
	{Name: "path-numbpath-shown", Breaks: "NumbPath of a response is not 0", IBA: "15.2.5.16", answer: edit(mad.AttrPathRecord, func(r *mad.PathRecord) { r.NumbPath = 1 })},
	{Name: "node-lid-wrong", Breaks: "a NodeRecord has the LID of somebody else", IBA: "15.2.5.2", answer: edit(mad.AttrNodeRecord, func(r *mad.NodeRecord) { r.LID += 0x100 })},
	{Name: "node-guid-wrong", Breaks: "NodeGUID of a NodeRecord is 0", IBA: "15.2.5.2", answer: edit(mad.AttrNodeRecord, func(r *mad.NodeRecord) { r.NodeInfo.NodeGUID = 0 })},
	{Name: "node-description-empty", Breaks: "the description of a node is empty", IBA: "15.2.5.2", answer: edit(mad.AttrNodeRecord, func(r *mad.NodeRecord) { r.NodeDescription = mad.NodeDescription{} })},
	{Name: "port-state-wrong", Breaks: "ports of PortInfoRecords are in Init", IBA: "15.2.5.3", answer: edit(mad.AttrPortInfoRecord, func(r *mad.PortInfoRecord) { r.PortInfo.PortState = mad.PortStateInit })},
	{Name: "link-half", Breaks: "ToLID of a LinkRecord is 0", IBA: "15.2.5.13", answer: edit(mad.AttrLinkRecord, func(r *mad.LinkRecord) { r.ToLID = 0 })},
	{Name: "switchinfo-top-wrong", Breaks: "LinearFDBTop is above LinearFDBCap", IBA: "15.2.5.5", answer: edit(mad.AttrSwitchInfoRecord, func(r *mad.SwitchInfoRecord) {
		r.SwitchInfo.LinearFDBTop = r.SwitchInfo.LinearFDBCap + 1
	})},
	{Name: "lft-shifted-record", Breaks: "a forwarding table is one LID off", IBA: "15.2.5.6", answer: edit(mad.AttrLinearForwardingTableRecord, func(r *mad.LinearForwardingTableRecord) {
		copy(r.LinearForwardingTable.Port[1:], r.LinearForwardingTable.Port[:])
	})},
	{Name: "guid-0-wrong", Breaks: "the first GUID of a port is not its GUID", IBA: "15.2.5.18", answer: edit(mad.AttrGUIDInfoRecord, func(r *mad.GUIDInfoRecord) { r.GUIDInfo.GUID[0]++ })},
	{Name: "sminfo-state-wrong", Breaks: "the master SM says that it is not active", IBA: "15.2.5.10", answer: edit(mad.AttrSMInfoRecord, func(r *mad.SMInfoRecord) { r.SMInfo.SMState = mad.SMStateNotActive })},
	{Name: "group-qkey-wrong", Breaks: "the Q_Key of a group is 0", IBA: "15.2.5.17", answer: edit(mad.AttrMCMemberRecord, func(r *mad.MCMemberRecord) { r.QKey = 0 })},
	{Name: "group-mlid-wrong", Breaks: "the MLID of a group is unicast", IBA: "15.2.5.17", answer: edit(mad.AttrMCMemberRecord, func(r *mad.MCMemberRecord) { r.MLID &= 0xff })},
	{Name: "service-data-lost", Breaks: "the name of a service is lost", IBA: "15.2.5.14", answer: edit(mad.AttrServiceRecord, func(r *mad.ServiceRecord) { r.ServiceName = [64]byte{} })},
	{Name: "class-versions-wrong", Breaks: "ClassPortInfo says class version 1", IBA: "13.4.8.1", answer: edit(mad.AttrClassPortInfo, func(r *mad.ClassPortInfo) { r.ClassVersion = 1 })},
	{Name: "class-capabilities-wrong", Breaks: "ClassPortInfo names no capability", IBA: "15.2.5.1", answer: edit(mad.AttrClassPortInfo, func(r *mad.ClassPortInfo) { r.CapabilityMask, r.CapabilityMask2 = 0, 0 })},
	{Name: "class-redirects", Breaks: "ClassPortInfo redirects to a LID that nobody has", IBA: "13.4.8.1", answer: edit(mad.AttrClassPortInfo, func(r *mad.ClassPortInfo) { r.RedirectLID = 0xbfff })},

	// Tables.
	firstOfMany(Deviation{Name: "get-first-of-many", Breaks: "a Get that finds several records gives the first", IBA: "C15-0.1.30"}),
	{Name: "record-lost", Breaks: "the last record of a table is missing", IBA: "15.2.2", answer: func(_ *Server, _, resp message) message {
		if n := len(resp.rows()); n > 0 && resp.isTable() {
			return resp[:len(resp)-resp.distance()]
		}
		return resp
	}},
	{Name: "record-twice", Breaks: "the first record of a table comes again at its end", IBA: "15.2.2", answer: func(_ *Server, _, resp message) message {
		if rows := resp.rows(); len(rows) > 0 && resp.isTable() {
			return append(resp, rows[0]...)
		}
		return resp
	}},
	{Name: "offset-zero", Breaks: "AttributeOffset of a table is 0", IBA: "15.2.1.1", answer: always(func(m message) { clear(m[offAttributeOffset : offAttributeOffset+2]) })},
	{Name: "offset-in-bytes", Breaks: "AttributeOffset counts bytes", IBA: "15.2.1.1", answer: always(func(m message) {
		binary.BigEndian.PutUint16(m[offAttributeOffset:], uint16(m.distance()))
	})},
	{Name: "padding", Breaks: "the bytes between two records are not 0", IBA: "15.2.1.1", answer: always(func(m message) {
		if k := kinds[m.attribute()]; k != nil {
			for _, row := range m.rows() {
				for i := k.layout.Size; i < len(row); i++ {
					row[i] = 0xff
				}
			}
		}
	})},
	{Name: "empty-table-no-records", Breaks: "a table without records gets ERR_NO_RECORDS", IBA: "15.2.2", answer: func(_ *Server, _, resp message) message {
		if resp.isTable() && resp.status() == mad.StatusOK && len(resp.rows()) == 0 {
			return resp.without(mad.StatusSANoRecords)
		}
		return resp
	}},
	{Name: "empty-table-one-record", Breaks: "a table without records has one of zeros", IBA: "15.2.2", answer: func(_ *Server, req, resp message) message {
		if k := kinds[resp.attribute()]; k != nil && resp.isTable() && resp.status() == mad.StatusOK && len(resp.rows()) == 0 {
			none := records{size: k.layout.Size, count: 1}
			none.data = make([]byte, none.distance())
			return respond(req, true, &none)
		}
		return resp
	}},
	{Name: "table-as-one-mad", Breaks: "a table is cut to one MAD, without RMPP", IBA: "15.2.2", answer: func(_ *Server, _, resp message) message {
		if resp.isTable() {
			resp = append(resp, make([]byte, mad.Size)...)[:mad.Size]
			resp[offRMPPFlags] = 0
		}
		return resp
	}},
	{Name: "table-as-get", Breaks: "the response to a GetTable is a GetResp", IBA: "13.4.5", answer: always(func(m message) {
		if m.isTable() {
			m[mad.OffMethod] = byte(mad.MethodGetResp)
		}
	})},

	// Headers.
	{Name: "attribute-wrong", Breaks: "responses have another attribute id", IBA: "13.4.6", answer: always(func(m message) { m[mad.OffAttribute+1] ^= 1 })},
	{Name: "modifier-wrong", Breaks: "responses have another attribute modifier", IBA: "13.4.6", answer: always(func(m message) { m[mad.OffModifier+3] ^= 1 })},
	{Name: "mask-cleared", Breaks: "ComponentMask of a response is 0", IBA: "15.2.1.1", answer: always(func(m message) { m.setMask(0) })},
	{Name: "response-class-version", Breaks: "responses are of class version 1", IBA: "15.2.1.1", answer: always(func(m message) { m[mad.OffClassVersion] = 1 })},
	{Name: "status-bit-reserved", Breaks: "a reserved bit of the status is 1", IBA: "13.4.7", answer: always(func(m message) { m.setStatus(m.status() | 0x20) })},

	// Statuses.
	{Name: "unknown-method-ok", Breaks: "an unsupported method gets status ok", IBA: "13.4.7", answer: turn(mad.StatusBadMethod, mad.StatusOK)},
	{Name: "unknown-method-as-attribute", Breaks: "an unsupported method gets the status for an unsupported attribute", IBA: "13.4.7", answer: turn(mad.StatusBadMethod, mad.StatusBadAttribute)},
	{Name: "unknown-attribute-ok", Breaks: "an unsupported attribute gets status ok", IBA: "13.4.7", answer: turn(mad.StatusBadAttribute, mad.StatusOK)},
	{Name: "unknown-attribute-as-method", Breaks: "an unsupported attribute gets the status for an unsupported method", IBA: "13.4.7", answer: turn(mad.StatusBadAttribute, mad.StatusBadMethod)},
	{Name: "unknown-attribute-silent", Breaks: "an unsupported attribute gets no response", IBA: "13.4.7", answer: func(_ *Server, _, resp message) message {
		if resp.status() == mad.StatusBadAttribute {
			return nil
		}
		return resp
	}},
	{Name: "no-records-ok", Breaks: "a Get that finds nothing gets status ok", IBA: "15.2.2", answer: turn(mad.StatusSANoRecords, mad.StatusOK)},
	{Name: "no-records-as-invalid", Breaks: "a Get that finds nothing gets ERR_REQ_INVALID", IBA: "15.2.2", answer: turn(mad.StatusSANoRecords, mad.StatusSAReqInvalid)},
	{Name: "too-many-as-no-resources", Breaks: "a Get that finds several records gets ERR_NO_RESOURCES", IBA: "C15-0.1.30", answer: turn(mad.StatusSATooManyRecords, mad.StatusSANoResources)},
	{Name: "invalid-ok", Breaks: "an invalid request gets status ok", IBA: "15.2.1.1", answer: turn(mad.StatusSAReqInvalid, mad.StatusOK)},
	{Name: "invalid-as-no-records", Breaks: "an invalid request gets ERR_NO_RECORDS", IBA: "15.2.1.1", answer: turn(mad.StatusSAReqInvalid, mad.StatusSANoRecords)},
	{Name: "invalid-gid-as-no-records", Breaks: "an unknown GID gets ERR_NO_RECORDS", IBA: "15.2.1.1", answer: turn(mad.StatusSAInvalidGID, mad.StatusSANoRecords)},
	{Name: "insufficient-as-invalid", Breaks: "a request with too few components gets ERR_REQ_INVALID", IBA: "15.2.1.1", answer: turn(mad.StatusSAInsufficientComponents, mad.StatusSAReqInvalid)},
	{Name: "busy", Breaks: "every response says busy", IBA: "13.4.7", answer: func(_ *Server, _, resp message) message { return resp.without(mad.StatusBusy) }},
	{Name: "busy-as-no-resources", Breaks: "who is busy says ERR_NO_RESOURCES", IBA: "13.4.7", answer: turn(mad.StatusBusy, mad.StatusSANoResources)},
	{Name: "silent", Breaks: "nothing is answered", IBA: "13.4.6", answer: func(*Server, message, message) message { return nil }},
}
