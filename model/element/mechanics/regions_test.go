package mechanics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// The torque at rest follows the curve: soft inside, stiff outside, continuous, and with a preload
// if the offsets define one.
func TestAffineSpringFollowsItsCurve(t *testing.T) {
	for _, c := range []struct {
		spring string
		x      []float64 // phi_rel - phi_rel0
		tau    []float64
	}{
		{"c: [1, 10], borders: [0.1]", []float64{-0.3, -0.1, -0.05, 0, 0.05, 0.1, 0.3}, []float64{-2.1, -0.1, -0.05, 0, 0.05, 0.1, 2.1}},
		{"c: [1, 10], borders: [0.1], phi_rel0: 0.5", []float64{-0.3, 0, 0.3}, []float64{-2.1, 0, 2.1}},
		{"c: [5, 1, 3], borders: [-0.1, 0.2], symmetric: false", []float64{-0.3, 0.1, 0.4}, []float64{-1.1, 0.1, 0.8}},
		{"c: [5, 1, 3], borders: [0.1, 0.2], symmetric: false", []float64{-0.3, 0.15, 0.3}, []float64{-1.5, 0.55, 0.9}},
		{"c: [5, 1, 3], borders: [-0.2, -0.1], symmetric: false", []float64{-0.3, -0.15, 0.3}, []float64{-0.9, -0.35, 0.9}},
		{"c: [5, 1], borders: [0.1], symmetric: false, offsets: [2, 2.4]", []float64{-0.3, 0, 0.3}, []float64{0.5, 2, 2.7}},
		{"c: [1, 0, -1], borders: [0.1, 0.3]", []float64{-0.35, 0.2, 0.35}, []float64{-0.05, 0.1, 0.05}},
	} {
		for i, x := range c.x {
			rest := 0.0
			if strings.Contains(c.spring, "phi_rel0") {
				rest = 0.5
			}
			b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
body: {type: inertia, J: 1}
ground: {type: fixed}
k: {type: affine_spring, a: ground, b: body, phi_rel_start: %.17g, %s}`, rest+x, c.spring), "tau: {torque: k}\nphi: {phi_rel: k}\na: {acceleration: body}"), time.Millisecond)
			b.Is("phi", rest+x, 1e-15)
			b.Is("tau", c.tau[i], 1e-15)
			b.Is("a", -c.tau[i], 1e-15)
		}
	}
}

// Until the first reversal the loss is the friction of the ring over the distance.
func TestHysteresisIsFrictionOfHalfTheLoop(t *testing.T) {
	for _, spring := range []string{
		"c: [4, 40], borders: [0.5], hysteresis: [0.6, 1.8]",
		"symmetric: false, c: [1, 4, 40], borders: [-0.1, 0.5], hysteresis: [9, 0.6, 1.8]",
	} {
		b := modeltest.New(t, modeltest.PlantOf(`
body: {type: mass, m: 2, v_start: 3}
ground: {type: fixed}
k: {type: affine_spring, a: ground, b: body, `+spring+`}`, "v: {speed: body}\nx: {s_rel: k}\nf: {force: k}"), 10*time.Millisecond)
		losesHalfTheLoop(t, b)
	}
}

// losesHalfTheLoop checks the energy of a body until its first reversal.
func losesHalfTheLoop(t *testing.T, b *modeltest.Bench) {
	t.Helper()
	beyond, turned := 0, false
	b.To(2, func(at float64) {
		v, x, f := b.Get("v"), b.Get("x"), b.Get("f")
		out := max(0, x-0.5)
		pot, loss, spring, ring := 2*x*x+18*out*out, 0.3*x+0.6*out, 4*x+36*out, 0.3
		if out > 0 {
			beyond++
			ring = 0.9
		}
		if turned = turned || v < 0; turned {
			return
		}
		if !scalar.EqualWithinAbs(v*v+pot+loss, 9, 1e-12) || !scalar.EqualWithinAbs(f, spring+ring, 1e-12) {
			t.Fatalf("at %g s, x = %g m: %.13g J are accounted for of 9; force %.13g, want %.13g N", at, x, v*v+pot+loss, f, spring+ring)
		}
	})
	if !turned || beyond < 5 {
		t.Errorf("turned: %t, %d grid times beyond the border", turned, beyond)
	}
}

// chain returns the text of n masses with affine springs between them and to the ground, and their
// energy, J.
func chain(rnd *rand.Rand, n int) (text string, energy func(v, x []float64) float64) {
	type spring struct{ borders, c []float64 }
	var springs []spring
	var mass []float64
	elements, outputs := "ground: {type: fixed}\n", ""
	last := "ground"
	for i := range n {
		mass = append(mass, 0.5+rnd.Float64())
		s := spring{c: []float64{10 * rnd.Float64()}}
		for range 1 + rnd.IntN(3) {
			at := 0.05 + 0.3*rnd.Float64()
			if k := len(s.borders); k > 0 {
				at += s.borders[k-1]
			}
			s.borders, s.c = append(s.borders, at), append(s.c, 100*rnd.Float64())
		}
		springs = append(springs, s)
		elements += fmt.Sprintf("m%d: {type: mass, m: %.17g, v_start: %.17g}\n", i, mass[i], 4*rnd.Float64()-2)
		elements += fmt.Sprintf("k%d: {type: affine_spring, a: %s, b: m%d, s_rel_start: %.17g, c: %s, borders: %s}\n", i, last, i,
			rnd.Float64()-0.5, strings.ReplaceAll(fmt.Sprint(s.c), " ", ", "), strings.ReplaceAll(fmt.Sprint(s.borders), " ", ", "))
		outputs += fmt.Sprintf("v%d: {speed: m%d}\nx%d: {s_rel: k%d}\n", i, i, i, i)
		last = fmt.Sprintf("m%d", i)
	}
	return modeltest.PlantOf(elements, outputs), func(v, x []float64) float64 {
		sum := 0.0
		for i, s := range springs {
			z := math.Abs(x[i])
			sum += mass[i]*v[i]*v[i]/2 + s.c[0]*z*z/2
			for q, b := range s.borders {
				sum += (s.c[q+1] - s.c[q]) * max(0, z-b) * max(0, z-b) / 2
			}
		}
		return sum
	}
}

func TestRandomChainsOfAffineSpringsKeepTheirEnergy(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	worst, crossings := 0.0, 0.0
	for seed := range 30 {
		n := 1 + rnd.IntN(4)
		text, energy := chain(rnd, n)
		b := modeltest.New(t, text, 20*time.Millisecond)
		now := func() float64 {
			v, x := make([]float64, n), make([]float64, n)
			for i := range n {
				v[i], x[i] = b.Get(fmt.Sprintf("v%d", i)), b.Get(fmt.Sprintf("x%d", i))
			}
			return energy(v, x)
		}
		first := now()
		b.To(10, func(at float64) {
			off := math.Abs(now()/first - 1)
			if !(off <= 1e-11) || b.Get("lag") != 0 {
				t.Fatalf("plant %d, %d masses: the energy is off by %.2g at %g s, lag %g s\n%s", seed, n, off, at, b.Get("lag"), text)
			}
			worst = max(worst, off)
		})
		crossings += b.Get("events")
	}
	if !(crossings >= 3000) {
		t.Errorf("only %g crossings", crossings)
	}
	t.Logf("energy within %.1e over %g crossings", worst, crossings)
}

// fourAndSix returns a chain of five bodies on four springs of four regions, with six clutches and
// brakes that close and open.
func fourAndSix() string {
	text := "ground: {type: fixed}\nb0: {type: inertia, J: 0.5, w_start: 20}\n"
	for i := 1; i < 5; i++ {
		text += fmt.Sprintf("b%d: {type: inertia, J: %g}\n", i, 0.2+0.1*float64(i))
		text += fmt.Sprintf("k%d: {type: affine_spring, a: b%d, b: b%d, c: [%d, 300, 100, 900], borders: [0.03, 0.08, 0.2]}\n", i, i-1, i, 40*i)
		text += fmt.Sprintf("d%d: {type: damper, a: b%d, b: b%d, d: 0.2}\n", i, i-1, i)
	}
	for i := range 5 {
		text += fmt.Sprintf("c%d: {type: brake, flange: b%d, mu: 1, cgeo: 1, fn: {pulse: {amplitude: %d, width: 40, period: %g s, startTime: %g s}}}\n",
			i, i, 20+5*i, 0.7+0.1*float64(i), 0.13*float64(i))
	}
	text += "c5: {type: clutch, a: b0, b: b4, mu: 1, cgeo: 1, fn: {pulse: {amplitude: 30, width: 30, period: 0.9 s}}}\n"
	text += "push: {type: torque, flange: b2, tau: {trapezoid: {amplitude: 120, offset: -60, rising: 0.1 s, width: 0.3 s, falling: 0.1 s, period: 0.77 s}}}"
	return modeltest.PlantOf(text, "w0: {speed: b0}\nw1: {speed: b1}\nw2: {speed: b2}\nw3: {speed: b3}\nw4: {speed: b4}\nx1: {phi_rel: k1}\nx4: {phi_rel: k4}")
}

// 4⁴ combinations of regions and 2⁶ lock sets exceed the memory for precomputed modes. The tick
// builds them in bounded memory.
func TestFourSpringsOfFourRegionsAndSixClutchesStayBounded(t *testing.T) {
	fine, coarse := modeltest.New(t, fourAndSix(), time.Millisecond), modeltest.New(t, fourAndSix(), 5*time.Millisecond)
	if c := coarse.Tables; c.Modes != nil || c.Combinations != 256 || c.Mc != 6 || !(c.Workspace() < 100e3) {
		t.Fatalf("%d modes, %d combinations, %d friction elements, %d bytes", len(c.Modes), c.Combinations, c.Mc, c.Workspace())
	}
	coarse.To(6, func(at float64) {
		fine.To(at, nil)
		for _, name := range []string{"w0", "w1", "w2", "w3", "w4", "x1", "x4"} {
			coarse.Is(name, fine.Get(name), 1e-8)
		}
		if t.Failed() || coarse.Get("lag") != 0 {
			t.Fatalf("at %g s, lag %g s", at, coarse.Get("lag"))
		}
	})
	events, transitions := coarse.Get("events"), coarse.Get("transitions")
	if !(events >= 200) || !(transitions >= 40) {
		t.Errorf("%g events, %g transitions: too quiet a run", events, transitions)
	}
	if n := testing.AllocsPerRun(1000, func() { coarse.Kernel.Step(coarse.Y, coarse.U) }); n != 0 {
		t.Errorf("%g allocations in a tick", n)
	}
	t.Logf("%g events, %g transitions", events, transitions)
}

func TestRegionsBuiltInTheTickEqualTheTable(t *testing.T) {
	text := modeltest.PlantOf(`
ground: {type: fixed}
a: {type: inertia, J: 1, w_start: 5}
b: {type: inertia, J: 0.3}
c: {type: inertia, J: 2}
k1: {type: affine_spring, a: a, b: b, c: [20, 200], borders: [0.05], hysteresis: 0.5}
k2: {type: affine_spring, a: b, b: c, c: [100, 50, 400], borders: [-0.1, 0.02], symmetric: false}
d2: {type: affine_damper, a: b, b: c, d: [0.1, 1], borders: [0.4]}
hold: {type: brake, flange: c, mu: 1, cgeo: 1, fn: {pulse: {amplitude: 30, width: 50, period: 0.8 s}}}
grip: {type: clutch, a: a, b: c, mu: 1, cgeo: 1, fn: {pulse: {amplitude: 9, width: 30, period: 0.5 s}}}
push: {type: torque, flange: a, tau: {sine: {amplitude: 20, f: 2 Hz}}}`, "w: {speed: a}\nx: {phi_rel: k2}\ntau: {torque: k1}")
	p, err := plantfile.Load("t.yaml", []byte(text), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	var y [2][]float64
	var k [2]*kernel.Kernel
	for i, memory := range []int{0, 1} {
		tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		if want := (1 - i) * 2 * 3 * 2 * 8; len(tables.Modes) != want {
			t.Fatalf("%d modes, want %d", len(tables.Modes), want)
		}
		k[i] = kernel.New(tables)
		y[i] = make([]float64, len(tables.Outputs))
	}
	for tick := range 1000 {
		for i := range k {
			k[i].Step(y[i], nil)
		}
		for j := range y[0] {
			if !scalar.EqualWithinAbsOrRel(y[0][j], y[1][j], 1e-8, 1e-8) {
				t.Fatalf("tick %d: output %d is %.12g from the table and %.12g built", tick, j, y[0][j], y[1][j])
			}
		}
	}
	if events := y[0][len(y[0])-3]; !(events >= 100) {
		t.Errorf("%g events", events)
	}
}

// The law of a damper that depends on deflection and speed, against Runge-Kutta with 10 µs steps.
func TestDeflectionDamperFollowsItsLaw(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: mass, m: 1}
ground: {type: fixed}
k: {type: spring, a: ground, b: body, c: 30, s_rel_start: 0.4}
d: {type: deflection_damper, a: ground, b: body, d: 0.1, d_delta: 5, s_rel_start: 0.4}`, "v: {speed: body}\nx: {s_rel: d}\nf: {force: d}"), time.Millisecond)
	x, v, h := 0.4, 0.0, 1e-5
	f := func(x, v float64) float64 { return -30*x - (0.1+5*math.Abs(x))*v }
	b.To(2, func(at float64) {
		for range 100 {
			k1, l1 := v, f(x, v)
			k2, l2 := v+h/2*l1, f(x+h/2*k1, v+h/2*l1)
			k3, l3 := v+h/2*l2, f(x+h/2*k2, v+h/2*l2)
			k4, l4 := v+h*l3, f(x+h*k3, v+h*l3)
			x, v = x+h/6*(k1+2*k2+2*k3+k4), v+h/6*(l1+2*l2+2*l3+l4)
		}
		b.Is("x", x, 1e-9)
		b.Is("v", v, 1e-9)
		b.Is("f", (0.1+5*math.Abs(x))*v, 1e-9)
	})
}

// At a massless node between an affine spring and a damper both have the same torque.
func TestAffineSpringOnAMasslessNode(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 1, w_start: 2}
ground: {type: fixed}
k: {type: affine_spring, a: body, b: middle, c: [3, 50], borders: [0.1]}
d: {type: damper, a: middle, b: ground, d: 4}`, "w: {speed: body}\nk: {torque: k}\nd: {torque: d}\nx: {phi_rel: k}"), 5*time.Millisecond)
	impulse, before, stiff := 0.0, b.Get("k"), 0
	b.To(3, func(at float64) {
		b.Is("d", b.Get("k"), 1e-12)
		impulse += (b.Get("k") + before) / 2 * 0.005
		before = b.Get("k")
		b.Is("w", 2+impulse, 2e-3) // trapezoidal rule
		if math.Abs(b.Get("x")) > 0.1 {
			stiff++
		}
	})
	if stiff < 10 || stiff > 590 {
		t.Errorf("%d of 600 grid times in the stiff region", stiff)
	}
}

// The springs have more combinations than Prepare examines, and there are no precomputed modes.
// Prepare still finds the fastest combination, on whichever side the spring is stiff.
func TestFastestOfVeryManyCombinationsIsFound(t *testing.T) {
	for _, c := range []string{"[1, 10, 100, 1e3, 1e4, 1e6]", "[1e6, 1e4, 1e3, 100, 10, 1]"} {
		elements := "g: {type: fixed}\n"
		for i := range 5 {
			elements += fmt.Sprintf("m%d: {type: mass, m: 1}\nk%d: {type: affine_spring, a: g, b: m%d, symmetric: false, c: %s, borders: [0.1, 0.2, 0.3, 0.4, 0.5]}\n", i, i, i, c)
		}
		p, err := plantfile.Load("t.yaml", []byte(modeltest.PlantOf(elements, "v: {speed: m0}")), library.Elements())
		if err != nil {
			t.Fatal(err)
		}
		sys, err := assemble.System(p)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond, Memory: 1})
		if err != nil {
			t.Fatal(err)
		}
		if f := tables.Fastest(); tables.Modes != nil || !(math.Abs(f-1000) <= 1e-6) {
			t.Errorf("c: %s: the fastest mode of %d combinations is said to be %g rad/s, 1000 is right", c, tables.Combinations, f)
		}
	}
}
