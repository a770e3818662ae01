package text

import (
	"encoding/hex"
	"fmt"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// Part is a stretch of a MAD that one structure describes, or none.
type Part struct {
	Name   string         // of the structure or attribute; "Data" if unknown
	Struct *layout.Struct // nil: no structure is known
	Data   []byte         // the bytes, exactly Struct.Size long if there is one
}

// Split cuts a MAD, or a whole reassembled message, into its headers and its
// attribute by what the header says; the parts alias b. Of a table response
// each record is a part, as far as whole records are there. What is not known
// is a part without structure. The error is a [*mad.LengthError]: b does not
// hold the headers of its class.
func Split(b []byte) ([]Part, error) {
	var h mad.Header
	if len(b) < mad.HeaderSize {
		return nil, &mad.LengthError{Struct: layout.Header.Name, Got: len(b), Want: mad.HeaderSize}
	}
	h.DecodeFrom((*[mad.HeaderSize]byte)(b))
	if h.MgmtClass.IsSMP() {
		return splitSMP(&h, b)
	}
	parts := []Part{{layout.Header.Name, layout.Header, b[:mad.HeaderSize]}}
	n := mad.ClassHeaderLen(h.MgmtClass)
	if len(b) < n {
		return nil, &mad.LengthError{Struct: "headers of class " + h.MgmtClass.String(), Got: len(b), Want: n}
	}
	at := mad.HeaderSize
	add := func(s *layout.Struct) {
		parts = append(parts, Part{s.Name, s, b[at : at+s.Size]})
		at += s.Size
	}
	if mad.HasRMPP(h.MgmtClass) {
		add(layout.RMPPHeader)
	}
	if h.MgmtClass == mad.ClassSubnAdm {
		add(layout.SAHeader)
		return append(parts, records(&h, b)...), nil
	}
	if at < n {
		parts = append(parts, Part{Name: "Data", Data: b[at:n]})
	}
	return append(parts, attribute(&h, b[n:])...), nil
}

func splitSMP(h *mad.Header, b []byte) ([]Part, error) {
	if len(b) != mad.Size {
		return nil, &mad.LengthError{Struct: "SMP", Got: len(b), Want: mad.Size}
	}
	head := layout.SMPLIDHeader
	if h.MgmtClass == mad.ClassSubnDirected {
		head = layout.SMPDirectedHeader
	}
	parts := append([]Part{{head.Name, head, b[:head.Size]}}, attribute(h, b[mad.OffSMPData:mad.OffSMPData+mad.SMPDataSize])...)
	if h.MgmtClass == mad.ClassSubnDirected {
		paths := layout.SMPDirectedPaths
		parts = append(parts, Part{paths.Name, paths, b[mad.OffSMPPaths:]})
	}
	return parts, nil
}

// attribute gives the attribute at the start of data.
func attribute(h *mad.Header, data []byte) []Part {
	a := layout.FindAttribute(uint8(h.MgmtClass), uint16(h.AttributeID))
	if a == nil || len(data) < a.Struct.Size {
		return rest(data)
	}
	return []Part{{a.Name, a.Struct, data[:a.Struct.Size]}}
}

// records gives the records of an SA MAD, which lie AttributeOffset * 8 bytes
// apart in answers of several (IBA 15.2.1.1).
func records(h *mad.Header, b []byte) []Part {
	var sa mad.SAHeader
	sa.DecodeFrom((*[mad.SAHeaderSize]byte)(b[mad.OffRMPPData:]))
	data := b[mad.OffSAData:]
	a := layout.FindAttribute(uint8(h.MgmtClass), uint16(h.AttributeID))
	if a == nil || h.Method != mad.MethodGetTableResp {
		return attribute(h, data)
	}
	var rmpp mad.RMPPHeader
	rmpp.DecodeFrom((*[mad.RMPPHeaderSize]byte)(b[mad.OffRMPP:]))
	if rmpp.RMPPFlags&mad.RMPPFlagActive != 0 && (rmpp.RMPPType != mad.RMPPTypeData || rmpp.RMPPFlags&mad.RMPPFlagFirst == 0) {
		return rest(data) // no record starts here for sure
	}
	// The payload length of the first segment counts the SA header, once for
	// each segment; of a whole message, data is the better bound.
	if n := int(rmpp.Data2) - mad.SAHeaderSize; rmpp.RMPPFlags&mad.RMPPFlagLast != 0 && n >= 0 && n < len(data) {
		data = data[:n]
	}
	step := 8 * int(sa.AttributeOffset)
	if step < a.Struct.Size {
		return attribute(h, data)
	}
	var parts []Part
	for len(data) >= a.Struct.Size {
		parts = append(parts, Part{a.Name, a.Struct, data[:a.Struct.Size]})
		data = data[min(step, len(data)):]
	}
	return append(parts, rest(data)...)
}

// rest is bytes without structure, without the zeros that fill up a MAD.
func rest(data []byte) []Part {
	for len(data) > 0 && data[len(data)-1] == 0 {
		data = data[:len(data)-1]
	}
	if len(data) == 0 {
		return nil
	}
	return []Part{{Name: "Data", Data: data}}
}

// DumpMAD gives a MAD as text: every part under a line with its name, known
// structures in the diags' form, the rest in hexadecimal. The error is Split's.
func DumpMAD(b []byte, o Options) (string, error) {
	parts, err := Split(b)
	if err != nil {
		return "", err
	}
	var dst []byte
	for _, p := range parts {
		dst = fmt.Appendf(dst, "# %s\n", p.Name)
		if p.Struct == nil {
			dst = append(dst, hex.Dump(p.Data)...)
			continue
		}
		dst = dump(dst, p.Struct, p.Data, o)
	}
	return string(dst), nil
}
