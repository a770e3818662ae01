package mad

// The types of the enumerations whose constants and texts are generated from
// the table in mad/layout.
type (
	// Class is a management class (IBA 13.4.3).
	Class uint8
	// Method is a method with its R bit (IBA 13.4.5).
	Method uint8
	// Status is the status of a response: bits 0-4 general, 8-15 of the class
	// (IBA 13.4.7). Bit 15 is the D bit in directed-route SMPs, not status.
	Status uint16
	// AttributeID names an attribute within its class (IBA 13.4.6).
	AttributeID uint16
)
