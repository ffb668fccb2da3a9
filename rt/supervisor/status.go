package supervisor

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// status draws the line that shows a run: on a terminal one line, redrawn five
// times per second, otherwise a line per second.
type status struct {
	r        *Session
	out      *os.File
	terminal bool
	every    time.Duration

	y      []float64
	clutch []string // short names of the friction elements
	mode   []int    // their modes, indices in y
	engine int      // index in y; -1 none
	wheel  int
	widest int  // of the clutches so far, so that the columns stay
	closed bool // the reader has: nothing more is drawn

	last time.Time     // when it was last asked for
	todo chan struct{} // asks for a line
	done chan struct{} // closed when no more is drawn
}

func newStatus(r *Session) *status {
	t := r.Handover.Tables
	s := &status{
		r: r, out: r.Options.Out, every: cmp.Or(r.Options.Every, time.Second),
		y: make([]float64, len(t.Outputs)), clutch: shorten(t.Frictions),
		engine: bench.PortIndex(t.Outputs, r.Bench.Engine.Text), wheel: bench.PortIndex(t.Outputs, r.Bench.Wheel.Text),
	}
	for _, name := range t.Frictions {
		s.mode = append(s.mode, bench.PortIndex(t.Outputs, name+".mode"))
	}
	if s.terminal = term.IsTerminal(int(s.out.Fd())); s.terminal {
		s.every = 200 * time.Millisecond
	}
	s.last = time.Now()
	s.todo, s.done = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(s.done)
		_, err := io.WriteString(host.Fold(s.out), r.head)
		s.closed = err != nil
		for range s.todo {
			s.draw()
		}
	}()

	return s
}

// requestDraw asks for a line when it is time for one. A terminal that does not take it
// holds up nobody but itself.
func (s *status) requestDraw(now time.Time) {
	if now.Sub(s.last) < s.every-pollInterval/2 {
		return
	}
	s.last = now
	select {
	case s.todo <- struct{}{}:
	default: // it still draws the last one
	}
}

// shorten drops what all names begin with: "clutch1", "clutch2" are "1", "2".
func shorten(names []string) []string {
	if len(names) < 2 {
		return names
	}
	n := 0
	ends := func(name string) bool { return n >= len(name)-1 || name[n] != names[0][n] }
	for !slices.ContainsFunc(names, ends) {
		n++
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = name[n:]
	}
	return short
}

func (s *status) draw() {
	if s.closed {
		return
	}
	width := columns
	if w, _, err := term.GetSize(int(s.out.Fd())); err == nil && w > 1 {
		width = w - 1
	}
	form := "%s\n"
	if s.terminal {
		form = "\r%s\x1b[K"
	}
	_, err := fmt.Fprintf(s.out, form, s.line(width))
	s.closed = err != nil // nobody reads it any more
}

// end takes the line away from a terminal.
func (s *status) end() {
	close(s.todo)
	select {
	case <-s.done:
	case <-time.After(pollInterval): // the terminal is stopped
		return
	}

	if s.terminal && !s.closed {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

// columns is how wide a line may be where no terminal says it: one of 80 would wrap a longer one.
const columns = 79

// line is the state of the run in at most width columns. The parts that must be shown are cut; of the
// others it holds those that fit, the lateness before the speeds, the clutches and the ratio.
func (s *status) line(width int) string {
	all, must := s.parts()
	list := make([]string, len(all))
	copy(list, all[:must])
	line := []rune(joinParts(list))
	for _, i := range []int{latencyPart, speedPart, clutchPart, ratioPart} {
		if must == len(all) {
			break
		}
		list[must+i] = all[must+i]
		longer := []rune(joinParts(list))
		if len(longer) > width {
			list[must+i] = ""
			continue
		}
		line = longer
	}

	return string(line[:min(len(line), width)])
}

// joinParts joins the parts that are not empty.
func joinParts(list []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(list), func(part string) bool { return part == "" }), " ")
}

// Parts of the line after those that must be shown.
const (
	clutchPart = iota
	ratioPart
	speedPart
	latencyPart
)

// parts are the parts of the line in their order; "" is left out. The first must of them tell how
// far the run is, whether it is at best effort, what it has missed and what is wrong. The other
// four are there while the target ticks.
func (s *status) parts() (list []string, must int) {
	p := s.r.Status
	_, ticking := p.Outputs(s.y)
	seconds := float64(p.SimNs.Load()) / 1e9
	first := fmt.Sprintf("%5.1f s", seconds)
	if seconds >= 1e4 {
		first = fmt.Sprintf("%.0f s", seconds)
	}
	switch {
	case rt.State(p.State.Load()) == rt.Preparing:
		first, ticking = "preparing", false
	case !ticking:
		first = "waiting for the first tick"
	}

	list = []string{first}
	if len(s.r.missing) > 0 {
		list = append(list, "best effort")
	}
	trouble := s.problem()
	if ticking {
		missed := fmt.Sprintf("missed %d", p.Missed.Load())
		if late := p.LateCount(); late > 0 && trouble == "" {
			missed += fmt.Sprintf(" late %d", late)
		}
		list = append(list, missed)
	}

	list = append(list, trouble)
	if must = len(list); ticking {
		list = append(list, s.lockedClutches(), s.ratio(), s.speeds(), latencyText(&p.Late))
	}
	return list, must
}

// problem is what is wrong right now, in at most 60 columns; "" is nothing.
func (s *status) problem() string {
	if why := rt.Reason(s.r.Status.SafeReason.Load()); why != rt.NotEnded {
		return fmt.Sprintf("SAFE since %.3f s", float64(int64(s.r.Status.SafeTick.Load())*s.r.Handover.Tables.PeriodNs)/1e9)
	}
	if why := rt.Reason(s.r.Status.Reason.Load()); why != rt.NotEnded {
		return "over: " + why.String() // the safe values follow
	}
	if text := s.r.states.problem(); text != "" {
		return text
	}
	if off := s.r.Status.BusOff.Load(); off != 0 {
		return fmt.Sprintf("bus %.24s is off", s.r.Bench.Buses[bits.TrailingZeros64(off)].Name.Text)
	}
	if s.r.loop.migrated.Load() {
		return fmt.Sprintf("the loop lost CPU %d", s.r.Handover.Thread.CPU)
	}
	still, _ := s.r.Behind(sched.Now())
	if still > report.Standstill {
		return fmt.Sprintf("stands still for %.1f s", still.Seconds())
	}
	if text := s.r.MessageProblem(true); text != "" {
		return text
	}
	if silent := s.r.Silent(); len(silent) > 0 {
		return silent[0].Line()
	}
	return s.r.MessageProblem(false)
}

// lockedClutches lists the clutches that are locked, padded to the widest list so far.
func (s *status) lockedClutches() string {
	const most = 20 // columns
	if len(s.mode) == 0 {
		return ""
	}
	list, more := "", 0
	for i, at := range s.mode {
		switch name := s.clutch[i]; {
		case s.y[at] != float64(kernel.Stuck):
		case more > 0 || len(list)+1+len(name) > most:
			more++
		default:
			list = strings.TrimSpace(list + " " + name)
		}
	}

	if more > 0 {
		list += fmt.Sprintf(" +%d", more)
	}
	list = "[" + cmp.Or(list, "-") + "]"
	s.widest = max(s.widest, len(list))
	return fmt.Sprintf("%-*s", s.widest, list)
}

// ratio is the overall ratio, engine over wheel; blank while the wheel stands.
func (s *status) ratio() string {
	if s.engine < 0 || s.wheel < 0 {
		return ""
	}
	if ratio := math.Abs(s.y[s.engine] / s.y[s.wheel]); ratio < 1000 {
		return fmt.Sprintf("%5.2f:1", ratio)
	}
	return "  -  :1"
}

// speeds are the engine's and the wheel's, in rpm where they are angular speeds.
func (s *status) speeds() (text string) {
	last := ""
	for _, c := range []struct {
		name  string
		i     int
		width int
	}{{"whl", s.wheel, 3}, {"eng", s.engine, 4}} {
		if c.i < 0 {
			continue
		}
		v, unit := s.y[c.i], s.r.Handover.Tables.Outputs[c.i].Unit
		if unit == "rad/s" {
			v, unit = v*30/math.Pi, "rpm"
		}
		one := fmt.Sprintf("%s %*.0f", c.name, c.width, v)
		if unit != last { // one unit for both, after the second
			one += " " + unit
		}
		last = unit
		text = strings.TrimSuffix(one+" "+text, " ")
	}

	return text
}

// latencyText is its 99th percentile, of all ticks.
func latencyText(h *sched.Histogram) string {
	p99 := float64(h.Quantile(0.99))
	switch {
	case p99 >= 100e6:
		return fmt.Sprintf("p99 %.0fms", p99/1e6)
	case p99 >= 1e6:
		return fmt.Sprintf("p99 %.1fms", p99/1e6)
	}

	return fmt.Sprintf("p99 %.0fus", p99/1e3)
}
