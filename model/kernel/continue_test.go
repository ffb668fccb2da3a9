package kernel

import (
	"math"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

// motions are plants whose next step depends on each kind of state.
var motions = map[string]func(t *testing.T) *Tables{
	"redundant brakes under waves": func(t *testing.T) *Tables {
		r := rig{
			J: []float64{1, 2, 0.5}, X0: []float64{3, 1, -2, 0}, Springs: []spring{{0, 1, 40, 0.3}},
			Frictions: []contact{
				{W: []float64{1, 0, 0}, K: sine(3, 0.7, 0.3)}, {W: []float64{1, 0, 0}, K: table(0, 2, 0.3, 0, 0.6, 4), Peak: 1.3},
				{W: []float64{1, 0, -1}, K: sine(2, 1.3, 1)}, {W: []float64{0, 1, 0}, K: always(1.5), Offset: 0.2, Gain: 2},
			},
			Torques: []torque{{0, sine(2, 1.1, 0)}, {2, sine(3, 2.3, 0)}},
		}
		sys := r.system()
		sys.Frictions[2].OneWay, sys.Frictions[2].Floor = true, 1e-6
		return tablesFor(t, sys, Options{})
	},
	"driven inputs with dead times and ramps": func(t *testing.T) *Tables {
		sys := rig{
			J: []float64{1, 2}, X0: []float64{3, 1, 0}, Springs: []spring{{0, 1, 40, 0.3}},
			Frictions: []contact{{W: []float64{1, 0}, K: always(1)}, {W: []float64{0, 1}, K: always(2)}},
			Torques:   []torque{{0, always(0)}},
		}.system()
		sys.Inputs[1].Delay = 0.023
		return tablesFor(t, sys, Options{Places: 2, Driven: []bool{true, true, true}, Ramped: []bool{true, false, true}})
	},
	"edges of a sensor": func(t *testing.T) *Tables {
		sys := rig{J: []float64{1}, X0: []float64{4}, Torques: []torque{{0, sine(9, 0.8, 0)}}}.sensed(model.Pulses{Teeth: 48})
		return tablesFor(t, sys, Options{})
	},
	"regions of a spring": func(t *testing.T) *Tables { return tablesFor(t, bilinear(2, 900, 150, 3), Options{}) },
	"capacity of a law":   func(t *testing.T) *Tables { return tablesFor(t, pressedByASpeed(), Options{}) },
	"cars, stepped sparse": func(t *testing.T) *Tables {
		return tablesFor(t, newTrain(1).system(sine(3e4, 0.8, 0), func(a int) model.Source { return sine(2e4, 0.5, float64(a)) }),
			Options{Stepping: Sparse})
	},
	"two parts": func(t *testing.T) *Tables {
		sys := rig{J: []float64{1}, X0: []float64{3}, Frictions: []contact{{W: []float64{1}, K: sine(6, 0.7, 1)}},
			Torques: []torque{{0, sine(3, 1.9, 0)}}}.beside().system()
		sys.Partition = &model.Partition{Sub: 3, Iter: 1}
		return tablesFor(t, sys, Options{})
	},
}

func tablesFor(t *testing.T, sys *model.System, opt Options) *Tables {
	t.Helper()
	opt.Period = ms(10)
	return prepare(t, sys, opt).t
}

// pressedByASpeed is a body with a brake whose capacity is 6 N·m·s/rad times the speed of a second body.
// That speed grows by 1 rad/s² from -0.5003 rad/s.
func pressedByASpeed() *model.System {
	sys := rig{J: []float64{2, 1}, X0: []float64{5, -0.5003}, Frictions: []contact{{W: []float64{1, 0}, K: always(0)}},
		Torques: []torque{{1, always(1)}}}.system()
	addLaw(sys, proportional(6, 0, 1), nil)
	sys.Frictions[0].Signal = len(sys.Signals) - 1
	return sys
}

// inputsAtTick are inputs that change at each tick.
func inputsAtTick(u []float64, tick int) {
	for i := range u {
		u[i] = 2 * math.Sin(0.21*float64(tick)+float64(i))
	}
}

// outputsOf steps a plant n ticks from a tick on and returns the outputs of all of them.
func outputsOf(step func(y, u []float64), t *Tables, tick, n int) (all []float64) {
	y, u := make([]float64, len(t.Outputs)), make([]float64, len(t.Inputs))
	for i := range n {
		inputsAtTick(u, tick+i)
		step(y, u)
		all = append(all, y...)
	}
	return all
}

// differs returns the first entry in which two lists differ in a bit; -1: none.
func differs(a, b []float64) int {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return i
		}
	}
	return -1
}

// poison overwrites what a substep computes anew before it reads it, and a takeover does not copy.
func poison(k *Kernel) {
	for _, list := range [][]float64{k.w0, k.capC} {
		for i := range list {
			list[i] = math.NaN()
		}
	}
}

// A reset leaves nothing of the motion before it.
func TestResetLeavesTheStateOfANewKernel(t *testing.T) {
	for name, tables := range motions {
		tables := tables(t)
		k, fresh := New(tables), New(tables)
		outputsOf(k.Step, tables, 0, 137)
		k.Reset()
		if !reflect.DeepEqual(k.plantState, fresh.plantState) {
			t.Errorf("%s: after a reset\n%+v\nwant\n%+v", name, k.plantState, fresh.plantState)
		}
		if i := differs(outputsOf(k.Step, tables, 0, 150), outputsOf(fresh.Step, tables, 0, 150)); i >= 0 {
			t.Errorf("%s: value %d differs after a reset", name, i)
		}
	}
}

// The motion after a restored snapshot is that after the snapshot was taken, bit for bit, whatever came
// between.
func TestMotionAfterARestoreIsThatAfterTheSnapshot(t *testing.T) {
	for name, tables := range motions {
		tables := tables(t)
		for _, at := range []int{1, 37, 61, 110} {
			s := NewSequence(tables, nil)
			s.ReserveSnapshots(2)
			outputsOf(s.Step, tables, 0, at)
			s.TakeSnapshot(1)
			want := outputsOf(s.Step, tables, at, 80)
			outputsOf(s.Step, tables, at+80, 53)
			if o := s.Restore(1); o != int(NoObstacle) {
				t.Fatalf("%s: obstacle %d", name, o)
			}
			poison(s.kernels[0])
			if i := differs(outputsOf(s.Step, tables, at, 80), want); i >= 0 {
				t.Errorf("%s: restored at tick %d, value %d of step %d differs", name, at, i%len(tables.Outputs), i/len(tables.Outputs))
			}
		}
	}
}

// Slots without a snapshot, and those that do not exist, change nothing.
func TestRestoreWithoutASnapshotChangesNothing(t *testing.T) {
	tables := motions["regions of a spring"](t)
	s, want := NewSequence(tables, nil), NewSequence(tables, nil)
	s.ReserveSnapshots(2)
	s.TakeSnapshot(0)
	s.TakeSnapshot(2) // there is no room
	s.TakeSnapshot(-1)
	outputsOf(s.Step, tables, 0, 20)
	outputsOf(want.Step, tables, 0, 20)
	for _, slot := range []int{1, 2, 3} {
		if o := s.Restore(slot); o != int(NoSnapshot) {
			t.Errorf("slot %d: obstacle %d, want %d", slot, o, NoSnapshot)
		}
	}
	if i := differs(outputsOf(s.Step, tables, 20, 30), outputsOf(want.Step, tables, 20, 30)); i >= 0 {
		t.Errorf("value %d differs", i)
	}
}

// A plant that takes over the motion of the same plant continues it.
func TestTakeOverByTheSameTablesContinuesTheMotion(t *testing.T) {
	for name, tables := range motions {
		tables := tables(t)
		if tables.Partition != nil { // keeps its parameters
			continue
		}
		for _, at := range []int{1, 37, 61, 110} {
			k, next := New(tables), New(tables)
			outputsOf(next.Step, tables, 7, 19) // nothing of an earlier motion may stay
			next.Reset()
			poison(next)
			outputsOf(k.Step, tables, 0, at)
			u := make([]float64, len(tables.Inputs))
			inputsAtTick(u, at)
			if !next.TakeOver(k, u) {
				t.Fatalf("%s: refused, obstacle %d", name, next.obstacle(k))
			}
			got, want := outputsOf(next.Step, tables, at, 80), outputsOf(k.Step, tables, at, 80)
			for i := range got {
				if !scalar.EqualWithinAbsOrRel(got[i], want[i], 1e-9, 1e-9) {
					t.Errorf("%s: taken over at tick %d, value %d of step %d is %.12g, want %.12g", name, at,
						i%len(tables.Outputs), i/len(tables.Outputs), got[i], want[i])
					break
				}
			}
		}
	}
}
