package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// drawn are the methods in the plots of motion and energy: those of 000, and ours.
var drawn = []string{nEuler, nPower, nTaylor, nFree, nInner, nPrinted, nFixed, nAdjust, nExact, nOurs}

// located are those of chapters 3.2.4 and 3.2.5, and what they are better than.
var located = []string{nTaylor, nFixed, nAdjust, nExact, nOurs}

// near are those of figure 39.
var near = []string{nFixed, nExact, nOurs}

// plots are the figures by file name.
func (r *result) plots() map[string][]byte {
	out := map[string][]byte{}
	for i := range r.views {
		w := &r.views[i]
		state, time := w.motion()
		out[fmt.Sprintf("figure%d.svg", w.figure)] = state.svg()
		out[fmt.Sprintf("figure%d.svg", w.figure+1)] = time.svg()
	}
	for i, p := range problems {
		step, cost := r.precisions(i)
		name := strings.ReplaceAll(p.name, " ", "")
		out["error-over-step-"+name+".svg"] = step.svg()
		out["error-over-cost-"+name+".svg"] = cost.svg()
	}
	bars := r.bars()
	out["figure37.svg"] = bars.svg()
	all := r.leaks(append(slices.Clone(drawn), nPower99), 2)
	all.title = "Figure 38: " + all.title
	out["figure38.svg"] = all.svg()
	few := r.leaks(near, 1e-4)
	few.title = "Figure 39: " + few.title + ", close-up"
	out["figure39.svg"] = few.svg()
	return out
}

// motion is the begin of a view, over the state and over time.
func (w *view) motion() (state, time chart) {
	until, names := 10.0, drawn // s
	if w.figure >= 40 {
		until, names = w.truth.p.span(20), located
	}
	var t, x, v []float64
	for i := range 4001 {
		at := until * float64(i) / 4000
		z := w.truth.at(at)
		t, x, v = append(t, at), append(x, z[0]), append(v, z[1])
	}
	const band = "#cfcfcf"
	wide := func(j int) axis { return axis{low: -0.8 * w.truth.ranges[j], high: 0.8 * w.truth.ranges[j]} }
	what := fmt.Sprintf("%s with steps of %g ms", w.truth.p.name, w.h*1e3)
	state = chart{title: fmt.Sprintf("Figure %d: %s", w.figure, what), across: "x, m", up: "v, m/s", x: wide(0), y: wide(1), curves: []curve{{"exact", band, 6, x, v}}}
	time = chart{title: fmt.Sprintf("Figure %d: %s", w.figure+1, what), across: "t, s", up: "x, m", x: axis{high: until}, y: wide(0), curves: []curve{{"exact", band, 6, t, x}}}
	for _, name := range names {
		i := index(name)
		f, m := w.rows[i], methods[i]
		n, _ := slices.BinarySearch(f.t, until)
		x, v := append([]float64{w.truth.p.x0}, f.x[:n]...), append([]float64{0}, f.v[:n]...)
		state.curves = append(state.curves, curve{name, m.colour, 1.3, x, v})
		time.curves = append(time.curves, curve{name, m.colour, 1.3, append([]float64{0}, f.t[:n]...), x})
	}
	return state, time
}

// precisions are the errors over step and over cost.
func (r *result) precisions(problem int) (step, cost chart) {
	list := r.accuracy[problem*len(methods) : (problem+1)*len(methods)]
	errors := axis{1e-15, 10, true}
	name := list[0].p.name
	step = chart{title: "Error over step, " + name, across: "step, s", up: "largest error over range", x: axis{1e-4, 0.3, true}, y: errors}
	cost = chart{title: "Error over cost, " + name, across: "cost of a second of motion, in steps of the linear system", up: step.up, x: axis{3, 1e6, true}, y: errors}
	for _, a := range list[1:] {
		step.curves = append(step.curves, curve{a.m.name, a.m.colour, 1.6, r.steps, a.own})
		cost.curves = append(cost.curves, curve{a.m.name, a.m.colour, 1.6, a.work, a.own})
	}
	return step, cost
}

// bars are the costs of a step.
func (r *result) bars() chart {
	c := chart{title: "Figure 37: cost of a step, table 6 with steps of 100 ms", across: "over that of the linear system",
		x: axis{0.5, 100, true}, y: axis{low: float64(len(methods)), high: -1}}
	for i, m := range methods {
		v := r.costs[i] / r.costs[0]
		c.curves = append(c.curves, curve{fmt.Sprintf("%s: %.2f", m.name, v), m.colour, 14, []float64{0.5, v}, []float64{float64(i), float64(i)}})
	}
	return c
}

// leaks are energies over time, up to most.
func (r *result) leaks(names []string, most float64) chart {
	c := chart{title: "energy without a damper, table 6 with steps of 100 ms", across: "t, s", up: "energy over that at the start, less 1",
		x: axis{high: r.until}, y: axis{low: max(-most, -1), high: most}}
	for _, name := range names {
		e := r.energy[index(name)]
		level := slices.Clone(e.e)
		for i, v := range level {
			if math.IsInf(v, 0) {
				level[i] = math.NaN()
			}
		}
		c.curves = append(c.curves, curve{name, e.m.colour, 1.5, e.t, level})
	}
	return c
}
