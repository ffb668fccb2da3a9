package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

// placesRuns are the ways to step a plant on a grid of 10 ms whose commands change inside of a step.
func placesRuns() (list []Options) {
	for _, opt := range delayedRuns() {
		opt.Places = 4
		list = append(list, opt)
	}
	return list
}

// polyline is a command over time: each row is an instant, s, and the value and the slope from it on.
// The first row is at 0.
type polyline [][3]float64

// at returns the value and the slope at an instant; at that of a row, those after it.
func (c polyline) at(t float64) (value, slope float64) {
	i := slices.IndexFunc(c, func(row [3]float64) bool { return row[0] > t })
	if i < 0 {
		i = len(c)
	}
	row := c[i-1]
	return row[1] + row[2]*(t-row[0]), row[2]
}

// source returns the polyline as a table of time.
func (c polyline) source() (s model.Source) {
	for i, row := range c {
		if i > 0 {
			before := c[i-1]
			s.T, s.V = append(s.T, row[0]), append(s.V, before[1]+before[2]*(row[0]-before[0]))
		}
		s.T, s.V = append(s.T, row[0]), append(s.V, row[1])
	}
	last := c[len(c)-1]
	s.T, s.V = append(s.T, last[0]+100), append(s.V, last[1]+100*last[2])
	return s
}

// command sets input i of the next step, of length h, to the polyline.
func (c polyline) command(k *run, i int, h float64) {
	from := float64(k.tick) * h
	value, slope := c.at(from + 1e-11)
	value -= slope * 1e-11
	k.u[i] = value
	if slope != 0 {
		k.Change(i, 0, value, slope)
	}
	for _, row := range c {
		if at := row[0] - from; at > 1e-11 && at < h-1e-11 {
			k.Change(i, at, row[1], row[2])
		}
	}
}

// randomPolyline returns a polyline from lo to hi over 1 s. Most rows are less than 10 ms apart, at most
// four in a step of 10 ms.
func randomPolyline(r *rand.Rand, lo, hi float64, ramped bool) polyline {
	value := func() float64 { return lo + r.Float64()*(hi-lo) }
	c := polyline{{0, value(), 0}}
	for t := 0.0; t < 1; {
		if t += 0.005 + 0.02*r.Float64(); r.IntN(8) == 0 {
			t += 0.1
		}
		if ramped && r.IntN(2) == 0 { // a ramp from the last value, and its end
			from, _ := c.at(t)
			to, length := value(), 0.0031+0.04*r.Float64()
			c = append(c, [3]float64{t, from, (to - from) / length}, [3]float64{t + length, to, 0})
			t += length
		} else {
			c = append(c, [3]float64{t, value(), 0})
		}
	}
	return c
}

// Three torques on J = 2, with and without a dead time, change inside of the steps; the third one
// also has slopes. The speed is the sum of their impulses, J·w(t) = Σ∫u(t - d).
func TestACommandActsFromItsInstantInsideAStep(t *testing.T) {
	const J, h = 2.0, 0.01
	for seed, delays := range [][3]float64{{0, 0.0037, 0}, {0.0037, 0.0183, 0.0183}, {0, 0, 0}, {0, 0, 0.02}} {
		for _, opt := range placesRuns() {
			opt.Places, opt.Driven, opt.Ramped = 12, []bool{true, true, true}, []bool{false, false, true}
			r, polylines := rand.New(rand.NewPCG(uint64(seed), 1)), [3]polyline{}
			torques := []torque{}
			for i := range polylines {
				polylines[i] = randomPolyline(r, -5, 5, i == 2)
				torques = append(torques, torque{0, always(polylines[i][0][1])})
			}
			sys := rig{J: []float64{J}, Torques: torques}.system()
			for i, d := range delays {
				sys.Inputs[i].Delay = d
			}
			k := start(t, sys, opt)
			for range 90 {
				for i, c := range polylines {
					c.command(k, i, h)
				}
				k.step()
				now, want := float64(k.tick)*h, 0.0
				for i, c := range polylines {
					end := now - delays[i]
					want += delays[i] * c[0][1] // before the first command has arrived
					if end < 0 {
						want += end * c[0][1]
					}
					for j, row := range c {
						d := end - row[0]
						if j+1 < len(c) {
							d = min(end, c[j+1][0]) - row[0]
						}
						if d = max(0, d); d > 0 {
							want += row[1]*d + row[2]*d*d/2
						}
					}
				}
				if !scalar.EqualWithinAbs(k.y[0], want/J, 1e-11) {
					t.Fatalf("%v, delays %g: w(%g s) = %.15g, want %.15g rad/s", opt, delays, now, k.y[0], want/J)
				}
			}
		}
	}
}

// Two clutches with an elastic shaft are pressed by commands that jump and ramp inside of the steps;
// the ramps pass the offset of a capacity. The plant moves as if the commands were its own tables of
// time, whose breakpoints are events at known places, too.
func TestCommandsInsideAStepMoveThePlantAsItsOwnTablesDo(t *testing.T) {
	const h = 0.01
	for seed := range uint64(12) {
		for _, opt := range placesRuns() {
			r := rand.New(rand.NewPCG(seed, 7))
			polylines := []polyline{randomPolyline(r, 0, 30, true), randomPolyline(r, -4, 20, seed%2 == 0), randomPolyline(r, -10, 10, false)}
			plant := func(sources ...model.Source) *model.System {
				return rig{
					J: []float64{1.3, 0.7, 0.4}, Springs: []spring{{1, 2, 400, 0.3}}, X0: []float64{10, -3, 0, 0},
					Frictions: []contact{{W: []float64{1, -1, 0}, K: sources[0], Offset: 5}, {W: []float64{0, 0, 1}, K: sources[1], Peak: 1.2}},
					Torques:   []torque{{0, sources[2]}},
				}.system()
			}
			own := start(t, plant(polylines[0].source(), polylines[1].source(), polylines[2].source()), Options{Period: opt.Period, Scheme: opt.Scheme, Stepping: opt.Stepping})
			opt.Places, opt.Driven, opt.Ramped = 12, []bool{true, true, true}, []bool{true, seed%2 == 0, false}
			k := start(t, plant(always(polylines[0][0][1]), always(polylines[1][0][1]), always(polylines[2][0][1])), opt)
			transitions := 0
			for range 90 {
				for i, c := range polylines {
					c.command(k, i, h)
				}
				k.step()
				own.step()
				for j := range k.y[:4] {
					if !scalar.EqualWithinAbs(k.y[j], own.y[j], 1e-9) {
						t.Fatalf("seed %d, %v: output %d at tick %d is %.12g, by the tables %.12g", seed, opt, j, k.tick, k.y[j], own.y[j])
					}
				}
				if len(k.Events()) != len(own.Events()) {
					t.Fatalf("seed %d, %v: events of tick %d %v, by the tables %v", seed, opt, k.tick, k.Events(), own.Events())
				}
				for j, e := range k.Events() {
					want := own.Events()[j]
					if want.Time, e.Time = 0, e.Time-want.Time; !scalar.EqualWithinAbs(e.Time, 0, 1e-9) {
						t.Errorf("seed %d, %v: event %v is %g s off", seed, opt, e, e.Time)
					}
					if e.Time = 0; e != want {
						t.Errorf("seed %d, %v: event %v, by the tables %v", seed, opt, e, want)
					}
					transitions++
				}
			}
			if transitions < 10 {
				t.Errorf("seed %d, %v: %d transitions", seed, opt, transitions)
			}
		}
	}
}

// A kernel that takes over with tables of the same values every few steps moves the plant as one kernel
// does: the commands of the step, those within their dead times, and their ramps go on. Equal are speeds,
// modes, torques, events, and the count of ticks, time owed and transitions.
func TestATakeoverWithEqualTablesChangesNothing(t *testing.T) {
	const h = 0.01
	for seed := range uint64(4) {
		for _, opt := range placesRuns() {
			r := rand.New(rand.NewPCG(seed, 11))
			polylines := []polyline{randomPolyline(r, 0, 30, true), randomPolyline(r, -4, 20, true), randomPolyline(r, -10, 10, false)}
			sys := rig{
				J: []float64{1.3, 0.7, 0.4}, Springs: []spring{{1, 2, 400, 0.3}}, X0: []float64{10, -3, 0, 0},
				Frictions: []contact{{W: []float64{1, -1, 0}, K: always(polylines[0][0][1]), Offset: 5}, {W: []float64{0, 0, 1}, K: always(polylines[1][0][1]), Peak: 1.2}},
				Torques:   []torque{{0, always(polylines[2][0][1])}},
			}.system()
			for i, delay := range []float64{0, 0.0183, 0.0037} {
				sys.Inputs[i].Delay = delay
			}
			opt.Places, opt.Driven, opt.Ramped = 12, []bool{true, true, true}, []bool{true, true, false}
			one, several := start(t, sys, opt), start(t, sys, opt)
			next, takeovers, transitions := New(several.t), 0, 0
			for tick := range 90 {
				for i, c := range polylines {
					c.command(one, i, h)
					c.command(several, i, h)
				}
				if tick%3 == 2 && next.TakeOver(several.Kernel, several.u) {
					several.Kernel, next = next, several.Kernel
					takeovers++
				}
				one.step()
				several.step()
				transitions += len(one.Events())
				for j, want := range one.y {
					if math.Float64bits(several.y[j]) != math.Float64bits(want) {
						t.Fatalf("seed %d, %v: output %d at tick %d is %.17g after %d takeovers, %.12g without", seed, opt, j, several.tick, several.y[j], takeovers, want)
					}
				}
			}
			if takeovers < 5 || transitions < 10 {
				t.Errorf("seed %d, %v: %d takeovers, %d transitions", seed, opt, takeovers, transitions)
			}
		}
	}
}

// A brake of 3 N·m that bites inside of a step stops J = 2 from 1 rad/s, and a load of 5 N·m breaks
// the lock inside of another one.
func TestCommandsInsideAStepLockAndBreakAtTheirInstants(t *testing.T) {
	const J, h, K, load, bites, breaks = 2.0, 0.01, 3.0, 5.0, 0.1037, 0.9061
	for _, opt := range placesRuns() {
		opt.Driven = []bool{true, true}
		k := start(t, brake(1, always(0), always(0)).system(), opt)
		pressed, pulled := polyline{{0, 0, 0}, {bites, K, 0}}, polyline{{0, 0, 0}, {breaks, load, 0}}
		for range 120 {
			pressed.command(k, 0, h)
			pulled.command(k, 1, h)
			k.step()
			now, locks := float64(k.tick)*h, bites+J/K
			want := max(0, 1-K/J*max(0, now-bites)) + (load-K)/J*max(0, now-breaks)
			if !scalar.EqualWithinAbs(k.y[0], want, 1e-12) {
				t.Fatalf("%v: w(%g s) = %.15g, want %.15g rad/s", opt, now, k.y[0], want)
			}
			if locked := k.modeOf(0) == Stuck; locked != (now > locks && now < breaks) {
				t.Fatalf("%v: mode %d at %g s", opt, k.modeOf(0), now)
			}
		}
	}
}

// Of more instants than places the last one counts: the changes after the third place act at the
// instant of the last change. J·w = Σ value·time.
func TestOfMoreInstantsThanPlacesTheLastCounts(t *testing.T) {
	const J, h = 2.0, 0.01
	for _, opt := range placesRuns() {
		opt.Driven = []bool{true}
		k := start(t, rig{J: []float64{J}, Torques: []torque{{0, always(0)}}}.system(), opt)
		for i := range 9 {
			k.Change(0, float64(i+1)*1e-3, float64(i+1), 0)
		}
		k.step()
		if want := (1*1e-3 + 2*1e-3 + 3*6e-3 + 9*1e-3) / J; !scalar.EqualWithinAbs(k.y[0], want, 1e-14) {
			t.Errorf("%v: w = %.15g, want %.15g rad/s", opt, k.y[0], want)
		}
		before := k.y[0]
		k.u[0] = 9
		k.step() // without changes
		if want := before + 9*h/J; !scalar.EqualWithinAbs(k.y[0], want, 1e-14) {
			t.Errorf("%v: w = %.15g, want %.15g rad/s", opt, k.y[0], want)
		}
	}
}

// Instants come in any order, two inputs share a place, and instants outside of the step have none.
func TestPlacesOfChangesAreSorted(t *testing.T) {
	const J, h = 2.0, 0.01
	for _, opt := range placesRuns() {
		opt.Driven = []bool{true, true}
		k := start(t, rig{J: []float64{J}, Torques: []torque{{0, always(0)}, {0, always(0)}}}.system(), opt)
		k.Change(0, 7e-3, 70, 0)
		k.Change(1, 2e-3, 2, 0)
		k.Change(1, 7e-3, 7, 0)
		k.Change(0, 9e-3, 90, 0)
		k.Change(1, 4e-3, 4, 0) // out of order for input 1: the change at 7 ms stays
		k.Change(1, -1, 1, 0)
		k.Change(1, h, 1e6, 0)
		k.Change(1, math.NaN(), 1e6, 0)
		k.step()
		want := (2e-3*70 + 1e-3*90 + 2e-3*1 + 2e-3*2 + 3e-3*4 + 3e-3*7) / J
		if !scalar.EqualWithinAbs(k.y[0], want, 1e-14) {
			t.Errorf("%v: w = %.15g, want %.15g rad/s", opt, k.y[0], want)
		}
	}
}

func TestAChangeThatIsNotFiniteStopsThePlant(t *testing.T) {
	for _, opt := range placesRuns() {
		opt.Driven = []bool{true}
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			k := start(t, rig{J: []float64{2}, Torques: []torque{{0, always(1)}}}.system(), opt)
			k.step()
			before := k.y[0]
			k.Change(0, 5e-3, bad, 0)
			k.step()
			if k.faultOut() != 1 || k.y[0] != before {
				t.Errorf("%v: after a change to %g: fault %g, w %g, want 1, %g", opt, bad, k.faultOut(), k.y[0], before)
			}
			k.Reset()
			k.step() // the change is gone
			if k.faultOut() != 0 || k.y[0] != before {
				t.Errorf("%v: after Reset: fault %g, w %g, want 0, %g", opt, k.faultOut(), k.y[0], before)
			}
		}
	}
}

// A plant in two parts takes its inputs at the start of a step only.
func TestAPlantInPartsRefusesChangesInsideAStep(t *testing.T) {
	sys := rig{J: []float64{1}, Torques: []torque{{0, always(0)}}}.system()
	sys.Partition = &model.Partition{Sub: 4, Iter: 1}
	for _, opt := range []Options{{Period: ms(10), Places: 4}} {
		if _, err := Prepare(sys, opt); err == nil {
			t.Error("no error")
		}
	}
	sys.Partition = nil
	for _, opt := range []Options{{Period: ms(10), Places: 65}, {Period: ms(10), Places: -1}, {Period: ms(10), Ramped: []bool{true}}} {
		if _, err := Prepare(sys, opt); err == nil {
			t.Errorf("%v: no error", opt)
		}
	}
}

// A plant that stops keeps the inputs that its last change inside of a step has set.
func TestStoppedPlantKeepsTheInputsAfterTheLastChange(t *testing.T) {
	k := start(t, brake(1, always(3), always(1)).system(), Options{Period: period(0.01), Driven: []bool{true, true}, Places: 3})
	copy(k.u, []float64{3, 1})
	k.step()
	k.Change(0, 0.002, 5, 0)
	k.Change(0, 0.006, 7, 0)
	k.step()
	k.u[1] = math.NaN()
	for tick := range 3 {
		k.step()
		if in := k.inputsAt(k.tick - 1)[:2]; k.faultOut() != 1 || in[0] != 7 || in[1] != 1 {
			t.Errorf("tick %d after the stop: fault %g, inputs %v; want 1, 7 and 1", tick, k.faultOut(), in)
		}
	}
}

// A command of the past is set at every tick and place, and other inputs keep theirs.
func TestCommandsOfThePastAreSetAtEveryPlace(t *testing.T) {
	sys := rig{J: []float64{1, 1}, Torques: []torque{{0, always(0)}, {1, always(0)}, {1, always(0)}}}.system()
	sys.Inputs[1].Delay = 0.023
	all := []bool{true, true, true}
	k := start(t, sys, Options{Period: ms(10), Places: 2, Driven: all, Ramped: all})
	for range 5 {
		k.Change(1, 0.004, 3, 2)
		k.step()
	}
	k.setCommand(1, 7)
	for tick := range int64(k.t.History) {
		for s := range k.t.Places + 1 {
			if v, d := k.inputsAt(tick)[3*s:][:3], k.slopesAt(tick)[3*s:][:3]; v[0] != 0 || v[1] != 7 || v[2] != 0 || d[1] != 0 {
				t.Errorf("entry %d, place %d: %g, slopes %g; want 0 7 0, 0 0 0", tick, s, v, d)
			}
		}
	}
	for s := range k.t.Places + 1 {
		if k.current[3*s+1] != 7 || k.currentSlope[3*s+1] != 0 {
			t.Errorf("place %d now: %g, slope %g; want 7, 0", s, k.current[3*s+1], k.currentSlope[3*s+1])
		}
	}
}

// The output fault names the first state on which an input acts that is not finite, also where the input
// acts without an element.
func TestFaultNamesTheStateOnWhichTheInputActs(t *testing.T) {
	sys := rig{J: []float64{1, 2, 3}, Frictions: []contact{{W: []float64{0, 1, 0}, K: always(0)}},
		Torques: []torque{{2, always(0)}, {1, always(0)}, {0, always(0)}}}.system()
	for i, want := range []float64{2, 3, 2, 1} {
		k := start(t, sys, Options{Period: ms(10), Driven: []bool{true, true, true, true}})
		k.u[i] = math.NaN()
		if k.step(); k.faultOut() != want {
			t.Errorf("input %d: fault %g, want %g", i, k.faultOut(), want)
		}
	}
}

// An input starts with the value of its waveform at time 0.
func TestInputStartsWithItsWaveformAtTimeZero(t *testing.T) {
	jump := table(0, 2, 0.5, 2, 0.5, 9)
	sys := rig{J: []float64{1}, Torques: []torque{{0, jump}, {0, sine(3, 0.2, 0.3)}, {0, table(-1, 4, 1, 8)}}}.system()
	tables := prepare(t, sys, Options{Period: ms(10)}).t
	for i, want := range []float64{2, 3 * math.Sin(0.3), 6} {
		if !scalar.EqualWithinAbs(tables.Start[i], want, 1e-12) {
			t.Errorf("input %d starts with %g, want %g", i, tables.Start[i], want)
		}
	}
}
