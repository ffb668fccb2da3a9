package assemble

import (
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/network"
)

// usedParts holds the states, signals, switches and event indicators of a plant that something
// reads: those that act on the plant, those that outputs and friction elements read, and those on
// which these depend. The index lists map from the lists of the plant to these.
type usedParts struct {
	states     []network.State
	signals    []network.Signal // plus one for constants where needed
	switches   []network.Region
	indicators []network.Indicator

	used                                     []bool // the states of the plant
	stateOf, signalOf, switchOf, indicatorOf []int
}

// prune finds the used parts.
func (a *assembly) prune() {
	p := a.Plant
	u := usage{Plant: p, states: make([]bool, len(p.States)), signals: make([]bool, len(p.Signals)),
		switches: make([]bool, len(p.Switches))}
	for _, in := range p.Inputs {
		u.markSignal(in.Signal)
	}
	for _, e := range p.Efforts {
		u.markForm(e.Value)
	}
	for _, k := range p.Frictions {
		u.markSignal(k.Signal)
		if k.Gap != nil {
			u.markState(k.Gap.State)
			u.markRegions(k.Gap.While)
			u.markForm(k.Opening)
		}
	}

	for _, o := range p.Outputs {
		u.markForm(o.Form)
	}
	for _, s := range p.Pulses {
		u.markState(s.State)
	}
	for _, n := range p.Nodes {
		if n.Driven > 0 {
			u.markState(n.Driven - 1)
		}
	}

	indicators := make([]bool, len(p.Indicators))
	for i, g := range p.Indicators {
		indicators[i] = u.indicatorUsed(g)
	}

	a.used = u.states
	a.states, a.stateOf = selectMarked(p.States, u.states)
	a.signals, a.signalOf = selectMarked(p.Signals, u.signals)
	a.switches, a.switchOf = selectMarked(p.Switches, u.switches)
	a.indicators, a.indicatorOf = selectMarked(p.Indicators, indicators)
}

// selectMarked returns the marked items of a list, and the new index of each item of the list.
func selectMarked[T any](list []T, marked []bool) (some []T, at []int) {
	for i, item := range list {
		at = append(at, len(some))
		if marked[i] {
			some = append(some, item)
		}
	}

	return some, at
}

// ops returns the operations of a law, with indices of used indicators.
func (k *usedParts) ops(l *network.Law) []model.Op {
	ops := slices.Clone(l.Ops)
	for i, op := range ops {
		if op.Code == model.If || op.Code == model.Side {
			ops[i].Index = k.indicatorOf[op.Index]
		}
	}

	return ops
}

// usage marks used parts.
type usage struct {
	*network.Plant
	states, signals, switches []bool
}

// markForm marks the states and signals of a form.
func (u *usage) markForm(f network.Form) {
	for _, m := range f {
		switch m.Kind {
		case network.OfState:
			u.markState(m.Index)
		case network.OfSignal:
			u.markSignal(m.Index)
		}
	}
}

// markState marks a state and the parts on which its rate depends.
func (u *usage) markState(i int) {
	if !u.states[i] {
		u.states[i] = true
		u.markForm(u.Plant.States[i].Der)
		for _, s := range u.Plant.Samples {
			if s.State == i {
				u.markLaw(&s.Value)
			}
		}
	}
}

// markSignal marks a signal and the parts on which it depends.
func (u *usage) markSignal(i int) {
	if u.signals[i] {
		return
	}
	u.signals[i] = true
	if l := u.Plant.Signals[i].Law; l != nil {
		u.markLaw(l)
	}

	if a := u.Plant.Signals[i].Affine; a != nil {
		u.markSwitch(a.Switch)
		for _, g := range a.Gates {
			u.markSwitch(g.Switch)
		}
	}
}

// markLaw marks the parts that a law reads.
func (u *usage) markLaw(l *network.Law) {
	for _, f := range l.Args {
		u.markForm(f)
	}
}

// markSwitch marks a switch and what its level reads.
func (u *usage) markSwitch(s int) {
	if u.switches[s] {
		return
	}
	u.switches[s] = true
	u.markForm(u.Plant.Switches[s].Form)
	u.markRegions(u.Plant.Switches[s].While)
	if w := u.Plant.Switches[s].Wrap; w != nil {
		u.markState(w.State)
	}
}

// markRegions marks the switches of a list of regions.
func (u *usage) markRegions(list []model.RegionSet) {
	for _, r := range list {
		u.markSwitch(r.Switch)
	}
}

// indicatorUsed reports whether an event indicator belongs to an element with a used law.
func (u *usage) indicatorUsed(g network.Indicator) bool {
	for i, s := range u.Plant.Signals {
		if u.signals[i] && s.Law != nil && (s.Name == g.Name || strings.HasPrefix(s.Name, g.Name+".")) {
			return true
		}
	}

	return false
}
