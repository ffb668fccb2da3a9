package sched

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// The bins of a Histogram: 1 ns wide below 2·perOctave ns, and perOctave of
// equal width in each octave above, up to limitNs.
const (
	subBits   = 6
	perOctave = 1 << subBits // a bin is at most 1/64 of its value wide
	limitNs   = 1 << 37      // ns, 137 s: no tick is later than that and still of use
	bins      = (37 - subBits + 1) * perOctave
)

// Micros is how many classes of 1 µs a Histogram has, from 0: they reach to 10 ms.
const Micros = 10_000

// Histogram counts durations in ns, from 0 to 137 s, in bins that are at most
// 1/64 of the duration wide; what is longer counts in the last bin. Those below
// 10 ms also count in classes of 1 µs. It has a fixed size and no pointers, so
// that it can lie in memory that two processes share: one records, any number may
// read at the same time. The zero value is empty.
type Histogram struct {
	n, max uint64
	count  [bins]uint64
	micro  [Micros]uint64
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
//go:nosplit
func (h *Histogram) Record(ns int64) {
	v := uint64(max(0, ns))
	if v > h.max {
		atomic.StoreUint64(&h.max, v)
	}
	i := bin(v)
	atomic.StoreUint64(&h.count[i], h.count[i]+1)
	if us := v / 1000; us < Micros {
		atomic.StoreUint64(&h.micro[us], h.micro[us]+1)
	}
	atomic.StoreUint64(&h.n, h.n+1) // last: a reader finds at least n in the bins
}

// N returns how many durations were recorded.
func (h *Histogram) N() uint64 { return atomic.LoadUint64(&h.n) }

// Max returns the longest duration recorded, ns, exactly; 0 if there is none.
func (h *Histogram) Max() int64 { return int64(atomic.LoadUint64(&h.max)) }

// Quantile returns a duration, ns, that the share q of the recorded ones does
// not exceed: the upper end of their bin, at most 1/64 too long and never above
// Max. q is from 0 to 1; anything else gives Max. It is 0 if nothing was
// recorded.
func (h *Histogram) Quantile(q float64) int64 {
	n := h.N()
	if n == 0 || !(q >= 0 && q < 1) {
		return h.Max()
	}
	rank := max(1, uint64(math.Ceil(q*float64(n))))
	var sum uint64
	for i := range h.count[:bins-1] {
		sum += atomic.LoadUint64(&h.count[i])
		if sum >= rank {
			return min(upper(i), h.Max())
		}
	}
	return h.Max()
}

// Class is a part of a histogram.
type Class struct {
	Upper int64  // the longest duration that belongs to it, ns
	N     uint64 // of the durations recorded
}

// Micro returns how many durations were of us to us+1 µs; 0 from Micros on.
func (h *Histogram) Micro(us int) uint64 {
	if us < 0 || us >= Micros {
		return 0
	}
	return atomic.LoadUint64(&h.micro[us])
}

// Copy returns the counts as they are now. What is recorded meanwhile may be in some
// of them only.
func (h *Histogram) Copy() *Histogram {
	c := &Histogram{n: h.N(), max: uint64(h.Max())}
	for i := range h.count {
		c.count[i] = atomic.LoadUint64(&h.count[i])
	}
	for i := range h.micro {
		c.micro[i] = atomic.LoadUint64(&h.micro[i])
	}
	return c
}

// Since returns what was recorded in h, a copy, after an earlier copy of the same
// histogram. Its Max is that of h where the longest came since, else the upper end of
// the bin of the longest that did.
func (h *Histogram) Since(before *Histogram) *Histogram {
	d := &Histogram{}
	last := -1
	for i := range h.count {
		d.count[i] = h.count[i] - before.count[i]
		d.n += d.count[i]
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

// Classes returns the classes in which anything was recorded, the shortest durations
// first, per of equal width in each octave; per is a power of two up to 64. What is
// longer than the last class counts in it.
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
