package car_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// axles are the differentials that drive the car from the node shaft.
var axles = map[string]string{
	"front": "  axle_f: {type: differential, drive: shaft, left: w_fl, right: w_fr}\n",
	"rear":  "  axle_r: {type: differential, drive: shaft, left: w_rl, right: w_rr}\n",
	"all": `  centre: {type: ideal_planetary, carrier: shaft, sun: shaft_f, ring: shaft_r, ratio: 1.5}
  axle_f: {type: differential, drive: shaft_f, left: w_fl, right: w_fr}
  axle_r: {type: differential, drive: shaft_r, left: w_rl, right: w_rr}
`}

// driven returns a car whose axles get the torque of the input T from an engine on the body.
func driven(v float64, driven string, edits ...string) string {
	return plant(v, append([]string{
		"  slope: {", "  T: {unit: N.m, min: -10000, max: 10000}\n  slope: {",
		"  rack: {", "  engine: {type: torque, flange: shaft, support: car.pitch, tau: T}\n" + axles[driven] + "  rack: {"}, edits...)...)
}

// An open differential and a planetary centre differential give each wheel its share of the torque, also where a wheel
// spins on ice: 40 % to the front axle and 60 % to the rear, half to each side.
func TestDifferentialsSplitTheTorqueWhateverSpins(t *testing.T) {
	const torque = 900.0
	for layout, share := range map[string][4]float64{"front": {0.5, 0.5}, "rear": {2: 0.5, 3: 0.5}, "all": {0.2, 0.2, 0.3, 0.3}} {
		var outputs strings.Builder
		for i, w := range wheels {
			if share[i] > 0 {
				outputs.WriteString("\n  M_" + w + ": {torque: axle_" + w[:1] + ", onto: w_" + w + "}")
			}
		}
		b := modeltest.New(t, driven(10, layout, "outputs:", "outputs:"+outputs.String()), 5*time.Millisecond)
		b.Set("T", torque)
		for _, w := range []string{"fl", "rl"} {
			b.Set("mu_"+w, 0.1)
		}
		last := map[string]float64{}
		b.To(0.5, func(float64) {
			for i, w := range wheels {
				if share[i] == 0 {
					continue
				}
				if got := b.Get("M_" + w); !(math.Abs(got-share[i]*torque) <= 1e-9*torque) {
					t.Fatalf("%s: %g N.m at %s, want %g", layout, got, w, share[i]*torque)
				}
				last[w] = b.Get("w_" + w)
			}
		})
		spins := last["rl"]
		if share[2] == 0 {
			spins = last["fl"]
		}
		if !(spins*radius > 2*b.Get("u")) || !(b.Get("u") > 10.3) {
			t.Errorf("%s: the wheel on ice turns with %g rad/s at %g m/s", layout, spins, b.Get("u"))
		}
	}
}

// The work of the engine is the energy of the car and what tyres and dampers dissipate, with wheels that spin.
func TestEnergyOfADrivenCarCloses(t *testing.T) {
	for _, layout := range []string{"rear", "all"} {
		text := strings.Replace(withLosses(driven(8, layout)), "\noutputs:\n", `
  w_shaft: {type: speed_sensor, flange: shaft}
  turns: {type: sum, u: [w_shaft, p_pitch], k: [1, -1]}
  power: {type: product, u: [T, turns]}
  work: {type: integrator, u: power}
outputs:
  E_engine: {signal: work}
`, 1)
		b := modeltest.New(t, text, 5*time.Millisecond)
		first := energy(b)
		b.Set("mu_rl", 0.2)
		b.To(1, func(now float64) {
			b.Set("T", 1500*now)
			b.Set("steer", 0.04*math.Sin(5*now))
		})
		work := b.Get("E_engine")
		if e := math.Abs(energy(b) - first - work); !(e <= 1e-7*(first+work)) || !(work > 5e3) || !(b.Get("w_rl")*radius > 1.5*b.Get("u")) {
			t.Errorf("%s: %.3g J are missing of %.6g and %.6g J of the engine; wheel at %g rad/s", layout, e, first, work, b.Get("w_rl"))
		}
	}
}

// A driven car in a turn on roads that differ left and right is the mirror image of the car with left and right exchanged.
func TestMirroredDriveIsTheMirrorImage(t *testing.T) {
	for _, layout := range []string{"rear", "all"} {
		a, b := modeltest.New(t, driven(12, layout), 5*time.Millisecond), modeltest.New(t, driven(12, layout), 5*time.Millisecond)
		for i, w := range wheels {
			road := 0.5 - 0.3*float64(i%2)
			a.Set("mu_"+w, road)
			b.Set("mu_"+[]string{"fr", "fl", "rr", "rl"}[i], road)
		}
		a.To(0.8, func(now float64) {
			b.To(now, nil)
			steer := 0.05 * math.Sin(5*now)
			a.Set("steer", steer)
			b.Set("steer", -steer)
			a.Set("T", 1200*now)
			b.Set("T", 1200*now)
			for name, sign := range map[string]float64{"u": 1, "v": -1, "r": -1, "roll": -1, "pitch": 1, "psi": -1, "X": 1, "Y": -1} {
				x, y := a.Get(name), sign*b.Get(name)
				if !(math.Abs(x-y) <= 1e-11*(1+math.Abs(x))) {
					t.Fatalf("%s: %s is %.17g and mirrored %.17g at %g s", layout, name, x, y, now)
				}
			}
		})
		if !(math.Abs(a.Get("r")) > 0.01) {
			t.Errorf("%s: the car does not turn: %g rad/s", layout, a.Get("r"))
		}
	}
}

// Full power in a turn on ice: with driven rear wheels the car turns round, with driven front wheels it runs straight on,
// and with a drive of all wheels, which splits the same torque, it gains more speed than with either.
func TestPowerOnIceSpinsTheCarWithDrivenRearWheels(t *testing.T) {
	turned, speed := map[string]float64{}, map[string]float64{}
	for layout := range axles {
		b := modeltest.New(t, driven(8, layout), 5*time.Millisecond)
		for _, w := range wheels {
			b.Set("mu_"+w, 0.15)
		}
		b.Set("steer", 0.03)
		b.To(1, nil)
		b.Set("T", 700)
		b.To(4, nil)
		turned[layout], speed[layout] = b.Get("psi"), math.Hypot(b.Get("u"), b.Get("v"))
	}
	t.Logf("turned by %v rad, %v m/s", turned, speed)
	if !(turned["rear"] > 2) || !(turned["front"] < 0.8) || !(turned["all"] > turned["front"] && turned["all"] < turned["rear"]) {
		t.Errorf("turned by %v rad", turned)
	}
	if !(speed["all"] > speed["front"]+0.3) || !(speed["all"] > speed["rear"]+0.3) {
		t.Errorf("speeds %v m/s", speed)
	}
}
