package plantfile_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/plantfile"
	"lockstep/model/units"
)

const declared = `plant: declared
inputs:
  p: {unit: bar, min: 0, max: 40, default: 5}
  air: {unit: degC, min: -40, max: 60, default: {sine: {amplitude: 10, f: 1 Hz, offset: 20}}}
  n: {unit: "1", default: 0}
  idle: {unit: degC}
assemblies:
  half:
    flanges: [axle]
    signals: [p]
    elements:
      rim: {type: inertia, J: 1, w_start: 3000 rpm}
      brake: {type: brake, flange: rim, mu: 0.1, cgeo: 1, area: 1 cm2, pressure: p}
      flex: {type: spring_damper, a: axle, b: rim, c: 100, d: 1}
elements:
  rail: {type: fixed}
  left: {type: half, axle: rail, p: p}
  wheel: {type: inertia, J: 1}
  drag: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: 1}
outputs:
  n_rim: {speed: left.rim, unit: rpm, min: -9000, max: 9000}
  w_rim: {speed: left.rim, min: -1000 rpm, max: 0}
  load: {torque: left.flex, per: 400 N.m, unit: "%", max: 150}
  air_now: {signal: air, min: -40 degC}
  air_K: {signal: air, unit: K}
  twice: {signal: air, factor: 2}
  warmer: {signal: air, offset: 5 K}
  p_now: {signal: p, max: 300 kPa}
  p_share: {signal: p, per: 40 bar}
  n_now: {signal: n}
  idle_now: {signal: idle}
`

func TestAFlagIsAnInputFrom0To1(t *testing.T) {
	text := func(input string) string {
		return "plant: p\ninputs: {on: {" + input + "}}\nelements: {J: {type: inertia, J: 1}}\noutputs: {seen: {signal: on}}\n"
	}
	if in := modeltest.System(t, text("unit: 1, flag: true")).Inputs[0]; !in.Flag || in.Min != 0 || in.Max != 1 {
		t.Errorf("%+v", in)
	}
	for _, input := range []string{"unit: 1, flag: true, max: 1", "unit: rpm, flag: true"} {
		_, err := plantfile.Load("t.yaml", []byte(text(input)), library.Elements())
		if err == nil || !strings.Contains(err.Error(), "a flag is 0 or 1: omit min and max, and write unit: 1") {
			t.Errorf("%s: error %v", input, err)
		}
	}
}

// The declared unit goes with each port to the tables, also of a plant in parts. Ranges, defaults and
// values are SI. An output that reads an input has the unit of the input.
func TestPortsKnowTheirDeclaredUnit(t *testing.T) {
	inf := math.Inf(1)
	for _, part := range []string{"", "partition: {N_sub: 2}\n"} {
		tables, err := kernel.Prepare(modeltest.System(t, declared+part), kernel.Options{Period: 5 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []units.Port{
			{Name: "p", Unit: "Pa", Declared: "bar", Min: 0, Max: 40e5},
			{Name: "air", Unit: "K", Declared: "degC", Min: 233.15, Max: 333.15},
			{Name: "n", Unit: "1", Min: -inf, Max: inf},
			{Name: "n_rim", Unit: "rad/s", Declared: "rpm", Min: -300 * math.Pi, Max: 300 * math.Pi},
			{Name: "w_rim", Unit: "rad/s", Min: -100 * math.Pi / 3, Max: 0},
			{Name: "load", Unit: "1", Declared: "%", Min: -inf, Max: 1.5},
			{Name: "air_now", Unit: "K", Declared: "degC", Min: 233.15, Max: inf},
			{Name: "air_K", Unit: "K", Min: -inf, Max: inf},
			{Name: "warmer", Unit: "K", Declared: "degC", Min: -inf, Max: inf},
			{Name: "twice", Unit: "K", Min: -inf, Max: inf},
			{Name: "p_now", Unit: "Pa", Declared: "bar", Min: -inf, Max: 3e5},
			{Name: "p_share", Unit: "1", Min: -inf, Max: inf},
			{Name: "n_now", Unit: "1", Min: -inf, Max: inf},
			{Name: "left.brake.w_rel", Unit: "rad/s", Min: -inf, Max: inf},
		} {
			found := false
			for _, p := range append(tables.Inputs, tables.Outputs...) {
				if p.Name == want.Name {
					found = true
					if p.Unit != want.Unit || p.Declared != want.Declared || !near(p.Min, want.Min) || !near(p.Max, want.Max) {
						t.Errorf("%q: %+v; want %+v", part, p, want)
					}
				}
			}
			if !found {
				t.Errorf("%q: no port %s", part, want.Name)
			}
		}
	}
}

// The sine of an input in degC swings by 10 K around 20 degC; without a default the input is 0 degC.
func TestAWaveformInDegCHasTheZeroPointOfItsUnit(t *testing.T) {
	tables, err := kernel.Prepare(modeltest.System(t, declared), kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	k, y := kernel.New(tables), make([]float64, len(tables.Outputs))
	for range 50 { // a quarter of the period of the sine
		k.Step(y, make([]float64, len(tables.Inputs)))
	}
	for i, p := range tables.Outputs {
		if p.Name == "air_now" && !(math.Abs(y[i]-303.15) <= 1e-9) {
			t.Errorf("air is %v K after 0.25 s; want 303.15", y[i])
		}
		if p.Name == "idle_now" && !(math.Abs(y[i]-273.15) <= 1e-9) {
			t.Errorf("an input in degC without a default is %v K; want 273.15", y[i])
		}
	}
}

// An output is factor times its entry plus offset, a share of that with per, and a sum adds such entries.
func TestOutputsHaveOffsetsAndSums(t *testing.T) {
	b := modeltest.New(t, `plant: sums
elements:
  crank: {type: inertia, J: 1, w_start: 20, phi_start: 3}
  load: {type: inertia, J: 1, w_start: -5}
  flex: {type: spring_damper, a: crank, b: load, c: 100, d: 1, phi_rel_start: 0.25}
outputs:
  w: {speed: crank}
  v: {speed: load}
  phi: {angle: crank}
  T: {torque: flex}
  shifted: {angle: crank, factor: 2, offset: -6 rad}
  share: {torque: flex, offset: 50 N.m, per: 200 N.m}
  slip: {sum: [{speed: crank}, {speed: load, factor: -2.5, offset: 1 rad/s}], factor: 3, offset: 30 rpm, unit: rpm}
  both: {sum: [{torque: flex, onto: crank}, {torque: load}]}
`, 5*time.Millisecond)
	check := func(float64) {
		b.Is("shifted", 2*b.Get("phi")-6, 1e-12)
		b.Is("share", (b.Get("T")+50)/200, 1e-12)
		b.Is("slip", 3*(b.Get("w")-2.5*b.Get("v")+1)+math.Pi, 1e-12)
		b.Is("both", 0, 1e-9) // the spring is all that accelerates the load
	}
	check(0)
	b.To(0.5, check)
	if !(math.Abs(b.Get("slip")) > 1) {
		t.Errorf("slip is %g rad/s", b.Get("slip"))
	}
}

// An offset is a difference in the unit of the input that the output reads.
func TestTheOffsetOfAnOutputIsADifference(t *testing.T) {
	for offset, want := range map[string]string{
		"5 degC": "a difference of temperatures cannot be in degC; write it in K", "5": "offset: 5 needs a unit: 5 K?",
	} {
		if err := modeltest.Check(strings.Replace(declared, "offset: 5 K", "offset: "+offset, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("offset: %s: %v; want %q", offset, err, want)
		}
	}
}

func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-12*math.Abs(b) }
