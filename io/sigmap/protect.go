package sigmap

// Protection is a counter and a checksum over some bytes of a frame, compiled from a
// ProtectionSpec; a frame may have several. It is plain data, made by NewProtection, for
// one direction: Protect writes sent frames, Check and CheckMissing check received ones.
// These methods change Next and the fields from Window on; they do not allocate or grow
// the stack.
//
// Protections that cover each other are applied from the inside out.
type Protection struct {
	Profile string // profile of the specification, for reports

	Counter Split
	Modulus uint64 // number of counter values, 0 to Modulus-1, at most 2^32; 0: no counter
	Next    uint64 // counter of the next frame sent

	Algorithm Algorithm
	Checksum  Split
	Terms     []Term      // input bytes of the checksum, in this order
	Need      uint8       // minimum length of a frame, bytes
	Init      uint64      // initial value of the register
	XorOut    uint64      // mask XORed onto the result
	Width     uint8       // width of a CRC, bits: 8, 16, 32 or 64
	Reflect   bool        // the CRC processes and outputs the lowest bit first
	Table     [256]uint64 `checkpoint:"-"` // table of a CRC, by byte
	Digit     uint8       // digit of a sum, bits: 8 bytes, 4 nibbles, 1 number of ones
	Subtract  bool        // the sum is subtracted from Init, not added
	Fold      Fold        // final step of a sum

	DataIDs [16]uint8 // data identifiers of FromDataID, by counter
	IDCount uint8     // entries used in DataIDs
	DataID  uint32    // data identifier of a profile with one
	Nibble  Split     // place of the bits above the lowest byte of DataID; empty: none
	ID      Split     // place of all bits of DataID; empty: none

	Length    Split // place of the length of the data, bytes from First on; empty: none
	First     uint8 // first byte of the data
	Size      uint8 // length sent, bytes
	MinLength uint8 // smallest length received, bytes
	MaxLength uint8 // largest length received, bytes

	MaxDelta uint64 // largest counter step that is not WRONGSEQUENCE, 1 to Modulus-1
	Classic  bool   // profiles 1 and 2: INITIAL, SYNC, and a MaxDelta that grows without valid frames
	MaxStale uint64 // MaxNoNewOrRepeatedData; only if Classic
	SyncInit uint64 // SyncCounterInit; only if Classic
	Limits   WindowLimits

	Window Window
	OKs    uint64 // good frames among the last WindowSize, the latest in bit 0
	Errors uint64 // frames with FrameError among the last WindowSize, the latest in bit 0
	Seen   bool   // Last is valid
	Last   uint64 // counter of the last valid frame
	Delta  uint64 // present MaxDelta, if Classic
	Stale  uint64 // cycles without a new frame, if Classic
	Sync   uint64 // valid frames still needed before the state is OK again, if Classic

	// Compiled is the generated code of checksum for this protection; nil: the table is used. It
	// is not stored in files.
	Compiled func(data *[64]byte, n byte, id uint32) uint64 `json:"-"`

	// The current frame; kept here because the tick has little stack.
	n   byte   // length of the frame, bytes
	end byte   // end of the bytes covered
	id  uint32 // identifier of the frame
}

// Term is an input byte of a checksum.
type Term struct {
	From Source
	At   uint8 // FromData: index of the byte; FromIdentifier: bits below the part of the identifier
	Mask uint8 // bits used; the others count as 0
}

// Source is the origin of a Term's byte.
type Source uint8

const (
	FromData       Source = iota // data byte of the frame
	FromConstant                 // Mask itself
	FromLength                   // length of the frame, bytes
	FromIdentifier               // part of the frame's identifier
	FromDataID                   // entry of DataIDs selected by the counter
)

// Algorithm is the algorithm of a checksum.
type Algorithm uint8

const (
	NoChecksum Algorithm = iota
	CRC
	Sum // sum of digits: bytes, nibbles or bits
	XOR // XOR of bytes
)

// Fold is the final step that reduces a sum s.
type Fold uint8

const (
	NoFold   Fold = iota // s
	FoldTSC1             // ((s>>6 & 3) + s>>3 + s) & 7: SAE J1939-71, SPN 4207
	FoldXBR              // (s>>4 + s) & 15: SAE J1939-71, SPN 3188
)

// Protect sets the counter and the checksum of a frame of n bytes and advances the
// counter; id is the frame's identifier without flags.
//
//go:nosplit
func (p *Protection) Protect(data *[64]byte, n int, id uint32) {
	p.n, p.end, p.id = byte(n), 64, id
	if p.Length.N > 0 {
		p.end = p.First + p.Size
		p.Length.Store(data, uint64(p.Size))
	}
	if p.Modulus > 0 {
		p.Counter.Store(data, p.Next)
		p.Next++
		if p.Next >= p.Modulus {
			p.Next = 0
		}
	}

	if p.Nibble.N > 0 {
		p.Nibble.Store(data, uint64(p.DataID>>8))
	}
	if p.ID.N > 0 {
		p.ID.Store(data, uint64(p.DataID))
	}
	if p.Algorithm != NoChecksum {
		p.Checksum.Store(data, p.checksum(data))
	}
}

// RightChecksum returns the checksum that a frame of n bytes should have; id is its identifier
// without flags.
//
//go:nosplit
func (p *Protection) RightChecksum(data *[64]byte, n int, id uint32) uint64 {
	p.n, p.end, p.id = byte(n), 64, id
	if p.Length.N > 0 {
		p.checkLength(p.Length.Load(data)) // sets the end
	}
	return p.checksum(data)
}

// checksum returns the expected checksum of a frame, reduced to the bits of its place. The
// counter must be set in data: some profiles select the data identifier by it.
//
//go:nosplit
func (p *Protection) checksum(data *[64]byte) uint64 {
	if p.Compiled != nil {
		return p.Compiled(data, p.n, p.id)
	}
	s, top := p.Init, p.Width-8
	for i := range p.Terms {
		t := &p.Terms[i]
		b := data[t.At&63]
		switch t.From {
		case FromData:
			if t.At >= p.end {
				continue
			}
		case FromConstant:
			b = 0xFF
		case FromLength:
			b = p.n
		case FromIdentifier:
			b = byte(p.id >> (t.At & 31))
		case FromDataID:
			b = p.DataIDs[p.Counter.Load(data)%uint64(p.IDCount)&15]
		}

		switch b &= t.Mask; {
		case p.Algorithm == CRC && p.Reflect:
			s = p.Table[byte(s)^b] ^ s>>8
		case p.Algorithm == CRC:
			s = p.Table[byte(s>>top)^b] ^ s<<8 // bits above Width are dropped at the end
		case p.Algorithm == XOR:
			s ^= uint64(b)
		default:
			s += p.digitSum(b)
		}
	}

	switch p.Fold {
	case FoldTSC1:
		s = (s>>6&3 + s>>3 + s) & 7
	case FoldXBR:
		s = (s>>4 + s) & 15
	}

	return (s ^ p.XorOut) & p.Checksum.Mask()
}

// digitSum returns the contribution of a byte to a sum.
//
//go:nosplit
func (p *Protection) digitSum(b byte) (sum uint64) {
	for ; b != 0; b >>= p.Digit {
		sum += uint64(b & (1<<p.Digit - 1))
	}
	if p.Subtract {
		return -sum
	}
	return sum
}
