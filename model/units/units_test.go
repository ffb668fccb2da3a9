package units

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

func TestUnitsConvertToSI(t *testing.T) {
	for _, c := range []struct {
		unit   string
		factor float64
		dim    string
		si     string
	}{
		{"", 1, "1", "1"},
		{"1", 1, "1", "1"},
		{"%", 0.01, "1", "1"},
		{"rad", 1, "1", "rad"},
		{"deg", 0.017453292519943295, "1", "rad"},
		{"°", 0.017453292519943295, "1", "rad"},
		{"rpm", 0.10471975511965977, "1/s", "rad/s"},
		{"1/min", 0.10471975511965977, "1/s", "rad/s"},
		{"min^-1", 0.10471975511965977, "1/s", "rad/s"},
		{"min⁻¹", 0.10471975511965977, "1/s", "rad/s"},
		{"1/s", 1, "1/s", "1/s"},
		{"deg/s", 0.017453292519943295, "1/s", "rad/s"},
		{"Hz", 1, "cycle/s", "Hz"},
		{"mg", 1e-6, "kg", "kg"},
		{"ms", 1e-3, "s", "s"},
		{"µs", 1e-6, "s", "s"},
		{"mm", 1e-3, "m", "m"},
		{"cm2", 1e-4, "m2", "m2"},
		{"cm^2", 1e-4, "m2", "m2"},
		{"cm²", 1e-4, "m2", "m2"},
		{"m/s2", 1, "m/s2", "m/s2"},
		{"m.s^-2", 1, "m/s2", "m.s^-2"},
		{"m·s⁻²", 1, "m/s2", "m.s^-2"},
		{"km/h", 1 / 3.6, "m/s", "m/s"},
		{"bar", 1e5, "kg/m/s2", "Pa"},
		{"kPa", 1e3, "kg/m/s2", "Pa"},
		{"psi", 6894.757293168361, "kg/m/s2", "Pa"},
		{"mph", 0.44704, "m/s", "m/s"},
		{"MPa", 1e6, "kg/m/s2", "Pa"},
		{"kN", 1e3, "kg.m/s2", "N"},
		{"N.m", 1, "kg.m2/s2", "N.m"},
		{"N·m", 1, "kg.m2/s2", "N.m"},
		{"Nm", 1, "kg.m2/s2", "N.m"},
		{"N.mm", 1e-3, "kg.m2/s2", "N.m"},
		{"kg.m2", 1, "kg.m2", "kg.m2"},
		{"kg·m²", 1, "kg.m2", "kg.m2"},
		{"g.cm2", 1e-7, "kg.m2", "kg.m2"},
		{"N.m.s/rad", 1, "kg.m2/s", "N.m.s/rad"},
		{"N.m/(rad/s)", 1, "kg.m2/s", "N.m/(rad/s)"},
		{"N.m/rpm", 9.549296585513721, "kg.m2/s", "N.m/(rad/s)"},
		{"N/bar", 1e-5, "m2", "N/Pa"},
		{"N.m/deg", 57.29577951308232, "kg.m2/s2", "N.m/rad"},
		{"kW", 1e3, "kg.m2/s3", "W"},
	} {
		u, err := Parse(c.unit)
		if err != nil {
			t.Errorf("%q: %v", c.unit, err)
			continue
		}
		if !scalar.EqualWithinRel(u.Factor, c.factor, 1e-15) || u.Dim.String() != c.dim || u.SI != c.si {
			t.Errorf("%q is %.17g %v, in SI %q; want %.17g %s %q", c.unit, u.Factor, u.Dim, u.SI, c.factor, c.dim, c.si)
		}
		if si, err := Parse(u.SI); err != nil || si.Factor != 1 || si.Dim != u.Dim {
			t.Errorf("%q: its SI unit %q reads as %v, %v", c.unit, u.SI, si, err)
		}
	}
}

func TestUnknownUnitsAreRefused(t *testing.T) {
	for _, unit := range []string{
		"bars", "kgm2", "m0", "m^", "m^-", "m13", "m12.m", "/s", "m/", "m//s", "m/(s", "(m", "m)", "m s", "2", "10", "rpm2",
		"²", "N,m", "\xff", strings.Repeat("m.", 60) + "m", strings.Repeat("(", 20),
	} {
		if u, err := Parse(unit); err == nil {
			t.Errorf("%q is accepted as %v", unit, u)
		}
	}
}

func TestConvertPreservesTheDimension(t *testing.T) {
	for _, c := range []struct {
		from, to string
		factor   float64
	}{
		{"bar", "Pa", 1e5}, {"Pa", "bar", 1e-5}, {"rpm", "rad/s", math.Pi / 30}, {"", "1", 1}, {"1", "%", 100},
		{"Nm", "N.m", 1}, {"deg", "rad", math.Pi / 180}, {"km/h", "m/s", 1 / 3.6},
	} {
		f, err := Convert(c.from, c.to)
		if err != nil || !scalar.EqualWithinRel(f, c.factor, 1e-15) {
			t.Errorf("%s to %s: %v, %v; want %v", c.from, c.to, f, err, c.factor)
		}
	}
	for _, c := range [][2]string{{"bar", "N"}, {"Hz", "rad/s"}, {"bar", "barr"}, {"barr", "bar"}, {"%", "deg"}, {"rad", "%"}} {
		if f, err := Convert(c[0], c[1]); err == nil {
			t.Errorf("%s to %s gives %v", c[0], c[1], f)
		}
	}
}

func TestQuantitiesAreEvaluated(t *testing.T) {
	params := map[string]float64{"J_wheel": 0.3, "i1": 1.5, "axle.J": 2, "r1": 4, "s_x": 8}
	for _, c := range []struct {
		text, unit string
		want       float64
	}{
		{"3", "N.m", 3},
		{"  -3.5e-2 ", "N.m", -0.035},
		{".5", "1", 0.5},
		{"1E3", "1", 1000},
		{"120 rpm", "rad/s", 4 * math.Pi},
		{"120rpm", "rad/s", 4 * math.Pi},
		{"600 1/min", "rad/s", 20 * math.Pi},
		{"600 min^-1", "rad/s", 20 * math.Pi},
		{"600 min⁻¹/2", "rad/s", 10 * math.Pi},
		{"3 1/s", "rad/s", 3},
		{"2 1/bar", "1/Pa", 2e-5},
		{"0.5 bar", "Pa", 5e4},
		{"0.5 bar", "bar", 5e4},
		{"0.5", "bar", 5e4},
		{"75/50", "1", 1.5},
		{"2*J_wheel", "kg.m2", 0.6},
		{"2 * (J_wheel + axle.J) / i1", "kg.m2", 4.6 / 1.5},
		{"-(1 + 2)*-3", "1", 9},
		{"7 - 2 - 1", "1", 4},
		{"8/2/2", "1", 2},
		{"2*pi*5", "rad/s", 10 * math.Pi},
		{"3 bar*sin(pi/6)", "Pa", 1.5e5},
		{"-sqrt(abs(-4))*exp(0)+cos((0))", "1", -1},
		{"100 rpm/2", "rad/s", 50 * math.Pi / 30},
		{"8 m/s/2", "m/s", 4},
		{"8 m/r1", "m", 2},
		{"8 m/s_x", "m", 1},
		{"6 m/(1+2)", "m", 2},
		{"6 N.m/(rad/s)", "N.m.s/rad", 6},
		{"10 N * 0.3 m", "N.m", 3},
		{"50 N/bar", "m2", 5e-4},
		{"50 % * 4 m", "m", 2},
		{"1 m - 20 cm", "m", 0.8},
		{"90 deg", "rad", math.Pi / 2},
		{"5 ms", "s", 0.005},
		{"20 degC", "K", 293.15},
		{"-40 °C", "K", 233.15},
		{"(20degC)", "K", 293.15},
	} {
		got, err := Quantity(c.text, c.unit, params)
		if err != nil || !scalar.EqualWithinRel(got, c.want, 1e-15) {
			t.Errorf("%q in %s: %.17g, %v; want %.17g", c.text, c.unit, got, err, c.want)
		}
	}
}

func TestInvalidQuantitiesAreRefused(t *testing.T) {
	for _, c := range []struct{ text, unit, want string }{
		{"", "m", "a value is missing"},
		{"1 +", "m", "a value is missing at the end"},
		{"(1", "m", "a closing parenthesis is missing"},
		{"20 degC + 3 K", "K", "a temperature in degC cannot be calculated with; write it in K"},
		{"2*20 degC", "K", "a temperature in degC cannot be calculated with; write it in K"},
		{"20 degC", "m", "unit degC does not fit, m is wanted"},
		{"1)", "m", `unexpected ")"`},
		{"sin(3 bar)", "1", "sin of bar: a number without a unit is wanted"},
		{"sqrt(0-1)", "1", "sqrt has no finite value there"},
		{"sin", "1", `"sin" is not a known parameter`},
		{"cos(1", "1", "a closing parenthesis is missing"},
		{strings.Repeat("sin(", 100) + "1", "1", "nested deeper than 50"},
		{"1 2", "m", `unexpected "2"`},
		{"2*15 %", "deg", "unit % does not fit, deg is wanted"},
		{"30 deg", "%", "unit deg does not fit, % is wanted"},
		{"3 m", "s", "unit m does not fit, s is wanted"},
		{"3 m*2 m", "m", "unit m2 does not fit, m is wanted"},
		{"1/(2-2)", "m", "division by zero"},
		{"nan", "m", `"nan" is not a known parameter`},
		{"inf", "m", `"inf" is not a known parameter`},
		{"0x10", "m", "is not a known unit"},
		{"3 m/s^99", "m/s", `"m/s^99" is not a known unit`},
		{"3 m/s99", "m", `"m/s99" is not a known unit`},
		{"1e400", "m", "1e400 is not a finite number"},
		{"1e300*1e300", "m", "not a finite number"},
		{"bad", "m", "not a finite number"},
		{strings.Repeat("(", 200) + "1", "m", "nested deeper than 50"},
		{strings.Repeat("-", 200) + "1", "m", "nested deeper than 50"},
		{strings.Repeat("1+", 600) + "1", "m", "longer than 1000"},
		{"1", "nothing", `"nothing"`},
	} {
		v, err := Quantity(c.text, c.unit, map[string]float64{"bad": math.NaN(), "s99": 2})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q in %s: %v, %v; want an error with %q", c.text, c.unit, v, err, c.want)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"120 rpm", "2*J_wheel", "-(1 + 2)*-3", "6 N.m/(rad/s)", "1/min", "m²", "8 m/s_x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Quantity(text, "N.m", map[string]float64{"J_wheel": 0.3})
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Errorf("%q is %v without an error", text, v)
		}
		if u, err := Parse(text); err == nil && !(u.Factor > 0) {
			t.Errorf("unit %q has the factor %v", text, u.Factor)
		}
	})
}
