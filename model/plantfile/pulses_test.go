package plantfile_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
	"lockstep/model/units"

	"gonum.org/v1/gonum/floats/scalar"
)

// Sensors on a wheel behind a gear, on a massless shaft between springs and on the
// machine itself, beside outputs that need no angle. The angles are those of the plant:
// the edges passed are the pitches gone through, to one.
func TestPulsesCountThePitchesOfEveryKindOfNode(t *testing.T) {
	b := modeltest.New(t, `plant: wheels
elements:
  machine: {type: inertia, J: 0.1, w_start: 30}
  push: {type: torque, flange: machine, tau: {table: [[0, 3], [1, 3], [1.2, -9], [5, -9]]}}
  gear: {type: ideal_gear, a: machine, b: axle, ratio: -4}
  flex: {type: spring_damper, a: axle, b: wheel, c: 500, d: 3}
  wheel: {type: inertia, J: 0.4}
  left: {type: damper, a: wheel, b: loose, d: 1}
  right: {type: damper, a: loose, b: ring, d: 2}
  ring: {type: inertia, J: 0.2, phi_start: 1}
  unused: {type: inertia, J: 1}
outputs:
  w: {speed: wheel}
  machine: {pulses: machine, teeth: 60}
  axle: {pulses: axle, teeth: 48}
  wheel: {pulses: wheel, teeth: 48, runout: 0.2}
  loose: {pulses: loose, teeth: 100}
  ring: {pulses: ring, teeth: 29}
  phi_machine: {angle: machine}
  phi_axle: {angle: axle}
  phi_wheel: {angle: wheel}
  phi_loose: {angle: loose}
  phi_ring: {angle: ring}
`, 5*time.Millisecond)
	teeth := map[string]float64{"machine": 60, "axle": 48, "wheel": 48, "loose": 100, "ring": 29}
	gone, angle, before := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for name := range teeth {
		angle[name] = b.Get("phi_" + name)
	}
	b.To(4, func(at float64) {
		for name, n := range teeth {
			phi := b.Get("phi_" + name)
			gone[name] += math.Abs(phi-angle[name]) * n / (2 * math.Pi)
			angle[name] = phi
			count, age, period := b.Get(name), b.Get(name+".age"), b.Get(name+".period")
			// One more for each time it turns back: twice at most here.
			if !scalar.EqualWithinAbs(count, gone[name], 3) || count != math.Trunc(count) || !(count >= before[name]) {
				t.Fatalf("%s at %g s: %g edges after %g on %g pitches", name, at, count, before[name], gone[name])
			}
			if !(age >= 0 && age <= at) || (count > 1) != (period > 0) {
				t.Fatalf("%s at %g s: %g edges, age %g s, period %g s", name, at, count, age, period)
			}
			before[name] = count
		}
	})
	for name := range teeth {
		if !(before[name] >= 50) {
			t.Errorf("%s: only %g edges", name, before[name])
		}
	}
	for _, p := range b.Tables.Outputs {
		want := map[string]units.Beyond{"wheel": units.Wraps, "wheel.age": units.Rests, "wheel.period": units.Rests, "w": units.Border}
		if beyond, ok := want[p.Name]; ok && p.Beyond != beyond {
			t.Errorf("output %s: %d beyond its range, want %d", p.Name, p.Beyond, beyond)
		}
	}
}
