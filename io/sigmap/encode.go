package sigmap

import (
	"math"

	"lockstep/io/can"
)

// SendType says when a message is sent.
type SendType uint8

const (
	Cyclic   SendType = iota // in its cycle
	OnChange                 // at the ticks at which a raw value differs from the one sent last
	Both                     // in its cycle and on change
)

func (s SendType) String() string { return [...]string{"cyclic", "on_change", "both"}[s] }

// Tx is a sent message.
type Tx struct {
	Name       string
	ID         uint32 // with can.EFF if it is extended
	Len        int    // bytes
	Flags      uint8  // of the frame
	Send       SendType
	CycleTicks int64    // > 0; 1 if only sent on change
	PhaseTicks int64    // 0 <= phase < cycle
	GapTicks   int64    // least distance of frames that a change brings about, > 0
	Repeats    int64    // frames that follow one that a change brought about
	EveryTicks int64    // from one of them to the next, >= GapTicks
	Base       [64]byte // what the frame carries where nothing else is put
	Fields     []Field
	Courses    []Course
	HasCounter bool
	Counter    Field  // Index, Factor, Offset unused
	Count      uint64 // the next counter value
	Protect    []Protection

	Asked int64 // 1 + the tick of the last Due; 0: none yet
	Left  int64 // of Repeats
}

// maxGroups is how many counters a frame can have: Counts has room for so many.
const maxGroups = 4

// Counts is what all counters of t say next, in one word: who puts it into another Tx
// of the same kind goes on counting.
//
//go:nosplit
func (t *Tx) Counts() uint64 {
	if len(t.Protect) == 0 {
		return t.Count
	}
	c, at := uint64(0), 0
	if t.HasCounter {
		c, at = t.Count&0xFFFF, 16
	}
	for i := range t.Protect {
		c |= uint64(t.Protect[i].Next) << at
		at += 16
	}
	return c
}

// SetCounts is the inverse of Counts.
//
//go:nosplit
func (t *Tx) SetCounts(c uint64) {
	if len(t.Protect) == 0 {
		t.Count = c
		return
	}
	if t.HasCounter {
		t.Count = c & 0xFFFF
		c >>= 16
	}
	for i := range t.Protect {
		t.Protect[i].Next = uint32(c & 0xFFFF)
		c >>= 16
	}
}

// Due tells whether t is to be sent at a tick because of its cycle.
//
//go:nosplit
func (t *Tx) Due(tick int64) bool {
	return t.Send != OnChange && tick%t.CycleTicks == t.PhaseTicks
}

// Due tells whether m.Tx[i] is to be sent at a tick, where the outputs are y: in its
// cycle, because a raw value differs from the one that went out last, or once more
// because one did. Ticks must rise. forced: Field.Force is obeyed.
//
//go:nosplit
func (m *Map) Due(i int, tick int64, y []float64, forced bool) bool {
	t := &m.Tx[i]
	due, since := t.Due(tick), tick+1-t.Asked
	switch {
	case t.Send == Cyclic:
	case t.Asked == 0:
		due = true
	case !due && since < t.GapTicks:
	case (!due || t.Repeats > 0) && m.changed(t, tick, y, forced):
		due, t.Left = true, t.Repeats
	case !due && t.Left > 0 && since >= t.EveryTicks:
		due = true
		t.Left--
	}
	if due {
		t.Asked = tick + 1
	}
	return due
}

// Forces tells whether a fault stands for one of the values.
//
//go:nosplit
func (t *Tx) Forces() bool {
	for j := range t.Fields {
		if t.Fields[j].Force != NoForce {
			return true
		}
	}
	return false
}

//go:nosplit
func (m *Map) changed(t *Tx, tick int64, y []float64, forced bool) bool {
	for j := range t.Fields {
		d := &t.Fields[j]
		if raw, ok := m.raw(t, d, tick, y, forced); !ok || raw != d.Sent {
			return true
		}
	}
	return false
}

// Value is what d carries at a tick where nothing is forced, as its Factor and
// Offset have it.
//
//go:nosplit
func (m *Map) Value(t *Tx, d *Field, tick int64, y []float64) float64 {
	if d.Course > 0 {
		return t.Courses[d.Course-1].Eval(tick * m.PeriodNs)
	}
	return y[d.Index]
}

// raw is what d carries at a tick, rounded half to even unless it is a Float, and held within
// its range, or if it Wraps brought round; m.held says whether it had to be held, and was
// not meant to. false: it is NaN.
//
//go:nosplit
func (m *Map) raw(t *Tx, d *Field, tick int64, y []float64, forced bool) (raw uint64, ok bool) {
	force, v, lo, hi := NoForce, 0.0, d.Lo, d.Hi
	if forced {
		force = d.Force
	}
	m.held = false
	switch force {
	case ForceOnes:
		return d.mask(), true
	case ForceValue:
		v = d.Value
		lo, hi = d.span()
	default:
		v = m.Value(t, d, tick, y)
	}
	r := (v - d.Offset) / d.Factor
	if !d.Float {
		r = whole(r)
	}
	if d.Wraps {
		r = wrapped(r, lo, hi)
	}
	m.held = (r < lo || r > hi) && !d.Rests
	switch {
	case r < lo:
		r = lo
	case r > hi:
		r = hi
	}
	return d.bits(r), r == r
}

// Encode makes f the frame of m.Tx[i] at a tick with the values of y, rounded half to even
// and held within the signal's range (a count wraps there), advances the counters and
// protects it. forced: Field.Force is obeyed. It returns false and leaves the counters alone if a value is NaN. It
// does not allocate.
//
//go:nosplit
func (m *Map) Encode(f *can.Frame, i int, tick int64, y []float64, forced bool) bool {
	t := &m.Tx[i]
	f.ID, f.Len, f.Flags, f.Res0, f.Res1 = t.ID, uint8(t.Len), t.Flags, 0, 0
	f.Data = t.Base
	for j := range t.Fields {
		d := &t.Fields[j]
		raw, ok := m.raw(t, d, tick, y, forced)
		if !ok {
			return false
		}
		if m.held {
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

// whole is v rounded to a whole number, half to even. math.RoundToEven is a call
// that may grow the stack on a processor without SSE 4.1.
//
//go:nosplit
func whole(v float64) float64 {
	if !(math.Abs(v) < 1<<52) { // whole already, or NaN
		return v
	}
	return math.Copysign(math.Abs(v)+1<<52-1<<52, v) // the sum has no bits below 1
}
