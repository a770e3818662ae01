package mad

// VendorID is the vendor whose options the attribute modifier holds; its 24
// bits stand in three members.
func (p *ConnectReply) VendorID() uint32 {
	return uint32(p.VendorIDH)<<16 | uint32(p.VendorIDM)<<8 | uint32(p.VendorIDL)
}

// SetVendorID sets the three members to the low 24 bits of id.
func (p *ConnectReply) SetVendorID(id uint32) {
	p.VendorIDH, p.VendorIDM, p.VendorIDL = uint8(id>>16), uint8(id>>8), uint8(id)
}

// VendorID is the vendor whose options the attribute modifier holds; its 24
// bits stand in two members. Linux leaves the upper 8 zero.
func (p *ServiceIDResReqResp) VendorID() uint32 {
	return uint32(p.VendorIDH)<<8 | uint32(p.VendorIDL)
}

// SetVendorID sets the two members to the low 24 bits of id.
func (p *ServiceIDResReqResp) SetVendorID(id uint32) {
	p.VendorIDH, p.VendorIDL = uint16(id>>8), uint8(id)
}
