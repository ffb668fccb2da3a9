package kernel_test

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockstep/model/kernel"
)

const manyFrictions = 20

// manyText is a tree of 14 inertias on 13 clutches, with 4 clutches across it and
// 3 brakes: six more locks than there are directions. Every clutch has its own
// command. Drags and torques differ, so that nothing happens at one instant by
// symmetry.
func manyText() string {
	var b strings.Builder
	b.WriteString("plant: many\ninputs:\n")
	for i := range manyFrictions {
		fmt.Fprintf(&b, "  c%d: {unit: N, min: 0, max: 1000}\n", i)
	}
	b.WriteString("elements:\n  ground: {type: fixed}\n")
	n := 0
	grip := func(kind, ends string) {
		fmt.Fprintf(&b, "  f%d: {type: %s, %s, mu: 1, cgeo: 1, fn: c%d}\n", n, kind, ends, n)
		n++
	}
	for i := range 14 {
		fmt.Fprintf(&b, "  J%d: {type: inertia, J: %.3g}\n", i, 0.1+0.073*float64(i*i%11))
		fmt.Fprintf(&b, "  d%d: {type: damper, a: ground, b: J%d, d: %.3g}\n", i, i, 0.05+0.011*float64(i*7%13))
		fmt.Fprintf(&b, "  t%d: {type: torque, flange: J%d, tau: {table: [", i, i)
		for j := range 24 {
			fmt.Fprintf(&b, "[%.4g, %.4g], ", 0.013*float64(i)+0.1*float64(j), 5.9*float64(i*5%9-4)+19.3*float64((j*j+3*i)%7-3)+0.37*float64(i))
		}
		b.WriteString("[2.6, 0]]}}\n")
		if i > 0 {
			grip("clutch", fmt.Sprintf("a: J%d, b: J%d", (i-1)/2, i))
		}
	}
	for _, pair := range [][2]int{{3, 12}, {5, 8}, {7, 9}, {1, 13}} {
		grip("clutch", fmt.Sprintf("a: J%d, b: J%d", pair[0], pair[1]))
	}
	for _, i := range []int{0, 6, 11} {
		grip("brake", fmt.Sprintf("flange: J%d", i))
	}
	return b.String()
}

// manyChanges closes the elements one after the other, so strongly that they
// lock, opens them in another order, then gives random ones random capacities.
func manyChanges(seed uint32) []change {
	var out []change
	for i := range manyFrictions {
		out = append(out, change{10 + 30*i, i * 7 % manyFrictions, 300})
		out = append(out, change{10 + 30*manyFrictions + 8*i, i * 3 % manyFrictions, 0})
	}
	at := 20 + 38*manyFrictions
	next := func(n uint32) int { // numerical recipes' linear congruence
		seed = 1664525*seed + 1013904223
		return int(seed >> 8 % n)
	}
	for range 250 {
		v := float64(next(4000)) / 100
		if next(3) == 0 {
			v = 0
		}
		out = append(out, change{at, next(manyFrictions), v})
		at += next(4)
	}
	return out
}

func manyScenario(scheme kernel.Scheme, seed uint32) scenario {
	return scenario{text: manyText(), period: 2 * time.Millisecond, ticks: 1300, changes: manyChanges(seed),
		options: kernel.Options{Scheme: scheme, Memory: 1}}
}

// Twenty friction elements, factorised in the tick or block by block: each of them locks
// and slips, locked sets of every size from 0 to 20 occur, and the states are those of
// the reference.
func TestTwentyFrictionElementsAgreeWithTheReference(t *testing.T) {
	for seed, scheme := range []kernel.Scheme{kernel.Complete, kernel.Papers, kernel.Complete, kernel.Complete} {
		s := manyScenario(scheme, uint32(seed))
		if seed == 3 {
			s.options.Stepping = kernel.Sparse
		}
		var all tally
		w := s.play(t, &all)
		var sizes, locked, slipped uint
		mode := make([]int8, manyFrictions)
		for i := range mode {
			mode[i] = free
		}
		for i, e := range w.log {
			mode[e.Friction] = e.To
			switch e.To {
			case stuck:
				locked |= 1 << e.Friction
			case forward, backward:
				slipped |= 1 << e.Friction
			}
			if i+1 == len(w.log) || w.log[i+1].Time > e.Time {
				count := 0
				for _, m := range mode {
					if m == stuck {
						count++
					}
				}
				sizes |= 1 << count
			}
		}
		t.Logf("%s: %d transitions, largest error %.2g, energy %.2g, lag %.2g steps for %d ticks", scheme, len(w.log), all.worst, all.energy, all.lag, all.lagged)
		if n := bits.OnesCount(sizes); n != manyFrictions+1 {
			t.Errorf("%d sizes of locked sets occurred, %b; all from 0 to 20 are wanted", n, sizes)
		}
		if full := uint(1)<<manyFrictions - 1; locked != full || slipped != full {
			t.Errorf("not every element locked and slipped: %b and %b", locked, slipped)
		}
	}
}

// Options{Memory: 1} changes the computation of the matrices of a lock set, not their values.
func TestModesFactorisedInTheTickGiveThePrecomputedMotion(t *testing.T) {
	worst := 0.0
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScenario(rt)
		if s.peaked { // rounding may decide which of redundant locks breaks away
			return
		}
		sys := assembledText(rt, "random", []byte(s.text))
		opt := s.options
		opt.Period, opt.Driven = s.period, driven(sys)
		var k [2]*kernel.Kernel
		var y [2][]float64
		for i := range k {
			opt.Memory = i
			tables, err := kernel.Prepare(sys, opt)
			if err != nil {
				rt.Fatal(err)
			}
			k[i], y[i] = kernel.New(tables), make([]float64, len(tables.Outputs))
		}
		u := make([]float64, len(sys.Inputs))
		size := 1.0
		for tick := range s.ticks {
			s.command(u, tick)
			k[0].Step(y[0], u)
			k[1].Step(y[1], u)
			for i := range sys.X0 {
				size = max(size, y[0][i], -y[0][i])
				e := max(y[0][i]-y[1][i], y[1][i]-y[0][i]) / size
				worst = max(worst, e)
				if !(e <= 1e-9) {
					rt.Fatalf("tick %d: state %d is %.15g precomputed and %.15g in place\n%s", tick, i, y[0][i], y[1][i], s.text)
				}
			}
		}
	})
	t.Logf("largest difference %.2g", worst)
}

// Step does not allocate, whatever the events: with twenty elements factorised in the tick, and random
// plants with every lock set precomputed and factorised.
func TestStepDoesNotAllocateInAnyMode(t *testing.T) {
	many := manyScenario("", 1)
	check := func(name string, s *scenario) {
		sys := assembledText(t, name, []byte(s.text))
		for memory := range 2 {
			opt := s.options
			opt.Period, opt.Driven, opt.Memory = s.period, driven(sys), memory
			if memory == 0 && len(sys.Frictions) > 12 {
				continue
			}
			tables, err := kernel.Prepare(sys, opt)
			if err != nil {
				t.Fatal(err)
			}
			k, y, u := kernel.New(tables), make([]float64, len(tables.Outputs)), make([]float64, len(sys.Inputs))
			allocs := math.Inf(1)
			for try := 0; try < 3 && allocs != 0; try++ { // another goroutine does not allocate each time
				allocs = testing.AllocsPerRun(1, func() {
					clear(u)
					k.Reset()
					for tick := range s.ticks {
						s.command(u, tick)
						k.Step(y, u)
					}
				})
			}
			if allocs != 0 {
				t.Errorf("%s, memory %d: %g allocations in %d ticks", name, memory, allocs, s.ticks)
			}
		}
	}
	check("many", &many)
	plants := rapid.Custom(drawScenario)
	for seed := range 20 {
		s := plants.Example(seed)
		s.changes = slices.Clone(s.changes)
		check(fmt.Sprintf("random %d", seed), &s)
	}
}
