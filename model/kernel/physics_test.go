package kernel

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

// follow steps a rig for the given time and compares body 0 with want(t) at every grid time. During
// lag the prediction must equal want(t), too.
func follow(t *testing.T, name string, k *run, until, tol float64, want func(t float64) float64) {
	t.Helper()
	for range int(until/k.h + 0.5) {
		k.step()
		at := float64(k.tick) * k.h
		if !scalar.EqualWithinAbs(k.y[0], want(at), tol) {
			t.Fatalf("%s: w(%g s) = %.15g, want %.15g rad/s", name, at, k.y[0], want(at))
		}
	}
}

// each runs a check for both schemes on a grid of 10 ms.
func each(t *testing.T, r rig, fact func(name string, k *run)) {
	t.Helper()
	for _, scheme := range bothSchemes {
		fact(string(scheme), start(t, r.system(), Options{Period: ms(10), Scheme: scheme}))
	}
}

// transition is an expected transition.
type transition struct {
	t        float64 // s
	friction int
	from, to int8
}

// expect steps k for the given time and compares all transitions.
func expect(t *testing.T, name string, k *run, until, tol float64, want ...transition) {
	t.Helper()
	var got []Event
	for range int(until/k.h + 0.5) {
		k.step()
		got = append(got, k.Events()...)
	}
	if len(got) != len(want) {
		t.Fatalf("%s: transitions %v, want %v", name, got, want)
	}
	for i, w := range want {
		e := got[i]
		if e.Friction != w.friction || e.From != w.from || e.To != w.to || !scalar.EqualWithinAbs(e.Time, w.t, tol) {
			t.Errorf("%s: transition %v, want %v", name, e, w)
		}
	}
}

func brake(w0 float64, k, tau model.Source) rig {
	return rig{
		J: []float64{2}, X0: []float64{w0},
		Frictions: []contact{{W: []float64{1}, K: k}},
		Torques:   []torque{{0, tau}},
	}
}

// Driving torque 5 + 2t against a brake of 3 on J = 2, from w = -1.0123: up to
// zero speed J·w' = 8 + 2t, beyond it 2 + 2t.
func TestPassageThroughZeroNeverTransmitsMoreThanTheCapacity(t *testing.T) {
	const w0, J, K = -1.0123, 2.0, 3.0
	zero := -4 + math.Sqrt(16-J*w0)
	want := func(t float64) float64 {
		if t < zero {
			return w0 + (8*t+t*t)/J
		}
		return (2*(t-zero) + t*t - zero*zero) / J
	}
	r := brake(w0, always(K), table(0, 5, 10, 25))
	each(t, r, func(name string, k *run) {
		last := w0
		for range 100 {
			k.step()
			at := float64(k.tick) * k.h
			if !scalar.EqualWithinAbs(k.y[0], want(at), 1e-13) {
				t.Fatalf("%s: w(%g s) = %.15g, want %.15g rad/s", name, at, k.y[0], want(at))
			}
			impulse := J*(k.y[0]-last) - (5+2*(at-k.h/2))*k.h
			if !(math.Abs(impulse) <= K*k.h*(1+1e-9)) || !(math.Abs(k.tauOf(0)) <= K) {
				t.Fatalf("%s: brake gives %g N·m·s in a step and %g N·m at its end; its capacity is %g N·m", name, impulse, k.tauOf(0), K)
			}
			last = k.y[0]
		}
		if k.transOut() != 1 {
			t.Errorf("%s: %g transitions, want the one through zero", name, k.transOut())
		}
	})
}

// Load 5 on J = 2, capacity K falls by 100 per second from 10 at 0.1013 s to 0:
// it breaks away where peak·K = 5, then J·w' = 5 - K until K is 0.
func TestCapacityThatFallsInsideAStepBreaksTheLockInTime(t *testing.T) {
	const J, load, t0 = 2.0, 5.0, 0.1013
	for _, peak := range []float64{1, 1.5} {
		free := t0 + 0.1
		off := t0 + (10-load/peak)/100
		speed := func(t float64) float64 { // from 5 - K = 100·(t - 0.05 - t0)
			a, b := off-0.05-t0, t-0.05-t0
			return 100 * (b*b - a*a) / (2 * J)
		}
		want := func(t float64) float64 {
			switch {
			case t < off:
				return 0
			case t < free:
				return speed(t)
			}
			return speed(free) + load/J*(t-free)
		}
		r := brake(0, table(t0, 10, free, 0), always(load))
		r.Frictions[0].Peak = peak
		each(t, r, func(name string, k *run) { follow(t, name, k, 0.5, 1e-9, want) })
		each(t, r, func(name string, k *run) {
			expect(t, name, k, 0.5, 1e-9, transition{off, 0, Stuck, Forward}, transition{free, 0, Forward, Free})
		})
	}
}

// A load that rises by 10 per second breaks a lock of 4·peak; then
// J·w' = 10t - 4.
func TestLoadThatRisesBreaksTheLockAtItsPeak(t *testing.T) {
	for _, peak := range []float64{1, 1.2345} {
		for _, sign := range []float64{1, -1} {
			off := 0.4 * peak
			r := brake(0, always(4), table(0, 0, 10, 100*sign))
			r.Frictions[0].Peak = peak
			each(t, r, func(name string, k *run) {
				follow(t, name, k, 2, 1e-8, func(t float64) float64 {
					if t < off {
						return 0
					}
					return sign * (5*(t*t-off*off) - 4*(t-off)) / 2
				})
				if k.transOut() != 1 {
					t.Errorf("%s: %g transitions, want the break-away", name, k.transOut())
				}
			})
		}
	}
}

// J = 2 at 10 rad/s against K = 8.1 stops after 2.469... s and stays.
func TestBrakeLocksOnTimeAndHolds(t *testing.T) {
	const stop = 10 * 2 / 8.1
	r := brake(10, always(8.1), always(0))
	each(t, r, func(name string, k *run) {
		follow(t, name, k, 3, 1e-13, func(t float64) float64 { return max(0, 10-8.1/2*t) })
	})
	each(t, r, func(name string, k *run) {
		expect(t, name, k, 3, 1e-12, transition{stop, 0, Forward, Stuck})
		if k.y[0] != 0 || k.slipOf(0) != 0 || k.tauOf(0) != 0 {
			t.Errorf("%s: at rest w = %g, w_rel = %g rad/s, tau = %g N·m", name, k.y[0], k.slipOf(0), k.tauOf(0))
		}
	})
}

// J1 = 1 at 10 rad/s and J2 = 3 at -2 rad/s: momentum 4, so they end at 1 rad/s.
// The capacity rises by 40 per second from 0.1 s: the slip 12 is gone when
// 20·(t - 0.1)²·(1/J1 + 1/J2) = 12.
func TestClutchPreservesMomentumAndEqualisesSpeeds(t *testing.T) {
	lock := 0.1 + math.Sqrt(12/(20*(1+1./3)))
	r := rig{
		J: []float64{1, 3}, X0: []float64{10, -2},
		Frictions: []contact{{W: []float64{1, -1}, K: table(0.1, 0, 2.1, 80)}},
	}
	each(t, r, func(name string, k *run) {
		for range 150 {
			k.step()
			if m := k.y[0] + 3*k.y[1]; !scalar.EqualWithinAbs(m, 4, 1e-13) {
				t.Fatalf("%s: tick %d: momentum %.16g, want 4", name, k.tick, m)
			}
		}
		if !scalar.EqualWithinAbs(k.y[0], 1, 1e-14) || !scalar.EqualWithinAbs(k.y[1], 1, 1e-14) || !scalar.EqualWithinAbs(k.slipOf(0), 0, 1e-15) {
			t.Errorf("%s: speeds %.17g and %.17g rad/s after the lock, want 1", name, k.y[0], k.y[1])
		}
	})
	each(t, r, func(name string, k *run) {
		expect(t, name, k, 1.5, 1e-12, transition{0.1, 0, Free, Forward}, transition{lock, 0, Forward, Stuck})
	})
}

// The capacity 8·(t - 0.1) rises from exactly zero.
func TestCapacityThatRisesFromZeroEngages(t *testing.T) {
	rising := table(0.1, 0, 1.1, 8)
	each(t, brake(0, rising, always(0)), func(name string, k *run) {
		expect(t, name+" at rest", k, 1, 1e-12, transition{0.1, 0, Free, Stuck})
	})
	// at rest, loaded from 0.1 s on with 1: 2w' = 1 - 8s, zero again at s = 0.25
	each(t, brake(0, rising, table(0.1, 0, 0.1, 1)), func(name string, k *run) {
		expect(t, name+" loaded", k, 1, 1e-9, transition{0.1, 0, Free, Forward}, transition{0.35, 0, Forward, Stuck})
	})
	// slipping at -5: 2w' = 8s, zero at s² = 2.5
	each(t, brake(-5, table(0.1, 0, 2.1, 16), always(0)), func(name string, k *run) {
		expect(t, name+" slipping", k, 2, 1e-12, transition{0.1, 0, Free, Backward}, transition{0.1 + math.Sqrt(1.25*2), 0, Backward, Stuck})
	})
}

// A capacity 2·max(0, v - 1.5) with v falling by 10 per second from 4 is zero at
// 0.25 + 0.0037 s, between two rows and off the grid. J·w' = -K from 8 rad/s.
func TestCapacityEndsExactlyWhereItsOffsetIsReached(t *testing.T) {
	const t0 = 0.0037
	r := brake(8, table(t0, 4, t0+1, -6), always(0))
	r.Frictions[0].Gain, r.Frictions[0].Offset = 2, 1.5
	each(t, r, func(name string, k *run) {
		follow(t, name, k, 0.6, 1e-13, func(t float64) float64 {
			s := min(max(t-t0, 0), 0.25)
			return 8 - (5*min(t, t0)+5*s-10*s*s)/2
		})
	})
}

// A driven capacity jumps at the ticks; it holds from each tick to the next.
func TestCommandHoldsFromItsTickToTheNext(t *testing.T) {
	for _, scheme := range bothSchemes {
		k := start(t, brake(10, always(0), always(0)).system(), Options{Period: ms(10), Scheme: scheme, Driven: []bool{true, true}})
		w := 10.0
		for i := range 40 {
			k.u[0], k.u[1] = float64(i%7), float64(i%3)
			k.step()
			if w += (k.u[1] - k.u[0]) / 2 * k.h; !scalar.EqualWithinAbs(k.y[0], w, 1e-13) {
				t.Fatalf("%s: tick %d: w = %.15g, want %.15g rad/s", scheme, k.tick, k.y[0], w)
			}
		}
		k.u[0], k.u[1] = 0, 50 // release while it slips, then hold more than the load
		k.step()
		k.u[0], k.u[1] = 1e4, 0
		for range 20 {
			k.step()
		}
		if k.y[0] != 0 || k.modeOf(0) != Stuck {
			t.Fatalf("%s: w = %g rad/s in mode %d under a capacity of 10 kN·m", scheme, k.y[0], k.modeOf(0))
		}
		k.u[0], k.u[1] = 4, 5 // the command falls below the load at a tick
		k.step()
		if !scalar.EqualWithinAbs(k.y[0], 0.5*k.h, 1e-14) || k.modeOf(0) != Forward {
			t.Errorf("%s: w = %g rad/s in mode %d a step after the command fell", scheme, k.y[0], k.modeOf(0))
		}
	}
}

// Five brakes lock one after the other, so close together that the lag grows beyond a
// period. Body 0 has no brake; its speed shows when its command held.
func TestCommandHoldsFromItsTickWhileThereIsLag(t *testing.T) {
	r := rig{J: []float64{1}, X0: []float64{0}, Torques: []torque{{0, always(0)}}}
	for i := range 5 {
		stop := []float64{0.0112, 0.0124, 0.0256, 0.0281, 0.0413}[i]
		w := make([]float64, 6)
		w[i+1] = 1
		r.J, r.X0 = append(r.J, 1), append(r.X0, 10*stop)
		r.Frictions = append(r.Frictions, contact{W: w, K: always(10)})
	}
	driven := []bool{false, false, false, false, false, true}
	k := start(t, r.system(), Options{Period: ms(10), Scheme: Papers, Driven: driven, LagBound: ms(50)})
	want, lag := 0.0, 0.0
	for i := range 12 {
		k.u[5] = float64(i*i%5) - 1.5
		k.step()
		lag = max(lag, k.lagOut())
		if want += k.u[5] * k.h; !scalar.EqualWithinAbs(k.y[0], want, 1e-14) {
			t.Errorf("tick %d, lag %g s: w = %.15g, want %.15g rad/s", k.tick, k.lagOut(), k.y[0], want)
		}
	}
	if !(lag > 2*k.h) || k.lagOut() != 0 {
		t.Errorf("lag at most %g s, %g s at the end: want more than two periods, then 0", lag, k.lagOut())
	}
}

// One brake acts on 1e-6 kg·m², another on 1e7 kg·m². If the rank of the locks depended on the scale
// of the bodies, the heavy body would creep while locked.
func TestInertiasManyOrdersApartLockAndHold(t *testing.T) {
	r := rig{
		J: []float64{1e-6, 1e7}, X0: []float64{0, 3e-3},
		Frictions: []contact{{W: []float64{1, 0}, K: always(1)}, {W: []float64{0, 1}, K: always(1e6)}},
		Torques:   []torque{{1, always(1e5)}, {0, always(0.5)}},
	}
	k := start(t, r.system(), Options{Period: 5 * time.Millisecond})
	for range 400 {
		k.step()
	}
	if k.modeOf(0) != Stuck || k.modeOf(1) != Stuck || k.y[0] != 0 || !scalar.EqualWithinAbs(k.y[1], 0, 1e-18) {
		t.Errorf("speeds %g and %g rad/s, modes %d and %d: want both at rest", k.y[0], k.y[1], k.modeOf(0), k.modeOf(1))
	}
}

// A transition at a grid point is one event and one transition.
func TestTransitionAtAGridPointIsOneEvent(t *testing.T) {
	k := start(t, brake(3, always(0), always(0)).system(), Options{Period: ms(10), Driven: []bool{true, false}})
	for i, c := range []struct{ capacity, events, transitions float64 }{{0, 0, 0}, {1, 1, 1}, {1, 1, 1}, {0, 2, 2}} {
		k.u[0] = c.capacity
		if k.step(); k.y[k.tail()+2] != c.events || k.transOut() != c.transitions {
			t.Errorf("step %d: %g events, %g transitions; want %g, %g", i, k.y[k.tail()+2], k.transOut(), c.events, c.transitions)
		}
	}
}

// The impulses of elements that act on the same bodies change the slips as demanded.
func TestImpulsesChangeEverySlipAsDemanded(t *testing.T) {
	r := rig{J: []float64{1, 2, 0.5, 3}, X0: []float64{1, -2, 0.3, 4}, Frictions: []contact{
		{W: []float64{1, -1, 0, 0}, K: always(1)}, {W: []float64{0, 1, -2, 0}, K: always(1)},
		{W: []float64{0, 0, 1, -0.7}, K: always(1)}, {W: []float64{1, 0.5, 0, 1}, K: always(1)},
	}}
	for _, taken := range [][]int{{0}, {1, 2}, {0, 1, 2, 3}, {3, 1, 0}, {2, 0, 3, 1}} {
		k := start(t, r.system(), Options{Period: ms(10)})
		g := &k.blocks[0]
		if len(k.blocks) != 1 || len(g.Elements) != 4 {
			t.Fatalf("%d blocks, want one of four elements", len(k.blocks))
		}
		before := make([]float64, 4)
		k.slips.mul(before, k.x)
		k.factor.rank = copy(k.factor.taken, taken)
		demand := []float64{0.3, -1.1, 2.5, 0.7}
		for _, i := range taken {
			k.trialTau[g.Elements[i]] = demand[i]
		}
		k.applyImpulses(g)
		after := make([]float64, 4)
		k.slips.mul(after, k.x)
		for _, i := range taken {
			e := g.Elements[i]
			if got := after[e] - before[e]; !scalar.EqualWithinAbs(got, demand[i], 1e-12) {
				t.Errorf("elements %d: slip %d changes by %g rad/s, want %g", taken, i, got, demand[i])
			}
		}
	}
}
