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
