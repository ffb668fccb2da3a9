package mechanics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// Random trees of lossy gears, springs and clutches run under random torques. Every tick ends without
// lag, friction adds no power, and the loss of each gear agrees with its load. Runs of 1 and 5 ms end
// in the same state.
func TestRandomLossyGearsHaveTheLossesOfTheirTable(t *testing.T) {
	stuck, driving, braking := 0, 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		var elements, outputs strings.Builder
		n := 3 + r.IntN(4)
		ratio, table, lossy := make([]float64, n), make([]losses, n), []int{}
		for i := range n {
			fmt.Fprintf(&elements, "n%d: {type: inertia, J: %v}\n", i, 0.2+r.Float64())
			fmt.Fprintf(&outputs, "w%d: {speed: n%d}\n", i, i)
			fmt.Fprintf(&elements, "t%d: {type: torque, flange: n%d, tau: {sine: {amplitude: %v, f: %v, phase: %v}}}\n",
				i, i, 8*r.NormFloat64(), 3*r.Float64(), 6*r.Float64())
			if i == 0 {
				continue
			}
			to := r.IntN(i)
			switch r.IntN(5) {
			case 0:
				fmt.Fprintf(&elements, "k%d: {type: spring_damper, c: 50, d: 0.2, a: n%d, b: n%d}\n", i, i, to)
			case 1:
				fmt.Fprintf(&elements, "f%d: {type: clutch, mu: 1, cgeo: 1, fn: {pulse: {amplitude: 5, width: 40, period: 0.3007}}, a: n%d, b: n%d}\n", i, i, to)
			default:
				ratio[i] = math.Copysign(0.5+2*r.Float64(), r.Float64()-0.3)
				table[i] = losses{0.6 + 0.4*r.Float64(), 0.6 + 0.4*r.Float64(), 0.5 * r.Float64(), 0.5 * r.Float64()}
				fmt.Fprintf(&elements, "g%d: {type: lossy_gear, ratio: %v, lossTable: %v, a: n%d, b: n%d}\n", i, ratio[i], table[i], i, to)
				fmt.Fprintf(&outputs, "a%d: {torque: g%d, onto: n%d, factor: -1}\nb%d: {torque: g%d, onto: n%d}\nP%d: {power: g%d}\n", i, i, i, i, i, to, i, i)
				lossy = append(lossy, i)
			}
		}
		if len(lossy) == 0 {
			continue
		}
		b := modeltest.New(t, modeltest.PlantOf(elements.String(), outputs.String()), time.Millisecond)
		coarse := modeltest.New(t, modeltest.PlantOf(elements.String(), outputs.String()), 5*time.Millisecond).To(1, nil)
		b.To(1, func(at float64) {
			b.Is("lag", 0, 0)
			b.Is("fault", 0, 0)
			for _, i := range lossy {
				g, name := table[i], fmt.Sprintf("g%d", i)
				load, loss := b.Get(fmt.Sprintf("a%d", i)), b.Get(name+".tau")
				b.Is(fmt.Sprintf("b%d", i), ratio[i]*(load-loss), 1e-9)
				limit := func(load float64) float64 { return max((1-g.eta1)*load+g.tau1, (1-1/g.eta2)*load+g.tau2) }
				d := b.Get(name + ".mode")
				if d == 0 {
					stuck++
					if tol := 1e-6 * (1 + math.Abs(load)); !(loss <= limit(load)+tol && -loss <= limit(-load)+tol) {
						t.Errorf("%s is stuck with %g N·m under %g at %g s", name, loss, load, at)
					}
					continue
				}
				if d*load > 0 {
					driving++
				} else {
					braking++
				}
				if want := d * limit(d*load); !scalar.EqualWithinAbs(loss, want, 1e-6*(1+math.Abs(load))) {
					t.Errorf("%s in mode %g loses %.9g N·m, not %.9g, under %g at %g s", name, d, loss, want, load, at)
				}
				if p := b.Get(fmt.Sprintf("P%d", i)); !(p >= -1e-9) {
					t.Errorf("%s gives %g W", name, p)
				}
			}
		})
		for i := range n {
			name := fmt.Sprintf("w%d", i)
			b.Is(name, coarse.Get(name), 3e-6)
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, elements.String())
		}
	}
	t.Logf("stuck %d, driving %d, braking %d times", stuck, driving, braking)
}
