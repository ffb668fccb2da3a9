package accuracy

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// A long chain of filters starts with values whose products are 0 in floating point. The iteration of a law
// of the last one learns nothing from them, and the plant stays finite.
func TestLawOfTinyValuesStaysFinite(t *testing.T) {
	var b strings.Builder
	b.WriteString("plant: chain\nelements:\n  m: {type: mass, m: 1 kg, v_start: 2 m/s}\n  f0: {type: speed_sensor, flange: m}\n")
	const stages = 40
	for i := range stages {
		fmt.Fprintf(&b, "  f%d: {type: first_order, u: f%d, T: 1 s}\n", i+1, i)
	}
	fmt.Fprintf(&b, "  p: {type: product, u: [f%d, f%d]}\n  push: {type: force, flange: m, f: {product: [1 N.s2/m2, p]}}\noutputs: {v: {speed: m}, p: {signal: p}}\n", stages, stages)
	r := rig.Prepare(t, b.String(), kernel.Options{Period: 5 * time.Millisecond}, false)
	for range 400 {
		r.Step(r.Y, r.U)
	}
	if v := r.Y[r.Port("v")]; !(math.Abs(v-2) <= 1e-9) {
		t.Errorf("the mass moves at %g m/s after 2 s, want 2 m/s: the last filters still are near 0", v)
	}
}
