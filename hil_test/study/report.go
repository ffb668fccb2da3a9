package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/rt/plot"
)

// papers are the times per step of table 7, over that of the linear system.
var papers = map[string]float64{
	nLinear: 1, nFree: 1.494 / 0.562, nAdjust: 1.346 / 0.562, nFixed: 1.282 / 0.562, nPrinted: 0.640 / 0.562,
	nPower: 1.401 / 0.562,
}

func (r *result) markdown() []byte {
	p := &page{}
	p.line("# Ways to step a mass on a spring with regions\n")
	p.line("000 is the thesis; the problems are those of its tables. An error is the largest error of "+
		"position and speed over %g s (table 10, which is sensitive: %g s), as a part of their range, against "+
		"the exact motion.\n", r.until, table10.lasts)
	p.line("## Error at three steps, table 6 (figures 31 to 36)\n")
	p.line("Errors of the state at its own time; in brackets, if different, of the state at the tick that publishes it.\n")
	p.table("| method | 000 | 10 ms | 100 ms | 200 ms |")
	for _, f := range r.methods[1:] {
		v := f.views
		p.line("| %s | %s | %s | %s | %s |", f.name, f.source, v[0].text(), v[1].text(), v[2].text())
	}

	p.line("\nThe exact motion crosses %d boundaries; %q shortens %d steps of 100 ms (table 8 has 20).\n",
		len(r.views[1].truth.list)-1, nAdjust, r.methods[index(nAdjust)].views[1].adjusted)
	r.orders(p)
	r.frictionAndInput(p)
	r.energies(p)
	p.line("\n## Cost of a step over that of the linear system (table 7)\n")
	p.line("300 steps of 0.1 s of table 6, minimum of %d rounds; the linear system took %.0f ns "+
		"here. lockstep is the whole tick of the kernel, for any plant, with inputs, outputs and events.\n",
		r.rounds, r.methods[0].cost)
	p.table("| method | here | 000 |")
	for _, f := range r.methods {
		paper := "-"
		if v, ok := papers[f.name]; ok {
			paper = fmt.Sprintf("%.2f", v)
		}
		p.line("| %s | %.2f | %s |", f.name, f.cost/r.methods[0].cost, paper)
	}

	return p.Bytes()
}

// orders writes the table of the slopes in error-over-step-*.svg.
func (r *result) orders(p *page) {
	p.line("## Order of the error in the step (error-over-step-*.svg)\n")
	p.line("The theory holds for a force without jumps and inputs: tables 6, 2 and 3. Table 3 " +
		"has a damper with regions, table 9 dry friction, table 10 an input.\n")
	p.table("| method | theory | table 6 | table 2 | table 3 | table 9 | table 10 | at the tick, table 6 |")
	for _, f := range r.methods[1:] {
		theory := fmt.Sprint(f.order)
		switch f.order {
		case exact:
			theory = "exact"
		case 0:
			theory = "none"
		}

		orders := ""
		for _, a := range f.accuracy {
			orders += power10(a.order) + " | "
		}
		p.line("| %s | %s | %s%s |", f.name, theory, orders, power10(f.accuracy[0].late))
	}
}

// frictionAndInput writes the table of figures 40 to 43.
func (r *result) frictionAndInput(p *page) {
	dry, forced := &r.views[3], &r.views[4]
	last := dry.truth.list[len(dry.truth.list)-1]
	p.line("\n## Dry friction at %g ms and an input at %g ms (tables 9 and 10, figures 40 to 43)\n",
		dry.h*1e3, forced.h*1e3)
	p.line("The exact motion of table 9 has %d crossings and reversals. The last is at %.9g s, "+
		"%.9g mm and %.3g m/s. Errors as above.\n",
		len(dry.truth.list)-1, last.t, last.z[0]*1e3, last.z[1])
	p.table(fmt.Sprintf("| method | table 9 | after %g s: position, mm | speed, m/s | table 10 |", r.until))
	for _, f := range r.methods[1:] {
		w := &f.views[3]
		end := len(w.x) - 1
		p.line("| %s | %s | %.7g | %.1e | %s |", f.name, w.text(), w.x[end]*1e3, w.v[end], f.views[4].text())
	}
}

func (r *result) energies(p *page) {
	p.line("\n## Energy without a damper, table 6 (figures 38 and 39)\n")
	p.line("Change of the energy after %g s, as a part of that at the start. Last column: the shortest step "+
		"at which the damped mass of table 5 leaves its initial range.\n", r.until)
	p.table(fmt.Sprintf("| method | 10 ms | 100 ms | 100 ms, %d swings | leaves from |", r.swings))
	for _, f := range r.methods[1:] {
		from := "-"
		if f.leaves > 0 {
			from = fmt.Sprintf("%.2f s", f.leaves)
		}
		p.line("| %s | %s | %s | %s | %s |", f.name, signed(f.fine), signed(f.end), signed(f.long), from)
	}

	p.line("\nExternal force at 10 ms over the inner stiffness (the spring has 1 and 20 N/m):\n")
	p.table("| inner, N/m | energy |")
	for _, i := range r.inner {
		p.line("| %g | %s |", i.c, signed(i.end))
	}
}

func (r *reach) text() string {
	if r.own == r.published {
		return fmt.Sprintf("%.1e", r.own)
	}
	return fmt.Sprintf("%.1e (%.1e)", r.own, r.published)
}

// signed formats a relative change; above 1e100 it is "no bound".
func signed(v float64) string {
	if !(math.Abs(v) < 1e100) {
		return "no bound"
	}
	return fmt.Sprintf("%+.1e", v)
}

func power10(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func (r *result) accuracyCSV() []byte {
	b := &page{}
	b.line("problem,method,step[s],error[1],error_at_tick[1],cost_per_second[linear steps]")
	for k := range problems {
		for _, f := range r.methods {
			a := &f.accuracy[k]
			for j, h := range r.steps {
				b.line("%q,%q,%g,%.4g,%.4g,%.4g", a.p.name, f.name, h, a.own[j], a.published[j], a.work[j])
			}
		}
	}

	return b.Bytes()
}

func (r *result) methodsCSV() []byte {
	b := &page{}
	b.line("method,theory_order,order_table6,order_table2,order_table3,order_table9,order_table10," +
		"energy_10ms[1],energy_100ms[1],energy_long[1],leaves_from[s],cost[linear steps]")
	for _, f := range r.methods {
		fmt.Fprintf(b, "%q,%d,", f.name, f.order)
		for _, a := range f.accuracy {
			fmt.Fprintf(b, "%.3g,", a.order)
		}
		b.line("%.4g,%.4g,%.4g,%g,%.4g", f.fine, f.end, f.long, f.leaves, f.cost/r.methods[0].cost)
	}

	return b.Bytes()
}

// drawn are the methods in the plots of motion and energy.
var drawn = []string{nEuler, nPower, nTaylor, nFree, nInner, nPrinted, nFixed, nAdjust, nExact, nOurs}

// located are the methods of chapters 3.2.4 and 3.2.5, with simpler ones for comparison.
var located = []string{nTaylor, nFixed, nAdjust, nExact, nOurs}

// near are the methods of figure 39.
var near = []string{nFixed, nExact, nOurs}

// files returns the tables and figures.
func (r *result) files() files {
	out := files{"study.md": r.markdown(), "accuracy.csv": r.accuracyCSV(), "methods.csv": r.methodsCSV()}
	for i, w := range r.views {
		state, time := r.motion(i)
		out[fmt.Sprintf("figure%d.svg", w.figure)] = draw(state)
		out[fmt.Sprintf("figure%d.svg", w.figure+1)] = draw(time)
	}

	for i, p := range problems {
		step, cost := r.precisions(i)
		name := strings.ReplaceAll(p.name, " ", "")
		out["error-over-step-"+name+".svg"] = draw(step)
		out["error-over-cost-"+name+".svg"] = draw(cost)
	}

	out["figure37.svg"] = draw(r.bars())
	all := r.leaks(append(slices.Clone(drawn), nPower99), 2)
	all.Title = "Figure 38: " + all.Title
	out["figure38.svg"] = draw(all)
	few := r.leaks(near, 1e-4)
	few.Title = "Figure 39: " + few.Title + ", close-up"
	out["figure39.svg"] = draw(few)
	return out
}

// motion returns the charts of a view, over the state and over time.
func (r *result) motion(place int) (state, time plot.Chart) {
	w := r.views[place]
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
	title := func(figure int) string {
		return fmt.Sprintf("Figure %d: %s with steps of %g ms", figure, w.truth.p.name, w.h*1e3)
	}
	wide := func(name string, j int) plot.Axis {
		return plot.Axis{Name: name, Low: -0.8 * w.truth.ranges[j], High: 0.8 * w.truth.ranges[j]}
	}
	state = plot.Chart{
		Title: title(w.figure), X: wide("x, m", 0), Y: wide("v, m/s", 1),
		Curves: []plot.Curve{curve("exact", band, 6, x, v)},
	}
	time = plot.Chart{
		Title: title(w.figure + 1), X: plot.Axis{Name: "t, s", High: until}, Y: wide("x, m", 0),
		Curves: []plot.Curve{curve("exact", band, 6, t, x)},
	}
	for _, name := range names {
		m := r.methods[index(name)]
		f := m.views[place]
		n, _ := slices.BinarySearch(f.t, until)
		t, v := append([]float64{0}, f.t[:n]...), append([]float64{0}, f.v[:n]...)
		x := append([]float64{w.truth.p.x0}, f.x[:n]...)
		state.Curves = append(state.Curves, curve(name, m.colour, 1.3, x, v))
		time.Curves = append(time.Curves, curve(name, m.colour, 1.3, t, x))
	}

	return state, time
}

// precisions returns the charts of the errors over step and over cost.
func (r *result) precisions(problem int) (step, cost plot.Chart) {
	errors := plot.Axis{Name: "largest error over range", Low: 1e-15, High: 10, Log: true}
	name := problems[problem].name
	step = plot.Chart{
		Title: "Error over step, " + name, Y: errors, X: plot.Axis{Name: "step, s", Low: 1e-4, High: 0.3, Log: true},
	}
	const work = "cost of a second of motion, in steps of the linear system"
	cost = plot.Chart{
		Title: "Error over cost, " + name, Y: errors, X: plot.Axis{Name: work, Low: 3, High: 1e6, Log: true},
	}
	for _, f := range r.methods[1:] {
		a := &f.accuracy[problem]
		step.Curves = append(step.Curves, curve(f.name, f.colour, 1.6, r.steps, a.own))
		cost.Curves = append(cost.Curves, curve(f.name, f.colour, 1.6, a.work, a.own))
	}

	return step, cost
}

// bars returns the chart of the costs of a step, with the first method at the top.
func (r *result) bars() plot.Chart {
	c := plot.Chart{
		Title: "Figure 37: cost of a step, table 6 with steps of 100 ms",
		X:     plot.Axis{Name: "over that of the linear system", Low: 0.5, High: 100, Log: true},
		Y:     plot.Axis{Low: -float64(len(methods)), High: 1, Hidden: true},
	}
	for i, m := range r.methods {
		v, at := m.cost/r.methods[0].cost, -float64(i)
		name := fmt.Sprintf("%s: %.2f", m.name, v)
		c.Curves = append(c.Curves, curve(name, m.colour, 14, []float64{0.5, v}, []float64{at, at}))
	}

	return c
}

// leaks returns the chart of the energies over time, up to most.
func (r *result) leaks(names []string, most float64) plot.Chart {
	c := plot.Chart{
		Title: "energy without a damper, table 6 with steps of 100 ms", X: plot.Axis{Name: "t, s", High: r.until},
		Y: plot.Axis{Name: "energy over that at the start, less 1", Low: max(-most, -1), High: most},
	}
	for _, name := range names {
		f := r.methods[index(name)]
		c.Curves = append(c.Curves, curve(name, f.colour, 1.5, f.t, f.e))
	}

	return c
}
