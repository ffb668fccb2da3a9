package kernel_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// tablesOf prepares a plant with all inputs driven.
func tablesOf(t *testing.T, text string, replace ...string) *kernel.Tables {
	t.Helper()
	return modeltest.New(t, strings.NewReplacer(replace...).Replace(text), 5*time.Millisecond).Tables
}

// changed steps a plant for n ticks, changes its tables, steps it m ticks more and returns the outputs
// before and after the second part.
func changed(t *testing.T, before, after *kernel.Tables, u []float64, n, m int) (first, last map[string]float64) {
	t.Helper()
	if err := after.Follows(before); err != nil {
		t.Fatal(err)
	}
	s := kernel.NewSequence(before, []kernel.Change{{Tick: int64(n), Tables: after}})
	y := make([]float64, len(before.Outputs))
	values := func() map[string]float64 {
		list := map[string]float64{}
		for i, p := range before.Outputs {
			list[p.Name] = y[i]
		}
		return list
	}
	for range n {
		s.Step(y, u)
	}
	first = values()
	if decided, _ := s.Changes(); decided != 0 {
		t.Fatalf("%d changes before grid point %d", decided, n)
	}
	for range m {
		s.Step(y, u)
	}
	if decided, refused := s.Changes(); decided != 1 || refused != 0 {
		t.Fatalf("%d changes decided, refused %b; want 1, 0", decided, refused)
	}
	return first, values()
}

const pushed = `plant: pushed
inputs: {push: {unit: N, default: 0}}
elements:
  car: {type: mass, m: 1500 kg, v_start: 3 m/s}
  hand: {type: force, flange: car, f: push}
outputs: {v: {speed: car}}
`

// The speed is continuous where a mass changes; its kinetic energy jumps by (m2-m1)·v²/2.
func TestSpeedStaysWhereAMassChanges(t *testing.T) {
	a, b := tablesOf(t, pushed), tablesOf(t, pushed, "1500 kg", "2000 kg")
	first, last := changed(t, a, b, []float64{600}, 200, 400)
	v1 := 3 + 600*1.0/1500
	v2 := v1 + 600*2.0/2000
	if !scalar.EqualWithinRel(first["v"], v1, 1e-12) || !scalar.EqualWithinRel(last["v"], v2, 1e-12) {
		t.Errorf("speeds %.15g and %.15g m/s, want %.15g and %.15g", first["v"], last["v"], v1, v2)
	}
}

// The sensor of a shaft that turns at 10 rad/s counts 480 edges in 2π s, on both sides of a change of its
// inertia, and the time between two edges stays.
func TestCountOfEdgesGoesOnWhereAnInertiaChanges(t *testing.T) {
	const turning = `plant: turning
elements:
  shaft: {type: inertia, J: 2 kg.m2, w_start: 10 rad/s}
outputs: {edges: {pulses: shaft, teeth: 48}}
`
	a, b := tablesOf(t, turning), tablesOf(t, turning, "J: 2 kg.m2", "J: 3 kg.m2")
	first, last := changed(t, a, b, nil, 201, 101)
	for i, y := range []map[string]float64{first, last} {
		now, pitch := []float64{1.005, 1.51}[i], 2*math.Pi/48
		count := math.Floor(10*now/pitch + 0.5) // the first edge is half a pitch away
		age := now - (count-0.5)*pitch/10
		if y["edges"] != count || !scalar.EqualWithinAbs(y["edges.age"], age, 1e-10) || !scalar.EqualWithinAbs(y["edges.period"], pitch/10, 1e-10) {
			t.Errorf("after %g s %g edges, age %.12g s, period %.12g s; want %g, %.12g, %.12g",
				now, y["edges"], y["edges.age"], y["edges.period"], count, age, pitch/10)
		}
	}
}

const braked = `plant: braked
inputs: {tau: {unit: N.m, default: 0}}
elements:
  drive: {type: torque, flange: rotor, tau: tau}
  rotor: {type: inertia, J: 2 kg.m2, w_start: 0}
  brake: {type: brake, flange: rotor, mu: 0.5, cgeo: 1 m, fn: 100 N}
outputs: {w: {speed: rotor}}
`

// A lock whose capacity falls below its load slips from the grid point of the change on. A slipping
// element whose capacity grows takes the larger torque.
func TestLockSlipsFromTheGridPointAtWhichItsCapacityFallsBelowItsLoad(t *testing.T) {
	strong, weak := tablesOf(t, braked), tablesOf(t, braked, "mu: 0.5", "mu: 0.2")
	first, last := changed(t, strong, weak, []float64{40}, 100, 200)
	if first["w"] != 0 || first["brake.mode"] != 0 {
		t.Errorf("before the change: speed %g, mode %g, want a lock", first["w"], first["brake.mode"])
	}
	if want := (40 - 20) / 2.0 * 1; !scalar.EqualWithinRel(last["w"], want, 1e-12) || last["brake.mode"] != 1 {
		t.Errorf("1 s after the change: speed %.15g rad/s, mode %g; want %g, 1", last["w"], last["brake.mode"], want)
	}

	first, last = changed(t, weak, strong, []float64{40}, 100, 100)
	if want := 10 * 0.5; !scalar.EqualWithinRel(first["w"], want, 1e-12) {
		t.Errorf("speed %.15g rad/s after 0.5 s, want %g", first["w"], want)
	}
	if want := 5 - 5*0.5; !scalar.EqualWithinRel(last["w"], want, 1e-12) {
		t.Errorf("speed %.15g rad/s 0.5 s after the change, want %g", last["w"], want)
	}
}

const geared = `plant: geared
elements:
  motor: {type: inertia, J: 1 kg.m2, w_start: 30 rad/s}
  gear: {type: ideal_gear, a: motor, b: shaft, ratio: 3}
  clutch: {type: clutch, a: shaft, b: load, mu: 1, cgeo: 1 m, fn: 50 N}
  load: {type: inertia, J: 4 kg.m2, w_start: 10 rad/s}
outputs: {w_motor: {speed: motor}, w_load: {speed: load}}
`

// Where a ratio changes under a locked clutch, the speeds of both bodies stay, the clutch slips and
// locks again at the speed that the momentum gives: J1·i²+J2 at the load.
func TestLockedClutchSlipsAndLocksAgainWhereARatioChanges(t *testing.T) {
	a, b := tablesOf(t, geared), tablesOf(t, geared, "ratio: 3", "ratio: 2")
	first, last := changed(t, a, b, nil, 20, 1)
	if first["clutch.mode"] != 0 || !scalar.EqualWithinRel(first["w_load"], 10, 1e-12) {
		t.Fatalf("before the change: mode %g, load %g rad/s; want a lock at 10 rad/s", first["clutch.mode"], first["w_load"])
	}
	// Slip w_load - w_motor/2 is -5 rad/s; the clutch brakes the motor with 50/2 N·m and drives the load.
	const h = 0.005
	if !scalar.EqualWithinRel(last["w_motor"], 30-25*h, 1e-12) || !scalar.EqualWithinRel(last["w_load"], 10+50/4.0*h, 1e-12) {
		t.Errorf("one tick after the change: %.15g, %.15g rad/s; want %.15g, %.15g", last["w_motor"], last["w_load"], 30-25*h, 10+50/4.0*h)
	}

	s := kernel.NewSequence(a, []kernel.Change{{Tick: 20, Tables: b}})
	y := make([]float64, len(a.Outputs))
	for range 21 {
		s.Step(y, nil)
	}
	if e := s.Events(); len(e) != 1 || e[0] != (kernel.Event{Time: 20 * h, From: kernel.Stuck, To: kernel.Backward}) {
		t.Errorf("events of the tick of the change: %v; want the clutch at 0.1 s, from stuck to backward", e)
	}

	_, last = changed(t, a, b, nil, 20, 400)
	want := (1*30*2 + 4*10) / (1*4 + 4.0)
	if last["clutch.mode"] != 0 || !scalar.EqualWithinRel(last["w_load"], want, 1e-9) || !scalar.EqualWithinRel(last["w_motor"], 2*want, 1e-9) {
		t.Errorf("after 2 s: mode %g, %.12g and %.12g rad/s; want a lock at %.12g and %.12g",
			last["clutch.mode"], last["w_motor"], last["w_load"], 2*want, want)
	}
}

const overrun = `plant: overrun
elements:
  motor: {type: inertia, J: 1 kg.m2, w_start: 30 rad/s}
  gear: {type: ideal_gear, a: motor, b: shaft, ratio: 3}
  wheel: {type: freewheel, a: shaft, b: load}
  load: {type: inertia, J: 4 kg.m2, w_start: 12 rad/s}
outputs: {w_motor: {speed: motor}, w_load: {speed: load}}
`

// A freewheel that overruns would turn against its direction at the new ratio: it engages at the grid point
// of the change, at the speed that the momentum gives.
func TestFreewheelEngagesWhereARatioChanges(t *testing.T) {
	a, b := tablesOf(t, overrun), tablesOf(t, overrun, "ratio: 3", "ratio: 2")
	first, last := changed(t, a, b, nil, 20, 1)
	if !scalar.EqualWithinRel(first["w_load"], 12, 1e-12) || !scalar.EqualWithinRel(first["w_motor"], 30, 1e-12) {
		t.Fatalf("before the change: %g and %g rad/s, want 30 and 12", first["w_motor"], first["w_load"])
	}
	want := (30*2 + 4*12) / (1*2*2 + 4.0)
	if !scalar.EqualWithinRel(last["w_load"], want, 1e-12) || !scalar.EqualWithinRel(last["w_motor"], 2*want, 1e-12) {
		t.Errorf("after the change: motor %.15g, load %.15g rad/s; want %.15g, %.15g", last["w_motor"], last["w_load"], 2*want, want)
	}
}

const twoRatios = `plant: two-ratios
elements:
  motor: {type: inertia, J: 1 kg.m2, w_start: 30 rad/s}
  first: {type: ideal_gear, a: motor, b: shaft1, ratio: 3}
  second: {type: ideal_gear, a: motor, b: shaft2, ratio: 2}
  clutch1: {type: clutch, a: shaft1, b: load1, mu: 1, cgeo: 1 m, fn: 50 N}
  clutch2: {type: clutch, a: shaft2, b: load2, mu: 1, cgeo: 1 m, fn: 5 N}
  load1: {type: inertia, J: 4 kg.m2, w_start: 10 rad/s}
  load2: {type: inertia, J: 4 kg.m2, w_start: 15 rad/s}
outputs: {w_motor: {speed: motor}, w_load2: {speed: load2}}
`

// Where one of two locks ends, the other one stays and has no slip, though its ratio changed by a rounding
// of the file. The end of the lock is one event and one transition.
func TestLockThatStaysHasNoSlipWhereAnotherOneEnds(t *testing.T) {
	strong := strings.Replace(twoRatios, "fn: 5 N", "fn: 500 N", 1)
	other := strings.NewReplacer("ratio: 3", "ratio: 2.5", "ratio: 2}", "ratio: 2.0000000006}").Replace(strong)
	for _, opt := range []kernel.Options{{}, {Scheme: kernel.Papers}, {Memory: 1}, {Stepping: kernel.Sparse}, {Form: kernel.Held}} {
		opt.Period = 5 * time.Millisecond
		first, last := changed(t, modeltest.NewWith(t, strong, opt).Tables, modeltest.NewWith(t, other, opt).Tables, nil, 20, 1)
		if first["clutch1.mode"] != 0 || first["clutch2.mode"] != 0 {
			t.Fatalf("%v: before the change: modes %g and %g, want locks", opt, first["clutch1.mode"], first["clutch2.mode"])
		}
		if s := last["w_motor"]/2.0000000006 - last["w_load2"]; last["clutch1.mode"] == 0 || last["clutch2.mode"] != 0 || !scalar.EqualWithinAbs(s, 0, 1e-13) {
			t.Errorf("%v: after the change: modes %g and %g, slip of the lock %g rad/s; want the second one locked without slip",
				opt, last["clutch1.mode"], last["clutch2.mode"], s)
		}
		if e, n := last["events"]-first["events"], last["transitions"]-first["transitions"]; e != 1 || n != 1 {
			t.Errorf("%v: %g events, %g transitions; want one of each", opt, e, n)
		}
	}
}

// A lock that cannot carry what the end of another one asks of it ends at the same grid point.
func TestLockThatIsOverloadedByTheEndOfAnotherOneEndsWithIt(t *testing.T) {
	a, b := tablesOf(t, twoRatios), tablesOf(t, twoRatios, "ratio: 3", "ratio: 2.5")
	first, last := changed(t, a, b, nil, 20, 1)
	if first["clutch1.mode"] != 0 || first["clutch2.mode"] != 0 {
		t.Fatalf("before the change: modes %g and %g, want locks", first["clutch1.mode"], first["clutch2.mode"])
	}
	// The motor is driven by 50/2.5 N·m less 5/2 N·m, load 2 by 5 N·m.
	const h = 0.005
	way := 1.0 // shaft 1 is faster than load 1, so clutch 1 brakes the motor
	if w1, w2 := 30-way*(50/2.5-5/2.0)*h, 15-way*5/4.0*h; !scalar.EqualWithinRel(last["w_motor"], w1, 1e-12) || !scalar.EqualWithinRel(last["w_load2"], w2, 1e-12) {
		t.Errorf("after the change: motor %.15g, load 2 %.15g rad/s; want %.15g, %.15g", last["w_motor"], last["w_load2"], w1, w2)
	}
	if n := last["transitions"] - first["transitions"]; n != 2 {
		t.Errorf("%g transitions, want 2", n)
	}
}

const twoPaths = `plant: two-paths
elements:
  motor: {type: inertia, J: 1 kg.m2, w_start: 30 rad/s}
  first: {type: ideal_gear, a: motor, b: shaft1, ratio: 3}
  second: {type: ideal_gear, a: motor, b: shaft2, ratio: 3.0}
  clutch1: {type: clutch, a: shaft1, b: load, mu: 1, cgeo: 1 m, fn: 50 N}
  clutch2: {type: clutch, a: shaft2, b: load, mu: 1, cgeo: 1 m, fn: 80 N}
  load: {type: inertia, J: 4 kg.m2, w_start: 10 rad/s}
outputs: {w_motor: {speed: motor}, w_load: {speed: load}}
`

// Two locks side by side hold one speed. Where the ratio of either one changes, it slips and the other one
// holds the speed alone: J·w' = 50·(1 - 3/2.5) with J = 9·1 + 4 at the load.
func TestLockHoldsAloneWhereTheRatioOfItsNeighbourChanges(t *testing.T) {
	for _, c := range [][3]string{{"clutch1", "fn: 80 N", "ratio: 3}"}, {"clutch2", "fn: 50 N", "ratio: 3.0}"}} {
		slips, stronger, ratio := c[0], c[1], c[2]
		text := strings.Replace(twoPaths, stronger, "fn: 500 N", 1)
		text = strings.Replace(text, "fn: 80 N", "fn: 50 N", 1)
		first, last := changed(t, tablesOf(t, text), tablesOf(t, text, ratio, "ratio: 2.5}"), nil, 20, 2)
		if first["clutch1.mode"] != 0 || first["clutch2.mode"] != 0 {
			t.Fatalf("before the change: modes %g and %g, want locks", first["clutch1.mode"], first["clutch2.mode"])
		}
		want := 10 + 50*(1-3/2.5)/13*0.01
		if last[slips+".mode"] == 0 || !scalar.EqualWithinRel(last["w_load"], want, 1e-12) || !scalar.EqualWithinRel(last["w_motor"], 3*want, 1e-12) {
			t.Errorf("%s changes: its mode %g, load %.15g, motor %.15g rad/s; want it to slip, %.15g, %.15g",
				slips, last[slips+".mode"], last["w_load"], last["w_motor"], want, 3*want)
		}
	}
}

const pressed = `plant: pressed
elements:
  disc: {type: inertia, J: 1 kg.m2, phi_start: 0, w_start: 0}
  hand: {type: torque, flange: disc, tau: 1 N.m}
  ground: {type: fixed}
  stops: {type: clearance, a: ground, b: disc, phi_min: -1 rad, phi_max: 0.5 rad, restitution: 0}
outputs: {phi: {angle: disc}, w: {speed: disc}}
`

// A disc that is pressed on a stop moves on to the new stop: phi = 0.5 + t²/2.
func TestContactEndsWhereItsStopMovesAway(t *testing.T) {
	a, b := tablesOf(t, pressed), tablesOf(t, pressed, "phi_max: 0.5 rad", "phi_max: 0.9 rad")
	first, last := changed(t, a, b, nil, 400, 100)
	if !scalar.EqualWithinRel(first["phi"], 0.5, 1e-12) || first["w"] != 0 {
		t.Fatalf("before the change: %g rad, %g rad/s; want it at the stop", first["phi"], first["w"])
	}
	if want := 0.5 + 0.5*0.5/2; !scalar.EqualWithinRel(last["phi"], want, 1e-9) || !scalar.EqualWithinRel(last["w"], 0.5, 1e-9) {
		t.Errorf("0.5 s after the change: %.15g rad, %.15g rad/s; want %.15g, 0.5", last["phi"], last["w"], want)
	}
}

const stopped = `plant: stopped
elements:
  disc: {type: inertia, J: 1 kg.m2, phi_start: 0, w_start: 0.1 rad/s}
  ground: {type: fixed}
  stops: {type: clearance, a: ground, b: disc, phi_min: -1 rad, phi_max: 1 rad, restitution: 0}
outputs: {phi: {angle: disc}, w: {speed: disc}}
`

// A disc that turns beyond a stop of the new tables keeps the old ones; a change within the clearance
// takes effect, and the disc stops at the new stop.
func TestChangeThatWouldOverlapAClearanceIsRefused(t *testing.T) {
	a := tablesOf(t, stopped)
	wide, narrow := tablesOf(t, stopped, "phi_max: 1 rad", "phi_max: 0.5 rad"), tablesOf(t, stopped, "phi_max: 1 rad", "phi_max: 0.05 rad")
	if _, last := changed(t, a, wide, nil, 200, 2000); !scalar.EqualWithinRel(last["phi"], 0.5, 1e-12) || last["w"] != 0 {
		t.Errorf("disc at %.15g rad, %g rad/s; want it at the stop at 0.5 rad", last["phi"], last["w"])
	}

	s := kernel.NewSequence(a, []kernel.Change{{Tick: 200, Tables: narrow}})
	y := make([]float64, len(a.Outputs))
	for range 400 {
		s.Step(y, nil)
	}
	if decided, refused := s.Changes(); decided != 1 || refused != 1 {
		t.Errorf("%d changes decided, refused %b; want 1, 1", decided, refused)
	}
	if !scalar.EqualWithinRel(y[0], 0.1*2, 1e-12) {
		t.Errorf("disc at %.15g rad after 2 s, want 0.2 rad", y[0])
	}
}

// An offer waits for its grid points, then it is refused with its reason. A later one takes effect.
func TestOfferedTablesTakeEffectOrAreRefusedWithTheReason(t *testing.T) {
	a := tablesOf(t, stopped)
	wide, narrow := tablesOf(t, stopped, "phi_max: 1 rad", "phi_max: 0.5 rad"), tablesOf(t, stopped, "phi_max: 1 rad", "phi_max: 0.05 rad")
	s := kernel.NewSequence(a, nil)
	s.UseSlots([]*kernel.Kernel{kernel.New(narrow), kernel.New(wide)})
	y := make([]float64, len(a.Outputs))
	steps := func(n int) {
		for range n {
			s.Step(y, nil)
		}
	}
	steps(200)
	s.Offer(0)
	steps(kernel.MaxWait)
	if waits, _ := s.Offered(); !waits {
		t.Error("the offer does not wait")
	}
	steps(1)
	waits, why := s.Offered()
	if text := a.Describe(kernel.Obstacle(why)); waits || text != "clearance stops.max would be overlapped" {
		t.Errorf("waits %t, %d: %s", waits, why, text)
	}
	s.Offer(1)
	steps(1)
	if waits, why := s.Offered(); waits || why != 0 {
		t.Errorf("waits %t, obstacle %d; want an offer in effect", waits, why)
	}
	steps(2000)
	if !scalar.EqualWithinRel(y[0], 0.5, 1e-12) || y[1] != 0 {
		t.Errorf("disc at %.15g rad, %g rad/s; want it at the stop at 0.5 rad", y[0], y[1])
	}
	if s.Reset(); y[0] == 0 {
		t.Error("the disc has not moved")
	}
	if s.Output(y); y[0] != 0 {
		t.Errorf("disc at %g rad after a reset", y[0])
	}
}

func TestTablesOfAnotherPlantAreRefused(t *testing.T) {
	a := tablesOf(t, braked)
	for what, other := range map[string]*kernel.Tables{
		"states":             tablesOf(t, braked, "outputs: {", "outputs: {phi: {angle: rotor}, "),
		"inputs or outputs":  tablesOf(t, braked, "outputs: {w:", "outputs: {speed:"),
		"friction elements":  tablesOf(t, braked, "brake:", "shoe:"),
		"form of its tables": modeltest.New(t, braked, time.Millisecond).Tables,
	} {
		if err := other.Follows(a); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("tables with other %s: error %v", what, err)
		}
	}
	if err := a.Follows(a); err != nil {
		t.Error(err)
	}
}

// A fresh kernel that starts in the carried state steps as the one that took over.
func TestChangeUnderMotionEqualsAFreshStartWithTheCarriedState(t *testing.T) {
	moving := strings.Replace(geared, "w_start: 10 rad/s", "w_start: -5 rad/s", 1)
	a, b := tablesOf(t, moving), tablesOf(t, moving, "J: 4 kg.m2", "J: 5 kg.m2", "fn: 50 N", "fn: 80 N")
	first, last := changed(t, a, b, nil, 30, 50)
	fresh := modeltest.New(t, strings.NewReplacer("J: 4 kg.m2", "J: 5 kg.m2", "fn: 50 N", "fn: 80 N").Replace(moving), 5*time.Millisecond)
	for i, name := range fresh.Tables.StateName {
		switch {
		case strings.Contains(name, "motor") || strings.Contains(name, "shaft"):
			fresh.Tables.X0[i] = first["w_motor"]
			if strings.Contains(name, "shaft") {
				fresh.Tables.X0[i] /= 3
			}
		default:
			fresh.Tables.X0[i] = first["w_load"]
		}
	}
	fresh.Kernel.Reset()
	fresh.To(0.25, nil)
	for _, name := range []string{"w_motor", "w_load", "clutch.mode", "clutch.w_rel", "clutch.tau"} {
		if got, want := last[name], fresh.Get(name); math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s is %.17g after the change, %.17g after a fresh start", name, got, want)
		}
	}
}

func TestChangeAllocatesNothing(t *testing.T) {
	a, b := tablesOf(t, geared), tablesOf(t, geared, "J: 4 kg.m2", "J: 5 kg.m2")
	one, two := kernel.New(a), kernel.New(b)
	y := make([]float64, len(a.Outputs))
	if n := testing.AllocsPerRun(100, func() {
		if !two.TakeOver(one, nil) {
			t.Fatal("refused")
		}
		one, two = two, one
		one.Step(y, nil)
	}); n != 0 {
		t.Errorf("%g allocations per change", n)
	}
}
