package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
)

// write leaves the tables and plots in a folder.
func (r *judderResult) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	files := r.plots()
	files["judder.md"] = r.markdown()
	files["judder-windows.csv"] = r.windowsCSV()
	files["judder-lives.csv"] = r.livesCSV()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (r *judderResult) markdown() []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# A vehicle whose clutch judders\n")
	p("Cases of section 4 of 001, on the plants judder and judder-ice in steps of 5 ms, and as a second opinion on the vehicle at any angle in steps of %g ms that shares nothing with the kernel.\n", fineStep*1e3)
	p("## What large angles bring (case 1, %g s)\n", r.until)
	p("Largest distance from the vehicle at any angle as a part of the range, at points 5 ms apart.\n")
	p("| the body is | pitch | F_N1 | F_N2 | speed | clutch torque |\n|---|---|---|---|---|---|")
	for _, a := range r.angles {
		e := a.errors
		p("| %s | %.1e | %.1e | %.1e | %.1e | %.1e |", a.name, e[0], e[1], e[2], e[3], e[4])
	}
	for i, s := range stickSlips {
		unit := map[string]string{"clutch": "rad/s", "front.contact": "m/s"}[s.contact]
		p("\n## %s: torques at which %s sticks and slips for %g s at least\n", s.name, s.contact, r.until)
		p("Below it ends with a contact that sticks for good, above with one that slips for good. The motion is that in the middle of the window, in its last second.\n")
		p("| | from, N·m | to, N·m | width | period, ms | slip, %s | a_x, m/s² | pitch, rad/s² | sticks |\n|---|---|---|---|---|---|---|---|---|", unit)
		for j, w := range r.windows[i] {
			if !(w.width() > 2*r.fine) {
				p("| %s | none: at %.3f N·m sticking turns into slipping | | | | | | | |", judderVariants[j].name, w.low)
				continue
			}
			p("| %s | %.3f | %.3f | %.3f | %.2f | %.4f | %.3f | %.3f | %.0f %% |", judderVariants[j].name, w.low, w.high, w.width(), w.period*1e3, w.slip, w.jerk, w.pitch, w.sticks*100)
		}
		p("\nThe vehicle at any angle, as in 001: %.3f to %.3f N·m. At the %g N·m of 001 it lasts %s.", r.second[i][0], r.second[i][1], s.engine, r.printed[i].text(r.longest))
		p("Largest slip of the other contacts: %.1e.", r.windows[i][0].otherSlip)
	}
	r.laws(p)
	r.claims(p)
	return b.Bytes()
}

// width of a window, N·m.
func (w *windowOf) width() float64 { return math.Abs(w.high - w.low) }

// text is how a motion ends that is watched for some time, s.
func (l *lifeAt) text(longest float64) string {
	if l.end == lasts {
		return fmt.Sprintf("%g s and more", longest)
	}
	return fmt.Sprintf("%.2f s, then it %v", l.last, l.end)
}

func (r *judderResult) laws(p func(string, ...any)) {
	p("\n## Coulomb and Stribeck (T_S = 100, T_C = 80, engine 100 N·m)\n")
	p("| clutch | sticks | last change | end | slip after %g s, rad/s | swing of a_x in the last second, m/s² | vehicle at any angle differs by |\n|---|---|---|---|---|---|---|", r.stribeckTime())
	for i, s := range r.stribeck {
		p("| %s | %d times | %.3f s | %v | %.2f | %.4f | %.1e |", []string{"Coulomb", "Stribeck"}[i], s.sticks, s.last, s.end, s.most, s.swing, s.differs)
	}
	h := &r.engine
	p("\n## Engine harmonics (T_0 = 60 N·m)\n")
	p("Engine less driven wheel swings by %.2f rad/s in the last of %.0f s, %.2f rad/s without harmonics; the vehicle at any angle differs by %.1e of that at most.", h.swing, h.t[len(h.t)-1], h.calm, h.differs)
}

// stribeckTime is how long those runs are, s.
func (r *judderResult) stribeckTime() float64 {
	t := r.stribeck[0].t
	return t[len(t)-1]
}

// claims are those of 001 and what is to be said of them.
func (r *judderResult) claims(p func(string, ...any)) {
	two, three := r.windows[0], r.windows[1]
	verdict := func(holds bool) string {
		if holds {
			return "holds"
		}
		return "does not hold"
	}
	within := func(i int) bool {
		w := r.windows[i][0]
		return math.Abs(stickSlips[i].engine-(w.low+w.high)/2) <= w.width()/2
	}
	p("\n## The claims of 001\n")
	p("| 001 | here | verdict |\n|---|---|---|")
	p("| case 2: at 323.47 N·m clutch judder is a steady state | it lasts %s; from %.3f to %.3f N·m it lasts %g s | %s |",
		r.printed[0].text(r.longest), two[0].low, two[0].high, r.until, verdict(within(0) && r.printed[0].end == lasts))
	p("| 323.47 N·m is high enough to initiate stick-slip | so is every torque down to that at which the start no longer breaks the clutch loose; what is special is that it lasts | not a threshold |")
	p("| case 2: both wheels roll purely | largest slip %.1e m/s | %s |", two[0].otherSlip, verdict(two[0].otherSlip < 1e-6))
	p("| case 3: -168.48 N·m is the smallest torque with periodic stick-slip | it lasts %s; the window for %g s is %.3f to %.3f N·m | %s |",
		r.printed[1].text(r.longest), r.until, three[0].low, three[0].high, map[bool]string{true: "in the window, not its edge", false: "does not hold"}[within(1)])
	p("| case 3: the clutch sticks all the time, the driven wheel sticks and slips | largest slip of the clutch %.1e rad/s | %s |", three[0].otherSlip, verdict(three[0].otherSlip < 1e-6))
	s := r.stribeck
	p("| Stribeck increases the amplitude of the slip | both slip for good from %.0f ms on, %.1f against %.1f rad/s after %g s; what grows is the swing of the body, %.4f against %.4f m/s² | %s |",
		s[1].last*1e3, s[1].most, s[0].most, r.stribeckTime(), s[1].swing, s[0].swing, map[bool]string{true: "of the vibration, not of the slip", false: "does not hold"}[s[1].swing > s[0].swing])
	p("| engine harmonics excite the driveline | %.2f against %.2f rad/s | %s |", r.engine.swing, r.engine.calm, verdict(r.engine.swing > 2*r.engine.calm))
	p("| constraints drift by less than 1e-4 m | joints are eliminated; 2e-13 m are rounding (TestJudderJointsDoNotDrift) | not needed |")
}

func (r *judderResult) windowsCSV() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "case,variant,from[N.m],to[N.m],period[s],slip[rad/s or m/s],a_x[m/s2],a_pitch[rad/s2],stuck[1]")
	for i, list := range r.windows {
		for j, w := range list {
			fmt.Fprintf(&b, "%q,%q,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.4g\n", stickSlips[i].name, judderVariants[j].name, w.low, w.high, w.period, w.slip, w.jerk, w.pitch, w.sticks)
		}
	}
	return b.Bytes()
}

func (r *judderResult) livesCSV() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "case,torque[N.m],last_change[s],end")
	for i, list := range r.lives {
		for _, l := range list {
			fmt.Fprintf(&b, "%q,%.6g,%.6g,%q\n", stickSlips[i].name, l.torque, l.last, l.end)
		}
	}
	return b.Bytes()
}

func (r *judderResult) plots() map[string][]byte {
	out := map[string][]byte{}
	for i, list := range r.lives {
		s := &stickSlips[i]
		c := chart{title: s.name + ": how long " + s.contact + " sticks and slips", across: "torque of the engine, N·m", up: "s", y: axis{high: r.longest * 1.05}}
		l := curve{"until its last change", "#1f77b4", 1.6, nil, nil}
		for _, at := range list {
			l.x, l.y = append(l.x, at.torque), append(l.y, at.last)
		}
		c.x = axis{low: min(l.x[0], l.x[len(l.x)-1]), high: max(l.x[0], l.x[len(l.x)-1])}
		printed := curve{"the torque of 001", "#d62728", 1.2, []float64{s.engine, s.engine}, []float64{0, r.longest}}
		c.curves = []curve{l, printed}
		out[fmt.Sprintf("judder-life-%d.svg", i+2)] = c.svg()
	}
	c := chart{title: "Figure 13: slip of the clutch at 100 N·m", across: "t, s", up: "rad/s", x: axis{high: r.stribeckTime()}, y: axis{high: 1.05 * r.stribeck[0].most}}
	for i, s := range r.stribeck {
		c.curves = append(c.curves, curve{[]string{"Coulomb", "Stribeck"}[i], []string{"#1f77b4", "#d62728"}[i], 1.4, s.t, s.s})
	}
	out["judder-figure13.svg"] = c.svg()
	h := &r.engine
	c = chart{title: "Figure 18: engine less driven wheel under harmonics", across: "t, s", up: "rad/s",
		x: axis{high: h.t[len(h.t)-1]}, y: axis{low: -4, high: 4}, curves: []curve{{"twist speed", "#1f77b4", 1, h.t, h.twist}}}
	out["judder-figure18.svg"] = c.svg()
	for i := range judderFigures {
		maps.Copy(out, judderFigures[i].draw(r.until))
	}
	return out
}
