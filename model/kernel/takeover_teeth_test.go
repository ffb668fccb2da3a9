package kernel_test

import (
	"math"
	"testing"

	"lockstep/model/kernel"
)

// engaged is a sleeve that an actuator pushes into the teeth of a wheel, up to a stop.
const engaged = `plant: engaged
elements:
  lay: {type: inertia, J: 0.01 kg.m2, w_start: 100 rpm}
  wheel: {type: inertia, J: 0.1 kg.m2}
  collar: {type: mass, m: 0.5 kg}
  push: {type: force, flange: collar, f: 100 N}
  fork: {type: damper, a: frame, b: collar, d: 500}
  frame: {type: fixed}
  stop: {type: elasto_gap, a: collar, b: frame, c: 1e7, d: 1e3, s_rel0: -8 mm}
  motor: {type: torque, flange: lay, tau: 5 N.m}
  drag: {type: damper, a: wheel, b: housing, d: 0.1}
  housing: {type: fixed}
  dogs: {type: dog_clutch, a: lay, b: wheel, sleeve: collar, teeth: 36, radius: 40 mm, backlash: 0.8 deg, flat: 2 deg,
    chamfer: 1 mm, taper: 3 deg, s_contact: 3 mm, mu: 0.1}
outputs: {s: {position: collar}, phi: {signal: dogs.phi}, w: {speed: lay}}
`

// Teeth are clearances, too: tables whose teeth would overlap in the present state are refused, and the sleeve stays
// where it is. Teeth that fit take effect, without a jump of a position.
func TestChangeThatWouldOverlapTeethIsRefused(t *testing.T) {
	a := tablesOf(t, engaged)
	for _, c := range []struct {
		from, to string
		refused  bool
	}{
		{"backlash: 0.8 deg", "backlash: 0.3 deg", true},
		{"s_contact: 3 mm", "s_contact: 7.05 mm", true}, // the sleeve would be in the chamfers, which leave it less play
		{"backlash: 0.8 deg", "backlash: 1.2 deg", false},
		{"s_contact: 3 mm", "s_contact: 20 mm", false}, // the teeth are apart
		{"mu: 0.1", "mu: 0.12", false},
		{"J: 0.1 kg.m2", "J: 0.2 kg.m2", false},
	} {
		s := kernel.NewSequence(a, []kernel.Change{{Tick: 60, Tables: tablesOf(t, engaged, c.from, c.to)}})
		y, last := make([]float64, len(a.Outputs)), 0.0
		for i := range 60 + kernel.MaxWait + 2 {
			if last = y[0]; i < 60 {
				last = math.Inf(1)
			}
			s.Step(y, nil)
			if jump := y[0] - last; i >= 60 && !(math.Abs(jump) <= 1e-4) {
				t.Errorf("%s: the sleeve jumps by %g m at tick %d", c.to, jump, i)
			}
		}
		if y[0] < 7e-3 && c.refused {
			t.Fatalf("sleeve at %g m, want it engaged", y[0])
		}
		want := uint64(0)
		if c.refused {
			want = 1
		}
		if decided, refused := s.Changes(); decided != 1 || refused != want {
			t.Errorf("%s: %d changes decided, refused %b; want 1, %d", c.to, decided, refused, want)
		}
	}
}
