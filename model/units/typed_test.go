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
