package main

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// The allowed error of section 9.5 and what 003 finds equal there.
const allowed = 0.02 // m/s

var (
	paperCoarse = setting{20 * time.Millisecond, 10, 2, paperSign}
	paperFine   = setting{5 * time.Millisecond, 1, 1, paperSign}
)

// shakeBorders part the classes of oscillation, m/s; 003 prints none.
var shakeBorders = [4]float64{1e-4, 1e-3, 1e-2, 1e-1}

func class(shake float64) int {
	n := 0
	for n < len(shakeBorders) && !(shake < shakeBorders[n]) {
		n++
	}
	return n
}

// write leaves the tables and plots of the rail car in a folder.
func (r *railResult) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	files := r.plots()
	files["rail.md"], files["rail.csv"] = r.markdown(), r.csv()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (r *railResult) markdown() []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Ways to step a rail car of 17 degrees of freedom\n")
	p("003 is Gyebroszki's thesis, the car the plant rail17, %v of its motion. An error is that of eq. 9.3.1, per second of motion: the car's and the mean of the wheels' added up, against the kernel's own step of %v. Own steps are the event-exact default.", r.until, railGrid)
	p("\n## Errors and computing time (figures 34 to 42)\n")
	p("Places in mm, speeds in mm/s, then the time of a step over that of N_sub 1 and N_iter 0 (%.1f us here).", r.unit/1e3)
	for _, h := range r.steps {
		r.table(p, h)
	}
	p("\n003 eq. 9.4.1 for the time of a step, in that unit: %.2f·N_iter + %.2f·N_sub + %.2f·N_iter·N_sub + %.2f.", r.cost[0], r.cost[1], r.cost[2], r.cost[3])
	slow := r.at(r.steps[len(r.steps)-1], r.subs[len(r.subs)-1], r.iters[len(r.iters)-1])
	p("\n003 allows two fifths of the step for its time; the dearest of all, %s, takes %.2g of it here.", slow.text(), slow.cost/float64(slow.h.Nanoseconds()))
	p("\n## Order (eq. 8.3.1: Err = a·dt^b, N_sub %d)\n", r.subs[len(r.subs)-1])
	p("| N_iter | places: a | b | speeds: a | b |\n|---|---|---|---|---|")
	for _, g := range r.laws {
		p("| %d | %.2g | %.2f | %.2g | %.2f |", g.iter, g.placeA, g.placeB, g.speedA, g.speedB)
	}
	r.stability(p)
	r.thresholds(p)
	r.equivalents(p)
	return b.Bytes()
}

func (r *railResult) table(p func(string, ...any), h time.Duration) {
	head, line := "\n| "+h.String()+" |", "|---|"
	for _, sub := range r.subs {
		head, line = head+fmt.Sprintf(" N_sub %d |", sub), line+"---|"
	}
	p("%s\n%s", head, line)
	for _, iter := range r.iters {
		row := fmt.Sprintf("| N_iter %d |", iter)
		for _, sub := range r.subs {
			row += " " + r.at(h, sub, iter).cell(r.unit) + " |"
		}
		p("%s", row)
	}
	p("| own step | %s |", r.at(h, 0, 0).cell(r.unit))
}

// cell is an entry of the tables.
func (f *finding) cell(unit float64) string {
	if f.err != nil {
		return "none: " + f.err.Error()
	}
	return fmt.Sprintf("%.3g, %.3g; %.1f", 1e3*f.place, 1e3*f.speed, f.cost/unit)
}

func (r *railResult) stability(p func(string, ...any)) {
	p("\n## Stability (figures 32 and 33)\n")
	p("Amplitude of the highest frequency in the speeds of the wheels: class 0 below %g m/s, then a class to each factor of ten, 4 from %g m/s on.", shakeBorders[0], shakeBorders[3])
	for _, h := range r.steps {
		if h != 20*time.Millisecond && h != 10*time.Millisecond {
			continue
		}
		head, line := "\n| "+h.String()+" |", "|---|"
		for _, sub := range r.subs {
			head, line = head+fmt.Sprintf(" N_sub %d |", sub), line+"---|"
		}
		p("%s\n%s", head, line)
		for _, iter := range r.iters {
			row := fmt.Sprintf("| N_iter %d |", iter)
			for _, sub := range r.subs {
				s := r.at(h, sub, iter).shake
				row += fmt.Sprintf(" %d (%.1e) |", class(s), s)
			}
			p("%s", row)
		}
		s := r.at(h, 0, 0).shake
		p("| own step | %d (%.1e) |", class(s), s)
	}
}

func (r *railResult) thresholds(p func(string, ...any)) {
	p("\n## Threshold of the sign (section 9.1): %v, N_sub %d, N_iter %d\n", signStep, signSub, signIter)
	p("Errors of the speeds in mm/s: of the step, against the same law by the kernel's own step (from %g m/s on; below, that takes too many pieces); and of law and step, against a contact that rolls until it breaks away.\n", leastOwn)
	p("| T_sgn, m/s | car at the end, m/s | error of the step | against rolling | highest frequency, m/s |\n|---|---|---|---|---|")
	for _, s := range r.scans {
		own := "-"
		if !math.IsNaN(s.own) {
			own = fmt.Sprintf("%.3g", 1e3*s.own)
		}
		if s.err != nil {
			p("| %g | none: %v | | | |", s.sign, s.err)
			continue
		}
		p("| %g | %.2g | %s | %.3g | %.1e |", s.sign, s.end, own, 1e3*s.rolled, s.shake)
	}
}

// equivalents looks for the cheapest second of motion within what section 9.5 allows.
func (r *railResult) equivalents(p func(string, ...any)) {
	p("\n## Equivalent configurations (section 9.5)\n")
	p("Allowed is an error of the speeds of %g mm/s; the time is that of a second of motion, in steps of N_sub 1 and N_iter 0.\n", 1e3*allowed)
	p("| configuration | error, mm/s | time | wheels every |\n|---|---|---|---|")
	row := func(name string, f *finding) {
		p("| %s | %.3g | %.0f | %v |", name+f.text(), 1e3*f.speed, r.second(f), f.h/time.Duration(max(1, f.sub)))
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
	p("\n%s", verdict(coarse, fine, r.second(coarse)/r.second(fine)))
}

// second is the time of a second of motion in units of the table.
func (r *railResult) second(f *finding) float64 { return f.cost / r.unit / f.h.Seconds() }

// verdict sets 003's claim beside what was found; ratio is the time of its coarse
// configuration over that of the fine one.
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
	return fmt.Sprintf("003 takes the first for equivalent to the second, and 16 %% cheaper. Here the first %s the error and the second %s it; the first %s.", within(coarse), within(fine), saves)
}

func (r *railResult) csv() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "step[s],N_sub,N_iter,place_error[m],speed_error[m/s],highest_frequency[m/s],step_cost[1]")
	for _, h := range r.steps {
		for _, iter := range r.iters {
			for _, sub := range append([]int{0}, r.subs...) {
				if f := r.at(h, sub, iter); f != nil {
					fmt.Fprintf(&b, "%g,%d,%d,%.4g,%.4g,%.4g,%.4g\n", h.Seconds(), sub, iter, f.place, f.speed, f.shake, f.cost/r.unit)
				}
			}
		}
	}
	return b.Bytes()
}

func railMain(args []string) {
	flags := flag.NewFlagSet("study rail", flag.ExitOnError)
	dir := flags.String("o", "", "folder for the tables and plots")
	flags.Parse(args)
	if *dir == "" || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "study: usage: study rail -o DIR")
		os.Exit(2)
	}
	r := doRail(wholeRail)
	if err := r.write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}
	os.Stdout.Write(r.markdown())
}
