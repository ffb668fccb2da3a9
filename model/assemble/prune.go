package assemble

import (
	"strings"

	"lockstep/model"
	"lockstep/model/network"
)

// pruned is the plant without the states, laws and guards that nothing reads: what
// acts on it, what its outputs and friction elements read, and what these depend on,
// stays.
func pruned(p *network.Plant) *network.Plant {
	u := usage{Plant: p, states: make([]bool, len(p.States)), signals: make([]bool, len(p.Signals)),
		switches: make([]bool, len(p.Switches))}
	for _, in := range p.Inputs {
		u.signal(in.Signal)
	}
	for _, e := range p.Efforts {
		u.form(e.Value)
	}
	for _, k := range p.Frictions {
		u.signal(k.Signal)
		if k.Gap != nil {
			u.state(k.Gap.State)
		}
	}
	for _, o := range p.Outputs {
		u.form(o.Form)
	}
	for _, s := range p.Pulses {
		u.state(s.State)
	}
	for _, n := range p.Nodes {
		if n.Driven > 0 {
			u.state(n.Driven - 1)
		}
	}
	return u.keep()
}

// usage marks what is needed.
type usage struct {
	*network.Plant
	states, signals, switches []bool
}

func (u *usage) form(f network.Form) {
	for _, m := range f {
		switch m.Kind {
		case network.OfState:
			u.state(m.Index)
		case network.OfSignal:
			u.signal(m.Index)
		}
	}
}

func (u *usage) state(i int) {
	if !u.states[i] {
		u.states[i] = true
		u.form(u.Plant.States[i].Der)
	}
}

func (u *usage) signal(i int) {
	if u.signals[i] {
		return
	}
	u.signals[i] = true
	if l := u.Plant.Signals[i].Law; l != nil {
		for _, f := range l.Args {
			u.form(f)
		}
	}
	if a := u.Plant.Signals[i].Affine; a != nil {
		u.switches[a.Switch] = true
		u.form(u.Plant.Switches[a.Switch].Form)
	}
}

// guard tells whether a guard belongs to an element with a law that is needed.
func (u *usage) guard(g network.Guard) bool {
	for i, s := range u.Plant.Signals {
		if u.signals[i] && s.Law != nil && (s.Name == g.Name || strings.HasPrefix(s.Name, g.Name+".")) {
			return true
		}
	}
	return false
}

// keep copies the plant with what is marked, everything renumbered.
func (u *usage) keep() *network.Plant {
	p := *u.Plant
	at := map[network.MeasureKind][]int{network.OfState: number(u.states), network.OfSignal: number(u.signals)}
	move := func(f network.Form) network.Form {
		out := make(network.Form, len(f))
		for i, m := range f {
			if list, ok := at[m.Kind]; ok {
				m.Index = list[m.Index]
			}
			out[i] = m
		}
		return out
	}
	guards := u.keepGuards(&p, move)
	switches := number(u.switches)
	p.States, p.Signals, p.Switches = nil, nil, nil
	for i, s := range u.Plant.Switches {
		if u.switches[i] {
			s.Form = move(s.Form)
			p.Switches = append(p.Switches, s)
		}
	}
	for i, s := range u.Plant.States {
		if u.states[i] {
			s.Der = move(s.Der)
			p.States = append(p.States, s)
		}
	}
	for i, s := range u.Plant.Signals {
		if !u.signals[i] {
			continue
		}
		if s.Law != nil {
			l := moved(*s.Law, move, guards)
			s.Law = &l
		}
		if s.Affine != nil {
			a := *s.Affine
			a.Switch = switches[a.Switch]
			s.Affine = &a
		}
		p.Signals = append(p.Signals, s)
	}
	p.Nodes = append([]network.Node(nil), p.Nodes...)
	for i := range p.Nodes {
		if d := p.Nodes[i].Driven; d > 0 {
			p.Nodes[i].Driven = at[network.OfState][d-1] + 1
		}
	}
	p.ContactLosses = append([]network.ContactLoss(nil), p.ContactLosses...)
	for i := range p.ContactLosses {
		p.ContactLosses[i].Own = at[network.OfSignal][p.ContactLosses[i].Own]
	}
	renumber(&p, move, at[network.OfSignal])
	return &p
}

// keepGuards copies the guards that are needed and returns their new places.
func (u *usage) keepGuards(p *network.Plant, move func(network.Form) network.Form) []int {
	keeps := make([]bool, len(u.Guards))
	for i, g := range u.Guards {
		keeps[i] = u.guard(g)
	}
	guards := number(keeps)
	p.Guards = nil
	for i, g := range u.Guards {
		if keeps[i] {
			p.Guards = append(p.Guards, network.Guard{Name: g.Name, At: g.At, Law: moved(g.Law, move, guards)})
		}
	}
	return guards
}

// renumber moves what efforts, friction elements, inputs and outputs read.
func renumber(p *network.Plant, move func(network.Form) network.Form, signals []int) {
	p.Efforts = append([]network.Effort(nil), p.Efforts...)
	for i := range p.Efforts {
		p.Efforts[i].Value = move(p.Efforts[i].Value)
	}
	p.Frictions = append([]network.Friction(nil), p.Frictions...)
	for i := range p.Frictions {
		p.Frictions[i].Signal = signals[p.Frictions[i].Signal]
		if g := p.Frictions[i].Gap; g != nil {
			moved := *g
			moved.State = move(network.StateOf(g.State))[0].Index
			p.Frictions[i].Gap = &moved
		}
	}
	p.Inputs = append([]model.Input(nil), p.Inputs...)
	for i := range p.Inputs {
		p.Inputs[i].Signal = signals[p.Inputs[i].Signal]
	}
	p.Pulses = append([]model.Pulses(nil), p.Pulses...)
	for i := range p.Pulses {
		p.Pulses[i].State = move(network.StateOf(p.Pulses[i].State))[0].Index
	}
	p.Outputs = append([]network.Output(nil), p.Outputs...)
	for i := range p.Outputs {
		p.Outputs[i].Form = move(p.Outputs[i].Form)
	}
}

// moved is the law with its arguments and guards renumbered.
func moved(l network.Law, move func(network.Form) network.Form, guards []int) network.Law {
	args := l.Args
	l.Args = nil
	for _, f := range args {
		l.Args = append(l.Args, move(f))
	}
	l.Ops = append([]model.Op(nil), l.Ops...)
	for i, op := range l.Ops {
		if op.Code == model.If || op.Code == model.Side {
			l.Ops[i].Index = guards[op.Index]
		}
	}
	return l
}

// number counts the marked ones: their new places.
func number(marked []bool) []int {
	at, n := make([]int, len(marked)), 0
	for i, m := range marked {
		at[i] = n
		if m {
			n++
		}
	}
	return at
}
