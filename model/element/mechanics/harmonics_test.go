package mechanics_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/plantfile"
)

// Between two inertias the torque is tau·(1 + a·sin(n·phi) + ...). Its work is its integral over the
// relative angle, and the momentum is constant.
func TestHarmonicTorqueDoesTheWorkOfItsIntegral(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
crank: {type: inertia, J: 0.5, w_start: 20}
frame: {type: inertia, J: 3, w_start: -1}
push: {type: harmonic_torque, flange: crank, support: frame, tau: 10, orders: [[2, 1.8], [4, 0.7]], phi_rel_start: 0.3, w_max: 120}`,
		"w: {speed: crank}\nv: {speed: frame}\nphi: {phi_rel: push}\ntau: {torque: push}"), 5*time.Millisecond)
	energy := func(w, v float64) float64 { return 0.25*w*w + 1.5*v*v }
	work := func(phi float64) float64 { return 10 * (phi - 0.9*math.Cos(2*phi) - 0.175*math.Cos(4*phi)) }
	b.To(5, func(float64) {
		w, v, phi := b.Get("w"), b.Get("v"), b.Get("phi")
		if got, want := energy(w, v)-energy(20, -1), work(phi)-work(0.3); !(math.Abs(got-want) <= 1e-8*math.Abs(want)) {
			t.Fatalf("at %g rad the energy has grown by %.9g J, the torque has done %.9g J", phi, got, want)
		}
		b.Is("tau", 10*(1+1.8*math.Sin(2*phi)+0.7*math.Sin(4*phi)), 1e-9)
		if p := 0.5*w + 3*v; !(math.Abs(p-7) <= 1e-10) {
			t.Fatalf("momentum %.12g N·m·s, want 7", p)
		}
	})
	if phi := b.Get("phi"); !(phi > 200) {
		t.Errorf("it has turned by %g rad only", phi)
	}
}

// With angle: absolute the orders count the angle of the crank, though the torque acts back on a
// frame that turns.
func TestHarmonicTorqueCountsTheAbsoluteAngle(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
crank: {type: inertia, J: 0.5, w_start: 20, phi_start: 0.3}
frame: {type: inertia, J: 3, w_start: -1}
push: {type: harmonic_torque, flange: crank, support: frame, tau: 10, orders: [[2, 1.8], [4, 0.7]], angle: absolute, w_max: 120}`,
		"w: {speed: crank}\nv: {speed: frame}\nphi: {angle: crank}\nturned: {phi_rel: push}\ntau: {torque: push}"), 5*time.Millisecond)
	work := func(phi float64) float64 { return 10 * (phi - 0.9*math.Cos(2*phi) - 0.175*math.Cos(4*phi)) }
	b.To(5, func(float64) {
		w, v, phi := b.Get("w"), b.Get("v"), b.Get("phi")
		if got, want := 0.25*(w*w-400), work(phi)-work(0.3); !(math.Abs(got-want) <= 1e-8*math.Abs(want)) {
			t.Fatalf("at %g rad the energy of the crank has grown by %.9g J, the torque has done %.9g J", phi, got, want)
		}
		b.Is("tau", 10*(1+1.8*math.Sin(2*phi)+0.7*math.Sin(4*phi)), 1e-9)
		if p := 0.5*w + 3*v; !(math.Abs(p-7) <= 1e-10) {
			t.Fatalf("momentum %.12g N·m·s, want 7", p)
		}
	})
	if !(b.Get("phi") > 200) || !(b.Get("turned") > b.Get("phi")+20) {
		t.Errorf("the crank has turned by %g rad, against the frame by %g rad", b.Get("phi"), b.Get("turned"))
	}
}

func TestInvalidOrdersOfAHarmonicTorqueAreRefused(t *testing.T) {
	for orders, want := range map[string]string{
		"":                       "t.yaml:4:3: model: element \"push\": harmonic_torque needs orders",
		", orders: [[0, 1]]":     "order 0 is not positive",
		", orders: [[2]]":        "row of 1 values; 2 are wanted",
		", orders: [[2, fast]]":  "fast",
		", orders: [[2, 1 N.m]]": "push",
		", orders: [[2, 1]], angle: absolute, phi_rel_start: 1": "phi_rel_start goes with angle: relative",
	} {
		_, err := plantfile.Load("t.yaml", []byte(modeltest.PlantOf(`
crank: {type: inertia, J: 1}
push: {type: harmonic_torque, flange: crank, tau: 10`+orders+"}", "w: {speed: crank}")), library.Elements())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", orders, err, want)
		}
	}
}
