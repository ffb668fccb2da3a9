package plants_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// wspAxles are the wheelsets of wsp-car and their positions, m from the middle.
var wspAxles = []struct {
	name string
	x    float64
}{{"bogie1.rear", -9.5 - 1.28}, {"bogie1.front", -9.5 + 1.28}, {"bogie2.rear", 9.5 - 1.28}, {"bogie2.front", 9.5 + 1.28}}

// wspBodies are its bodies in the plane: mass, moment of inertia and where they are, their
// height above the rail.
var wspBodies = []struct {
	name       string
	m, J, x, h float64
}{{"car", 32000, 1.6e6, 0, 0.46 + 0.25 + 0.35 + 1}, {"bogie1.frame", 3000, 2500, -9.5, 0.46 + 0.25}, {"bogie2.frame", 3000, 2500, 9.5, 0.46 + 0.25}}

// newWspCar returns wsp-car with all inputs driven, and all its accelerations as outputs.
func newWspCar(t *testing.T, period time.Duration) *car {
	t.Helper()
	data, err := plants.Read("wsp-car")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, b := range wspBodies {
		for _, c := range []string{"x", "y", "phi"} {
			text += fmt.Sprintf("  a_%s.%s: {acceleration: %s.%s}\n", b.name, c, b.name, c)
		}
	}
	for _, a := range wspAxles {
		text += strings.ReplaceAll(`  a_NAME.axle: {acceleration: NAME.axle}
  a_NAME.wheel: {acceleration: NAME.wheel}
  T_NAME.brake: {torque: NAME.brake}
`, "NAME", a.name)
	}
	p, err := plantfile.Load("wsp-car.yaml", []byte(text), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	return driven(t, sys, period)
}

// The forces of rail, air and track balance the motion of the bodies along, upwards and about the
// rail under the middle of the car, under random brakes and valves. The forces of the brakes,
// between bogies and wheels, cancel; with a wrong sign at one end they would not.
func TestWspCarKeepsMomentumOnEveryRail(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	c := newWspCar(t, 5*time.Millisecond)
	worst := [4]float64{}
	locked, slid := 0, 0
	for k := range 3000 {
		if k%40 == 0 {
			c.set("brake.demand", random.Float64()*6e5)
			c.set("track.friction", []float64{1, 0.6, 0.25}[random.IntN(3)])
			c.set("track.leaves", float64(random.IntN(2)))
			c.set("loco.force", []float64{0, 0, 60e3}[random.IntN(3)])
			for i := range wspAxles {
				c.set(fmt.Sprintf("axle%d.hold", i+1), float64(random.IntN(2)))
				c.set(fmt.Sprintf("axle%d.vent", i+1), float64(random.IntN(3)/2))
			}
		}
		c.step()
		off := wspBalance(c)
		for i := range worst {
			worst[i] = max(worst[i], math.Abs(off[i]))
			if math.IsNaN(off[i]) {
				t.Fatalf("no number at %g s", c.seconds())
			}
		}
		for i := range wspAxles {
			if math.Abs(c.get(fmt.Sprintf("w%d", i+1))) < 1e-3 {
				locked++
			} else if math.Abs(c.get(fmt.Sprintf("vs%d", i+1))) > 1e-3 {
				slid++
			}
		}
	}
	t.Logf("off by %.1e of the weight along, %.1e upwards, %.1e of its moment in pitch, wheels by %.1e; wheels near rest in %d ticks, sliding in %d", worst[0], worst[1], worst[2], worst[3], locked, slid)
	if !(max(worst[0], worst[1], worst[2], worst[3]) < 1e-9) || slid < 500 || locked < 50 {
		t.Error("forces and motion do not balance, or too few ticks slide or lock")
	}
}

// wspBalance returns the residuals of momentum along and upwards, of angular momentum, and of the
// worst wheelset, relative to the weight of 44 t and a lever of 1 m.
func wspBalance(c *car) (off [4]float64) {
	const weight, r = 44e3 * 9.81, 0.46
	along := c.get("Fair") + c.get("Fgrav") + c.u[c.port(c.tables.Inputs, "loco.force")]
	hook := wspBodies[0].h - 0.8
	upwards, pitch := -weight, 0.0
	pitch -= (c.get("Fair")+c.get("Fgrav"))*wspBodies[0].h + c.u[c.port(c.tables.Inputs, "loco.force")]*hook
	for i, a := range wspAxles {
		adhesion, fn := -c.get(fmt.Sprintf("Fadh%d", i+1)), c.get(fmt.Sprintf("FN%d", i+1))
		axle, wheel := c.get("a_"+a.name+".axle"), c.get("a_"+a.name+".wheel")
		along += adhesion - 1500*axle
		upwards += fn
		pitch += a.x*(fn-weight/4) + 1500*axle*r + 100*wheel
		off[3] = max(off[3], math.Abs(100*wheel+adhesion*r+c.get("T_"+a.name+".brake"))/weight)
	}
	for _, b := range wspBodies {
		x, y, phi := c.get("a_"+b.name+".x"), c.get("a_"+b.name+".y"), c.get("a_"+b.name+".phi")
		along -= b.m * x
		upwards -= b.m * y
		pitch -= b.J*phi + b.m*(b.x*y-b.h*x)
	}
	off[0], off[1], off[2] = along/weight, upwards/weight, pitch/weight
	return off
}
