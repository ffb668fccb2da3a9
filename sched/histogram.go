package sched

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"
)

// The bins of a Histogram: 1 ns wide below 2·perOctave ns, and perOctave of
// equal width in each octave above, up to limitNs.
const (
	subBits   = 6
	perOctave = 1 << subBits // a bin is at most 1/64 of its value wide
	limitNs   = 1 << 37      // longest duration resolved, ns: 137 s, later than any useful tick
	bins      = (37 - subBits + 1) * perOctave
)

// Micros is the number of 1 µs classes of a Histogram, from 0: they cover 10 ms.
const Micros = 10_000

// Histogram counts durations from 0 to 137 s in bins that are at most 1/64 of the duration wide;
// longer ones count in the last bin. Durations below 10 ms also count in classes of 1 µs. It has a
// fixed size and no pointers, so it can lie in shared memory: one thread records, any number may
// read at the same time. The zero value is empty.
type Histogram struct {
	max   uint64
	count [bins]uint64
	micro [Micros]uint64
}

// bin returns the index of the bin that holds ns.
//
//go:nosplit
func bin(ns uint64) int {
	ns = min(ns, limitNs-1)
	e := max(0, bits.Len64(ns)-subBits-1)
	return e*perOctave + int(ns>>e)
}

// upper returns the largest duration in bin i, ns.
func upper(i int) int64 {
	e := max(0, i/perOctave-1)
	return int64(i-e*perOctave+1)<<e - 1
}

// Record counts one duration, ns; a negative one counts as 0. Only one thread
// may record.
//
// Its stores are plain: six atomic stores per tick would take as long as a third of the tick of a small plant. The Go memory
// model gives a reader of a word a value that was written to it, and no order between words is needed.
//
//go:nosplit
//go:norace
func (h *Histogram) Record(ns int64) {
	v := uint64(max(0, ns))
	if v > h.max {
		h.max = v
	}
	h.count[bin(v)]++
	if us := v / 1000; us < Micros {
		h.micro[us]++
	}
}

// N returns how many durations were recorded.
func (h *Histogram) N() (n uint64) {
	for i := range h.count {
		n += atomic.LoadUint64(&h.count[i])
	}
	return n
}

// Max returns the longest duration recorded, ns, exactly; 0 if there is none.
func (h *Histogram) Max() int64 { return int64(atomic.LoadUint64(&h.max)) }

// Quantile returns a duration, ns, that the share q of the recorded durations does not exceed. It
// is the upper end of their bin: at most 1/64 too long and never above Max. q is from 0 to 1; any
// other value gives Max. The result is 0 if nothing was recorded.
func (h *Histogram) Quantile(q float64) int64 {
	if !(q >= 0 && q < 1) {
		return h.Max()
	}
	rank := max(1, uint64(math.Ceil(q*float64(h.N()))))
	var sum uint64
	for i := range h.count[:bins-1] {
		sum += atomic.LoadUint64(&h.count[i])
		if sum >= rank {
			return min(upper(i), h.Max())
		}
	}

	return h.Max()
}

// Class is a range of durations in a histogram.
type Class struct {
	Upper int64  // longest duration of the class, ns
	N     uint64 // number of durations recorded
}

// Micro returns how many durations were from us to us+1 µs; 0 for us >= Micros.
func (h *Histogram) Micro(us int) uint64 {
	if us < 0 || us >= Micros {
		return 0
	}
	return atomic.LoadUint64(&h.micro[us])
}

// Copy returns the present counts. A duration recorded during the copy may be in some of them only.
func (h *Histogram) Copy() *Histogram {
	c := &Histogram{max: uint64(h.Max())}
	for i := range h.count {
		c.count[i] = atomic.LoadUint64(&h.count[i])
	}
	for i := range h.micro {
		c.micro[i] = atomic.LoadUint64(&h.micro[i])
	}
	return c
}

// Since returns the durations recorded in h, a copy, after an earlier copy of the same histogram.
// Its Max is h's if the longest duration is new, else the upper end of the bin of the longest new
// one.
func (h *Histogram) Since(before *Histogram) *Histogram {
	d := &Histogram{}
	last := -1
	for i := range h.count {
		d.count[i] = h.count[i] - before.count[i]
		if d.count[i] > 0 {
			last = i
		}
	}

	for i := range h.micro {
		d.micro[i] = h.micro[i] - before.micro[i]
	}
	switch {
	case last < 0:
	case h.max > before.max:
		d.max = h.max
	default:
		d.max = min(uint64(upper(last)), h.max)
	}

	return d
}

// Classes returns the classes with durations, the shortest first, per of equal width in each
// octave; per is a power of two up to 64. Longer durations count in the last class.
func (h *Histogram) Classes(per int) (list []Class) {
	size := perOctave / per
	for i := 0; i < bins; i += size {
		c := Class{Upper: upper(i + size - 1)}
		for j := range size {
			c.N += atomic.LoadUint64(&h.count[i+j])
		}
		if c.N > 0 {
			list = append(list, c)
		}
	}

	return list
}

// Merge adds the durations of another histogram.
func (h *Histogram) Merge(from *Histogram) {
	for i := range h.count {
		h.count[i] += atomic.LoadUint64(&from.count[i])
	}

	for i := range h.micro {
		h.micro[i] += atomic.LoadUint64(&from.micro[i])
	}
	h.max = max(h.max, uint64(from.Max()))
}

// histogramJSON is the file form of a histogram: the bins that are not empty.
type histogramJSON struct {
	Max  uint64      `json:"max_ns"`
	Bins [][2]uint64 `json:"bins"` // longest duration of the bin, ns; count
	Us   [][2]uint64 `json:"us"`   // lower end of the 1 µs class, µs; count
}

// MarshalJSON writes the bins that are not empty.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	v := histogramJSON{Max: uint64(h.Max()), Bins: [][2]uint64{}, Us: [][2]uint64{}}
	for i := range h.count {
		if c := atomic.LoadUint64(&h.count[i]); c > 0 {
			v.Bins = append(v.Bins, [2]uint64{uint64(upper(i)), c})
		}
	}

	for i := range h.micro {
		if c := atomic.LoadUint64(&h.micro[i]); c > 0 {
			v.Us = append(v.Us, [2]uint64{uint64(i), c})
		}
	}

	return json.Marshal(v)
}

// UnmarshalJSON reads the output of MarshalJSON.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var v histogramJSON
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*h = Histogram{max: v.Max}
	for _, b := range v.Bins {
		i := bin(b[0])
		if upper(i) != int64(b[0]) || b[0] >= limitNs {
			return fmt.Errorf("sched: histogram: no bin ends at %d ns", b[0])
		}
		h.count[i] += b[1]
	}

	for _, c := range v.Us {
		if c[0] >= Micros {
			return fmt.Errorf("sched: histogram: no class of 1 us begins at %d us", c[0])
		}
		h.micro[c[0]] += c[1]
	}

	return nil
}
