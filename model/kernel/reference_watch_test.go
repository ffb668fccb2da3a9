package kernel_test

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"lockstep/model"
	"lockstep/model/kernel"
)

// Tolerances of the comparison, relative to the largest value of the same unit
// in the plant so far: the reference's own steps add up to some 1e-9.
const (
	stateTol  = 1e-6
	energyTol = 1e-9

	// energyFloor is the energy from which on energyTol counts, J: a lock breaks once
	// it is overloaded by 1e-9 of its capacity, and slips of 1e-9 rad/s are rest. In
	// the first ticks there is little else, so a single tick has ten times energyTol.
	energyFloor = 1e-2

	torqueTol = 1e-7 // of the largest capacity: lock torques at an event located to rounding
)

// watch steps a kernel and the reference side by side.
type watch struct {
	rapid.TB
	sys     *model.System
	k       *kernel.Kernel
	ref     *reference
	meter   *meter
	period  float64
	bound   float64
	u, y    []float64
	x0      []float64
	mode    []int8
	size    map[string]float64 // by unit
	grip    float64            // N·m, largest static capacity so far
	worst   float64            // error of a state over size
	lost    float64            // unaccounted energy over meter.size
	lag     float64            // periods
	lagging int                // ticks
	longest int
	late    bool // lag > 0 at the start of the tick
	log     []kernel.Event
	sum     float64
}

func newWatch(t rapid.TB, sys *model.System, s *scenario) *watch {
	t.Helper()
	opt := s.options
	opt.Period, opt.Driven = s.period, driven(sys)
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.text)
	}
	if opt.Memory == 1 && tables.Modes != nil {
		t.Fatal("Memory 1 did not force the factorisation in place")
	}
	end := float64(s.ticks) * s.period.Seconds()
	w := &watch{TB: t, sys: sys, k: kernel.New(tables), ref: newReference(sys, opt.Driven, end),
		meter: newMeter(sys, opt.Driven, end), period: s.period.Seconds(), bound: tables.LagBound}
	w.u, w.y = make([]float64, len(tables.Inputs)), make([]float64, len(tables.Outputs))
	w.x0, w.size = slices.Clone(sys.X0), map[string]float64{}
	w.k.Output(w.y)
	w.mode = w.modes()
	return w
}

func (w *watch) modes() []int8 {
	n := len(w.sys.X0)
	out := make([]int8, len(w.sys.Frictions))
	for i := range out {
		out[i] = int8(w.y[n+3*i])
	}
	return out
}

// tick steps to grid time k+1 and checks what must hold there.
func (w *watch) tick(k int) {
	w.Helper()
	n := len(w.sys.X0)
	from, to := float64(k)*w.period, float64(k+1)*w.period
	w.k.Step(w.y, w.u) // hil_test/cost holds how its cost grows
	w.log = append(w.log, w.k.Events()...)
	for i, v := range w.y {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			w.Fatalf("tick %d: output %d is %g", k, i, v)
		}
	}
	x := w.y[:n]
	lag := w.y[n+3*len(w.sys.Frictions)+1]
	w.checkLag(k, lag)
	w.checkLocks(k)
	if lag == 0 && !w.meter.jumps(to) {
		w.checkTorques(k, to)
	}
	if lag == 0 && !w.late {
		w.checkEnergy(k, from, to)
	}
	if w.ref.knife > to {
		w.ref.advance(w.TB, to, w.u)
	}
	if lag == 0 && w.ref.knife > to {
		w.compare(k, x)
	}
	copy(w.x0, x)
	copy(w.mode, w.modes())
	w.late = lag > 0
}

func (w *watch) checkLag(k int, lag float64) {
	w.Helper()
	w.lag = max(w.lag, lag/w.period)
	if w.lagging++; lag == 0 {
		w.lagging = 0
	}
	w.longest = max(w.longest, w.lagging)
	if !(lag >= 0 && lag <= w.bound) {
		w.Errorf("tick %d: lag %g s; bound %g", k, lag, w.bound)
	}
	if !(lag <= 0) && len(w.k.Events()) == 0 {
		w.Errorf("tick %d: lag %g s after a tick without an event, which must reach the grid", k, lag)
	}
}

func (w *watch) checkLocks(k int) {
	w.Helper()
	n := len(w.sys.X0)
	for i, f := range w.sys.Frictions {
		mode, slip := w.y[n+3*i], w.y[n+3*i+1]
		if mode == 0 && !(math.Abs(slip) <= 1e-9) || f.OneWay && !(slip >= -1e-9) {
			w.Errorf("tick %d: %s in mode %g slips with %g rad/s", k, f.Name, mode, slip)
		}
	}
}

// jumps reports whether a source has a corner at time at: there the modes are those
// before it and the published torques those after.
func (m *meter) jumps(at float64) bool {
	return slices.ContainsFunc(m.corners, func(c float64) bool { return math.Abs(c-at) < 1e-9 })
}

// checkTorques compares the torques with the capacities of the commands in force.
func (w *watch) checkTorques(k int, at float64) {
	w.Helper()
	n, m := len(w.sys.X0), w.meter
	copy(m.u, w.u)
	m.segment = at - 1e-9
	m.signals(at, w.y[:n])
	for i := range w.sys.Frictions {
		w.grip = max(w.grip, m.static(i))
	}
	for i, f := range w.sys.Frictions {
		mode, tau, bound := w.y[n+3*i], w.y[n+3*i+2], m.static(i)
		if mode != 0 {
			bound = m.kinetic(i)
		}
		if f.OneWay && tau < 0 {
			continue
		}
		if !(math.Abs(tau) <= bound+torqueTol*w.grip) {
			w.Errorf("tick %d: %s in mode %g transmits %.12g N·m; its capacity is %.12g", k, f.Name, mode, tau, bound)
		}
	}
}

func (w *watch) checkEnergy(k int, from, to float64) {
	w.Helper()
	m := w.meter
	lost := m.tick(w.TB, from, to, w.x0, w.y[:len(w.sys.X0)], w.u, w.mode, w.k.Events())
	w.sum += lost
	m.size = max(m.size, energyFloor)
	if !(math.Abs(lost) <= 10*energyTol*m.size) {
		w.Errorf("tick %d: %.3g J of %.3g J are not accounted for: in %.6g, friction %.6g, dampers %.6g; events %v",
			k, lost, m.size, m.in, m.friction, m.damper, w.k.Events())
	}
	if !(m.friction >= -energyTol*m.size) {
		w.Errorf("tick %d: friction creates %g J", k, -m.friction)
	}
}

// finish checks the energy of the whole run.
func (w *watch) finish() {
	w.Helper()
	w.lost = math.Abs(w.sum) / max(w.meter.size, energyFloor)
	if !(w.lost <= energyTol) {
		w.Errorf("%.3g J of %.3g J are not accounted for in the run", w.sum, w.meter.size)
	}
}

// floor is the least size to which errors are relative, by unit: slips of
// 1e-9 rad/s are rest, and through a gear train they may be a thousand times that
// on the shafts.
var floor = map[string]float64{"rad/s": 0.1, "rad": 1e-3}

func (w *watch) compare(k int, x []float64) {
	w.Helper()
	for i, p := range w.sys.States {
		w.size[p.Unit] = max(w.size[p.Unit], math.Abs(w.ref.x[i]), floor[p.Unit])
	}
	for i, p := range w.sys.States {
		e := math.Abs(x[i]-w.ref.x[i]) / w.size[p.Unit]
		w.worst = max(w.worst, e)
		if !(e <= stateTol) {
			w.Errorf("tick %d: state %s is %.12g, the reference says %.12g; modes %v and %v, last events %v and %v",
				k, p.Name, x[i], w.ref.x[i], w.modes(), w.ref.mode, w.k.Events(), w.ref.events[max(0, len(w.ref.events)-4):])
		}
	}
}
