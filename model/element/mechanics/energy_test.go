package mechanics_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// In a plant of masses, springs, play and friction the work of the source is what is stored, and what is lost.
func TestEnergiesOfAPlantAddUp(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
a: {type: inertia, J: 0.5, w_start: 8}
b: {type: inertia, J: 0.2}
c: {type: inertia, J: 0.3}
push: {type: torque, flange: a, tau: {sine: {amplitude: 20, f: 1.3 Hz}}}
shaft: {type: spring_damper, a: a, b: b, c: 300, d: 0.4}
play: {type: elasto_backlash, a: b, b: c, c: 400, d: 0.3, backlash: 0.05}
brake: {type: brake, flange: c, mu: 0.2, cgeo: 1, fn: 10}
oil: {type: damper, a: ground, b: b, d: 0.05}
back: {type: spring, a: ground, b: c, c: 20}
`, `work: {work: push}
"E.*": {energy: "*"}
"D.*": {dissipated: "*"}
stored: {sum: [{energy: a}, {energy: b}, {energy: c}, {energy: shaft}, {energy: play}, {energy: back}]}
lost: {sum: [{dissipated: shaft}, {dissipated: play}, {dissipated: brake}, {dissipated: oil}]}
tau: {torque: back}
brake.work: {work: brake}`), time.Millisecond)
	start := b.Get("stored")
	b.Is("stored", 0.25*64, 1e-12)
	largest := 0.0
	b.To(3, func(float64) {
		off := b.Get("work") - b.Get("lost") - (b.Get("stored") - start)
		largest = max(largest, math.Abs(off))
		tau := b.Get("tau")
		b.Is("E.back", tau*tau/40, 1e-9)
		b.Is("brake.work", b.Get("D.brake"), 1e-9)
	})
	if lost := b.Get("lost"); !(lost > 20 && largest < 1e-5*lost && b.Get("D.play") > 0.1) {
		t.Errorf("%g J of %g J are missing; the play lost %g J", largest, lost, b.Get("D.play"))
	}
}

// A body that a brake stops: the brake dissipates its energy.
func TestABrakeDissipatesTheEnergyOfItsBody(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
m: {type: mass, m: 2, v_start: 3}
shoe: {type: brake, flange: m, fn: 8}
`, "E: {energy: m}\nD: {dissipated: shoe, unit: kJ}"), 5*time.Millisecond)
	b.To(2, func(s float64) {
		v := max(0, 3-2*s)
		b.Is("E", v*v, 1e-10)
		b.Is("D", 9-v*v, 1e-9)
	})
}

// Without a backlash the element is a spring and damper, as in the Modelica library.
func TestBacklashOfZeroIsASpringDamper(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
a: {type: inertia, J: 1, w_start: 2}
b: {type: inertia, J: 1, w_start: 2}
k: {type: spring_damper, a: ground, b: a, c: 50, d: 1}
l: {type: elasto_backlash, a: ground, b: b, c: 50, d: 1}
`, "a: {speed: a}\nb: {speed: b}\nD: {dissipated: l}\nE: {dissipated: k}"), 5*time.Millisecond)
	b.To(1, nil)
	b.Is("b", b.Get("a"), 1e-12)
	b.Is("D", b.Get("E"), 1e-12)
}

func TestEnergyThatAnElementLacksIsRefused(t *testing.T) {
	for _, c := range [][2]string{
		{"{energy: «drive»}", `output "w": energy: type torque stores no energy to read; name an inertia, mass or spring`},
		{"{dissipated: «motor»}", `output "w": dissipated: type inertia has no lossPower; name a damper, clutch, brake or lossy gear`},
		{"{work: «pair»}", `output "w": work: type ideal_gear has no power to read`},
	} {
		modeltest.Refuse(t, modeltest.Train, "{speed: wheel}", c[0], c[1])
	}
	flywheel := strings.Replace(modeltest.Train, "  drag: {type: damper, a: frame, b: wheel, d: 0.01}",
		"  dmf: {type: dual_mass_flywheel, a: frame, b: wheel, J_primary: 0.1, J_secondary: 0.1, c: [300, 400], borders: [0.3]}", 1)
	modeltest.Refuse(t, flywheel, "{speed: wheel}", "{dissipated: «dmf»}",
		`output "w": dissipated: this dual_mass_flywheel has no friction or damping, and so no lossPower`)
}

// Springs and dampers with regions store and dissipate what their masses lose.
func TestEnergyOfSpringsWithRegionsAddsUp(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
m: {type: mass, m: 2, v_start: 5}
n: {type: mass, m: 1, v_start: -3}
k: {type: affine_spring, a: ground, b: m, c: [300, 0, 100, 900], borders: [-0.1, 0.05, 0.2], symmetric: false, offsets: [29, -1, -6, -166], s_rel0: 0.02, d: [1, 0, 2, 3]}
l: {type: affine_spring, a: m, b: n, c: [50, 400], borders: [0.1], hysteresis: 2}
d: {type: affine_damper, a: m, b: n, d: [2, 1], borders: [3]}
e: {type: deflection_damper, a: ground, b: n, d_delta: 4}
`, `"E.*": {energy: "*"}
"D.*": {dissipated: "*"}
all: {sum: [{energy: m}, {energy: n}, {energy: k}, {energy: l}, {dissipated: k}, {dissipated: l}, {dissipated: d}, {dissipated: e}]}
x: {s_rel: k}`), time.Millisecond)
	start := b.Get("all")
	regions := map[float64]bool{}
	b.To(2, func(float64) {
		b.Is("all", start, 1e-6)
		regions[b.Get("k.region")] = true
	})
	if !(len(regions) == 4 && b.Get("D.l") > 1 && b.Get("D.k") > 1 && b.Get("D.d") > 1 && b.Get("D.e") > 0.1) {
		t.Errorf("regions %v; dissipated %g, %g, %g and %g J", regions, b.Get("D.k"), b.Get("D.l"), b.Get("D.d"), b.Get("D.e"))
	}
}

// impactChain is a chain of bodies between stops, whose impacts pass through a gear, a closed stop and a freewheel.
func impactChain(w float64) string {
	return modeltest.PlantOf(fmt.Sprintf(`
ground: {type: fixed}
a: {type: inertia, J: 0.5, w_start: %g}
pair: {type: ideal_gear, a: a, b: side, ratio: 2}
b: {type: inertia, J: 0.2}
c: {type: inertia, J: 0.3, phi_start: 0.1}
d: {type: inertia, J: 0.1, phi_start: 0.1}
first: {type: clearance, a: side, b: b, phi_min: -0.3, phi_max: 0.2, restitution: 0.5}
second: {type: clearance, a: b, b: c, phi_min: 0, phi_max: 0.4, restitution: 0.3}
wall: {type: clearance, a: ground, b: c, phi_min: -1, phi_max: 1.5}
sprag: {type: freewheel, a: c, b: d}
back: {type: spring, a: ground, b: d, c: 4}
`, w), `"D.*": {dissipated: "*"}
E: {sum: [{energy: a}, {energy: b}, {energy: c}, {energy: d}, {energy: back}]}
all: {sum: [{energy: a}, {energy: b}, {energy: c}, {energy: d}, {energy: back}, {dissipated: first}, {dissipated: second},
  {dissipated: wall}, {dissipated: sprag}]}`)
}

// What the bodies of a chain lose in impacts is dissipated.
func TestImpactsDissipateTheEnergyThatBodiesLose(t *testing.T) {
	b := modeltest.New(t, impactChain(8), 5*time.Millisecond)
	start := b.Get("all")
	b.To(4, func(float64) { b.Is("all", start, 1e-11) })
	for _, name := range []string{"first", "second", "wall", "sprag"} {
		if d := b.Get("D." + name); !(d > 1e-3) {
			t.Errorf("%s dissipates %g J", name, d)
		}
	}
	b.Kernel.Reset()
	b.Kernel.Output(b.Y)
	b.Is("all", start, 0)
}

// Beyond the event budget of a tick a contact that would close is held, and a freewheel that has turned back is
// stopped. What that takes is dissipated, too.
func TestImpactsBeyondTheEventBudgetDissipateTheEnergyThatBodiesLose(t *testing.T) {
	for _, stepping := range []kernel.Stepping{kernel.Dense, kernel.Sparse} {
		b := modeltest.NewWith(t, impactChain(400), kernel.Options{Period: 20 * time.Millisecond, Stepping: stepping, EventBudget: 1})
		start := b.Get("all")
		b.To(1, func(at float64) {
			if e := b.Get("all"); !(math.Abs(e-start) <= 1e-11*start) {
				t.Fatalf("%s: %.15g J at %g s, want %.15g", stepping, e, at, start)
			}
		})
	}
}
