package kernel

import (
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

// The torque 5 + 2t on J = 2 is -3 from 0.1 s to 0.2 s. With a dead time d its source is
// delayed by d, and -3 starts d after 0.1 s; until then the torque stays.
func TestDrivenInputFollowsCommandsAndReleasedInputItsSource(t *testing.T) {
	const J, from, to = 2.0, 20, 40 // ticks of 5 ms
	for _, d := range []float64{0, 0.012} {
		own := func(at float64) float64 { return 5 + 2*max(0, at-d) }
		ramp := func(a, b float64) float64 { // the integral of own
			corner := min(max(a, d), b)
			return 5*(corner-a) + (own(corner)+own(b))/2*(b-corner)
		}
		want := func(at float64) float64 { // J·w
			sum := ramp(0, min(at, 0.1))
			if at > 0.1 {
				sum += own(0.1)*min(d, at-0.1) - 3*max(0, min(at, 0.2)-0.1-d)
			}
			if at > 0.2 {
				sum += ramp(0.2, at)
			}
			return sum
		}
		for _, form := range bothForms {
			sys := rig{J: []float64{J}, Torques: []torque{{0, table(0, 5, 10, 25)}}}.system()
			sys.Inputs[0].Delay = d
			k := prepare(t, sys, Options{Period: ms(5), Form: form})
			m, p := k.Dims()
			u, y := make([]float64, m), make([]float64, p)
			for range 2 { // the second run follows Reset and is still driven
				for tick := 1; tick <= 60; tick++ {
					switch tick - 1 {
					case from:
						k.Drive(0, true)
					case to:
						k.Drive(0, false)
					}
					u[0] = 1000 // not read
					if tick > from && tick <= to {
						u[0] = -3
					}
					if mid := (float64(tick) - 0.5) * 0.005; !scalar.EqualWithinAbs(k.Own(0), 5+2*mid, 1e-12) {
						t.Fatalf("dead time %g s, tick %d: its own source is %g, want %g", d, tick, k.Own(0), 5+2*mid)
					}
					k.Step(y, u)
					if at := float64(tick) * 0.005; !scalar.EqualWithinAbs(J*y[0], want(at), 1e-12) {
						t.Fatalf("%s, dead time %g s, %g s: J·w = %.15g, want %.15g", form, d, at, J*y[0], want(at))
					}
				}
				k.Drive(0, true)
				k.Reset()
			}
		}
	}
}

// Drive does not release an input that the tables command through u.
func TestInputDrivenByABusDoesNotReturnToItsSource(t *testing.T) {
	sys := rig{J: []float64{2}, Torques: []torque{{0, always(5)}}}.system()
	k := prepare(t, sys, Options{Period: ms(5), Driven: []bool{true}})
	_, p := k.Dims()
	y := make([]float64, p)
	k.Drive(0, false)
	k.Step(y, []float64{8})
	if want := 8 * 0.005 / 2; !scalar.EqualWithinRel(y[0], want, 1e-14) {
		t.Errorf("w = %g rad/s, want %g", y[0], want)
	}
}
