package rt

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/rt/fault"
	"lockstep/sched"
)

// arriving returns a bench in virtual time whose input acts from the arrival of its frame, with a ramp
// of ramp ns.
func arriving(t testing.TB, o Overrun, ramp int64, change ...func(*Config, *integrator)) *bench {
	b := newBench(t, o, append(change, func(cfg *Config, _ *integrator) {
		cfg.Virtual, cfg.Inputs = true, InputPlan{AtArrival: true}
		if ramp > 0 {
			cfg.Inputs.RampNs = []int64{ramp}
		}
	})...)
	b.buses[0].Times = &can.Times{}
	return b
}

// commandAt puts a frame on the bus that arrives at ms and asks for u, in m/s.
func (b *bench) commandAt(t testing.TB, ms, u float64) {
	t.Helper()
	b.command(t, u)
	b.buses[0].Times.Add(int64(ms * 1e6))
}

// wantX fails where x is not want, m.
func (b *bench) wantX(t *testing.T, what string, want float64) {
	t.Helper()
	if !scalar.EqualWithinAbs(b.plant.x, want, 1e-12) {
		t.Errorf("%s: x = %.15g m at tick %d, want %.15g m", what, b.plant.x, b.page.Ticks.Load(), want)
	}
}

func TestAnInputActsFromTheArrivalOfItsFrame(t *testing.T) {
	b := arriving(t, Overrun{}, 0)
	b.commandAt(t, 2, 10)
	b.commandAt(t, 4, -5)
	b.turn(1)
	b.wantX(t, "two frames in a step", 10*2e-3-5*1e-3)
	b.turn(1)
	b.wantX(t, "no frame in the next one", 10*2e-3-5*6e-3)
	b.command(t, 20) // no time: from the start of its step
	b.turn(1)
	b.wantX(t, "a frame without an arrival", 10*2e-3-5*6e-3+20*5e-3)
	if n := b.page.InputsMoved.Load() + b.page.InputsMerged.Load(); n != 0 {
		t.Errorf("%d frames moved or merged", n)
	}
	b.commandAt(t, 15, -20) // at the tick before
	b.turn(1)
	b.wantX(t, "a frame at the tick before", 10*2e-3-5*6e-3+20*5e-3-20*5e-3)
}

// The instants of six frames in a step: four places, and the frames beyond are counted.
func TestInstantsBeyondThoseOfAStepAreCounted(t *testing.T) {
	b := arriving(t, Overrun{}, 0)
	for i := range 6 {
		b.commandAt(t, 0.5+0.5*float64(i), float64(i+1))
	}
	b.turn(2)
	if n := b.page.InputsMerged.Load(); n != 2 {
		t.Errorf("%d instants beyond %d, want 2", n, MaxPlaces)
	}
	b.wantX(t, "the last one counts", 0.5e-3*(1+2+3+4+5)+6*7e-3)
}

// Grid points 1 to 3 are lost; two frames have arrived in between.
func TestAFrameDrivesTheMissedTicksFromItsArrival(t *testing.T) {
	for _, o := range []Overrun{{Skip, 10}, {CatchUp, 10}} {
		b := arriving(t, o, 0)
		b.ticker.Miss(1, 3)
		b.commandAt(t, 7, 10)
		b.commandAt(t, 18, 40)
		b.turn(1)
		b.wantX(t, o.String(), 10*11e-3+40*2e-3)
	}
}

// A ramp of 10 ms: the line to 10 m/s from 2 ms on ends at 12 ms. A frame at 18 ms asks for 0, one at 24
// ms, before the end of its line, for 6 m/s.
func TestARampIsAStraightLineOneCycleLate(t *testing.T) {
	at := func(ms float64) float64 { // m
		sum, from := 0.0, 0.0
		for _, p := range [][3]float64{{2, 0, 0}, {12, 0, 10}, {18, 10, 10}, {24, 10, 4}, {34, 4, 6}, {1e9, 6, 6}} { // until ms, from m/s, to m/s
			d := math.Max(0, math.Min(ms, p[0])-from)
			slope := (p[2] - p[1]) / (p[0] - from)
			sum, from = sum+p[1]*d+slope*d*d/2, p[0]
		}
		return sum * 1e-3
	}
	for _, missed := range []int64{0, 2} {
		b := arriving(t, Overrun{Skip, 5}, 10e6)
		if missed > 0 {
			b.ticker.Miss(4, missed)
		}
		frames := [][2]float64{{2, 10}, {18, 0}, {24, 6}}
		for b.page.Ticks.Load() < 10 {
			n := b.ticker.Wait()
			for len(frames) > 0 && frames[0][0]*1e6 < float64(b.ticker.Now()) {
				b.commandAt(t, frames[0][0], frames[0][1])
				frames = frames[1:]
			}
			b.Tick(n)
			b.wantX(t, "ramp", at(float64(b.page.Ticks.Load())*5))
		}
	}
	b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Inputs.RampNs = []int64{7.5e6} })
	b.command(t, 10) // on the grid: from the start of the step
	b.turn(1)
	b.wantX(t, "ramp on the grid", 10/7.5*5*5/2*1e-3)
	b.turn(1)
	b.wantX(t, "ramp on the grid", 10*7.5/2*1e-3+10*2.5e-3)
}

// While a fault, here from tick 2 to 3, acts on an input, the input has one value in a step.
func TestAFaultOfAnInputActsAtTicks(t *testing.T) {
	b := arriving(t, Overrun{}, 0, func(cfg *Config, _ *integrator) {
		cfg.Faults.Faults = []fault.Fault{{Where: fault.Input, Kind: fault.Offset, A: 100, Start: fault.Trigger{Tick: 2}, Duration: 2}}
	})
	b.commandAt(t, 1, 10)
	b.turn(1)
	b.commandAt(t, 6, 20)
	b.turn(1)
	want := 10*4e-3 + 120*5e-3 // the value at the end of the step, and the offset
	b.wantX(t, "a fault", want)
	b.turn(1)
	want += 120 * 5e-3
	b.wantX(t, "a fault", want)
	b.commandAt(t, 17, 30)
	b.turn(1)
	want += 20*2e-3 + 30*3e-3
	b.wantX(t, "after the fault", want)
}

// A value that no frame has brought, such as a substitute, acts from the start of the step and ends a
// ramp.
func TestASubstituteActsAtItsTick(t *testing.T) {
	b := arriving(t, Overrun{}, 10e6)
	b.commandAt(t, 1, 10)
	b.turn(1)
	want := 4 * 4 / 2. * 1e-3 // 1 m/s per ms
	b.wantX(t, "ramp", want)
	b.U[0] = 3 // as a reaction to a timeout
	b.turn(2)
	want += 3 * 10e-3
	b.wantX(t, "substitute", want)
	b.commandAt(t, 16, 13)
	b.turn(1)
	want += 3*1e-3 + (3*4+4*4/2.)*1e-3
	b.wantX(t, "the next frame", want)
}

// More values in a tick than wait: the newest counts.
func TestOfTooManyValuesTheNewestCounts(t *testing.T) {
	b := arriving(t, Overrun{}, 0)
	for i := range 200 {
		b.commandAt(t, 0.01*float64(i+1), float64(i%90))
	}
	b.turn(1)
	before := b.plant.x
	b.turn(1)
	b.wantX(t, "the newest value", before+float64(199%90)*5e-3)
}

// Grid point 3 of 5 ms has been stepped to, and the clock says 20.2 ms.
func TestAWrongStampMovesAValueWithinItsStep(t *testing.T) {
	const step = int64(3600e9)
	for _, c := range []struct {
		what                 string
		arrival, other, want int64
		moved                uint64
	}{
		{"a right stamp", 17e6, 17e6, 17e6, 0},
		{"at the last tick", 15e6, 15e6, 15e6, 0},
		{"after the tick was due", 20.1e6, 20.1e6, 20.1e6, 0},
		{"from the future", 25e6, 25e6, 20.2e6, 1},
		{"from the past", 3e6, 3e6, 15e6, 1},
		{"from before a step of the clock forward", 17e6 - step, 17e6, 17e6, 0},
		{"from before a step of the clock back", 17e6 + step, 17e6, 17e6, 0},
		{"from after a step", 17e6, 17e6 + step, 17e6, 0},
		{"without sense", math.MaxInt64, math.MinInt64, 20.2e6, 1},
	} {
		b := arriving(t, Overrun{}, 0)
		b.k = 3
		if got := b.boundArrival(c.arrival, c.other, 20.2e6); got != c.want || b.page.InputsMoved.Load() != c.moved {
			t.Errorf("%s: %d ns, %d moved; want %d, %d", c.what, got, b.page.InputsMoved.Load(), c.want, c.moved)
		}
	}
}

// The stamps of the kernel are on CLOCK_REALTIME, the grid is on CLOCK_MONOTONIC. One try of many is not
// disturbed between the readings of the clocks.
func TestAStampIsConvertedToTheClockOfTheGrid(t *testing.T) {
	b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Inputs.AtArrival = true })
	least := int64(math.MaxInt64)
	for range 1000 {
		b.clock.measured = false
		b.grid.Start = sched.Now() - 1e9
		b.stamps[0] = can.Stamp{Soft: sched.Realtime()}
		now := sched.Now() - b.grid.Start
		at := b.actsFrom(0, 0)
		if least = min(least, max(at-now, now-at)); least < 20e3 {
			break
		}
	}
	if least > 20e3 {
		t.Errorf("a stamp is %d ns off", least)
	}
	b.stamps[0] = can.Stamp{}
	if at := b.actsFrom(0, 0); at != OnGrid || b.page.InputsUnstamped.Load() != 1 {
		t.Errorf("without a stamp: %d ns, %d counted", at, b.page.InputsUnstamped.Load())
	}
	// CLOCK_REALTIME is set forward by an hour between two ticks: the offset of the last one explains
	// stamps from before.
	b.clock = realtimeClock{offset: b.clock.offset - 3600e9}
	b.stamps[0] = can.Stamp{Soft: sched.Realtime() - 3600e9}
	now := sched.Now() - b.grid.Start
	if at := b.actsFrom(0, 0); b.page.InputsMoved.Load() != 0 || at > now+1e9 || at < now-1e9 {
		t.Errorf("before a step of the clock: %d ns at %d ns, %d moved", at, now, b.page.InputsMoved.Load())
	}
}

// plain is a plant whose inputs change at ticks only.
type plain struct{ Plant }

func TestAPlantWithoutChangesInsideAStepIsRefused(t *testing.T) {
	b := newBench(t, Overrun{})
	for _, plan := range []InputPlan{{AtArrival: true}, {RampNs: []int64{1e6}}} {
		cfg := b.cfg
		cfg.Inputs = plan
		if _, err := New(cfg, plain{b.plant}, b.buses, b.maps, b.ticker, new(StatusBlock)); err == nil {
			t.Errorf("%+v: no error", plan)
		}
	}
}
