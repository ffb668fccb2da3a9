package cost

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// costChain returns a chain of bodies with a clutch between any two neighbours: all locks are
// independent. Inputs are the capacity of every clutch and a torque on every body.
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

// costParallel returns a plant with friction elements in parallel between three bodies and the
// ground: their locks are redundant.
func costParallel(frictions int) string {
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

// costShaft returns a long elastic shaft of bodies and springs, fixed at one end. Its three
// friction elements are a brake at the free end, a brake in the middle and a clutch over the first
// spring. It has two states per body.
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

// costInputs writes the head of a plant with capacities c0.. and torques u0.. as inputs.
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

// costQuiet returns inputs that lock all elements under small torques: no event after tick 0.
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

// costBusy returns inputs that change every capacity and every torque at every tick, with a period
// of 97 ticks, at which no plant resonates: locks break, slips pass through zero.
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

// costPlot returns a plot of cost over size in characters, with two logarithmic axes.
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
