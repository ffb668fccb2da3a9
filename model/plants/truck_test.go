package plants_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/kernel"
	"lockstep/model/units"
)

// truck drives the truck by hand, every 10 ms.
type truck struct {
	t      *testing.T
	k      *kernel.Kernel
	tables *kernel.Tables
	u, y   []float64
}

// What the tests need of truck.yaml, SI.
const (
	truckM  = 12000.0
	truckG  = 9.81
	truckR  = 0.5
	truckCr = 0.007
	airK    = 0.5 * 1.2 * 0.6 * 8 // N·s²/m²
	jFront  = 20.0
	jWheel  = 15.0 // left, and right
	axleLd  = 36.8e3
	finalI  = 4.1
)

func newTruck(t *testing.T) *truck {
	t.Helper()
	sys := load(t, "truck")
	driven := make([]bool, len(sys.Inputs))
	for i := range driven {
		driven[i] = true
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 10 * time.Millisecond, Driven: driven})
	if err != nil {
		t.Fatal(err)
	}
	v := &truck{t: t, k: kernel.New(tables), tables: tables, u: slices.Clone(tables.Start), y: make([]float64, len(tables.Outputs))}
	v.set("throttle", 0)
	v.set("brake", 0)
	v.gear(1)
	return v
}

func (v *truck) set(input string, value float64) {
	v.t.Helper()
	i := slices.IndexFunc(v.tables.Inputs, func(p units.Port) bool { return p.Name == input })
	if i < 0 {
		v.t.Fatalf("no input %s", input)
	}
	v.u[i] = value
}

func (v *truck) get(output string) float64 {
	v.t.Helper()
	i := slices.IndexFunc(v.tables.Outputs, func(p units.Port) bool { return p.Name == output })
	if i < 0 {
		v.t.Fatalf("no output %s", output)
	}
	return v.y[i]
}

// gear sets the pressures of a gear, bar: the table in truck.yaml; 0 is neutral.
func (v *truck) gear(n int) {
	v.t.Helper()
	table := [][6]float64{{}, {8, 0, 0, 0, 18, 0}, {8, 0, 0, 9, 18, 0}, {8, 0, 9, 9, 0, 0}, {0, 6, 9, 9, 0, 0}}
	for i, name := range []string{"C1", "C2", "C3", "C4", "C5", "RC"} {
		v.set(name+".pressure", table[n][i]*1e5)
	}
}

// run drives for so many seconds.
func (v *truck) run(seconds float64) {
	for range int(math.Round(seconds * 100)) {
		v.k.Step(v.y, v.u)
	}
}

func (v *truck) near(output string, want, tolerance float64) {
	v.t.Helper()
	if got := v.get(output); !scalar.EqualWithinAbs(got, want, tolerance) {
		v.t.Errorf("%s is %.9g, want %.9g ± %g", output, got, want, tolerance)
	}
}

// The gear ratios follow from the tooth numbers: Otter, Schlegel, Elmqvist 1997.
func TestTruckHasFourGears(t *testing.T) {
	v := newTruck(t)
	v.set("throttle", 0.6)
	v.run(4)
	const k0, k1, k2 = 2.5713551041398817, 3, 1.6129032258064517
	for gear, want := range map[int]float64{1: 2.86, 2: 1.62, 3: 1, 4: k0 / (1 + k0)} {
		v.gear(gear)
		v.run(4)
		tolerance := 0.005 // the paper has two decimals
		if gear > 2 {
			tolerance = 1e-9
		}
		if got := v.get("w_turbine") / v.get("w_out"); !scalar.EqualWithinRel(got, want, tolerance) {
			t.Errorf("gear %d has ratio %.9g, want %.9g", gear, got, want)
		}
		v.near("w_out", finalI*v.get("v")/truckR, 1e-9)
	}
}

// A broken shaft transmits no torque of the engine: vehicle and wheels coast, and only air and tyres
// slow them down,
//
//	(m + J/R²)·v' = -k·v² - Cr·m·g, v = a·tan(atan(v0/a) - k·a·t/(m + J/R²)), a² = Cr·m·g/k
func TestTruckCoastsWithABrokenShaft(t *testing.T) {
	v := newTruck(t)
	v.set("throttle", 1)
	v.run(5)
	v0 := v.get("v")
	if !(v0 > 5) || !(v.get("T_shaft") > 1000) {
		t.Fatalf("after 5 s at full throttle: %g m/s, %g N·m in the shaft", v0, v.get("T_shaft"))
	}
	v.set("shaft_whole", 0)
	v.run(8)
	inertia := truckM + (jFront+2*jWheel+0.2*finalI*finalI)/(truckR*truckR) // the pinion's 0.2 kg·m² are still on the axle
	a := math.Sqrt(truckCr * truckM * truckG / airK)
	v.near("v", a*math.Tan(math.Atan(v0/a)-airK*a*8/inertia), 1e-6)
	v.near("T_shaft", 0, 0)
	v.near("w_pinion", finalI*v.get("v")/truckR, 1e-9)
	if !(v.get("w_engine") > 200 && v.get("w_out") > 1.2*v.get("w_pinion")) {
		t.Errorf("engine at %g rad/s, gearbox at %g before and %g rad/s behind the break", v.get("w_engine"), v.get("w_out"), v.get("w_pinion"))
	}
}

// With ice under the left wheel the differential gives both wheels the same torque. So the right
// wheel pushes only with the adhesion of the ice, and the left wheel spins up. With T, the torque of
// the shaft,
//
//	J·wl' = i·T/2 - mu·N·R (while its tread slides), F_right = mu·N + J/R·(wl' - wr')
//	(m + Jf/R²)·v' = F_left + F_right - k·v² - Cr·m·g
func TestTruckSpinsAWheelOnIce(t *testing.T) {
	v := newTruck(t)
	v.set("mu_left", 0.08)
	v.set("throttle", 0.5)
	v.run(2)
	const mu = 0.08
	left, right, speed := v.get("v_left"), v.get("v_right"), v.get("v")
	if !(left > 2*speed+1) || !scalar.EqualWithinAbs(right, speed, 1e-9) {
		t.Fatalf("treads at %g and %g m/s, vehicle at %g: the left one should spin, the right one stick", left, right, speed)
	}
	v.near("F_left", mu*axleLd, 1e-6) // forwards onto the car
	const h = 0.01
	v.run(h)
	leftRise, rightRise := (v.get("v_left")-left)/h/truckR, (v.get("v_right")-right)/h/truckR
	want := mu*axleLd + jWheel/truckR*(leftRise-rightRise)
	if got := v.get("F_right"); !scalar.EqualWithinRel(got, want, 1e-3) { // a difference over 10 ms
		t.Errorf("the right wheel pushes with %g N, want %g", got, want)
	}
	force := v.get("F_left") + v.get("F_right")
	v.near("a", (force-airK*v.get("v")*v.get("v")-truckCr*truckM*truckG)/(truckM+jFront/(truckR*truckR)), 1e-6)

	grip := newTruck(t)
	grip.set("throttle", 0.5)
	grip.run(2.01)
	if !(v.get("v") < 0.6*grip.get("v")) {
		t.Errorf("after 2 s on ice %g m/s, on a dry road %g", v.get("v"), grip.get("v"))
	}
}

// C5 does not open in a shift to third gear. C4 and C5 hold the gearbox in the ratio of second gear
// against C3 until the weakest clutch slips. The kinematics determine which members turn together.
func TestTruckTiesUpWhenAClutchDoesNotOpen(t *testing.T) {
	v := newTruck(t)
	v.set("throttle", 0.6)
	v.run(4)
	v.gear(2)
	v.run(3)
	v.gear(3)
	v.set("C5.pressure", 18e5) // does not open
	before := v.get("v")
	v.run(1)
	// C5 locks the large sun, and C3 and C4 lock the set as a block: the gearbox brakes the output
	// until the shaft is at rest or a clutch slips. C5 has 9 kN·m, C3 and C4 have 4.5 kN·m each on
	// their paths, so C3 or C4 slips.
	slips := 0
	for _, clutch := range []string{"C3.mode", "C4.mode", "C5.mode"} {
		if mode := v.get(clutch); mode != 0 {
			slips++
		}
	}
	if slips == 0 {
		t.Error("three clutches that exclude each other all hold")
	}
	if !(v.get("v") < before) {
		t.Errorf("a gearbox that fights itself: %g m/s before, %g after 1 s", before, v.get("v"))
	}

	fine := newTruck(t)
	fine.set("throttle", 0.6)
	fine.run(4)
	fine.gear(2)
	fine.run(3)
	fine.gear(3)
	fine.run(1)
	if !(fine.get("v") > before) || fine.get("C3.mode") != 0 {
		t.Errorf("with a clutch that opens: %g m/s before, %g after, C3 in mode %g", before, fine.get("v"), fine.get("C3.mode"))
	}
}

// With a leak a clutch has the capacity of its remaining pressure. A slipping C4 transmits
// mu·cgeo·area·p in second gear, 500 N·m per bar.
func TestTruckClutchSlipsWithALeak(t *testing.T) {
	v := newTruck(t)
	v.set("throttle", 1)
	v.run(4)
	v.gear(2)
	v.run(2)
	v.near("C4.mode", 0, 0)
	held := math.Abs(v.get("C4.tau"))
	leaked := 0.5 * held / 500 // bar
	v.set("C4.pressure", leaked*1e5)
	v.run(0.5)
	if v.get("C4.mode") == 0 || !scalar.EqualWithinRel(math.Abs(v.get("C4.tau")), 0.5*held, 1e-9) {
		t.Errorf("C4 held %g N·m; with %g bar it is in mode %g and carries %g", held, leaked, v.get("C4.mode"), v.get("C4.tau"))
	}
}
