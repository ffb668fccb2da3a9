package mechanics_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// Two rails with an interlock under fork forces: the first one out of neutral keeps the other in it, also where both
// start at once, and where the forces change so that the engaged one returns and the other follows.
func TestInterlockKeepsOneRailInNeutral(t *testing.T) {
	const play = 2e-3
	for _, stepping := range []kernel.Stepping{kernel.Dense, kernel.Sparse} {
		for _, c := range []struct {
			name   string
			fa, fb string
			lead   string // rail that leaves neutral first; "": either
		}{
			{"a first", "{table: [[0, 300], [1, 300], [1, -300], [2, -300]]}", "{table: [[0, 0], [0.1, 0], [0.1, 400], [2, 400]]}", "a"},
			{"b first, against it", "{table: [[0, 0], [0.1, 0], [0.1, -400], [2, -400]]}", "{table: [[0, 300], [1, 300], [1, -300], [2, -300]]}", "b"},
			{"both at once", "300", "300", ""},
			{"apart at once", "300", "-300", ""},
			{"nearly at once", "300", "300.000001", "b"},
		} {
			b := modeltest.NewWith(t, modeltest.PlantOf(fmt.Sprintf(`
a: {type: mass, m: 1.5}
b: {type: mass, m: 1.5}
case: {type: fixed}
fa: {type: force, flange: a, f: %s}
fb: {type: force, flange: b, f: %s}
da: {type: damper, a: case, b: a, d: 400}
db: {type: damper, a: case, b: b, d: 400}
ea: {type: clearance, a: case, b: a, s_min: -10 mm, s_max: 10 mm}
eb: {type: clearance, a: case, b: b, s_min: -10 mm, s_max: 10 mm}
lock: {type: interlock, a: a, b: b, neutral: 2 mm}`, c.fa, c.fb), "a: {position: a}\nb: {position: b}"),
				kernel.Options{Period: time.Millisecond, Stepping: stepping})
			name := fmt.Sprintf("%s, %s", c.name, stepping)
			for i := range 1000 {
				b.To(float64(i+1)*1e-3, nil)
				if least := min(math.Abs(b.Get("a")), math.Abs(b.Get("b"))); !(least <= play+2e-9) {
					t.Fatalf("%s: at %d ms the rails are at %g and %g m: both out of neutral", name, i+1, b.Get("a"), b.Get("b"))
				}
			}
			out, in := math.Abs(b.Get("a")), math.Abs(b.Get("b"))
			if c.lead == "b" || c.lead == "" && in > out {
				out, in = in, out
			}
			if !(math.Abs(out-10e-3) < 1e-9) || !(math.Abs(in-play) < 2e-9) {
				t.Errorf("%s: the rails are at %g and %g m, want one at its end and the other held at %g m", name, b.Get("a"), b.Get("b"), play)
			}
			if c.fa[0] != '{' {
				continue
			}
			b.To(2, nil) // the first one returns through neutral and engages on its other side, or is held there
			a, other := math.Abs(b.Get("a")), math.Abs(b.Get("b"))
			if !(math.Abs(max(a, other)-10e-3) < 1e-9) || !(math.Abs(min(a, other)-play) < 2e-9) {
				t.Errorf("%s: after the return the rails are at %g and %g m", name, b.Get("a"), b.Get("b"))
			}
		}
	}
}
