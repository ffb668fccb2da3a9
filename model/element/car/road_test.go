package car_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// held returns what holds a linear bicycle on its course against a small force to the left, N, at x in front of the centre
// of gravity: the angle of the front wheels and the speed to the left at 1 m/s. Both axles balance the force and its moment.
func held(force, x, Cf, Cr float64) (delta, aside float64) {
	length := front + rear
	aside = force * (front - x) / (length * Cr)
	return aside - force*(rear+x)/(length*Cf), aside
}

// Under a cross wind the car drifts straight on with the side slip and the steering angle of the linear bicycle under a
// lateral force. Without that angle it turns.
func TestCrossWindIsBalancedAsByTheLinearBicycle(t *testing.T) {
	const V, wind, area, x, rho = 25.0, 2.0, 2.0, 0.3, 1.2
	Cf, Cr, _ := bicycle()
	force := rho / 2 * area * math.Hypot(V, wind) * wind
	delta, aside := held(force, x, Cf, Cr)
	text := plant(V, append(linear, "c_pitch:", "A_side: 2 m2, x_side: 0.3 m, wind_Y: 2 m/s, c_pitch:")...)
	run := func(steer float64) *modeltest.Bench {
		b := modeltest.New(t, text, 5*time.Millisecond)
		b.Set("steer", steer)
		b.To(2, nil)
		return b
	}
	b, free := run(delta), run(0)
	if got := b.Get("v"); !(math.Abs(got-V*aside) <= 2e-3*V*aside) {
		t.Errorf("moves aside in the car's axes at %g m/s, want %g", got, V*aside)
	}
	if held, turned := b.Get("r"), free.Get("r"); !(math.Abs(held) <= 5e-3*math.Abs(turned)) || !(math.Abs(turned) > 5e-4) {
		t.Errorf("turns with %g rad/s, and with %g without steering", held, turned)
	}
	if got := b.Get("fy_fl") + b.Get("fy_fr") + b.Get("fy_rl") + b.Get("fy_rr"); !(math.Abs(got+force) <= 2e-3*force) {
		t.Errorf("the tyres hold %g N, want %g", got, -force)
	}
}

// On a road that rises to the left the weight pulls to the right. The car keeps its course with the angle of the linear
// bicycle, and its sensor reads the weight across; at rest the treads hold it.
func TestBankIsBalancedAsByTheLinearBicycle(t *testing.T) {
	const V, bank = 25.0, 2e-3
	pull := -mass * gravity * math.Sin(bank)
	Cf, Cr, _ := bicycle()
	delta, aside := held(pull, 0, Cf, Cr)
	for _, v := range []float64{V, 0} {
		tread := "damping: 0"
		if v == 0 {
			tread = "damping: 0.05"
		}
		b := modeltest.New(t, plant(v, append([]string{"slope: slope,", "slope: slope, bank: 2e-3,", "damping: 0.005", tread}, linear...)...), 5*time.Millisecond)
		if v > 0 {
			b.Set("steer", delta)
		}
		b.To(2.5, nil)
		hold, speed := 0.0, b.Get("v")
		for _, w := range wheels {
			hold += b.Get("fy_" + w)
		}
		if v > 0 && (!(math.Abs(speed-V*aside) <= 2e-3*V*math.Abs(aside)) || !(math.Abs(b.Get("r")) <= 1e-6)) || v == 0 && !(math.Abs(speed) <= 1e-3) {
			t.Errorf("%g m/s: aside at %g m/s, want %g; turns with %g rad/s", v, speed, v*aside, b.Get("r"))
		}
		if !(math.Abs(hold+pull) <= 2e-2*math.Abs(pull)) || !(math.Abs(b.Get("a_y")-gravity*math.Sin(bank)) <= 2e-2*gravity*bank) {
			t.Errorf("%g m/s: the tyres hold %g N, want %g; the sensor reads %g m/s2", v, hold, -pull, b.Get("a_y"))
		}
	}
}

// A car that coasts up a slope slows down by its weight along it; the wheels add their inertia. The road carries less.
func TestCoastingCarSlowsDownOnASlope(t *testing.T) {
	const slope, V = 0.1, 20.0
	b := modeltest.New(t, plant(V), 5*time.Millisecond)
	b.Set("slope", slope)
	b.To(2, nil)
	want := V - 2*mass*gravity*math.Sin(slope)/(mass+4*jWheel/(radius*radius))
	if got := b.Get("u"); !(math.Abs(got-want) <= 2e-3*(V-want)) {
		t.Errorf("%g m/s after 2 s, want %g", got, want)
	}
	load := b.Get("fn_fl") + b.Get("fn_fr") + b.Get("fn_rl") + b.Get("fn_rr")
	if want := mass * gravity * math.Cos(slope); !(math.Abs(load-want) <= 1e-9*want) {
		t.Errorf("the road carries %g N, want %g", load, want)
	}
}

// A soft steering adds compliance times trail times the load of the front axle over g to the understeer gradient.
func TestSteeringComplianceAddsToTheUndersteerGradient(t *testing.T) {
	const delta, V, soft, trail = 1e-4, 25.0, 5e-5, 0.025
	_, _, gradient := bicycle()
	length := front + rear
	want := gradient + soft*trail*mass*rear/length
	b := modeltest.New(t, plant(V, append([]string{"angle: steer}",
		"angle: steer, ackermann: 0, compliance: 5e-5, torque: {sum: [{product: [-25 mm, fl.f_y]}, {product: [-25 mm, fr.f_y]}]}}"}, linear...)...), 5*time.Millisecond)
	b.Set("steer", delta)
	b.To(5, nil)
	r, u := b.Get("r"), b.Get("u")
	if got := (delta - length*r/u) / (r * u); !(math.Abs(got-want) <= 1e-5*want) || !(want > 1.5*gradient) {
		t.Errorf("understeer gradient %.9g rad.s2/m, want %.9g; a stiff steering has %.9g", got, want, gradient)
	}
}
