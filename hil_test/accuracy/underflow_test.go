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

// A long chain of filters and limiters starts with values whose products are 0 in floating point. The
// iteration of the laws learns nothing from them, and the plant stays finite.
func TestLawsOfTinyValuesStayFinite(t *testing.T) {
	var b strings.Builder
	b.WriteString("plant: chain\nelements:\n  idle: {type: inertia, J: 1, w_start: 10}\n  g0: {type: integrator, u: 1, k: 1 1/s}\n")
	const stages = 40
	for i := range stages {
		fmt.Fprintf(&b, "  f%d: {type: first_order, u: g%d, T: 1 s}\n  g%d: {type: limiter, u: f%d, uMax: 1, uMin: 0}\n", i+1, i, i+1, i+1)
	}
	fmt.Fprintf(&b, "outputs: {w: {speed: idle}, first: {signal: f1}, last: {signal: f%d}}\n", stages)
	r := rig.Prepare(t, b.String(), kernel.Options{Period: 5 * time.Millisecond}, false)
	for range 100 {
		r.Step(r.Y, r.U)
	}
	const seconds = 0.5
	first := seconds - 1 + math.Exp(-seconds) // a ramp through a filter
	if got := r.Y[r.Port("first")]; !(math.Abs(got-first) <= 1e-6) {
		t.Errorf("the first filter is at %g after %g s, want %g", got, seconds, first)
	}
	if got := r.Y[r.Port("last")]; !(math.Abs(got) <= 1e-12) {
		t.Errorf("the last filter is at %g after %g s, want nearly 0", got, seconds)
	}
}
