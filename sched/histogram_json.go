package sched

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
)

// Merge adds what another histogram has recorded, as if it had been recorded here.
func (h *Histogram) Merge(from *Histogram) {
	n := uint64(0)
	for i := range h.count {
		c := atomic.LoadUint64(&from.count[i])
		n += c
		h.count[i] += c
	}
	for i := range h.micro {
		h.micro[i] += atomic.LoadUint64(&from.micro[i])
	}
	h.n += n
	h.max = max(h.max, uint64(from.Max()))
}

// histogramJSON is a histogram as a file holds it: the bins in which anything is.
type histogramJSON struct {
	Max  uint64      `json:"max_ns"`
	Bins [][2]uint64 `json:"bins"` // longest duration of the bin, ns, and how many
	Us   [][2]uint64 `json:"us"`   // class of 1 µs, by its lower end, and how many
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

// UnmarshalJSON reads what MarshalJSON writes.
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
		h.n += b[1]
	}
	for _, c := range v.Us {
		if c[0] >= Micros {
			return fmt.Errorf("sched: histogram: no class of 1 us begins at %d us", c[0])
		}
		h.micro[c[0]] += c[1]
	}
	return nil
}
