package kernel

import (
	"fmt"
	"math"

	"lockstep/model"
	"lockstep/model/units"
)

// The parameters of a rail car of 17 degrees of freedom, SI; the structure is that of
// model/plants' rail vehicle, with brakes whose reaction the bogie takes.
const (
	carMass, carInertia     = 32e3, 1.6e6
	bogieMass, bogieInertia = 3e3, 2.5e3
	axleMass, axleReduced   = 1.5e3, 100 / (0.46 * 0.46)
	carHalf, carArm         = 9.5, 1.0 // m
	bogieHalf, bogieUp      = 1.28, 0.25
	bogieArm, brakeArm      = 0.35, 0.2
	staticLoad              = 107910.0 // N per wheelset
	slipSign, slipFade      = 0.05, 5.0
	adhesion, adhesionLeft  = 0.1, 0.2
)

// train assembles cars: a velocity per degree of freedom, a deflection per spring, an adhesion law
// and a brake per wheelset.
type train struct {
	mass    []float64
	springs []link
	brakes  []link // slip of each
	axles   []axle
	pull    []link
}

// link is a linear functional of the velocities, with stiffness and damping.
type link struct {
	at   []int
	coef []float64
	c, d float64
}

// axle is a wheelset: velocities of its translation and circumference, the vertical
// spring that loads it, its brake and the side on which the block pushes.
type axle struct {
	x, u, spring int
	side         float64
}

func (t *train) spring(c, d float64, at []int, coef ...float64) int {
	t.springs = append(t.springs, link{at, coef, c, d})
	return len(t.springs) - 1
}

// newTrain returns a train with the given number of cars.
func newTrain(cars int) *train {
	t := &train{}
	for c := range cars {
		car := len(t.mass)
		t.mass = append(t.mass, carMass, carMass, carInertia)
		for b := range 2 {
			t.bogie(car, 2*float64(b)-1)
		}
		if c > 0 {
			t.spring(5e6, 1e5, []int{car, car - 17}, 1, -1)
		}
		t.pull = append(t.pull, link{at: []int{car, car + 2}, coef: []float64{1, 0.8}})
	}
	return t
}

func (t *train) bogie(car int, end float64) {
	b := len(t.mass)
	t.mass = append(t.mass, bogieMass, bogieMass, bogieInertia)
	t.spring(4e6, 4e4, []int{b, b + 2, car, car + 2}, 1, -bogieArm, -1, -carArm)
	t.spring(6e5, 3e4, []int{b + 1, car + 1, car + 2}, 1, -1, -end*carHalf)
	for w := range 2 {
		x, side := len(t.mass), 2*float64(w)-1
		t.mass = append(t.mass, axleMass, axleReduced)
		t.spring(1.5e7, 6e4, []int{x, b, b + 2}, 1, -1, -bogieUp)
		load := t.spring(1.4e6, 1.2e4, []int{b + 1, b + 2}, 1, side*bogieHalf)
		t.axles = append(t.axles, axle{x, x + 1, load, side})
		t.brakes = append(t.brakes, link{at: []int{x + 1, b + 1, b + 2}, coef: []float64{1, -brakeArm * side, -brakeArm}})
	}
}

// state of velocity i is i, of the deflection of spring k is spring(k).
func (t *train) deflection(k int) int { return len(t.mass) + k }

// system assembles the train. The brakes follow block, one source per wheelset, the
// cars are pulled by force, N each.
func (t *train) system(force model.Source, block func(axle int) model.Source) *model.System {
	nv, mc := len(t.mass), len(t.brakes)
	n, m := nv+len(t.springs), 2*mc+1
	s := &model.System{
		Name: fmt.Sprintf("train%d", nv/17), X0: make([]float64, n), A: make([]float64, n*n), B: make([]float64, n*m), Bc: make([]float64, n*mc),
		W: make([]float64, mc*n), E: make([]float64, n*n),
	}
	for i := range n {
		s.States = append(s.States, units.Port{Name: fmt.Sprintf("x%d", i), Unit: "m/s", Min: math.Inf(-1), Max: math.Inf(1)})
	}
	for i, mass := range t.mass {
		s.E[i*n+i] = mass
	}
	for k, l := range t.springs {
		q := t.deflection(k)
		s.E[q*n+q] = l.c
		for i, at := range l.at {
			s.A[q*n+at] += l.coef[i]
			s.A[at*n+q] -= l.coef[i] * l.c / t.mass[at]
			for j, other := range l.at {
				s.A[at*n+other] -= l.coef[i] * l.coef[j] * l.d / t.mass[at]
			}
		}
	}
	input := func(name string, src model.Source) int {
		s.Inputs = append(s.Inputs, model.Input{Port: units.Port{Name: name, Unit: "N", Min: math.Inf(-1), Max: math.Inf(1)}, Signal: len(s.Signals)})
		s.Signals = append(s.Signals, model.Signal{Name: name, Source: src})
		return len(s.Signals) - 1
	}
	for b, l := range t.brakes {
		name := fmt.Sprintf("brake%d", b)
		s.Frictions = append(s.Frictions, model.Friction{Name: name, Signal: input(name+".f", block(b)), Gain: 1, Peak: 1, Translational: true})
		for i, at := range l.at {
			s.W[b*n+at], s.Bc[at*mc+b] = l.coef[i], -l.coef[i]/t.mass[at]
		}
	}
	pull := input("pull", force)
	for _, l := range t.pull {
		for i, at := range l.at {
			s.B[at*m+pull] = l.coef[i] / t.mass[at]
		}
	}
	for a := range t.axles {
		t.adhere(s, a)
	}
	t.outputs(s)
	return s
}

// adhere adds the adhesion of wheelset a as a law: the slip law times the load, which
// reads the torque of the brake.
func (t *train) adhere(s *model.System, a int) {
	w, n, m, mc := t.axles[a], len(s.X0), 2*len(t.axles)+1, len(t.axles)
	slip := func(scale, c float64) model.Functional {
		row := make([]float64, n)
		row[w.x], row[w.u] = scale, -scale
		return model.Functional{Row: row, Const: c}
	}
	guard := len(s.Guards)
	for _, g := range []model.Functional{slip(1, slipSign), slip(-1, slipSign), slip(1, 0)} {
		s.Guards = append(s.Guards, model.Program{Args: []model.Functional{g}, Slopes: []float64{0}, Ops: []model.Op{{Code: model.Arg}}})
	}
	l := t.springs[w.spring]
	load := model.Functional{Row: make([]float64, n), Tau: make([]float64, mc), Const: staticLoad}
	load.Row[t.deflection(w.spring)] = -l.c
	for i, at := range l.at {
		load.Row[at] = -l.d * l.coef[i]
	}
	load.Tau[a] = -0.3 * w.side
	push := func(v float64) model.Op { return model.Op{Code: model.Push, Value: v} }
	op := func(c model.Code, i int) model.Op { return model.Op{Code: c, Index: i} }
	law := &model.Program{
		Args: []model.Functional{slip(1, 0), load}, Slopes: []float64{adhesion * 1.3e5 / slipSign, adhesion},
		Ops: []model.Op{
			op(model.Arg, 0), push(1 / slipSign), op(model.Mul, 0), push(-1), op(model.If, guard), push(1), op(model.If, guard+1),
			op(model.Arg, 0), op(model.Side, guard+2), op(model.Mul, 0), push(-1 / slipFade), op(model.Mul, 0), op(model.Exp, 0),
			push(1 - adhesionLeft), op(model.Mul, 0), push(adhesionLeft), op(model.Add, 0), push(adhesion), op(model.Mul, 0),
			op(model.Mul, 0), op(model.Arg, 1), op(model.Mul, 0),
		},
	}
	j := len(s.Signals)
	s.Signals = append(s.Signals, model.Signal{Name: fmt.Sprintf("adhesion%d", a), Law: law})
	s.B[w.x*m+j], s.B[w.u*m+j] = -1/axleMass, 1/axleReduced
}

// outputs are the speeds of the cars and of the wheels.
func (t *train) outputs(s *model.System) {
	n := len(s.X0)
	out := func(name string, state int) {
		s.Outputs = append(s.Outputs, units.Port{Name: name, Unit: "m/s", Min: math.Inf(-1), Max: math.Inf(1)})
		row := make([]float64, n)
		row[state] = 1
		s.C = append(s.C, row...)
	}
	for c := 0; c < len(t.mass); c += 17 {
		out(fmt.Sprintf("car%d", c/17), c)
	}
	for i, a := range t.axles {
		out(fmt.Sprintf("u%d", i), a.u)
	}
	p := len(s.Outputs)
	s.D, s.Dc = make([]float64, p*len(s.Signals)), make([]float64, p*len(t.axles))
}

// stopAndGo is the run of the rail vehicle: pull, brake until the wheels lock, release,
// brake to standstill; the wheelsets of a car one after the other by stagger, s.
func stopAndGo(cars int, stagger float64) *model.System {
	block := func(a int) model.Source {
		at := stagger * float64(a%4)
		return table(0, 100, 2+at, 100, 2.2+at, 22100, 3+at, 22100, 3.2+at, 100, 3.7+at, 100, 4.2+at, 7600)
	}
	return newTrain(cars).system(table(0, 0, 0.1, 1e5, 1.5, 1e5, 1.6, 0), block)
}
