package assemble

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// order places the signals: sources first, then affine ones, then laws, each after
// those it reads.
func (a *assembly) order() error {
	reads := make([][]int, a.m)
	for i, s := range a.signals {
		if s.Law == nil {
			continue
		}
		for _, f := range s.Law.Args {
			v, err := a.measured(f, s.At, s.Name)
			if err != nil {
				return err
			}
			for j := range a.m {
				if v[a.ofSignals()+j] != 0 && a.signals[j].Law != nil && !slices.Contains(reads[i], j) {
					reads[i] = append(reads[i], j)
				}
			}
		}
	}
	a.place = make([]int, a.m)
	next := 0
	for i, s := range a.signals {
		a.place[i] = -1
		if s.Law == nil && s.Affine == nil {
			a.place[i] = next
			next++
		}
	}
	for i, s := range a.signals {
		if s.Affine != nil {
			a.place[i] = next
			next++
		}
	}
	for next < a.m {
		before := next
		for i, s := range a.signals {
			ready := s.Law != nil && a.place[i] < 0
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
		names = append(names, a.signals[j].Name)
	}
	if len(names) == 1 {
		return errorf(a.Plant, a.signals[i].At, "%s depends on itself without a state between; give it a lag", names[0])
	}
	return errorf(a.Plant, a.signals[i].At, "%s depend on each other without a state between; give one of them a lag",
		strings.Join(names, ", "))
}

// ports fills names, signals and friction laws.
func (a *assembly) ports() *model.System {
	inf := math.Inf(1)
	sys := &model.System{Name: a.Name, Partition: a.Partition}
	for _, f := range a.basis.nodes[:a.free] {
		n := &a.Plant.Nodes[f]
		name := ".w"
		if n.Domain == network.Translational {
			name = ".v"
		}
		sys.States = append(sys.States, units.Port{Name: n.Name + name, Unit: n.SpeedUnit(), Min: -inf, Max: inf})
	}
	for _, s := range a.States {
		sys.States = append(sys.States, units.Port{Name: s.Name, Unit: s.Unit, Min: -inf, Max: inf})
	}
	sys.Signals = make([]model.Signal, a.m)
	for i, s := range a.signals {
		sys.Signals[a.place[i]] = model.Signal{Name: s.Name, Source: s.Source, Affine: s.Affine}
	}
	for _, in := range a.Inputs {
		in.Signal = a.place[in.Signal]
		sys.Inputs = append(sys.Inputs, in)
	}
	for _, k := range a.Frictions {
		f := k.Friction
		f.Signal = a.place[f.Signal]
		sys.Frictions = append(sys.Frictions, f)
	}
	for _, o := range a.Outputs {
		sys.Outputs = append(sys.Outputs, o.Port)
	}
	for _, s := range a.Pulses {
		s.State += a.free
		sys.Pulses = append(sys.Pulses, s)
	}
	return sys
}

// fill computes the matrices and the programs.
func (a *assembly) fill(sys *model.System) error {
	n, m, mc, p := a.n, a.m, a.mc, len(a.Outputs)
	sys.A, sys.B, sys.Bc = make([]float64, n*n), make([]float64, n*m), make([]float64, n*mc)
	for i, r := range a.rates {
		a.split(r, sys.A[i*n:(i+1)*n], sys.B[i*m:(i+1)*m], sys.Bc[i*mc:(i+1)*mc])
	}
	sys.W = make([]float64, mc*n)
	for i, k := range a.Frictions {
		copy(sys.W[i*n:(i+1)*n], a.resolve(k.Rel.Speeds(1)))
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
	for i, s := range a.States {
		sys.E[(a.free+i)*n+a.free+i] += s.C
	}
	sys.C, sys.D, sys.Dc = make([]float64, p*n), make([]float64, p*m), make([]float64, p*mc)
	for i, o := range a.Outputs {
		r, err := a.measured(o.Form, o.At, fmt.Sprintf("output %q", o.Name))
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
func (a *assembly) regions(sys *model.System) error {
	for _, s := range a.Switches {
		z := a.resolve(s.Form)
		if largest(z[a.n:a.ofOne()]) > 0 {
			return refuse(a.Plant, s.Name, s.At, "its deflection or slip follows from the torques on a massless node; give that node an inertia")
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
func (a *assembly) programs(sys *model.System) error {
	from := make([]int, a.m) // signal of the System -> of the file
	for i, j := range a.place {
		from[j] = i
	}
	for j, i := range from {
		s := a.signals[i]
		if s.Law == nil {
			continue
		}
		p, err := a.program(s.Law, s.At, s.Name)
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
		resize(p, s.Law.Unsized, sys.X0, start)
		if k := s.Law.Loss; k > 0 {
			p.Slopes[0] = steepestLoss(a.GearLosses[k-1], a.shares[k-1])
		}
		for _, k := range s.Law.Stiff {
			g := 0.0
			for q, r := range p.Args[k.Rate].Row {
				g += r * sys.B[q*a.m+j]
			}
			if g != 0 { // twice as fast as the oscillation that the spring makes
				p.Slopes[k.Rate] = max(p.Slopes[k.Rate], 2*math.Sqrt(k.C/math.Abs(g)), k.Own/math.Abs(g))
			}
		}
		follow(sys, p)
	}
	for _, g := range a.Guards {
		p, err := a.program(&g.Law, g.At, g.Name)
		if err != nil {
			return err
		}
		sys.Guards = append(sys.Guards, *p)
	}
	return nil
}

// follow tells of a law how steeply it follows the state through the laws it reads, by
// arguments that no operation uses.
func follow(sys *model.System, p *model.Program) {
	for i := range p.Args {
		for k, j := range p.Args[i].Signal {
			read := sys.Signals[j].Law
			s := p.Slopes[i] * math.Abs(p.Args[i].Coef[k])
			if b := sys.Signals[j].Affine; b != nil && s > 0 {
				p.Args = append(p.Args, model.Functional{Row: sys.Switches[b.Switch].Row})
				p.Slopes = append(p.Slopes, s*largest(b.Slope))
			}
			if read == nil || s == 0 {
				continue
			}
			for q, f := range read.Args {
				if read.Slopes[q] > 0 && largest(f.Row) > 0 {
					p.Args = append(p.Args, model.Functional{Row: f.Row})
					p.Slopes = append(p.Slopes, s*read.Slopes[q])
				}
			}
		}
	}
}

func (a *assembly) program(l *network.Law, at network.Pos, what string) (*model.Program, error) {
	p := &model.Program{Slopes: slices.Clone(l.Slopes), Ops: slices.Clone(l.Ops), Tables: l.Tables}
	for _, f := range l.Args {
		v, err := a.measured(f, at, what)
		if err != nil {
			return nil, err
		}
		t := model.Functional{Const: v[a.ofOne()]}
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
	if depth := stackDepth(p.Ops); depth > model.MaxStack {
		panic(fmt.Sprintf("model: a law needs %d places on the stack, more than %d", depth, model.MaxStack))
	}
	return p, nil
}

// stackDepth is how many values a list of operations holds at most.
func stackDepth(ops []model.Op) int {
	now, most := 0, 0
	for _, op := range ops {
		switch op.Code {
		case model.Push, model.Arg, model.Side:
			now++
		case model.Add, model.Sub, model.Mul, model.Div, model.Min, model.Max, model.Look2, model.If:
			now--
		}
		most = max(most, now)
	}
	return most
}
