package cost

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// inPlace is a memory limit below that of one lock set, byte: the tick factorises all lock sets.
const inPlace = 1

// slope returns the slope of the straight line through (x, y) by least squares.
func slope(x, y []float64) float64 {
	var mx, my, xy, xx float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	for i := range x {
		xy, xx = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx)
	}
	return xy / xx
}

// costGrowth is the cost of a family of plants over their size.
type costGrowth struct {
	name              string
	sizes             []int
	quiet, quietWorst []float64 // mean and worst tick without events, ns
	busy, busyWorst   []float64 // mean and worst tick with events, ns
	busyEvents        []float64 // events per tick
}

// measure steps the plant of one size without and with events.
func (g *costGrowth) measure(t *testing.T, size, frictions int, plant string, memory int) *rig.Plant {
	t.Helper()
	ticks := 194
	if size > 20 {
		ticks = 97
	}
	r := rig.Prepare(t, plant, kernel.Options{Period: time.Millisecond, Memory: memory}, true)
	if inTable := r.Tables.Modes != nil; inTable == (memory == inPlace) {
		t.Fatalf("%s %d: lock sets precomputed %v", g.name, size, inTable)
	}
	quiet, quietWorst, events := r.TickCosts(ticks, 10, costQuiet(frictions))
	if !(events <= 1) {
		t.Errorf("%s %d: %g events in quiet ticks", g.name, size, events)
	}
	busy, busyWorst, events := r.TickCosts(ticks, 10, costBusy(frictions))
	if !(events >= float64(ticks)/10) || r.Y[len(r.Y)-1] != 0 {
		t.Errorf("%s %d: only %g events in %d busy ticks, fault %g", g.name, size, events, ticks, r.Y[len(r.Y)-1])
	}
	g.sizes = append(g.sizes, size)
	g.quiet, g.quietWorst = append(g.quiet, quiet), append(g.quietWorst, quietWorst)
	g.busy, g.busyWorst = append(g.busy, busy), append(g.busyWorst, busyWorst)
	g.busyEvents = append(g.busyEvents, events/float64(ticks))
	return r
}

func (g *costGrowth) table(what string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| %s | quiet, µs | worst | busy, µs | worst | events per tick |\n|---|---|---|---|---|---|\n", g.name, what)
	for i, size := range g.sizes {
		fmt.Fprintf(&b, "| %d | %.2f | %.2f | %.2f | %.1f | %.1f |\n", size, g.quiet[i]/1e3, g.quietWorst[i]/1e3, g.busy[i]/1e3, g.busyWorst[i]/1e3, g.busyEvents[i])
	}
	return b.String()
}

// TestCostDoesNotDoubleWithEachFrictionElement measures 1 to 20 switching elements: in a chain,
// where all locks are independent, and in parallel, where locks are redundant. A cost that grows
// like 2^n doubles once per element; polynomials reach about 0.3 doublings here.
func TestCostDoesNotDoubleWithEachFrictionElement(t *testing.T) {
	marks := map[byte][]float64{}
	all := []int{1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20}
	for _, family := range []struct {
		name   string
		plant  func(int) string
		memory int
		most   int
		mark   byte
	}{
		{"chain, lock sets precomputed", costChain, 0, 10, 'p'},
		{"chain, factorised in place", costChain, inPlace, 20, 'c'},
		{"parallel, precomputed", costParallel, 0, 10, 's'},
		{"parallel, in place", costParallel, inPlace, 20, 'b'},
	} {
		g := costGrowth{name: family.name}
		for _, n := range all {
			if n <= family.most {
				g.measure(t, n, n, family.plant(n), family.memory)
			}
		}
		t.Logf("%s", g.table("friction elements"))
		marks[family.mark] = g.busy
		for _, c := range []struct {
			what string
			ns   []float64
			most float64 // doublings per element
		}{{"quiet", g.quiet, 0.5}, {"busy", g.busy, 0.6}, {"worst busy", g.busyWorst, 0.75}} {
			var x, y []float64
			for i, n := range g.sizes {
				if n >= 3 {
					x, y = append(x, float64(n)), append(y, math.Log2(c.ns[i]))
				}
			}
			s := slope(x, y)
			t.Logf("%s, %s tick: %.2f doublings per element", family.name, c.what, s)
			if !(s <= c.most) {
				t.Errorf("%s: the cost of a %s tick doubles %.2f times per element, more than %.2f: it grows like 2^n", family.name, c.what, s, c.most)
			}
		}
	}
	t.Logf("%s", costPlot("busy tick over friction elements; c chain in place, p precomputed, b parallel in place, s precomputed", all, marks))
}

// TestCostGrowsWithTheSquareOfTheStates measures an elastic shaft of 4 to 200
// states with three friction elements.
func TestCostGrowsWithTheSquareOfTheStates(t *testing.T) {
	all := []int{4, 10, 20, 40, 100, 200}
	marks := map[byte][]float64{}
	for _, family := range []struct {
		name   string
		memory int
		most   int // states: an exponential of 4·200 rows takes long to prepare
		marks  string
	}{{"elastic shaft, lock sets precomputed", 0, 100, "qe"}, {"elastic shaft, in place", inPlace, 200, "QE"}} {
		g := costGrowth{name: family.name}
		for _, n := range all {
			if n > family.most {
				continue
			}
			if r := g.measure(t, n, 3, costShaft(n/2), family.memory); r.Tables.N != n || r.Tables.Split != 1 {
				t.Errorf("%d states and %d substeps a tick, want %d and 1", r.Tables.N, r.Tables.Split, n)
			}
		}
		t.Logf("%s", g.table("states"))
		marks[family.marks[0]], marks[family.marks[1]] = g.quiet, g.busy
		var x, q, e []float64
		for i, n := range g.sizes {
			if n >= 20 {
				x = append(x, math.Log(float64(n)))
				q, e = append(q, math.Log(g.quiet[i])), append(e, math.Log(g.busy[i]))
			}
		}
		t.Logf("%s: quiet n^%.2f, busy n^%.2f from 20 states on", family.name, slope(x, q), slope(x, e))
		if !(slope(x, q) <= 2.6 && slope(x, e) <= 2.6) {
			t.Errorf("%s: the cost grows with n^%.2f quiet and n^%.2f busy; products of an n×n matrix and a vector grow with n²", family.name, slope(x, q), slope(x, e))
		}
	}
	t.Logf("%s", costPlot("tick over states; q, e quiet and busy precomputed, Q, E in place", all, marks))
}

// The tick does not allocate: in events, in cascades of events, with 20 friction elements that are
// factorised in place, and after a fault.
func TestTickNeverAllocates(t *testing.T) {
	for _, c := range []struct {
		name, plant string
		frictions   int // friction elements; 0: the plant's own input waveforms
		opt         kernel.Options
		ticks       int
	}{
		{"automatic4", "automatic4", 0, kernel.Options{Period: 10 * time.Millisecond}, 2500},
		{"automatic4, papers", "automatic4", 0, kernel.Options{Period: 10 * time.Millisecond, Scheme: kernel.Papers}, 2500},
		{"hybrid", "hybrid", 0, kernel.Options{Period: 5 * time.Millisecond}, 4000},
		{"hybrid, held", "hybrid", 0, kernel.Options{Period: 5 * time.Millisecond, Form: kernel.Held}, 4000},
		{"powershift", "powershift", 0, kernel.Options{Period: 5 * time.Millisecond}, 700},
		{"20 in a chain", costChain(20), 20, kernel.Options{Period: time.Millisecond}, 200},
		{"20 in parallel", costParallel(20), 20, kernel.Options{Period: time.Millisecond}, 200},
		{"20 with a budget of one event", costChain(20), 20, kernel.Options{Period: time.Millisecond, EventBudget: 1}, 200},
	} {
		r := rig.Prepare(t, c.plant, c.opt, c.frictions > 0)
		command := costBusy(c.frictions)
		transitions, fault := 0.0, 0.0
		run := func() {
			r.Reset()
			for k := range c.ticks {
				if c.frictions > 0 {
					command(k, r.U)
				}
				r.Step(r.Y, r.U)
			}
			transitions = r.Y[len(r.Y)-2]
			if c.frictions > 0 {
				r.U[len(r.U)-1] = math.NaN()
				for range 5 { // the plant may lag by three periods
					r.Step(r.Y, r.U)
				}
				fault = r.Y[len(r.Y)-1]
			}
		}
		// A tick that allocates does so in each run; other goroutines of the process do not.
		allocs := testing.AllocsPerRun(1, run)
		for try := 0; try < 2 && allocs != 0; try++ {
			allocs = testing.AllocsPerRun(1, run)
		}
		if c.frictions > 0 && fault == 0 {
			t.Errorf("%s: no fault from a torque that is not a number", c.name)
		}
		if allocs != 0 {
			t.Errorf("%s: %g allocations in %d ticks", c.name, allocs, c.ticks)
		}
		if !(transitions >= 10) {
			t.Errorf("%s: %g transitions, want at least 10", c.name, transitions)
		}
		t.Logf("%s: %d ticks, %.0f transitions, no allocation", c.name, c.ticks, transitions)
	}
}
