package brakes

import (
	"math"
	"slices"
	"testing"
)

// stored returns the names of the codes that the unit has stored.
func (g *escRig) stored() (list []string) {
	for _, c := range g.u.Law.(*esc).Memory.Stored() {
		list = append(list, c.Name())
	}
	return list
}

func TestEscFindsSensorsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(g *escRig)
		want  []string
	}{
		{"yaw rate", func(g *escRig) { g.bias[0] = 0.09 }, []string{"C0063-64"}},
		{"lateral acceleration", func(g *escRig) { g.bias[1] = 3 }, []string{"C0061-64"}},
		{"steering angle", func(g *escRig) { g.bias[2] = 0.3 }, []string{"C0051-64"}},
		{"a small bias of all", func(g *escRig) { g.bias = [3]float64{0.02, 0.5, 0.02} }, nil},
		{"front right wheel", func(g *escRig) { g.dead[1] = true }, []string{"C0040"}},
		{"EscDriver", func(g *escRig) { g.silent = idEscDriver }, []string{"U1102"}},
		{"EscWheels", func(g *escRig) { g.silent = idEscWheels }, []string{"U1100"}},
		{"checksums", func(g *escRig) { g.damaged = true }, []string{"U1401", "U1402", "U1403"}},
	} {
		g := newEscRig(t, 27, 0.9)
		for range 200 {
			g.cycle()
		}
		c.spoil(g)
		for range 160 {
			g.cycle()
		}
		if got := g.stored(); !slices.Equal(got, c.want) {
			t.Errorf("%s: codes %q, want %q\n%s", c.name, got, c.want, &g.log)
		}
		if g.mostBraked != [4]float64{} {
			t.Errorf("%s: pressures up to %v bar", c.name, g.mostBraked)
		}
	}
}

func TestEscStoresNoCodesInManoeuvres(t *testing.T) {
	for _, enabled := range []float64{0, 1} {
		for _, road := range []float64{0.3, 0.9} {
			g := newEscRig(t, 27, road)
			g.u.Law.(*esc).tune.enabled = enabled
			for k := range 900 {
				g.steer = sineWithDwell(float64(k)*5e-3, 2.3)
				g.cycle()
				if e := g.u.Law.(*esc); e.yawDoubt > 0 || e.doubtful {
					t.Fatalf("enabled %g, road %g, %g s: yaw control rests in a slide: yaw rate %.3f rad/s, by steering angle %.3f rad/s, lateral acceleration %.2f m/s2",
						enabled, road, float64(k)*5e-3, e.yaw, e.bySteer, e.ay)
				}
			}
			if list := g.stored(); list != nil {
				t.Errorf("enabled %g, road %g: codes %q of a car that slides\n%s", enabled, road, list, &g.log)
			}
		}
	}
	g := newEscRig(t, 27, 0.9)
	g.road[0], g.road[2], g.pedal = 0.1, 0.1, 120
	for range 600 {
		g.cycle()
	}
	if list := g.stored(); list != nil {
		t.Errorf("codes %q of split braking\n%s", list, &g.log)
	}
}

// The driver turns the steering wheel by 12 rad/s while frames are lost.
func TestEscTrustsASteeringAngleAfterLostFrames(t *testing.T) {
	g := newEscRig(t, 20, 0.9)
	for k := range 200 {
		if g.silent = 0; k >= 152 && k < 156 {
			g.silent = idEscDriver
		}
		g.steer = 0.06 * float64(min(max(k-150, 0), 10))
		g.cycle()
		if e := g.u.Law.(*esc); e.doubtful || e.jumps[2] > 0 {
			t.Fatalf("cycle %d: the steering angle is in doubt, level of jumps %d", k, e.jumps[2])
		}
	}
}

// The front left wheel has no speed: its pressure follows that of the front right wheel, and neither locks.
func TestEscBrakesAWheelWithoutASpeed(t *testing.T) {
	g := newEscRig(t, 27, 0.3)
	g.dead[0] = true
	for range 200 {
		g.cycle()
	}
	g.pedal = 120
	for k := range 300 {
		g.cycle()
		if e := g.u.Law.(*esc); g.v > 5 && (g.w[0]*escRadius < 0.5*g.v || k > 40 && !(e.bar[0] <= e.bar[1]+10)) {
			t.Fatalf("wheel at %g m/s of %g m/s, pressures %g and %g bar", g.w[0]*escRadius, g.v, e.bar[0], e.bar[1])
		}
	}
	if !(g.mostBraked[0] > 5) {
		t.Errorf("pressure up to %g bar", g.mostBraked[0])
	}
}

// The steering angle drifts while the car goes straight. The unit learns it as an offset, so that no brake acts, and stores
// a code before the drift is larger than what it can learn.
func TestEscLearnsASlowDriftOfTheSteeringAngle(t *testing.T) {
	for _, v := range []float64{12, 27, 40} {
		for _, rate := range []float64{0.008, -0.008} { // rad/s of the steering wheel
			g := newEscRig(t, v, 0.9)
			e := g.u.Law.(*esc)
			for range 200 {
				g.cycle()
			}
			for k := 0; k < 6000 && g.stored() == nil; k++ {
				g.bias[2] += rate * brakeCycle.Seconds()
				g.cycle()
				if lag := math.Abs(g.bias[2] - e.offset); math.Abs(e.offset) < escMostOffset && !(lag < 1.05*math.Abs(rate)*escOffsetTime) {
					t.Fatalf("%g m/s: offset of %.3f rad at a drift of %.3f rad", v, e.offset, g.bias[2])
				}
			}
			if got := g.stored(); !slices.Equal(got, []string{"C0051-28"}) || !(math.Abs(g.bias[2]) < escMostOffset+1.2*math.Abs(rate)*escOffsetTime) || g.mostBraked != [4]float64{} {
				t.Errorf("%g m/s: codes %q at a drift of %.3f rad, pressures up to %v bar", v, got, g.bias[2], g.mostBraked)
			}
		}
	}
}

// A faster drift leaves the offset behind: yaw control rests before it acts, and a code is stored.
func TestEscTurnsNoCarForAFastDriftOfTheSteeringAngle(t *testing.T) {
	for _, degrees := range []float64{0.8, 1.6, 1.9, 2.5, 4, -2.5} { // of the steering wheel, deg/s
		g := newEscRig(t, 27, 0.9)
		for range 200 {
			g.cycle()
		}
		for k := 0; k < 4000 && g.stored() == nil; k++ {
			g.bias[2] += degrees * math.Pi / 180 * brakeCycle.Seconds()
			if g.cycle(); g.mostBraked != [4]float64{} {
				t.Fatalf("%g deg/s: pressures up to %v bar at a drift of %.3f rad", degrees, g.mostBraked, g.bias[2])
			}
		}
		if g.stored() == nil {
			t.Errorf("%g deg/s: no code at a drift of %.3f rad", degrees, g.bias[2])
		}
	}
}

// A driver who holds a turn, or turns the wheel to and fro, teaches no offset.
func TestEscLearnsNoOffsetFromSteering(t *testing.T) {
	for name, steer := range map[string]func(t float64) float64{
		"turn":  func(t float64) float64 { return 0.3 * min(t, 1) },
		"weave": func(t float64) float64 { return 0.1 * math.Sin(2*t) },
	} {
		g := newEscRig(t, 25, 0.9)
		g.u.Law.(*esc).tune.stiffness = 0 // this car steers neutrally
		for k := range 4000 {
			g.steer = steer(float64(k) * 5e-3)
			g.cycle()
		}
		if e := g.u.Law.(*esc); !(math.Abs(e.offset) < 0.02) || g.stored() != nil {
			t.Errorf("%s: offset of %.3f rad, codes %q", name, e.offset, g.stored())
		}
	}
}

// A wheel without a speed shows none of the car: with an error of the acceleration, or on a road that begins to rise or to
// fall, the others do.
func TestEscBrakesWithAWrongAccelerationAndAWheelWithoutASpeed(t *testing.T) {
	for _, wheel := range []int{0, 3} {
		for _, bias := range []float64{-2, 2} {
			g := newEscRig(t, 27, 0.5)
			g.dead[wheel] = true
			e := g.u.Law.(*esc)
			for range 200 {
				g.cycle()
			}
			g.pedal, g.grade = 120, bias
			v := g.v
			for range 500 {
				if g.cycle(); !(math.Abs(e.v-g.v) < 2.5) {
					t.Fatalf("wheel %d, bias %g m/s2: %.1f m/s, estimated %.1f m/s", wheel, bias, g.v, e.v)
				}
			}
			if lost := v - g.v; !(lost > 0.8*0.5*gravity*2.5) {
				t.Errorf("wheel %d, bias %g m/s2: the car loses %.1f m/s in 2.5 s", wheel, bias, lost)
			}
		}
	}
}

// Behind the unit the rear sensors are on the wrong sides. In a turn the front wheels and the yaw rate tell it; both rear
// wheels then have the speed of the slower one, and the brakes still work.
func TestEscFindsSwappedRearWheels(t *testing.T) {
	g := newEscRig(t, 20, 0.9)
	g.swapped[1] = true
	e := g.u.Law.(*esc)
	for range 200 {
		g.cycle()
	}
	if got := g.stored(); got != nil {
		t.Errorf("codes %q straight ahead", got)
	}
	for k := range 240 {
		g.steer = 0.6 * min(float64(k)*5e-3/0.5, 1)
		g.cycle()
	}
	if got := g.stored(); !slices.Equal(got, []string{"C0045-76", "C0050-76"}) || g.mostBraked != [4]float64{} {
		t.Errorf("codes %q, pressures up to %v bar\n%s", got, g.mostBraked, &g.log)
	}
	if !e.swapped[1] || e.swapped[0] || e.speed[2] != e.speed[3] || !(math.Abs(e.speed[2]-g.w[2]*escRadius) < 0.02) || !(g.w[3] > g.w[2]) {
		t.Errorf("swapped %v, rear wheels at %g and %g m/s of %g and %g m/s", e.swapped, e.speed[2], e.speed[3], g.w[2]*escRadius, g.w[3]*escRadius)
	}
	g.pedal = 120
	before := g.v
	for range 200 {
		if g.cycle(); g.v > 5 && (g.w[2]*escRadius < 0.5*g.v || g.w[3]*escRadius < 0.5*g.v) {
			t.Fatalf("rear wheels at %g and %g m/s of %g m/s", g.w[2]*escRadius, g.w[3]*escRadius, g.v)
		}
	}
	if lost := before - g.v; !(lost > 5) {
		t.Errorf("the brakes take %g m/s in 1 s", lost)
	}
}

// In a left turn the lateral acceleration shows one to the right. Integrated, it would be a side slip against which the
// unit brakes; it is in doubt at once, before its code.
func TestEscSeesNoSideSlipInAWrongLateralAcceleration(t *testing.T) {
	g := newEscRig(t, 25, 1)
	e := g.u.Law.(*esc)
	for k := range 500 {
		g.steer = 0.2 * min(float64(k)*5e-3, 1)
		g.cycle()
	}
	side := e.side
	g.bias[1] = -7
	for range 160 {
		if g.cycle(); !e.wrongSide {
			t.Fatalf("a lateral acceleration of %g m/s2 at a yaw rate of %g rad/s is not in doubt", e.ay, e.yaw)
		}
	}
	if got := g.stored(); !slices.Equal(got, []string{"C0061-64"}) || g.mostBraked != [4]float64{} || !(math.Abs(e.side) <= math.Abs(side)) {
		t.Errorf("codes %q, pressures up to %v bar, side slip %.3f rad, before %.3f rad", got, g.mostBraked, e.side, side)
	}
}
