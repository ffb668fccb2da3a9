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
	page   *rt.Page
	rx     []int // per bus, index in Page.Rx of its first message
	Last   int64 // tick
	length int64 // of the run as it is asked for, ticks; 0: nobody has said
	cases  []judged
}

// judged is an expectation at work.
type judged struct {
	*Expectation

	ticks   int64   // of a window: judged,
	outside int64   // of them outside,
	margin  float64 // and how far inside the worst one was
	worst   float64
	at      int64 // its tick; of an answer, the one that brought it

	cause int64 // of an answer, tick; -1: it has not come
	gone  bool  // and will not: the fault was cleared before
	ns    int64 // from its cause to it; -1: it has not come
	stamp bool  // by the kernel's stamp
	seen  uint64
}

// NewJudge returns the judge of a run that p is the page of.
func NewJudge(s *Scenario, h *bench.Handover, p *rt.Page) *Judge {
	j := &Judge{period: h.Tables.PeriodNs, page: p, length: s.Ticks}
	n := 0
	for _, m := range h.Maps {
		j.rx = append(j.rx, n)
		n += len(m.Rx)
	}
	for i := range s.Expect {
		c := judged{Expectation: &s.Expect[i], margin: math.Inf(1), cause: -1, ns: -1}
		if a := c.answer; a != nil && a.slot < 0 && !a.cause[0].Set {
			c.cause = a.tick
		}
		j.cases = append(j.cases, c)
	}
	return j
}

// Begin tells when grid point 0 was, on CLOCK_REALTIME, ns. Without it answers are timed
// by ticks.
func (j *Judge) Begin(startNs int64) { j.start = startNs }

// Entry takes an entry of the ring.
func (j *Judge) Entry(e *rt.Entry) {
	switch e.Kind {
	case rt.KindStep:
		j.Tick(e)
	case rt.KindFrame:
		j.Frame(e)
	case rt.KindFault:
		j.Fault(e)
	}
}

// Tick takes a step of the plant.
func (j *Judge) Tick(e *rt.Entry) {
	j.Last = e.Tick
	for i := range j.cases {
		switch c := &j.cases[i]; {
		case c.value != nil:
			c.look(e)
		case c.answer != nil:
			if c.cause < 0 && c.answer.cause[0].Set && hold(&c.answer.cause, e) {
				c.cause = e.Tick
			}
			if c.cause >= 0 && c.cause <= e.Tick && c.ns < 0 && c.answer.frame == nil && hold(&c.answer.holds, e) {
				c.ns, c.at = (e.Tick-c.cause)*j.period, e.Tick
			}
		}
	}
}

// look judges a value.
func (c *judged) look(e *rt.Entry) {
	w := c.value
	if e.Tick < w.from || w.to > 0 && e.Tick > w.to {
		return
	}
	v := of(e, w.output, w.index)
	inside := v >= w.lo && v <= w.hi
	if w.open {
		inside = v > w.lo && v < w.hi
	}
	if c.ticks++; !inside {
		c.outside++
	}
	margin := min(v-w.lo, w.hi-v) // NaN if v is
	if margin != margin {
		margin = math.Inf(-1)
	}
	if margin < c.margin || c.ticks == 1 {
		c.margin, c.worst, c.at = margin, v, e.Tick
	}
}

// of is an entry of y or u.
func of(e *rt.Entry, output bool, i int) float64 {
	list := e.U
	if output {
		list = e.Y
	}
	if i >= len(list) {
		return math.NaN()
	}
	return list[i]
}

// hold tells whether all conditions that are set hold; NaN fulfils none.
func hold(list *[2]fault.Condition, e *rt.Entry) bool {
	for _, c := range list {
		v := of(e, c.Output, c.Index)
		if c.Set && !(c.Above && v > c.Limit || !c.Above && v < c.Limit) {
			return false
		}
	}
	return true
}

// Frame takes a frame; those that a fault keeps from the bus, or from the bench, are
// none.
func (j *Judge) Frame(e *rt.Entry) {
	if e.Withheld {
		return
	}
	for i := range j.cases {
		c := &j.cases[i]
		if n := c.count; n != nil && n.sent && e.Fate == rt.Sent && e.Bus == n.bus && e.Message == n.at {
			c.seen++
		}
		if a := c.answer; a != nil && a.frame != nil && e.Fate == rt.Received && e.Bus == a.frame.bus && e.Message == a.frame.at {
			j.answered(c, e)
		}
	}
}

// answered notes the first frame that came after its cause. What tick k reads came
// before it was due: without a stamp an answer to it is read at k+1 at the earliest.
func (j *Judge) answered(c *judged, e *rt.Entry) {
	if c.cause < 0 || c.ns >= 0 {
		return
	}
	ns := (e.Tick - c.cause) * j.period
	stamped := j.start != 0 && e.Stamp.Soft != 0
	if stamped {
		ns = e.Stamp.Soft - (j.start + c.cause*j.period)
	}
	if ns > 0 {
		c.ns, c.at, c.stamp = ns, e.Tick, stamped
	}
}

// Fault takes a change of a fault's state. A slot that was cleared while the run went on
// is another fault's from then on.
func (j *Judge) Fault(e *rt.Entry) {
	for i := range j.cases {
		c := &j.cases[i]
		switch {
		case c.answer == nil || c.answer.slot != e.Slot || c.cause >= 0:
		case e.State == fault.Free:
			c.gone = true
		case e.State == fault.Active && !c.gone:
			c.cause = e.Tick
		}
	}
}

// End judges; overflow is how many entries the ring had no room for.
func (j *Judge) End(overflow uint64) (list []report.Finding) {
	for i := range j.cases {
		c := &j.cases[i]
		f := report.Finding{Demand: report.Demand{What: c.Name.Text, Want: c.Want}}
		switch {
		case c.count != nil:
			f.Time = j.seconds(j.Last)
			j.endCount(c, &f)
		case c.value != nil:
			f.Time = j.seconds(c.ticks)
			j.endWindow(c, &f)
		default:
			f.Time = float64(max(0, c.ns)) / 1e9
			j.endAnswer(c, &f)
		}
		if overflow > 0 && (c.count == nil || c.count.sent) {
			f.Held, f.Seen = false, fmt.Sprintf("not judged: %d entries found no room in the ring", overflow)
		}
		list = append(list, f)
	}
	return list
}

func (j *Judge) seconds(ticks int64) float64 { return float64(ticks) * float64(j.period) / 1e9 }

// unjudged is why there is no verdict.
func (j *Judge) unjudged() string {
	return fmt.Sprintf("not judged: the run ended at %.9g s", j.seconds(j.Last))
}

func (j *Judge) endWindow(c *judged, f *report.Finding) {
	w := c.value
	f.Held = c.outside == 0 && cmp.Or(w.to, j.length) <= j.Last && c.ticks > 0
	if c.outside == 0 && !f.Held {
		f.Seen = j.unjudged()
		return
	}
	f.Seen = fmt.Sprintf("worst %s at %.9g s", w.show(c.worst), j.seconds(c.at))
	if c.outside > 0 {
		f.Seen += fmt.Sprintf(", outside at %d of %d ticks", c.outside, c.ticks)
	}
}

func (j *Judge) endAnswer(c *judged, f *report.Finding) {
	a := c.answer
	passed := (j.Last - c.cause) * j.period
	switch {
	case c.cause < 0 && a.slot >= 0:
		f.Seen = "not judged: " + a.after + " never became active"
	case c.cause < 0:
		f.Seen = "not judged: " + a.after + " never held"
	case c.ns < 0 && passed < a.ns:
		f.Seen = j.unjudged()
	case c.ns < 0:
		f.Seen = fmt.Sprintf("no answer to tick %d until the end, %g ms later", c.cause, float64(passed)/1e6)
	default:
		f.Held = c.ns <= a.ns
		how := fmt.Sprintf("by ticks, at tick %d", c.at)
		if c.stamp {
			how = fmt.Sprintf("by the kernel's stamp, read at tick %d", c.at)
		}
		f.Seen = fmt.Sprintf("after %g ms %s; its cause was at tick %d", float64(c.ns)/1e6, how, c.cause)
		if a.frame == nil && c.ns == 0 {
			f.Seen += ", and it held there"
		}
	}
}

func (j *Judge) endCount(c *judged, f *report.Finding) {
	n := c.count
	if !n.sent {
		w := &j.page.Rx[j.rx[n.bus]+n.at]
		c.seen = map[string]uint64{
			"frames": w.Frames.Load(), "errors": w.Errors.Load(), "repeated": w.Repeated.Load(), "sequence": w.Sequence.Load(),
			"some_lost": w.SomeLost.Load(), "no_new": w.NoNew.Load(), "timeouts": w.Timeouts.Load(), "length": w.Length.Load(),
			"invalid": w.Invalid.Load(), "range": w.Range.Load(),
		}[n.of]
	}
	f.Held = c.seen >= n.lo && c.seen <= n.hi
	f.Seen = fmt.Sprint(c.seen)
	// What is still to come in the time that was asked for can only make it more.
	if j.Last < j.length && c.seen <= n.hi && !(f.Held && n.hi == math.MaxUint64) {
		f.Held, f.Seen = false, fmt.Sprintf("%s, at %d", j.unjudged(), c.seen)
	}
}
