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
	"unicode/utf8"

	"golang.org/x/term"

	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/progress"
	"lockstep/rt/report"
	"lockstep/sched"
)

// status draws the status line of a run: on a terminal one line, redrawn five times per second,
// otherwise a new line per second. The loss of the loop's CPU also gets a line that stays, because
// another problem may cover it in the status line.
type status struct {
	r        *Session
	out      *os.File
	terminal bool
	every    time.Duration // interval of lines

	y      []float64 // outputs of the plant
	clutch []string  // short names of the friction elements
	mode   []int     // outputs of their modes, indices in y
	engine int       // output of the engine speed, index in y; -1: none
	wheel  int       // output of the wheel speed, index in y; -1: none
	shown  []shownOutput
	widest int  // widest list of clutches so far, columns
	closed bool // the reader has closed the output; nothing more is drawn
	lost   bool // the line that the loop has lost its CPU is written

	last     time.Time     // time of the last request
	requests chan struct{} // requests for a line
	done     chan struct{} // closed when nothing more is drawn
}

// shownOutput is an output in the status line.
type shownOutput struct {
	index int // in status.y
	name  string
	unit  units.Wanted
}

// shownOutputs returns the further outputs in the status line of a bench.
func shownOutputs(b *bench.Bench, outputs []units.Port) (list []shownOutput) {
	for _, s := range b.Shown {
		i := bench.PortIndex(outputs, s.Output.Text)
		unit := outputs[i].DeclaredUnit()
		if s.Unit != "" {
			unit, _ = unit.Spell(s.Unit) // Prepare has checked it
		}
		list = append(list, shownOutput{i, s.Output.Text, unit})
	}
	return list
}

func newStatus(r *Session) *status {
	t := r.Handover.Tables
	s := &status{
		r: r, out: r.Options.Out, every: cmp.Or(r.Options.Every, time.Second),
		y: make([]float64, len(t.Outputs)), clutch: shorten(t.Frictions),
		engine: bench.PortIndex(t.Outputs, r.Bench.Engine.Text), wheel: bench.PortIndex(t.Outputs, r.Bench.Wheel.Text),
		shown: shownOutputs(r.Bench, t.Outputs),
	}
	for _, name := range t.Frictions {
		s.mode = append(s.mode, bench.PortIndex(t.Outputs, name+".mode"))
	}
	if s.terminal = term.IsTerminal(int(s.out.Fd())); s.terminal {
		s.every = 200 * time.Millisecond
	}
	s.last = time.Now()
	s.requests, s.done = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(s.done)
		_, err := io.WriteString(host.Fold(s.out), r.head)
		s.closed = err != nil
		for range s.requests {
			s.draw()
		}
	}()

	return s
}

// requestDraw requests a line when its interval is over. It never blocks: a slow terminal delays
// only the drawing goroutine.
func (s *status) requestDraw(now time.Time) {
	if now.Sub(s.last) < s.every-pollInterval/2 {
		return
	}
	s.last = now
	select {
	case s.requests <- struct{}{}:
	default: // the last line is still being drawn
	}
}

// shorten removes the common prefix of names: "clutch1", "clutch2" become "1", "2".
func shorten(names []string) []string {
	if len(names) < 2 {
		return names
	}
	n := 0
	differs := func(name string) bool { return n >= len(name)-1 || name[n] != names[0][n] }
	for !slices.ContainsFunc(names, differs) {
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
	form, clear := "%s\n", ""
	if s.terminal {
		form, clear = "\r%s\x1b[K", "\r\x1b[K"
	}
	if s.r.loop.migrated.Load() && !s.lost {
		s.lost = true
		fmt.Fprint(s.out, clear)
		fmt.Fprintf(host.Fold(s.out), "best effort: %s\n", s.r.missingLostCPU().What)
	}
	for _, text := range s.r.power.takeLines() {
		fmt.Fprint(s.out, clear)
		fmt.Fprintln(host.Fold(s.out), host.PrintableLine(text))
	}
	_, err := fmt.Fprintf(s.out, form, s.line(width))
	s.closed = err != nil // the reader has gone
}

// end ends the drawing and clears the line on a terminal.
func (s *status) end() {
	close(s.requests)
	select {
	case <-s.done:
	case <-time.After(pollInterval): // the terminal is stopped
		return
	}

	if s.terminal && !s.closed {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

// columns is the longest line if the output is no terminal: it does not wrap at 80 columns.
const columns = 79

// Parts of the line, in their order from left to right.
const (
	timePart = iota
	leftPart
	effortPart
	missedPart
	problemPart
	clutchPart
	ratioPart
	speedPart
	shownPart
	latencyPart
	partCount
)

// line returns the state of the run in at most width columns. It adds the parts by their
// importance as long as they fit; a problem is cut to the columns left.
func (s *status) line(width int) string {
	var list [partCount]string
	all, line := s.parts(), ""
	order := []int{timePart, effortPart, missedPart, latencyPart, problemPart, shownPart, speedPart, clutchPart, ratioPart, leftPart}
	if s.r.Options.Whole > 0 { // of a soak the time left matters more than its plant
		order = []int{timePart, effortPart, missedPart, latencyPart, problemPart, leftPart, shownPart, speedPart, clutchPart, ratioPart}
	}
	for _, i := range order {
		list[i] = all[i]
		longer := joinParts(list[:])
		if excess := utf8.RuneCountInString(longer) - width; excess > 0 {
			part := []rune(all[i])
			list[i] = ""
			if i == problemPart && len(part) > excess+3 {
				list[i] = strings.TrimRight(string(part[:len(part)-excess-3]), ". ") + "..."
			}
			if i == shownPart {
				list[i] = s.shownText(len(part) - excess)
			}
		}
		line = joinParts(list[:])
	}

	return line
}

// joinParts joins the parts that are not empty.
func joinParts(list []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(list), func(part string) bool { return part == "" }), " ")
}

// parts returns the parts of the line; "" is left out. The clutches, the ratio, the speeds and the
// latency are empty unless the target ticks.
func (s *status) parts() (list [partCount]string) {
	p := s.r.Status
	_, ticking := p.Outputs(s.y)
	seconds := float64(p.SimNs.Load()) / 1e9
	list[timePart] = fmt.Sprintf("%5.1f s", seconds)
	if seconds >= 1e4 {
		list[timePart] = fmt.Sprintf("%.0f s", seconds)
	}
	switch {
	case rt.State(p.State.Load()) == rt.Preparing:
		list[timePart], ticking = "preparing", false
	case !ticking:
		list[timePart] = "waiting for the first tick"
	}

	list[leftPart] = s.left(time.Duration(p.SimNs.Load()))

	if len(s.r.missing) > 0 || s.r.loop.migrated.Load() {
		list[effortPart] = "best effort"
	}
	list[problemPart] = s.problem()
	if !ticking {
		return list
	}

	list[missedPart] = fmt.Sprintf("missed %d", p.Missed.Load())
	if late := p.LateCount(); late > 0 && list[problemPart] == "" {
		list[missedPart] += fmt.Sprintf(" late %d", late)
	}
	list[clutchPart], list[ratioPart] = s.lockedClutches(), s.ratio()
	list[speedPart], list[shownPart], list[latencyPart] = s.speeds(), s.shownText(math.MaxInt), latencyText(&p.Late)
	return list
}

// shortest is the shortest run whose status line shows the time left.
const shortest = time.Minute

// left returns the time left of a run with an end; of a soak also how much of the whole is done.
func (s *status) left(done time.Duration) string {
	o := &s.r.Options
	if o.Whole > 0 {
		done += o.Before
		return fmt.Sprintf("soak %s of %s, %s left", progress.Text(done), progress.Text(o.Whole), progress.Text(o.Whole-done))
	}
	length := time.Duration(s.r.Handover.Loop.Ticks * s.r.Handover.Tables.PeriodNs)
	if length < shortest {
		return ""
	}
	return progress.Text(length-done) + " left"
}

// problem describes the most important present fault, in at most 60 columns; "" if there is none.
func (s *status) problem() string {
	if why := rt.Reason(s.r.Status.SafeReason.Load()); why != rt.NotEnded {
		return fmt.Sprintf("SAFE since %.3f s", float64(int64(s.r.Status.SafeTick.Load())*s.r.Handover.Tables.PeriodNs)/1e9)
	}
	if why := rt.Reason(s.r.Status.Reason.Load()); why != rt.NotEnded {
		return "ended: " + why.String() // the safe values follow
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
	if overdue, _ := s.r.Behind(sched.Now()); overdue > report.StallLimit {
		return fmt.Sprintf("no tick for %.1f s", overdue.Seconds())
	}
	if text := s.r.ConflictProblem(true); text != "" {
		return text
	}
	if text := s.r.MessageProblem(true); text != "" {
		return text
	}
	if silent := s.r.Silent(); len(silent) > 0 {
		return silent[0].Line()
	}
	return cmp.Or(s.r.MessageProblem(false), s.r.ConflictProblem(false))
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

// ratio returns the overall ratio, engine speed over wheel speed; "-" while the wheel stands.
func (s *status) ratio() string {
	if s.engine < 0 || s.wheel < 0 {
		return ""
	}
	if ratio := math.Abs(s.y[s.engine] / s.y[s.wheel]); ratio < 1000 {
		return fmt.Sprintf("%5.2f:1", ratio)
	}
	return "  -  :1"
}

// speeds returns the speeds of engine and wheel in their declared units.
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
		shown := s.r.Handover.Tables.Outputs[c.i].DeclaredUnit()
		unit := shown.Spelled
		one := fmt.Sprintf("%s %*.0f", c.name, c.width, shown.FromSI(s.y[c.i]))
		if unit != last { // a unit common to both speeds follows the second
			one += " " + unit
		}
		last = unit
		text = strings.TrimSuffix(one+" "+text, " ")
	}

	return text
}

// shownText returns the further outputs with their units, as many as fit in width columns.
func (s *status) shownText(width int) (text string) {
	for _, o := range s.shown {
		value := fmt.Sprintf("%s %.4g", o.name, o.unit.FromSI(s.y[o.index]))
		longer := joinParts([]string{text, units.WithUnit(value, o.unit.Spelled)})
		if utf8.RuneCountInString(longer) > width {
			break
		}
		text = longer
	}
	return text
}

// latencyText returns the 99th percentile of the wake-up latency of all ticks.
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
