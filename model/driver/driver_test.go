package driver

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

const h = 0.005 // s

func newDriver(t *testing.T) *Driver {
	t.Helper()
	d, err := New(Default(h))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// steps makes n ticks with an input and returns the last output and the positions of the lever.
func (d *Driver) steps(n int, in Input) (out Output, levers string) {
	for range n {
		d.Step(&out, &in)
		if l := out.Lever.String(); !strings.HasSuffix(levers, l) {
			levers += l
		}
	}
	return out, levers
}

func TestLeverMovesThroughTheGateAtStandstill(t *testing.T) {
	d := newDriver(t)
	if out, _ := d.steps(1, Input{Parked: true}); out.Lever != Park || out.Brake != d.s.Hold || out.Accelerator != 0 {
		t.Errorf("start: %+v, want park and the brake", out)
	}
	if _, levers := d.steps(200, Input{}); levers != "PRND" {
		t.Errorf("start of the cycle: lever %s, want PRND", levers)
	}
	d.steps(10, Input{Target: 10, Ahead: 10, Speed: 5})
	if out, levers := d.steps(400, Input{Target: 10, Ahead: 10, Speed: 5, Parked: true}); levers != "D" || out.Accelerator == 0 {
		t.Errorf("parked at 5 m/s: lever %s, %+v; want D: the lever does not move while the car does", levers, out)
	}
	d = newDriver(t)
	d.steps(200, Input{})
	if _, levers := d.steps(200, Input{Ahead: -1}); levers != "NR" {
		t.Errorf("backwards: lever %s, want NR", levers)
	}
	if out, _ := d.steps(100, Input{Target: -2, Ahead: -2}); out.Accelerator == 0 || out.Brake != 0 {
		t.Errorf("backwards at standstill: %+v, want the accelerator", out)
	}
	if out, _ := d.steps(100, Input{Target: -2, Ahead: -2, Speed: -4}); out.Accelerator != 0 || out.Brake == 0 {
		t.Errorf("backwards, too fast: %+v, want the brake", out)
	}
	if _, levers := d.steps(400, Input{Parked: true}); levers != "RP" {
		t.Errorf("parked after driving backwards: lever %s, want RP", levers)
	}
}

// TestPedalsFollowTheClosedForm: at a constant target 1 m/s above the speed, the accelerator is
// (Proportional·1 + Integral·t)/Acceleration.
func TestPedalsFollowTheClosedForm(t *testing.T) {
	d := newDriver(t)
	d.steps(200, Input{})
	const n = 400
	out, _ := d.steps(n, Input{Target: 6, Ahead: 6, Speed: 5})
	if want := (d.s.Proportional + d.s.Integral*h*(n-1)) / d.s.Acceleration; !scalar.EqualWithinAbs(out.Accelerator, want, 1e-9) || out.Brake != 0 {
		t.Errorf("%+v, want accelerator %v", out, want)
	}
	d = newDriver(t)
	d.steps(200, Input{})
	d.steps(1, Input{Target: 6, Ahead: 6, Speed: 6})
	out, _ = d.steps(n, Input{Target: 6, Ahead: 6 - d.s.Preview*2, Speed: 6}) // a deceleration of 2 m/s²
	if want := 2 / d.s.Deceleration; !scalar.EqualWithinAbs(out.Brake, want, 1e-9) || out.Accelerator != 0 {
		t.Errorf("%+v, want brake %v", out, want)
	}
}

func TestPedalsStayInTheirRangeAndRate(t *testing.T) {
	d := newDriver(t)
	last := Output{Brake: d.s.Hold}
	for i := range 20000 {
		target := 60 * math.Sin(float64(i)*0.001)
		var out Output
		d.Step(&out, &Input{Target: target, Ahead: 60 * math.Sin(float64(i+80)*0.001), Speed: 30 * math.Sin(float64(i)*0.003)})
		for _, x := range [][2]float64{{out.Accelerator, last.Accelerator}, {out.Brake, last.Brake}} {
			if !(x[0] >= 0 && x[0] <= 1) || !(math.Abs(x[0]-x[1]) <= d.s.PedalRate*h+1e-12) {
				t.Fatalf("tick %d: %+v after %+v, want pedals from 0 to 1, moved by at most %v", i, out, last, d.s.PedalRate*h)
			}
		}
		last = out
	}
}

func TestNonFiniteInputMakesTheDriverBrake(t *testing.T) {
	for _, in := range []Input{{Target: 10, Ahead: 10, Speed: math.NaN()}, {Target: math.NaN(), Ahead: 10, Speed: 9}, {Target: 10, Ahead: math.Inf(1), Speed: 9}} {
		d := newDriver(t)
		d.steps(200, Input{})
		d.steps(200, Input{Target: 10, Ahead: 10, Speed: 5})
		if out, _ := d.steps(200, in); out.Accelerator != 0 || out.Brake != d.s.Hold || out.Lever != Drive {
			t.Errorf("%+v: %+v, want the brake in drive", in, out)
		}
		if out, _ := d.steps(200, Input{Target: 10, Ahead: 10, Speed: 5}); !(out.Accelerator > 0 && out.Accelerator <= 1) {
			t.Errorf("%+v: %+v afterwards, want the driver to go on", in, out)
		}
	}
}

func TestSettingsOutsideOfTheirRangeAreRefused(t *testing.T) {
	good := Default(h)
	for name, change := range map[string]func(*Settings){
		"period":       func(s *Settings) { s.Period = 0 },
		"preview":      func(s *Settings) { s.Preview = math.NaN() },
		"proportional": func(s *Settings) { s.Proportional = -1 },
		"integral":     func(s *Settings) { s.Integral = math.Inf(1) },
		"full acc":     func(s *Settings) { s.Acceleration = 0 },
		"speed from":   func(s *Settings) { s.Knee = 0 },
		"full brake":   func(s *Settings) { s.Deceleration = math.NaN() },
		"foot":         func(s *Settings) { s.FootChange = -1 },
		"rate":         func(s *Settings) { s.PedalRate = 0 },
		"standstill":   func(s *Settings) { s.Hold = 1.1 },
		"lever":        func(s *Settings) { s.LeverTime = -1 },
	} {
		s := good
		change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	d := newDriver(t)
	var out Output
	in := Input{Target: 10, Ahead: 10, Speed: 5}
	if n := testing.AllocsPerRun(1000, func() { d.Step(&out, &in) }); n != 0 {
		t.Errorf("Step allocates %v times, want 0", n)
	}
}
