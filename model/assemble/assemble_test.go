package assemble_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
	"lockstep/model/modeltest"
	"lockstep/model/units"
)

// same compares two matrices; NaN never equals NaN.
func same(t *testing.T, name string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d entries, want %d", name, len(got), len(want))
		return
	}
	for i := range got {
		if !scalar.EqualWithinAbsOrRel(got[i], want[i], 1e-14, 1e-14) {
			t.Errorf("%s[%d] is %.17g, want %.17g; all: %v", name, i, got[i], want[i], got)
		}
	}
}

func names(ports []units.Port) string {
	var list []string
	for _, p := range ports {
		list = append(list, p.Name+"["+p.Unit+"]")
	}
	return strings.Join(list, " ")
}

// J = J1 + i²·J2 seen from the shaft with flange a, i = w_2/w_1 = 1/ratio.
func TestGearReflectsInertia(t *testing.T) {
	sys := modeltest.System(t, `
plant: gear
elements:
  one: {type: inertia, J: 0.1, w_start: 3}
  two: {type: inertia, J: 2}
  pair: {type: ideal_gear, a: one, b: two, ratio: 10}
  drive: {type: torque, flange: one, tau: 5}
  load: {type: torque, flange: two, tau: -1}
outputs:
  w2: {speed: two}
`)
	if got := names(sys.States); got != "one.w[rad/s]" {
		t.Errorf("states are %s", got)
	}
	J := 0.1 + 2.0/100
	same(t, "E", sys.E, []float64{J})
	same(t, "A", sys.A, []float64{0})
	same(t, "B", sys.B, []float64{1 / J, 0.1 / J})
	same(t, "C", sys.C, []float64{0.1})
	same(t, "X0", sys.X0, []float64{3})
}

// An inertia with a given initial speed stays a state, wherever it stands in the file.
func TestGivenSpeedSelectsTheState(t *testing.T) {
	sys := modeltest.System(t, `
plant: gear
elements:
  one: {type: inertia, J: 0.1}
  two: {type: inertia, J: 2, w_start: 4}
  pair: {type: ideal_gear, a: one, b: two, ratio: 10}
outputs:
  w1: {speed: one}
`)
	if got := names(sys.States); got != "two.w[rad/s]" {
		t.Errorf("states are %s", got)
	}
	same(t, "E", sys.E, []float64{2 + 100*0.1})
	same(t, "C", sys.C, []float64{10})
	same(t, "X0", sys.X0, []float64{4})
}

// A gear in a moving housing: w_s - w_h = ratio·(w_b - w_h).
func TestGearSupportReceivesItsTorque(t *testing.T) {
	sys := modeltest.System(t, `
plant: bearing
elements:
  shaft: {type: inertia, J: 1, w_start: 0}
  housing: {type: inertia, J: 5, w_start: 0}
  gear: {type: ideal_gear, a: shaft, b: out, support: housing, ratio: 3}
  load: {type: inertia, J: 50}
  spring: {type: spring, a: out, b: load, c: 1e3}
outputs:
  w: {w_rel: spring}
`)
	if got := names(sys.States); got != "shaft.w[rad/s] housing.w[rad/s] load.w[rad/s] spring.twist[rad]" {
		t.Errorf("states are %s", got)
	}
	// w_out = w_s/3 + 2/3·w_h; out gets +tau, load -tau, shared as 1/3 and 2/3.
	c := 1e3
	same(t, "A", sys.A, []float64{
		0, 0, 0, c / 3,
		0, 0, 0, c * 2 / 3 / 5,
		0, 0, 0, -c / 50,
		-1. / 3, -2. / 3, 1, 0,
	})
	same(t, "C", sys.C, []float64{-1. / 3, -2. / 3, 1, 0})
}

// tau = c·(phi_rel - phi_rel0) + d·w_rel; b gets -tau, a gets +tau.
func TestSpringDamperPullsItsEndsTogether(t *testing.T) {
	sys := modeltest.System(t, `
plant: shaft
elements:
  one: {type: inertia, J: 1}
  two: {type: inertia, J: 4, w_start: 2}
  shaft: {type: spring_damper, a: one, b: two, c: 100, d: 3, phi_rel0: 0.1, phi_rel_start: 0.3}
outputs:
  phi: {phi_rel: shaft}
  w: {w_rel: shaft}
  tau: {torque: shaft}
  on_one: {torque: shaft, onto: one}
  on_two: {torque: shaft, onto: two}
`)
	if got := names(sys.Outputs); got != "phi[rad] w[rad/s] tau[N.m] on_one[N.m] on_two[N.m]" {
		t.Errorf("outputs are %s", got)
	}
	same(t, "A", sys.A, []float64{
		-3, 3, 100,
		0.75, -0.75, -25,
		-1, 1, 0,
	})
	same(t, "E", sys.E, []float64{1, 0, 0, 0, 4, 0, 0, 0, 100})
	same(t, "X0", sys.X0, []float64{0, 2, 0.2})
	same(t, "C", sys.C, []float64{
		0, 0, 1,
		-1, 1, 0,
		-3, 3, 100,
		-3, 3, 100,
		3, -3, -100,
	})
	same(t, "D", sys.D, []float64{0.1, 0, 0, 0, 0})
	same(t, "one", sys.Signals[0].Source.V, []float64{1})
}

// For w_b > w_a tau is positive, and flange b gets -tau. Flange b of a brake is its only flange.
func TestFrictionActsAgainstTheSlip(t *testing.T) {
	sys := modeltest.System(t, `
plant: grips
inputs:
  fn: {unit: kN, max: 10}
elements:
  one: {type: inertia, J: 1}
  two: {type: inertia, J: 4}
  grip: {type: clutch, a: one, b: two, mu: 0.5, cgeo: 0.2 m, fn: fn, peak: 1.1}
  stop: {type: brake, flange: two, mu: 0.4, cgeo: 0.1 m, area: 10 cm2, pressure: {table: [[0, 1 bar], [1, 2 bar]]}, p0: 0.5 bar}
outputs:
  slip: {w_rel: grip}
  tau: {torque: [grip, stop]}
  on_two: {torque: [grip, stop], onto: two}
  on_one: {torque: grip, onto: one}
  force: {signal: fn}
`)
	same(t, "W", sys.W, []float64{-1, 1, 0, 1})
	same(t, "Bc", sys.Bc, []float64{1, 0, -0.25, -0.25})
	same(t, "C", sys.C, []float64{-1, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	same(t, "Dc", sys.Dc, []float64{0, 0, 1, 1, -1, -1, 1, 0, 0, 0})
	same(t, "D", sys.D, []float64{0, 0, 0, 0, 0, 0, 0, 0, 1, 0})
	grip, stop := sys.Frictions[0], sys.Frictions[1]
	same(t, "grip", []float64{grip.Gain, grip.Offset, grip.Peak}, []float64{0.1, 0, 1.1})
	same(t, "stop", []float64{stop.Gain, stop.Offset, stop.Peak}, []float64{0.4 * 0.1 * 1e-3, 5e4, 1})
	if sys.Signals[grip.Signal].Name != "fn" || sys.Signals[stop.Signal].Name != "stop.pressure" {
		t.Errorf("signals are %v", sys.Signals)
	}
	same(t, "pressure", sys.Signals[stop.Signal].Source.V, []float64{1e5, 2e5})
	in := sys.Inputs[0]
	if in.Unit != "N" || in.Min != math.Inf(-1) || in.Max != 1e4 || in.Signal != grip.Signal {
		t.Errorf("input is %+v", in)
	}
}

// In random trees of inertias, gears, massless wheels, springs and clutches, every gear keeps its
// ratio and every part has the power of its law.
func TestRandomTreesPreserveGearRatiosAndPower(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		b.WriteString("plant: tree\nelements:\n  n0: {type: inertia, J: 1}\n")
		n := 4 + r.IntN(8)
		J, ratio, parent := make([]float64, n), make([]float64, n), make([]int, n)
		J[0] = 1
		springs := []int{}
		for i := 1; i < n; i++ {
			parent[i] = r.IntN(i)
			ratio[i] = math.Copysign(0.2+3*r.Float64(), r.Float64()-0.5)
			if r.IntN(3) > 0 {
				J[i] = math.Exp(10 * (r.Float64() - 0.5))
				fmt.Fprintf(&b, "  n%d: {type: inertia, J: %v}\n", i, J[i])
			}
			switch k := r.IntN(3); {
			case k == 0 && J[i] > 0:
				springs = append(springs, i)
				ratio[i] = 0
				fmt.Fprintf(&b, "  k%d: {type: spring_damper, a: n%d, b: n%d, c: %d, d: %d}\n", i, parent[i], i, i, 2*i)
			default:
				fmt.Fprintf(&b, "  g%d: {type: ideal_gear, a: n%d, b: n%d, ratio: %v}\n", i, parent[i], i, ratio[i])
			}
		}
		b.WriteString("  frame: {type: fixed}\n  extra: {type: inertia, J: 7}\n")
		for i := range n { // a second element at every node
			fmt.Fprintf(&b, "  c%d: {type: clutch, a: n%d, b: extra, mu: 1, cgeo: 1, fn: 1}\n", i, i)
		}
		b.WriteString("outputs:\n")
		for i := range n {
			fmt.Fprintf(&b, "  w%d: {speed: n%d}\n", i, i)
		}
		b.WriteString("  w_extra: {speed: extra}\n")
		checkTree(t, modeltest.System(t, b.String()), tree{J, ratio, parent, springs})
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, b.String())
		}
	}
}

type tree struct {
	J, ratio []float64
	parent   []int
	springs  []int // nodes connected to their parents by a spring of c = i, d = 2i
}

func checkTree(t *testing.T, sys *model.System, g tree) {
	n, m := len(sys.States), len(g.J)
	mc := len(sys.Frictions)
	r := rand.New(rand.NewPCG(7, 7))
	x, tau := make([]float64, n), make([]float64, mc)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	for i := range tau {
		tau[i] = r.NormFloat64()
	}
	w := times(sys.C, x)
	for i := 1; i < m; i++ {
		if g.ratio[i] != 0 && !scalar.EqualWithinAbsOrRel(w[g.parent[i]], g.ratio[i]*w[i], 1e-12, 1e-12) {
			t.Errorf("gear %d: %g against %g times %g", i, w[g.parent[i]], g.ratio[i], w[i])
		}
	}
	energy := 7 * w[m] * w[m]
	for i, J := range g.J {
		energy += J * w[i] * w[i]
	}
	loss, first := 0.0, n-len(g.springs)
	for k, i := range g.springs {
		rel := w[i] - w[g.parent[i]]
		energy += float64(i) * x[first+k] * x[first+k]
		loss += 2 * float64(i) * rel * rel
	}
	ex := times(sys.E, x)
	if got := dot(x, ex); !scalar.EqualWithinRel(got, energy, 1e-12) {
		t.Errorf("twice the energy is %g, want %g", got, energy)
	}
	if got := dot(ex, times(sys.A, x)); !scalar.EqualWithinAbsOrRel(got, -loss, 1e-9*energy, 1e-9) {
		t.Errorf("power of the springs and dampers is %g, want %g", got, -loss)
	}
	slip := times(sys.W, x)
	for i := range m {
		if want := w[m] - w[i]; !scalar.EqualWithinAbsOrRel(slip[i], want, 1e-12, 1e-12) {
			t.Errorf("slip %d is %g, want %g", i, slip[i], want)
		}
	}
	if got, want := dot(ex, times(sys.Bc, tau)), -dot(slip, tau); !scalar.EqualWithinAbsOrRel(got, want, 1e-9, 1e-9) {
		t.Errorf("power of friction is %g, want %g", got, want)
	}
}

// times returns a·x, with a row-major and len(x) columns.
func times(a, x []float64) []float64 {
	y := make([]float64, len(a)/len(x))
	for i := range y {
		y[i] = dot(a[i*len(x):(i+1)*len(x)], x)
	}
	return y
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func TestAssembleIsRepeatable(t *testing.T) {
	first := modeltest.System(t, modeltest.Train)
	for range 20 {
		if again := modeltest.System(t, modeltest.Train); !reflect.DeepEqual(again, first) {
			t.Fatal("two assemblies of one file differ")
		}
	}
}

// Sensors, temperatures and actuators without a reader become neither states nor laws. A plant file
// may hold them for later use.
func TestOnlyUsedPartsBecomeStates(t *testing.T) {
	sys := modeltest.System(t, `
plant: idle
elements:
  a: {type: inertia, J: 1}
  angle: {type: angle_sensor, flange: a}
  w: {type: speed_sensor, flange: a}
  valve: {type: hydraulic_actuator, current: 1, pressure_map: [[0, 0], [1, 1 bar], [2, 4 bar]], lag: 0.1}
  b: {type: brake, flange: a, mu: 1, cgeo: 1, fn: 3}
outputs:
  w_a: {speed: a}
`)
	if got := names(sys.States); got != "a.w[rad/s]" {
		t.Errorf("states are %s", got)
	}
	if len(sys.Signals) != 1 || len(sys.Guards) != 0 {
		t.Errorf("signals are %v, guards %v", sys.Signals, sys.Guards)
	}
}
