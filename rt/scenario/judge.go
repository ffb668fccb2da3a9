package scenario

import (
	"cmp"
	"fmt"
	"math"

	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/diagnosis"
	"lockstep/rt/fault"
	"lockstep/rt/network"
	"lockstep/rt/report"
)

// Judge compares a run with the expectations of its scenario. It gets each entry of the ring once,
// in order. Its memory does not grow with the run.
type Judge struct {
	period int64           // ns
	start  int64           // grid point 0 on CLOCK_REALTIME, ns; 0: answers are timed by ticks
	status *rt.StatusBlock // counts of received messages
	rx     []int           // per bus, index in StatusBlock.Rx of its first message
	tx     []int           // per bus, index in StatusBlock.TxConflicts of its first message
	Last   int64           // last tick
	length int64           // planned length of the run, ticks; 0: none
	short  bool            // that length is shorter than the scenario
	cases  []runningExpectation

	Agenda  *diagnosis.Agenda // what the expectations ask of the units; nil: nothing
	unasked string            // first answer of a unit without a request; "": none
}

// runningExpectation is an expectation with its evaluator of one run.
type runningExpectation struct {
	*Expectation
	evaluator
}

// evaluator evaluates one expectation in one run.
type evaluator interface {
	addEntry(j *Judge, e *rt.Entry)     // evaluates an entry of the ring
	finish(j *Judge, f *report.Finding) // sets Held, Seen and Time
	seenSoFar(j *Judge) string          // describes an expectation that may still hold or break; "": it is decided
}

// Progress is the state of an expectation while the run lasts.
type Progress struct {
	What  string `json:"what"`  // its name, or Want
	Want  string `json:"want"`  // expected value
	State string `json:"state"` // "open", "held", "broken" or "skipped"
	Seen  string `json:"seen"`  // observed so far
}

// Progress returns the states of the expectations.
func (j *Judge) Progress() (list []Progress) {
	for _, c := range j.cases {
		v := Progress{What: c.Name.Text, Want: c.Want, State: "open", Seen: c.seenSoFar(j)}
		if v.Seen == "" {
			f := report.Finding{}
			c.finish(j, &f)
			v.Seen, v.State = f.Seen, f.Verdict()
		}
		list = append(list, v)
	}
	return list
}

// NewJudge returns the judge of a run with status block p.
func NewJudge(s *Scenario, h *bench.Handover, p *rt.StatusBlock) *Judge {
	j := &Judge{period: h.Tables.PeriodNs, status: p, length: s.Ticks, short: s.Shortened}
	rx, tx := 0, 0
	for _, m := range h.Maps {
		j.rx, j.tx = append(j.rx, rx), append(j.tx, tx)
		rx, tx = rx+len(m.Rx), tx+len(m.Tx)
	}

	for i := range s.Expect {
		j.cases = append(j.cases, runningExpectation{&s.Expect[i], s.Expect[i].newEvaluator()})
	}
	j.attach()
	return j
}

// Begin sets the time of grid point 0 on CLOCK_REALTIME, ns. Without it answers are timed by ticks.
func (j *Judge) Begin(startNs int64) { j.start = startNs }

// Entry evaluates an entry of the ring. Frames that a fault withholds do not count.
func (j *Judge) Entry(e *rt.Entry) {
	if e.Kind == rt.KindStep {
		j.Last = e.Tick
	}
	if e.Kind == rt.KindFrame && e.Withheld {
		return
	}
	for _, c := range j.cases {
		c.addEntry(j, e)
	}
}

// End returns the findings; overflow is the number of entries that the ring has lost.
func (j *Judge) End(overflow uint64) (list []report.Finding) {
	for _, c := range j.cases {
		f := report.Finding{Criterion: report.Criterion{What: c.Name.Text, Want: c.Want}}
		c.finish(j, &f)
		n, ok := c.evaluator.(*countEvaluator)
		if fromStatus := ok && (!n.sent || n.of == conflictsCount); overflow > 0 && !fromStatus {
			f.Held, f.Skipped, f.Seen = false, false, fmt.Sprintf("not judged: %d entries of the ring were lost", overflow)
		}
		list = append(list, f)
	}
	if j.unasked != "" {
		list = append(list, report.Finding{Criterion: report.Criterion{What: "answers of the unit", Want: "one for each request", Seen: j.unasked}, Time: j.seconds(j.Last)})
	}

	return list
}

func (j *Judge) seconds(ticks int64) float64 { return float64(ticks) * float64(j.period) / 1e9 }

// leaveOpen sets the finding of an expectation that the run was too short to judge: skipped in a shortened run that
// reached its planned end, otherwise broken.
func (j *Judge) leaveOpen(f *report.Finding) {
	f.Skipped = j.short && j.Last >= j.length
	f.Seen = fmt.Sprintf("not judged: the run ended at %.9g s", j.seconds(j.Last))
}

func (w *windowEvaluator) addEntry(_ *Judge, e *rt.Entry) {
	if e.Kind != rt.KindStep || e.Tick < w.from || w.to > 0 && e.Tick > w.to {
		return
	}
	v := w.Value(e.Y, e.U)
	inside := v >= w.lo && v <= w.hi
	if w.open {
		inside = v > w.lo && v < w.hi
	}
	if w.ticks++; !inside {
		w.outside++
	}
	margin := min(v-w.lo, w.hi-v) // NaN if v is
	if margin != margin {
		margin = math.Inf(-1)
	}
	if margin < w.margin || w.ticks == 1 {
		w.margin, w.worst, w.at = margin, v, e.Tick
	}
}

func (w *windowEvaluator) finish(j *Judge, f *report.Finding) {
	f.Time = j.seconds(w.ticks)
	f.Held = w.outside == 0 && cmp.Or(w.to, j.length) <= j.Last && w.ticks > 0
	if w.outside == 0 && !f.Held {
		j.leaveOpen(f)
		f.Skipped = f.Skipped && !w.isOver(j)
		return
	}

	f.Seen = w.worstValue(j)
	if w.outside > 0 {
		f.Seen += fmt.Sprintf(", outside at %d of %d ticks", w.outside, w.ticks)
	}
}

// isOver reports whether the window has an end that the run reached.
func (w *windowEvaluator) isOver(j *Judge) bool { return w.to > 0 && w.to <= j.Last }

func (w *windowEvaluator) seenSoFar(j *Judge) string {
	switch {
	case w.outside > 0 || w.to > 0 && j.Last >= w.to && w.ticks > 0:
		return ""
	case w.ticks == 0:
		return fmt.Sprintf("the window begins at %.9g s", j.seconds(w.from))
	}
	return fmt.Sprintf("within the limits at %d ticks; %s", w.ticks, w.worstValue(j))
}

// worstValue describes the value that was nearest to a limit, or farthest outside.
func (w *windowEvaluator) worstValue(j *Judge) string {
	return fmt.Sprintf("worst %s at %.9g s",
		units.WithUnit(fmt.Sprintf("%.6g", w.FromSI(w.worst)), w.Spelled), j.seconds(w.at))
}

// addEntry waits for the cause, then for the answer. A slot that was cleared may hold another fault
// afterwards.
func (a *answerEvaluator) addEntry(j *Judge, e *rt.Entry) {
	a.noteCause(e)
	switch e.Kind {
	case rt.KindStep:
		if a.begun >= 0 && a.begun <= e.Tick && a.answeredNs < 0 && a.frame == nil && a.holds.Hold(e.Y, e.U) {
			a.answeredNs, a.at = (e.Tick-a.begun)*j.period, e.Tick
		}
	case rt.KindFrame:
		if a.frame != nil && e.Fate == rt.Received && e.Bus == a.frame.bus && e.Message == a.frame.at {
			a.addFrame(j, e)
		}
	}
}

// noteCause waits for the cause.
func (a *answerEvaluator) noteCause(e *rt.Entry) {
	switch e.Kind {
	case rt.KindNetwork:
		if a.ignition > 0 && e.Network.Topic == network.OfIgnition && int(e.Network.Value) == a.ignition-1 {
			a.beginAgain(e.Tick)
		}
	case rt.KindStep:
		if a.begun < 0 && a.cause[0].Set && a.cause.Hold(e.Y, e.U) {
			a.begun = e.Tick
		}
	case rt.KindFault:
		switch {
		case a.slot != e.Slot || a.begun >= 0:
		case e.State == fault.Free:
			a.cleared = true
		case e.State == fault.Active && !a.cleared:
			a.begun = e.Tick
		}
	}
}

// beginAgain notes a cause at a tick. An earlier cause whose answer is missing or came late stays the one that counts.
func (a *answerEvaluator) beginAgain(tick int64) {
	switch {
	case a.begun < 0:
	case a.answeredNs < 0 || a.answeredNs > a.ns:
		return
	default:
		a.keepSlowest()
	}
	a.answered = answered{begun: tick, answeredNs: -1}
}

// keepSlowest adds the present answer to the earlier ones.
func (a *answerEvaluator) keepSlowest() {
	if a.times++; a.answeredNs > a.slowest.answeredNs {
		a.slowest = a.answered
	}
}

// addFrame times the first frame after the cause. A frame that tick k reads arrived before tick k
// was due. Without a stamp, an answer to tick k is therefore read at k+1 at the earliest.
func (a *answerEvaluator) addFrame(j *Judge, e *rt.Entry) {
	if a.begun < 0 || a.answeredNs >= 0 {
		return
	}
	ns := (e.Tick - a.begun) * j.period
	stamped := j.start != 0 && e.Stamp.Soft != 0
	if stamped {
		ns = e.Stamp.Soft - (j.start + a.begun*j.period)
	}
	if ns > 0 {
		a.answeredNs, a.at, a.stamped = ns, e.Tick, stamped
	}
}

func (a *answerEvaluator) finish(j *Judge, f *report.Finding) {
	run := *a // the run may go on
	a = &run
	inTime := a.answeredNs >= 0 && a.answeredNs <= a.ns
	if open := a.answeredNs < 0 && (j.Last-a.begun)*j.period < a.ns; a.times > 0 && (inTime || open) {
		if inTime {
			a.keepSlowest()
		}
		a.answered = a.slowest
	}
	f.Time = float64(max(0, a.answeredNs)) / 1e9
	passed := (j.Last - a.begun) * j.period
	switch {
	case a.begun < 0:
		a.leaveOpen(j, f)
	case a.answeredNs < 0 && passed < a.ns:
		j.leaveOpen(f)
	case a.answeredNs < 0:
		f.Seen = fmt.Sprintf("no answer within %g ms from tick %d to the end", float64(passed)/1e6, a.begun)
	default:
		f.Held = a.answeredNs <= a.ns
		how := fmt.Sprintf("at tick %d, timed by ticks", a.at)
		if a.stamped {
			how = fmt.Sprintf("read at tick %d, timed by the kernel's stamp", a.at)
		}
		f.Seen = fmt.Sprintf("an answer after %g ms, %s; cause at tick %d", float64(a.answeredNs)/1e6, how, a.begun)
		if a.frame == nil && a.answeredNs == 0 {
			f.Seen += ", where the answer held already"
		}
	}
	switch {
	case f.Held && a.times > 1:
		f.Seen += fmt.Sprintf("; the slowest of %d", a.times)
	case !f.Held && a.times > 0:
		f.Seen += fmt.Sprintf("; %d times before in time", a.times)
	}
}

// leaveOpen sets the finding where the cause did not come.
func (a *answerEvaluator) leaveOpen(j *Judge, f *report.Finding) {
	j.leaveOpen(f)
	f.Skipped = f.Skipped && !a.cleared
	f.Seen = "not judged: " + a.after + " never held"
	if a.slot >= 0 {
		f.Seen = "not judged: " + a.after + " never became active"
	}
}

func (a *answerEvaluator) seenSoFar(j *Judge) string {
	switch {
	case a.ignition > 0 && a.answeredNs >= 0 && a.answeredNs <= a.ns:
		return fmt.Sprintf("answered %d times so far", a.times+1)
	case a.answeredNs >= 0 || a.begun >= 0 && (j.Last-a.begun)*j.period >= a.ns:
		return ""
	case a.begun < 0:
		return "waits for " + a.after
	}
	return fmt.Sprintf("waits for the answer since tick %d", a.begun)
}

func (n *countEvaluator) addEntry(_ *Judge, e *rt.Entry) {
	if e.Kind == rt.KindFrame && n.sent && n.of == framesCount && e.Fate == rt.Sent && e.Bus == n.bus && e.Message == n.at {
		n.seen++
	}
}

// seenSoFar returns "" once the count exceeds its limit, or has reached one that has no end.
func (n *countEvaluator) seenSoFar(j *Judge) string {
	if n.read(j); n.seen > n.hi || n.seen >= n.lo && n.hi == math.MaxUint64 {
		return ""
	}
	return fmt.Sprintf("%d so far", n.seen)
}

// read reads the counts that the status block keeps.
func (n *countEvaluator) read(j *Judge) {
	switch {
	case n.of == conflictsCount:
		n.seen = j.status.TxConflicts[j.tx[n.bus]+n.at].Frames.Load()
	case !n.sent:
		w := j.status.Rx[j.rx[n.bus]+n.at].Counts()
		n.seen = map[string]uint64{
			"frames": w.Frames, "errors": w.Errors, "repeated": w.Repeated, "sequence": w.Sequence, "some_lost": w.SomeLost,
			"no_new": w.NoNew, "timeouts": w.Timeouts, "length": w.Length, "format": w.Format,
			"beyond": w.Beyond, "brs": w.BRS, "esi": w.ESI, "invalid": w.Invalid, "range": w.Range,
		}[n.of]
	}
}

func (n *countEvaluator) finish(j *Judge, f *report.Finding) {
	n.read(j)
	f.Time = j.seconds(j.Last)
	f.Held = n.seen >= n.lo && n.seen <= n.hi
	f.Seen = fmt.Sprint(n.seen)
	// In a run that ended early, and in a shortened one that has too few, the count could still have grown.
	if early := j.Last < j.length && !(f.Held && n.hi == math.MaxUint64); n.seen <= n.hi && early || n.seen < n.lo && j.short {
		j.leaveOpen(f)
		f.Held, f.Seen = false, fmt.Sprintf("%s with a count of %d", f.Seen, n.seen)
	}
}
