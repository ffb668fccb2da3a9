package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/rt/plot"
)

func (r *judderResult) markdown() []byte {
	p := &page{}
	p.line("# A vehicle whose clutch judders\n")
	p.line("Cases of section 4 of the judder paper, on the plants judder and judder-ice in steps of 5 ms. For comparison, "+
		"a vehicle at any angle in steps of %g ms shares no code with the "+
		"kernel.\n", fineStep*1e3)
	p.line("## Effect of large angles (case 1, %g s)\n", r.until)
	p.line("Largest difference from the vehicle at any angle as a part of the range, at points 5 ms apart.\n")
	p.table("| body | pitch | F_N1 | F_N2 | speed | clutch torque |")
	for _, a := range r.angles {
		e := a.errors
		p.line("| %s | %.1e | %.1e | %.1e | %.1e | %.1e |", a.name, e[0], e[1], e[2], e[3], e[4])
	}

	for _, s := range r.cases {
		unit := map[string]string{"clutch": "rad/s", "front.contact": "m/s"}[s.contact]
		p.line("\n## %s: torques with stick-slip of %s for at least %g s\n", s.name, s.contact, r.until)
		p.line("Below the window the contact finally locks, above it finally slips. " +
			"The motion is that of the last second in the middle of the window.\n")
		p.table(fmt.Sprintf("| | from, N·m | to, N·m | width | period, ms | slip, %s | a_x, m/s² | "+
			"pitch, rad/s² | locked |", unit))
		for j, w := range s.windows {
			if !(w.width() > 2*r.fine) {
				p.line("| %s | none: at %.3f N·m locking turns into slipping | | | | | | | |", judderVariants[j].name, w.low)
				continue
			}

			p.line("| %s | %.3f | %.3f | %.3f | %.2f | %.4f | %.3f | %.3f | %.0f %% |",
				judderVariants[j].name, w.low, w.high, w.width(), w.period*1e3, w.slip, w.jerk, w.pitch, w.sticks*100)
		}

		p.line("\nThe vehicle at any angle, as in the judder paper: %.3f to %.3f N·m. At the %g N·m of the judder paper stick-slip "+
			"lasts %s.", s.second[0], s.second[1], s.engine, s.printed.text(r.longest))
		p.line("Largest slip of the other contacts: %.1e.", s.windows[0].otherSlip)
	}

	r.laws(p)
	r.claims(p)
	return p.Bytes()
}

// width returns the width of a window, N·m.
func (w *windowOf) width() float64 { return math.Abs(w.high - w.low) }

// text returns the duration of stick-slip and its end, for a run of some length, s.
func (l *lifeAt) text(longest float64) string {
	if l.end == lasts {
		return fmt.Sprintf("%g s and more", longest)
	}
	return fmt.Sprintf("%.2f s, then it %v", l.last, l.end)
}

func (r *judderResult) laws(p *page) {
	p.line("\n## Coulomb and Stribeck (T_S = 100, T_C = 80, engine 100 N·m)\n")
	p.table(fmt.Sprintf("| clutch | locks | last transition | end | slip after %g s, rad/s | range of "+
		"a_x in the last second, m/s² | vehicle at any angle differs by |", r.stribeckTime()))
	for _, s := range r.stribeck {
		p.line("| %s | %d times | %.3f s | %v | %.2f | %.4f | %.1e |",
			s.name, s.sticks, s.last, s.end, s.most, s.swing, s.differs)
	}

	h := &r.engine
	p.line("\n## Engine harmonics (T_0 = 60 N·m)\n")
	p.line("The speed of the engine less that of the driven wheel has a range of %.2f rad/s in the last of %.0f s, %.2f rad/s without "+
		"harmonics; the vehicle at any angle differs by at most %.1e of the range.",
		h.swing, h.t[len(h.t)-1], h.calm, h.differs)
}

// stribeckTime returns the length of the runs with Coulomb and Stribeck, s.
func (r *judderResult) stribeckTime() float64 {
	t := r.stribeck[0].t
	return t[len(t)-1]
}

// claims writes the claims of the judder paper with the results and verdicts.
func (r *judderResult) claims(p *page) {
	two, three := r.cases[0], r.cases[1]
	verdict := func(holds bool) string {
		if holds {
			return "holds"
		}
		return "does not hold"
	}

	within := func(c *caseFound) bool {
		w := c.windows[0]
		return math.Abs(c.engine-(w.low+w.high)/2) <= w.width()/2
	}

	p.line("\n## The claims of the judder paper\n")
	p.table("| the judder paper | here | verdict |")
	p.line("| case 2: at 323.47 N·m clutch judder is a steady state | it lasts %s; from %.3f to %.3f N·m it lasts %g s | %s |",
		two.printed.text(r.longest), two.windows[0].low, two.windows[0].high, r.until, verdict(within(two) && two.printed.end == lasts))
	p.line("| 323.47 N·m is high enough to initiate stick-slip | every lower torque is, too, while " +
		"the start still breaks the clutch loose; only the duration is special | not a " +
		"threshold |")
	p.line("| case 2: both wheels roll purely | largest slip %.1e m/s | %s |",
		two.windows[0].otherSlip, verdict(two.windows[0].otherSlip < 1e-6))
	p.line("| case 3: -168.48 N·m is the smallest torque with periodic stick-slip | it lasts %s; the window for %g s is %.3f to %.3f N·m | %s |",
		three.printed.text(r.longest), r.until, three.windows[0].low, three.windows[0].high, map[bool]string{true: "inside the window, not at its edge", false: "does not hold"}[within(three)])
	p.line("| case 3: the clutch stays locked, the driven wheel sticks and slips | largest "+
		"slip of the clutch %.1e rad/s | %s |", three.windows[0].otherSlip, verdict(three.windows[0].otherSlip < 1e-6))
	s := r.stribeck
	p.line("| Stribeck increases the amplitude of the slip | both slip for good from %.0f ms on, %.1f against %.1f rad/s after %g s; the acceleration of the body grows, %.4f against %.4f m/s² | %s |",
		s[1].last*1e3, s[1].most, s[0].most, r.stribeckTime(), s[1].swing, s[0].swing, map[bool]string{true: "for the vibration, not for the slip", false: "does not hold"}[s[1].swing > s[0].swing])
	p.line("| engine harmonics excite the driveline | %.2f against %.2f rad/s | %s |",
		r.engine.swing, r.engine.calm, verdict(r.engine.swing > 2*r.engine.calm))
	p.line("| constraints drift by less than 1e-4 m | joints are eliminated; they drift 2e-13 m by rounding " +
		"(TestJudderJointsDoNotDrift) | not needed |")
}

func (r *judderResult) windowsCSV() []byte {
	b := &page{}
	b.line("case,variant,from[N.m],to[N.m],period[s],slip[rad/s or m/s],a_x[m/s2],a_pitch[rad/s2],stuck[1]")
	for _, c := range r.cases {
		for j, w := range c.windows {
			b.line("%q,%q,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.4g",
				c.name, judderVariants[j].name, w.low, w.high, w.period, w.slip, w.jerk, w.pitch, w.sticks)
		}
	}

	return b.Bytes()
}

func (r *judderResult) livesCSV() []byte {
	b := &page{}
	b.line("case,torque[N.m],last_change[s],end")
	for _, c := range r.cases {
		for _, l := range c.lives {
			b.line("%q,%.6g,%.6g,%q", c.name, l.torque, l.last, l.end)
		}
	}

	return b.Bytes()
}

// files returns the tables and plots.
func (r *judderResult) files() files {
	out := files{"judder.md": r.markdown(), "judder-windows.csv": r.windowsCSV(), "judder-lives.csv": r.livesCSV()}
	for i, s := range r.cases {
		var torque, last []float64
		for _, at := range s.lives {
			torque, last = append(torque, at.torque), append(last, at.last)
		}

		out[fmt.Sprintf("judder-life-%d.svg", i+2)] = draw(plot.Chart{
			Title: s.name + ": duration of stick-slip of " + s.contact,
			X:     plot.Axis{Name: "torque of the engine, N·m", Low: slices.Min(torque), High: slices.Max(torque)},
			Y:     plot.Axis{Name: "s", High: r.longest * 1.05},
			Curves: []plot.Curve{
				curve("until the last transition", "#1f77b4", 1.6, torque, last),
				curve("the torque of the judder paper", "#d62728", 1.2, []float64{s.engine, s.engine}, []float64{0, r.longest}),
			},
		})
	}

	slip := plot.Chart{
		Title: "Figure 13: slip of the clutch at 100 N·m", X: plot.Axis{Name: "t, s", High: r.stribeckTime()},
		Y: plot.Axis{Name: "rad/s", High: 1.05 * r.stribeck[0].most},
	}
	for i, s := range r.stribeck {
		slip.Curves = append(slip.Curves, curve(s.name, []string{"#1f77b4", "#d62728"}[i], 1.4, s.t, s.s))
	}
	out["judder-figure13.svg"] = draw(slip)

	h := &r.engine
	out["judder-figure18.svg"] = draw(plot.Chart{
		Title: "Figure 18: engine less driven wheel under harmonics", X: plot.Axis{Name: "t, s", High: h.t[len(h.t)-1]},
		Y: plot.Axis{Name: "rad/s", Low: -4, High: 4}, Curves: []plot.Curve{curve("twist speed", "#1f77b4", 1, h.t, h.twist)},
	})
	for i := range judderFigures {
		maps.Copy(out, judderFigures[i].draw(r.until))
	}
	return out
}

// figure is a figure of the judder paper, section 4: columns of a plant over time.
type figure struct {
	number  string
	up      string // name of the vertical axis
	columns []string
}

// figures are the figures of a case at the torque of the judder paper, from and to in s: the whole launch, or a
// section of the steady state.
type figures struct {
	*juddering
	plant    string
	from, to float64
	list     []figure
}

var judderFigures = []figures{
	{&case1, "judder", 0, 10, []figure{
		{"3", "rad", []string{"pitch"}}, {"4", "N", []string{"F_f1"}}, {"5", "N", []string{"F_f2"}},
		{"6", "N", []string{"F_N1", "F_N2"}}, {"7", "N·m", []string{"T_f"}}}},
	{&case2, "judder", 9.8, 10, []figure{
		{"8", "rad/s", []string{"slip_clutch"}}, {"8b", "N·m", []string{"T_f"}}, {"9", "rad/s²", []string{"a_pitch"}},
		{"10", "m/s²", []string{"a_x"}}, {"11", "N", []string{"F_f1"}}, {"12", "N", []string{"F_f2"}}}},
	{&case3, "judder-ice", 19.7, 20, []figure{
		{"14", "N·m", []string{"T_f"}}, {"15", "m/s", []string{"v_r1"}}, {"15b", "N", []string{"F_f1"}},
		{"16", "rad/s²", []string{"a_pitch"}}, {"17", "N", []string{"F_N1", "F_N2"}}}},
}

// draw runs a case and returns its figures by file name. If the section ends after until, s, it is
// moved to end there.
func (f *figures) draw(until float64) files {
	to := min(f.to, until)
	from := max(0, to-(f.to-f.from))
	d := newDrive(f.plant, time.Millisecond)
	d.reset(f.engine)
	columns := map[string][]float64{}
	var t []float64
	for at := range d.steps(to) {
		if at >= from {
			t = append(t, at)
			for _, one := range f.list {
				for _, name := range one.columns {
					columns[name] = append(columns[name], d.get(name))
				}
			}
		}
	}

	out := files{}
	for _, one := range f.list {
		c := plot.Chart{
			Title: fmt.Sprintf("Figure %s: %s, %s", one.number, f.name, strings.Join(one.columns, " and ")),
			X:     plot.Axis{Name: "t, s", Low: from, High: to},
		}
		var all []float64
		for i, name := range one.columns {
			all = append(all, columns[name]...)
			c.Curves = append(c.Curves, curve(name, []string{"#1f77b4", "#d62728"}[i], 1.2, t, columns[name]))
		}

		low, high := slices.Min(all), slices.Max(all)
		room := 0.05*(high-low) + 1e-6*(1+math.Abs(high))
		c.Y = plot.Axis{Name: one.up, Low: low - room, High: high + room}
		out["judder-figure"+one.number+".svg"] = draw(c)
	}

	return out
}
