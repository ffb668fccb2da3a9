package sigmap

import (
	"math"
	"sort"

	"lockstep/io/can"
)

// Map moves values between the frames of one bus and the vectors of a plant. It
// is plain data, made by Bind; Decode and Encode change only its counters.
type Map struct {
	Rx []Rx // by rising ID
	Tx []Tx // in the order of Spec.Sendings

	Saturated uint64 // sent signals that were held at the end of their range
}

// Rx is a received message.
type Rx struct {
	Name   string
	ID     uint32 // with can.EFF if it is extended
	Len    int    // bytes of the message by the database; a frame with fewer is Short
	Fields []Field
}

// Tx is a sent message.
type Tx struct {
	Name       string
	ID         uint32 // with can.EFF if it is extended
	Len        int    // bytes
	CycleTicks int64  // > 0
	PhaseTicks int64  // 0 <= phase < cycle
	Fields     []Field
	HasCounter bool
	Counter    Field  // Index, Factor, Offset unused
	Count      uint64 // the next counter value
}

// Result is what became of a received frame.
type Result uint8

const (
	OK      Result = iota
	Unknown        // not one of Map.Rx, or no data frame
	Short          // shorter than the message: nothing decoded, even if the bound signals are in it
	Range          // some signal is out of its range and keeps its last value; the others are decoded
)

// Filters lets pass exactly the data frames Decode knows.
func (m *Map) Filters() []can.Filter {
	list := make([]can.Filter, len(m.Rx))
	for i := range m.Rx {
		id, mask := m.Rx[i].ID, can.MaskSFF
		if id&can.EFF != 0 {
			mask = can.MaskEFF
		}
		list[i] = can.Filter{ID: id, Mask: mask | can.EFF | can.RTR}
	}
	return list
}

// Decode writes the values of a received frame into u and returns the index of
// its message in m.Rx, -1 if it is Unknown. It does not allocate.
//
//go:nosplit
func (m *Map) Decode(u []float64, f *can.Frame) (int, Result) {
	i := m.find(f.ID)
	if i < 0 {
		return -1, Unknown
	}
	rx := &m.Rx[i]
	if int(f.Len) < rx.Len {
		return i, Short
	}
	result := OK
	for j := range rx.Fields {
		d := &rx.Fields[j]
		r := d.number(d.load(&f.Data))
		if r < d.Lo || r > d.Hi {
			result = Range
			continue
		}
		u[d.Index] = r*d.Factor + d.Offset
	}
	return i, result
}

// find returns the index of the message with this ID, -1 if there is none.
//
//go:nosplit
func (m *Map) find(id uint32) int {
	lo, hi := 0, len(m.Rx)
	for lo < hi {
		mid := (lo + hi) / 2
		if m.Rx[mid].ID < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(m.Rx) && m.Rx[lo].ID == id {
		return lo
	}
	return -1
}

// Due tells whether t is to be sent at a tick.
//
//go:nosplit
func (t *Tx) Due(tick int64) bool { return tick%t.CycleTicks == t.PhaseTicks }

// Encode makes f the frame of m.Tx[i] with the values of y, rounded half to even
// and held within the signal's range, and advances the counter. It returns false
// and leaves the counter alone if a value is NaN. It does not allocate.
//
//go:nosplit
func (m *Map) Encode(f *can.Frame, i int, y []float64) bool {
	t := &m.Tx[i]
	*f = can.Frame{ID: t.ID, Len: uint8(t.Len)}
	if f.FD() {
		f.Flags = can.FlagFDF
	}
	for j := range t.Fields {
		d := &t.Fields[j]
		r := whole((y[d.Index] - d.Offset) / d.Factor)
		switch {
		case r != r:
			return false
		case r < d.Lo:
			r = d.Lo
			m.Saturated++
		case r > d.Hi:
			r = d.Hi
			m.Saturated++
		}
		d.store(&f.Data, d.bits(r))
	}
	if t.HasCounter {
		t.Counter.store(&f.Data, t.Count)
		t.Count++
		if float64(t.Count) > t.Counter.Hi {
			t.Count = 0
		}
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

// sortRx puts Rx in the order find relies on.
func (m *Map) sortRx() {
	sort.Slice(m.Rx, func(i, j int) bool { return m.Rx[i].ID < m.Rx[j].ID })
}
