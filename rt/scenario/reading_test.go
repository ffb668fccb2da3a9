package scenario

import (
	"strings"
	"testing"

	"lockstep/io/messages"
	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// readDifference reads as faults and tolerances do.
func readDifference(text string, unit units.Wanted) (float64, error) {
	return readTyped(text, unit.Difference())
}

func TestTypedValuesHaveTheirUnit(t *testing.T) {
	level, difference, rate := readTyped, readDifference, readRate
	for _, c := range []struct {
		unit, text string
		read       func(text string, unit units.Wanted) (float64, error)
		want       float64 // SI
		refused    string
	}{
		{"bar", "3 bar", level, 3e5, ""},
		{"bar", "300 kPa", level, 3e5, ""},
		{"bar", "0", level, 0, ""},
		{"bar", "3", level, 0, "3 needs a unit: 3 bar?"},
		{"bar", "3 rpm", level, 0, `"3 rpm": unit rpm does not fit, bar is wanted`},
		{"bar", "nan", level, 0, `"nan" is not a number`},
		{"bar", "1e999 bar", level, 0, "1e999 is not a finite number"},
		{"bar", "3 bar", difference, 3e5, ""},
		{"bar", "60 bar/min", rate, 1e5, ""},
		{"bar", "3", rate, 0, "3 needs a unit: 3 bar/s?"},
		{"bar", "3 bar", rate, 0, `"3 bar": unit bar does not fit, bar/s is wanted`},
		{"degC", "90 degC", level, 363.15, ""},
		{"degC", "300 K", level, 300, ""},
		{"°C", "90 °C", level, 363.15, ""},
		{"degC", "90", level, 0, "90 needs a unit: 90 degC?"},
		{"degC", "0", level, 0, "0 needs a unit: 0 degC?"},
		{"degC", "5 K", difference, 5, ""},
		{"degC", "0", difference, 0, ""},
		{"degC", "5 degC", difference, 0, "a difference of temperatures cannot be in degC; write it in K"},
		{"K", "5 degC", difference, 0, "a difference of temperatures cannot be in degC; write it in K"},
		{"degC", "5", difference, 0, "5 needs a unit: 5 K?"},
		{"degC", "2 K/s", rate, 2, ""},
		{"Grad", "7", level, 7, ""},
		{"Grad", "7 Grad", level, 7, ""},
		{"Grad", "7", rate, 7, ""},
		{"Grad", "7 Grad/s", rate, 7, ""},
		{"Grad", "7 bar", level, 0, `"7 bar": the unit "Grad" of the signal is not known`},
		{"Grad", "nan", level, 0, `"nan" is not a number`},
		{"", "2", level, 2, ""},
		{"", "30 %", level, 0.3, ""},
		{"", "0.1/s", rate, 0.1, ""},
		{"", "0.1 1/s", rate, 0.1, ""},
		{"", "10 %/s", rate, 0.1, ""},
		{"", "0.1", rate, 0, "0.1 needs a unit: 0.1/s?"},
		{"%", "0.3/s", rate, 0, "0.3 needs a unit: 0.3 %/s?"},
		{"rpm", "100/s", rate, 0, "100 needs a unit: 100 rpm/s?"},
		{"bar", "5 N/s", rate, 0, "unit N/s does not fit, bar/s is wanted"},
		{"degC", "5 degC/s", rate, 0, "a difference of temperatures cannot be in degC; write it in K"},
		{"%", "3 deg", level, 0, "unit deg does not fit, % is wanted"},
		{"%", "30 %", level, 0.3, ""},
		{"%", "30", level, 0, "30 needs a unit: 30 %?"},
	} {
		unit := units.WantSignal(c.unit)
		got, err := c.read(c.text, unit)
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%q in %q: %v (%v), want %q", c.text, c.unit, got, err, c.refused)
			}
		case err != nil || !near(got, c.want):
			t.Errorf("%q in %q: %v (%v), want %v", c.text, c.unit, got, err, c.want)
		}
	}
}

func TestNumbersWithoutDimensionAreShownWithoutAUnit(t *testing.T) {
	for unit, want := range map[string]string{"1": "stays at 0.2", "": "stays at 0.2", "Pa": "stays at 0.2 Pa"} {
		if got := bench.DescribeSource(&model.Source{T: []float64{0}, V: []float64{0.2}}, units.Want(unit)); got != want {
			t.Errorf("in %q: %q, want %q", unit, got, want)
		}
	}
}

func TestAFractionIsRefusedWhereAnInputIsAFlag(t *testing.T) {
	target := resolvedTarget{Fault: fault.Fault{Where: fault.Input}, Wanted: units.Want("1"), hi: 1, flag: true}
	for text, want := range map[string]string{"0": "", "1": "", "0.5": "0.5 is neither 0 nor 1: the input is a flag"} {
		if _, err := target.parseStimulus(text); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A flag and a counter have no values between their steps; a speed has some, which are rounded when the
// frame is sent.
func TestAFractionOfAStepIsRefusedWhereASignalIsAPlainNumber(t *testing.T) {
	for _, c := range []struct {
		signal messages.Signal
		text   string
		want   string
	}{
		{messages.Signal{Len: 1, Factor: 1}, "0.5", "0.5 is between two values of the signal: its whole steps are 1"},
		{messages.Signal{Len: 1, Factor: 1}, "1", ""},
		{messages.Signal{Len: 1, Factor: 100, Unit: "%"}, "50 %", "50 % is between two values of the signal: its whole steps are 100 %"},
		{messages.Signal{Len: 4, Factor: 2, Offset: 1}, "4", "4 is between two values of the signal: its whole steps are 2"},
		{messages.Signal{Len: 4, Factor: 2, Offset: 1}, "5", ""},
		{messages.Signal{Len: 8, Factor: 0.1}, "0.25", ""},
		{messages.Signal{Len: 8, Factor: 1, Unit: "rpm"}, "1.5 rpm", ""},
		{messages.Signal{Len: 32, Factor: 1, Float: true}, "1.5", ""},
	} {
		target := resolvedTarget{Fault: fault.Fault{Where: fault.Signal}, sig: &c.signal, Wanted: units.WantSignal(c.signal.Unit), ownUnit: true, hi: 100}
		r := bench.NewReader("s.yaml")
		stimulus := r.Try(func() { target.readWaveform(r, yamlfile.Field{Node: r.Document([]byte(c.text))}) })
		_, set := target.parseStimulus(c.text)
		for _, err := range []error{set, stimulus} {
			if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%+v = %s: %v, want %q", c.signal, c.text, err, c.want)
			}
		}
	}
}
