package kernel

import (
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

func TestDownstreamLawFollowsItsSideInTheMiddleOfARepeatedSubstep(t *testing.T) {
	sys := rig{J: []float64{1, 1}, X0: []float64{1, 0}, Torques: []torque{{0, always(4)}}}.system()
	sys.Guards = append(sys.Guards, model.Program{
		Args: []model.Functional{{Row: []float64{1, 0}, Const: -1.03}}, Slopes: []float64{1}, Ops: []model.Op{{Code: model.Arg}}})
	addLaw(sys, operations(0, 5.0, 2.0, model.Op{Code: model.If}), map[int]float64{1: 1})
	k := start(t, sys, Options{Period: ms(10), Stepping: Dense})
	if len(k.t.Downstream) != 1 {
		t.Fatalf("%d downstream laws, want 1", len(k.t.Downstream))
	}
	k.setSignals(k.x, 0, 0.01)
	k.startSubstep(0)
	k.onValues = true
	k.solveLaws()
	if k.lawValues[0] != 2 || k.lawValues[1] != 5 {
		t.Errorf("%g in the middle and %g at the end, want 2 and 5", k.lawValues[0], k.lawValues[1])
	}
}

// A law reads the torque of a brake, which a table or a command makes jump, and heats a store with the loss.
// Another law is the torque of a lock, on which a torque jumps.
func TestLawFollowsAJumpOfTheTorqueThatItReads(t *testing.T) {
	jump := table(0, 5, 0.053, 5, 0.053, 15)
	for _, c := range []struct {
		name    string
		w, fn   model.Source
		command bool
	}{{"table", always(0), jump, false}, {"command", always(0), always(5), true}, {"lock", jump, always(50), false}} {
		speed, perSpeed := 10.0, 1.0
		if c.name == "lock" {
			speed, perSpeed = 0, 0
		}
		for _, stepping := range []Stepping{Dense, Sparse} {
			sys := rig{J: []float64{1, 1}, X0: []float64{speed, 0}, Frictions: []contact{{W: []float64{1, 0}, K: c.fn}},
				Torques: []torque{{0, c.w}}}.system()
			law := operations(2, "x0", "x1", model.Mul)
			law.Args[0] = model.Functional{Row: []float64{perSpeed, 0}, Const: 1 - perSpeed}
			law.Args[1] = model.Functional{Tau: []float64{1}}
			addLaw(sys, law, map[int]float64{1: 1})
			k := start(t, sys, Options{Period: ms(10), Stepping: stepping, Driven: []bool{c.command, false}})
			for i := range 10 {
				if i == 5 {
					k.u[0] = 15
				}
				k.step()
			}
			want := (100 - k.y[0]*k.y[0]) / 2
			if c.name == "lock" {
				want = 5*0.053 + 15*0.047
			}
			if !scalar.EqualWithinAbs(k.y[1], want, 1e-9) {
				t.Errorf("%s, %s: heat %.12g J, want %.12g", c.name, stepping, k.y[1], want)
			}
		}
	}
}

// A sample at a tick reads the torque that follows from the command of this tick.
func TestSampleReadsTheTorqueOfItsTick(t *testing.T) {
	for _, stepping := range []Stepping{Dense, Sparse} {
		sys := rig{J: []float64{1, 1}, X0: []float64{10, 0}, Frictions: []contact{{W: []float64{1, 0}, K: always(5)}}}.system()
		value := operations(1, "x0")
		value.Args[0] = model.Functional{Tau: []float64{1}}
		sys.Samples = append(sys.Samples, model.Sample{State: 1, Value: value})
		k := start(t, sys, Options{Period: ms(10), Stepping: stepping, Driven: []bool{true}})
		for _, fn := range []float64{5, 8, 8, 3} {
			k.u[0] = fn
			if k.step(); k.y[1] != fn {
				t.Errorf("%s: sample %g N·m, want %g", stepping, k.y[1], fn)
			}
		}
	}
}
