package capturetest

import (
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// view says how tshark 4.0 shows a structure.
type view struct {
	of     *layout.Struct
	prefix string // of tshark's names
	// names are tshark's names of our fields, where they are not ours in small
	// letters. Of several the first that is shown counts.
	names map[string][]shownAs
	// skip are fields of ours that are not compared, with the reason: tshark
	// does not show them, or shows something else.
	skip map[string]string
	// faults are tshark's names of what it shows wrongly.
	faults []string
	// parts are what tshark may show besides, named by it.
	parts []layout.Field
}

// shownAs is a name of tshark's. One with a dot in front stands without the
// view's prefix.
type shownAs struct {
	name string
	last int // tshark shows the last bytes only, so many; 0: all
}

func as(name string) []shownAs { return []shownAs{{name: name}} }

// containers are tshark's names of parts that hold others, or unknown data.
var containers = map[string]bool{
	"infiniband.mad": true, "infiniband.mad.data": true,
	"infiniband.smplid": true, "infiniband.smplid.smpdata": true, "infiniband.smpdirected": true,
	"infiniband.rmpp": true, "infiniband.rmpp.transferreddata": true,
	"infiniband.sa.drdlid": true, "infiniband.sa.subnetadmindata": true,
}

func isContainer(name string) bool { return containers[name] || strings.Contains(name, "reserved") }

var (
	header = view{of: layout.Header, prefix: "mad."}

	smpLID = view{of: layout.SMPLIDHeader, prefix: "mad.", names: map[string][]shownAs{"M_Key": as(".smplid.mkey")}}

	smpDirected = view{of: layout.SMPDirectedHeader, prefix: "mad.",
		names: map[string][]shownAs{
			"M_Key": as(".smplid.mkey"), "DrSLID": as(".smpdirected.drslid"), "DrDLID": as(".smpdirected.drdlid"),
			"HopPointer": as(".smpdirected.hoppointer"), "HopCount": as(".smpdirected.hopcount"),
		},
		skip: map[string]string{
			"D":      "tshark takes bit 15 of one byte, which is 0",
			"Status": "tshark's includes D; Header compares both",
		},
		faults: []string{"smpdirected.d", "smpdirected.smpstatus", "mad.classspecific"},
	}

	smpPaths = view{of: layout.SMPDirectedPaths, prefix: "smpdirected."}

	rmppHeader = view{of: layout.RMPPHeader, prefix: "rmpp.",
		names: map[string][]shownAs{
			"Data1": {{name: "segmentnumber"}, {name: "data1"}},
			"Data2": {{name: "payloadlength"}, {name: "newwindowlast"}, {name: "data2"}},
		},
		skip: map[string]string{
			"RRespTime": "tshark takes 4 bits, it has 5 (IBA 13.6.2.1)",
			"RMPPFlags": "tshark takes 4 bits, they are 3",
		},
		faults: []string{"rmpp.rresptime", "rmpp.rmppflags"},
	}

	saHeader = view{of: layout.SAHeader, prefix: "sa.", names: map[string][]shownAs{"SM_Key": as("smkey")}}

	nodeInfo = view{of: layout.NodeInfo, prefix: "nodeinfo."}

	portInfo = view{of: layout.PortInfo, prefix: "portinfo.",
		names: map[string][]shownAs{"GidPrefix": as("guid")},
		skip:  newer("MulticastPKeyTrapSuppressionEnabled", "LinkSpeedExtActive2", "LinkSpeedExtSupported2", "LinkSpeedExtEnabled2", "CapabilityMask2", "LinkSpeedExtActive", "LinkSpeedExtSupported", "LinkSpeedExtEnabled"),
	}

	pathRecord = view{of: layout.PathRecord, prefix: "pathrecord.", skip: newer("ServiceID", "QoSClass")}
)

// newer are fields that were reserved in the version of the IBA that tshark
// follows.
func newer(names ...string) map[string]string {
	skip := make(map[string]string)
	for _, n := range names {
		skip[n] = "reserved to tshark"
	}
	return skip
}

const noVendor = "reserved to tshark"

var connectRequest = view{of: layout.ConnectRequest, prefix: "cm.req.",
	names: map[string][]shownAs{
		"LocalCommunicationID":    as(".cm.req"),
		"ResponderResources":      as("responderres"),
		"InitiatorDepth":          as("initdepth"),
		"RemoteCMResponseTimeout": as("remoteresptout"),
		"TransportServiceType":    as("transpsvctype"),
		"EndToEndFlowControl":     as("e2eflowctrl"),
		"StartingPSN":             as("startpsn"),
		"LocalCMResponseTimeout":  as("localresptout"),
		"RetryCount":              as("retrcount"),
		"LocalQ_Key":              as("localqkey"),
		"PartitionKey":            as("pkey"),
		"PathPacketPayloadMTU":    as("pppmtu"),
		"RDCExists":               as("rdcexist"),
		"RNRRetryCount":           as("rnrretrcount"),
		"MaxCMRetries":            as("maxcmretr"),
		"ExtendedTransportType":   as("ext_transport"),
		"PrimaryLocalPortLID":     as("prim_locallid"),
		"PrimaryRemotePortLID":    as("prim_remotelid"),
		"PrimaryLocalPortGID":     {{name: "prim_localgid"}, {"prim_localgid_ipv4", 4}},
		"PrimaryRemotePortGID":    {{name: "prim_remotegid"}, {"prim_remotegid_ipv4", 4}},
		"PrimaryTrafficClass":     as("prim_tfcclass"),
		"PrimaryHopLimit":         as("prim_hoplim"),
		"PrimarySL":               as("prim_sl"),
		"PrimarySubnetLocal":      as("prim_subnetlocal"),
		"PrimaryLocalACKTimeout":  as("prim_localacktout"),
		"AlternateLocalPortLID":   as("alt_locallid"),
		"AlternateRemotePortLID":  as("alt_remotelid"),
		"AlternateLocalPortGID":   as("alt_localgid"),
		"AlternateRemotePortGID":  as("alt_remotegid"),
		"AlternateTrafficClass":   as("alt_tfcclass"),
		"AlternateHopLimit":       as("alt_hoplim"),
		"AlternateSL":             as("alt_sl"),
		"AlternateSubnetLocal":    as("alt_subnetlocal"),
		"AlternateLocalACKTimeout": as(
			"alt_localacktout"),
		"PrivateData": {{name: "private"}, {name: "ip_cm"}},
	},
	skip: map[string]string{
		"VendorID":            noVendor,
		"SAPSupported":        noVendor,
		"PrimaryFlowLabel":    "tshark takes the mask of 32 bits for 24 and so the upper 12 bits of 20",
		"AlternateFlowLabel":  "as PrimaryFlowLabel",
		"PrimaryPacketRate":   "tshark takes it from the first byte of the word, it is in the last",
		"AlternatePacketRate": "as PrimaryPacketRate",
	},
	faults: []string{"cm.req.prim_flowlabel", "cm.req.prim_pktrate", "cm.req.alt_flowlabel", "cm.req.alt_pktrate"},
	parts: []layout.Field{
		{Name: "serviceid.prefix", Off: 64, Len: 40, Kind: layout.KindBytes},
		{Name: "serviceid.protocol", Off: 104, Len: 8},
		{Name: "serviceid.dport", Off: 112, Len: 16},
	},
}

var (
	connectReply = view{of: layout.ConnectReply, prefix: "cm.rep.",
		names: map[string][]shownAs{
			"LocalCommunicationID":  as(".cm.rep"),
			"RemoteCommunicationID": as("remotecommid"),
			"LocalQ_Key":            as("localqkey"),
			"LocalEEContextNumber":  as("localeecn"),
			"StartingPSN":           as("startpsn"),
			"ResponderResources":    as("respres"),
			"InitiatorDepth":        as("initdepth"),
			"TargetACKDelay":        as("tgtackdelay"),
			"FailoverAccepted":      as("failoveracc"),
			"EndToEndFlowControl":   as("e2eflowctrl"),
			"RNRRetryCount":         as("rnrretrcount"),
			"PrivateData":           as("private"),
		},
		skip: map[string]string{"VendorID_H": noVendor, "VendorID_M": noVendor, "VendorID_L": noVendor},
	}

	connectReject = view{of: layout.ConnectReject, prefix: "cm.rej.",
		names: ids("PrivateData", "private", "MessageREJected", "msgrej", "RejectInfoLength", "rejinfolen"),
	}

	readyToUse = view{of: layout.ReadyToUse, prefix: "cm.rtu.", names: ids("PrivateData", "private")}

	disconnectRequest = view{of: layout.DisconnectRequest, prefix: "cm.dreq.",
		names: ids("PrivateData", "private", "RemoteQPN_EECN", ".cm.req.remoteqpneecn"),
	}

	disconnectReply = view{of: layout.DisconnectReply, prefix: "cm.drsp.", names: ids("PrivateData", "private")}

	ipCMHeader = view{of: layout.IPCMHeader, prefix: "cm.req.ip_cm.",
		names: map[string][]shownAs{
			"MajorVersion": as("majv"), "MinorVersion": as("minv"), "IPVersion": as("ipv"), "SrcPort": as("sport"),
			"SrcAddr": {{name: "sip6"}, {"sip4", 4}}, "DstAddr": {{name: "dip6"}, {"dip4", 4}},
		},
		parts: []layout.Field{{Name: "private", Off: 36 * 8, Len: 56 * 8, Kind: layout.KindBytes}},
	}
)

// ids adds names to those of the communication ids; pairs are ours and tshark's.
func ids(pairs ...string) map[string][]shownAs {
	names := map[string][]shownAs{
		"LocalCommunicationID":  as("localcommid"),
		"RemoteCommunicationID": as("remotecommid"),
	}
	for i := 0; i < len(pairs); i += 2 {
		names[pairs[i]] = as(pairs[i+1])
	}
	return names
}

// placed is a view at a byte of the MAD.
type placed struct {
	*view
	at int
}

// offIPCM is where the header of the RDMA IP CM service stands in a REQ.
const offIPCM = mad.HeaderSize + 140

// attributes are the views of attributes, by class and attribute id.
var attributes = map[mad.Class]map[mad.AttributeID]*view{
	mad.ClassSubnLIDRouted: {mad.AttrNodeInfo: &nodeInfo, mad.AttrPortInfo: &portInfo},
	mad.ClassSubnAdm:       {mad.AttrPathRecord: &pathRecord},
	mad.ClassComMgt: {
		mad.AttrConnectRequest: &connectRequest, mad.AttrConnectReply: &connectReply, mad.AttrConnectReject: &connectReject,
		mad.AttrReadyToUse: &readyToUse, mad.AttrDisconnectRequest: &disconnectRequest, mad.AttrDisconnectReply: &disconnectReply,
	},
}

// viewsOf gives what a MAD holds, as far as there are views.
func viewsOf(p *Packet, b []byte) []placed {
	views := []placed{{&header, 0}}
	class, data := mad.Class(b[mad.OffClass]), mad.HeaderSize
	switch class {
	case mad.ClassSubnLIDRouted:
		views, data = append(views, placed{&smpLID, 0}), mad.OffSMPData
	case mad.ClassSubnDirected:
		views = append(views, placed{&smpDirected, 0}, placed{&smpPaths, mad.OffSMPPaths})
		class, data = mad.ClassSubnLIDRouted, mad.OffSMPData
	case mad.ClassSubnAdm:
		views, data = append(views, placed{&rmppHeader, mad.OffRMPP}, placed{&saHeader, mad.OffRMPPData}), mad.OffSAData
	}
	id := mad.AttributeID(b[mad.OffAttribute])<<8 | mad.AttributeID(b[mad.OffAttribute+1])
	if v := attributes[class][id]; v != nil {
		views = append(views, placed{v, data})
	}
	if p.Find("infiniband.cm.req.ip_cm") != nil {
		views = append(views, placed{&ipCMHeader, offIPCM})
	}
	return views
}
