package latency

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"lockstep/sched"
)

// Counts holds the counts and the largest latency of the wake-ups of one method.
type Counts struct {
	Max        int64 `json:"max_ns"`      // largest latency, exact
	Missed     int64 `json:"missed"`      // grid points without a wake-up
	OverPeriod int64 `json:"over_period"` // wake-ups at least one period late
	OffChart   int64 `json:"off_chart"`   // wake-ups at least 10 ms late, in no class of the histogram
	Samples    int64 `json:"samples"`     // wake-ups
}

// record holds the wake-up latencies of one turn. The C program and the measuring process write it
// as JSON.
type record struct {
	Counts
	Histogram map[int]int64   `json:"histogram"` // wake-ups by class, µs
	Missing   []sched.Missing `json:"missing"`   // rights and settings refused to the process
}

// newRecord converts a histogram to a record.
func newRecord(h *sched.Histogram) *record {
	n := int64(h.N())
	r := &record{Counts: Counts{Samples: n, Max: h.Max(), OffChart: n}, Histogram: map[int]int64{}}
	for us := range sched.Micros {
		if n := int64(h.Micro(us)); n > 0 {
			r.Histogram[us] = n
			r.OffChart -= n
		}
	}

	return r
}

// addClass adds n wake-ups of a class, µs, of a program that wakes up on a grid with a period, ns.
func (r *record) addClass(class, n, period int64) {
	points := class * 1000 / period // grid points missed by a wake-up of this class
	if class < sched.Micros {       // later wake-ups are off the chart
		r.Histogram[int(class)] += n
	} else {
		r.OffChart += n
	}

	if points > 0 {
		r.OverPeriod += n
		r.Missed += n * points
	}

	r.Samples += n
}

// quantile returns the latency, ns, that the share q of the wake-ups does not exceed, 0 < q <= 1;
// NaN without wake-ups. It interpolates linearly within a class: with whole µs, a change from 10 µs to
// 11 µs would change a ratio by a tenth. Wake-ups off the chart count as the largest.
func (r *record) quantile(q float64) float64 {
	if r.Samples <= 0 || !(q > 0 && q <= 1) {
		return math.NaN()
	}
	rank := int64(math.Ceil(q * float64(r.Samples)))
	for _, class := range slices.Sorted(maps.Keys(r.Histogram)) {
		n := r.Histogram[class]
		if rank <= n {
			inside := (float64(rank) - 0.5) / float64(n)
			return min((float64(class)+inside)*1e3, float64(r.Max))
		}

		rank -= n
	}

	return float64(r.Max)
}

// Figures summarizes the wake-up latencies of one method.
type Figures struct {
	P50  int64 `json:"p50_ns"`
	P99  int64 `json:"p99_ns"`
	P999 int64 `json:"p999_ns"`
	Counts
	RatioP50  *float64      `json:"ratio_p50"` // ratio to the C counterpart, median over the rounds; nil if not measured
	RatioP99  *float64      `json:"ratio_p99"`
	RatiosP50 []float64     `json:"ratios_p50,omitempty"` // the ratio of each round that has both, in increasing order
	RatiosP99 []float64     `json:"ratios_p99,omitempty"`
	PooledP50 *float64      `json:"ratio_pooled_p50"` // ratio of the quantiles over all rounds
	PooledP99 *float64      `json:"ratio_pooled_p99"`
	Against   string        `json:"against,omitempty"` // name of the C counterpart
	Histogram map[int]int64 `json:"histogram_us"`      // wake-ups by class, µs
}

// figures summarizes the rounds of one method. against has the records of its counterpart at the
// same index, nil if a round has none.
func figures(rounds, against []*record) *Figures {
	all := pool(rounds)
	if all.Samples == 0 {
		return nil
	}
	f := &Figures{
		P50: int64(all.quantile(0.5)), P99: int64(all.quantile(0.99)), P999: int64(all.quantile(0.999)),
		Counts: all.Counts, Histogram: all.Histogram,
	}
	f.RatiosP50, f.RatiosP99 = ratios(rounds, against, 0.5), ratios(rounds, against, 0.99)
	f.RatioP50, f.RatioP99 = median(f.RatiosP50), median(f.RatiosP99)
	ours, theirs := pool(paired(rounds, against)), pool(paired(against, rounds))
	f.PooledP50 = finite(ours.quantile(0.5) / theirs.quantile(0.5))
	f.PooledP99 = finite(ours.quantile(0.99) / theirs.quantile(0.99))
	return f
}

// paired returns the records of those rounds for which against has a record, too.
func paired(rounds, against []*record) (both []*record) {
	for i, r := range rounds {
		if i < len(against) && against[i] != nil {
			both = append(both, r)
		}
	}

	return both
}

// pool adds the records of all rounds.
func pool(rounds []*record) *record {
	all := &record{Histogram: map[int]int64{}}
	for _, r := range rounds {
		if r == nil {
			continue
		}
		all.Max = max(all.Max, r.Max)
		all.Missed += r.Missed
		all.OverPeriod += r.OverPeriod
		all.OffChart += r.OffChart
		all.Samples += r.Samples
		for class, n := range r.Histogram {
			all.Histogram[class] += n
		}
	}

	return all
}

// ratios returns the ratio of the quantiles of each round that has both, in increasing order.
func ratios(rounds, against []*record, q float64) (list []float64) {
	for i, r := range rounds {
		if i < len(against) && r != nil && against[i] != nil {
			if v := r.quantile(q) / against[i].quantile(q); finite(v) != nil {
				list = append(list, v)
			}
		}
	}

	slices.Sort(list)
	return list
}

// median returns the median of a sorted list; nil if the list is empty. It ignores a disturbance
// of one side in single rounds.
func median(list []float64) *float64 {
	n := len(list)
	if n == 0 {
		return nil
	}
	return finite((list[(n-1)/2] + list[n/2]) / 2)
}

// finite returns v; nil if v is NaN or infinite, which JSON cannot encode.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// parseRecord parses the output of the measuring process or of the C program.
func parseRecord(text []byte) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("invalid result: %w", err)
	}
	if r.Samples <= 0 {
		return nil, errors.New("invalid result: no wake-ups")
	}
	return r, nil
}
