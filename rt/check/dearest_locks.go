package check

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"lockstep/model/kernel"
	"lockstep/rt/bench"
)

// lockSet says which friction elements hold: bit i is the i-th. Of a plant with more
// than 64 only their number is kept, in Held.
type lockSet struct {
	kappa uint64
	held  int
}

// modesIn are the outputs that are the modes of the friction elements.
func modesIn(t *kernel.Tables) (list []int) {
	for _, name := range t.Frictions {
		list = append(list, bench.PortIndex(t.Outputs, name+".mode"))
	}
	return list
}

// locked reads the lock set from the outputs of a tick.
func locked(y []float64, modes []int) (s lockSet) {
	for i, at := range modes {
		if y[at] != float64(kernel.Stuck) {
			continue
		}
		s.held++
		if len(modes) <= 64 {
			s.kappa |= 1 << i
		}
	}
	return s
}

// WorstCase is what a tick of a bench's plant costs on this host, in processor time,
// under everything that can be asked of it. Times are in ns.
type WorstCase struct {
	PeriodNs  int64          `json:"period_ns"`
	DearestNs int64          `json:"dearest_ns"`
	Share     float64        `json:"share"`    // of the period
	Under     string         `json:"under"`    // the exercise with the dearest tick
	Elements  []string       `json:"elements"` // friction elements
	Exercises []ExerciseCost `json:"exercises"`
	Classes   []LockCost     `json:"classes"`   // by the number of elements that hold, in order
	Sets      []LockCost     `json:"lock_sets"` // each that was reached, the dearest first
	More      int            `json:"lock_sets_left_out,omitempty"`
	Faults    []string       `json:"faults,omitempty"` // exercises in which a state was no longer finite
}

// ExerciseCost is what the ticks of an exercise cost, each measured several times, of
// which the fastest counts.
type ExerciseCost struct {
	Name      string `json:"name"`
	Ticks     int    `json:"ticks"`
	Times     int    `json:"times"`
	P50       int64  `json:"p50_ns"`
	DearestNs int64  `json:"dearest_ns"`
}

// LockCost is what the ticks cost that ended in a lock set, or in one of a class.
type LockCost struct {
	Held      int      `json:"held"`             // friction elements that hold
	Locked    []string `json:"locked,omitempty"` // their names, of a lock set; none of a class
	Sets      int      `json:"sets"`             // different ones
	Ticks     int      `json:"ticks"`
	P50       int64    `json:"p50_ns"`
	DearestNs int64    `json:"dearest_ns"`
	Share     float64  `json:"share"` // of the period, by the dearest
	Under     string   `json:"under"` // the exercise with the dearest
}

// mostSets is how many lock sets a WorstCase lists.
const mostSets = 1024

// MeasureWorstTick measures what a tick of the plant costs, by lock set, as `lockstep check`
// does it: with the table kernel, on the CPU that it finds itself on.
func MeasureWorstTick(h *bench.Handover) (*WorstCase, error) {
	list, err := measured(h.Bench, h.Tables)
	if err != nil {
		return nil, err
	}
	w := &WorstCase{PeriodNs: h.Tables.PeriodNs, Elements: h.Tables.Frictions}
	for _, e := range list {
		sorted := slices.Sorted(slices.Values(e.cost))
		top := sorted[len(sorted)-1]
		w.Exercises = append(w.Exercises, ExerciseCost{e.name, len(sorted), e.times, sorted[len(sorted)/2], top})
		if top > w.DearestNs {
			w.DearestNs, w.Under = top, e.name
		}
		if e.fault != "" {
			w.Faults = append(w.Faults, fmt.Sprintf("under %s the state %s is no longer finite", e.name, e.fault))
		}
	}
	w.Share = float64(w.DearestNs) / float64(w.PeriodNs)
	w.Classes = w.group(list, func(s lockSet) lockSet { return lockSet{held: s.held} })
	slices.SortFunc(w.Classes, func(a, b LockCost) int { return a.Held - b.Held })
	if len(w.Elements) <= 64 {
		w.Sets = w.group(list, func(s lockSet) lockSet { return s })
		w.More = max(0, len(w.Sets)-mostSets)
		w.Sets = w.Sets[:len(w.Sets)-w.More]
	}
	return w, nil
}

// group sums the ticks up by a key of their lock sets, the dearest group first.
func (w *WorstCase) group(list []*exercise, key func(lockSet) lockSet) (groups []LockCost) {
	costs, sets, most := map[lockSet][]int64{}, map[lockSet]map[lockSet]bool{}, map[lockSet]LockCost{}
	for _, e := range list {
		for i, ns := range e.cost {
			k := key(e.locks[i])
			costs[k] = append(costs[k], ns)
			if sets[k] == nil {
				sets[k] = map[lockSet]bool{}
			}
			sets[k][e.locks[i]] = true
			if ns > most[k].DearestNs {
				most[k] = LockCost{DearestNs: ns, Under: e.name}
			}
		}
	}
	for k, g := range most {
		slices.Sort(costs[k])
		g.Held, g.Sets, g.Ticks, g.P50 = k.held, len(sets[k]), len(costs[k]), costs[k][len(costs[k])/2]
		g.Share = float64(g.DearestNs) / float64(w.PeriodNs)
		for rest := k.kappa; rest != 0; rest &= rest - 1 {
			g.Locked = append(g.Locked, w.Elements[bits.TrailingZeros64(rest)])
		}
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b LockCost) int {
		return cmp.Or(cmp.Compare(b.DearestNs, a.DearestNs), slices.Compare(a.Locked, b.Locked))
	})
	return groups
}
