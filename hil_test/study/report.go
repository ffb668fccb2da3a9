package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// papers are table 7's times per step over that of the linear system.
var papers = map[string]float64{nLinear: 1, nFree: 1.494 / 0.562, nAdjust: 1.346 / 0.562, nFixed: 1.282 / 0.562, nPrinted: 0.640 / 0.562, nPower: 1.401 / 0.562}

// write leaves the tables and plots in a folder.
func (r *result) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	files := r.plots()
	files["study.md"] = r.markdown()
	files["accuracy.csv"] = r.accuracyCSV()
	files["methods.csv"] = r.methodsCSV()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (r *result) markdown() []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Ways to step a mass on a spring with regions\n")
	p("000 is the thesis; its problems are those of its tables. An error is the largest of place and speed over %g s, as a part of their range, against the exact motion.\n", r.until)
	p("## Error at three steps, table 6 (figures 31 to 36)\n")
	p("Of the state at the time it is of; in brackets, where it differs, of what comes out at the tick.\n")
	p("| method | 000 | 10 ms | 100 ms | 200 ms |\n|---|---|---|---|---|")
	for i, m := range methods {
		if m.name == nLinear {
			continue
		}
		p("| %s | %s | %s | %s | %s |", m.name, m.source, r.figures[0][i].text(), r.figures[1][i].text(), r.figures[2][i].text())
	}
	p("\nThe exact motion passes %d borders; %q shortens %d steps of 100 ms (table 8 has 20).\n", len(r.truth.list)-1, nAdjust, r.figures[1][index(nAdjust)].adjusted)
	p("## Order: the error goes with the step to this power (error-over-step-*.svg)\n")
	p("| method | theory | table 6 | table 2 | at the tick, table 6 |\n|---|---|---|---|---|")
	for i, m := range methods {
		if m.name == nLinear {
			continue
		}
		one, two := r.accuracy[i], r.accuracy[len(methods)+i]
		theory := fmt.Sprint(m.order)
		switch m.order {
		case exact:
			theory = "exact"
		case 0:
			theory = "none"
		}
		p("| %s | %s | %s | %s | %s |", m.name, theory, power10(one.order), power10(two.order), power10(one.late))
	}
	r.energies(p)
	p("\n## Cost of a step over that of the linear system (table 7)\n")
	p("300 steps of 0.1 s of table 6, the median of %d rounds; the linear system took %.0f ns here. lockstep is the whole tick of the product's kernel: any plant, inputs, outputs, events.\n", r.rounds, r.costs[0])
	p("| method | here | 000 |\n|---|---|---|")
	for i, m := range methods {
		paper := "-"
		if v, ok := papers[m.name]; ok {
			paper = fmt.Sprintf("%.2f", v)
		}
		p("| %s | %.2f | %s |", m.name, r.costs[i]/r.costs[0], paper)
	}
	return b.Bytes()
}

func (r *result) energies(p func(string, ...any)) {
	p("\n## Energy without a damper, table 6 (figures 38 and 39)\n")
	p("What has come to it after %g s, as a part of that at the start. Last: the shortest step from which on the damped mass of table 5 leaves the range it was let go in.\n", r.until)
	p("| method | 10 ms | 100 ms | 100 ms, %d swings | leaves from |\n|---|---|---|---|---|", r.swings)
	for i, e := range r.energy {
		if e.m.name == nLinear {
			continue
		}
		from := "-"
		if h := r.unstable[i]; h > 0 {
			from = fmt.Sprintf("%.2f s", h)
		}
		p("| %s | %s | %s | %s | %s |", e.m.name, signed(e.fine), signed(e.end), signed(e.long), from)
	}
	p("\nExternal force at 10 ms, by its inner stiffness (the spring has 1 and 20 N/m):\n")
	p("| inner, N/m | energy |\n|---|---|")
	for _, i := range r.inner {
		p("| %g | %s |", i.c, signed(i.end))
	}
}

func (r *reach) text() string {
	if r.own == r.published {
		return fmt.Sprintf("%.1e", r.own)
	}
	return fmt.Sprintf("%.1e (%.1e)", r.own, r.published)
}

// signed is a part that came to something; what is out of all measure has no number.
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
	var b bytes.Buffer
	fmt.Fprintln(&b, "problem,method,step[s],error[1],error_at_tick[1],cost_per_second[linear steps]")
	for i, a := range r.accuracy {
		for j, h := range r.steps {
			fmt.Fprintf(&b, "%q,%q,%g,%.4g,%.4g,%.4g\n", a.p.name, a.m.name, h, a.own[j], a.published[j], r.work(i%len(methods), h))
		}
	}
	return b.Bytes()
}

// work is what a second of motion costs, in steps of the linear system.
func (r *result) work(method int, h float64) float64 { return r.costs[method] / r.costs[0] / h }

func (r *result) methodsCSV() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "method,theory_order,order_table6,order_table2,energy_10ms[1],energy_100ms[1],energy_long[1],leaves_from[s],cost[linear steps]")
	for i, m := range methods {
		e := r.energy[i]
		fmt.Fprintf(&b, "%q,%d,%.3g,%.3g,%.4g,%.4g,%.4g,%g,%.4g\n", m.name, m.order, r.accuracy[i].order, r.accuracy[len(methods)+i].order, e.fine, e.end, e.long, r.unstable[i], r.costs[i]/r.costs[0])
	}
	return b.Bytes()
}
