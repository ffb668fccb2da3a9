package assemble_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

// The error names the element that is too fast for the period, and its place in the file.
func TestElementTooFastForThePeriodIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, elements, place string
		rate                  float64 // rad/s, to four digits
		element               string
	}{
		{"spring", "s: {type: spring, a: g, b: m1, c: 1e12}", "7:3", 1e+06, "s"},
		{"damper", "s: {type: damper, a: g, b: m1, d: 1e7}", "7:3", 1e+07, "s"},
		{"one of two", "soft: {type: spring_damper, a: g, b: m1, c: 1e4, d: 10}\n  s: {type: spring_damper, a: m1, b: m2, c: 1e12, d: 10}", "8:3", 1.414e+06, "s"},
		{"both of two", "s: {type: spring, a: g, b: m1, c: 1e12}\n  s2: {type: spring, a: g, b: m2, c: 1e12}", "7:3", 1e+06, "s"},
		{"one beside the other", "s: {type: spring, a: g, b: m1, c: 1e12}\n  s2: {type: spring, a: g, b: m1, c: 1e12}", "7:3", 1.414e+06, "s"},
		{"one behind the other", "s: {type: spring, a: g, b: n, c: 1e12}\n  s2: {type: spring, a: n, b: m1, c: 1e12}", "8:3", 7.071e+05, "s2"},
		{"light body", "tiny: {type: mass, m: 1e-9}\n  s: {type: spring, a: tiny, b: m1, c: 1e3}\n  s2: {type: spring, a: g, b: m2, c: 1e3}", "8:3", 1e+06, "s"},
		{"spring of regions", "s2: {type: affine_spring, a: g, b: m1, c: [10, 20], borders: [0.05]}\n  s: {type: affine_spring, a: g, b: m2, c: [1, 2, 1e12], borders: [0.02, 0.05]}", "8:3", 1e+06, "s"},
		{"damper of regions", "s: {type: affine_damper, a: g, b: m1, d: [1e7, 1], borders: [1]}", "7:3", 1e+07, "s"},
		{"damper of the deflection", "s: {type: deflection_damper, a: g, b: m1, d_delta: 1e7}", "7:3", 2e+07, "s"},
		{"slip of a tyre", "w: {type: inertia, J: 1}\n  s: {type: tyre, a: w, b: m1, radius: 1, fn: 3000, B: 10, C: 1, D: 1, E: 0, v_low: 1e-3}", "8:3", 1.26e+08, "s"},
		{"relaxation of a tyre", "w: {type: inertia, J: 1}\n  s: {type: tyre, a: w, b: m1, radius: 1, fn: 3, B: 10, C: 1, D: 1, E: 0, relaxation: 1e-6, damping: 0}", "8:3", 1e+08, "s.k"},
	} {
		text := "plant: t\nelements:\n  # bodies\n  g: {type: fixed}\n  m1: {type: mass, m: 1}\n  m2: {type: mass, m: 1}\n  " + c.elements + "\noutputs: {v: {speed: m1}}\n"
		p, err := plantfile.Load("t.yaml", []byte(text), library.Elements())
		if err != nil {
			t.Fatal(c.name, err)
		}
		sys, err := assemble.System(p)
		if err != nil {
			t.Fatal(c.name, err)
		}
		_, err = kernel.Prepare(sys, kernel.Options{Period: 10 * time.Millisecond})
		var at *kernel.PlaceError
		var fast *kernel.TooFastError
		if !errors.As(err, &at) || at.Place != "t.yaml:"+c.place || !errors.As(err, &fast) {
			t.Errorf("%s: %v, want a rate too fast at %s", c.name, err, c.place)
			continue
		}
		if fast.Element != c.element || !(math.Abs(fast.Rate-c.rate) <= 5e-4*c.rate) || fast.Period != 10*time.Millisecond || !(fast.Fit > 0) {
			t.Errorf("%s: %+v, want %g rad/s of %q", c.name, fast, c.rate, c.element)
		}
	}
}
