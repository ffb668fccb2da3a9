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

// chance chooses the elements of a random plant.
type chance struct {
	*rand.Rand
	elements, inputs []string
}

func (c *chance) between(lo, hi float64) float64 { return lo + (hi-lo)*c.Float64() }

func (c *chance) add(format string, args ...any) {
	c.elements = append(c.elements, fmt.Sprintf("  e%d: ", len(c.elements))+fmt.Sprintf(format, args...))
}

// input adds an input that is a capacity and returns its name.
func (c *chance) input() string {
	name := fmt.Sprintf("c%d", len(c.inputs))
	text := fmt.Sprintf("  %s: {unit: N, min: -30, max: 60", name)
	if c.IntN(4) == 0 {
		text += ", delay: 13 ms, default: {product: [{sine: {amplitude: 24, f: 1.3 Hz, offset: 15}}, " +
			"{exp_sine: {amplitude: 0.3, f: 0.4 Hz, damping: 0.2 1/s, offset: 1}}]}"
	}
	c.inputs = append(c.inputs, text+"}")
	return name
}

// joins adds an element between two flanges.
func (c *chance) joins(a, b string) {
	ends := fmt.Sprintf("a: %s, b: %s", a, b)
	switch c.IntN(10) {
	case 0:
		c.add("{type: spring_damper, %s, c: %g, d: %g}", ends, c.between(50, 3000), c.between(0.1, 1))
	case 1:
		c.add("{type: freewheel, %s}", ends)
	case 2:
		c.add("{type: affine_spring, %s, borders: [0.01], c: [%g N.m/rad, %g N.m/rad]}", ends, c.between(0, 50), c.between(200, 2000))
	case 4:
		c.add("{type: elasto_backlash2, %s, c: %g N.m/rad, d: 0.1, backlash: 0.02}", ends, c.between(50, 900))
	case 7:
		c.add("{type: elasto_backlash, %s, c: %g N.m/rad, d: 0.1, backlash: 0.02}", ends, c.between(50, 900))
	case 5:
		c.add("{type: clearance, %s, phi_min: -0.1, phi_max: 0.2, restitution: %g}", ends, c.between(0, 0.8))
	case 3:
		c.add("{type: damper, %s, d: %g}", ends, c.between(0.01, 1))
	default:
		c.add("{type: clutch, %s, mu: 1, cgeo: 1, peak: %g, fn: %s}", ends, c.between(1, 1.4), c.input())
	}
}

// manyFrom is the first seed of random plants with about 20 friction elements.
const manyFrom = 1000

// randomPlant returns the random plant of a seed: a chain of bodies with more elements between
// them, brakes and torques.
func randomPlant(t testing.TB, seed uint64) subject {
	if seed >= carFrom {
		return randomCar(t, seed)
	}
	c := &chance{Rand: rand.New(rand.NewPCG(seed, 7))}
	bodies, more := 2+c.IntN(4), 1+c.IntN(4)
	if seed >= manyFrom {
		bodies, more = 9+c.IntN(4), 12+c.IntN(8)
	}
	for i := range bodies {
		c.elements = append(c.elements, fmt.Sprintf("  J%d: {type: inertia, J: %g, w_start: %g}", i, c.between(0.1, 2), c.between(-10, 10)))
		if i > 0 {
			c.joins(fmt.Sprintf("J%d", c.IntN(i)), fmt.Sprintf("J%d", i))
		}
	}
	for range more {
		switch at := c.IntN(bodies); c.IntN(3) {
		case 0:
			c.joins(fmt.Sprintf("J%d", at), fmt.Sprintf("J%d", (at+1)%bodies))
		case 1:
			c.add("{type: brake, flange: J%d, mu: 1, cgeo: 1, fn: %s}", at, c.input())
		default:
			c.add("{type: torque, flange: J%d, tau: {table: [[0, %g], [%g, %g], [3, %g]]}}", at, c.between(-9, 9), c.between(0.1, 2), c.between(-20, 20), c.between(-9, 9))
		}
	}
	text := "plant: random\n"
	if len(c.inputs) > 0 {
		text += "inputs:\n" + strings.Join(c.inputs, "\n") + "\n"
	}
	text += "elements:\n  ground: {type: fixed}\n" + strings.Join(c.elements, "\n") + "\n"
	if c.IntN(2) == 0 {
		text += "outputs:\n  angle: {pulses: J0, teeth: 20}\n"
	}
	p, err := plantfile.Load("random.yaml", []byte(text), library.Elements())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return assembled(t, fmt.Sprintf("random:%d", seed), p, func(_ *model.System, opt *kernel.Options) {
		opt.Period, opt.Memory = time.Duration(1+c.IntN(9))*time.Millisecond, c.IntN(2)
		if c.IntN(4) == 0 {
			opt.Scheme = kernel.Papers
		}
		if c.IntN(4) == 0 {
			opt.Stepping, opt.Memory = kernel.Sparse, 0
		}
	})
}
