package mechanics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// A hammer strikes a light ball that lies on an anvil, which gives an accumulation of impacts at
// one instant. For any restitutions the hammer does not pass through the ball into the anvil, and
// the result does not depend on the step.
func TestAccumulationOfImpactsCausesNoPenetration(t *testing.T) {
	for _, e := range [][2]float64{{0, 0}, {0, 0.3}, {0.3, 0}, {0.3, 0.3}, {0.9, 0}, {0.9, 0.3}, {1, 0.3}} {
		for _, light := range []float64{1e-3, 0.1, 1} {
			last := math.NaN()
			for _, period := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
				b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
hammer: {type: mass, m: 10, s_start: -1, v_start: 2}
ball: {type: mass, m: %g, s_start: 0}
anvil: {type: mass, m: 10, s_start: 0.01}
press: {type: force, flange: ball, f: {table: [[0, 0.5], [0.45, 0.5], [0.45, 0], [1, 0]]}}
hold: {type: brake, flange: anvil, mu: 1, fn: {table: [[0, 10], [0.45, 10], [0.45, 0], [1, 0]]}}
blow: {type: clearance, a: hammer, b: ball, s_min: 0, restitution: %g}
touch: {type: clearance, a: ball, b: anvil, s_min: 0, restitution: %g}`, light, e[0], e[1]),
					"v0: {speed: hammer}\nv1: {speed: ball}\nv2: {speed: anvil}\nx0: {position: hammer}\nx2: {position: anvil}\nblow: {s_rel: blow}\ntouch: {s_rel: touch}"), period)
				b.To(0.49, nil)
				if !(b.Get("touch") < 1e-9 && math.Abs(b.Get("v2")) < 1e-9) {
					t.Fatalf("e %g, %g kg: the ball does not lie on the anvil: %g m", e, light, b.Get("touch"))
				}
				before := 40.0
				b.To(1.5, func(at float64) {
					v0, v1, v2 := b.Get("v0"), b.Get("v1"), b.Get("v2")
					energy, p := 10*v0*v0+light*v1*v1+10*v2*v2, 10*v0+light*v1+10*v2
					way := b.Get("x2") - b.Get("x0")
					if !(way >= -1e-9) || !(math.Abs(way-b.Get("blow")-b.Get("touch")) <= 1e-9) {
						t.Fatalf("e %g, %g kg, %v: %g m from hammer to anvil at %g s, gaps of %g and %g m", e, light, period, way, at, b.Get("blow"), b.Get("touch"))
					}
					if !(energy <= before*(1+1e-12)) || !(math.Abs(p-20) <= 1e-9) {
						t.Fatalf("e %g, %g kg, %v: energy %.15g, before %.15g, momentum %.15g at %g s", e, light, period, energy, before, p, at)
					}
					before = energy
				})
				if v := b.Get("v2") - b.Get("v0"); !(v >= -1e-9) {
					t.Errorf("e %g, %g kg, %v: the hammer gains %g m/s on the anvil", e, light, period, -v)
				}
				v := b.Get("v2")
				if period == time.Millisecond {
					last = v
				}
				if !(math.Abs(v-last) <= 1e-3) {
					t.Errorf("e %g, %g kg: the anvil goes at %g m/s at 10 ms, %g m/s at 1 ms", e, light, v, last)
				}
			}
		}
	}
}

// The reported gaps match the positions of the bodies for any masses and any number of impacts in
// a tick.
func TestGapsOfVeryUnequalMassesMatchThePositions(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	for seed := range 60 {
		n := 3 + rnd.IntN(3)
		elements, outputs, m := "", "", make([]float64, n)
		for i := range n {
			m[i] = math.Pow(10, float64(rnd.IntN(5)-2))
			elements += fmt.Sprintf("m%d: {type: mass, m: %g, s_start: %g, v_start: %.17g}\n", i, m[i], 0.5*float64(i), 4*rnd.Float64()-2)
			outputs += fmt.Sprintf("v%d: {speed: m%d}\nx%d: {position: m%d}\n", i, i, i, i)
			if i > 0 {
				e := []float64{0, 1, rnd.Float64()}[rnd.IntN(3)]
				elements += fmt.Sprintf("k%d: {type: spring, a: m%d, b: m%d, c: %.17g, s_rel0: 0.3}\n", i, i-1, i, 100*rnd.Float64())
				elements += fmt.Sprintf("g%d: {type: clearance, a: m%d, b: m%d, s_min: 0.45, s_max: 0.55, restitution: %.17g}\n", i, i-1, i, e)
				outputs += fmt.Sprintf("s%d: {s_rel: g%d}\n", i, i)
			}
		}
		period := []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond}[seed%3]
		scheme := []kernel.Scheme{kernel.Complete, kernel.Papers}[seed/3%2]
		b := modeltest.NewWith(t, modeltest.PlantOf(elements, outputs), kernel.Options{Period: period, Scheme: scheme})
		p, size := 0.0, 0.0
		for i := range n {
			p += m[i] * b.Get(fmt.Sprintf("v%d", i))
			size += m[i] * 4
		}
		worst := 0.0
		b.To(3, func(at float64) {
			now := 0.0
			for i := range n {
				now += m[i] * b.Get(fmt.Sprintf("v%d", i))
				if i > 0 {
					s := b.Get(fmt.Sprintf("s%d", i))
					worst = max(worst, math.Abs(b.Get(fmt.Sprintf("x%d", i))-b.Get(fmt.Sprintf("x%d", i-1))-s), 0.45-s, s-0.55)
				}
			}
			if b.Get("lag") == 0 && !(math.Abs(now-p) <= 1e-11*size) {
				t.Fatalf("plant %d, %v: momentum %g of %g at %g s", seed, period, now, p, at)
			}
		})
		if !(worst <= 1e-9) {
			t.Errorf("plant %d, %v, %s: a gap is %g m off", seed, period, scheme, worst)
		}
	}
}

// Four springs of many regions act on one light mass, which passes dozens of region boundaries in a
// step of 5 ms. The energy is constant.
func TestManyRegionBoundariesInOneStepPreserveTheEnergy(t *testing.T) {
	c := []float64{10, 2000, 50, 9000, 100, 200, 20000, 3000, 40000}
	elements, start := "g: {type: fixed}\nm: {type: mass, m: 1}\n", 0.025
	var borders [4][]float64
	for i := range borders {
		for j := range 8 {
			borders[i] = append(borders[i], 0.001*float64(1+i)+0.0011*float64(j))
		}
		elements += fmt.Sprintf("k%d: {type: affine_spring, a: g, b: m, c: [%s], borders: [%s], s_rel_start: %g}\n", i, list(c), list(borders[i]), start)
	}
	b := modeltest.New(t, modeltest.PlantOf(elements, "v: {speed: m}\nx: {s_rel: k0}"), 5*time.Millisecond)
	energy := func() float64 {
		x, v := math.Abs(b.Get("x")), b.Get("v")
		sum := v * v / 2
		for i := range borders { // energy of each region
			sum += c[0] * x * x / 2
			for j, at := range borders[i] {
				out := max(0, x-at)
				sum += (c[j+1] - c[j]) * out * out / 2
			}
		}
		return sum
	}
	first, seen := energy(), 0
	b.To(2, func(at float64) {
		if b.Get("lag") != 0 {
			return
		}
		seen++
		if e := energy(); !(math.Abs(e-first) <= 1e-9*first) {
			t.Fatalf("energy %.12g J at %g s, at first %.12g J", e, at, first)
		}
	})
	if events := b.Get("events"); seen < 350 || !(events >= 1000) {
		t.Errorf("on the grid %d times of 400, %g events", seen, events)
	}
}

// Two bodies hit a third from both sides at one instant. They rebound by the restitution for any
// mass of the third body, which stays at rest.
func TestImpactsFromBothSidesAtOneInstantAreSymmetric(t *testing.T) {
	for _, e := range []float64{0, 0.4, 1} {
		for _, middle := range []float64{0.1, 1, 5} {
			for _, period := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
				b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
left: {type: mass, m: 1, s_start: -1, v_start: 2}
ball: {type: mass, m: %g}
right: {type: mass, m: 1, s_start: 1, v_start: -2}
blow: {type: clearance, a: left, b: ball, s_min: 0.3, restitution: %g}
back: {type: clearance, a: ball, b: right, s_min: 0.3, restitution: %g}`, middle, e, e),
					"v0: {speed: left}\nv1: {speed: ball}\nv2: {speed: right}\nx1: {position: ball}"), period)
				b.To(0.5, nil)
				b.Is("v0", -2*e, 1e-12)
				b.Is("v1", 0, 1e-12)
				b.Is("v2", 2*e, 1e-12)
				b.Is("x1", 0, 1e-12)
			}
		}
	}
}
