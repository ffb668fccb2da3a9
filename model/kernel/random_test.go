package kernel

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

// randomRig is a tree of two to six bodies joined by springs and clutches, some
// with a brake, some clutches in parallel, each body under a constant torque.
func randomRig(rnd *rand.Rand) rig {
	var r rig
	nb := 2 + rnd.Intn(5)
	for i := range nb {
		r.J = append(r.J, math.Exp(1.5*rnd.NormFloat64()))
		r.Drag = append(r.Drag, 0.3*rnd.Float64()*float64(rnd.Intn(2)))
		r.Torques = append(r.Torques, torque{i, always(5 * rnd.NormFloat64())})
	}
	join := func(a, b int) {
		w := make([]float64, nb)
		w[a] = 1
		if b >= 0 && b != a {
			w[b] = -float64(1+rnd.Intn(4)) * float64(1-2*rnd.Intn(2))
		}
		r.Frictions = append(r.Frictions, contact{W: w, K: always(0), Peak: 1 + 0.5*rnd.Float64()*float64(rnd.Intn(2))})
	}
	for i := 1; i < nb; i++ {
		to := rnd.Intn(i)
		if rnd.Intn(2) == 0 {
			freq := 400 * rnd.Float64() // rad/s, of the lighter body on this spring
			r.Springs = append(r.Springs, spring{to, i, freq * freq * min(r.J[i], r.J[to]), rnd.Float64()})
			continue
		}
		join(i, to)
	}
	for len(r.Frictions) == 0 || len(r.Frictions) < 6 && rnd.Intn(3) > 0 {
		join(rnd.Intn(nb), rnd.Intn(nb+1)-1)
	}
	for range nb + len(r.Springs) {
		r.X0 = append(r.X0, float64(rnd.Intn(2))*rnd.NormFloat64())
	}
	for i := range r.Springs {
		r.X0[nb+i] = 0
	}
	return r
}

// watch checks after each tick the properties that hold in any plant.
type watch struct {
	*run
	r        rig
	command  []float64 // capacities of this tick, N·m
	before   []float64 // state at the last row without lag
	energy   float64   // J, energy of that state
	name     string
	worst    float64 // J, largest work of friction
	lagMax   float64 // s
	stuck    int     // rows with a stuck element
	stateDim int
}

func (w *watch) check(t *testing.T) {
	t.Helper()
	for i, v := range w.y {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("%s tick %d: %s = %g", w.name, w.tick, w.t.Outputs[i].Name, v)
		}
	}
	if !(w.lagOut() <= w.t.LagBound) || w.faultOut() != 0 {
		t.Fatalf("%s tick %d: lag %g s, fault %g", w.name, w.tick, w.lagOut(), w.faultOut())
	}
	w.lagMax = max(w.lagMax, w.lagOut())
	speed := 1.0
	for i := range w.r.J {
		speed = max(speed, math.Abs(w.y[i]))
	}
	for i, f := range w.r.Frictions {
		if limit := w.command[i] * f.Peak * (1 + 1e-6); !(math.Abs(w.tauOf(i)) <= limit) {
			t.Fatalf("%s tick %d: element %d in mode %d gives %g N·m of %g", w.name, w.tick, i, w.modeOf(i), w.tauOf(i), limit)
		}
		if w.modeOf(i) == Stuck {
			w.stuck++
			if !scalar.EqualWithinAbs(w.slipOf(i), 0, 1e-9*speed) {
				t.Fatalf("%s tick %d: element %d is stuck and slips %g rad/s", w.name, w.tick, i, w.slipOf(i))
			}
		}
	}
}

// work returns the work of friction and drag since the last row, J.
func (w *watch) work(t *testing.T, e float64) {
	t.Helper()
	done := e - w.energy
	for i, q := range w.r.Torques {
		done -= q.Tau.V[0] * (w.y[w.stateDim+i] - w.before[i])
		w.before[i] = w.y[w.stateDim+i]
	}
	if !(done <= 1e-9*(1+e)) {
		t.Fatalf("%s tick %d: friction and drag do %g J, %g J are stored", w.name, w.tick, done, e)
	}
	w.worst = max(w.worst, done/(1+e))
	w.energy = e
}

// For any connections and commands all values are finite, no torque exceeds its capacity, locked
// elements do not slip, friction and drag add no energy, and the lag stays within its bound.
func TestRandomPlantsObeyPhysics(t *testing.T) {
	plants := 100
	if testing.Short() {
		plants = 40
	}
	for _, scheme := range bothSchemes {
		stuck, lagged, worst := 0, 0, 0.0
		for seed := range plants {
			rnd := rand.New(rand.NewSource(int64(seed)))
			r := randomRig(rnd)
			bodies := make([]int, len(r.J))
			for i := range bodies {
				bodies[i] = i
			}
			sys := withAngles(r.system(), bodies...)
			driven := make([]bool, len(sys.Inputs))
			for i := range r.Frictions {
				driven[i] = true
			}
			k := start(t, sys, Options{Period: ms(5), Scheme: scheme, Driven: driven, Memory: seed % 3}) // 1 and 2: in place
			w := &watch{run: k, r: r, command: k.u, before: make([]float64, len(r.J)), stateDim: len(sys.X0) - len(r.J),
				name: fmt.Sprintf("%s seed %d", scheme, seed), energy: energy(sys, k.x)}
			for range 200 {
				for i := range r.Frictions {
					if rnd.Intn(10) == 0 {
						k.u[i] = max(0, 20*rnd.NormFloat64())
					}
				}
				k.step()
				w.check(t)
				w.work(t, energy(sys, k.y[:len(sys.X0)]))
			}
			stuck += w.stuck
			worst = max(worst, w.worst)
			if w.lagMax > 0 {
				lagged++
			}
		}
		if stuck < plants*50 || scheme == Papers && lagged < plants/2 {
			t.Errorf("%s: %d stuck rows, lag in %d plants: the plants do not exercise the kernel", scheme, stuck, lagged)
		}
		t.Logf("%-8s: %d plants, %d stuck rows, lag in %d, friction does at most %.1e of the energy", scheme, plants, stuck, lagged, worst)
	}
}

// randomTable returns a capacity over 1 s with ramps from and to zero, plateaus and jumps at any
// time.
func randomTable(rnd *rand.Rand) (s model.Source) {
	at := 0.0
	for at < 1 {
		s.T, s.V = append(s.T, at), append(s.V, max(0, 20*rnd.NormFloat64()))
		if rnd.Intn(4) > 0 {
			at += 0.2 * rnd.Float64()
		}
	}
	return s
}

// Commands change every 10 ms, capacities at any time. The motion is the same on every grid, in every
// scheme, and with precomputed or factorised lock sets. An event that a long step misses or misplaces
// changes the motion. Between events the kernel is exact; 1e-7 allows for errors that events amplify.
func TestGridAndSchemeDoNotChangeTheMotion(t *testing.T) {
	plants := 120
	if testing.Short() {
		plants = 40
	}
	worst := 0.0
	for seed := range plants {
		rnd := rand.New(rand.NewSource(int64(seed)))
		r := randomRig(rnd)
		driven := make([]bool, len(r.Frictions)+len(r.Torques))
		for i := range r.Frictions {
			driven[i] = seed%2 == 0
			r.Frictions[i].K = randomTable(rnd)
			r.Frictions[i].Offset = float64(rnd.Intn(2)) * 3
		}
		sys := r.system()
		coarse := start(t, sys, Options{Period: ms(10), Driven: driven})
		fine := start(t, sys, Options{Period: ms(1), Driven: driven})
		papers := start(t, sys, Options{Period: ms(10), Driven: driven, Scheme: Papers})
		place := start(t, sys, Options{Period: ms(10), Driven: driven, Memory: 1})
		local := start(t, sys, Options{Period: ms(10), Driven: driven, Stepping: Sparse})
		for range 100 {
			for i := range r.Frictions {
				if rnd.Intn(10) == 0 {
					coarse.u[i] = max(0, 20*rnd.NormFloat64())
				}
			}
			copy(fine.u, coarse.u)
			copy(papers.u, coarse.u)
			copy(place.u, coarse.u)
			copy(local.u, coarse.u)
			coarse.step()
			papers.step()
			place.step()
			local.step()
			for range 10 {
				fine.step()
			}
			for i := range sys.X0 {
				for _, other := range []*run{fine, papers, place, local} {
					if !scalar.EqualWithinAbsOrRel(other.y[i], coarse.y[i], 1e-7, 1e-7) {
						t.Fatalf("seed %d: %g s: state %d is %.12g at 10 ms complete, %.12g at %g s %s",
							seed, float64(coarse.tick)*coarse.h, i, coarse.y[i], other.y[i], other.h, other.t.Scheme)
					}
					worst = max(worst, math.Abs(other.y[i]-coarse.y[i])/(1+math.Abs(coarse.y[i])))
				}
			}
		}
	}
	t.Logf("%d plants: within %.1e", plants, worst)
}

// Random bodies and clutches, some redundant, are at rest under random torques. One instant decides
// which clutches break away. A locked clutch stays within its static capacity, and a slipping clutch
// accelerates in its direction. The next steps have no event. With whole numbers many clutches are
// exactly at their limit.
func TestModesAtRestAreResolvedInOneInstant(t *testing.T) {
	plants := 1200
	if testing.Short() {
		plants = 500
	}
	for seed := range plants {
		rnd := rand.New(rand.NewSource(int64(seed)))
		number := func(n int) float64 { return float64(rnd.Intn(n)) }
		if seed%2 == 1 {
			number = func(n int) float64 { return float64(n) / 2 * math.Exp(2*rnd.NormFloat64()) }
		}
		var r rig
		nb := 1 + rnd.Intn(4)
		for i := range nb {
			r.J = append(r.J, 1+number(2))
			r.Torques = append(r.Torques, torque{i, always(number(5) - number(5))})
		}
		for range 1 + rnd.Intn(6) {
			w := make([]float64, nb)
			a, b := rnd.Intn(nb), rnd.Intn(nb)
			w[b] = number(3) - number(3)
			w[a] = 1
			r.Frictions = append(r.Frictions, contact{W: w, K: always(number(4)), Peak: 1 + 0.5*float64(seed/2%2*rnd.Intn(2))})
		}
		checkSettled(t, seed, start(t, r.system(), Options{Period: ms(5)}))
	}
}

func checkSettled(t *testing.T, seed int, k *run) {
	t.Helper()
	k.setLoads()
	m := &k.t.Modes[k.kappa[0]]
	mul(k.xd, m.A, k.x)
	mulAdd(k.xd, m.B, k.w)
	for i, mode := range k.mode {
		a := dotRow(k.t.W, i, k.xd) * float64(mode)
		switch {
		case mode == Stuck && !(math.Abs(k.tau[i]) <= k.limit[i]*(1+1e-8)):
			t.Errorf("seed %d: element %d sticks with %g N·m of %g", seed, i, k.tau[i], k.limit[i])
		case (mode == Forward || mode == Backward) && !(a >= -1e-7):
			t.Errorf("seed %d: element %d slips to %d and is driven back with %g rad/s²", seed, i, mode, -a)
		}
	}
	for range 3 {
		if k.step(); len(k.Events()) > 0 || k.lagOut() != 0 {
			t.Errorf("seed %d: events %v, lag %g s in tick %d", seed, k.Events(), k.lagOut(), k.tick)
		}
	}
}
