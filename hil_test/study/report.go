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
	p("000 is the thesis; its problems are those of its tables. An error is the largest of place and speed over %g s (table 10: %g s, it is sensitive), as a part of their range, against the exact motion.\n", r.until, table10.lasts)
	p("## Error at three steps, table 6 (figures 31 to 36)\n")
	p("Of the state at the time it is of; in brackets, where it differs, of what comes out at the tick.\n")
	p("| method | 000 | 10 ms | 100 ms | 200 ms |\n|---|---|---|---|---|")
	for i, m := range methods {
		if m.name == nLinear {
			continue
		}
		p("| %s | %s | %s | %s | %s |", m.name, m.source, r.views[0].rows[i].text(), r.views[1].rows[i].text(), r.views[2].rows[i].text())
	}
	p("\nThe exact motion passes %d borders; %q shortens %d steps of 100 ms (table 8 has 20).\n", len(r.views[1].truth.list)-1, nAdjust, r.views[1].rows[index(nAdjust)].adjusted)
	r.orders(p)
	r.others(p)
	r.energies(p)
	p("\n## Cost of a step over that of the linear system (table 7)\n")
	p("300 steps of 0.1 s of table 6, the least of %d rounds; the linear system took %.0f ns here. lockstep is the whole tick of the product's kernel: any plant, inputs, outputs, events.\n", r.rounds, r.costs[0])
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

// orders is the table of the slopes in error-over-step-*.svg.
func (r *result) orders(p func(string, ...any)) {
	p("## Order: the error goes with the step to this power (error-over-step-*.svg)\n")
	p("Theory is that of a force without jumps and without an input: tables 6, 2 and 3. Table 3 has a damper of regions, table 9 dry friction, table 10 an input.\n")
	p("| method | theory | table 6 | table 2 | table 3 | table 9 | table 10 | at the tick, table 6 |\n|---|---|---|---|---|---|---|---|")
	for i, m := range methods {
		if m.name == nLinear {
			continue
		}
		theory := fmt.Sprint(m.order)
		switch m.order {
		case exact:
			theory = "exact"
		case 0:
			theory = "none"
		}
		found := ""
		for k := range problems {
			found += power10(r.accuracy[k*len(methods)+i].order) + " | "
		}
		p("| %s | %s | %s%s |", m.name, theory, found, power10(r.accuracy[i].late))
	}
}

// others is the table of figures 40 to 43.
func (r *result) others(p func(string, ...any)) {
	dry, driven := &r.views[3], &r.views[4]
	last := dry.truth.list[len(dry.truth.list)-1]
	p("\n## Dry friction at %g ms and an input at %g ms (tables 9 and 10, figures 40 to 43)\n", dry.h*1e3, driven.h*1e3)
	p("The exact motion of table 9 passes %d borders and turns, the last at %.9g s, where it is at %.9g mm with %.3g m/s. Errors as above.\n", len(dry.truth.list)-1, last.t, last.z[0]*1e3, last.z[1])
	p("| method | table 9 | after %g s: place, mm | speed, m/s | table 10 |\n|---|---|---|---|---|", r.until)
	for i, m := range methods {
		if m.name == nLinear {
			continue
		}
		w := &dry.rows[i]
		end := len(w.x) - 1
		p("| %s | %s | %.7g | %.1e | %s |", m.name, w.text(), w.x[end]*1e3, w.v[end], driven.rows[i].text())
	}
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
	for _, a := range r.accuracy {
		for j, h := range r.steps {
			fmt.Fprintf(&b, "%q,%q,%g,%.4g,%.4g,%.4g\n", a.p.name, a.m.name, h, a.own[j], a.published[j], a.work[j])
		}
	}
	return b.Bytes()
}

func (r *result) methodsCSV() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "method,theory_order,order_table6,order_table2,order_table3,order_table9,order_table10,energy_10ms[1],energy_100ms[1],energy_long[1],leaves_from[s],cost[linear steps]")
	for i, m := range methods {
		e := r.energy[i]
		fmt.Fprintf(&b, "%q,%d,", m.name, m.order)
		for k := range problems {
			fmt.Fprintf(&b, "%.3g,", r.accuracy[k*len(methods)+i].order)
		}
		fmt.Fprintf(&b, "%.4g,%.4g,%.4g,%g,%.4g\n", e.fine, e.end, e.long, r.unstable[i], r.costs[i]/r.costs[0])
	}
	return b.Bytes()
}
