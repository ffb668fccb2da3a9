package kernel_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// vehicle is the plant judder with static friction equal to kinetic, for which the motion
// is unique, and without its terms of second order: tyres that rub with normal forces from
// the state and carry rolling resistance, a clutch between them, brakes on both wheels and
// the body that couples all of it.
func vehicle(t *testing.T) *model.System {
	t.Helper()
	data, err := plants.Read("judder")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, edit := range [][2]string{{"mu_0: 0.8", "mu_0: 0.75"}, {"T_S: 400 N.m", "T_S: 320 N.m"},
		{"      brace:", "#"}, {"      lever:", "#"}, {"  wind_up:", "#"}} {
		if strings.Count(text, edit[0]) != 1 {
			t.Fatalf("the plant judder has no single %q", edit[0])
		}
		text = strings.Replace(text, edit[0], edit[1], 1)
	}
	text += `  a_y: {acceleration: car.y}
  a_1: {acceleration: front.wheel}
  a_2: {acceleration: rear.wheel}
  a_e: {acceleration: engine}
  a_f: {acceleration: flywheel}
  a_c: {acceleration: disc}
`
	p, err := plantfile.Load("vehicle.yaml", []byte(text), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// shaken returns a random state near the standing vehicle, rolling at up to 8 m/s.
func shaken(sys *model.System, rng *rand.Rand) []float64 {
	x := make([]float64, len(sys.X0))
	scale := map[string]float64{"m/s": 0.5, "rad/s": 8, "m": 0.03, "rad": 0.03}
	roll := 4 * rng.Float64()
	for i, s := range sys.States {
		x[i] = roll/2*sys.X0[i] + scale[s.Unit]*(2*rng.Float64()-1)
		if s.Unit == "m" || s.Unit == "rad" {
			x[i] += (1 - roll/2) * sys.X0[i]
		}
	}
	return x
}

// Tyres, rolling resistance and the clutch are at rest in any combination; the others slide. The
// torque of the engine is random, the normal forces follow the state, and wheels may be in the air.
// The accelerations equal those of a linear complementarity problem solved by Lemke's method, and so
// do all determined torques.
func TestCoupledContactsMatchAComplementaritySolver(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 14))
	seen := map[string]int{}
	worst := 0.0
	for range 30 {
		sys := vehicle(t)
		sys.Signals[sys.Inputs[0].Signal].Source.V[0] = 1000*rng.Float64() - 500 // torque of the engine
		tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		p := newRefPlant(sys, nil)
		for range 200 {
			x := shaken(sys, rng)
			rest := uint(rng.IntN(1 << p.mc))
			want := p.solve(x, rest, seen)
			copy(tables.X0, x)
			worst = max(worst, p.compare(t, tables, want, rest))
		}
	}
	for what, n := range map[string]int{"breaks": 500, "holds": 200, "several": 1000, "air": 20, "clutch and tyre": 300} {
		if seen[what] < n {
			t.Errorf("%s: %d states, want %d at least", what, seen[what], n)
		}
	}
	t.Logf("within %.1e; states %v", worst, seen)
}

// compare returns the largest difference of an output of the kernel at tables.X0 from
// want, relative, forces over 1 kN.
func (p *refPlant) compare(t *testing.T, tables *kernel.Tables, want []float64, rest uint) (worst float64) {
	t.Helper()
	have := make([]float64, len(tables.Outputs))
	kernel.New(tables).Output(have)
	for i, o := range p.sys.Outputs {
		if strings.HasPrefix(o.Name, "F_f") && p.redundant {
			continue // their split of the load is not determined
		}
		scale := 1 + math.Abs(want[i])
		if o.Unit == "N" || o.Unit == "N.m" {
			scale = 1000
		}
		e := math.Abs(have[i]-want[i]) / scale
		if !(e <= 1e-7) {
			t.Fatalf("at rest %05b: %s is %.12g %s, of the complementarity problem %.12g", rest, o.Name, have[i], o.Unit, want[i])
		}
		worst = max(worst, e)
	}
	return worst
}

// solve sets the slip of the elements of rest to zero in x, solves for their torques and returns the
// outputs.
func (p *refPlant) solve(x []float64, rest uint, seen map[string]int) []float64 {
	for i := range p.mode {
		if p.mode[i] = free; rest>>i&1 == 1 {
			p.mode[i] = stuck
		}
	}
	p.lock()
	p.settle(x)
	for g := range p.side {
		p.side[g] = p.sideAt(g, x)
	}
	p.signals(0, x)
	var set []int
	for i := range p.mode {
		switch s := p.along(i, x); {
		case rest>>i&1 == 1 || math.Abs(s) < 1e-9:
			p.mode[i] = stuck
			set = append(set, i)
		case s > 0:
			p.mode[i] = forward
		default:
			p.mode[i] = backward
		}
		if !p.active(i) {
			seen["air"]++
		}
	}
	p.lock()
	p.open(0, x)
	if len(set) > 0 {
		tau, slip := p.share(0, x, set, p.kinetic)
		for r, i := range set {
			p.tau[i] = tau[r]
			if math.Abs(slip[r]) <= 1e-9 {
				seen["holds"]++
			} else {
				seen["breaks"]++
			}
		}
		if len(set) > 1 {
			seen["several"]++
		}
		if rest>>4 == 1 && rest&0b101 != 0 {
			seen["clutch and tyre"]++
		}
	}
	y := make([]float64, len(p.sys.Outputs))
	for o := range y {
		y[o] = dot(p.sys.C[o*p.n:(o+1)*p.n], x) + dot(p.sys.D[o*p.m:(o+1)*p.m], p.v) + dot(p.sys.Dc[o*p.mc:(o+1)*p.mc], p.tau)
	}
	return y
}
