package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// order places the signals: sources first, then affine ones, then laws, each after
// those it reads.
func (a *assembly) order() error {
	reads := make([][]int, a.m)
	for i, s := range a.signals {
		if s.law == nil {
			continue
		}
		for _, f := range s.law.args {
			v, err := a.measured(f, s.at, s.name)
			if err != nil {
				return err
			}
			for j := range a.m {
				if v[a.ofSignals()+j] != 0 && a.signals[j].law != nil && !slices.Contains(reads[i], j) {
					reads[i] = append(reads[i], j)
				}
			}
		}
	}
	a.place = make([]int, a.m)
	next := 0
	for i, s := range a.signals {
		a.place[i] = -1
		if s.law == nil && s.affine == nil {
			a.place[i] = next
			next++
		}
	}
	for i, s := range a.signals {
		if s.affine != nil {
			a.place[i] = next
			next++
		}
	}
	for next < a.m {
		before := next
		for i, s := range a.signals {
			ready := s.law != nil && a.place[i] < 0
			for _, j := range reads[i] {
				ready = ready && a.place[j] >= 0
			}
			if ready {
				a.place[i] = next
				next++
			}
		}
		if next == before {
			return a.loop(reads)
		}
	}
	return nil
}

// loop names laws that wait for each other: following what the first one left reads
// comes round.
func (a *assembly) loop(reads [][]int) error {
	i := slices.Index(a.place, -1)
	var path []int
	for !slices.Contains(path, i) {
		path = append(path, i)
		i = reads[i][slices.IndexFunc(reads[i], func(j int) bool { return a.place[j] < 0 })]
	}
	var names []string
	for _, j := range path[slices.Index(path, i):] {
		names = append(names, a.signals[j].name)
	}
	if len(names) == 1 {
		return errorf(a.Plant, a.signals[i].at, "%s depends on itself without a state between; give it a lag", names[0])
	}
	return errorf(a.Plant, a.signals[i].at, "%s depend on each other without a state between; give one of them a lag",
		strings.Join(names, ", "))
}

// ports fills names, signals and friction laws.
func (a *assembly) ports() *System {
	inf := math.Inf(1)
	sys := &System{Name: a.Name, Partition: a.partition}
	for _, f := range a.basis.nodes[:a.free] {
		n := &a.Plant.nodes[f]
		name := ".w"
		if n.domain == translational {
			name = ".v"
		}
		sys.States = append(sys.States, Port{Name: n.name + name, Unit: n.speedUnit(), Min: -inf, Max: inf})
	}
	for _, s := range a.states {
		sys.States = append(sys.States, Port{Name: s.name, Unit: s.unit, Min: -inf, Max: inf})
	}
	sys.Signals = make([]Signal, a.m)
	for i, s := range a.signals {
		sys.Signals[a.place[i]] = Signal{Name: s.name, Source: s.source, Affine: s.affine}
	}
	for _, in := range a.inputs {
		in.Signal = a.place[in.Signal]
		sys.Inputs = append(sys.Inputs, in)
	}
	for _, k := range a.frictions {
		f := k.Friction
		f.Signal = a.place[f.Signal]
		sys.Frictions = append(sys.Frictions, f)
	}
	for _, o := range a.outputs {
		sys.Outputs = append(sys.Outputs, o.Port)
	}
	for _, s := range a.pulses {
		s.State += a.free
		sys.Pulses = append(sys.Pulses, s)
	}
	return sys
}

// fill computes the matrices and the programs.
func (a *assembly) fill(sys *System) error {
	n, m, mc, p := a.n, a.m, a.mc, len(a.outputs)
	sys.A, sys.B, sys.Bc = make([]float64, n*n), make([]float64, n*m), make([]float64, n*mc)
	for i, r := range a.rates {
		a.split(r, sys.A[i*n:(i+1)*n], sys.B[i*m:(i+1)*m], sys.Bc[i*mc:(i+1)*mc])
	}
	sys.W = make([]float64, mc*n)
	for i, k := range a.frictions {
		copy(sys.W[i*n:(i+1)*n], a.resolve(k.rel.speeds(1)))
	}
	sys.E = make([]float64, n*n)
	for i := range a.basis.nodes {
		for j := range a.basis.nodes {
			massive := func(j int) bool { return j < a.free || j >= a.free+a.open }
			if massive(i) && massive(j) {
				sys.E[a.column(i)*n+a.column(j)] += a.inertia.At(i, j)
			}
		}
	}
	for i, s := range a.states {
		sys.E[(a.free+i)*n+a.free+i] += s.c
	}
	sys.C, sys.D, sys.Dc = make([]float64, p*n), make([]float64, p*m), make([]float64, p*mc)
	for i, o := range a.outputs {
		r, err := a.measured(o.form, o.at, fmt.Sprintf("output %q", o.Name))
		if err != nil {
			return err
		}
		a.split(r, sys.C[i*n:(i+1)*n], sys.D[i*m:(i+1)*m], sys.Dc[i*mc:(i+1)*mc])
	}
	if err := a.regions(sys); err != nil {
		return err
	}
	if err := a.gaps(sys); err != nil {
		return err
	}
	if err := a.converges(sys); err != nil {
		return err
	}
	if err := a.programs(sys); err != nil {
		return err
	}
	a.paces(sys)
	return nil
}

// regions fills the switches. What they depend on must be known before the torques.
func (a *assembly) regions(sys *System) error {
	for _, s := range a.switches {
		z := a.resolve(s.form)
		if largest(z[a.n:a.ofOne()]) > 0 {
			return refuse(a.Plant, s.Name, s.at, "its deflection or slip follows from the torques on a massless node; give that node an inertia")
		}
		s.Row, s.Const = z[:a.n:a.n], s.Const+z[a.ofOne()]
		sys.Switches = append(sys.Switches, s.Switch)
	}
	return nil
}

// split puts the parts of a form to rows of three matrices.
func (a *assembly) split(f, x, v, tau []float64) {
	copy(x, f[:a.n])
	for j := range a.m {
		v[a.place[j]] = f[a.ofSignals()+j]
	}
	if c := f[a.ofOne()]; c != 0 {
		v[a.place[a.constant]] += c
	}
	copy(tau, f[a.ofTorques():a.ofTorques()+a.mc])
}

// programs writes the laws and guards.
func (a *assembly) programs(sys *System) error {
	from := make([]int, a.m) // signal of the System -> of the file
	for i, j := range a.place {
		from[j] = i
	}
	for j, i := range from {
		s := a.signals[i]
		if s.law == nil {
			continue
		}
		p, err := a.program(s.law, s.at, s.name)
		if err != nil {
			return err
		}
		sys.Signals[j].Law = p
	}
	start := startSignals(sys)
	for j, i := range from {
		s, p := a.signals[i], sys.Signals[j].Law
		if p == nil {
			continue
		}
		resize(p, s.law.open, sys.X0, start)
		if k := s.law.loss; k > 0 {
			p.Slopes[0] = steepestLoss(a.losses[k-1], a.shares[k-1])
		}
		for _, k := range s.law.stiff {
			g := 0.0
			for q, r := range p.Args[k.rate].Row {
				g += r * sys.B[q*a.m+j]
			}
			if g != 0 { // twice as fast as the oscillation that the spring makes
				p.Slopes[k.rate] = max(p.Slopes[k.rate], 2*math.Sqrt(k.c/math.Abs(g)), k.own/math.Abs(g))
			}
		}
		follow(sys, p)
	}
	for _, g := range a.guards {
		p, err := a.program(&g.law, g.at, g.name)
		if err != nil {
			return err
		}
		sys.Guards = append(sys.Guards, *p)
	}
	return nil
}

// follow tells of a law how steeply it follows the state through the laws it reads, by
// arguments that no operation uses.
func follow(sys *System, p *Program) {
	for i := range p.Args {
		for k, j := range p.Args[i].Signal {
			read := sys.Signals[j].Law
			s := p.Slopes[i] * math.Abs(p.Args[i].Coef[k])
			if b := sys.Signals[j].Affine; b != nil && s > 0 {
				p.Args = append(p.Args, Functional{Row: sys.Switches[b.Switch].Row})
				p.Slopes = append(p.Slopes, s*largest(b.Slope))
			}
			if read == nil || s == 0 {
				continue
			}
			for q, f := range read.Args {
				if read.Slopes[q] > 0 && largest(f.Row) > 0 {
					p.Args = append(p.Args, Functional{Row: f.Row})
					p.Slopes = append(p.Slopes, s*read.Slopes[q])
				}
			}
		}
	}
}

func (a *assembly) program(l *law, at pos, what string) (*Program, error) {
	p := &Program{Slopes: slices.Clone(l.slopes), Ops: slices.Clone(l.ops), Tables: l.tables}
	for _, f := range l.args {
		v, err := a.measured(f, at, what)
		if err != nil {
			return nil, err
		}
		t := Functional{Const: v[a.ofOne()]}
		if row := v[:a.n:a.n]; largest(row) > 0 {
			t.Row = row
		}
		for j := range a.m {
			if c := v[a.ofSignals()+j]; c != 0 {
				t.Signal, t.Coef = append(t.Signal, a.place[j]), append(t.Coef, c)
			}
		}
		if tau := v[a.ofTorques():a.ofMassless()]; largest(tau) > 0 {
			t.Tau = tau
		}
		p.Args = append(p.Args, t)
	}
	if depth := stackDepth(p.Ops); depth > MaxStack {
		panic(fmt.Sprintf("model: a law needs %d places on the stack, more than %d", depth, MaxStack))
	}
	return p, nil
}

// stackDepth is how many values a list of operations holds at most.
func stackDepth(ops []Op) int {
	now, most := 0, 0
	for _, op := range ops {
		switch op.Code {
		case Push, Arg, Side:
			now++
		case Add, Sub, Mul, Div, Min, Max, Look2, If:
			now--
		}
		most = max(most, now)
	}
	return most
}
