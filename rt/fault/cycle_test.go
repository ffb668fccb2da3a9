package fault

import (
	"math"
	"testing"

	"lockstep/io/sigmap"
	"lockstep/model/driver"
)

// driverOn returns a set whose driver follows a ramp of 1 m/s² from 1 s on, with inputs 0 to 2 and output 0.
func driverOn(t *testing.T) (*Set, *plant) {
	t.Helper()
	p := &plant{on: make([]bool, 4)}
	c := &Cycle{
		Settings: driver.Default(h), Preview: 400_000_000,
		Target:      sigmap.Waveform{At: []int64{0, 1e9, 11e9}, Value: []float64{0, 0, 10}},
		Accelerator: Pedal{Input: 0, Low: -1, High: 1}, Brake: Pedal{Input: 1, High: 100}, Lever: 2,
	}
	s, err := New(Plan{Cycle: c}, System{PeriodNs: hNs, M: 4, P: 1, Plant: p})
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func TestDriverSetsItsInputsFromTheOutputsOfTheTickBefore(t *testing.T) {
	s, p := driverOn(t)
	u, y := []float64{7, 7, 7, 7}, []float64{0}
	tick := func(k int64) []float64 {
		s.BeginTick(k, y)
		return s.DisturbInputs(k, u)
	}
	if got := tick(1); got[0] != -1 || got[1] != 30 || got[3] != 7 {
		t.Errorf("tick 1: %v, want no accelerator (-1), the brake at 30 and input 3 as it was", got)
	}
	if !p.on[0] || !p.on[1] || !p.on[2] || p.on[3] {
		t.Errorf("inputs of the plant that follow u: %v, want the first three", p.on)
	}
	got := u
	for k := int64(2); k <= 400; k++ { // to 2 s: the target is 1 m/s
		got = tick(k)
	}
	if got[0] <= -0.5 || got[1] != 0 || got[2] != float64(driver.Drive) {
		t.Errorf("at 2 s and 1 m/s too slow: %v, want the accelerator in drive", got)
	}
	y[0] = 5
	for k := int64(401); k <= 460; k++ {
		got = tick(k)
	}
	if got[0] != -1 || got[1] <= 10 {
		t.Errorf("at 2.3 s and 4 m/s too fast: %v, want the brake", got)
	}
	if c := (Command{Op: Drive, Input: 1, Value: 12}); !s.Apply(&c) {
		t.Fatal("a live value for an input of the driver is refused")
	}
	if got = tick(461); got[1] != 12 {
		t.Errorf("live value: %v, want 12 at input 1", got)
	}
}

func TestDriverParksAtTheEndOfItsCycle(t *testing.T) {
	s, _ := driverOn(t)
	c := &s.cycle.Cycle
	c.Target = sigmap.Waveform{At: []int64{0, 1e9, 2e9, 3e9, 4e9}, Value: []float64{0, 0, 1, 0, 0}}
	v, y, lever := 0.0, []float64{0}, 0.0
	for k := int64(1); k <= 1200; k++ {
		s.BeginTick(k, y)
		u := s.DisturbInputs(k, make([]float64, 4))
		v = max(v+(2*(u[0]+1)-0.08*u[1])*h, 0) // 4 m/s² at full accelerator, 8 m/s² at full brake
		y[0], lever = v, u[2]
		if k == 600 && lever != float64(driver.Drive) {
			t.Errorf("at 3 s: lever %v, want drive", lever)
		}
	}
	if lever != float64(driver.Park) || v != 0 {
		t.Errorf("2 s after the end: lever %v at %v m/s, want park and a stop", lever, v)
	}
}

func TestTickWithADriverDoesNotAllocate(t *testing.T) {
	s, _ := driverOn(t)
	u, y, k := make([]float64, 4), []float64{1}, int64(0)
	if n := testing.AllocsPerRun(1000, func() { k++; s.BeginTick(k, y); s.DisturbInputs(k, u) }); n != 0 {
		t.Errorf("a tick allocates %v times, want 0", n)
	}
}

func TestImpossibleCyclesAreRefused(t *testing.T) {
	good, _ := driverOn(t)
	for name, change := range map[string]func(*Cycle){
		"settings":       func(c *Cycle) { c.Settings.Preview = 0 },
		"target":         func(c *Cycle) { c.Target.At = nil },
		"speed":          func(c *Cycle) { c.Speed = 1 },
		"accelerator":    func(c *Cycle) { c.Accelerator.Input = 4 },
		"brake":          func(c *Cycle) { c.Brake.Input = 0 },
		"lever":          func(c *Cycle) { c.Lever = 1 },
		"negative input": func(c *Cycle) { c.Brake.Input = -1 },
	} {
		c := good.cycle.Cycle
		change(&c)
		if _, err := New(Plan{Cycle: &c}, System{PeriodNs: hNs, M: 4, P: 1, Plant: &plant{on: make([]bool, 4)}}); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// laneOn returns a set whose driver steers input 0 along a path by outputs 0 to 3.
func laneOn(l *Lane) (*Set, error) {
	return New(Plan{Lane: l}, System{PeriodNs: hNs, M: 2, P: 4, Plant: &plant{on: make([]bool, 2)}})
}

func goodLane() *Lane {
	return &Lane{Settings: driver.DefaultLane(h), Steer: Pedal{Input: 0, Low: -1, High: 1}, Y: 1, Heading: 2, Speed: 3,
		PathX: []float64{0, 10}, PathY: []float64{0, 3}}
}

func TestDriverOfALaneSteersWithinTheRangeOfHisInput(t *testing.T) {
	s, err := laneOn(goodLane())
	if err != nil {
		t.Fatal(err)
	}
	u, y, k := []float64{7, 7}, []float64{0, 0, 0, 20}, int64(0)
	step := func() []float64 { k++; s.BeginTick(k, y); return s.DisturbInputs(k, u) }
	if got := step(); got[0] != 0 || got[1] != 7 {
		t.Errorf("tick 1: %v, want the wheel straight", got)
	}
	for range 400 {
		step()
	}
	if got := step()[0]; got != 1 {
		t.Errorf("the path is to the left: %v, want the range of the input, 1", got)
	}
	y[0] = math.NaN()
	if got := step()[0]; got != 1 {
		t.Errorf("without a position: %v, want the wheel where it is", got)
	}
	if n := testing.AllocsPerRun(1000, func() { step() }); n != 0 {
		t.Errorf("a tick allocates %v times, want 0", n)
	}
}

func TestImpossibleLanesAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Lane){
		"settings": func(l *Lane) { l.Settings.Preview = 0 },
		"output":   func(l *Lane) { l.X = 4 },
		"input":    func(l *Lane) { l.Steer.Input = 2 },
		"path":     func(l *Lane) { l.PathX = []float64{1, 1} },
		"lengths":  func(l *Lane) { l.PathY = nil },
		"no path":  func(l *Lane) { l.PathX, l.PathY = nil, nil },
	} {
		l := goodLane()
		change(l)
		if _, err := laneOn(l); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
