package sigmap

// Protection is a counter and a checksum over some bytes of a frame, compiled from
// a messages.ProtectionSpec: one group; a frame may carry several. It is plain data, made
// by NewProtection, for one direction: Protect and Seal write what is sent, Check
// and Miss judge what is received. They change Next and what follows Window, do
// not allocate and do not grow the stack.
//
// Groups that cover one another are protected from the inside out.
type Protection struct {
	Profile string // of the specification, for reports

	Counter Split
	Modulus uint32 // the counter runs from 0 to Modulus-1; 0: there is none
	Next    uint32 // the counter of the next frame sent

	Algorithm Algorithm
	Checksum  Split
	Order     [64]uint8   // the covered bytes, in the order they are taken
	Covered   uint8       // entries of Order, 0 to 64
	Mask      [64]byte    // covered bits of every byte; the others are taken as 0
	Need      uint8       // bytes a frame must have
	Init      uint32      // the register at first
	XorOut    uint32      // onto the result
	Width     uint8       // of a CRC, bits: 8 or 16
	Reflect   bool        // a CRC that takes the lowest bit first, and gives it first
	Table     [256]uint16 // of a CRC, by byte
	Digit     uint8       // what a sum adds, bits: 8 bytes, 4 nibbles, 1 the number of ones
	Subtract  bool        // the sum is taken from Init, not added to it
	Fold      Fold        // of a sum, at the end

	IDMode   IDMode
	DataID   uint16
	DataIDs  [16]uint8 // by counter
	IDCount  uint8     // entries of DataIDs
	Nibble   Split     // carries the bits above the lowest byte of DataID; empty: none does
	FrameID  uint8     // how much of the identifier is taken at once, bits: 0 none, 8 or 4
	IDPieces uint8     // how often
	Length   bool      // the number of bytes of the frame is taken, too

	MaxDelta uint32 // the largest step of the counter that is no WRONGSEQUENCE, 1 to Modulus-1
	Classic  bool   // profiles 1 and 2: INITIAL, SYNC, and a MaxDelta that grows while nothing valid comes
	MaxStale uint32 // MaxNoNewOrRepeatedData; only if Classic
	SyncInit uint32 // SyncCounterInit; only if Classic
	Limits   WindowLimits

	Window Window
	OKs    uint64 // the last WindowSize frames that were good, the latest in bit 0
	Errors uint64 // and those with FrameError
	Seen   bool   // Last holds
	Last   uint32 // counter of the last valid frame
	Delta  uint32 // MaxDelta at present, if Classic
	Stale  uint32 // cycles without a new frame, if Classic
	Sync   uint32 // valid frames that are to come until the state is OK again, if Classic

	// Compiled is value as code made for this one; nil: the table's way. No file holds it.
	Compiled func(data *[64]byte, n byte, id uint32) uint32 `json:"-"`

	// Of the frame at work: the tick has little stack.
	n    byte   // its length
	left byte   // pieces of its identifier that are to come,
	id   uint32 // in the lowest bits
	sum  uint32 // the register
}

// Algorithm is how a checksum is made.
type Algorithm uint8

const (
	NoChecksum Algorithm = iota
	CRC
	Sum // of digits: bytes, nibbles or bits
	XOR // of bytes
)

// Fold is what becomes of the sum s at the end.
type Fold uint8

const (
	NoFold   Fold = iota // s
	FoldTSC1             // ((s>>6 & 3) + s>>3 + s) & 7: SAE J1939-71, SPN 4207
	FoldXBR              // (s>>4 + s) & 15: SAE J1939-71, SPN 3188
)

// IDMode is how the data identifier gets into a CRC.
type IDMode uint8

const (
	NoID          IDMode = iota
	IDBoth               // low byte, high byte before the data
	IDAlternating        // before the data the low byte if the counter is even, the high byte if it is odd
	IDLow                // low byte before the data
	IDNibble             // low byte and a zero before the data; the rest of it is in Nibble
	IDAfter              // low byte, high byte after the data
	IDList               // the one of DataIDs at the counter, after the data
)

// Protect sets the counter and the checksum of a frame of n bytes and goes on to
// the next counter; id is the frame's identifier, without marks.
//
//go:nosplit
func (p *Protection) Protect(data *[64]byte, n int, id uint32) {
	p.n, p.id = byte(n), id
	if p.Modulus > 0 {
		p.Counter.store(data, p.Next)
		p.Next++
		if p.Next >= p.Modulus {
			p.Next = 0
		}
	}
	p.seal(data)
}

// Seal sets the checksum of a frame whose counter is set.
//
//go:nosplit
func (p *Protection) Seal(data *[64]byte, n int, id uint32) {
	p.n, p.id = byte(n), id
	p.seal(data)
}

// Sum is the checksum in a frame, SetSum puts another one there.
//
//go:nosplit
func (p *Protection) Sum(data *[64]byte) uint32 { return p.Checksum.load(data) }

//go:nosplit
func (p *Protection) SetSum(data *[64]byte, sum uint32) { p.Checksum.store(data, sum) }

// SumMask has as many bits set as the checksum has; 0: there is none.
//
//go:nosplit
func (p *Protection) SumMask() uint32 {
	if p.Algorithm == NoChecksum {
		return 0
	}
	return p.Checksum.mask()
}

//go:nosplit
func (p *Protection) seal(data *[64]byte) {
	if p.Nibble.N > 0 {
		p.Nibble.store(data, uint32(p.DataID>>8))
	}
	if p.Algorithm != NoChecksum {
		p.Checksum.store(data, p.value(data))
	}
}

// value is the checksum that a frame should have, reduced to the bits it has for
// it. The counter must be set: some profiles choose by it.
//
//go:nosplit
func (p *Protection) value(data *[64]byte) uint32 {
	if p.Compiled != nil {
		return p.Compiled(data, p.n, p.id)
	}
	p.sum = p.Init
	p.before(data)
	p.cover(data)
	p.after(data)
	return p.end()
}

// cover takes the data.
//
//go:nosplit
func (p *Protection) cover(data *[64]byte) {
	if p.Algorithm != CRC || p.Reflect {
		for i := range p.Covered {
			at := p.Order[i&63] & 63
			p.take(data[at] & p.Mask[at])
		}
		return
	}
	s, top := p.sum, p.Width-8 // as take does it, twice as fast
	for i := range p.Covered {
		at := p.Order[i&63] & 63
		s = uint32(p.Table[byte(s>>top)^data[at]&p.Mask[at]]) ^ s<<8
	}
	p.sum = s
}

// before takes what comes before the data.
//
//go:nosplit
func (p *Protection) before(data *[64]byte) {
	if p.Length {
		p.take(p.n)
	}
	for p.left = p.IDPieces; p.left > 0; p.left-- {
		p.take(byte(p.id) & (1<<p.FrameID - 1))
		p.id >>= p.FrameID
	}
	switch p.IDMode {
	case IDBoth:
		p.take(byte(p.DataID))
		p.take(byte(p.DataID >> 8))
	case IDAlternating:
		p.take(byte(p.DataID >> (8 * (p.Counter.load(data) & 1))))
	case IDLow:
		p.take(byte(p.DataID))
	case IDNibble:
		p.take(byte(p.DataID))
		p.take(0)
	}
}

// after takes what comes after the data.
//
//go:nosplit
func (p *Protection) after(data *[64]byte) {
	switch p.IDMode {
	case IDAfter:
		p.take(byte(p.DataID))
		p.take(byte(p.DataID >> 8))
	case IDList:
		p.take(p.DataIDs[p.Counter.load(data)%uint32(p.IDCount)&15])
	}
}

// end makes the checksum of the sum.
//
//go:nosplit
func (p *Protection) end() uint32 {
	s := p.sum
	switch p.Fold {
	case FoldTSC1:
		s = (s>>6&3 + s>>3 + s) & 7
	case FoldXBR:
		s = (s>>4 + s) & 15
	}
	return (s ^ p.XorOut) & p.Checksum.mask()
}

// take goes on by one byte.
//
//go:nosplit
func (p *Protection) take(b byte) {
	switch {
	case p.Algorithm == CRC && p.Reflect:
		p.sum = uint32(p.Table[byte(p.sum)^b]) ^ p.sum>>8
	case p.Algorithm == CRC:
		p.sum = uint32(p.Table[byte(p.sum>>(p.Width-8))^b]) ^ p.sum<<8 // end drops what is above Width
	case p.Algorithm == XOR:
		p.sum ^= uint32(b)
	default:
		for ; b != 0; b >>= p.Digit {
			digit := uint32(b & (1<<p.Digit - 1))
			if p.Subtract {
				digit = -digit
			}
			p.sum += digit
		}
	}
}
