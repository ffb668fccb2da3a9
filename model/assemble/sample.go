package assemble

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/network"
)

// tickValue is a used sample with the states that it reads, by their index in the System.
type tickValue struct {
	network.Sample
	args    [][]float64 // of its value, as forms
	direct  []bool
	viaLaws []bool
}

// fillSamples writes the samples of used states, each after those that set what it reads.
func (a *assembly) fillSamples(sys *model.System) {
	var list []tickValue
	for _, s := range a.Plant.Samples {
		if !a.used[s.State] {
			continue
		}
		q := tickValue{s, a.arguments(&s.Value, s.At, s.Name), make([]bool, a.n), make([]bool, a.n)}
		laws := make([]bool, a.m)
		for _, v := range q.args {
			a.markRead(v, q.direct, q.viaLaws, laws)
		}
		if state := a.freeCount + a.stateOf[s.State]; s.Direct && (q.direct[state] || q.viaLaws[state]) {
			refuse(a.Plant, s.Name, s.At, "it depends on itself at the same tick; put a unit_delay in the loop")
		}
		list = append(list, q)
	}

	changed := make([]bool, a.n) // since the laws were evaluated
	for _, i := range a.sampleOrder(list) {
		q := &list[i]
		s := q.Sample.Sample
		s.Value, s.Place = *a.program(&q.Value, q.args), fmt.Sprintf("%s:%d:%d", a.File, q.At.Line, q.At.Col)
		s.State = a.freeCount + a.stateOf[s.State]
		for j, reads := range q.viaLaws {
			s.Refresh = s.Refresh || reads && changed[j]
		}
		if s.Refresh {
			clear(changed)
		}
		if s.Delay > 0 {
			s.Rate = a.freeCount + a.stateOf[s.Rate]
		} else {
			changed[s.State] = true
		}
		sys.Samples = append(sys.Samples, s)
	}
}

// markRead marks the states that a form reads, directly and through laws; laws are those already marked.
func (a *assembly) markRead(form []float64, direct, viaLaws, laws []bool) {
	for j, c := range form[:a.n] {
		direct[j] = direct[j] || c != 0
	}
	for j := range a.m {
		if form[a.ofSignals()+j] == 0 || laws[j] {
			continue
		}
		laws[j] = true
		for _, v := range a.args[j] {
			a.markRead(v, viaLaws, viaLaws, laws)
		}
	}
}

// sampleOrder returns the order in which a tick sets the samples: an element after those whose states it reads at
// the tick, and the samples of one element in their own order. A delay changes nothing at the tick. Resets read
// the states before the resets of the tick: a reset comes before those whose states it reads.
func (a *assembly) sampleOrder(list []tickValue) (order []int) {
	placed := make([]bool, len(list))
	waits := func(i, j int) bool { // whether i comes after j
		if list[i].Name == list[j].Name {
			return j < i
		}
		reads := func(i, j int) bool {
			state := a.freeCount + a.stateOf[list[j].State]
			return list[j].Delay == 0 && (list[i].direct[state] || list[i].viaLaws[state])
		}
		if list[i].Reset && list[j].Reset {
			return reads(j, i)
		}
		return reads(i, j)
	}
	for len(order) < len(list) {
		next := slices.IndexFunc(placed, func(done bool) bool { return !done })
		ready := -1
		for i := next; i < len(list) && ready < 0; i++ {
			blocked := false
			for j := range list {
				blocked = blocked || !placed[j] && j != i && waits(i, j)
			}
			if !placed[i] && !blocked {
				ready = i
			}
		}
		if ready < 0 {
			a.refuseSampleLoop(list, placed, next, waits)
		}
		placed[ready] = true
		order = append(order, ready)
	}
	return order
}

// refuseSampleLoop names elements that wait for each other at a tick, from sample i on.
func (a *assembly) refuseSampleLoop(list []tickValue, placed []bool, i int, waits func(i, j int) bool) {
	var path []int
	for !slices.Contains(path, i) {
		path = append(path, i)
		for j := range list {
			if !placed[j] && j != i && waits(i, j) {
				i = j
				break
			}
		}
	}
	var names []string
	for _, j := range path[slices.Index(path, i):] {
		if !slices.Contains(names, list[j].Name) {
			names = append(names, list[j].Name)
		}
	}
	refuseAt(a.Plant, list[i].At, "%s sample each other at the same tick; put a unit_delay between them",
		strings.Join(names, ", "))
}
