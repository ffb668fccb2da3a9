package brakes

import (
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

// The front left wheel has no speed: its brake follows that of the front right wheel, and neither locks.
func TestEscBrakesAWheelWithoutASpeed(t *testing.T) {
	g := newEscRig(t, 27, 0.3)
	g.dead[0] = true
	for range 200 {
		g.cycle()
	}
	g.pedal = 120
	for range 300 {
		g.cycle()
		if e := g.u.Law.(*esc); g.v > 5 && (g.w[0]*escRadius < 0.5*g.v || e.inlet[0] != e.inlet[1]) {
			t.Fatalf("wheel at %g m/s of %g m/s, inlets %g and %g", g.w[0]*escRadius, g.v, e.inlet[0], e.inlet[1])
		}
	}
	if !(g.mostBraked[0] > 5) {
		t.Errorf("pressure up to %g bar", g.mostBraked[0])
	}
}
