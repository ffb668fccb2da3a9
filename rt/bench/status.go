package bench

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/sched"
)

// quiet is how long a received message may stay away before the display and the
// report say so.
const quiet = 500 * time.Millisecond

// status draws the line that shows a run: on a terminal one line, redrawn five
// times per second, otherwise a line per second.
type status struct {
	r        *run
	out      *os.File
	terminal bool
	every    time.Duration

	y      []float64
	clutch []string // short names of the friction elements
	mode   []int    // their modes, indices in y
	engine int      // index in y; -1 none
	wheel  int
	widest int // of the clutches so far, so that the columns stay
}

func newStatus(r *run) *status {
	t := r.h.Tables
	s := &status{
		r: r, out: r.options.Out, every: time.Second,
		y: make([]float64, len(t.Outputs)), clutch: shorten(t.Frictions),
		engine: index(t.Outputs, r.bench.Engine.Text), wheel: index(t.Outputs, r.bench.Wheel.Text),
	}
	for _, name := range t.Frictions {
		s.mode = append(s.mode, index(t.Outputs, name+".mode"))
	}
	if s.terminal = term.IsTerminal(int(s.out.Fd())); s.terminal {
		s.every = 200 * time.Millisecond
	}
	return s
}

// shorten drops what all names begin with: "clutch1", "clutch2" are "1", "2".
func shorten(names []string) []string {
	if len(names) < 2 {
		return names
	}
	n := 0
	for ; n < len(names[0]); n++ {
		for _, name := range names {
			if n >= len(name)-1 || name[n] != names[0][n] {
				return cut(names, n)
			}
		}
	}
	return cut(names, n)
}

func cut(names []string, n int) []string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = name[n:]
	}
	return short
}

func (s *status) draw() {
	line := s.line()
	if !s.terminal {
		fmt.Fprintln(s.out, line)
		return
	}
	if width, _, err := term.GetSize(int(s.out.Fd())); err == nil && width > 1 && len(line) >= width {
		line = line[:width-1]
	}
	fmt.Fprintf(s.out, "\r%s\x1b[K", line)
}

// end takes the line away from a terminal.
func (s *status) end() {
	if s.terminal {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

// line is at most 100 columns wide; what a silent unit leaves no room for is out.
func (s *status) line() string {
	p := s.r.page
	if rt.State(p.State.Load()) == rt.Preparing {
		return "preparing"
	}
	s.y = s.y[:cap(s.y)]
	if _, ok := p.Outputs(s.y); !ok {
		return "waiting for the first tick"
	}
	silent := s.r.silent()
	part := []string{fmt.Sprintf("%6.1f s", float64(p.SimNs.Load())/1e9)}
	if len(s.mode) > 0 {
		part = append(part, s.engaged())
	}
	part = append(part, s.ratio()...)
	if len(silent) == 0 {
		part = append(part, s.speed("engine", s.engine)...)
		part = append(part, s.speed("wheel", s.wheel)...)
	}
	part = append(part, fmt.Sprintf("missed %d", p.Missed.Load()))
	if len(silent) > 0 {
		part = append(part, silent[0].line())
	} else {
		part = append(part, lateness(&p.Late))
	}
	if len(s.r.missing) > 0 {
		part = append(part, "best effort")
	}
	return strings.Join(part, "  ")
}

// engaged lists the clutches that are stuck, padded to the widest list so far.
func (s *status) engaged() string {
	var names []string
	for i, at := range s.mode {
		if s.y[at] == float64(kernel.Stuck) {
			names = append(names, s.clutch[i])
		}
	}
	list := strings.Join(names, " ")
	if list == "" {
		list = "-"
	}
	s.widest = max(s.widest, len(list))
	return fmt.Sprintf("%-*s", s.widest, list)
}

// ratio is the overall ratio, engine over wheel; blank while the wheel stands.
func (s *status) ratio() []string {
	if s.engine < 0 || s.wheel < 0 {
		return nil
	}
	if ratio := math.Abs(s.y[s.engine] / s.y[s.wheel]); ratio < 1000 {
		return []string{fmt.Sprintf("%5.2f:1", ratio)}
	}
	return []string{"  -  :1"}
}

// speed is output i, in rpm where it is an angular speed; i = -1: none.
func (s *status) speed(name string, i int) []string {
	if i < 0 {
		return nil
	}
	v, unit := s.y[i], s.r.h.Tables.Outputs[i].Unit
	if unit == "rad/s" {
		v, unit = v*30/math.Pi, "rpm"
	}
	return []string{fmt.Sprintf("%s %4.0f %s", name, v, unit)}
}

// silent lists the received messages that have been away for longer than quiet.
func (r *run) silent() (list []Silence) {
	tick, period := int64(r.page.Ticks.Load()), r.h.Tables.PeriodNs
	i := 0
	for _, m := range r.h.Maps {
		for _, rx := range m.Rx {
			last := int64(r.page.LastRx[i].Load())
			if i++; (tick-last)*period >= int64(quiet) {
				list = append(list, Silence{rx.Name, float64(last*period) / 1e9, float64((tick-last)*period) / 1e9})
			}
		}
	}
	return list
}

// line is the silence as the status line says it.
func (s Silence) line() string {
	if s.Last == 0 {
		return fmt.Sprintf("no frame from %s yet", s.Message)
	}
	return fmt.Sprintf("no frame from %s for %.1f s", s.Message, s.For)
}

// lateness is the 99th percentile and the largest, in one unit.
func lateness(h *sched.Histogram) string {
	p99, most := float64(h.Quantile(0.99)), float64(h.Max())
	if most >= 10e6 {
		return fmt.Sprintf("late %.1f/%.1f ms", p99/1e6, most/1e6)
	}
	return fmt.Sprintf("late %.0f/%.0f us", p99/1e3, most/1e3)
}
