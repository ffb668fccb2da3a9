package sigmap

import (
	"encoding/binary"
	"math"
)

// Field is a signal bound to an entry of a vector, compiled to a load of eight
// bytes, and of a ninth if it straddles them: value = raw·Factor + Offset in the
// port's unit.
type Field struct {
	Name   string  // of the signal; the tick does not read it
	Index  int     // entry of u if received, of y if sent; -1: Course says it
	Course int     // 1 + entry of Tx.Courses; 0: none
	At     uint8   // first of the eight bytes, 0 to 56
	Shift  uint8   // bits of the eight bytes below the signal
	Ninth  uint8   // bits of the signal in the byte after them, 0 to 7
	Len    uint8   // bits, 1 to 64
	Big    bool    // the eight bytes are big endian
	Signed bool    // raw is two's complement
	Float  bool    // raw is an IEEE 754 number of 32 or 64 bits
	Factor float64 // unit of the port per bit
	Offset float64 // unit of the port
	Lo, Hi float64 // raw values that are accepted or sent, whole numbers unless Float

	When    []Selector  // received: it is in the frames in which all of these hold
	Invalid [][2]uint64 // received: raw values that say that there is no value, lowest and highest

	Sent  uint64 // raw bits that went out last; see Map.Due
	Wraps bool   // sent: what is beyond Hi goes on from Lo, as a counter does
	Rests bool   // sent: to be held at Lo or Hi is meant

	Force Force   // sent: what stands for the value where Due and Encode are told so
	Value float64 // of ForceValue, as Factor and Offset have it
}

// Force says what stands for the value of a sent field.
type Force uint8

// What stands for a value.
const (
	NoForce    Force = iota
	ForceValue       // Field.Value, held within what the bits can carry
	ForceOnes        // all bits are ones: as a rule there is no value then
)

// Selector is a multiplexor, and the raw values of it that select.
type Selector struct {
	At     Field
	Ranges [][2]uint64 // lowest and highest
}

// present tells whether the field is in a frame.
//
//go:nosplit
func (f *Field) present(data *[64]byte) bool {
	for i := range f.When {
		if s := &f.When[i]; !within(s.Ranges, s.At.load(data)) {
			return false
		}
	}
	return true
}

// within tells whether a raw value is in one of the ranges.
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

// mask has the lowest Len bits set.
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

// store sets the raw bits of the field, which are zero so far.
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

// number is what the raw bits mean as a number, before Factor and Offset.
//
//go:nosplit
func (f *Field) number(raw uint64) float64 {
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

// bits is the inverse of number for a number within the field's range, whole
// unless the field is Float.
//
//go:nosplit
func (f *Field) bits(r float64) uint64 {
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

// wrapped is a whole raw number brought into lo to hi as a counter of so many values
// goes on from its other end. Beyond 2^53 it is left as it is.
//
//go:nosplit
func wrapped(r, lo, hi float64) float64 {
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

// span is the range of raw numbers the field can hold. Above 2^53 the upper end
// is the largest float64 that fits. A Float holds less where its factor would make
// more of it than a float64 is.
//
//go:nosplit
func (f *Field) span() (lo, hi float64) {
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
		hi = 2 * float64(uint64(1)<<(n-1))
	}
	if n > 53 {
		return lo, hi * (1 - 0x1p-53)
	}
	return lo, hi - 1
}
