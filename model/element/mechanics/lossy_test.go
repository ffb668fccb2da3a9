package mechanics_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// losses is one row of a loss table.
type losses struct{ eta1, eta2, tau1, tau2 float64 }

func (l losses) String() string {
	return fmt.Sprintf("[[0, %g, %g, %g, %g]]", l.eta1, l.eta2, l.tau1, l.tau2)
}

// geared solves two inertias J1, J2 and the lossy gear between them from first principles:
// J1·w1' = Ta - load, J2·w2' = Tb + ratio·(load - loss), w1 = ratio·w2.
type geared struct {
	J1, J2, ratio float64
	losses
}

// moving returns the acceleration of J1, rad/s², and the loss, N·m, for the direction d = ±1 of w1.
// For each driving side the equations are linear; the consistent solution counts. Side a drives if
// the load is at least its bearing friction, as in the Modelica library.
func (g geared) moving(d, Ta, Tb float64) (a, loss float64) {
	Ta, Tb = d*Ta, d*Tb // mirrored, so that w1 > 0
	bearing := g.tau1 / 2
	if g.eta1 != 1 || g.eta2 != 1 {
		bearing = (g.tau1 - g.tau2) / (g.eta1 - 1/g.eta2)
	}
	for _, driving := range []bool{true, false} {
		k, b := 1-g.eta1, g.tau1
		if !driving {
			k, b = 1-1/g.eta2, g.tau2
		}
		// J2/ratio²·a = Tb/ratio + load - loss, load = Ta - J1·a, loss = k·load + b
		a = (Tb/g.ratio + (1-k)*Ta - b) / (g.J2/g.ratio/g.ratio + (1-k)*g.J1)
		load := Ta - g.J1*a
		if driving == (load >= bearing) {
			return d * a, d * (k*load + b)
		}
	}
	return d * a, d * ((1-1/g.eta2)*(Ta-g.J1*a) + g.tau2) // on the region boundary both solutions agree
}

// locked reports whether the gear holds, and returns the loss at which it is locked, N·m.
func (g geared) locked(Ta, Tb float64) (loss float64, holds bool) {
	loss = Ta + Tb/g.ratio
	limit := func(load float64) float64 {
		return max((1-g.eta1)*load+g.tau1, (1-1/g.eta2)*load+g.tau2)
	}
	return loss, loss <= limit(Ta) && -loss <= limit(-Ta)
}

func (g geared) plant(w1, Ta, Tb string) string {
	return modeltest.PlantOf(fmt.Sprintf(`
one: {type: inertia, J: %g, w_start: %s}
two: {type: inertia, J: %g}
gear: {type: lossy_gear, a: one, b: two, ratio: %g, lossTable: %v}
left: {type: torque, flange: one, tau: %s}
right: {type: torque, flange: two, tau: %s}`, g.J1, w1, g.J2, g.ratio, g.losses, Ta, Tb), `
w1: {speed: one}
w2: {speed: two}
load: {torque: gear, onto: one, factor: -1}
out: {torque: gear, onto: two}
loss: {torque: gear}
P: {power: gear}
a1: {torque: one}`)
}

var gears = []geared{
	{1, 1.5, 2, losses{0.5, 0.5, 0, 0}},
	{1, 1.5, -2, losses{0.9, 0.7, 0, 0}},
	{0.01, 20, 50, losses{0.6, 0.2, 0.3, 0.8}}, // eta far below 0.5
	{0.001, 0.001, 1, losses{0.25, 0.25, 0.625, 2.5}},
	{3, 0.1, 0.3, losses{1, 1, 0.4, 0.4}},
}

// In all four quadrants and with either driving side, the accelerations, the torques at the flanges
// and the loss equal the closed form.
func TestLossyGearFollowsItsFormula(t *testing.T) {
	for _, g := range gears {
		for _, w := range []float64{100, -100} {
			for _, Ta := range []float64{3, -3, 0, 0.2} {
				for _, Tb := range []float64{4, -4, 0, 30} {
					b := modeltest.New(t, g.plant(fmt.Sprint(w), fmt.Sprint(Ta), fmt.Sprint(Tb)), time.Millisecond)
					d := math.Copysign(1, w)
					a, loss := g.moving(d, Ta, Tb)
					at := 3e-3
					if d*(w+a*at) < 0 {
						continue // the direction has reversed
					}
					b.Is("loss", loss, 1e-8)
					b.To(at, nil)
					b.Is("w1", w+a*at, 1e-9)
					b.Is("w2", (w+a*at)/g.ratio, 1e-9)
					b.Is("load", Ta-g.J1*a, 1e-9)
					b.Is("out", g.J2*a/g.ratio-Tb, 1e-9)
					b.Is("loss", loss, 1e-8)
					b.Is("P", loss*b.Get("w1"), 1e-8)
					b.Is("a1", g.J1*a, 1e-9)
					b.Is("events", 0, 0)
					if t.Failed() {
						t.Fatalf("%+v at %g rad/s under %g and %g N·m", g, w, Ta, Tb)
					}
				}
			}
		}
	}
}

// At rest the gear holds exactly up to the torque of the formula and breaks away beyond.
func TestLossyGearHoldsAndBreaksAway(t *testing.T) {
	for _, g := range gears {
		held, moved := 0, 0
		for _, Ta := range []float64{0, 0.1, -0.1, 1, -1, 5, -5} {
			for _, part := range []float64{0, 0.3, -0.3, -0.52, -0.9, -0.99, -1.01, -1.2, -2.1, -6} {
				Tb := g.ratio * part * Ta // part -1: balance without loss
				if Ta == 0 {
					Tb = part
				}
				b := modeltest.New(t, g.plant("0", fmt.Sprint(Ta), fmt.Sprint(Tb)), time.Millisecond).To(0.02, nil)
				if loss, holds := g.locked(Ta, Tb); holds {
					held++
					b.Is("w1", 0, 1e-12)
					b.Is("loss", loss, 1e-12)
					b.Is("load", Ta, 1e-12)
					continue
				}
				moved++
				loss, _ := g.locked(Ta, Tb)
				a, _ := g.moving(math.Copysign(1, loss), Ta, Tb)
				b.Is("w1", a*0.02, 1e-9)
				if t.Failed() {
					t.Fatalf("%+v under %g and %g N·m", g, Ta, Tb)
				}
			}
		}
		if held < 5 || moved < 5 {
			t.Errorf("%+v: held %d times, moved %d times", g, held, moved)
		}
	}
}

// A worm gear with bearing friction holds a load that swings on a rope, with no torque at the
// motor. The motor stands still and the lag stays zero.
func TestWormGearHoldsASwingingLoadOnEveryGrid(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
		b := modeltest.New(t, modeltest.PlantOf(`
motor: {type: inertia, J: 0.01}
worm: {type: lossy_gear, a: motor, b: drum, ratio: 50, lossTable: [[0, 0.5, 0, 0.2, 0.2], [300, 0.6, 0, 0.3, 0.3]]}
drum: {type: inertia, J: 0.5}
rope: {type: spring_damper, a: drum, b: load, c: 5000, d: 10}
load: {type: inertia, J: 5}
push: {type: torque, flange: load, tau: {sine: {amplitude: 300, f: 1}}}`,
			"w: {speed: motor}\nw_load: {speed: load}"), step)
		moved := 0.0
		b.To(2, func(float64) {
			b.Is("w", 0, 1e-9)
			b.Is("lag", 0, 1e-12)
			moved = max(moved, math.Abs(b.Get("w_load")))
		})
		if !(moved > 0.1) {
			t.Errorf("%v: the load moves with %g rad/s at most", step, moved)
		}
	}
}

// No load on b moves a worm gear with eta_mf2 = 0; a torque on a does.
func TestWormGearLocksItself(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
motor: {type: inertia, J: 0.01}
table: {type: inertia, J: 2}
worm: {type: lossy_gear, a: motor, b: table, ratio: 30, lossTable: [[0, 0.4, 0, 0, 0]]}
weight: {type: torque, flange: table, tau: {sine: {amplitude: 500, f: 3}}}
push: {type: torque, flange: motor, tau: {step: {height: 50, startTime: 1}}}`,
		"w: {speed: motor}\nload: {torque: worm, onto: motor}"), time.Millisecond)
	b.To(0.999, func(at float64) {
		b.Is("w", 0, 1e-9)
		b.Is("load", 0, 1e-9)
	})
	b.To(1.1, nil)
	if !(b.Get("w") > 1) {
		t.Errorf("the motor turns at %g rad/s", b.Get("w"))
	}
}

// A gear with an ideal loss table equals an ideal gear.
func TestLossyGearWithoutLossesIsIdeal(t *testing.T) {
	g := geared{1, 2, 3, losses{1, 1, 0, 0}}
	b := modeltest.New(t, g.plant("4", "{sine: {amplitude: 5, f: 2}}", "1"), 5*time.Millisecond)
	ideal := modeltest.New(t, modeltest.PlantOf(`
one: {type: inertia, J: 1, w_start: 4}
two: {type: inertia, J: 2}
gear: {type: ideal_gear, a: one, b: two, ratio: 3}
left: {type: torque, flange: one, tau: {sine: {amplitude: 5, f: 2}}}
right: {type: torque, flange: two, tau: 1}`, "w1: {speed: one}\nload: {torque: gear, onto: one, factor: -1}\nout: {torque: gear, onto: two}"), 5*time.Millisecond)
	b.To(1, func(at float64) {
		ideal.To(at, nil)
		for _, name := range []string{"w1", "load", "out"} {
			b.Is(name, ideal.Get(name), 1e-12)
		}
		b.Is("gear.mode", 2, 0)
		b.Is("P", 0, 0)
	})
}

// reference integrates a geared pair under the torques Ta and Tb over time. It locates standstill,
// break-away and changes of the driving side by bisection of the step.
func (g geared) reference(w, until float64, Ta, Tb func(float64) float64, see func(at, w float64)) {
	mode := math.Copysign(1, w)
	if w == 0 {
		mode = 0
	}
	rate := func(at float64) float64 {
		if mode == 0 {
			return 0
		}
		a, _ := g.moving(mode, Ta(at), Tb(at))
		return a
	}
	// breaks returns the direction of break-away at a time, or 0.
	breaks := func(at float64) float64 {
		loss, holds := g.locked(Ta(at), Tb(at))
		if holds {
			return 0
		}
		return math.Copysign(1, loss)
	}
	side := func(at float64) bool { // reports whether side a drives
		a, _ := g.moving(mode, Ta(at), Tb(at))
		return (Ta(at)-g.J1*a)*mode >= (g.tau1-g.tau2)/(g.eta1-1/g.eta2)
	}
	step := func(at, h float64) float64 { // the rate depends on time only: Boole's rule
		return h * (7*rate(at) + 32*rate(at+h/4) + 12*rate(at+h/2) + 32*rate(at+3*h/4) + 7*rate(at+h)) / 90
	}
	at, grid := 0.0, 1e-3
	for n := 1; at < until-1e-9; {
		end := float64(n) * grid
		over := func(h float64) bool {
			if mode == 0 {
				return breaks(at+h) != 0
			}
			return (w+step(at, h))*mode < 0 || side(at) != side(at+h)
		}
		h := end - at
		if mode == 0 && breaks(at) != 0 {
			mode = breaks(at)
		}
		if over(h) {
			lo, hi := 0.0, h
			for range 60 {
				if mid := (lo + hi) / 2; over(mid) {
					hi = mid
				} else {
					lo = mid
				}
			}
			h = hi
		} else {
			n++
		}
		w += step(at, h)
		at += h
		if mode != 0 && w*mode < 0 {
			w, mode = 0, breaks(at)
		}
		if h == end-at+h || at == end {
			see(end, w)
		}
	}
}

// Modelica.Mechanics.Rotational.Examples.LossyGearDemo1, with its own and with other losses, agrees
// with an independent integration over 2 s and all modes.
func TestLossyGearDemoAgreesWithAReference(t *testing.T) {
	for _, g := range []geared{
		{1, 1.5, 2, losses{0.5, 0.5, 0, 0}},
		{1, 1.5, 2, losses{0.9, 0.3, 0.5, 1.5}},
	} {
		Ta := func(at float64) float64 { return 10 * math.Sin(2*math.Pi*at) }
		Tb := func(at float64) float64 { return -10 + 2.5*at }
		want := map[int64]float64{}
		g.reference(0, 2, Ta, Tb, func(at, w float64) { want[int64(math.Round(at*1e3))] = w })
		for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
			b := modeltest.New(t, g.plant("0", "{sine: {amplitude: 10, f: 1}}", "{ramp: {height: 5, duration: 2, offset: -10}}"), period)
			worst, stuck, work := 0.0, 0, 0.0
			modes := map[float64]bool{}
			b.To(2, func(at float64) {
				ref, ok := want[int64(math.Round(at*1e3))]
				if !ok {
					t.Fatalf("no reference at %g s", at)
				}
				worst = max(worst, math.Abs(b.Get("w1")-ref))
				modes[b.Get("gear.mode")] = true
				if b.Get("gear.mode") == 0 {
					stuck++
				}
				work = max(work, -b.Get("P"))
			})
			if !(worst < 1e-6) || len(modes) != 3 || stuck == 0 || !(work <= 0) || b.Get("lag") != 0 {
				t.Errorf("%v at %v: off by %g rad/s, modes %v, friction drives with %g W", g.losses, period, worst, modes, work)
			}
			t.Logf("%v at %v: within %.2g rad/s, %g events", g.losses, period, worst, b.Get("events"))
		}
	}
}

// In LossyGearDemo3 the driving side is not obvious. Before 0.5 s the bearings are the only load.
func TestLossyGearDemo3FindsTheDrivingSide(t *testing.T) {
	g := geared{0.001, 0.001, 1, losses{0.25, 0.25, 0.625, 2.5}}
	b := modeltest.New(t, g.plant("10", "0", "{step: {height: 1, startTime: 0.5}}"), time.Millisecond)
	a, _ := g.moving(1, 0, 0)
	b.To(0.001, nil)
	b.Is("w1", max(0, 10+a*0.001), 1e-9)
	b.To(0.5, nil)
	b.Is("w1", 0, 1e-9)
	b.To(1, nil)
	want := 0.0
	if loss, holds := g.locked(0, 1); !holds {
		a, _ = g.moving(math.Copysign(1, loss), 0, 1)
		want = 0.5 * a
	}
	b.Is("w1", want, 1e-6)
}

// With a loss table over the speed, the missing energy equals the loss that the gear reports.
func TestLossyGearReportsItsLosses(t *testing.T) {
	text := modeltest.PlantOf(`
one: {type: inertia, J: 0.5, w_start: 30}
two: {type: inertia, J: 4}
gear: {type: lossy_gear, a: one, b: two, ratio: 3, lossTable: [[0, 0.95, 0.9, 0.2, 0.3], [20, 0.9, 0.85, 0.4, 0.5], [40, 0.92, 0.88, 0.6, 0.7]]}
left: {type: torque, flange: one, tau: {sine: {amplitude: 20, f: 1.5}}}
shaft: {type: spring_damper, a: two, b: three, c: 900, d: 0}
three: {type: inertia, J: 2}`, `
w1: {speed: one}
w2: {speed: two}
w3: {speed: three}
Pin: {power: left}
P: {power: gear}
twist: {phi_rel: shaft}`)
	for period, tol := range map[time.Duration]float64{time.Millisecond / 10: 1e-7, time.Millisecond: 2e-6} {
		b := modeltest.New(t, text, period)
		energy := func() float64 {
			sq := func(x float64) float64 { return x * x }
			return (0.5*sq(b.Get("w1")) + 4*sq(b.Get("w2")) + 2*sq(b.Get("w3")) + 900*sq(b.Get("twist"))) / 2
		}
		h := period.Seconds()
		start, balance, lost := energy(), 0.0, 0.0
		net := []float64{b.Get("Pin") - b.Get("P")}
		b.To(0.12, func(at float64) { net = append(net, b.Get("Pin")-b.Get("P")); lost += h * b.Get("P") })
		for i := 0; i+2 < len(net); i += 2 { // Simpson's rule; the gear does not stop in this time
			balance += h / 3 * (net[i] + 4*net[i+1] + net[i+2])
		}
		if got := energy() - start; !scalar.EqualWithinAbs(got, balance, tol*start) || !(lost > 1) {
			t.Errorf("%v: the energy changes by %.9g J, torque and loss make %.9g J (loss %g J)", period, got, balance, lost)
		}
	}
}

// The line of elements around the lossy gear of Modelica.Mechanics.Rotational.Examples.HeatLosses is
// accepted. Beyond the last row of its table the efficiencies are held and the torques go on.
func TestLossyGearBeyondItsTable(t *testing.T) {
	heat := modeltest.New(t, modeltest.PlantOf(`
before: {type: inertia, J: 2}
spring: {type: spring, a: before, b: in, c: 1e4}
push: {type: torque, flange: before, tau: {sine: {amplitude: 20, f: 5}}}
bearing: {type: bearing_friction, flange: before, tau_pos: [[0, 1]]}
in: {type: inertia, J: 2}
gear: {type: lossy_gear, a: in, b: out, ratio: 2, lossTable: [[0, 0.8, 0.8, 1, 1], [1, 0.7, 0.7, 2, 2]]}
clutch: {type: clutch, a: out, b: five, mu: 0.5, cgeo: 1, fn_max: 10, f_normalized: {sine: {amplitude: 1, f: 0.2}}}
five: {type: inertia, J: 2}
oneWay: {type: one_way_clutch, a: five, b: six, mu: 0.5, cgeo: 1, fn_max: 1, f_normalized: {sine: {amplitude: 1, f: 0.2}}}
six: {type: inertia, J: 2}
brake: {type: brake, flange: six, mu: 0.5, cgeo: 1, fn_max: 2, f_normalized: {sine: {amplitude: 1, f: 0.2}}}`,
		"w: {speed: in}"), 5*time.Millisecond)
	moved := 0.0
	heat.To(1, func(float64) { moved = max(moved, math.Abs(heat.Get("w"))); heat.Is("lag", 0, 0) })
	if !(moved > 0.01) {
		t.Errorf("the gear turns with %g rad/s at most", moved)
	}

	for _, c := range []struct {
		table string
		losses
	}{
		{"[[0, 0.8, 0.8, 1, 1], [1, 0.7, 0.6, 2, 2.5]]", losses{0.7, 0.6, 4, 5.5}},
		{"[[0, 0.5, 0.5, 1, 1], [1, 0.99, 0.99, 2, 2]]", losses{0.99, 0.99, 4, 4}},
		{"[[0, 0.8, 0.8, 3, 5], [1, 0.7, 0.7, 1, 4]]", losses{0.7, 0.7, 0, 3.5}},
	} {
		for _, Ta := range []float64{60, -60} { // side a drives, side b drives
			g := geared{1, 1.5, 2, c.losses}
			text := strings.Replace(g.plant("3", fmt.Sprint(Ta), "0"), fmt.Sprint(g.losses), c.table, 1)
			b := modeltest.New(t, text, time.Millisecond)
			_, loss := g.moving(1, Ta, 0)
			b.Is("loss", loss, 1e-8)
		}
	}
}
