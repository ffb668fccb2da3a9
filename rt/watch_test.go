package rt

import (
	"testing"

	"lockstep/sched"
)

// single is a plant whose only output is its value.
type single struct{ value float64 }

func (s *single) Dims() (m, p int)    { return 1, 1 }
func (s *single) Step(y, u []float64) { y[0] = s.value }

// Index 0 is an output like any other, and -1 is none.
func TestWatchReadsTheFirstOutputToo(t *testing.T) {
	for i := -1; i <= 0; i++ {
		for name, c := range map[string]struct {
			watch Watch
			read  func(p *StatusBlock) float64
		}{
			"lag":         {Watch{Events: -1, Transitions: -1, Lag: i, Fault: -1}, (*StatusBlock).LagMax},
			"events":      {Watch{Events: i, Transitions: -1, Lag: -1, Fault: -1}, func(p *StatusBlock) float64 { return float64(p.Events.Load()) }},
			"transitions": {Watch{Events: -1, Transitions: i, Lag: -1, Fault: -1}, func(p *StatusBlock) float64 { return float64(p.Transitions.Load()) }},
			"fault": {Watch{Events: -1, Transitions: -1, Lag: -1, Fault: i}, func(p *StatusBlock) float64 {
				if Reason(p.Reason.Load()) != NonFinite {
					return 0
				}
				return 1 + float64(p.BrokenState.Load())
			}},
		} {
			page, plant := new(StatusBlock), &single{5}
			l, err := New(Config{Period: period, Ticks: 2, Start: []float64{0}, Watch: c.watch}, plant, nil, nil, sched.NewVirtual(period), page)
			if err != nil {
				t.Fatal(err)
			}
			l.Tick(1)
			plant.value = 3
			want := 0.0
			if i == 0 {
				want = 5
				if name == "events" || name == "transitions" { // a count, not the largest
					want = 3
				}
			}
			l.Tick(1)
			if got := c.read(page); got != want {
				t.Errorf("%s at output %d: %g, want %g", name, i, got, want)
			}
		}
	}
}

// The record says of a frame that was not sent whether it would have carried the safe values.
func TestFramesOfMissedPointsAreRecordedWithTheirValues(t *testing.T) {
	for _, o := range []Overrun{{Skip, 9}, {Safe, 0}} {
		b := newBench(t, o, func(cfg *Config, _ *integrator) { cfg.Safe = safeValues() })
		b.page.OpenRing()
		b.ticker.Miss(5, 3)
		b.turn(9)
		unsent := 0
		for e := (Entry{}); b.page.NextEntry(&e); {
			if e.Kind != KindFrame {
				continue
			}
			if want := o.Policy == Safe && e.Tick >= 5; e.Safe != want {
				t.Errorf("%v: frame %X of tick %d, fate %d, has the safe values: %t", o, e.Frame.ID, e.Tick, e.Fate, e.Safe)
			}
			if e.Fate == Unsent {
				unsent++
			}
		}
		if unsent != 3+1 || b.page.TxLost.Load() != 3+1 { // State at 5 to 7, Slow at 5
			t.Errorf("%v: %d frames not sent, %d counted; want 4", o, unsent, b.page.TxLost.Load())
		}
	}
}
