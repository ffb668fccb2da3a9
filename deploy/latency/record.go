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

// Counts are those of the wake-ups of one method.
type Counts struct {
	Max        int64 `json:"max_ns"`      // exactly
	Missed     int64 `json:"missed"`      // grid points that passed without a wake-up of their own
	OverPeriod int64 `json:"over_period"` // wake-ups at least one period late
	OffChart   int64 `json:"off_chart"`   // wake-ups at least 10 ms late, in no class of the histogram
	Samples    int64 `json:"samples"`     // wake-ups
}

// record is how late the wake-ups of one method were. The C program and the
// measuring process write it as JSON.
type record struct {
	Counts
	Histogram map[int]int64   `json:"histogram"` // class in µs: wake-ups
	Missing   []sched.Missing `json:"missing"`   // what the host refused to the process
}

// newRecord is what a histogram counted.
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

// quantile returns the lateness, ns, that the share q of the wake-ups does not
// exceed, 0 < q <= 1; NaN if there are none. Inside a class the wake-ups count as
// evenly spread, for every method alike: a ratio of two whole µs near 10 would
// move by a tenth with one of them. What is off the chart counts as the largest.
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

// Figures are how late the wake-ups of one method were.
type Figures struct {
	P50  int64 `json:"p50_ns"`
	P99  int64 `json:"p99_ns"`
	P999 int64 `json:"p999_ns"`
	Counts
	RatioP50  *float64      `json:"ratio_p50"` // to the C counterpart; nil: it was not measured
	RatioP99  *float64      `json:"ratio_p99"`
	PooledP50 *float64      `json:"ratio_pooled_p50"` // of the quantiles over all rounds
	PooledP99 *float64      `json:"ratio_pooled_p99"`
	Against   string        `json:"against,omitempty"` // the C counterpart
	Histogram map[int]int64 `json:"histogram_us"`      // class in µs: wake-ups
}

// figures sums up the rounds of one method; against are those of its counterpart,
// at the same index, nil where a round has none.
func figures(rounds, against []*record) *Figures {
	all := pool(rounds)
	if all.Samples == 0 {
		return nil
	}
	f := &Figures{
		P50: int64(all.quantile(0.5)), P99: int64(all.quantile(0.99)), P999: int64(all.quantile(0.999)),
		Counts: all.Counts, Histogram: all.Histogram,
	}
	f.RatioP50, f.RatioP99 = ratio(rounds, against, 0.5), ratio(rounds, against, 0.99)
	ours, theirs := pool(with(rounds, against)), pool(with(against, rounds))
	f.PooledP50 = number(ours.quantile(0.5) / theirs.quantile(0.5))
	f.PooledP99 = number(ours.quantile(0.99) / theirs.quantile(0.99))
	return f
}

// with are those of the rounds in which others were measured, too.
func with(rounds, others []*record) (both []*record) {
	for i, r := range rounds {
		if i < len(others) && others[i] != nil {
			both = append(both, r)
		}
	}

	return both
}

// pool adds up the rounds.
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

// ratio is the median over the rounds of the ratio of their quantiles: what a
// stranger's burst in one round does to one side does not count. nil: no round
// has both.
func ratio(rounds, against []*record, q float64) *float64 {
	var list []float64
	for i, r := range rounds {
		if i < len(against) && r != nil && against[i] != nil {
			if v := r.quantile(q) / against[i].quantile(q); number(v) != nil {
				list = append(list, v)
			}
		}
	}

	n := len(list)
	if n == 0 {
		return nil
	}
	slices.Sort(list)
	return number((list[(n-1)/2] + list[n/2]) / 2)
}

// number is v, or nil where JSON has no word for it.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// parseRecord reads what a measuring process of ours or the C program wrote.
func parseRecord(text []byte) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("its result: %w", err)
	}
	if r.Samples <= 0 {
		return nil, errors.New("its result has no wake-ups")
	}
	return r, nil
}
