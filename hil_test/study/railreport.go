package main

import (
	"fmt"
	"math"
	"time"

	"lockstep/rt/plot"
)

// allowed is the allowed error of section 9.5, m/s. paperCoarse and paperFine are the
// configurations that Gyebroszki calls equivalent.
const allowed = 0.02

var (
	paperCoarse = setting{20 * time.Millisecond, 10, 2, paperSign}
	paperFine   = setting{5 * time.Millisecond, 1, 1, paperSign}
)

// classLimits are the limits of the classes of oscillation, m/s; Gyebroszki prints none.
var classLimits = [4]float64{1e-4, 1e-3, 1e-2, 1e-1}

func class(shake float64) int {
	n := 0
	for n < len(classLimits) && !(shake < classLimits[n]) {
		n++
	}
	return n
}

func (r *railResult) markdown() []byte {
	p := &page{}
	p.line("# Ways to step a rail car of 17 degrees of freedom\n")
	p.line("003 is Gyebroszki's thesis, the car is the plant rail17 over %v. Errors follow eq. 9.3.1, "+
		"per second of motion: the error of the car plus the mean error of the wheels, against the "+
		"own step of the kernel of %v. Own steps locate events and are the default.", r.until, railGrid)
	p.line("\n## Errors and computing time (figures 34 to 42)\n")
	p.line("Positions in mm, speeds in mm/s, then the time of a step over that of N_sub 1 and N_iter 0 "+
		"(%.1f us here).", r.unit/1e3)
	for _, h := range r.steps {
		r.table(p, h, func(f *finding) string { return f.cell(r.unit) })
	}
	p.line("\n003 eq. 9.4.1 for the time of a step, in that unit: %.2f·N_iter + %.2f·N_sub + "+
		"%.2f·N_iter·N_sub + %.2f.", r.cost[0], r.cost[1], r.cost[2], r.cost[3])
	slow := r.at(r.steps[len(r.steps)-1], r.subs[len(r.subs)-1], r.iters[len(r.iters)-1])
	p.line("\n003 allows two fifths of the step for its time; the most expensive configuration, %s, takes %.2g of "+
		"the step here.", slow.text(), slow.cost/float64(slow.h.Nanoseconds()))
	p.line("\n## Order (eq. 8.3.1: Err = a·dt^b, N_sub %d)\n", r.subs[len(r.subs)-1])
	p.table("| N_iter | positions: a | b | speeds: a | b |")
	for _, iter := range r.iters {
		placeA, placeB := r.growth(iter, func(f *finding) float64 { return f.place })
		speedA, speedB := r.growth(iter, func(f *finding) float64 { return f.speed })
		p.line("| %d | %.2g | %.2f | %.2g | %.2f |", iter, placeA, placeB, speedA, speedB)
	}

	r.stability(p)
	r.thresholds(p)
	r.equivalents(p)
	return p.Bytes()
}

// table writes the cells of all configurations with steps of h.
func (r *railResult) table(p *page, h time.Duration, cell func(f *finding) string) {
	head := fmt.Sprintf("\n| %v |", h)
	for _, sub := range r.subs {
		head += fmt.Sprintf(" N_sub %d |", sub)
	}
	p.table(head)

	for _, iter := range r.iters {
		line := fmt.Sprintf("| N_iter %d |", iter)
		for _, sub := range r.subs {
			line += " " + cell(r.at(h, sub, iter)) + " |"
		}
		p.line("%s", line)
	}

	p.line("| own step | %s |", cell(r.at(h, 0, 0)))
}

// cell returns an entry of the tables.
func (f *finding) cell(unit float64) string {
	if f.err != nil {
		return "none: " + f.err.Error()
	}
	return fmt.Sprintf("%.3g, %.3g; %.1f", 1e3*f.place, 1e3*f.speed, f.cost/unit)
}

func (r *railResult) stability(p *page) {
	p.line("\n## Stability (figures 32 and 33)\n")
	p.line("Amplitude of the highest frequency in the speeds of the wheels: class 0 below %g m/s, "+
		"then a class for each factor of ten, 4 from %g m/s on.", classLimits[0], classLimits[3])
	for _, h := range r.steps {
		if h == 20*time.Millisecond || h == 10*time.Millisecond {
			r.table(p, h, func(f *finding) string { return fmt.Sprintf("%d (%.1e)", class(f.shake), f.shake) })
		}
	}
}

func (r *railResult) thresholds(p *page) {
	p.line("\n## Threshold of the sign (section 9.1): %v, N_sub %d, N_iter %d\n", signStep, signSub, signIter)
	p.line("Errors of the speeds in mm/s. The error of the step refers to the same law with the kernel's own step "+
		"(from %g m/s on; below, it needs too many substeps). The error of law and step refers to a contact "+
		"that rolls until it breaks away.\n", leastOwn)
	p.table("| T_sgn, m/s | car at the end, m/s | error of the step | against rolling | highest frequency, m/s |")
	for _, s := range r.scans {
		own := "-"
		if !math.IsNaN(s.own) {
			own = fmt.Sprintf("%.3g", 1e3*s.own)
		}
		if s.err != nil {
			p.line("| %g | none: %v | | | |", s.sign, s.err)
			continue
		}

		p.line("| %g | %.2g | %s | %.3g | %.1e |", s.sign, s.rows[len(s.rows)-1][1], own, 1e3*s.rolled, s.shakes())
	}
}

// equivalents writes the cheapest configurations within the allowed error of section 9.5.
func (r *railResult) equivalents(p *page) {
	p.line("\n## Equivalent configurations (section 9.5)\n")
	p.line("The allowed error of the speeds is %g mm/s. The time is that of a second of motion, in "+
		"steps of N_sub 1 and N_iter 0.\n", 1e3*allowed)
	p.table("| configuration | error, mm/s | time | wheels every |")
	row := func(name string, f *finding) {
		p.line("| %s | %.3g | %.0f | %v |", name+f.text(), 1e3*f.speed, r.second(f), f.h/time.Duration(max(1, f.sub)))
	}
	coarse, fine := r.maps[paperCoarse], r.maps[paperFine]
	if coarse != nil && fine != nil {
		row("003: ", coarse)
		row("003, instead of: ", fine)
	}

	var best *finding
	for s, f := range r.maps {
		if s.sub > 0 && f.err == nil && f.speed <= allowed && (best == nil || r.second(f) < r.second(best)) {
			best = f
		}
	}

	if best != nil {
		row("cheapest allowed: ", best)
	}
	if coarse == nil || fine == nil {
		return
	}
	for _, h := range r.steps {
		row("", r.at(h, 0, 0))
	}
	p.line("\n%s", verdict(coarse, fine, r.second(coarse)/r.second(fine)))
}

// second returns the time of a second of motion in units of the table.
func (r *railResult) second(f *finding) float64 { return f.cost / r.unit / f.h.Seconds() }

// verdict compares the claim of 003 with the result; ratio is the time of its coarse configuration
// over that of the fine one.
func verdict(coarse, fine *finding, ratio float64) string {
	within := func(f *finding) string {
		if f.speed <= allowed {
			return "keeps"
		}
		return "does not keep"
	}

	saves := fmt.Sprintf("costs %.0f %% more", 100*(ratio-1))
	if ratio < 1 {
		saves = fmt.Sprintf("saves %.0f %%", 100*(1-ratio))
	}
	return fmt.Sprintf("003 calls the first equivalent to the second and 16 %% cheaper. Here "+
		"the first %s the allowed error, the second %s it; the first %s.", within(coarse), within(fine), saves)
}

func (r *railResult) csv() []byte {
	b := &page{}
	b.line("step[s],N_sub,N_iter,place_error[m],speed_error[m/s],highest_frequency[m/s],step_cost[1]")
	for _, h := range r.steps {
		for _, iter := range r.iters {
			for _, sub := range append([]int{0}, r.subs...) {
				if f := r.at(h, sub, iter); f != nil {
					b.line("%g,%d,%d,%.4g,%.4g,%.4g,%.4g", h.Seconds(), sub, iter, f.place, f.speed, f.shake, f.cost/r.unit)
				}
			}
		}
	}

	return b.Bytes()
}

// railColours are the colours of N_iter, then of the kernel's own step, then of the eighth T_sgn.
var railColours = []string{"#000000", "#1f77b4", "#2ca02c", "#d6a10b", "#d62728", "#9467bd", "#7f7f7f", "#17becf"}

// railMaps are the plots over N_sub.
var railMaps = []struct {
	file, title, name string
	low, high         float64
	of                func(r *railResult, f *finding) float64
}{
	{"places", "Positions", "error, m", 1e-6, 10, func(_ *railResult, f *finding) float64 { return f.place }},
	{"speeds", "Speeds", "error, m/s", 1e-6, 10, func(_ *railResult, f *finding) float64 { return f.speed }},
	{
		"time", "Computing time", "time over that of N_sub 1 and N_iter 0", 0.5, 300,
		func(r *railResult, f *finding) float64 { return f.cost / r.unit },
	},
}

// files returns the tables and plots of the rail car: over N_sub at each step, and over the step
// for the four classes of simulator.
func (r *railResult) files() files {
	out := files{"rail.md": r.markdown(), "rail.csv": r.csv(), "rail-classes.svg": draw(r.classes())}
	subs := make([]float64, len(r.subs))
	for i, sub := range r.subs {
		subs[i] = float64(sub)
	}
	for _, h := range r.steps {
		for _, m := range railMaps {
			c := plot.Chart{
				Title: fmt.Sprintf("%s at %v", m.title, h), X: plot.Axis{Name: "N_sub", Low: 1, High: 20, Log: true},
				Y: plot.Axis{Name: m.name, Low: m.low, High: m.high, Log: true},
			}
			for i, iter := range r.iters {
				var y []float64
				for _, sub := range r.subs {
					y = append(y, m.of(r, r.at(h, sub, iter)))
				}
				c.Curves = append(c.Curves, curve(fmt.Sprintf("N_iter %d", iter), railColours[i], 1.6, subs, y))
			}

			own := m.of(r, r.at(h, 0, 0))
			c.Curves = append(c.Curves, curve("own step", railColours[6], 2.5, []float64{1, 20}, []float64{own, own}))
			out[fmt.Sprintf("rail-%s-%v.svg", m.file, h)] = draw(c)
		}
	}

	r.motions(out)
	return out
}

// motions adds the plots of the car speed for each T_sgn (figures 20 to 25) and of the wheel speeds
// at 20 ms, which micro steps and iterations stabilise (28 to 31).
func (r *railResult) motions(out files) {
	speed := func(title string) plot.Chart {
		x := plot.Axis{Name: "t, s", High: r.until.Seconds()}
		return plot.Chart{Title: title, X: x, Y: plot.Axis{Name: "m/s", Low: -0.5, High: 4}}
	}

	over := func(one *ride, row int, name string, i int) plot.Curve {
		c := curve(name, railColours[i], 1.2, nil, nil)
		for k, v := range one.rows {
			c.X, c.Y = append(c.X, float64(k+1)*one.h.Seconds()), append(c.Y, v[row])
		}
		return c
	}

	car := speed("Figures 20 to 25: the car by T_sgn")
	for i, one := range r.scans {
		if one.sign >= leastOwn {
			car.Curves = append(car.Curves, over(one.ride, 1, fmt.Sprintf("%g m/s", one.sign), i))
		}
	}

	out["rail-signs.svg"] = draw(car)

	for _, c := range [][2]int{{1, 0}, {20, 0}, {20, 1}, {5, 3}} {
		f := r.at(20*time.Millisecond, c[0], c[1])
		if f == nil {
			continue
		}
		wheels := speed(fmt.Sprintf("Figures 28 to 31: wheels at %s", f.text()))
		for w := range 4 {
			wheels.Curves = append(wheels.Curves, over(f.ride, 6+w, fmt.Sprintf("wheel %d", w+1), w))
		}
		out[fmt.Sprintf("rail-wheels-%d-%d.svg", c[0], c[1])] = draw(wheels)
	}
}

// classes returns the plot of the errors of the speeds over the step.
func (r *railResult) classes() plot.Chart {
	c := plot.Chart{
		Title: "Four classes of simulator, and the kernel's own step",
		X:     plot.Axis{Name: "step, s", Low: 1e-3, High: 0.1, Log: true},
		Y:     plot.Axis{Name: "error of the speeds, m/s", Low: 1e-9, High: 10, Log: true},
	}
	sub, iter := r.subs[len(r.subs)-1], r.iters[1]
	for i, k := range []struct {
		name      string
		sub, iter int
	}{
		{"NI+NM", r.subs[0], r.iters[0]}, {"I+NM", r.subs[0], iter}, {"NI+M", sub, r.iters[0]},
		{"I+M", sub, iter}, {"own step", 0, 0},
	} {
		var h, e []float64
		for _, step := range r.steps {
			h, e = append(h, step.Seconds()), append(e, r.at(step, k.sub, k.iter).speed)
		}
		c.Curves = append(c.Curves, curve(k.name, railColours[i], 1.6, h, e))
	}

	return c
}
