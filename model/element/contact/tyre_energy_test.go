package contact_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// carOnTwoWheels returns a car without drive and brakes.
func carOnTwoWheels(v, front, rear float64, tyre string) string {
	return modeltest.PlantOf(fmt.Sprintf(`
front: {type: inertia, J: 1.2, w_start: %g}
rear: {type: inertia, J: 3, w_start: %g}
car: {type: mass, m: 800, v_start: %g}
f: {type: tyre, a: front, b: car, radius: 0.3, fn: 4000, C: 1.9, D: 1, E: 0.97, %s}
r: {type: tyre, a: rear, b: car, radius: 0.35, fn: 3500, friction: 0.2, C: 1.9, D: 1, E: 0.97, %s}`, front, rear, v, tyre, tyre),
		"v: {speed: car}\nwf: {speed: front}\nwr: {speed: rear}\nsf: {v_rel: f}\nsr: {v_rel: r}\nkf: {signal: f.slip}\nkr: {signal: r.slip}")
}

// tread returns the energy in the tread of a tyre with a relaxation length at a deflection k. The
// tread is a spring with the slope of the formula as its stiffness.
func tread(length, load, b, k float64) float64 { return length * load * b * 1.9 * k * k / 2 }

// The energy of an undriven car and its treads never rises, at speed and near standstill, where the
// slip changes its sign many times. Without a relaxation length a tread stores no energy.
func TestTyreCreatesNoEnergy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tyre := range []struct {
		keys      string
		length, b float64
	}{
		{"B: 10, relaxation: 0.3", 0.3, 10},
		{"B: 10, relaxation: 0.3, damping: 2 ms", 0.3, 10},
		{"B: 20, relaxation: 0.1, damping: 0", 0.1, 20},
		{"B: 10", 0, 10},
		{"B: 10, v_low: 0.5", 0, 10},
	} {
		signs := 0
		for range 3 {
			size := []float64{0.01, 1, 30}[rng.IntN(3)] // m/s
			start := func(r float64) float64 { return size / r * rng.NormFloat64() }
			text := carOnTwoWheels(start(1)/3, start(0.3), start(0.35), tyre.keys)
			if tyre.length > 0 {
				text += "  df: {state: f.k}\n  dr: {state: r.k}\n"
			}
			for _, step := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond} {
				b := modeltest.New(t, text, step)
				least, sign, first := 0.0, 0.0, 0.0
				b.To(1.5, func(at float64) {
					v, wf, wr := b.Get("v"), b.Get("wf"), b.Get("wr")
					energy := (800*v*v + 1.2*wf*wf + 3*wr*wr) / 2
					if tyre.length > 0 {
						energy += tread(tyre.length, 4000, tyre.b, b.Get("df")) + tread(tyre.length, 700, tyre.b, b.Get("dr"))
					}
					if first == 0 {
						first, least = energy, energy
					}
					if !(energy-least <= 1e-12*first) { // rounding
						t.Fatalf("%s: at %g s, steps of %v, it is %.3g of %.6g J above what it was\n%s", tyre.keys, at, step, energy-least, first, text)
					}
					if s := b.Get("sf"); s*sign < 0 {
						signs++
					}
					least, sign = min(least, energy), b.Get("sf")
				})
				if !(first > 0) {
					t.Fatalf("%s: %g J at the start", tyre.keys, first)
				}
			}
		}
		if tyre.length > 0 && signs < 100 {
			t.Errorf("%s: the slip changes its sign %d times only", tyre.keys, signs)
		}
	}
}
