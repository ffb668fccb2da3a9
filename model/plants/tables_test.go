package plants_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// collision is the plant of 000 ch. 4.2.
func collision(c1, c2, d1, d2, m1, m2, ks, cr, x1, v1 float64) string {
	return fmt.Sprintf(`plant: collision
elements:
  ground: {type: fixed}
  one: {type: mass, m: %g, s_start: %g, v_start: %g}
  two: {type: mass, m: %g}
  k1: {type: spring_damper, a: ground, b: one, c: %g, d: %g}
  k2: {type: spring_damper, a: ground, b: two, c: %g, d: %g}
  gap: {type: clearance, a: one, b: two, s_min: 0, restitution: %g, k_s: %g}
outputs: {x1: {s_rel: k1}, v1: {speed: one}, x2: {s_rel: k2}, v2: {speed: two}, s: {s_rel: gap}}
`, m1, x1, v1, m2, c1, d1, c2, d2, cr, ks)
}

// oscillator is that of 000 ch. 3, let go at x.
func oscillator(x float64, c, borders string, others ...string) string {
	return fmt.Sprintf(`plant: oscillator
elements:
  ground: {type: fixed}
  body: {type: mass, m: 1}
  spring: {type: affine_spring, a: ground, b: body, c: [%s], borders: [%s], s_rel_start: %g}
  %s
outputs: {x: {s_rel: spring}, v: {speed: body}}
`, c, borders, x, strings.Join(others, "\n  "))
}

// varied is an embedded plant with a part of its text replaced.
func varied(t *testing.T, name, old, by string) string {
	t.Helper()
	data, err := plants.Read(name)
	if err != nil || strings.Count(string(data), old) != 1 {
		t.Fatalf("plant %s has not one %q (%v)", name, old, err)
	}
	return strings.Replace(string(data), old, by, 1)
}

// rows are the rows of the thesis' tables for which there is no truth file: they are the
// same on a long and a short step. Laws and sines are parabolas over a piece.
func rows(t *testing.T) map[string]row {
	damper := "d: {type: affine_damper, a: ground, b: body, d: [%s, 0.5, 1, 5], borders: [0.1, 0.3, 0.5]}"
	const soft, at = "0.05, 1, 2, 10", "0.05, 0.1, 0.15"
	long, five := 100*time.Millisecond, 5*time.Millisecond
	const stop, shaft = "phi_max: 1e-4 rad, restitution: 0", "c: [800, 20000], borders: [0.006]"
	return map[string]row{
		"tables 2 and 3":             {oscillator(0.3, soft, at, fmt.Sprintf(damper, "0.025")), long, 1e-10},
		"tables 2 and 3, d0 as read": {oscillator(0.3, soft, at, fmt.Sprintf(damper, "0.0025")), long, 1e-10},
		"tables 2 and 4": {oscillator(0.3, soft, at, "d: {type: deflection_damper, a: ground, b: body, d_delta: 1, s_rel_start: 0.3}",
			"f: {type: support_friction, flange: body, f_Coulomb: 0.5, peak: 1}"), long, 1e-5},
		"table 5":          {oscillator(0.3, "0.1, 20", "0.15", "d: {type: damper, a: ground, b: body, d: 0.5}"), long, 1e-10},
		"table 10":         {oscillator(0.1, "1, 1000", "0.15", "u: {type: force, flange: body, f: {sine: {amplitude: 1, f: 1/(2*pi)}}}"), 2 * five, 1e-5},
		"table 12, case 2": {varied(t, "hybrid-spring", shaft, "c: [800, 20000], borders: [0.007]"), five, 1e-9},
		"table 12, case 3": {varied(t, "hybrid-spring", shaft, "c: [20000, 800], borders: [0.00025]"), five, 1e-9},
		"table 13, case 2": {collision(20, 20, 0, 0, 10, 10, 1, 0, -0.5, 0), long, 1e-10},
		"table 13, case 4": {collision(20, 40, 0, 0, 10, 10, 10, 0, -0.5, 0), long, 1e-3},
		"table 13, case 5": {collision(10, 40, 0, 0, 40, 10, 1, 0, -0.5, 1), long, 1e-10},
		"table 13, case 6": {collision(20, 20, 1, 0, 20, 100, 10, 0.9, -0.3, 0.1), long, 1e-3},
		"table 16, case 2": {varied(t, "hybrid-clearance", stop, "phi_max: 1e-4 rad, restitution: 1"), five, 1e-9},
		"table 16, case 3": {varied(t, "hybrid-clearance", stop, "phi_max: 2e-3 rad, restitution: 0"), five, 1e-9},
	}
}

type row struct {
	text string
	step time.Duration
	tol  float64 // of the range
}

func TestEveryRowOfTheTablesIsTheSameOnEveryGrid(t *testing.T) {
	for name, r := range rows(t) {
		coarse, rough := sampled(t, r.text, r.step, r.step)
		fine, exact := sampled(t, r.text, time.Millisecond, r.step)
		worst, compared := 0.0, 0
		for j := range fine[0] {
			low, high := math.Inf(1), math.Inf(-1)
			for _, y := range fine {
				low, high = min(low, y[j]), max(high, y[j])
			}
			if !(high-low > 1e-9) {
				continue // at rest
			}
			compared++
			for i, y := range coarse {
				if e := math.Abs(y[j]-fine[i][j]) / (high - low); !(e <= r.tol) {
					t.Fatalf("%s: output %d is %.12g at %v and %.12g at 1 ms, sample %d", name, j, y[j], r.step, fine[i][j], i)
				} else {
					worst = max(worst, e)
				}
			}
		}
		if rough != exact || exact < 1 || compared < 2 {
			t.Errorf("%s: %d events at %v and %d at 1 ms, %d outputs compared", name, rough, r.step, exact, compared)
		}
		t.Logf("%s: within %.1e of the range, %d events", name, worst, exact)
	}
}

// sampled runs a plant for 5 s and returns its own outputs at multiples of every, and the
// number of events.
func sampled(t *testing.T, text string, step, every time.Duration) (out [][]float64, events int) {
	t.Helper()
	p, err := model.Load("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	sys, err := p.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: step})
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(tables)
	y, u := make([]float64, len(tables.Outputs)), make([]float64, len(tables.Inputs))
	for at := step; at <= 5*time.Second; at += step {
		k.Step(y, u)
		events += len(k.Events())
		if at%every == 0 {
			out = append(out, append([]float64(nil), y[:len(sys.Outputs)]...))
		}
	}
	return out, events
}
