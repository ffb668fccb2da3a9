package check

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"lockstep/model/kernel"
	"lockstep/rt/bench"
	"lockstep/rt/progress"
)

// lockSet is a set of locked friction elements. For a plant with more than 64 elements only
// their number is known.
type lockSet struct {
	kappa  uint64 // bit i: friction element i is locked
	locked int    // number of locked elements
}

// modeOutputs returns the indices of the outputs with the modes of the friction elements.
func modeOutputs(t *kernel.Tables) (list []int) {
	for _, name := range t.Frictions {
		list = append(list, bench.PortIndex(t.Outputs, name+".mode"))
	}
	return list
}

// lockSetOf returns the lock set in the outputs of a tick.
func lockSetOf(y []float64, modes []int) (s lockSet) {
	for i, at := range modes {
		if y[at] != float64(kernel.Stuck) {
			continue
		}
		s.locked++
		if len(modes) <= 64 {
			s.kappa |= 1 << i
		}
	}

	return s
}

// WorstCase is the worst tick of a bench's plant on this host, measured in processor time
// under all exercises. Times are in ns.
type WorstCase struct {
	PeriodNs  int64          `json:"period_ns"`
	WorstNs   int64          `json:"dearest_ns"`
	Share     float64        `json:"share"`    // share of the period
	Under     string         `json:"under"`    // exercise with the worst tick
	Elements  []string       `json:"elements"` // names of the friction elements
	Exercises []ExerciseCost `json:"exercises"`
	Classes   []LockCost     `json:"classes"`   // costs by number of locked elements, in order
	Sets      []LockCost     `json:"lock_sets"` // costs of the lock sets reached, the worst first
	More      int            `json:"lock_sets_left_out,omitempty"`
	Faults    []string       `json:"faults,omitempty"` // exercises in which a state became non-finite
}

// ExerciseCost is the cost of the ticks of an exercise; each tick counts with the least of
// its measurements, ns.
type ExerciseCost struct {
	Name    string `json:"name"`
	Ticks   int    `json:"ticks"`
	Times   int    `json:"times"`
	P50     int64  `json:"p50_ns"`
	WorstNs int64  `json:"dearest_ns"`
}

// LockCost is the cost of the ticks that ended in a lock set, or in a class of lock sets, ns.
type LockCost struct {
	Held    int      `json:"held"`             // number of locked friction elements
	Locked  []string `json:"locked,omitempty"` // names of the locked elements of a lock set; empty for a class
	Sets    int      `json:"sets"`             // number of different lock sets
	Ticks   int      `json:"ticks"`
	P50     int64    `json:"p50_ns"`
	WorstNs int64    `json:"dearest_ns"`
	Share   float64  `json:"share"` // share of the period, of the worst tick
	Under   string   `json:"under"` // exercise with the worst tick
}

// maxLockSets limits the lock sets that a WorstCase lists.
const maxLockSets = 1024

// MeasureWorstTick measures the worst tick of the plant and the cost by lock set, as
// `lockstep check` does: with the table kernel, on the CPU of the caller. line shows the progress; nil: none.
func MeasureWorstTick(h *bench.Handover, line *progress.Line) (*WorstCase, error) {
	defer line.End()
	p, err := newCheckedBench(h)
	if err != nil {
		return nil, err
	}
	list, err := p.exercises(line)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		e.run()
	}
	return p.worst(list), nil
}

// worst summarizes the exercises of a plant.
func (p *checkedPlant) worst(list []*exercise) *WorstCase {
	w := &WorstCase{PeriodNs: p.tables.PeriodNs, Elements: p.tables.Frictions}
	for _, e := range list {
		w.Exercises = append(w.Exercises, e.ExerciseCost)
		if e.WorstNs > w.WorstNs {
			w.WorstNs, w.Under = e.WorstNs, e.Name
		}
		if e.fault != "" {
			w.Faults = append(w.Faults, fmt.Sprintf("under %s the state %s is no longer finite", e.Name, e.fault))
		}
	}

	w.Share = float64(w.WorstNs) / float64(w.PeriodNs)
	w.Classes = w.group(list, func(s lockSet) lockSet { return lockSet{locked: s.locked} })
	slices.SortFunc(w.Classes, func(a, b LockCost) int { return a.Held - b.Held })
	if len(w.Elements) <= 64 {
		w.Sets = w.group(list, func(s lockSet) lockSet { return s })
		w.More = max(0, len(w.Sets)-maxLockSets)
		w.Sets = w.Sets[:len(w.Sets)-w.More]
	}

	return w
}

// group groups the ticks by a key of their lock sets, the worst group first.
func (w *WorstCase) group(list []*exercise, key func(lockSet) lockSet) (groups []LockCost) {
	costs, sets, most := map[lockSet][]int64{}, map[lockSet]map[lockSet]bool{}, map[lockSet]LockCost{}
	for _, e := range list {
		for i, ns := range e.costNs {
			k := key(e.locks[i])
			costs[k] = append(costs[k], ns)
			if sets[k] == nil {
				sets[k] = map[lockSet]bool{}
			}
			sets[k][e.locks[i]] = true
			if ns > most[k].WorstNs {
				most[k] = LockCost{WorstNs: ns, Under: e.Name}
			}
		}
	}

	for k, g := range most {
		slices.Sort(costs[k])
		g.Held, g.Sets, g.Ticks, g.P50 = k.locked, len(sets[k]), len(costs[k]), costs[k][len(costs[k])/2]
		g.Share = float64(g.WorstNs) / float64(w.PeriodNs)
		for rest := k.kappa; rest != 0; rest &= rest - 1 {
			g.Locked = append(g.Locked, w.Elements[bits.TrailingZeros64(rest)])
		}
		groups = append(groups, g)
	}

	slices.SortFunc(groups, func(a, b LockCost) int {
		return cmp.Or(cmp.Compare(b.WorstNs, a.WorstNs), slices.Compare(a.Locked, b.Locked))
	})
	return groups
}
