package law_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/element"
	"lockstep/model/kernel"
	"lockstep/model/law"
	"lockstep/model/library"
	"lockstep/model/network"
	"lockstep/model/plantfile"
)

// brake is an element type with the torque of a formula of the speed w against the flange.
func brake(formula string) element.Kind {
	return element.Kind{Name: "test_brake", Flanges: element.OnSupport(network.Rotational),
		Read: func(e *element.Element) element.Declared {
			tau := law.Formula(formula, law.Names{"w": law.Of(e.Between.Speeds(1)).Within(-100, 100)})
			return e.Resist(e.AddLaw("tau", "N.m", tau))
		}}
}

// stepped returns the speed of J = 1 kg·m² under 100 N·m and a brake, at time end, s.
func stepped(t *testing.T, formula string, period time.Duration, end float64) float64 {
	t.Helper()
	const text = "plant: t\nelements:\n  body: {type: inertia, J: 1}\n  push: {type: torque, flange: body, tau: 100}\n" +
		"  x: {type: test_brake, flange: body}\noutputs: {w: {speed: body}}\n"
	p, err := plantfile.Load("t.yaml", []byte(text), append(library.Elements(), brake(formula)))
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: period})
	if err != nil {
		t.Fatal(err)
	}
	k, y := kernel.New(tables), make([]float64, len(tables.Outputs))
	for range int(math.Round(end / period.Seconds())) {
		k.Step(y, nil)
	}
	return y[0]
}

// From 1.03 rad/s on, w' = 100 - 5·(w - 1.03). The corner lies inside of a substep.
func TestCornerOfAPlainMaximumIsExact(t *testing.T) {
	for _, formula := range []string{"max(0, 5*(w - 1.03))", "5*(w - min(w, 1.03))", "2.5*(w - 1.03 + abs(w - 1.03))", "where(w - 1.03, 5*(w - 1.03), 0)"} {
		for period, bound := range map[time.Duration]float64{time.Millisecond: 1e-11, 5 * time.Millisecond: 4e-9, 20 * time.Millisecond: 1e-6} {
			want := 1.03 + 20*(1-math.Exp(-5*(0.06-0.0103)))
			if w := stepped(t, formula, period, 0.06); !(math.Abs(w-want) <= bound) {
				t.Errorf("%s at %v: %.12g rad/s, want %.12g", formula, period, w, want)
			}
		}
	}
}

// The brake rises from 0 at 1.03 rad/s to 5 N·m at 1.08 rad/s, in half a millisecond, and stays there.
func TestTwoCornersWithinASubstepAreBothPassed(t *testing.T) {
	t1 := 0.0103 - math.Log(1-0.05)/100 // w = 1.03 + 1·(1 - exp(-100·(t - 0.0103))) reaches 1.08
	want := 1.08 + 95*(0.1-t1)
	for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		if w := stepped(t, "clamp(100*(w - 1.03), 0, 5)", period, 0.1); !(math.Abs(w-want) <= 1e-9) {
			t.Errorf("%v: %.12g rad/s, want %.12g", period, w, want)
		}
	}
}

// The largest slopes of flow through an orifice, of a damper of air and of a saturation are known.
func TestSlopesAreThoseOfAnalysis(t *testing.T) {
	shared := law.Compiler{Plant: &network.Plant{Nodes: []network.Node{{Name: "n"}}}} // keeps the slopes of all laws
	x := network.RowOf(0).Speeds(1)
	for _, c := range []struct {
		formula   string
		low, high float64
		want      float64
	}{
		{"3*x", -1, 1, 3},
		{"3.5*x", -1, 1, 3.5},
		{"3*x", -1, 1, 3},
		{"x*abs(x)", -20, 10, 40},
		{"x*abs(x)", -20, 30, 60},
		{"x/sqrt(sqrt(x*x + 1e10))", -4e7, 4e7, 1 / math.Sqrt(1e5)},
		{"sin(2*atan(x/30))", math.Inf(-1), math.Inf(1), 2. / 30},
		{"exp(-abs(x)/5)", math.Inf(-1), math.Inf(1), 1. / 5},
		{"clamp(x/0.01, -1, 1)", -1, 1, 100},
		{"where(x, 2*x, 7*x)", 1, 2, 2},
		{"x/(1 + x*x)", 0, math.Inf(1), 1},
		{"max(0, x)*max(0, 3 - x)", -10, 10, 3},
	} {
		l, err := shared.Compile(law.Owner{}, law.Formula(c.formula, law.Names{"x": law.Of(x).Within(c.low, c.high)}))
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Slopes[0]; !(got >= c.want*(1-1e-12) && got <= c.want*1.003) {
			t.Errorf("%s: slope %g, want %g", c.formula, got, c.want)
		}
	}
}

func TestInfiniteSlopesAreRefused(t *testing.T) {
	p := &network.Plant{Nodes: []network.Node{{Name: "n"}}}
	x := network.RowOf(0).Speeds(1)
	for _, formula := range []string{"sqrt(x)", "1/x", "x/(tiny*tiny)", "x*abs(x)", "x/(tiny - tiny)"} {
		var steep *law.SlopeError
		_, err := (&law.Compiler{Plant: p}).Compile(law.Owner{}, law.Formula(formula, law.Names{"x": x, "one": 1., "tiny": 1e-200}))
		if !errors.As(err, &steep) || steep.Names[0] != "tiny" {
			t.Errorf("%s: %v, want a refusal that names tiny", formula, err)
		}
	}
}
