package sigmap

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Field is a signal bound to an entry of a vector, compiled to a load of eight bytes, and
// of a ninth if the signal extends into it: value = raw·Factor + Offset in the port's unit.
type Field struct {
	Name     string  // name of the signal; the tick does not read it
	Index    int     // index in u if received, in y if sent; -1: Waveform gives the value
	Waveform int     // 1 + index in Tx.Waveforms; 0: none
	At       uint8   // first of the eight bytes, 0 to 56
	Shift    uint8   // bits of the eight bytes below the signal
	Ninth    uint8   // bits of the signal in the ninth byte, 0 to 7
	Len      uint8   // length, bits, 1 to 64
	Big      bool    // the eight bytes are big endian
	Signed   bool    // raw is two's complement
	Float    bool    // raw is an IEEE 754 number of 32 or 64 bits
	Factor   float64 // unit of the port per bit
	Offset   float64 // unit of the port
	Lo, Hi   float64 // range of raw values accepted or sent, whole numbers unless Float

	When    []Selector  `checkpoint:"-"` // the frame contains the signal if all of these match; sent: of several pages
	Invalid [][2]uint64 `checkpoint:"-"` // received: ranges of raw values that mean "no value", lowest and highest

	Sent  uint64 // raw bits sent last; see Map.Due
	Wraps bool   // sent: a value beyond Hi continues from Lo, as for a counter
	Rests bool   // sent: a value limited to Lo or Hi does not count as saturated

	Force Force   // sent: replacement of the value in forced calls of Due and Encode
	Value float64 // value of ForceValue, in the unit of the port
}

// Force is the replacement of the value of a sent field.
type Force uint8

// The replacements of a value.
const (
	NoForce    Force = iota
	ForceValue       // Field.Value, limited to the range of the bits
	ForceOnes        // all bits are ones, usually "no value"
)

// Selector is a multiplexor with the raw values that select a signal.
type Selector struct {
	At     Field       // field of the multiplexor
	Ranges [][2]uint64 // lowest and highest raw values
}

// isPresent reports whether a frame contains the field.
//
//go:nosplit
func (f *Field) isPresent(data *[64]byte) bool {
	for i := range f.When {
		if s := &f.When[i]; !within(s.Ranges, s.At.load(data)) {
			return false
		}
	}

	return true
}

// within reports whether a raw value is in one of the ranges.
//
//go:nosplit
func within(ranges [][2]uint64, raw uint64) bool {
	for i := range ranges {
		if ranges[i][0] <= raw && raw <= ranges[i][1] {
			return true
		}
	}

	return false
}

// mask returns a mask of the lowest Len bits.
//
//go:nosplit
func (f *Field) mask() uint64 { return math.MaxUint64 >> (64 - f.Len) }

// load returns the raw bits of the field.
//
//go:nosplit
func (f *Field) load(data *[64]byte) uint64 {
	var v uint64
	if f.Big {
		v = binary.BigEndian.Uint64(data[f.At:]) >> f.Shift
		if f.Ninth > 0 {
			v = v<<f.Ninth | uint64(data[f.At+8]>>(8-f.Ninth))
		}
	} else {
		v = binary.LittleEndian.Uint64(data[f.At:]) >> f.Shift
		if f.Ninth > 0 {
			v |= uint64(data[f.At+8]) << (64 - f.Shift)
		}
	}

	return v & f.mask()
}

// store sets the raw bits of the field; the bits in data must be zero.
//
//go:nosplit
func (f *Field) store(data *[64]byte, raw uint64) {
	if f.Big {
		if f.Ninth > 0 {
			data[f.At+8] |= byte(raw << (8 - f.Ninth))
			raw >>= f.Ninth
		}

		v := binary.BigEndian.Uint64(data[f.At:])
		binary.BigEndian.PutUint64(data[f.At:], v|raw<<f.Shift)
		return
	}

	v := binary.LittleEndian.Uint64(data[f.At:])
	binary.LittleEndian.PutUint64(data[f.At:], v|raw<<f.Shift)
	if f.Ninth > 0 {
		data[f.At+8] |= byte(raw >> (64 - f.Shift))
	}
}

// Get returns the value of a received field in the unit of the port, also one beyond its range; ok
// is false if the frame does not contain the field.
//
//go:nosplit
func (f *Field) Get(data *[64]byte) (v float64, ok bool) {
	if !f.isPresent(data) {
		return 0, false
	}
	return float64(f.rawNumber(f.load(data))*f.Factor) + f.Offset, true
}

// Put replaces the field in data. The value is limited to what its bits can hold; NaN leaves them
// as they are. ForceOnes stores ones instead.
//
//go:nosplit
func (f *Field) Put(data *[64]byte, v float64, how Force) {
	raw := f.mask()
	if how != ForceOnes {
		r := (v - f.Offset) / f.Factor
		if r != r {
			return
		}
		if !f.Float {
			r = roundHalfEven(r)
		}
		lo, hi := f.rawRange()
		raw = f.rawBits(min(max(r, lo), hi))
	}

	var change [64]byte
	f.store(&change, raw^f.load(data))
	for i := range data {
		data[i] ^= change[i]
	}
}

// BitLimits returns the lowest and the highest value that the bits of the field can hold, in the unit
// of the port.
func (f *Field) BitLimits() (lo, hi float64) {
	lo, hi = f.rawRange()
	lo, hi = float64(lo*f.Factor)+f.Offset, float64(hi*f.Factor)+f.Offset
	return min(lo, hi), max(lo, hi)
}

// rawNumber returns raw bits as a number, before Factor and Offset.
//
//go:nosplit
func (f *Field) rawNumber(raw uint64) float64 {
	switch {
	case f.Float && f.Len == 32:
		return float64(math.Float32frombits(uint32(raw)))
	case f.Float:
		return math.Float64frombits(raw)
	case f.Signed:
		return float64(int64(raw<<(64-f.Len)) >> (64 - f.Len))
	}

	return float64(raw)
}

// rawBits returns the raw bits of a number, as the inverse of rawNumber. r is within the field's
// range, and a whole number unless the field is Float.
//
//go:nosplit
func (f *Field) rawBits(r float64) uint64 {
	switch {
	case f.Float && f.Len == 32:
		return uint64(math.Float32bits(float32(r)))
	case f.Float:
		return math.Float64bits(r)
	case f.Signed:
		return uint64(int64(r)) & f.mask()
	}

	return uint64(r)
}

// wrapRaw wraps a whole raw number into the range lo to hi, as a counter of hi-lo+1 values
// does. Beyond 2^53 it returns r unchanged.
//
//go:nosplit
func wrapRaw(r, lo, hi float64) float64 {
	n := hi - lo + 1
	if r >= lo && r <= hi || !(math.Abs(r-lo) < 1<<53 && n < 1<<53) {
		return r
	}
	rest := int64(r-lo) % int64(n)
	if rest < 0 {
		rest += int64(n)
	}
	return lo + float64(rest)
}

// rawRange returns the range of raw numbers that the bits of the field can hold. Above 2^53
// the upper end is the largest float64 that fits. The range of a Float is reduced so that
// the value after Factor is a finite float64.
//
//go:nosplit
func (f *Field) rawRange() (lo, hi float64) {
	if f.Float {
		hi = math.MaxFloat32
		if f.Len == 64 {
			hi = math.MaxFloat64
		}
		hi = min(hi, math.MaxFloat64/4/max(1, math.Abs(f.Factor)))
		return -hi, hi
	}

	n := f.Len
	if f.Signed {
		n--
		lo = -float64(uint64(1) << n)
	}

	if hi = 1; n > 0 {
		hi = float64(2 * float64(uint64(1)<<(n-1)))
	}
	if n > 53 {
		return lo, float64(hi * (1 - 0x1p-53))
	}
	return lo, hi - 1
}

// Split is a number of up to 64 bits in one or two bit ranges, the lower bits in the first.
type Split struct {
	Part [2]BitRange
	N    uint8 // number of bit ranges, 0 to 2
}

// BitRange is a range of bits within eight bytes of a frame.
type BitRange struct {
	At    uint8 // first of eight bytes, 0 to 56
	Shift uint8 // bits of the eight bytes below the range
	Len   uint8 // length, bits, 1 to 64
	Big   bool  // the eight bytes are big endian
}

// Load returns the number. Load and Store are not inlined: that would enlarge the stack
// frames of the tick's call chain.
//
//go:nosplit
//go:noinline
func (s *Split) Load(data *[64]byte) (v uint64) {
	for i := s.N; i > 0; i-- {
		f := &s.Part[(i-1)&1]
		word := binary.LittleEndian.Uint64(data[f.At:])
		if f.Big {
			word = bits.ReverseBytes64(word)
		}
		v = v<<f.Len | word>>f.Shift&(1<<f.Len-1)
	}

	return v
}

// Store stores the lowest bits of v and overwrites the old bits.
//
//go:nosplit
//go:noinline
func (s *Split) Store(data *[64]byte, v uint64) {
	for i := range s.N {
		f := &s.Part[i&1]
		word := binary.LittleEndian.Uint64(data[f.At:])
		if f.Big {
			word = bits.ReverseBytes64(word)
		}
		word ^= (word>>f.Shift ^ v) & (1<<f.Len - 1) << f.Shift
		if f.Big {
			word = bits.ReverseBytes64(word)
		}
		binary.LittleEndian.PutUint64(data[f.At:], word)
		v >>= f.Len
	}
}

// Bits returns the number of bits.
//
//go:nosplit
func (s *Split) Bits() int { return int(s.Part[0].Len + s.Part[1].Len) }

// Mask returns a mask with as many low bits set as the number has.
//
//go:nosplit
func (s *Split) Mask() uint64 { return 1<<s.Bits() - 1 }
