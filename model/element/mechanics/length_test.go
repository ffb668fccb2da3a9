package mechanics_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// Springs at the ends of masses, rods and discs have the deflection of the ends: with s the middle of a mass, the left end is
// at s - L/2 and the right one at s + L/2.
func TestLengthsOfMassesAndRodsCount(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
wall: {type: fixed, s0: 1 m}
left: {type: mass, m: 2 kg, L: 0.4 m, s_start: 2 m}
right: {type: mass, m: 3 kg, L: 0.6 m, s_start: 4 m}
mount: {type: spring_damper, a: wall, b: left.a, c: 100 N/m, d: 20 N.s/m, s_rel0: 0.5 m}
link: {type: rod, a: left.b, b: tip, L: 0.3 m}
spring: {type: spring, a: tip, b: right.a, c: 50 N/m, s_rel0: 0.7 m}
`, "mount: {s_rel: mount}\nspring: {s_rel: spring}\nf: {force: spring}\ntip: {position: tip}\nend: {position: right.b}\ns: {position: right}"), 5*time.Millisecond)
	b.Is("mount", 0.8, 1e-12)  // 2 - 0.2 - 1
	b.Is("spring", 1.2, 1e-12) // 4 - 0.3 - (2 + 0.2 + 0.3)
	b.Is("f", 50*0.5, 1e-10)   // c·(s_rel - s_rel0)
	b.Is("tip", 2.5, 1e-12)
	b.Is("end", 4.3, 1e-12)
	b.To(60, nil) // the springs come to rest unloaded
	b.Is("mount", 0.5, 1e-6)
	b.Is("spring", 0.7, 1e-6)
	b.Is("s", 1+0.5+0.4+0.3+0.7+0.3, 1e-6)
}

// Two bodies on a rod or a disc are one body, also where both have a start value.
func TestRodAndDiscJoinRigidly(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
one: {type: mass, m: 2 kg, s_start: 1 m}
two: {type: mass, m: 3 kg, s_start: 1.5 m}
bar: {type: rod, a: one, b: two, L: 0.5 m}
pull: {type: force, flange: two, f: 10 N}
x: {type: inertia, J: 2}
y: {type: inertia, J: 3}
coupling: {type: disc, a: x, b: y, deltaPhi: 30 deg}
push: {type: torque, flange: x, tau: 10 N.m}
`, "v: {speed: one}\ns: {position: two}\nbar: {force: bar, onto: one}\nw: {speed: y}\nx: {angle: x}\ny: {angle: y}\ntau: {torque: coupling, onto: y}"), 5*time.Millisecond)
	b.To(1, nil)
	b.Is("v", 2, 1e-12)
	b.Is("s", 2.5, 1e-12)
	b.Is("bar", 4, 1e-12)
	b.Is("w", 2, 1e-12)
	b.Is("tau", 6, 1e-12)
	b.Is("y", b.Get("x")+math.Pi/6, 1e-12)
}

// A mass with Coulomb friction between stops: it reaches the right stop, stays there until the pull overcomes the friction,
// and slides back. The Stribeck friction does not fall off here, as fexp is tiny.
func TestStoppedMassSticksAtItsStop(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
slide: {type: mass_with_stop_and_friction, m: 2 kg, L: 0.2 m, smin: -1 m, smax: 1.1 m, F_Coulomb: 3 N, F_Stribeck: 1 N, fexp: 1e-9, v_start: 4 m/s, heat_port: sump}
push: {type: force, flange: slide.a, f: {table: [[0, 0], [1, 0], [3, -10]]}}
sump: {type: heat_capacitor, C: 100 J/K, T_start: 300 K}
`, "s: {position: slide}\nright: {position: slide.b}\nv: {speed: slide}\nloss: {signal: slide.lossPower}\nT: {signal: sump}\nfriction: {force: slide}"), 5*time.Millisecond)
	hit := 2 - math.Sqrt(4-1) // 4·t - t² = 1
	b.To(hit-0.01, func(s float64) {
		b.Is("s", 4*s-s*s, 1e-9)
		b.Is("right", 0.1+4*s-s*s, 1e-9)
		b.Is("loss", 4*(4-2*s), 1e-9)
	})
	b.To(hit+0.01, nil)
	b.Is("v", 0, 1e-12)
	b.Is("s", 1, 1e-9)
	b.Is("T", 300+4*1./100, 1e-9) // the friction works over 1 m; the impact is not counted
	slips := 1 + 4*1.001/5
	b.To(slips-0.01, nil)
	b.Is("s", 1, 1e-9)
	b.To(2.5, nil) // m·v' = -5·(t - 1) + 4
	v := func(s float64) float64 { return (-2.5*(s-1)*(s-1) + 4*(s-1)) / 2 }
	b.Is("v", v(2.5)-v(slips), 1e-6)
	b.Is("friction", -4, 1e-6)
}

// Without friction the mass is one between two rigid stops.
func TestStoppedMassWithoutFrictionIsFree(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
slide: {type: mass_with_stop_and_friction, m: 2 kg, smin: 0, smax: 1, s_start: 0.5, v_start: 0.1, F_prop: 0.2}
`, "v: {speed: slide}\nf: {force: slide}"), 5*time.Millisecond)
	b.To(1, nil)
	b.Is("v", 0.1*math.Exp(-0.1), 1e-10)
	b.Is("f", 0.02*math.Exp(-0.1), 1e-10)
}

func TestBadLengthsAreRefused(t *testing.T) {
	const old = "  frame: {type: fixed}\n"
	for _, c := range [][2]string{
		{"slide: {type: mass_with_stop_and_friction, m: 1, L: 1 m, smin: 0, smax: «1 m»}", `element "slide": smax 1 m is not above smin 0 m by more than L 1 m; there is no play`},
		{"slide: {type: mass_with_stop_and_friction, m: 1, smin: 0, smax: 1 m, F_Stribeck: 1 N}", `13:3: model: element "slide": mass_with_stop_and_friction needs fexp (decay of the Stribeck friction, s/m)`},
		{"m: {type: mass, m: 1}\n  n: {type: mass, m: 1, L: «-1 m»}", `element "n": L -1 m is negative (length from the left end, NAME.a, to the right end, NAME.b)`},
		{"m: {type: mass, m: 1}\n  k: {type: spring, a: «m.b», b: m, c: 1}", `element "k": a: "m.b" is not a node (did you mean m?)`},
	} {
		modeltest.Refuse(t, modeltest.Train, old, old+"  "+c[0]+"\n", c[1])
	}
}
