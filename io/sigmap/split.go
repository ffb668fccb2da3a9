package sigmap

import (
	"encoding/binary"
	"math/bits"
)

// Split is a number of up to 16 bits in one piece or in two, the lower bits in the
// first.
type Split struct {
	Part [2]Piece
	N    uint8 // pieces, 0 to 2
}

// Piece is a Field that lies within its eight bytes, without a port.
type Piece struct {
	At    uint8 // first of eight bytes, 0 to 56
	Shift uint8 // bits of the eight bytes below the piece
	Len   uint8 // bits, 1 to 16
	Big   bool  // the eight bytes are big endian
}

// load returns the number. Inlined it would enlarge the frames of its callers, and
// the chain of the tick with them; so would store.
//
//go:nosplit
//go:noinline
func (s *Split) load(data *[64]byte) (v uint32) {
	for i := s.N; i > 0; i-- {
		f := &s.Part[(i-1)&1]
		word := binary.LittleEndian.Uint64(data[f.At:])
		if f.Big {
			word = bits.ReverseBytes64(word)
		}
		v = v<<f.Len | uint32(word>>f.Shift)&(1<<f.Len-1)
	}
	return v
}

// store sets the lowest bits of v, whatever was there.
//
//go:nosplit
//go:noinline
func (s *Split) store(data *[64]byte, v uint32) {
	for i := range s.N {
		f := &s.Part[i&1]
		word := binary.LittleEndian.Uint64(data[f.At:])
		if f.Big {
			word = bits.ReverseBytes64(word)
		}
		word ^= (word>>f.Shift ^ uint64(v)) & (1<<f.Len - 1) << f.Shift
		if f.Big {
			word = bits.ReverseBytes64(word)
		}
		binary.LittleEndian.PutUint64(data[f.At:], word)
		v >>= f.Len
	}
}

// mask has as many bits set as the number has.
//
//go:nosplit
func (s *Split) mask() uint32 { return uint32(1<<(s.Part[0].Len+s.Part[1].Len) - 1) }
