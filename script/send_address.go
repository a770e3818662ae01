package script

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
)

// address reads where the MAD is to go.
func (p *preparation) address() error {
	to := p.step.To
	if to == nil {
		return nil
	}
	var value any = to.Text
	var err error
	if to.Shape != Scalar || len(to.Parts) > 0 {
		if value, err = p.value(p.ctx, to); err != nil {
			return err
		}
	}
	if s, ok := value.(string); ok && strings.EqualFold(s, "sm") {
		return nil
	}
	if p.addr, err = addressOf(value); err != nil {
		return &ValueError{to.Pos, cutText(write(value)), err}
	}
	return nil
}

// direct works out the address. With raw bytes an address that is not given changes
// none of them.
func (p *preparation) direct() (err error) {
	raw := p.mad
	p.vector.QPN = mad.QPGSI
	p.qp = mad.QPGSI
	p.to = p.addr.String()
	switch {
	case p.class.IsSMP():
		p.vector, p.qp = mad.AddressVector{}, mad.QPSMI
		err = p.directSMP()
	case p.addr.Kind == 0:
		if p.sender.sa == nil {
			return errors.New("there is no SA to send to: give an address")
		}
		if p.vector, err = p.sender.sa.Address(); err == nil {
			p.to = "SM at " + p.vector.String()
		}
	default:
		err = p.directGMP()
	}
	if err != nil {
		return p.placed(err)
	}
	if p.step.Raw != nil {
		if p.step.To == nil {
			p.mad = raw
		}
	} else if p.class == mad.ClassSubnAdm && p.sender.sa != nil {
		binary.BigEndian.PutUint64(p.mad[offSMKey:], p.sender.sa.SMKey())
	}
	return nil
}

// placed says where the address stands that an error is about.
func (p *preparation) placed(err error) error {
	if p.step.To == nil {
		return err
	}
	return &ValueError{p.step.To.Pos, p.step.To.Text, err}
}

// directSMP leaves the ways of SMPs to package smp.
func (p *preparation) directSMP() error {
	to := p.addr
	switch to.Kind {
	case 0:
		if p.step.Raw != nil && p.step.To == nil && p.class == mad.ClassSubnDirected {
			p.vector.LID, p.to = mad.PermissiveLID, "local port"
			return nil
		}
		info, err := p.sender.dev.Info()
		if err != nil {
			return err
		}
		to = mad.Addr{Kind: mad.AddrLID, LID: info.SMLID}
		p.to = "SM at LID " + info.SMLID.String()
	case mad.AddrGUID, mad.AddrGID, mad.AddrName:
		lid, err := p.lib.LID(p.ctx, to)
		if err != nil {
			return err
		}
		p.to = fmt.Sprintf("%v (LID %v)", to, lid)
		to = mad.Addr{Kind: mad.AddrLID, LID: lid}
	}
	if to.Kind == mad.AddrLID && p.class == mad.ClassSubnDirected {
		// By LID to the node, and no hop further.
		to = mad.Addr{Kind: mad.AddrCombined, LID: to.LID, Route: mad.Route{0}}
	}
	switch to.Kind {
	case mad.AddrLID:
		if p.addr.Kind == mad.AddrLID {
			p.to = "LID " + to.LID.String()
		}
	case mad.AddrRoute, mad.AddrCombined:
		p.to = "directed route " + to.String()
	}
	if p.sender.smp == nil {
		return errors.New("no SM agents can be asked from here")
	}
	class := p.class
	var err error
	if p.vector, err = p.sender.smp.Address(p.ctx, to, &p.mad); err == nil {
		p.mad[mad.OffClass] = byte(class)
	}
	return err
}

// directGMP finds the LID of a port, or on Ethernet its GID.
func (p *preparation) directGMP() error {
	info, err := p.sender.dev.Info()
	if err != nil {
		return err
	}
	if info.LinkLayer == port.LinkEthernet && p.addr.Kind == mad.AddrGID {
		p.vector, err = sa.AddressByGID(info, p.addr.GID)
		return err
	}
	if p.vector.LID, err = p.lib.LID(p.ctx, p.addr); err != nil {
		return err
	}
	if p.addr.Kind == mad.AddrLID {
		p.to = "LID " + p.vector.LID.String()
	} else {
		p.to = fmt.Sprintf("%v (LID %v)", p.addr, p.vector.LID)
	}
	return p.partition(info, uint64(mad.DefaultPKey), true)
}

// partition finds the index of a P_Key: the same one, else one of that partition.
func (p *preparation) partition(info port.Info, key uint64, byDefault bool) error {
	index := slices.Index(info.PKeys, mad.PKey(key))
	if index < 0 {
		index = slices.IndexFunc(info.PKeys, func(k mad.PKey) bool { return k.Base() == mad.PKey(key).Base() && k != 0 })
	}
	if index < 0 {
		if byDefault { // what carries the MAD may have no partitions
			return nil
		}
		return fmt.Errorf("the port is not in partition %v, its P_Keys are %v", mad.PKey(key),
			slices.DeleteFunc(slices.Clone(info.PKeys), func(k mad.PKey) bool { return k == 0 }))
	}
	p.vector.PKeyIndex = uint16(index)
	return nil
}

// global adds a global route header.
func (p *preparation) global() error {
	if p.step.GRH == nil {
		return nil
	}
	value, err := p.value(p.ctx, p.step.GRH)
	if err != nil || value == false {
		return err
	}
	g := &p.vector.GRH
	p.vector.HasGRH = true
	options, _ := value.(map[string]any)
	for _, key := range sortedKeys(options) {
		n, ok := wholeNumber(options[key])
		switch {
		case key == "gid":
			var a mad.Addr
			if a, err = mad.ParseAddr("gid:" + write(options[key])); err == nil {
				g.GID = a.GID
			}
		case !ok:
			err = errors.New("it takes a number")
		case key == "flow_label":
			g.FlowLabel = uint32(n)
		case key == "hop_limit":
			g.HopLimit = uint8(n)
		case key == "traffic_class":
			g.TrafficClass = uint8(n)
		case key == "gid_index":
			g.GIDIndex = uint8(n)
		}
		if err != nil {
			return &ValueError{p.step.GRH.Pos, key, err}
		}
	}
	if _, given := options["gid"]; given {
		return nil
	}
	if p.addr.Kind == mad.AddrGID {
		g.GID = p.addr.GID
		return nil
	}
	e, err := p.lib.port(p.ctx, mad.Addr{Kind: mad.AddrLID, LID: p.vector.LID})
	if err != nil {
		return &ValueError{p.step.GRH.Pos, "gid", err}
	}
	g.GID = e.GID
	return nil
}
