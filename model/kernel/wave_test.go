package kernel

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/integrate/quad"

	"lockstep/model"
)

// sine is amplitude·sin(2·pi·f·t + phase).
func sine(amplitude, f, phase float64) model.Source {
	return model.Source{Amplitude: amplitude, Frequency: f, Phase: phase}
}

// productOf is the product of sources, and total their sum.
func productOf(factors ...model.Source) model.Source {
	return model.Source{Sum: [][]model.Source{factors}}
}

func total(terms ...model.Source) (s model.Source) {
	for _, t := range terms {
		s.Sum = append(s.Sum, []model.Source{t})
	}
	return s
}

// waveCases are capacities over time, N·m, in 2 s, with their values as functions.
var waveCases = []struct {
	name string
	k    model.Source
	at   func(t float64) float64
}{
	{"sine", sine(3, 0.7, 0.3), func(t float64) float64 { return 3 * math.Sin(2*math.Pi*0.7*t+0.3) }},
	{"damped sine", model.Source{Amplitude: 3, Frequency: 2.3, Phase: 0.3, Damping: 1.4},
		func(t float64) float64 { return 3 * math.Exp(-1.4*t) * math.Sin(2*math.Pi*2.3*t+0.3) }},
	{"damped sine times ramp", productOf(model.Source{Amplitude: 2, Frequency: 2.9, Damping: 3}, table(0, 1, 2, -0.7)),
		func(t float64) float64 { return 2 * math.Exp(-3*t) * math.Sin(2*math.Pi*2.9*t) * (1 - 0.85*t) }},
	{"sine of 30 Hz", sine(3, 30, 0), func(t float64) float64 { return 3 * math.Sin(2*math.Pi*30*t) }},
	{"short dips below 0 and short peaks above 0",
		total(always(0.001), sine(0.4, 2.3, 0), sine(0.399, 2.3, math.Pi), sine(0.0011, 41, 0)),
		func(t float64) float64 {
			return 0.001 + 0.001*math.Sin(2*math.Pi*2.3*t) + 0.0011*math.Sin(2*math.Pi*41*t)
		}},
	{"sine that dips below 0 for 6 ms", total(always(2.9994), sine(3, 0.9, 0)),
		func(t float64) float64 { return 2.9994 + 3*math.Sin(2*math.Pi*0.9*t) }},
	{"ramp times ramp", productOf(table(0, -1, 2, 1.3), table(0, 2, 2, -0.7)),
		func(t float64) float64 { return (-1 + 1.15*t) * (2 - 1.35*t) }},
	{"sine times sine times table", productOf(sine(2, 3, 1), sine(1, 5, 0.2), table(0, 1, 1, 2, 2, -1)),
		func(t float64) float64 {
			row := 1 + t
			if t > 1 {
				row = 2 - 3*(t-1)
			}
			return 2 * math.Sin(2*math.Pi*3*t+1) * math.Sin(2*math.Pi*5*t+0.2) * row
		}},
	{"sine with its smallest value above 0 in the middle of a step", total(always(3.0006), sine(3, 0.9, 0.047)),
		func(t float64) float64 { return 3.0006 + 3*math.Sin(2*math.Pi*0.9*t+0.047) }},
	{"ramp plus sine", total(table(0, -1, 2, 1), sine(0.2, 4, 0)),
		func(t float64) float64 { return -1 + t + 0.2*math.Sin(2*math.Pi*4*t) }},
}

// momentum returns the integral of max(0, at(t) - offset) from 0 to each of the instants k·h, and
// the instants at which it begins and ends to grow, by Gauss's rule between bisected zeros.
func momentum(at func(float64) float64, offset, h float64, n int) (sum, zeros []float64) {
	const fine = 1 << 16
	end := h * float64(n)
	value := func(t float64) float64 { return at(t) - offset }
	for i := range fine {
		a, b := end*float64(i)/fine, end*float64(i+1)/fine
		if (value(a) < 0) == (value(b) < 0) {
			continue
		}
		for range 200 {
			if m := (a + b) / 2; (value(m) < 0) == (value(a) < 0) {
				a = m
			} else {
				b = m
			}
		}
		zeros = append(zeros, b)
	}

	total := 0.0
	sum = append(sum, 0)
	next := 0
	for k := range n {
		a, last := h*float64(k), h*float64(k+1)
		for a < last {
			b := last
			if next < len(zeros) && zeros[next] < last {
				b = zeros[next]
				next++
			}
			const parts = 8
			for part := range parts {
				mid, half := a+(b-a)*(float64(part)+0.5)/parts, (b-a)/(2*parts)
				total += max(0, quad.Fixed(value, mid-half, mid+half, 5, quad.Legendre{}, 0))
			}
			a = b
		}
		sum = append(sum, total)
	}

	return sum, zeros
}

func TestCapacityOfAWaveBeginsAndEndsAtItsZeros(t *testing.T) {
	for _, c := range waveCases {
		for _, offset := range []float64{0, 0.0004} {
			for _, step := range []int{1, 5, 50} {
				want, zeros := momentum(c.at, offset, float64(step)*1e-3, 2000/step)
				for _, stepping := range []Stepping{Dense, Sparse} {
					t.Run(fmt.Sprintf("%s above %g, %d ms, %s", c.name, offset, step, stepping), func(t *testing.T) {
						checkWave(t, contact{W: []float64{1}, K: c.k, Offset: offset},
							Options{Period: ms(step), Stepping: stepping}, want, zeros)
					})
				}
			}
		}
	}
}

// checkWave compares the speed of a braked body, and the times at which its brake begins and ends,
// with the momentum that the brake takes.
func checkWave(t *testing.T, brake contact, opt Options, want, zeros []float64) {
	const J = 0.1
	change := want[len(want)-1] / J
	k := start(t, rig{J: []float64{J}, X0: []float64{2 * change}, Frictions: []contact{brake}}.system(), opt)
	worst, late := 0.0, 0.0
	var log []Event
	for _, momentum := range want[1:] {
		k.step()
		log = append(log, k.Events()...)
		worst = max(worst, math.Abs(k.y[0]-(2*change-momentum/J)))
	}
	if !(worst < 3e-12*change) {
		t.Errorf("the speed is wrong by %.2g of its change", worst/change)
	}
	if len(log) != len(zeros) {
		t.Fatalf("%d transitions, want %d", len(log), len(zeros))
	}
	for i, e := range log {
		late = max(late, math.Abs(e.Time-zeros[i]))
	}
	if !(late < 1e-11) {
		t.Errorf("a transition is wrong by %.2g s", late)
	}
}

// The zeros of sin(2·pi·t) are grid points, where computed values are rounding.
func TestCapacityThatChangesAtAGridPointChangesTheModeThere(t *testing.T) {
	on := model.Source{T: []float64{0, 0.5}, V: []float64{3, 0}, Held: true, Period: 1}
	for name, source := range map[string]model.Source{
		"sine": sine(3, 1, 0), "table": on, "product": productOf(sine(3, 1, 0), always(2)),
	} {
		for _, step := range []int{1, 5, 50} {
			for _, scheme := range bothSchemes {
				k := start(t, rig{
					J: []float64{0.1}, X0: []float64{1000}, Frictions: []contact{{W: []float64{1}, K: source}},
				}.system(), Options{Period: ms(step), Scheme: scheme})
				for i := 1; i <= 10000/step; i++ {
					k.step()
					want, now := Forward, i*step
					if now/500%2 == 1 {
						want = Free
					}
					if k.modeOf(0) != want || k.y[k.tail()] != 1 || k.lagOut() != 0 {
						t.Fatalf("%s, %d ms, %s: mode %d, eta %g, lag %g s at %d ms, want %d, 1, 0",
							name, step, scheme, k.modeOf(0), k.y[k.tail()], k.lagOut(), now, want)
					}
					events := k.Events()
					if now%500 == 0 && (len(events) != 1 || !scalar.EqualWithinAbs(events[0].Time, float64(now)*1e-3, 1e-11)) {
						t.Fatalf("%s, %d ms, %s: events %v in the tick to %d ms", name, step, scheme, events, now)
					}
				}
			}
		}
	}
}

// A lock under a falling capacity slips where the capacity is its load, and frees at the zero. The
// closed form: both bodies have the acceleration tau/(J1+J2) until the lock breaks, and the first
// has (tau - capacity)/J1 after it.
func TestLockUnderASineBreaksWhereItsCapacityIsItsLoad(t *testing.T) {
	const J1, J2, tau, amplitude, f = 0.5, 2.0, 2.0, 5.0, 0.83
	load := tau * J2 / (J1 + J2)
	rate := 2 * math.Pi * f
	breaks, frees := (math.Pi-math.Asin(load/amplitude))/rate, math.Pi/rate
	for _, step := range []int{1, 5, 50} {
		k := start(t, rig{
			J: []float64{J1, J2}, X0: []float64{10, 10},
			Frictions: []contact{{W: []float64{-1, 1}, K: sine(amplitude, f, 0)}},
			Torques:   []torque{{Body: 0, Tau: always(tau)}},
		}.system(), Options{Period: ms(step)})
		var log []Event
		for i := 1; i <= 650/step; i++ {
			k.step()
			log = append(log, k.Events()...)
		}
		if n := len(log); n < 3 || !scalar.EqualWithinAbs(log[n-2].Time, breaks, 1e-8) || log[n-2].To != Backward ||
			!scalar.EqualWithinAbs(log[n-1].Time, frees, 1e-11) || log[n-1].To != Free {
			t.Errorf("%d ms: events %v; want a break at %.12g s and the end at %.12g s", step, log, breaks, frees)
		}
		end := float64(650/step*step) * 1e-3
		// slip grows by the integral of (tau/J1 - capacity·(1/J1 + 1/J2)) from breaks to frees, then by tau/J1
		slip := tau/J1*(end-breaks) - (1/J1+1/J2)*amplitude/rate*(math.Cos(rate*breaks)+1)
		if got := k.y[0] - k.y[1]; !scalar.EqualWithinRel(got, slip, 1e-9) {
			t.Errorf("%d ms: slip %.12g at %g s, want %.12g rad/s", step, got, end, slip)
		}
	}
}

func TestWaveTooFastForThePeriodIsRefused(t *testing.T) {
	sys := rig{J: []float64{1}, Torques: []torque{{Tau: sine(1, 9e3, 0)}}}.system()
	if _, err := Prepare(sys, Options{Period: ms(5)}); err == nil || !strings.Contains(err.Error(), `9000 Hz) of "tau0"`) {
		t.Errorf("a sine of 9 kHz and a period of 5 ms: %v", err)
	}
}
