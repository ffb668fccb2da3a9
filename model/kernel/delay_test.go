package kernel

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

// delayedRuns are the ways to step a plant on a grid of 10 ms.
func delayedRuns() (list []Options) {
	for _, scheme := range bothSchemes {
		for _, stepping := range []Stepping{"", Sparse} {
			list = append(list, Options{Period: ms(10), Scheme: scheme, Stepping: stepping})
		}
	}
	return list
}

// Three torques on J = 2, each with its own dead time, of which no multiple is on the grid: the speed
// is the sum of their impulses, J·w(t) = Σ∫u(t - d).
func TestDelayedCommandsActFromTheEndOfTheirDeadTime(t *testing.T) {
	const J, h = 2.0, 0.01
	for _, delays := range [][3]float64{{0, 0.0037, 0.0183}, {0.0037, 0.0037, 0.0437}, {0.0183, 0.0061, 0}, {0.02, 0.01, 0.0399}, {0, 0, 0}} {
		for _, opt := range delayedRuns() {
			opt.Driven = []bool{true, true, true}
			sys := rig{J: []float64{J}, Torques: []torque{{0, always(0.5)}, {0, always(-1)}, {0, always(2)}}}.system()
			for i, d := range delays {
				sys.Inputs[i].Delay = d
			}
			k := start(t, sys, opt)
			commands := [3][]float64{{}, {}, {}}
			for tick := range 60 {
				for i := range commands {
					k.u[i] = float64((tick*(3+i)*7 + i) % 11)
					commands[i] = append(commands[i], k.u[i])
				}
				k.step()
				now, want := float64(k.tick)*h, 0.0
				for i, d := range delays {
					want += []float64{0.5, -1, 2}[i] * min(d, now) // before the first command has arrived
					for at, u := range commands[i] {
						from := float64(at)*h + d
						want += u * max(0, min(now, from+h)-from)
					}
				}
				if !scalar.EqualWithinAbs(k.y[0], want/J, 1e-12) {
					t.Fatalf("%v, delays %g: w(%g s) = %.15g, want %.15g rad/s", opt, delays, now, k.y[0], want/J)
				}
			}
		}
	}
}

// A brake that bites and frees every 1.5 ms ends each tick of Papers at its first event: the plant lags by
// more than two periods. Its outputs are those of the grid time, at which every command has acted from the
// end of its dead time.
func TestDelayedCommandsActOnAPlantThatLags(t *testing.T) {
	const J, h, d = 2.0, 0.01, 0.0437
	on := model.Source{T: []float64{0, 0.0015}, V: []float64{3, 0}, Held: true, Period: 0.003}
	for _, stepping := range []Stepping{Dense, Sparse} {
		sys := rig{
			J: []float64{J, 1}, X0: []float64{0, 1000}, Frictions: []contact{{W: []float64{0, 1}, K: on}}, Torques: []torque{{0, always(0)}},
		}.system()
		sys.Inputs[1].Delay = d
		k := start(t, sys, Options{Period: ms(10), Scheme: Papers, Stepping: stepping, Driven: []bool{false, true}})
		longest, commands := 0.0, []float64{}
		for tick := range 60 {
			k.u[1] = float64(tick * 7 % 11)
			commands = append(commands, k.u[1])
			k.step()
			now, want := float64(k.tick)*h, 0.0
			for at, u := range commands {
				from := float64(at)*h + d
				want += u * max(0, min(now, from+h)-from)
			}
			if !scalar.EqualWithinAbs(k.y[0], want/J, 1e-12) {
				t.Fatalf("%s: w(%g s) = %.15g, want %.15g rad/s", stepping, now, k.y[0], want/J)
			}
			longest = max(longest, k.lagOut())
		}
		if !(longest > 2*h) {
			t.Errorf("%s: the longest lag is %g s", stepping, longest)
		}
	}
}

func TestDelayedCommandsLockAndBreakAtTheirInstants(t *testing.T) {
	for _, opt := range delayedRuns() {
		lockAndBreak(t, opt, 0.0237, 0.0061)
		lockAndBreak(t, opt, 0.02, 0.01) // the lock breaks at a grid point, and its mode changes in that tick
	}
}

// lockAndBreak lets a brake of 3 N·m, commanded at tick 10 after a dead time d, stop J = 2 from 1 rad/s,
// and a load of 5 N·m, commanded at tick 90 after dLoad, break the lock at once.
func lockAndBreak(t *testing.T, opt Options, d, dLoad float64) {
	t.Helper()
	const J, h, K, load = 2.0, 0.01, 3.0, 5.0
	bites := 10*h + d
	locks, breaks := bites+J*1/K, 90*h+dLoad
	opt.Driven = []bool{true, true}
	sys := brake(1, always(0), always(0)).system()
	sys.Inputs[0].Delay, sys.Inputs[1].Delay = d, dLoad
	k := start(t, sys, opt)
	var got []Event
	for tick := range 120 {
		if tick == 10 {
			k.u[0] = K
		}
		if tick == 90 {
			k.u[1] = load
		}
		k.step()
		got = append(got, k.Events()...)
		now := float64(k.tick) * h
		want := max(0, 1-K/J*max(0, now-bites)) + (load-K)/J*max(0, now-breaks)
		if !scalar.EqualWithinAbs(k.y[0], want, 1e-12) {
			t.Fatalf("%v: w(%g s) = %.15g, want %.15g rad/s", opt, now, k.y[0], want)
		}
		if at := k.modeOf(0) == Stuck; at != (now > locks && now < breaks-1e-9) {
			t.Fatalf("%v: mode %d at %g s", opt, k.modeOf(0), now)
		}
	}
	want := []transition{{locks, 0, Forward, Stuck}, {breaks, 0, Stuck, Forward}}
	for _, e := range got {
		if e.From == Free || e.To == Free { // without a capacity
			continue
		}
		if len(want) == 0 || e.From != want[0].from || e.To != want[0].to || !scalar.EqualWithinAbs(e.Time, want[0].t, 1e-9) {
			t.Fatalf("%v: transitions %v, want %v", opt, got, want)
		}
		want = want[1:]
	}
	if len(want) != 0 {
		t.Errorf("%v: transitions %v lack %v", opt, got, want)
	}
}

// Two inertias lock within a step while a spring pulls at the second: from then on their speeds are
// equal to the last digits, not only to the tolerance with which the instant is located.
func TestLockedSpeedsAreEqualFromTheEndOfTheStepOfTheirEvent(t *testing.T) {
	for _, opt := range append(delayedRuns(), Options{Period: ms(10), Form: Held}) {
		for n := range 12 {
			w0 := 3 + float64(n)/7
			r := rig{
				J: []float64{1.3, 0.7, 5}, X0: []float64{w0, 0, 0, 0}, Springs: []spring{{1, 2, 40, 0.3}},
				Frictions: []contact{{W: []float64{1, -1, 0}, K: table(0, 20, 1, 60)}},
			}
			k := start(t, r.system(), opt)
			locked := 0
			for range 60 {
				k.step()
				if k.modeOf(0) != Stuck || k.lagOut() != 0 {
					continue
				}
				locked++
				if slip := math.Abs(k.y[0] - k.y[1]); !(slip <= 4e-16*math.Abs(k.y[0])) {
					t.Fatalf("%v, %g rad/s: the slip at tick %d, locked for %d, is %g rad/s", opt, w0, k.tick, locked, slip)
				}
				if sum := 1.3*k.y[0] + 0.7*k.y[1] + 5*k.y[2]; !scalar.EqualWithinRel(sum, 1.3*w0, 1e-13) {
					t.Fatalf("%v: momentum %.15g, want %.15g N·m·s", opt, sum, 1.3*w0)
				}
			}
			if locked < 30 {
				t.Errorf("%v, %g rad/s: locked for %d ticks of 60: %s", opt, w0, locked, fmt.Sprint(k.y))
			}
		}
	}
}
