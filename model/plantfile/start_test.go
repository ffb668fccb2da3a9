package plantfile_test

import (
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

const gearedPlant = `plant: geared
inputs:
  low.pressure: {unit: bar, min: 0, max: 20, default: 7}
  high.pressure: {unit: bar, min: 0, max: 20}
start:
  v: {unit: km/h, min: 0, max: 100, set: {out.w_start: v/0.5 m}}
  n: {unit: rpm, min: 0, max: 6000, set: {motor.w_start: n}}
  gear:
    default: low
    low: {locked: [low], inputs: {low.pressure: 10}}
    high: {locked: [high], inputs: {high.pressure: 12 bar}}
elements:
  motor: {type: inertia, J: 1, w_start: 100 rad/s}
  out: {type: inertia, J: 5, w_start: 20 rad/s}
  pair1: {type: ideal_gear, a: motor, b: wheel1, ratio: 4}
  pair2: {type: ideal_gear, a: motor, b: wheel2, ratio: 2}
  low: {type: clutch, a: wheel1, b: out, mu: 0.1, cgeo: 1, area: 100 cm2, pressure: low.pressure}
  high: {type: clutch, a: wheel2, b: out, mu: 0.1, cgeo: 1, area: 100 cm2, pressure: high.pressure}
outputs: {w: {speed: motor}}
`

// startOf returns the speeds of motor and out, rad/s, and the pressures of low and high, bar.
func startOf(text string, presets ...string) (w [2]float64, bar [2]float64, err error) {
	d, err := plantfile.Parse("g.yaml", []byte(text), library.Elements())
	if err != nil {
		return w, bar, err
	}
	var list []plantfile.Assignment
	for _, s := range presets {
		a, err := plantfile.ParseAssignment(s)
		if err != nil {
			return w, bar, err
		}
		list = append(list, a)
	}
	d.Start(list)
	p, err := d.Load()
	if err != nil {
		return w, bar, err
	}
	values, err := assemble.StartOf(p)
	if err != nil {
		return w, bar, err
	}
	for _, v := range values {
		switch v.Name {
		case "motor.w":
			w[0] = v.Value
		case "out.w":
			w[1] = v.Value
		}
	}
	for i := range bar {
		bar[i] = p.Signals[i].Source.V[0] / 1e5
	}
	return w, bar, nil
}

func TestPresetsDetermineTheStartAndTheFileFillsWhatTheyLeaveOpen(t *testing.T) {
	for _, c := range []struct {
		presets string
		w, bar  [2]float64
	}{
		{"", [2]float64{100, 20}, [2]float64{7, 0}},
		{"gear=high", [2]float64{100, 50}, [2]float64{0, 12}},
		{"gear=low", [2]float64{100, 25}, [2]float64{10, 0}},
		{"v=18km/h", [2]float64{40, 10}, [2]float64{10, 0}},         // in the default gear
		{"gear=high v=5m/s", [2]float64{20, 10}, [2]float64{0, 12}}, // the order does not count
		{"n=3000rpm gear=high", [2]float64{314.159265358979, 157.0796326794897}, [2]float64{0, 12}},
	} {
		w, bar, err := startOf(gearedPlant, strings.Fields(c.presets)...)
		for i := range w {
			if err != nil || !scalar.EqualWithinRel(w[i], c.w[i], 1e-12) || !scalar.EqualWithinAbs(bar[i], c.bar[i], 1e-12) {
				t.Errorf("%s: speeds %v rad/s, pressures %v bar, error %v; want %v, %v", c.presets, w, bar, err, c.w, c.bar)
				break
			}
		}
	}
}

func TestWrongStartPresetsAreRefusedInOneLine(t *testing.T) {
	for _, c := range []struct{ old, new, presets, want string }{
		{"", "", "v=18", "g.yaml:6:3: model: start v=18: 18 needs a unit: 18 km/h?"},
		{"", "", "v=18kg", "start v=18kg: unit kg does not fit, km/h is wanted"},
		{"", "", "v=101km/h", "start v=101km/h: 101 km/h is outside 0 to 100 km/h"},
		{"", "", "v=NaN", `"NaN" is not a known parameter`},
		{"", "", "geer=low", `start geer=low: the plant has no start preset "geer" (did you mean gear?); it has v, n, gear`},
		{"", "", "gear=lo", `g.yaml:8:3: model: start gear=lo: gear has no choice "lo" (did you mean low?); it has low, high`},
		{"", "", "v=1km/h v=2km/h", "v is given twice"},
		{"", "", "v=18km/h n=3000rpm gear=high", `element "high": w_rel 0 rad/s (start gear=high) contradicts ` +
			`w_start 314.159265 rad/s of "motor" (start n=3000rpm) and w_start 10 rad/s of "out" (start v=18km/h), which make it`},
		{"out.w_start", "oout.w_start", "", `start: v: set: oout.w_start: the plant has no element "oout" (did you mean out?)`},
		{"out.w_start", "out.J", "", `"J" is not a start value of type inertia, which has w_start, phi_start`},
		{"v/0.5 m}", "v}", "", "unit m/s does not fit, rad/s is wanted"},
		{"v/0.5 m}", "w/0.5 m}", "", `"w" is not a known parameter`},
		{"locked: [low]", "locked: [lo]", "", `the plant has no friction element "lo" (did you mean low?)`},
		{"{low.pressure: 10}", "{lo.pressure: 10}", "", `the plant has no such input (did you mean low.pressure?)`},
		{"{low.pressure: 10}", "{low.pressure: 30}", "", "30 bar is outside 0 to 20 bar"},
		{"{motor.w_start: n}", "{out.w_start: n}", "v=18km/h n=1rpm", "start v=18km/h gives out.w_start, too"},
		{"min: 0, max: 100, set", "set", "", "start: v: a quantity needs min and max"},
		{"default: low", "default: medium", "v=18km/h", `gear has no choice "medium"`},
	} {
		text := strings.Replace(gearedPlant, c.old, c.new, 1)
		_, _, err := startOf(text, strings.Fields(c.presets)...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s -> %s, %q: error %v, want %q", c.old, c.new, c.presets, err, c.want)
		}
	}
}
