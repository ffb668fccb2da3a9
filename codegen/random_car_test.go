package codegen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

// carFrom is the first seed of random cars: a planar body on two wheels with tyre or rail contact.
// A random gear drives one wheel.
const carFrom = 2000

// pick returns one of several texts.
func (c *chance) pick(list ...string) string { return list[c.IntN(len(list))] }

// contact adds the contact of a wheel at a node of the body. The motion may change its normal
// force.
func (c *chance) contact(i int, node string) {
	fn := "7 kN"
	if c.IntN(2) == 0 {
		fn = fmt.Sprintf("{sum: [7 kN, {product: [-%g, strut%d.f]}]}", c.between(0.05, 0.3), i)
	}
	law := c.pick(
		"type: tyre, mu: 0.8, peak: 1.1",
		"type: tyre, B: [[1000, 12], [9000, 9]], C: 1.5, D: [[0, 1.1], [9000, 0.9]], E: -0.3, S_v: 12, v_low: 2",
		"type: tyre, B: 10, C: 1.6, D: 1.1, E: 0.2, relaxation: 0.3",
		"type: rail_contact, law: gyebroszki, mu0: 0.35, A: 0.4, v_star: 1, T_sgn: 0.05, way: [[0, 1], [10, 0.4], [30, 0.8]]",
		"type: rail_contact, law: gyebroszki, mu0: 0.35, A: 0.4, v_star: 1, peak: 1.2",
		"type: rail_contact, law: curtius_kniffler",
		"type: rail_contact, law: polach, mu0: 0.4, A: 0.4, B: 0.6, C: 1e11, a_ellipse: 0.006, b_ellipse: 0.004",
	)
	c.elements = append(c.elements, fmt.Sprintf("  road%d: {%s, friction: road, a: W%d, b: %s.x, radius: 0.3, fn: %s}", i, law, i, node, fn))
}

// drive adds the elements between the shaft P and the wheel W0, and the source of torque.
func (c *chance) drive() {
	switch c.IntN(4) {
	case 0:
		c.add("{type: lossy_gear, a: P, b: mid, ratio: 3.1, lossTable: [[0, 0.93, 0.9, 0.5, 0.6], [100, 0.95, 0.93, 1.0, 1.1]]}")
	case 1:
		c.add("{type: ideal_planetary, sun: P, carrier: mid, ring: R, ratio: 2.2}")
		c.elements = append(c.elements, "  R: {type: inertia, J: 0.2}")
		c.add("{type: brake, flange: R, mu: 0.4, cgeo: 2, fn: %s}", c.input())
	case 2:
		c.add("{type: torque_converter, impeller: P, turbine: T, lambda: [[0, 0.002], [0.9, 0.001], [1, 0]], ratio: [[0, 2], [0.85, 1], [1, 1]], w_max: 900}")
		c.elements = append(c.elements, "  T: {type: inertia, J: 0.1, w_start: 50}")
		c.add("{type: ideal_gear, a: T, b: mid, ratio: 2.7}")
	default:
		c.add("{type: clutch, a: P, b: T, mu_pos: [[0, 0.4], [10, 0.35]], cgeo: 3, peak: 1.1, fn: %s}", c.input())
		c.elements = append(c.elements, "  T: {type: inertia, J: 0.1, w_start: 50}")
		c.add("{type: freewheel, a: ground, b: T}")
		c.add("{type: ideal_gear, a: T, b: mid, ratio: 1.9}")
	}
	c.add("{type: affine_spring, a: mid, b: W0, borders: [0.02], c: [%g, 900], hysteresis: %g, d: 4}", c.between(100, 400), c.between(0, 2))
	if c.IntN(2) == 0 {
		c.add("{type: engine, flange: P, map: {w: [0, 100, 400], throttle: [0, 1], tau: [[0, 90], [-5, 150], [-20, 20]]}, throttle: gas, lag: %g}", c.between(0, 0.1))
	} else {
		c.add("{type: torque, flange: P, tau: {product: [80 N.m, gas]}}")
	}
}

// randomCar returns the random car of a seed.
func randomCar(t testing.TB, seed uint64) subject {
	c := &chance{Rand: rand.New(rand.NewPCG(seed, 11))}
	c.elements = append(c.elements, "  P: {type: inertia, J: 0.2, w_start: 90}",
		"  car: {type: body, dof: [x, y, phi], m: 900, J: 500, nodes: {n0: [1.2, -0.4], n1: [-1.2, -0.4]}, v_x_start: 18}")
	for i := range 2 {
		node := fmt.Sprintf("car.n%d", i)
		c.elements = append(c.elements, fmt.Sprintf("  W%d: {type: inertia, J: %g, w_start: %g}", i, c.between(0.8, 2), c.between(50, 65)),
			fmt.Sprintf("  strut%d: {type: spring_damper, a: floor, b: %s.y, c: 5e4, d: %g}", i, node, c.between(500, 4000)),
			fmt.Sprintf("  brake%d: {type: brake, flange: W%d, mu: 0.4, cgeo: 10, fn: %s}", i, i, c.input()))
		c.contact(i, node)
	}
	c.drive()
	text := "plant: car\ninputs:\n  gas: {unit: \"%\", min: 0, max: 100, delay: 8 ms}\n  road: {unit: \"1\", min: 0.1, max: 1, default: 0.8}\n" + strings.Join(c.inputs, "\n") +
		"\nelements:\n  ground: {type: fixed}\n  floor: {type: fixed}\n" + strings.Join(c.elements, "\n") + "\noutputs:\n  teeth: {pulses: W0, teeth: 48, runout: 0.1}\n  pitch: {speed: car.phi}\n"
	if c.IntN(3) == 0 {
		text += c.pick("partition: {N_sub: 4, N_iter: 0}\n", "partition: {N_sub: 2, N_iter: 2}\n")
	}
	p, err := plantfile.Load("car.yaml", []byte(text), library.Elements())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return assembled(t, fmt.Sprintf("random:%d", seed), p, func(sys *model.System, opt *kernel.Options) {
		opt.Period = time.Duration(1+c.IntN(6)) * time.Millisecond
		if sys.Partition == nil {
			opt.Scheme = kernel.Scheme(c.pick("", "", string(kernel.Papers)))
			opt.Stepping = kernel.Stepping(c.pick("", "", string(kernel.Sparse)))
		}
	})
}
