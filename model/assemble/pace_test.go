package assemble_test

import (
	"strings"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

// The step is refused by the name and the place of what is too fast for it.
func TestElementTooFastForTheStepIsNamed(t *testing.T) {
	for _, c := range []struct{ name, elements, place, mode string }{
		{"spring", "s: {type: spring, a: g, b: m1, c: 1e12}", "7:3", `1e+06 rad/s (1.592e+05 Hz) of "s"`},
		{"damper", "s: {type: damper, a: g, b: m1, d: 1e7}", "7:3", `1e+07 rad/s (1.592e+06 Hz) of "s"`},
		{"one of two", "soft: {type: spring_damper, a: g, b: m1, c: 1e4, d: 10}\n  s: {type: spring_damper, a: m1, b: m2, c: 1e12, d: 10}", "8:3", `1.414e+06 rad/s (2.251e+05 Hz) of "s"`},
		{"both of two", "s: {type: spring, a: g, b: m1, c: 1e12}\n  s2: {type: spring, a: g, b: m2, c: 1e12}", "7:3", `1e+06 rad/s (1.592e+05 Hz) of "s"`},
		{"one beside the other", "s: {type: spring, a: g, b: m1, c: 1e12}\n  s2: {type: spring, a: g, b: m1, c: 1e12}", "7:3", `1.414e+06 rad/s (2.251e+05 Hz) of "s"`},
		{"one behind the other", "s: {type: spring, a: g, b: n, c: 1e12}\n  s2: {type: spring, a: n, b: m1, c: 1e12}", "8:3", `7.071e+05 rad/s (1.125e+05 Hz) of "s2"`},
		{"light body", "tiny: {type: mass, m: 1e-9}\n  s: {type: spring, a: tiny, b: m1, c: 1e3}\n  s2: {type: spring, a: g, b: m2, c: 1e3}", "8:3", `1e+06 rad/s (1.592e+05 Hz) of "s"`},
		{"spring of regions", "s2: {type: affine_spring, a: g, b: m1, c: [10, 20], borders: [0.05]}\n  s: {type: affine_spring, a: g, b: m2, c: [1, 2, 1e12], borders: [0.02, 0.05]}", "8:3", `1e+06 rad/s (1.592e+05 Hz) of "s"`},
		{"damper of regions", "s: {type: affine_damper, a: g, b: m1, d: [1e7, 1], borders: [1]}", "7:3", `1e+07 rad/s (1.592e+06 Hz) of "s"`},
		{"damper of the deflection", "s: {type: deflection_damper, a: g, b: m1, d_delta: 1e7}", "7:3", `2e+07 rad/s (3.183e+06 Hz) of "s"`},
		{"slip of a tyre", "w: {type: inertia, J: 1}\n  s: {type: tyre, a: w, b: m1, radius: 1, fn: 3000, B: 10, C: 1, D: 1, E: 0, v_low: 1e-3}", "8:3", `1.2e+08 rad/s (1.91e+07 Hz) of "s"`},
		{"relaxation of a tyre", "w: {type: inertia, J: 1}\n  s: {type: tyre, a: w, b: m1, radius: 1, fn: 3, B: 10, C: 1, D: 1, E: 0, relaxation: 1e-6, damping: 0}", "8:3", `1e+08 rad/s (1.592e+07 Hz) of "s.k"`},
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
		want := "t.yaml:" + c.place + `: kernel: plant "t": its fastest mode, ` + c.mode + ", is too fast for a period of 10ms; "
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), " would fit") {
			t.Errorf("%s:\ngot  %v\nwant %s... would fit", c.name, err, want)
		}
	}
}
