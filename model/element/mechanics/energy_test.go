package mechanics_test

import (
	"math"
	"testing"
	"time"

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
}
