package kernel

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

// oscillator is one body of 1 kg·m² on a spring of omega² to ground. The
// deflection of the spring, state 1, is the angle of the body.
func oscillator(omega, angle, speed float64) rig {
	return rig{J: []float64{1}, X0: []float64{speed, angle}, Springs: []spring{{-1, 0, omega * omega, 0}}}
}

// Periods far below, near and far above the step; 1e-15 per radian is rounding.
func TestSpringAndMassFollowTheCosine(t *testing.T) {
	for _, radians := range []float64{0.01, 0.9, 1.1, 2 * math.Pi, 40, 250} {
		omega := radians / 0.005
		k := start(t, oscillator(omega, 1, 0).system(), Options{Period: ms(5)})
		if split := k.t.Split; (split > 1) != (radians > 1) {
			t.Errorf("%g rad per step: %d pieces", radians, split)
		}
		for range 400 {
			k.step()
			phase := math.Mod(float64(k.tick)*0.005*omega, 2*math.Pi)
			tol := 1e-12 + 1e-15*float64(k.tick)*radians
			if !scalar.EqualWithinAbs(k.y[1], math.Cos(phase), tol) || !scalar.EqualWithinAbs(k.y[0]/omega, -math.Sin(phase), tol) {
				t.Fatalf("%g rad per step, tick %d: angle %.12g, speed/omega %.12g, want %.12g and %.12g",
					radians, k.tick, k.y[1], k.y[0]/omega, math.Cos(phase), -math.Sin(phase))
			}
		}
	}
}

// Coulomb friction F on a spring c: half a cycle turns about ∓F/c and loses 2F/c
// of amplitude; it sticks at the first reversal inside ±F/c. Here F/c = 0.1 and the
// start is 1.07: reversals at -0.87, 0.67, -0.47, 0.27 and -0.07, where it stays.
func TestFrictionOscillatorLosesTheSameInEveryHalfCycle(t *testing.T) {
	const band, x0 = 0.1, 1.07
	for _, omega := range []float64{3, 70, 900} {
		for _, scheme := range bothSchemes {
			r := oscillator(omega, x0, 0)
			r.Frictions = []contact{{W: []float64{1}, K: always(band * omega * omega)}}
			half := math.Pi / omega
			want := func(t float64) (x, w float64) {
				n := min(math.Floor(t/half), 5)
				sign := 1 - 2*math.Mod(n, 2)
				a := x0 - band - 2*band*n
				if n == 5 {
					return sign * (a + band), 0
				}
				tau := omega * (t - n*half)
				return sign * (band + a*math.Cos(tau)), -sign * a * omega * math.Sin(tau)
			}
			k := start(t, r.system(), Options{Period: ms(5), Scheme: scheme})
			compared := 0
			for range int(7*half/k.h) + 10 {
				k.step()
				compared++
				x, w := want(float64(k.tick) * k.h)
				if !scalar.EqualWithinAbs(k.y[1], x, 1e-9) || !scalar.EqualWithinAbs(k.y[0]/omega, w/omega, 1e-9) {
					t.Fatalf("%s omega %g: tick %d: x = %.12g, w = %.12g, want %.12g, %.12g", scheme, omega, k.tick, k.y[1], k.y[0], x, w)
				}
			}
			if k.modeOf(0) != Stuck || k.transOut() != 5 || compared < 4 {
				t.Errorf("%s omega %g: mode %d after %g transitions (want 0 after 5), %d rows compared", scheme, omega, k.modeOf(0), k.transOut(), compared)
			}
		}
	}
}

// A body on a spring whose other end moves at V, static friction Fs, kinetic Fk:
// it sticks for 2(Fs-Fk)/(cV) and slips for 2(pi - atan((Fs-Fk)·omega/(cV)))/omega.
func TestStickSlipKeepsItsPeriod(t *testing.T) {
	const omega, V, Fk, peak = 30.0, 0.2, 4.0, 1.5
	c := omega * omega
	d := (peak*Fk - Fk) / c // m
	slip := 2 * (math.Pi - math.Atan(d*omega/V)) / omega
	for _, scheme := range bothSchemes {
		r := oscillator(omega, 0, 0)
		r.Frictions = []contact{{W: []float64{1}, K: always(Fk), Peak: peak}}
		r.Torques = []torque{{0, table(0, 0, 10, 10*c*V)}}
		var want []transition
		for at, i := peak*Fk/(c*V), 0; i < 10; i++ {
			want = append(want, transition{at, 0, Stuck, Forward}, transition{at + slip, 0, Forward, Stuck})
			at += slip + 2*d/V
		}
		until := want[19].t + 0.004
		k := start(t, r.system(), Options{Period: ms(10), Scheme: scheme})
		expect(t, string(scheme), k, until, 1e-8, want...)
	}
}

// A lock torque 1.05·cos about its turning point exceeds the capacity 1 for 0.6
// rad only, less than a step: the step that contains the peak must locate the event.
func TestLockTorqueThatPeaksInsideAStepBreaksTheLock(t *testing.T) {
	const c, rad, over = 100.0, 0.9, 1.05 // N·m/rad, rad per step, amplitude over capacity
	omega := math.Sqrt(c)                 // of body 1 on its spring, the other end locked
	h := rad / omega
	for _, shift := range []float64{0.3, 0.45, 0.6} { // place of the peak in a step
		for _, sign := range []float64{1, -1} {
			phase := rad * (10 + shift) // from the start to the peak
			r := rig{
				J: []float64{100, 1}, Springs: []spring{{0, 1, c, 0}},
				X0:        []float64{0, sign * omega * over / c * math.Sin(phase), sign * over / c * math.Cos(phase)},
				Frictions: []contact{{W: []float64{1, 0}, K: always(1)}},
			}
			// The first time at which the torque is 1: the capacity is higher in earlier half cycles.
			r.Frictions[0].K = table((phase-2)/omega, 10, (phase-2)/omega, 1)
			sys := r.system()
			k := start(t, sys, Options{Period: period(h)})
			off := (phase - math.Acos(1/over)) / omega
			found := false
			for range 14 {
				k.step()
				for _, e := range k.Events() {
					if e.From == Stuck && !found {
						found = true
						if !scalar.EqualWithinAbs(e.Time, off, 1e-8) {
							t.Errorf("peak at %g of a step: breaks at %.10g, want %.10g s", shift, e.Time, off)
						}
					}
				}
			}
			if !found {
				t.Errorf("peak at %g of a step: the lock carries 1.05 of its capacity and does not break", shift)
			}
		}
	}
}

// A torque with breakpoints off the grid, and one with five hundred breakpoints in every
// step: the speed is its integral, and the tick reaches the grid time.
func TestSourceWithBreakpointsOffTheGridIsExact(t *testing.T) {
	var dense model.Source
	for i := range 20000 {
		dense.T = append(dense.T, float64(i)*0.0100001e-3)
		dense.V = append(dense.V, float64(i%2*2-1)+0.5)
	}
	sources := []model.Source{
		table(0.0123, 1, 0.0131, 5, 0.0131, -3, 0.0777, 2, 0.0777, 7, 0.1, 7, 0.1, 0),
		dense,
	}
	for n, src := range sources {
		for _, scheme := range bothSchemes {
			r := rig{J: []float64{2}, Torques: []torque{{0, src}}}
			k := start(t, r.system(), Options{Period: ms(5), Scheme: scheme})
			for range 40 {
				k.step()
				if want := integral(src, float64(k.tick)*k.h) / 2; !scalar.EqualWithinAbs(k.y[0], want, 1e-12) || k.lagOut() != 0 {
					t.Fatalf("source %d %s: tick %d: w = %.15g, want %.15g rad/s; lag %g s", n, scheme, k.tick, k.y[0], want, k.lagOut())
				}
			}
		}
	}
}

// integral of a source from 0 to t, trapezoid by trapezoid.
func integral(s model.Source, t float64) float64 {
	sum := s.V[0] * min(t, s.T[0])
	for i := 1; i < len(s.T) && s.T[i-1] < t; i++ {
		if s.T[i] == s.T[i-1] {
			continue
		}
		end := min(t, s.T[i])
		v := s.V[i-1] + (s.V[i]-s.V[i-1])*(end-s.T[i-1])/(s.T[i]-s.T[i-1])
		sum += (s.V[i-1] + v) / 2 * (end - s.T[i-1])
	}
	if last := len(s.T) - 1; t > s.T[last] {
		sum += s.V[last] * (t - s.T[last])
	}
	return sum
}
