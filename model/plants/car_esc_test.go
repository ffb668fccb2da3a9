package plants_test

import (
	"math"
	"testing"
	"time"
)

// The pump builds pressure in one circuit without the driver, up to the limit of the isolation valve; the brake
// of that wheel yaws the car to its side. With the valves without current the circuit empties again.
func TestTwelveValvesBrakeOneWheelWithoutTheDriver(t *testing.T) {
	c := driven(t, load(t, "car-esc"), 5*time.Millisecond)
	for _, name := range []string{"isolation_1", "suction_1", "pump", "rr.inlet"} {
		c.set(name, 1)
	}
	for c.seconds() < 0.25 {
		c.step()
	}
	if p := c.get("p_fl"); !(p > 20e5) || !(c.get("p_rr") < 1e5) || !(c.get("p_fr") == 0) || !(c.get("yaw_rate") > 0.01) {
		t.Errorf("%g Pa at fl, %g at rr, %g at fr; %g rad/s", p, c.get("p_rr"), c.get("p_fr"), c.get("yaw_rate"))
	}
	for c.seconds() < 0.8 {
		c.step()
	}
	if p := c.get("p_1"); !(math.Abs(p-155e5) < 10e5) {
		t.Errorf("the isolation valve limits to %g Pa, want 150 bar and a little", p)
	}
	for _, name := range []string{"isolation_1", "suction_1", "pump", "rr.inlet"} {
		c.set(name, 0)
	}
	for c.seconds() < 1.3 {
		c.step()
	}
	if p := c.get("p_fl"); !(p < 3e5) {
		t.Errorf("%g Pa stay at fl", p)
	}
}

// Full braking on split friction without a unit spins the car; on an even road it stays straight.
func TestSplitFrictionSpinsTheCarWithoutAUnit(t *testing.T) {
	for _, left := range []float64{0.1, 1} {
		c := driven(t, load(t, "car-esc"), 5*time.Millisecond)
		c.set("pedal", 60e5)
		c.set("road.fl", left)
		c.set("road.rl", left)
		for c.seconds() < 1.5 {
			c.step()
		}
		if psi := c.get("psi"); (psi < -0.5) != (left < 1) || left == 1 && !(math.Abs(psi) < 1e-9) {
			t.Errorf("road %g: turned by %g rad", left, psi)
		}
	}
}

// The engine stands on the body: what the drive takes from the front axle is the force on the road times the height of
// the centre of gravity over the wheelbase.
func TestDriveTakesLoadFromTheFrontAxle(t *testing.T) {
	c := driven(t, load(t, "car-esc"), 5*time.Millisecond)
	front := func() float64 { return c.get("Fz_fl") + c.get("Fz_fr") }
	static := 1500 * 9.81 * 1.5 / 2.7
	c.set("throttle", 0.6)
	for c.seconds() < 2 {
		c.step()
	}
	tilt := 170e3 / (170e3 - 1500*9.81*0.55) // the body leans back
	want := tilt * 0.55 / 2.7 * (c.get("Fx_fl") + c.get("Fx_fr") + c.get("Fx_rl") + c.get("Fx_rr"))
	if got := static - front(); !(math.Abs(got-want) < 0.03*want) || !(want > 200) {
		t.Errorf("the front axle loses %g N, want %g", got, want)
	}
}
