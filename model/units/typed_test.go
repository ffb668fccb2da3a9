package units

import (
	"math"
	"testing"
)

// A typed number has its unit; 0 needs none except as a temperature.
func TestATypedNumberCarriesItsUnit(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		want       float64
		refused    string
	}{
		{"50 bar", "bar", 50e5, ""},
		{"50 bar", "Pa", 50e5, ""},
		{"0", "bar", 0, ""},
		{"-0.0", "N.m", 0, ""},
		{"2 * 3", "1", 6, ""},
		{"30 %", "1", 0.3, ""},
		{"20 degC", "degC", 293.15, ""},
		{"300 K", "degC", 300, ""},
		{"0", "", 0, ""},
		{"50", "bar", 0, "model: 50 needs a unit: 50 bar?"},
		{"1e3", "rad/s", 0, "model: 1e3 needs a unit: 1e3 rad/s?"},
		{"2*25", "bar", 0, "model: 2*25 needs a unit, such as bar"},
		{"30", "%", 0, "model: 30 needs a unit: 30 %?"},
		{"50", "s", 0, "model: 50 needs a unit: 50 ms or 50 s?"},
		{"0.3", "%", 0, "model: 0.3 needs a unit: 0.3 % or 30 %?"},
		{"90", "rad", 0, "model: 90 needs a unit: 90 deg or 90 rad?"},
		{"3", "1/s", 0, "model: 3 needs a unit: 3/s?"},
		{"3/s", "1/s", 3, ""}, // as the hint says
		{"-1e1/s", "rad/s", -10, ""},
		{"3/s/s", "1/s2", 3, ""},
		{"3/x", "1/s", 0, `model: "3/x": "x" is not a number`},
		{"45", "deg", 0, "model: 45 needs a unit: 45 deg?"},
		{"0", "K", 0, "model: 0 needs a unit: 0 K?"},
		{"0", "degC", 0, "model: 0 needs a unit: 0 degC?"},
		{"50 rpm", "bar", 0, "model: unit rpm does not fit, bar is wanted"},
	} {
		v, err := Typed(c.text, c.unit)
		if got := ""; err != nil {
			got = err.Error()
			if got != c.refused {
				t.Errorf("%q for %q: %s; want %q", c.text, c.unit, got, c.refused)
			}
		} else if c.refused != "" || !(math.Abs(v-c.want) <= 1e-12*math.Abs(c.want)) {
			t.Errorf("%q for %q: %v; want %v%s", c.text, c.unit, v, c.want, c.refused)
		}
	}
}

// The numbers that people read and type follow the declared unit, with its zero point.
func TestAPortConvertsToItsDeclaredUnit(t *testing.T) {
	for _, c := range []struct {
		port      Port
		si, shown float64
		text      string
	}{
		{Port{Unit: "Pa", Declared: "bar"}, 50e5, 50, "50 bar"},
		{Port{Unit: "K", Declared: "degC"}, 293.15, 20, "20 degC"},
		{Port{Unit: "rad/s", Declared: "rpm"}, 100 * math.Pi, 3000, "3000 rpm"},
		{Port{Unit: "rad/s"}, 2, 2, "2 rad/s"},
		{Port{Unit: "1"}, 2, 2, "2"},
	} {
		u := c.port.DeclaredUnit()
		if x := u.FromSI(c.si); !(math.Abs(x-c.shown) <= 1e-12*c.shown) || u.Format(c.si) != c.text {
			t.Errorf("%+v: %v is shown as %v, %q; want %v, %q", c.port, c.si, x, u.Format(c.si), c.shown, c.text)
		}
		if si, err := u.Typed(c.text); err != nil || !(math.Abs(si-c.si) <= 1e-12*c.si) || !(math.Abs(u.ToSI(c.shown)-si) <= 1e-12*si) {
			t.Errorf("%+v: %q is %v, %v; want %v", c.port, c.text, si, err, c.si)
		}
	}
}

// A difference of 5 degC is 5 K, not 278.15 K; the text "5 degC" does not say which.
func TestADifferenceOfTemperaturesIsInKelvin(t *testing.T) {
	d := Want("degC").Difference()
	if v, err := d.Typed("5 K"); err != nil || v != 5 || d.Spelled != "K" {
		t.Errorf("5 K is %v %s, %v", v, d.Spelled, err)
	}
	if v, err := d.Typed("5 degC"); err == nil {
		t.Errorf("5 degC is accepted as %v K", v)
	}
	if v, err := d.Typed("0"); err != nil || v != 0 {
		t.Errorf("no difference is %v, %v", v, err)
	}
}
