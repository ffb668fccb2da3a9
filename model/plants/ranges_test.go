package plants_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// The laws of a plant stepped sparse converge to their own values: ranges of inputs that are far wider than the values
// do not loosen them.
func TestWideRangesOfInputsDoNotChangeTheMotion(t *testing.T) {
	text := `plant: ranges
inputs:
  A: {unit: N.m, min: -RANGE, max: RANGE, default: 2}
  B: {unit: 1, min: -RANGE, max: RANGE, default: {sine: {amplitude: 3, f: 3 Hz}}}
elements:
  speed: {type: speed_sensor, flange: a}
  ratio: {type: division, u1: speed, u2: 1 rad/s}
  product: {type: product, u: [ratio, A, B]}
  driven: {type: torque, flange: z, tau: product}
  push: {type: torque, flange: a, tau: 10}
  a: {type: inertia, J: 1}
  z: {type: inertia, J: 1}
`
	last := "a"
	for i := range 12 { // so long that it is stepped sparse
		text += fmt.Sprintf("  j%d: {type: inertia, J: 0.05}\n  s%d: {type: spring_damper, a: %s, b: j%d, c: 2000, d: 3}\n", i, i, last, i)
		last = fmt.Sprint("j", i)
	}
	text += "outputs: {w.z: {speed: z}}\n"
	var speeds []float64
	for _, limit := range []string{"10", "1e11"} {
		b := modeltest.NewUndriven(t, strings.ReplaceAll(text, "RANGE", limit), kernel.Options{Period: 5 * time.Millisecond, Stepping: kernel.Sparse})
		b.To(1, func(float64) {})
		speeds = append(speeds, b.Get("w.z"))
	}
	if d := math.Abs(speeds[1] - speeds[0]); !(d <= 1e-9) || !(math.Abs(speeds[0]) > 1e-2) {
		t.Errorf("%g and %g rad/s", speeds[0], speeds[1])
	}
}
