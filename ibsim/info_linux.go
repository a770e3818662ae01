package ibsim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
)

// portNum is that of the port that a client has: ibsim leaves no choice.
func (l *link) portNum() uint8 {
	if l.nodeInfo.NodeType == mad.NodeTypeSwitch {
		return 0
	}
	return 1
}

// portGUID follows from the node's (sim_net.c, init_ports). ibsim's own reply is no
// help: the PortGUID in its NodeInfo is the node's.
func (l *link) portGUID() mad.GUID { return l.nodeInfo.NodeGUID + mad.GUID(l.portNum()) }

// Info implements softmad.Link.
func (l *link) Info() (port.Info, error) {
	var data [controlData]byte // asks for the own port
	if err := l.ctl.ask(opPortInfo, &data); err != nil {
		return port.Info{}, err
	}
	var p mad.PortInfo
	p.DecodeFrom(&data)
	var keys [controlData]byte
	if err := l.ctl.ask(opPKeys, &keys); err != nil {
		return port.Info{}, err
	}
	l.mu.Lock()
	l.own = own{p.LID, p.LMC}
	l.mu.Unlock()
	prefix := p.GidPrefix
	if prefix == 0 { // no SM has set it
		prefix = mad.DefaultGIDPrefix
	}
	info := port.Info{
		Device: l.ctl.node, Port: l.portNum(), LinkLayer: port.LinkInfiniBand,
		NodeType: l.nodeInfo.NodeType, NodeGUID: l.nodeInfo.NodeGUID, PortGUID: l.portGUID(), NodeDesc: l.nodeDesc,
		State: p.PortState, PhysState: p.PortPhysicalState,
		LID: p.LID, LMC: p.LMC, SMLID: p.MasterSMLID, SMSL: p.MasterSMSL, CapMask: p.CapabilityMask,
		GIDs: []mad.GID{mad.MakeGID(prefix, l.portGUID())},
	}
	for i := 0; i < len(keys); i += 2 {
		info.PKeys = append(info.PKeys, mad.PKey(binary.BigEndian.Uint16(keys[i:])))
	}
	if p.PortPhysicalState == mad.PortPhysStateLinkUp {
		info.Width, info.Rate = p.LinkWidthActive, p.Rate()
	}
	return info, nil
}

// SetIsSM sets bit 1 of the port's CapabilityMask (IBA 14.2.5.6), and has requests
// delivered while it is set.
func (l *link) SetIsSM(on bool) error {
	var data [controlData]byte
	if on {
		binary.NativeEndian.PutUint32(data[:], 1)
	}
	if err := l.ctl.ask(opSetIsSM, &data); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isSM = on
	return nil
}

// askNodeDescription reads what no control message tells, by an SMP to the own
// node, before others use the data socket. It is "" if ibsim drops every one, as
// it does where it was told to inject errors.
func (l *link) askNodeDescription() (string, error) {
	const tries = 8
	w := softmad.Wire{Addr: mad.AddressVector{LID: mad.PermissiveLID}}
	h := mad.SMPDirectedHeader{
		BaseVersion: mad.BaseVersion, MgmtClass: mad.ClassSubnDirected, ClassVersion: 1, Method: mad.MethodGet,
		TransactionID: uint64(l.slot) << 48, AttributeID: mad.AttrNodeDescription,
		DrSLID: mad.PermissiveLID, DrDLID: mad.PermissiveLID,
	}
	h.EncodeTo((*[mad.OffSMPData]byte)(w.MAD[:]))
	if err := l.data.SetDeadline(time.Now().Add(l.ctl.timeout)); err != nil {
		return "", err
	}
	defer l.data.SetDeadline(time.Time{})
	for range tries {
		answer, err := l.exchange(&w)
		if err != nil {
			return "", l.exchangeFailed(err)
		}
		if !answer.Undelivered {
			var d mad.NodeDescription
			d.DecodeFrom((*[mad.NodeDescriptionSize]byte)(answer.MAD[mad.OffSMPData:]))
			return d.String(), nil
		}
	}
	return "", nil
}

// exchange sends a request and waits for what comes back with its transaction id.
func (l *link) exchange(w *softmad.Wire) (answer softmad.Wire, err error) {
	var p [packetSize]byte
	if err := encodePacket(&p, w, own{}); err != nil {
		return answer, err
	}
	if _, err := l.data.Write(p[:]); err != nil {
		return answer, err
	}
	for {
		var b [packetSize + 1]byte
		n, err := l.data.Read(b[:])
		if err != nil {
			return answer, err
		}
		if decodePacket(&answer, b[:n], own{}) == nil && tid(&answer) == tid(w) {
			return answer, nil
		}
	}
}

func tid(w *softmad.Wire) uint64 { return binary.BigEndian.Uint64(w.MAD[mad.OffTID:]) }

func (l *link) exchangeFailed(err error) error {
	const op = "read NodeDescription"
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{Op: op, Socket: l.ctl.socket, Node: l.ctl.node, Detail: fmt.Sprintf("within %v", l.ctl.timeout), Err: ErrNoReply}
	case isGone(err):
		err = port.ErrGone
	}
	return l.fail(op, err)
}
