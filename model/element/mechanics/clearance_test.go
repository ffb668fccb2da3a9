package mechanics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/plantfile"
)

// The position of a mass between two elastic stops is a triangle over time.
func TestElasticMassBetweenTwoStopsMovesBackAndForth(t *testing.T) {
	for _, turns := range []bool{false, true} {
		text := modeltest.PlantOf(`
body: {type: mass, m: 2, v_start: 3}
ground: {type: fixed}
play: {type: clearance, a: ground, b: body, s_min: -0.1, s_max: 0.4, restitution: 1}`, "v: {speed: body}\nx: {s_rel: play}")
		if turns {
			text = strings.NewReplacer("mass, m", "inertia, J", "v_start", "w_start", "s_m", "phi_m", "s_rel", "phi_rel").Replace(text)
		}
		b := modeltest.New(t, text, 7*time.Millisecond)
		b.To(10, func(at float64) {
			way := math.Mod(0.1+3*at, 1)
			x, v := way-0.1, 3.0
			if way > 0.5 {
				x, v = 0.9-way, -3
			}
			if !(math.Abs(way-0.5) <= 1e-9 || way <= 1e-9) {
				b.Is("v", v, 1e-13)
			}
			b.Is("x", x, 1e-11)
		})
	}
}

// A ball on a floor with e = 0.9 comes to rest after a known time and infinitely many rebounds; the
// tick cuts off the last ones.
func TestBouncingBallComesToRest(t *testing.T) {
	const g, e, drop = 9.81, 0.9, 1.0
	v := math.Sqrt(2 * g * drop)
	rest := v/g + 2*v/g*e/(1-e)
	text := modeltest.PlantOf(fmt.Sprintf(`
ball: {type: mass, m: 0.5, s_start: %g}
floor: {type: fixed}
weight: {type: force, flange: ball, f: %.17g}
bounce: {type: clearance, a: floor, b: ball, s_min: 0, restitution: %g}`, drop, -0.5*g, e), "v: {speed: ball}\nx: {s_rel: bounce}\nf: {force: bounce}")
	for _, c := range []struct {
		period time.Duration
		tol    float64 // a tick cuts off the last rebounds
	}{{time.Millisecond, 1e-4}, {10 * time.Millisecond, 1e-3}, {100 * time.Millisecond, 0.1}} {
		b := modeltest.New(t, text, c.period)
		struck, landed := 0, math.NaN()
		for b.Get("f") == 0 && b.Ticks < 20000 {
			b.Kernel.Step(b.Y, b.U)
			b.Ticks++
			for _, ev := range b.Kernel.Events() {
				switch ev.To {
				case kernel.Impact:
					struck++
				case kernel.Stuck:
					landed = ev.Time
				}
			}
			if x := b.Get("x"); !(x >= -1e-12) {
				t.Fatalf("x = %g m at tick %d", x, b.Ticks)
			}
		}
		if !(math.Abs(landed-rest) < c.tol) || struck < 60 {
			t.Errorf("%v: it lands at %.9g s after %d impacts, want %.9g s", c.period, landed, struck, rest)
		}
		b.To(float64(b.Ticks)*float64(b.Tables.PeriodNs)*1e-9+1, nil)
		b.Is("f", -0.5*g, 1e-12)
		b.Is("v", 0, 1e-15)
	}
}

// In elastic impacts of equal masses the speed passes to the next mass; one mass moves at a time.
func TestElasticImpactsPassTheSpeedToTheNextMass(t *testing.T) {
	elements, outputs := "", ""
	for i := range 6 {
		elements += fmt.Sprintf("m%d: {type: mass, m: 1.5, s_start: %g, v_start: %d}\n", i, 0.1*float64(i), max(0, 2-2*i))
		outputs += fmt.Sprintf("v%d: {speed: m%d}\n", i, i)
		if i > 0 {
			elements += fmt.Sprintf("g%d: {type: clearance, a: m%d, b: m%d, s_min: 0.05, restitution: 1}\n", i, i-1, i)
		}
	}
	b := modeltest.New(t, modeltest.PlantOf(elements, outputs), 10*time.Millisecond)
	b.To(0.2, func(at float64) {
		for i := range 6 {
			want := 0.0
			if float64(i) == min(5, math.Floor(at/0.025+1e-9)) {
				want = 2
			}
			if math.Abs(math.Mod(at/0.025+0.5, 1)-0.5) > 1e-6 {
				b.Is(fmt.Sprintf("v%d", i), want, 1e-13)
			}
		}
	})
}

// An impact passes through a closed contact: the body behind the struck one moves away, too.
func TestImpactPassesThroughAClosedContact(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
hammer: {type: mass, m: 1, s_start: -1, v_start: 1}
first: {type: mass, m: 1, s_start: 0}
second: {type: mass, m: 1, s_start: 0.01}
press: {type: force, flange: first, f: {table: [[0, 0.5], [0.9, 0.5], [0.9, 0], [1, 0]]}}
hold: {type: brake, flange: second, mu: 1, fn: {table: [[0, 10], [0.95, 10], [0.95, 0], [1, 0]]}}
blow: {type: clearance, a: hammer, b: first, s_min: 0, restitution: 1}
touch: {type: clearance, a: first, b: second, s_min: 0, restitution: 0}`, "v0: {speed: hammer}\nv1: {speed: first}\nv2: {speed: second}\ng: {s_rel: touch}\nf: {force: touch}"), time.Millisecond)
	b.To(0.5, nil)
	b.Is("f", -0.5, 1e-12)
	b.Is("g", 0, 1e-15)
	b.To(1.5, nil)
	sum := b.Get("v0") + b.Get("v1") + b.Get("v2")
	b.Is("v1", b.Get("v2"), 1e-12) // plastic: equal speeds
	if !(math.Abs(sum-1) < 1e-12) || !(b.Get("v2") > 0.4) {
		t.Errorf("speeds %g, %g, %g m/s: %g of the momentum 1 is left", b.Get("v0"), b.Get("v1"), b.Get("v2"), sum)
	}
}

// A brake transmits no impulse: the struck body slips against the brake at once.
func TestLockedBrakeSlipsUnderAnImpact(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
hammer: {type: mass, m: 1, s_start: -1, v_start: 2}
anvil: {type: mass, m: 3}
hold: {type: brake, flange: anvil, mu: 1, fn: 30}
blow: {type: clearance, a: hammer, b: anvil, s_min: 0, restitution: 0.5}`, "v0: {speed: hammer}\nv1: {speed: anvil}"), 10*time.Millisecond)
	b.To(0.6, func(at float64) {
		v0, v1 := 2.0, 0.0
		if at > 0.5+1e-9 { // 2·(1 - 0.5·3)/4 and 2·1.5/4, then 10 m/s² against it
			v0, v1 = -0.25, max(0, 0.75-10*(at-0.5))
		}
		if !(math.Abs(at-0.5) <= 1e-9) {
			b.Is("v0", v0, 1e-12)
			b.Is("v1", v1, 1e-11)
		}
	})
	b.Is("hold.mode", 0, 0)
}

// An impact on a geared shaft also turns the other shaft of the gear. An impact that closes the
// freewheel turns the shaft behind it; an impact that opens the freewheel does not.
func TestImpactTurnsGearedShaftsAndThoseBehindAClosedFreewheel(t *testing.T) {
	for _, start := range []float64{-4, 4} { // speed of the hammer, rad/s
		b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
hammer: {type: inertia, J: 1, w_start: %g, phi_start: %g}
anvil: {type: inertia, J: 2, phi_start: 0}
gear: {type: ideal_gear, a: fast, b: anvil, ratio: 3}
fast: {type: inertia, J: 0.5}
hold: {type: freewheel, a: behind, b: anvil}
behind: {type: inertia, J: 4}
blow: {type: clearance, a: anvil, b: hammer, %s, restitution: 0.25}`, start, -start/4,
			map[bool]string{true: "phi_max: 0", false: "phi_min: 0"}[start > 0]),
			"h: {speed: hammer}\na: {speed: anvil}\nf: {speed: fast}\nb: {speed: behind}"), 10*time.Millisecond)
		b.To(0.5, nil)
		heavy := 2 + 0.5*9 // inertia of the anvil and the geared shaft, kg·m²
		if start < 0 {
			heavy += 4 // this direction closes the freewheel
		}
		// Restitution applies to the speeds of hammer and anvil; then the freewheel closes.
		p := 1.25 * start / (1 + 1/(2+0.5*9))
		anvil := p / heavy
		b.Is("a", anvil, 1e-12)
		b.Is("f", 3*anvil, 1e-12)
		b.Is("h", start-p, 1e-12)
		if start < 0 {
			b.Is("b", anvil, 1e-12)
		} else {
			b.Is("b", 0, 1e-12)
		}
	}
}

// In random rows of masses with springs, stops on both sides and friction between them, no masses
// overlap, the momentum is constant and the energy never rises.
func TestRandomRowsOfClearancesKeepMomentumAndNeverOverlap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 2))
	impacts := 0
	for seed := range 40 {
		n := 2 + rnd.IntN(4)
		elements, outputs := "", ""
		var mass, stiff []float64
		for i := range n {
			mass = append(mass, math.Exp(3*rnd.Float64()-1.5))
			elements += fmt.Sprintf("m%d: {type: mass, m: %.17g, s_start: %g, v_start: %.17g}\n", i, mass[i], 0.5*float64(i), 4*rnd.Float64()-2)
			outputs += fmt.Sprintf("v%d: {speed: m%d}\n", i, i)
			if i == 0 {
				continue
			}
			stiff = append(stiff, 100*rnd.Float64())
			e := []float64{0, 1, rnd.Float64()}[rnd.IntN(3)]
			elements += fmt.Sprintf("k%d: {type: spring, a: m%d, b: m%d, c: %.17g, s_rel0: 0.5}\n", i, i-1, i, stiff[i-1])
			elements += fmt.Sprintf("g%d: {type: clearance, a: m%d, b: m%d, s_min: 0.4, s_max: 0.7, restitution: %.17g}\n", i, i-1, i, e)
			outputs += fmt.Sprintf("s%d: {s_rel: g%d}\n", i, i)
		}
		b := modeltest.New(t, modeltest.PlantOf(elements, outputs), 5*time.Millisecond)
		sums := func() (p, energy float64) {
			for i, m := range mass {
				v := b.Get(fmt.Sprintf("v%d", i))
				p += m * v
				energy += m * v * v / 2
				if i > 0 {
					x := b.Get(fmt.Sprintf("s%d", i)) - 0.5
					energy += stiff[i-1] * x * x / 2
				}
			}
			return p, energy
		}
		p0, before := sums()
		size := 0.0
		for i, m := range mass {
			size += m * math.Abs(b.Get(fmt.Sprintf("v%d", i)))
		}
		b.To(5, func(at float64) {
			p, energy := sums()
			if !(math.Abs(p-p0) <= 1e-12*size) {
				t.Fatalf("plant %d: the momentum went from %.15g to %.15g at %g s", seed, p0, p, at)
			}
			if !(energy <= before*(1+1e-10)) {
				t.Fatalf("plant %d: energy rose from %.12g to %.12g J at %g s", seed, before, energy, at)
			}
			before = energy
			for i := 1; i < n; i++ {
				if s := b.Get(fmt.Sprintf("s%d", i)); !(s >= 0.4-1e-12 && s <= 0.7+1e-12) {
					t.Fatalf("plant %d: s%d = %.15g m at %g s", seed, i, s, at)
				}
			}
			for _, e := range b.Kernel.Events() {
				if e.To == kernel.Impact {
					impacts++
				}
			}
		})
	}
	if impacts < 500 {
		t.Errorf("only %d impacts", impacts)
	}
	t.Logf("%d impacts", impacts)
}

// With k_s the contact force on the pushing body is k_s times the force on the pushed body:
// F = (m1 + k_s·m2)·a, in both directions and at either stop.
func TestUnequalContactForcesHaveTheirRatio(t *testing.T) {
	for _, c := range []struct {
		stops      string
		force, end float64 // force on body one, N; gap in contact, m
	}{{"s_min: 0.1", 6, 0.1}, {"s_max: 0.5", -6, 0.5}} {
		for _, ks := range []float64{1, 1.5, 10} {
			b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
one: {type: mass, m: 2}
two: {type: mass, m: 3, s_start: 0.3}
push: {type: force, flange: one, f: %g}
gap: {type: clearance, a: one, b: two, %s, k_s: %g}`, c.force, c.stops, ks), "a1: {acceleration: one}\na2: {acceleration: two}\nf: {force: gap}\ns: {s_rel: gap}\nv: {speed: two}"), 5*time.Millisecond)
			b.To(2, nil)
			a := c.force / (2 + ks*3)
			b.Is("s", c.end, 1e-15)
			b.Is("a1", a, 1e-12)
			b.Is("a2", a, 1e-12)
			b.Is("f", -3*a, 1e-12)
		}
	}
}

// Test case 4 of the thesis (ch. 4): in contact the energy falls by (k_s - 1)·N·|v|.
func TestContactWithLossesDissipatesItsPower(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
one: {type: mass, m: 10, s_start: -0.5}
two: {type: mass, m: 10}
k1: {type: spring, a: ground, b: one, c: 20}
k2: {type: spring, a: ground, b: two, c: 40}
gap: {type: clearance, a: one, b: two, s_min: 0, restitution: 0, k_s: 10}`,
		"x1: {s_rel: k1}\nx2: {s_rel: k2}\nv1: {speed: one}\nv2: {speed: two}\nf: {force: gap}\ns: {s_rel: gap}\nD: {dissipated: gap}"), time.Millisecond)
	energy := func() float64 {
		x1, x2, v1, v2 := b.Get("x1"), b.Get("x2"), b.Get("v1"), b.Get("v2")
		return 10*x1*x1 + 20*x2*x2 + 5*v1*v1 + 5*v2*v2
	}
	power := func() float64 { return -9 * b.Get("f") * math.Abs(b.Get("v1")) }
	start, before, rate, speed, met := energy(), energy(), power(), 0.0, 0
	b.To(20, func(at float64) {
		e, p := energy(), power()
		both := p > 0 && rate > 0 && b.Get("v1")*speed > 0
		if lost := before - e; both && !(math.Abs(lost-(p+rate)/2*1e-3) <= 1e-8) || !(lost >= -1e-12) {
			t.Fatalf("at %g s %g J are lost in 1 ms, %g W are said to be", at, lost, p)
		}
		if both {
			met++
		}
		if left := start - e - b.Get("D"); !(math.Abs(left) <= 1e-8) {
			t.Fatalf("%g J are not counted at %g s", left, at)
		}
		if s := b.Get("s"); !(s >= -1e-12) {
			t.Fatalf("overlap of %g m at %g s", -s, at)
		}
		before, rate, speed = e, p, b.Get("v1")
	})
	if met < 500 || !(b.Get("events") <= 500) {
		t.Errorf("in contact for %d ms, %g events", met, b.Get("events"))
	}
}

// Rows of shafts with springs and dampers in regions, stops, clutches that open and close, and a
// freewheel.
func TestRandomRowsOfEverythingKeepMomentumAndLoseEnergy(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 5))
	events, contacts := 0.0, 0
	for seed := range 20 {
		n := 2 + rnd.IntN(3)
		elements, outputs := "", ""
		var J, soft, stiff, border []float64
		for i := range n {
			J = append(J, math.Exp(3*rnd.Float64()-1.5))
			elements += fmt.Sprintf("J%d: {type: inertia, J: %.17g, w_start: %.17g}\n", i, J[i], 16*rnd.Float64()-8)
			outputs += fmt.Sprintf("w%d: {speed: J%d}\n", i, i)
			if i == 0 {
				continue
			}
			soft, stiff, border = append(soft, 50*rnd.Float64()), append(stiff, 300*rnd.Float64()), append(border, 0.02+0.05*rnd.Float64())
			elements += fmt.Sprintf("k%d: {type: affine_spring, a: J%d, b: J%d, c: [%.17g, %.17g], borders: [%.17g]}\n", i, i-1, i, soft[i-1], stiff[i-1], border[i-1])
			elements += fmt.Sprintf("d%d: {type: affine_damper, a: J%d, b: J%d, d: [0, %.17g], borders: [%.17g]}\n", i, i-1, i, rnd.Float64(), rnd.Float64())
			if rnd.IntN(2) > 0 {
				elements += fmt.Sprintf("g%d: {type: clearance, a: J%d, b: J%d, phi_min: -0.1, phi_max: 0.2, restitution: %.17g}\n", i, i-1, i, max(0, rnd.Float64()-0.5))
			}
			elements += fmt.Sprintf("c%d: {type: clutch, a: J%d, b: J%d, mu: 1, cgeo: 1, peak: 1.2, fn: {pulse: {amplitude: %.17g, width: 40, period: %.17g s}}}\n",
				i, i-1, i, 5*rnd.Float64(), 0.1+rnd.Float64())
			outputs += fmt.Sprintf("x%d: {phi_rel: k%d}\n", i, i)
		}
		if rnd.IntN(2) > 0 {
			elements += fmt.Sprintf("f: {type: freewheel, a: J0, b: J%d}\n", n-1)
		}
		b := modeltest.New(t, modeltest.PlantOf(elements, outputs), 5*time.Millisecond)
		sums := func() (p, size, energy float64) {
			for i, j := range J {
				w := b.Get(fmt.Sprintf("w%d", i))
				p += j * w
				size += math.Abs(j * w)
				energy += j * w * w / 2
				if i > 0 {
					x := math.Abs(b.Get(fmt.Sprintf("x%d", i)))
					out := max(0, x-border[i-1])
					energy += soft[i-1]*x*x/2 + (stiff[i-1]-soft[i-1])*out*out/2
				}
			}
			return p, size, energy
		}
		p0, size, before := sums()
		first := before
		b.To(4, func(at float64) {
			p, _, energy := sums()
			if !(math.Abs(p-p0) <= 1e-11*size) || !(energy <= before+1e-10*first) || b.Get("lag") != 0 {
				t.Fatalf("plant %d at %g s: momentum %.15g, at first %.15g; energy %.12g J, before %.12g; lag %g s\n%s",
					seed, at, p, p0, energy, before, b.Get("lag"), elements)
			}
			before = energy
			for _, e := range b.Kernel.Events() {
				if i := e.Friction; i < b.Tables.Mc && b.Tables.Friction[i].Gap != nil && e.To == kernel.Stuck {
					contacts++
				}
			}
		})
		events += b.Get("events")
	}
	if !(events >= 1500) || contacts < 5 {
		t.Errorf("%g events, %d contacts", events, contacts)
	}
	t.Logf("%g events, %d contacts", events, contacts)
}

// The form held applies to friction only: with it a contact chatters.
func TestFormHeldIsRefusedWithAClearance(t *testing.T) {
	p, err := plantfile.Load("t.yaml", []byte(modeltest.PlantOf(`
body: {type: mass, m: 1}
floor: {type: fixed}
play: {type: clearance, a: floor, b: body, s_min: -1}`, "v: {speed: body}")), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = kernel.Prepare(sys, kernel.Options{Period: time.Millisecond, Form: kernel.Held})
	if err == nil || !strings.Contains(err.Error(), `: element "play.min": form "held" holds the force of a contact`) {
		t.Errorf("%v, want form held refused for play.min", err)
	}
}
