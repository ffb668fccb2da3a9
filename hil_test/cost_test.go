package hiltest

import (
	"fmt"
	"maps"
	"math"
	"slices"
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

// costRig is a plant on a grid, to be stepped against the clock.
type costRig struct {
	*kernel.Kernel
	tables *kernel.Tables
	y, u   []float64
}

// costSystem assembles a plant: an embedded one by its name, or the text of one.
func costSystem(t testing.TB, plant string) *model.System {
	t.Helper()
	data := []byte(plant)
	if !strings.Contains(plant, "\n") {
		var err error
		if data, err = plants.Read(plant); err != nil {
			t.Fatal(err)
		}
	}
	p, err := plantfile.Load("plant.yaml", data, library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// costPrepare puts a plant on a grid; driven: all its inputs come from outside.
func costPrepare(t testing.TB, plant string, opt kernel.Options, driven bool) *costRig {
	t.Helper()
	sys := costSystem(t, plant)
	opt.Driven = make([]bool, len(sys.Inputs))
	for i := range opt.Driven {
		opt.Driven[i] = driven
	}
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	r := &costRig{Kernel: kernel.New(tables), tables: tables}
	r.y = make([]float64, len(tables.Outputs))
	r.u = append([]float64(nil), tables.Start...)
	return r
}

// costRun is the least time of a whole run, per step, over a number of runs, ns:
// the kernel's cost and not that of what else the machine does.
func (r *costRig) costRun(ticks, runs int, command func(tick int, u []float64)) float64 {
	best := time.Duration(math.MaxInt64)
	for range runs {
		r.Reset()
		at := time.Now()
		for k := range ticks {
			if command != nil {
				command(k, r.u)
			}
			r.Step(r.y, r.u)
		}
		best = min(best, time.Since(at))
	}
	return float64(best.Nanoseconds()) / float64(ticks)
}

// costTicks is the least time of every tick over a number of runs, without that
// of the clock: their mean and the dearest, ns, and the events of a run.
func (r *costRig) costTicks(ticks, runs int, command func(tick int, u []float64)) (mean, dearest, events float64) {
	clock := time.Hour
	for range 1000 {
		at := time.Now()
		clock = min(clock, time.Since(at))
	}
	least := make([]time.Duration, ticks)
	for run := range runs {
		r.Reset()
		for k := range ticks {
			if command != nil {
				command(k, r.u)
			}
			at := time.Now()
			r.Step(r.y, r.u)
			if d := time.Since(at); run == 0 || d < least[k] {
				least[k] = d
			}
		}
	}
	for _, d := range least {
		ns := float64((d - clock).Nanoseconds())
		mean, dearest = mean+ns/float64(ticks), max(dearest, ns)
	}
	return mean, dearest, r.y[len(r.y)-3]
}

// costChain is a chain of bodies with a clutch between any two: as many directions
// as clutches. Every capacity and a torque on every body come from outside.
func costChain(frictions int) string {
	var b strings.Builder
	costInputs(&b, frictions, frictions+1)
	for i := range frictions + 1 {
		fmt.Fprintf(&b, "  J%d: {type: inertia, J: %g}\n  t%d: {type: torque, flange: J%d, tau: u%d}\n", i, 0.01+0.001*float64(i), i, i, i)
	}
	for i := range frictions {
		fmt.Fprintf(&b, "  f%d: {type: clutch, a: J%d, b: J%d, mu: 1, cgeo: 1, peak: 1.1, fn: c%d}\n", i, i, i+1, i)
	}
	return b.String()
}

// costBundle has its friction elements side by side between three bodies and the
// ground: locked together they are redundant.
func costBundle(frictions int) string {
	var b strings.Builder
	costInputs(&b, frictions, 3)
	for i := range 3 {
		fmt.Fprintf(&b, "  J%d: {type: inertia, J: %g}\n  t%d: {type: torque, flange: J%d, tau: u%d}\n", i, 0.01+0.001*float64(i), i, i, i)
	}
	for i := range frictions {
		if i%3 == 2 {
			fmt.Fprintf(&b, "  f%d: {type: brake, flange: J2, mu: 1, cgeo: 1, peak: 1.1, fn: c%d}\n", i, i)
			continue
		}
		fmt.Fprintf(&b, "  f%d: {type: clutch, a: J%d, b: J%d, mu: 1, cgeo: 1, peak: 1.1, fn: c%d}\n", i, i%3, i%3+1, i)
	}
	return b.String()
}

// costShaft is a long elastic shaft of bodies and springs, held at one end, with
// three friction elements: a brake on the other, one in the middle, a clutch over
// the first spring. It has two states per body.
func costShaft(bodies int) string {
	var b strings.Builder
	costInputs(&b, 3, 1)
	b.WriteString("  t0: {type: torque, flange: J0, tau: u0}\n")
	for i := range bodies {
		next := fmt.Sprintf("J%d", i+1)
		if i == bodies-1 {
			next = "ground"
		}
		fmt.Fprintf(&b, "  J%d: {type: inertia, J: 0.1}\n  k%d: {type: spring_damper, a: J%d, b: %s, c: 1e4, d: 0.5}\n", i, i, i, next)
	}
	fmt.Fprintf(&b, "  f0: {type: brake, flange: J0, mu: 1, cgeo: 1, fn: c0}\n")
	fmt.Fprintf(&b, "  f1: {type: brake, flange: J%d, mu: 1, cgeo: 1, fn: c1}\n", bodies/2)
	fmt.Fprintf(&b, "  f2: {type: clutch, a: J0, b: J1, mu: 1, cgeo: 1, fn: c2}\n")
	return b.String()
}

// costInputs begins a plant with capacities c0.. and torques u0.. as inputs.
func costInputs(b *strings.Builder, capacities, torques int) {
	b.WriteString("plant: cost\ninputs:\n")
	for i := range capacities {
		fmt.Fprintf(b, "  c%d: {unit: N, min: 0, max: 1000}\n", i)
	}
	for i := range torques {
		fmt.Fprintf(b, "  u%d: {unit: N.m, min: -1000, max: 1000}\n", i)
	}
	b.WriteString("elements:\n  ground: {type: fixed}\n")
}

// costQuiet locks everything and pulls a little: nothing happens after tick 0.
func costQuiet(frictions int) func(int, []float64) {
	return func(_ int, u []float64) {
		for i := range u {
			u[i] = 1000
			if i >= frictions {
				u[i] = 1 + float64(i)
			}
		}
	}
}

// costBusy changes every capacity and every torque at every tick, with a period of
// 97 ticks that no plant is in tune with: locks break, slips pass through zero.
func costBusy(frictions int) func(int, []float64) {
	return func(tick int, u []float64) {
		for i := range u {
			_, part := math.Modf(float64((tick%97+1)*(i+3)) * math.Phi)
			u[i] = 12 * part
			if i >= frictions {
				u[i] = 40 * (part - 0.5)
			}
		}
	}
}

// costPlot draws cost over size in characters, both axes logarithmic.
func costPlot(title string, sizes []int, series map[byte][]float64) string {
	const width, height = 60, 16
	low, high := math.Inf(1), 0.0
	for _, s := range series {
		for _, v := range s {
			if v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	var rows [height + 1][width + 1]byte
	for i := range rows {
		for j := range rows[i] {
			rows[i][j] = ' '
		}
	}
	place := func(v, lo, hi float64, n int) int {
		return int(math.Round(math.Log(v/lo) / math.Log(hi/lo) * float64(n)))
	}
	for _, mark := range slices.Sorted(maps.Keys(series)) {
		for i, v := range series[mark] {
			if v > 0 {
				x := place(float64(sizes[i]), float64(sizes[0]), float64(sizes[len(sizes)-1]), width)
				rows[height-place(v, low, high, height)][x] = mark
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", title)
	for i := range rows {
		ns := low * math.Pow(high/low, 1-float64(i)/height)
		fmt.Fprintf(&b, "%9.0f ns |%s\n", ns, strings.TrimRight(string(rows[i][:]), " "))
	}
	fmt.Fprintf(&b, "%12s +%s\n%13s %-*d%d\n", "", strings.Repeat("-", width), "", width-2, sizes[0], sizes[len(sizes)-1])
	return b.String()
}
