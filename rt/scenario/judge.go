package scenario

import (
	"cmp"
	"fmt"
	"math"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/report"
)

// Judge holds what a run does against what its scenario expects. It is fed with the
// entries of the ring in their order, each once, and holds a few numbers for each
// expectation, however long the run is.
type Judge struct {
	period int64 // ns
	start  int64 // grid point 0 on CLOCK_REALTIME, ns; 0: time is what the ticks say
	page   *rt.StatusBlock
	rx     []int // per bus, index in Page.Rx of its first message
	Last   int64 // tick
	length int64 // of the run as it is asked for, ticks; 0: nobody has said
	cases  []activeCase
}

// activeCase is an expectation at work.
type activeCase struct {
	*Expectation
	criterion
}

// criterion is what an expectation demands, and what a run has done of it.
type criterion interface {
	entry(j *Judge, e *rt.Entry)     // takes an entry of the ring
	end(j *Judge, f *report.Finding) // says what was seen, and whether it held
}

// NewJudge returns the judge of a run that p is the page of.
func NewJudge(s *Scenario, h *bench.Handover, p *rt.StatusBlock) *Judge {
	j := &Judge{period: h.Tables.PeriodNs, page: p, length: s.Ticks}
	n := 0
	for _, m := range h.Maps {
		j.rx = append(j.rx, n)
		n += len(m.Rx)
	}

	for i := range s.Expect {
		j.cases = append(j.cases, activeCase{&s.Expect[i], s.Expect[i].begin()})
	}
	return j
}

// Begin tells when grid point 0 was, on CLOCK_REALTIME, ns. Without it answers are timed
// by ticks.
func (j *Judge) Begin(startNs int64) { j.start = startNs }

// Entry takes an entry of the ring. Frames that a fault keeps from the bus, or from the bench,
// are none.
func (j *Judge) Entry(e *rt.Entry) {
	if e.Kind == rt.KindStep {
		j.Last = e.Tick
	}
	if e.Kind == rt.KindFrame && e.Withheld {
		return
	}
	for _, c := range j.cases {
		c.entry(j, e)
	}
}

// End judges; overflow is how many entries the ring had no room for.
func (j *Judge) End(overflow uint64) (list []report.Finding) {
	for _, c := range j.cases {
		f := report.Finding{Criterion: report.Criterion{What: c.Name.Text, Want: c.Want}}
		c.end(j, &f)
		n, ok := c.criterion.(*countCriterion)
		if onPage := ok && !n.sent; overflow > 0 && !onPage {
			f.Held, f.Seen = false, fmt.Sprintf("not judged: %d entries found no room in the ring", overflow)
		}
		list = append(list, f)
	}

	return list
}

func (j *Judge) seconds(ticks int64) float64 { return float64(ticks) * float64(j.period) / 1e9 }

// notJudged is why there is no verdict.
func (j *Judge) notJudged() string {
	return fmt.Sprintf("not judged: the run ended at %.9g s", j.seconds(j.Last))
}

func (w *windowCriterion) entry(_ *Judge, e *rt.Entry) {
	if e.Kind != rt.KindStep || e.Tick < w.from || w.to > 0 && e.Tick > w.to {
		return
	}
	v := w.Of(e.Y, e.U)
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

func (w *windowCriterion) end(j *Judge, f *report.Finding) {
	f.Time = j.seconds(w.ticks)
	f.Held = w.outside == 0 && cmp.Or(w.to, j.length) <= j.Last && w.ticks > 0
	if w.outside == 0 && !f.Held {
		f.Seen = j.notJudged()
		return
	}

	f.Seen = fmt.Sprintf("worst %s at %.9g s", w.format(w.worst), j.seconds(w.at))
	if w.outside > 0 {
		f.Seen += fmt.Sprintf(", outside at %d of %d ticks", w.outside, w.ticks)
	}
}

// entry waits for the cause, then for the answer. A slot that was cleared while the run went on
// is another fault's from then on.
func (a *answerCriterion) entry(j *Judge, e *rt.Entry) {
	switch e.Kind {
	case rt.KindStep:
		if a.begun < 0 && a.cause[0].Set && a.cause.Hold(e.Y, e.U) {
			a.begun = e.Tick
		}
		if a.begun >= 0 && a.begun <= e.Tick && a.answeredNs < 0 && a.frame == nil && a.holds.Hold(e.Y, e.U) {
			a.answeredNs, a.at = (e.Tick-a.begun)*j.period, e.Tick
		}
	case rt.KindFrame:
		if a.frame != nil && e.Fate == rt.Received && e.Bus == a.frame.bus && e.Message == a.frame.at {
			a.addFrame(j, e)
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

// addFrame notes the first frame that came after its cause. What tick k reads came
// before it was due: without a stamp an answer to it is read at k+1 at the earliest.
func (a *answerCriterion) addFrame(j *Judge, e *rt.Entry) {
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

func (a *answerCriterion) end(j *Judge, f *report.Finding) {
	f.Time = float64(max(0, a.answeredNs)) / 1e9
	passed := (j.Last - a.begun) * j.period
	switch {
	case a.begun < 0 && a.slot >= 0:
		f.Seen = "not judged: " + a.after + " never became active"
	case a.begun < 0:
		f.Seen = "not judged: " + a.after + " never held"
	case a.answeredNs < 0 && passed < a.ns:
		f.Seen = j.notJudged()
	case a.answeredNs < 0:
		f.Seen = fmt.Sprintf("no answer to tick %d until the end, %g ms later", a.begun, float64(passed)/1e6)
	default:
		f.Held = a.answeredNs <= a.ns
		how := fmt.Sprintf("by ticks, at tick %d", a.at)
		if a.stamped {
			how = fmt.Sprintf("by the kernel's stamp, read at tick %d", a.at)
		}
		f.Seen = fmt.Sprintf("after %g ms %s; its cause was at tick %d", float64(a.answeredNs)/1e6, how, a.begun)
		if a.frame == nil && a.answeredNs == 0 {
			f.Seen += ", and it held there"
		}
	}
}

func (n *countCriterion) entry(_ *Judge, e *rt.Entry) {
	if e.Kind == rt.KindFrame && n.sent && e.Fate == rt.Sent && e.Bus == n.bus && e.Message == n.at {
		n.seen++
	}
}

func (n *countCriterion) end(j *Judge, f *report.Finding) {
	f.Time = j.seconds(j.Last)
	if !n.sent {
		w := j.page.Rx[j.rx[n.bus]+n.at].Counts()
		n.seen = map[string]uint64{
			"frames": w.Frames, "errors": w.Errors, "repeated": w.Repeated, "sequence": w.Sequence, "some_lost": w.SomeLost,
			"no_new": w.NoNew, "timeouts": w.Timeouts, "length": w.Length, "invalid": w.Invalid, "range": w.Range,
		}[n.of]
	}

	f.Held = n.seen >= n.lo && n.seen <= n.hi
	f.Seen = fmt.Sprint(n.seen)
	// What is still to come in the time that was asked for can only make it more.
	if j.Last < j.length && n.seen <= n.hi && !(f.Held && n.hi == math.MaxUint64) {
		f.Held, f.Seen = false, fmt.Sprintf("%s, at %d", j.notJudged(), n.seen)
	}
}
