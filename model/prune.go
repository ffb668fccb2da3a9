package model

import "strings"

// pruned is the plant without the states, laws and guards that nothing reads: what
// acts on it, what its outputs and friction elements read, and what these depend on,
// stays.
func pruned(p *Plant) *Plant {
	u := usage{Plant: p, states: make([]bool, len(p.states)), signals: make([]bool, len(p.signals)),
		switches: make([]bool, len(p.switches))}
	for _, in := range p.inputs {
		u.signal(in.Signal)
	}
	for _, e := range p.efforts {
		u.form(e.value)
	}
	for _, k := range p.frictions {
		u.signal(k.Signal)
		if k.Gap != nil {
			u.state(k.Gap.State)
		}
	}
	for _, o := range p.outputs {
		u.form(o.form)
	}
	for _, s := range p.pulses {
		u.state(s.State)
	}
	for _, n := range p.nodes {
		if n.driven > 0 {
			u.state(n.driven - 1)
		}
	}
	return u.keep()
}

// usage marks what is needed.
type usage struct {
	*Plant
	states, signals, switches []bool
}

func (u *usage) form(f form) {
	for _, m := range f {
		switch m.kind {
		case ofState:
			u.state(m.index)
		case ofSignal:
			u.signal(m.index)
		}
	}
}

func (u *usage) state(i int) {
	if !u.states[i] {
		u.states[i] = true
		u.form(u.Plant.states[i].der)
	}
}

func (u *usage) signal(i int) {
	if u.signals[i] {
		return
	}
	u.signals[i] = true
	if l := u.Plant.signals[i].law; l != nil {
		for _, f := range l.args {
			u.form(f)
		}
	}
	if a := u.Plant.signals[i].affine; a != nil {
		u.switches[a.Switch] = true
		u.form(u.Plant.switches[a.Switch].form)
	}
}

// guard tells whether a guard belongs to an element with a law that is needed.
func (u *usage) guard(g guard) bool {
	for i, s := range u.Plant.signals {
		if u.signals[i] && s.law != nil && (s.name == g.name || strings.HasPrefix(s.name, g.name+".")) {
			return true
		}
	}
	return false
}

// keep copies the plant with what is marked, everything renumbered.
func (u *usage) keep() *Plant {
	p := *u.Plant
	at := map[measureKind][]int{ofState: number(u.states), ofSignal: number(u.signals)}
	move := func(f form) form {
		out := make(form, len(f))
		for i, m := range f {
			if list, ok := at[m.kind]; ok {
				m.index = list[m.index]
			}
			out[i] = m
		}
		return out
	}
	guards := u.keepGuards(&p, move)
	switches := number(u.switches)
	p.states, p.signals, p.switches = nil, nil, nil
	for i, s := range u.Plant.switches {
		if u.switches[i] {
			s.form = move(s.form)
			p.switches = append(p.switches, s)
		}
	}
	for i, s := range u.Plant.states {
		if u.states[i] {
			s.der = move(s.der)
			p.states = append(p.states, s)
		}
	}
	for i, s := range u.Plant.signals {
		if !u.signals[i] {
			continue
		}
		if s.law != nil {
			l := moved(*s.law, move, guards)
			s.law = &l
		}
		if s.affine != nil {
			a := *s.affine
			a.Switch = switches[a.Switch]
			s.affine = &a
		}
		p.signals = append(p.signals, s)
	}
	p.nodes = append([]node(nil), p.nodes...)
	for i := range p.nodes {
		if d := p.nodes[i].driven; d > 0 {
			p.nodes[i].driven = at[ofState][d-1] + 1
		}
	}
	p.pushes = append([]push(nil), p.pushes...)
	for i := range p.pushes {
		p.pushes[i].own = at[ofSignal][p.pushes[i].own]
	}
	renumber(&p, move, at[ofSignal])
	return &p
}

// keepGuards copies the guards that are needed and returns their new places.
func (u *usage) keepGuards(p *Plant, move func(form) form) []int {
	keeps := make([]bool, len(u.guards))
	for i, g := range u.guards {
		keeps[i] = u.guard(g)
	}
	guards := number(keeps)
	p.guards = nil
	for i, g := range u.guards {
		if keeps[i] {
			p.guards = append(p.guards, guard{g.name, g.at, moved(g.law, move, guards)})
		}
	}
	return guards
}

// renumber moves what efforts, friction elements, inputs and outputs read.
func renumber(p *Plant, move func(form) form, signals []int) {
	p.efforts = append([]effort(nil), p.efforts...)
	for i := range p.efforts {
		p.efforts[i].value = move(p.efforts[i].value)
	}
	p.frictions = append([]friction(nil), p.frictions...)
	for i := range p.frictions {
		p.frictions[i].Signal = signals[p.frictions[i].Signal]
		if g := p.frictions[i].Gap; g != nil {
			moved := *g
			moved.State = move(stateOf(g.State))[0].index
			p.frictions[i].Gap = &moved
		}
	}
	p.inputs = append([]Input(nil), p.inputs...)
	for i := range p.inputs {
		p.inputs[i].Signal = signals[p.inputs[i].Signal]
	}
	p.pulses = append([]Pulses(nil), p.pulses...)
	for i := range p.pulses {
		p.pulses[i].State = move(stateOf(p.pulses[i].State))[0].index
	}
	p.outputs = append([]output(nil), p.outputs...)
	for i := range p.outputs {
		p.outputs[i].form = move(p.outputs[i].form)
	}
}

// moved is the law with its arguments and guards renumbered.
func moved(l law, move func(form) form, guards []int) law {
	args := l.args
	l.args = nil
	for _, f := range args {
		l.args = append(l.args, move(f))
	}
	l.ops = append([]Op(nil), l.ops...)
	for i, op := range l.ops {
		if op.Code == If || op.Code == Side {
			l.ops[i].Index = guards[op.Index]
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
