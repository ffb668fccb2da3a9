package isotp

import "lockstep/io/can"

// Path is how frames of one direction are addressed: an identifier, and with extended and mixed addressing a
// first byte of data. Frames with another identifier or another first byte are not of the link.
type Path struct {
	ID      uint32 // with can.EFF if it has 29 bits
	HasByte bool
	Byte    uint8 // N_TA with extended addressing, N_AE with mixed addressing
}

// Address has the paths of both directions: ISO 15765-2, 10.3.
type Address struct{ Tx, Rx Path }

// Peer returns the address of the other end.
func (a Address) Peer() Address { return Address{Tx: a.Rx, Rx: a.Tx} }

// Normal is normal addressing: one identifier for each direction.
func Normal(tx, rx uint32) Address { return Address{Path{ID: tx}, Path{ID: rx}} }

// Extended is extended addressing: the first byte is the address of the node to which the frame goes.
func Extended(tx, rx uint32, target, source uint8) Address {
	return Address{Path{tx, true, target}, Path{rx, true, source}}
}

// Mixed is mixed addressing with 11-bit identifiers: the first byte is the address extension in both directions.
func Mixed(tx, rx uint32, extension uint8) Address {
	return Address{Path{tx, true, extension}, Path{rx, true, extension}}
}

// Parameter groups of 29-bit identifiers, priority 6: ISO 15765-2, 10.3.3 and 10.3.5.
const (
	fixedPhysical   = 0x18DA0000 | can.EFF
	fixedFunctional = 0x18DB0000 | can.EFF
	mixedPhysical   = 0x18CE0000 | can.EFF
	mixedFunctional = 0x18CD0000 | can.EFF
)

// NormalFixed is normal fixed addressing: 29-bit identifiers that have the addresses of both nodes.
func NormalFixed(target, source uint8) Address {
	return Normal(fixedID(fixedPhysical, target, source), fixedID(fixedPhysical, source, target))
}

// FunctionalFixed is normal fixed addressing of a request to all nodes with a functional address. Nothing is
// received: each node answers at its physical address.
func FunctionalFixed(target, source uint8) Address {
	return Address{Tx: Path{ID: fixedID(fixedFunctional, target, source)}, Rx: Path{ID: can.ERR}}
}

// MixedFixed is mixed addressing with 29-bit identifiers.
func MixedFixed(target, source, extension uint8) Address {
	return Mixed(fixedID(mixedPhysical, target, source), fixedID(mixedPhysical, source, target), extension)
}

// FunctionalMixedFixed is mixed addressing, with 29-bit identifiers, of a request to all.
func FunctionalMixedFixed(target, source, extension uint8) Address {
	return Address{Path{fixedID(mixedFunctional, target, source), true, extension}, Path{ID: can.ERR}}
}

func fixedID(group uint32, target, source uint8) uint32 {
	return group | uint32(target)<<8 | uint32(source)
}

// matches reports whether a frame is of the path.
func (p *Path) matches(f *can.Frame) bool {
	return f.ID == p.ID && (!p.HasByte || f.Len > 0 && f.Data[0] == p.Byte)
}

// offset returns the number of address bytes before the protocol control information.
func (p *Path) offset() int {
	if p.HasByte {
		return 1
	}
	return 0
}
