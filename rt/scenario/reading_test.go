package scenario

import (
	"testing"

	"lockstep/model"
	"lockstep/rt/bench"
)

func TestNumbersWithoutAUnitAreInTheUnitOfTheSignal(t *testing.T) {
	for _, c := range []struct {
		unit, text string
		want       float64 // SI; 0 where it is refused
		per        string  // "" a value; "-" a difference; "/s" one per second
	}{
		{"bar", "3", 3e5, ""}, {"bar", "3 bar", 3e5, ""}, {"bar", "300 kPa", 3e5, ""}, {"bar", "3 rpm", 0, ""},
		{"bar", "3", 3e5, "/s"}, {"bar", "60 bar/min", 1e5, "/s"}, {"bar", "3 bar", 0, "/s"},
		{"degC", "90", 363.15, ""}, {"degC", "90 degC", 363.15, ""}, {"degC", "300 K", 300, ""},
		{"degC", "5", 5, "-"}, {"degC", "5 K", 5, "-"}, {"degC", "2 K/s", 2, "/s"}, {"°C", "90", 363.15, ""},
		{"Grad", "7", 7, ""}, {"Grad", "7 Grad", 0, ""}, {"", "2", 2, ""}, {"%", "30", 0.3, ""}, {"", "30 %", 0.3, ""},
		{"bar", "nan", 0, ""}, {"bar", "inf", 0, "-"},
	} {
		g := scaleOf(c.unit)
		got, err := g.Read(c.text)
		if c.per != "" {
			got, err = map[string]func(string) (float64, error){"-": g.Difference, "/s": g.perSecond}[c.per](c.text)
		}
		if (err != nil) != (c.want == 0) || err == nil && !near(got, c.want) {
			t.Errorf("%q in %q, %q: %v (%v), want %v", c.text, c.unit, c.per, got, err, c.want)
		}
		if c.per == "" && err == nil && !near(g.toSI(g.fromSI(got)), got) {
			t.Errorf("%v in %q and back is %v", got, c.unit, g.toSI(g.fromSI(got)))
		}
	}
}

func TestNumbersWithoutDimensionAreShownWithoutAUnit(t *testing.T) {
	for unit, want := range map[string]string{"1": "stays at 0.2", "": "stays at 0.2", "Pa": "stays at 0.2 Pa"} {
		if got := bench.DescribeSource(&model.Source{T: []float64{0}, V: []float64{0.2}}, unit); got != want {
			t.Errorf("in %q: %q, want %q", unit, got, want)
		}
	}
}
