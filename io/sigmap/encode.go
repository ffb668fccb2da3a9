package sigmap

import (
	"math"

	"lockstep/io/can"
)

// SendType is the cause of sending a message.
type SendType uint8

const (
	Cyclic   SendType = iota // sent in its cycle
	OnChange                 // sent when a raw value differs from the value sent last
	Both                     // sent in its cycle and on change
)

func (s SendType) String() string { return [...]string{"cyclic", "on_change", "both"}[s] }

// Tx is a sent message.
type Tx struct {
	Name       string
	ID         uint32 // with can.EFF if it is extended
	Len        int    // length, bytes
	Flags      uint8  // flags of the frame: can.FlagFDF, can.FlagBRS
	Send       SendType
	CycleTicks int64    // cycle, ticks, > 0; 1 if OnChange
	PhaseTicks int64    // phase, ticks, 0 <= phase < cycle
	GapTicks   int64    // minimum time before a frame sent on change, ticks, > 0
	Repeats    int64    // repetitions of a frame sent on change
	EveryTicks int64    // time between repetitions, ticks, >= GapTicks
	Base       [64]byte // data of the frame before fields, counter and protection are stored

	// data as Base for each page of a multiplexed message, sent in turn; empty: Base alone
	Pages [][64]byte `checkpoint:"-"`

	Excerpt Excerpt // of a message of more than 64 bytes: Len is that of its frame

	Fields     []Field
	Waveforms  []Waveform
	HasCounter bool
	Counter    Field  // field of the counter; Index, Factor and Offset are not used
	Count      uint64 // the next counter value
	Protect    []Protection

	LastDue     int64 // 1 + tick at which Map.Due was last true; 0: never
	RepeatsLeft int64 // repetitions still to be sent
}

// MaxGroups is the largest number of protections of a frame.
const MaxGroups = 4

// Counts returns the next values of all counters of t; together these have at most 64 bits.
// SetCounts of another Tx with the same counters continues them.
//
//go:nosplit
func (t *Tx) Counts() uint64 {
	c := t.Count
	for i := range t.Protect {
		p := &t.Protect[i]
		c = c<<p.Counter.Bits() | p.Next
	}
	return c
}

// SetCounts is the inverse of Counts.
//
//go:nosplit
func (t *Tx) SetCounts(c uint64) {
	for i := len(t.Protect) - 1; i >= 0; i-- {
		p := &t.Protect[i]
		p.Next = c & p.Counter.Mask()
		c >>= p.Counter.Bits()
	}

	t.Count = c
}

// Due reports whether t is sent at a tick because of its cycle.
//
//go:nosplit
func (t *Tx) Due(tick int64) bool {
	return t.Send != OnChange && tick%t.CycleTicks == t.PhaseTicks
}

// Due reports whether m.Tx[i] is sent at a tick with the outputs y: in its cycle, because a
// raw value differs from the value sent last, or as a repetition. Ticks must rise. With
// forced, Field.Force applies.
//
//go:nosplit
func (m *Map) Due(i int, tick int64, y []float64, forced bool) bool {
	t := &m.Tx[i]
	due, since := t.Due(tick), tick+1-t.LastDue
	switch {
	case t.Send == Cyclic:
	case t.LastDue == 0:
		due = true
	case !due && since < t.GapTicks:
	case (!due || t.Repeats > 0) && m.valueChanged(t, tick, y, forced):
		due, t.RepeatsLeft = true, t.Repeats
	case !due && t.RepeatsLeft > 0 && since >= t.EveryTicks:
		due = true
		t.RepeatsLeft--
	}

	if due {
		t.LastDue = tick + 1
	}
	return due
}

// HasForce reports whether a fault forces one of the fields.
//
//go:nosplit
func (t *Tx) HasForce() bool {
	for j := range t.Fields {
		if t.Fields[j].Force != NoForce {
			return true
		}
	}

	return false
}

// valueChanged reports whether a raw value of t differs from the value sent last.
//
//go:nosplit
func (m *Map) valueChanged(t *Tx, tick int64, y []float64, forced bool) bool {
	for j := range t.Fields {
		d := &t.Fields[j]
		if raw, ok := m.rawValue(t, d, tick, y, forced); !ok || raw != d.Sent {
			return true
		}
	}

	return false
}

// Value returns the value of d at a tick, without Field.Force, in the unit of the port.
//
//go:nosplit
func (m *Map) Value(t *Tx, d *Field, tick int64, y []float64) float64 {
	if d.Waveform > 0 {
		return t.Waveforms[d.Waveform-1].Eval(tick * m.PeriodNs)
	}
	return y[d.Index]
}

// rawValue returns the raw value of d at a tick. It rounds half to even unless d is a Float,
// wraps if d.Wraps, and limits the value to its range. m.saturated tells whether it limited
// the value although d.Rests is false. ok is false if the value is NaN.
//
//go:nosplit
func (m *Map) rawValue(t *Tx, d *Field, tick int64, y []float64, forced bool) (raw uint64, ok bool) {
	force, v, lo, hi := NoForce, 0.0, d.Lo, d.Hi
	if forced {
		force = d.Force
	}
	m.saturated = false
	switch force {
	case ForceOnes:
		return d.mask(), true
	case ForceValue:
		v = d.Value
		lo, hi = d.rawRange()
	default:
		if d.Waveform > 0 {
			switch w := &t.Waveforms[d.Waveform-1]; {
			case w.Held && w.HeldWhole:
				return w.HeldRaw & d.mask(), true
			case !w.Held && w.Whole:
				return w.Raw & d.mask(), true
			}
		}
		v = m.Value(t, d, tick, y)
	}

	r := (v - d.Offset) / d.Factor
	if !d.Float {
		r = roundHalfEven(r)
	}
	if d.Wraps {
		r = wrapRaw(r, lo, hi)
	}
	m.saturated = (r < lo || r > hi) && !d.Rests
	switch {
	case r < lo:
		r = lo
	case r > hi:
		r = hi
	}

	return d.rawBits(r), r == r
}

// Encode makes f the frame of m.Tx[i] at a tick with the values of y, advances the counters
// and sets the checksums. Values are rounded half to even and limited to the range of their
// signal; a count wraps. With forced, Field.Force applies. If a value is NaN, Encode returns
// false and leaves the counters unchanged. It does not allocate.
//
//go:nosplit
func (m *Map) Encode(f *can.Frame, i int, tick int64, y []float64, forced bool) bool {
	t := &m.Tx[i]
	f.ID, f.Len, f.Flags, f.Res0, f.Res1 = t.ID, uint8(t.Len), t.Flags, 0, 0
	f.Data = t.Base
	if n := int64(len(t.Pages)); n > 0 {
		f.Data = t.Pages[tick/t.CycleTicks%n] // a frame that the bus refuses is repeated with its page
	}
	for j := range t.Fields {
		d := &t.Fields[j]
		if !d.isPresent(&f.Data) {
			continue
		}
		raw, ok := m.rawValue(t, d, tick, y, forced)
		if !ok {
			return false
		}
		if m.saturated {
			m.Saturated++
		}
		d.Sent = raw
		d.store(&f.Data, d.Sent)
	}

	if t.HasCounter {
		t.Counter.store(&f.Data, t.Count)
		t.Count++
		if float64(t.Count) > t.Counter.Hi {
			t.Count = 0
		}
	}

	for j := range t.Protect {
		t.Protect[j].Protect(&f.Data, t.Len, t.ID&can.MaskEFF)
	}
	return true
}

// roundHalfEven returns v rounded to a whole number, half to even. math.RoundToEven is a
// call that may grow the stack on a processor without SSE 4.1.
//
//go:nosplit
func roundHalfEven(v float64) float64 {
	if !(math.Abs(v) < 1<<52) { // a whole number already, or NaN
		return v
	}
	return math.Copysign(math.Abs(v)+1<<52-1<<52, v) // the sum has no bits below 1
}
