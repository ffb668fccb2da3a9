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

// orderSignals orders the signals: sources, then affine signals, then laws, each after those that
// it reads. Implicit laws that depend on each other are in the order of the plant.
func (a *assembly) orderSignals() {
	reads := make([][]int, a.m)
	a.args = make([][][]float64, a.m)
	for i, s := range a.signals {
		if s.Law == nil {
			continue
		}
		a.args[i] = a.arguments(s.Law, s.At, s.Name)
		for _, v := range a.args[i] {
			for j := range a.m {
				if v[a.ofSignals()+j] != 0 && a.signals[j].Law != nil && !slices.Contains(reads[i], j) {
					reads[i] = append(reads[i], j)
				}
			}
		}
	}

	a.signalPlace = slices.Repeat([]int{-1}, a.m)
	next := 0
	place := func(ready func(i int, s *network.Signal) bool) {
		for i := range a.signals {
			if a.signalPlace[i] < 0 && ready(i, &a.signals[i]) {
				a.signalPlace[i] = next
				next++
			}
		}
	}

	place(func(_ int, s *network.Signal) bool { return s.Law == nil && s.Affine == nil })
	place(func(_ int, s *network.Signal) bool { return s.Affine != nil })
	unplaced := func(j int) bool { return a.signalPlace[j] < 0 }
	for next < a.m {
		before := next
		place(func(i int, _ *network.Signal) bool { return !slices.ContainsFunc(reads[i], unplaced) })
		if next == before {
			place(func(_ int, s *network.Signal) bool { return s.Implicit })
		}
		if next == before {
			a.refuseLoop(reads, unplaced)
		}
	}
}

// refuseLoop names the laws that depend on each other in a loop.
func (a *assembly) refuseLoop(reads [][]int, unplaced func(int) bool) {
	i := slices.Index(a.signalPlace, -1)
	var path []int
	for !slices.Contains(path, i) {
		path = append(path, i)
		i = reads[i][slices.IndexFunc(reads[i], unplaced)]
	}

	var names []string
	for _, j := range path[slices.Index(path, i):] {
		names = append(names, a.signals[j].Name)
	}
	what := " depend on each other without a state between; give one of them a lag"
	if len(names) == 1 {
		what = " depends on itself without a state between; give it a lag"
	}
	refuseAt(a.Plant, a.signals[i].At, "%s%s", strings.Join(names, ", "), what)
}

// ports returns a system with names, signals and friction laws.
func (a *assembly) ports() *model.System {
	inf := math.Inf(1)
	sys := &model.System{Name: a.Name, Partition: a.Partition}
	for _, f := range a.nodes[:a.freeCount] {
		n := &a.Nodes[f]
		name := n.Name + n.Domain.Per(".w", ".v")
		sys.States = append(sys.States, units.Port{Name: name, Unit: n.SpeedUnit(), Min: -inf, Max: inf})
	}

	for _, s := range a.states {
		sys.States = append(sys.States, units.Port{Name: s.Name, Unit: s.Unit, Min: -inf, Max: inf})
	}
	sys.Signals = make([]model.Signal, a.m)
	for i, s := range a.signals {
		if s.Affine != nil {
			on := *s.Affine
			on.Switch = a.switchOf[on.Switch]
			on.Gates = slices.Clone(on.Gates)
			for i := range on.Gates {
				on.Gates[i].Switch = a.switchOf[on.Gates[i].Switch]
			}
			s.Affine = &on
		}

		sys.Signals[a.signalPlace[i]] = model.Signal{Name: s.Name, Source: s.Source, Affine: s.Affine}
	}

	for _, in := range a.Inputs {
		in.Signal = a.signalPlace[a.signalOf[in.Signal]]
		sys.Inputs = append(sys.Inputs, in)
	}

	for _, k := range a.Frictions {
		f := k.Friction
		f.Signal = a.signalPlace[a.signalOf[f.Signal]]
		if f.Gap != nil {
			gap := *f.Gap
			gap.State = a.freeCount + a.stateOf[gap.State]
			gap.While = a.regionSets(gap.While)
			if k.Opening != nil {
				gap.Yields = a.freeCount + a.stateOf[gap.Yields]
			}
			f.Gap = &gap
		}
		if f.Impacts > 0 {
			f.Impacts += a.freeCount + a.stateOf[f.Impacts-1] - (f.Impacts - 1)
		}

		sys.Frictions = append(sys.Frictions, f)
	}

	for _, o := range a.Outputs {
		sys.Outputs = append(sys.Outputs, o.Port)
	}
	for _, s := range a.Pulses {
		s.State = a.freeCount + a.stateOf[s.State]
		sys.Pulses = append(sys.Pulses, s)
	}

	return sys
}

// fill computes the matrices and the programs.
func (a *assembly) fill(sys *model.System) {
	n, m, mc, p := a.n, a.m, a.mc, len(a.Outputs)
	sys.A, sys.B, sys.Bc = make([]float64, n*n), make([]float64, n*m), make([]float64, n*mc)
	for i, r := range a.rates {
		a.splitForm(r, sys.A[i*n:(i+1)*n], sys.B[i*m:(i+1)*m], sys.Bc[i*mc:(i+1)*mc])
	}
	sys.W = make([]float64, mc*n)
	for i, k := range a.Frictions {
		copy(sys.W[i*n:(i+1)*n], a.resolvedForm(k.Rel.Speeds(1)))
	}
	sys.E = make([]float64, n*n)
	for i := range a.nodes {
		for j := range a.nodes {
			if c, d := a.column(i), a.column(j); c < n && d < n { // both have a mass
				sys.E[c*n+d] += a.inertia.At(i, j)
			}
		}
	}

	for i, s := range a.states {
		sys.E[(a.freeCount+i)*n+a.freeCount+i] += s.C
	}
	sys.C, sys.D, sys.Dc = make([]float64, p*n), make([]float64, p*m), make([]float64, p*mc)
	for i, o := range a.Outputs {
		r := a.measuredForm(o.Form, o.At, fmt.Sprintf("output %q", o.Name))
		a.splitForm(r, sys.C[i*n:(i+1)*n], sys.D[i*m:(i+1)*m], sys.Dc[i*mc:(i+1)*mc])
	}

	a.regions(sys)
	a.openings(sys)
	a.checkGaps(sys)
	a.checkLossGain(sys)
	a.programs(sys)
	a.measureRates(sys)
}

// regions fills the switches. Their levels must not depend on torques.
func (a *assembly) regions(sys *model.System) {
	for _, s := range a.switches {
		z := a.resolvedForm(s.Form)
		if network.Largest(z[a.n:a.ofOne()]) > 0 {
			refuse(a.Plant, s.Name, s.At,
				"its deflection or slip follows from the torques on a massless node; give that node an inertia")
		}

		s.Row, s.Const = z[:a.n:a.n], s.Const+z[a.ofOne()]
		s.While = a.regionSets(s.While)
		if s.Wrap != nil {
			wrap := *s.Wrap
			wrap.State = a.freeCount + a.stateOf[wrap.State]
			s.Wrap = &wrap
		}
		sys.Switches = append(sys.Switches, s.Switch)
	}
}

// regionSets returns regions of the switches of the plant as regions of those of the System.
func (a *assembly) regionSets(list []model.RegionSet) (out []model.RegionSet) {
	for _, r := range list {
		out = append(out, model.RegionSet{Switch: a.switchOf[r.Switch], Set: r.Set})
	}
	return out
}

// openings fills the openings of gaps between faces.
func (a *assembly) openings(sys *model.System) {
	for i, f := range a.Frictions {
		if f.Opening != nil {
			z := a.resolvedForm(f.Opening)
			sys.Frictions[i].Gap.Row, sys.Frictions[i].Gap.Const = z[:a.n:a.n], z[a.ofOne()]
		}
	}
}

// checkGaps refuses clearances that do not start open, and faces that overlap at the start.
func (a *assembly) checkGaps(sys *model.System) {
	start := sys.Wrapped()
	region := sys.RegionsAt(start)
	for i, f := range sys.Frictions {
		if f.Gap == nil {
			continue
		}
		if len(f.Gap.While) > 0 {
			if depth := -f.Gap.Opening(start); f.Gap.Exists(region) && depth > 1e-12 {
				refuse(a.Plant, f.Name, a.Frictions[i].At, "at the start it overlaps by %s; start it apart",
					units.Format(units.DropRounding(depth), sys.States[f.Gap.State].Unit))
			}
			continue
		}
		if open := f.Gap.Sign * (sys.X0[f.Gap.State] - f.Gap.Limit); !(open > 0) {
			how := "closed"
			if open < 0 {
				how = "overlapping by " + units.Format(units.DropRounding(-open), sys.States[f.Gap.State].Unit)
			}
			refuse(a.Plant, f.Name, a.Frictions[i].At, "at the start it is %s; start it inside its play", how)
		}
	}
}

// splitForm copies the parts of a form to rows of three matrices.
func (a *assembly) splitForm(f, x, v, tau []float64) {
	copy(x, f[:a.n])
	for j := range a.m {
		v[a.signalPlace[j]] = f[a.ofSignals()+j]
	}
	if c := f[a.ofOne()]; c != 0 {
		v[a.signalPlace[a.constant]] += c
	}
	copy(tau, f[a.ofTorques():a.ofMassless()])
}

// programs writes the programs of the laws and the event indicators.
func (a *assembly) programs(sys *model.System) {
	from := make([]int, a.m) // index of each signal of the System among the used ones
	for i, j := range a.signalPlace {
		from[j] = i
	}
	laws := make([]*network.Law, a.m)
	for j, i := range from {
		if l := a.signals[i].Law; l != nil {
			laws[j], sys.Signals[j].Law = l, a.program(l, a.args[i])
			if sys.Signals[j].Size = a.signals[i].MaxAbs; sys.Signals[j].Size == 0 {
				sys.Signals[j].Size = l.Size
			}
		}
	}

	for _, g := range a.indicators {
		sys.Guards = append(sys.Guards, *a.program(&g.Law, a.arguments(&g.Law, g.At, g.Name)))
	}

	start := startSignals(sys, laws)
	for j := range from {
		l, p := laws[j], sys.Signals[j].Law
		if p == nil {
			continue
		}
		if l.Sized != nil {
			copy(p.Slopes, l.Sized(argumentsAt(p, sys.X0, start)))
		}
		for i, f := range l.Args {
			if len(f) == 1 && f[0].Kind == network.OfGearLoad {
				p.Slopes[i] = steepestLoss(a.GearLosses[f.Index()], a.gearShares[f.Index()])
			}
		}
		if swings := l.Swings; swings != nil {
			g := 0.0
			for q, r := range p.Args[swings.Rate].Row {
				g += r * sys.B[q*a.m+j]
			}
			if g != 0 {
				p.Slopes[swings.Rate] = max(p.Slopes[swings.Rate], swings.Fastest/math.Abs(g))
			}
		}

		addIndirectSlopes(sys, p, func(j int) bool { return a.signals[from[j]].Implicit })
	}
}

// addIndirectSlopes adds to a law its slopes along the state through the laws that it reads, as
// arguments that no operation uses. Through implicit laws it adds none: they read each other, and what they add to
// the accelerations is small.
func addIndirectSlopes(sys *model.System, p *model.Program, implicit func(j int) bool) {
	through := func(row []float64, slope float64) {
		p.Args = append(p.Args, model.Functional{Row: row})
		p.Slopes = append(p.Slopes, slope)
	}

	for i := range p.Args {
		for k, j := range p.Args[i].Signal {
			s := p.Slopes[i] * math.Abs(p.Args[i].Coef[k])
			if b := sys.Signals[j].Affine; b != nil && s > 0 {
				through(sys.Switches[b.Switch].Row, s*network.Largest(b.Slope))
			}
			read := sys.Signals[j].Law
			if read == nil || s == 0 || implicit(j) {
				continue
			}
			for q, f := range read.Args {
				if read.Slopes[q] > 0 && network.Largest(f.Row) > 0 {
					through(f.Row, s*read.Slopes[q])
				}
			}
		}
	}
}

// arguments returns the arguments of a law as forms.
func (a *assembly) arguments(l *network.Law, at network.Pos, what string) (list [][]float64) {
	for _, f := range l.Args {
		list = append(list, a.measuredForm(f, at, what))
	}
	return list
}

// program returns the program of a law with these arguments.
func (a *assembly) program(l *network.Law, args [][]float64) *model.Program {
	p := &model.Program{Slopes: slices.Clone(l.Slopes), Ops: a.ops(l), Tables: l.Tables, Borders: l.Borders}
	for _, v := range args {
		t := model.Functional{Const: v[a.ofOne()]}
		if row := v[:a.n:a.n]; network.Largest(row) > 0 {
			t.Row = row
		}
		for j := range a.m {
			if c := v[a.ofSignals()+j]; c != 0 {
				t.Signal, t.Coef = append(t.Signal, a.signalPlace[j]), append(t.Coef, c)
			}
		}

		if tau := v[a.ofTorques():a.ofMassless()]; network.Largest(tau) > 0 {
			t.Tau = tau
		}
		p.Args = append(p.Args, t)
	}

	if depth := stackDepth(p.Ops); depth > model.MaxStack {
		panic(fmt.Sprintf("model: a law needs %d places on the stack, more than %d", depth, model.MaxStack))
	}
	return p
}

// stackDepth returns the largest number of values that a list of operations holds.
func stackDepth(ops []model.Op) int {
	now, deepest := 0, 0
	for _, op := range ops {
		now += 1 - op.Code.Operands()
		deepest = max(deepest, now)
	}

	return deepest
}

// measureRates computes how fast each element would be alone, rad/s. Its torque follows the state
// by a row r and drives the state by g. A damper is as fast as |r|·|g|. A spring, whose twist A
// makes from speeds, is as fast as the square root of |r|·|A|·|g|.
func (a *assembly) measureRates(sys *model.System) {
	for i, e := range a.Efforts {
		g := make([]float64, a.n)
		for k, along := range a.along[i][:a.freeCount] {
			if along == 0 {
				continue
			}
			for j := range a.freeCount {
				g[j] += a.inverseInertia.At(j, k) * along
			}
		}

		a.addRate(sys, e.Element, e.At, a.values[i], g)
	}

	for i, s := range a.states {
		g := make([]float64, a.n)
		g[a.freeCount+i] = 1
		a.addRate(sys, s.Name, s.At, a.rates[a.freeCount+i], g)
	}
}

// addRate adds the rate of an element with torque value that drives the state by g.
func (a *assembly) addRate(sys *model.System, name string, at network.Pos, value, g []float64) {
	r := make([]float64, a.n)
	addSize(r, 1, value[:a.n])
	for i := range a.m {
		c := math.Abs(value[a.ofSignals()+i])
		switch s := &sys.Signals[a.signalPlace[i]]; {
		case c == 0:
		case s.Affine != nil:
			addSize(r, c*network.Largest(s.Affine.Slope), sys.Switches[s.Affine.Switch].Row)
		case s.Law != nil:
			for k, f := range s.Law.Args {
				addSize(r, c*s.Law.Slopes[k], f.Row)
			}
		}
	}

	damper, spring := 0.0, 0.0
	for i := range a.n {
		if r[i] == 0 {
			continue
		}
		damper += r[i] * math.Abs(g[i])
		for j := range a.n {
			spring += r[i] * math.Abs(sys.A[i*a.n+j]*g[j])
		}
	}

	place := fmt.Sprintf("%s:%d:%d", a.File, at.Line, at.Col)
	sys.Paces = append(sys.Paces, model.Pace{Name: name, Place: place, Rate: max(damper, math.Sqrt(spring))})
}

// addSize computes dst += c·|v|.
func addSize(dst []float64, c float64, v []float64) {
	for i, x := range v {
		dst[i] += c * math.Abs(x)
	}
}
