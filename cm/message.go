package cm

import "github.com/ibsm/ibsm/mad"

// Message is a kind of CM message.
type Message uint8

// Messages in the order of their attribute ids, from 0x0010 on.
const (
	REQ Message = iota
	MRA
	REJ
	REP
	RTU
	DREQ
	DREP
	SIDRREQ
	SIDRREP
	LAP
	APR
	Messages = iota // their number
)

var messageNames = [Messages]string{"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"}

// String is the message's name in the IBA.
func (x Message) String() string {
	if x < Messages {
		return messageNames[x]
	}
	return "unknown message"
}

// Attribute is the attribute id of its MAD.
func (x Message) Attribute() mad.AttributeID { return mad.AttrConnectRequest + mad.AttributeID(x) }
