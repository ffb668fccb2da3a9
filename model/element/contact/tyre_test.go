package contact_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/plantfile"
)

// magicFormula is Reiter, eq. 135.
func magicFormula(b, c, d, e, kappa float64) float64 {
	return d * math.Sin(c*math.Atan(b*kappa-e*(b*kappa-math.Atan(b*kappa))))
}

// The static force of the tyre follows the formula over its slip: forwards and backwards, with
// shifts, under other loads and on ice.
func TestTyreFollowsTheMagicFormula(t *testing.T) {
	for _, c := range []struct {
		keys       string
		v, w       float64 // m/s, rad/s
		b, d, load float64
		sh, sv     float64
		road       float64
	}{
		{"fn: 4000, B: 10, D: 1", 20, 68, 10, 1, 4000, 0, 0, 1},
		{"fn: 4000, B: 10, D: 1", 20, 40, 10, 1, 4000, 0, 0, 1},
		{"fn: 4000, B: 10, D: 1", -20, -68, 10, 1, 4000, 0, 0, 1},
		{"fn: 4000, B: 10, D: 1, S_h: 0.02, S_v: -50", 20, 68, 10, 1, 4000, 0.02, -50, 1},
		{"fn: 3000, B: [[2000, 12], [4000, 8]], D: [[2000, 1.1], [4000, 0.9]]", 20, 70, 10, 1, 3000, 0, 0, 1},
		{"fn: 6000, B: [[2000, 12], [4000, 8]], D: [[2000, 1.1], [4000, 0.9]]", 20, 70, 8, 0.9, 6000, 0, 0, 1},
		{"fn: 4000, B: 10, D: 1, friction: 0.1", 20, 68, 10, 1, 4000, 0, 0, 0.1},
		{"fn: -10, B: 10, D: 1, friction: {table: [[0, 1], [1, 1]]}", 20, 68, 10, 1, 0, 0, 0, 1},
		{"fn: 4000, B: 10, D: 1, v_low: 50", 20, 68, 10, 1, 4000, 0, 0, 1},
	} {
		if c.load == 0 {
			c.keys = "fn: {table: [[0, -10], [1, 5]]}" + c.keys[len("fn: -10"):]
		}
		b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
wheel: {type: inertia, J: 1, w_start: %g}
car: {type: mass, m: 400, v_start: %g}
tyre: {type: tyre, a: wheel, b: car, radius: 0.3, C: 1.9, E: 0.97, %s}`, c.w, c.v, c.keys),
			"f: {force: tyre}\nk: {signal: tyre.slip}\na: {acceleration: car}\nalpha: {acceleration: wheel}\nvs: {v_rel: tyre}"), time.Millisecond)
		low := 1.0
		if strings.Contains(c.keys, "v_low: 50") {
			low = 50
		}
		kappa := (0.3*c.w-c.v)/max(math.Abs(c.v), low) + c.sh
		f := c.road*c.load*magicFormula(c.b, 1.9, c.d, 0.97, kappa) + c.sv
		b.Is("vs", 0.3*c.w-c.v, 1e-12)
		b.Is("k", kappa, 1e-12)
		b.Is("f", f, 1e-11)
		b.Is("a", f/400, 1e-11)
		b.Is("alpha", -0.3*f, 1e-11)
	}
}

// quarter is a wheel with a brake and a drive under a quarter of a car, with a relaxation
// length.
func quarter(v, w float64, brake, drive string) string {
	return modeltest.PlantOf(fmt.Sprintf(`
wheel: {type: inertia, J: 1.2, w_start: %g}
car: {type: mass, m: 400, v_start: %g}
tyre: {type: tyre, a: wheel, b: car, radius: 0.3, fn: 4000, B: 10, C: 1.9, D: 1, E: 0.97, relaxation: 0.3}
brake: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: %s}
drive: {type: torque, flange: wheel, tau: %s}`, w, v, brake, drive),
		"v: {speed: car}\nw: {speed: wheel}\nf: {force: tyre}\nk: {signal: tyre.slip}\ns: {position: car}")
}

// Braked with a locked wheel from 20 m/s to standstill, at 10 ms: the force stays within
// the friction, the car comes to rest and stays where it is.
func TestLockedWheelBringsTheCarToRestWithoutRinging(t *testing.T) {
	b := modeltest.New(t, quarter(20, 20/0.3, "{table: [[0, 0], [0.5, 0], [0.6, 5000]]}", "0"), 10*time.Millisecond)
	b.To(3, func(at float64) {
		if f := b.Get("f"); !(math.Abs(f) <= 4000*(1+1e-9)) {
			t.Fatalf("%g N at %g s", f, at)
		}
	})
	b.Is("brake.mode", 0, 0)
	rest, most := b.To(8, nil).Get("s"), 0.0
	b.To(12, func(at float64) { most = max(most, math.Abs(b.Get("v"))) })
	if !(most < 1e-6) || !(math.Abs(b.Get("s")-rest) < 1e-6) {
		t.Errorf("it still moves at %g m/s, by %g m in 4 s", most, b.Get("s")-rest)
	}
}

// The stretch of a sliding tread is its force divided by its stiffness, here 8 mm. This spring
// throws back a car that stops on a locked wheel. A stretch of the relaxation length would throw it
// back much farther.
func TestLockedWheelDoesNotThrowTheCarBack(t *testing.T) {
	for _, road := range []float64{1, 0.1} {
		text := strings.Replace(quarter(8, 8/0.3, "9000", "0"), "fn: 4000", fmt.Sprintf("fn: 4000, friction: %g", road), 1)
		b, back, far := modeltest.New(t, text, 5*time.Millisecond), 0.0, 0.0
		b.To(15, func(at float64) {
			back = max(back, -b.Get("v"))
			far = max(far, b.Get("s"))
		})
		bears := 0.92 * 4000 * road              // N
		stretch := 0.92 * 0.3 / 19               // m, of a spring of fn·B·C·D/relaxation
		most := math.Sqrt(bears * stretch / 400) // m/s, from all energy of the spring
		if !(back > most/10) || !(back < most) || !(far-b.Get("s") < 2*stretch) {
			t.Errorf("road %g: back at %g m/s, by %g m; the tread stores %g m/s", road, back, far-b.Get("s"), most)
		}
	}
}

// The torque of a launch from rest exceeds the adhesion, at 10 ms. The wheel spins, sliding friction
// accelerates the car, and the wheel rolls again after the end of the torque.
func TestSpinningWheelLaunchesTheCarAndRollsAgain(t *testing.T) {
	b := modeltest.New(t, quarter(0, 0, "0", "{table: [[0, 0], [0.5, 0], [0.5, 2000], [1.5, 2000], [1.5, 0]]}"), 10*time.Millisecond)
	spin := 0.0
	b.To(1.5, func(at float64) {
		spin = max(spin, 0.3*b.Get("w")-b.Get("v"))
		if f := b.Get("f"); !(math.Abs(f) <= 4000*(1+1e-9)) {
			t.Fatalf("%g N at %g s", f, at)
		}
	})
	if v := b.Get("v"); !(spin > 20) || !(v > 6 && v < 10) {
		t.Errorf("slip speed up to %g m/s, car at %g m/s", spin, v)
	}
	b.To(6, nil)
	b.Is("v", 0.3*b.Get("w"), 1e-6)
	b.Is("f", 0, 1e-3)
}

// Grids of 10 ms and 1 ms give the same motion.
func TestRelaxedTyreIsTheSameOnEveryGrid(t *testing.T) {
	text := quarter(15, 50, "{table: [[0, 0], [0.3, 0], [0.5, 900], [1.5, 900], [1.6, 0]]}", "{table: [[0, 0], [2, 0], [2.2, 800], [4, 800]]}")
	fine, coarse := modeltest.New(t, text, time.Millisecond), modeltest.New(t, text, 10*time.Millisecond)
	coarse.To(4, func(at float64) {
		fine.To(at, nil)
		for name, span := range map[string]float64{"v": 15, "w": 60, "f": 8000} {
			if !scalar.EqualWithinAbs(coarse.Get(name), fine.Get(name), 1e-4*span) {
				t.Fatalf("at %g s %s is %.9g at 10 ms and %.9g at 1 ms", at, name, coarse.Get(name), fine.Get(name))
			}
		}
	})
}

// Two driven wheels behind a differential, one of them on ice from 1 s to 2 s: it spins,
// and both get the same torque all the time.
func TestIceUnderOneWheelLetsItSpin(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
drive: {type: inertia, J: 0.2, w_start: 50}
axle: {type: differential, drive: drive, left: left, right: right}
left: {type: inertia, J: 1, w_start: 50}
right: {type: inertia, J: 1, w_start: 50}
car: {type: mass, m: 800, v_start: 15}
tyre_l: {type: tyre, a: left, b: car, radius: 0.3, fn: 4000, friction: {table: [[0, 1], [1, 1], [1, 0.1], [2, 0.1], [2, 1]]}, B: 10, C: 1.9, D: 1, E: 0.97, relaxation: 0.3}
tyre_r: {type: tyre, a: right, b: car, radius: 0.3, fn: 4000, B: 10, C: 1.9, D: 1, E: 0.97, relaxation: 0.3}
engine: {type: torque, flange: drive, tau: 600}`, "v: {speed: car}\nl: {speed: left}\nr: {speed: right}\nfl: {force: tyre_l}\nfr: {force: tyre_r}\nal: {acceleration: left}\nar: {acceleration: right}"), 5*time.Millisecond)
	same := func(at float64) { b.Is("al", b.Get("ar")-0.3*(b.Get("fl")-b.Get("fr")), 1e-9) }
	b.To(0.9, same)
	dry := b.Get("fl")
	if !(dry > 900) || !(math.Abs(dry-b.Get("fr")) < 1) {
		t.Errorf("%g and %g N on a dry road", dry, b.Get("fr"))
	}
	b.To(1.9, same)
	if fl, v := b.Get("fl"), b.Get("v"); !(fl < 401 && fl > 200) || !(0.3*b.Get("l") > v+3) || !(0.3*b.Get("r") < v+1) {
		t.Errorf("on ice %g N, wheels at %g and %g rad/s under %g m/s", fl, b.Get("l"), b.Get("r"), v)
	}
	b.To(4, nil)
	if fl, fr := b.Get("fl"), b.Get("fr"); !(math.Abs(fl-fr) < 5) || !(fl > 900) {
		t.Errorf("%g and %g N behind the ice", fl, fr)
	}
}

// Coulomb's tyre on a moving car: mu·fn·friction while it slips.
func TestCoulombTyreActsAsAClutchToTheRoad(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
wheel: {type: inertia, J: 2, w_start: 0}
car: {type: mass, m: 500, v_start: 10}
tyre: {type: tyre, a: wheel, b: car, radius: 0.5, fn: 2000, friction: {table: [[0, 0.5], [5, 0.5]]}, mu: 0.8}`, "v: {speed: car}\nw: {speed: wheel}\nf: {force: tyre}"), 5*time.Millisecond)
	locked := 10 / (800/500.0 + 0.5*800*0.5/2) // slip speed over its rate
	b.To(0.2, func(at float64) {
		slips := min(at, locked)
		b.Is("v", 10-1.6*slips, 1e-10)
		b.Is("w", 200*slips, 1e-10)
		if at < locked {
			b.Is("f", -800, 1e-10)
		}
	})
	b.Is("tyre.mode", 0, 0)
	b.Is("f", 0, 1e-9)
}

// A wheel that leaves the road and returns brakes with the impulse of its load only, at any instant
// within a step.
func TestLiftingWheelBrakesWithTheImpulseOfItsLoad(t *testing.T) {
	load := "{table: [[0, 3000], [1.003, 3000], [2.1, -3000], [3.1, 3000], [4, 3000]]}"
	impulse := 3000*1.003 + 1500*(1.097/2) + 1500*0.5 + 3000*0.9
	for _, keys := range []string{
		"mu: 1, fn: " + load,
		"mu: 1, friction: 1, fn: " + load,
		"mu: 1, fn: 3000, friction: {product: [" + load + ", {table: [[0, 3.3333333333333335e-4], [1, 3.3333333333333335e-4]]}]}",
		fmt.Sprintf("B: 10, C: 1, D: %.17g, E: 0, fn: %s", 1/math.Sin(math.Atan(10)), load), // kappa is -1 all the time
	} {
		b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
ground: {type: fixed}
car: {type: mass, m: 300, v_start: 60}
wheel: {type: inertia, J: 1}
hold: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: 1e5}
tyre: {type: tyre, a: wheel, b: car, radius: 0.3, %s}`, keys), "v: {speed: car}"), 10*time.Millisecond)
		b.To(4, nil)
		b.Is("v", 60-impulse/300, 1e-9)
	}
}

// A load given as a sum has the same substeps as the load as one number.
func TestLoadGivenAsASumHasTheSameTimeConstant(t *testing.T) {
	fastest := func(fn string) float64 {
		p, err := plantfile.Load("t.yaml", []byte(strings.Replace(modeltest.PlantOf(`
wheel: {type: inertia, J: 1.2}
car: {type: mass, m: 400}
tyre: {type: tyre, a: wheel, b: car, radius: 0.3, B: 10, C: 1.9, D: 1, E: 0.97, fn: `+fn+"}", "v: {speed: car}"),
			"elements:", "inputs: {more: {unit: N, min: -500, max: 1000}}\nelements:", 1)), library.Elements())
		if err != nil {
			t.Fatal(err)
		}
		sys, err := assemble.System(p)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := kernel.Prepare(sys, kernel.Options{Period: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return tables.Fastest()
	}
	// Twice B·C·D·fn/v_low on the inertias, and along the speed of the car D·fn/v_low.
	want := 2 * 3000 * (10*1.9*(0.09/1.2+1/400.0) + 1/400.0)
	for _, fn := range []string{"{sum: [3000, {product: [0, more]}]}", "{sum: [2500, 500, {product: [0, more]}]}", "{sum: [2000, more]}", "{sum: [4000, {product: [-2, more]}, -2000]}"} {
		if got := fastest(fn); !scalar.EqualWithinRel(got, want, 1e-12) {
			t.Errorf("fn %s: %g rad/s, want %g", fn, got, want)
		}
	}
}
