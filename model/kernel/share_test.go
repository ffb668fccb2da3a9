package kernel_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// The blocks of the brakes push on the bogie, which loads the wheels.
const blockBraked = `plant: bogie
inputs:
  b0: {unit: N, min: 0, max: 30000, default: 5000}
  b1: {unit: N, min: 0, max: 30000, default: 5000}
  friction: {unit: "1", min: 0, max: 1, default: 1}
  pull: {unit: N, min: -20000, max: 20000, default: 3000}
elements:
  rail: {type: fixed}
  frame: {type: body, m: 9000 kg, J: 2500 kg.m2, v_x_start: 20 m/s,
          nodes: {c: [0, 0.3], p0: [-1.25, -0.1], p1: [1.25, -0.1], k0: [-0.6, 0], k1: [0.6, 0]}}
  hand: {type: force, flange: frame.c.x, f: pull}
  axle0: {type: mass, m: 1500 kg, v_start: 20 m/s}
  wheel0: {type: inertia, J: 100 kg.m2, w_start: 43.478 rad/s}
  tread0: {type: ideal_rolling_wheel, a: wheel0, b: rim0, radius: 0.46 m}
  px0: {type: spring_damper, a: frame.p0.x, b: axle0, c: 15e6 N/m, d: 60e3 N.s/m}
  py0: {type: spring_damper, a: frame.p0.y, b: rail, c: 1.4e6 N/m, d: 12e3 N.s/m}
  brake0: {type: brake, flange: wheel0, mu: 1, cgeo: 0.46 m, fn: {sum: [b0, -500 N]}}
  reaction0: {type: force, flange: frame.k0.y, f: {product: [b0, 1, brake0.share]}}
  contact0: {type: rail_contact, a: rim0, b: axle0, law: gyebroszki, mu0: 0.1, A: 0.2, v_star: 5 m/s, friction: friction,
             fn: {sum: [50 kN, py0.f, reaction0.f]}}
  axle1: {type: mass, m: 1500 kg, v_start: 20 m/s}
  wheel1: {type: inertia, J: 100 kg.m2, w_start: 43.478 rad/s}
  tread1: {type: ideal_rolling_wheel, a: wheel1, b: rim1, radius: 0.46 m}
  px1: {type: spring_damper, a: frame.p1.x, b: axle1, c: 15e6 N/m, d: 60e3 N.s/m}
  py1: {type: spring_damper, a: frame.p1.y, b: rail, c: 1.4e6 N/m, d: 12e3 N.s/m}
  brake1: {type: brake, flange: wheel1, mu: 1, cgeo: 0.46 m, fn: {sum: [b1, -500 N]}}
  reaction1: {type: force, flange: frame.k1.y, f: {product: [b1, -1, brake1.share]}}
  contact1: {type: rail_contact, a: rim1, b: axle1, law: gyebroszki, mu0: 0.1, A: 0.2, v_star: 5 m/s, friction: friction,
             fn: {sum: [50 kN, py1.f, reaction1.f]}}
outputs:
  v: {speed: frame.x}
  w0: {speed: wheel0}
  w1: {speed: wheel1}
`

// The force of a brake falls to below its offset within a step, while laws read the share of its torque, which is a
// quotient of two numbers that fall to 0. The pull accelerates the bogie to 70 m/s at most; the speeds of some runs became
// 1e28 m/s when nothing limited the share.
func TestShareIsLimitedWhereACapacityEnds(t *testing.T) {
	for _, stepping := range []kernel.Stepping{kernel.Sparse, kernel.Dense} {
		for seed := range 10 {
			on := []bool{true, true, true, true}
			b := modeltest.NewWith(t, blockBraked, kernel.Options{Period: 5 * time.Millisecond, Stepping: stepping, Places: 3, Ramped: on})
			inputs := modeltest.System(t, blockBraked).Inputs
			random, u := rand.New(rand.NewPCG(uint64(seed), 3)), slices.Clone(b.U)
			for tick := range 6000 {
				for i, in := range inputs {
					if i < 2 && random.IntN(3) == 0 {
						at, from := 0.005*random.Float64(), 3000*random.Float64()
						u[i] = 0
						b.Kernel.Change(i, at, from, -from/(0.005-at))
					} else if random.IntN(20) == 0 {
						u[i] = in.Min + (in.Max-in.Min)*random.Float64()
					}
				}
				b.Kernel.Step(b.Y, u)
				if v, w := math.Abs(b.Y[0]), max(math.Abs(b.Y[1]), math.Abs(b.Y[2])); !(v < 70 && w < 110) {
					t.Fatalf("%s, run %d, tick %d: speeds %g m/s and %g rad/s", stepping, seed, tick, v, w)
				}
			}
			if n := b.Kernel.Unconverged(); n != 0 {
				t.Errorf("%s, run %d: laws unconverged in %d substeps", stepping, seed, n)
			}
		}
	}
}
