package mechanics_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// A flange follows an acceleration exactly, also one that jumps, oscillates or comes from an input; the drive exerts what
// accelerates the inertias.
func TestAccelerateGivesTheAcceleration(t *testing.T) {
	b := modeltest.New(t, `plant: t
inputs: {a: {unit: m/s2, default: 0}}
elements:
  wheel: {type: inertia, J: 2 kg.m2}
  other: {type: inertia, J: 1 kg.m2}
  drive: {type: accelerate, flange: wheel, a_ref: {step: {height: 3 rad/s2, startTime: 0.5021}}, w_start: 60 rpm, phi_start: 1 rad}
  swing: {type: inertia, J: 2}
  shake: {type: accelerate, flange: swing, a_ref: {cosine: {amplitude: 4, f: 3 Hz}}}
  sled: {type: mass, m: 2 kg, s_start: 0.2 m}
  pull: {type: accelerate, flange: sled, a_ref: a}
outputs: {w: {speed: wheel}, phi: {angle: wheel}, tau: {torque: drive}, swing: {speed: swing}, v: {speed: sled}, s: {position: sled}, f: {force: pull}}
`, 5*time.Millisecond)
	b.Set("a", -1.5)
	b.To(2, func(s float64) {
		on := max(0, s-0.5021)
		b.Is("w", 2*math.Pi+3*on, 1e-12)
		b.Is("phi", 1+2*math.Pi*s+1.5*on*on, 1e-12)
		tau := 0.0
		if on > 0 {
			tau = 6
		}
		b.Is("tau", tau, 1e-12)
		b.Is("swing", 4/(6*math.Pi)*math.Sin(6*math.Pi*s), 1e-9)
		b.Is("v", -1.5*s, 1e-12)
		b.Is("s", 0.2-0.75*s*s, 1e-12)
		b.Is("f", -3, 1e-12)
	})
}
