package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/io/uds"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/diagnosis"
	"lockstep/rt/report"
)

// Intervals at which expectations ask the unit, ns.
const (
	dtcInterval   = 100e6 // dtc, until it is there
	noDTCInterval = 500e6 // no_dtc
	didInterval   = 500e6 // did
)

// storedMask are the status bits of a trouble code that the unit has noticed.
const storedMask = uds.TestFailed | uds.Pending | uds.Confirmed

// asker is an evaluator that asks the unit.
type asker interface {
	evaluator
	attach(j *Judge)                         // adds its items to the agenda
	addResult(j *Judge, r *diagnosis.Result) // evaluates the outcome of one of its items
	owns(i *diagnosis.Item) bool             // reports whether an item is its own
}

// question is what the evaluators that ask the unit have in common.
type question struct {
	item   *diagnosis.Item
	broken string // why the expectation is broken; "": it is not
	asked  int    // outcomes so far
}

func (q *question) owns(i *diagnosis.Item) bool { return q.item == i }

// fail notes a wrong outcome, and ends the questions.
func (q *question) fail(j *Judge, r *diagnosis.Result, why string) {
	q.broken = fmt.Sprintf("%s, at tick %d", why, r.Tick)
	if n := len(r.Exchanges); n > 0 {
		q.broken += ": " + r.Exchanges[n-1].String()
	}
	j.Agenda.End(q.item)
}

// answer returns the last answer of an outcome; false: there is none, which breaks the expectation.
func (q *question) answer(j *Judge, r *diagnosis.Result) ([]byte, bool) {
	q.asked++
	if n := len(r.Exchanges); r.Err == nil && n > 0 {
		return r.Exchanges[n-1].Answer, true
	}
	q.fail(j, r, fmt.Sprint(r.Err))
	return nil, false
}

// Diagnosis passes the outcome of a job to its expectation.
func (j *Judge) Diagnosis(r *diagnosis.Result) {
	if r.Item == nil && r.Err != nil && j.unasked == "" && len(r.Exchanges) == 1 && r.Exchanges[0].Answer != nil && r.Unasked {
		j.unasked = fmt.Sprintf("%v, at tick %d", r.Err, r.Tick)
	}
	for _, c := range j.cases {
		if a, ok := c.evaluator.(asker); ok && r.Item != nil && a.owns(r.Item) {
			a.addResult(j, r)
		}
	}
}

// attach adds the items of the expectations to the agenda.
func (j *Judge) attach() {
	for _, c := range j.cases {
		if a, ok := c.evaluator.(asker); ok {
			if j.Agenda == nil {
				j.Agenda = &diagnosis.Agenda{}
			}
			a.attach(j)
		}
	}
}

// ticks returns an interval in ticks, at least one.
func (j *Judge) ticks(ns int64) int64 { return max(1, ns/j.period) }

// unitOf returns the bus and the diagnosis file of an entry.
func unitOf(e *entry, h *bench.Handover) (bus int, s *diagnosis.Spec) {
	name, bus := e.get("bus"), -1
	var names []string
	for i := range h.Bench.Buses {
		b := &h.Bench.Buses[i]
		if b.Diagnosis.Text == "" || name.Text != "" && name.Text != b.Name.Text {
			continue
		}
		bus, names = i, append(names, b.Name.Text)
	}
	switch {
	case bus < 0 && name.Text != "":
		e.fail(name, "bus %s of the bench has no diagnosis file (diagnosis: FILE)", name.Text)
	case bus < 0:
		e.fail(e.at, "no bus of bench %s has a diagnosis file (diagnosis: FILE)", h.Bench.Name)
	case len(names) > 1:
		e.fail(e.at, "the buses %s have diagnosis files: choose one (bus: %s)", strings.Join(names, " and "), names[0])
	}
	s, err := h.Bench.ReadDiagnosis(bus)
	if err != nil {
		e.fail(e.at, "%w", err)
	}
	return bus, s
}

// stepKeys are the keys of a step of the diagnosis.
var stepKeys = []string{"name", "uds", "at", "bus"}

// readRequests reads the list "diagnosis".
func (s *Scenario) readRequests(r *yamlfile.Reader, f yamlfile.Field, h *bench.Handover) {
	for _, g := range r.Items(f, "diagnosis") {
		e := readEntry(r, g, "diagnosis", stepKeys, nil)
		if e.text("uds") == "" || e.text("at") == "" {
			e.fail(e.at, "expected {uds: COMMAND, at: TIME}")
		}
		bus, spec := unitOf(e, h)
		words := strings.Fields(e.text("uds"))
		job, err := spec.ParseCommand(words, h.Loop.Virtual)
		e.check("uds", err)
		tick := e.instant(h, "at")
		if s.Ticks > 0 && tick >= s.Ticks {
			e.fail(e.get("at"), "at: %s is at or after the end of the run, at %s", e.text("at"), s.FormatTick(s.Ticks, h))
		}
		x := Expectation{Want: "an answer", Name: e.get("name"), newEvaluator: func() evaluator {
			return &stepEvaluator{from: diagnosis.Item{Bus: bus, From: tick, Job: job}}
		}}
		if x.Name.Text == "" {
			x.Name = yamlfile.Scalar{Text: "uds " + e.text("uds") + " at " + e.text("at"), Line: e.at.Line, Col: e.at.Col}
		}
		s.addExpectation(e, x)
	}
}

// addExpectation adds an expectation with a name of its own.
func (s *Scenario) addExpectation(e *entry, x Expectation) {
	if slices.ContainsFunc(s.Expect, func(o Expectation) bool { return o.Name.Text == x.Name.Text }) {
		e.fail(x.Name, "two expectations are named %q: give one of them another name (name: ...)", x.Name.Text)
	}
	s.Expect = append(s.Expect, x)
}

// stepEvaluator is a request at a tick, which the unit must answer.
type stepEvaluator struct {
	question
	from   diagnosis.Item
	seen   string
	doneAt int64
}

func (s *stepEvaluator) attach(j *Judge) {
	i := s.from
	s.item = j.Agenda.Add(&i)
}

func (s *stepEvaluator) addEntry(*Judge, *rt.Entry) {}

func (s *stepEvaluator) addResult(j *Judge, r *diagnosis.Result) {
	if _, ok := s.answer(j, r); !ok {
		return
	}
	s.doneAt = r.Tick
	s.seen = fmt.Sprintf("%s at tick %d: %s", strings.Join(r.Lines, ", "), r.Tick, r.Exchanges[len(r.Exchanges)-1].String())
}

func (s *stepEvaluator) finish(j *Judge, f *report.Finding) {
	f.Time, f.Held = j.seconds(s.doneAt), s.seen != ""
	switch {
	case s.broken != "":
		f.Seen = s.broken
	case s.seen != "":
		f.Seen = s.seen
	default:
		j.leaveOpen(f)
	}
}

func (s *stepEvaluator) seenSoFar(*Judge) string {
	if s.broken != "" || s.seen != "" {
		return ""
	}
	return "not answered yet"
}

// dtcEvaluator expects a trouble code with a status within a time after its cause.
type dtcEvaluator struct {
	question
	cause answerEvaluator // its cause and its time
	bus   int
	spec  *diagnosis.Spec
	code  uint32
	mask  uds.Status
	name  string // of the code

	seenAt int64
	seen   string
	last   string // the last status
}

func (w expectSpec) resolveDTC(e *Expectation) {
	w.checkKeys("a trouble code", "dtc", "status", "after", "within", "bus")
	bus, spec := unitOf(w.entry, w.h)
	code, err := spec.FindCode(w.text("dtc"))
	w.check("dtc", err)
	d := dtcEvaluator{cause: answerEvaluator{slot: -1, answered: noAnswer}, bus: bus, spec: spec, code: code, name: spec.NameCode(code)}
	d.mask = w.status(spec)
	status := cmp.Or(w.text("status"), map[bool]string{true: "active", false: "confirmed"}[spec.Node != nil])
	w.setCause(&d.cause)
	within := w.setWithin(&d.cause)
	e.Want = fmt.Sprintf("%s %s within %s after %s", w.text("dtc"), status, within, d.cause.after)
	e.newEvaluator = func() evaluator { c := d; return &c }
}

// status returns the status of the entry.
func (w expectSpec) status(spec *diagnosis.Spec) uds.Status {
	mask, ok := spec.ParseStatus(w.text("status"))
	if !ok {
		w.check("status", unknownName("status", w.text("status"), spec.StatusNames()))
	}
	return mask
}

func (d *dtcEvaluator) attach(j *Judge) {
	from := diagnosis.Never
	if d.cause.begun >= 0 {
		from = d.cause.begun
	}
	mask := d.mask
	d.item = j.Agenda.Add(&diagnosis.Item{Bus: d.bus, From: from, Every: j.ticks(dtcInterval), Job: d.spec.ReadCodes(mask)})
}

func (d *dtcEvaluator) addEntry(j *Judge, e *rt.Entry) {
	if begun := d.cause.begun; begun < 0 {
		if d.cause.noteCause(e); d.cause.begun >= 0 {
			j.Agenda.Start(d.item, d.cause.begun)
		}
	}
	if e.Kind == rt.KindStep && d.cause.begun >= 0 && (e.Tick-d.cause.begun)*j.period > d.cause.ns+dtcInterval {
		j.Agenda.End(d.item)
	}
}

func (d *dtcEvaluator) addResult(j *Judge, r *diagnosis.Result) {
	if d.seen != "" {
		return
	}
	answer, ok := d.answer(j, r)
	if !ok {
		return
	}
	list, err := d.spec.ParseCodes(d.mask, answer)
	if err != nil {
		d.fail(j, r, err.Error())
		return
	}
	d.last = fmt.Sprintf("%d other codes at tick %d: %s", len(list), r.Tick, r.Exchanges[len(r.Exchanges)-1].String())
	for _, c := range list {
		if c.Code == d.code && c.Status&d.mask != 0 {
			d.seenAt = r.Tick
			d.seen = fmt.Sprintf("%s: %s at tick %d, %g ms after the cause at tick %d: %s", d.name, d.spec.FormatStatus(c.Status), r.Tick,
				float64((r.Tick-d.cause.begun)*j.period)/1e6, d.cause.begun, r.Exchanges[len(r.Exchanges)-1].String())
			j.Agenda.End(d.item)
		}
	}
}

func (d *dtcEvaluator) finish(j *Judge, f *report.Finding) {
	f.Time = j.seconds(max(0, d.seenAt-d.cause.begun))
	passed := (j.Last - d.cause.begun) * j.period
	switch {
	case d.broken != "":
		f.Seen = d.broken
	case d.seen != "":
		f.Held, f.Seen = (d.seenAt-d.cause.begun)*j.period <= d.cause.ns, d.seen
	case d.cause.begun < 0:
		d.cause.leaveOpen(j, f)
	case passed < d.cause.ns:
		j.leaveOpen(f)
	default:
		f.Seen = fmt.Sprintf("no such code within %g ms from tick %d; %s", float64(min(passed, d.cause.ns))/1e6, d.cause.begun, d.last)
	}
}

func (d *dtcEvaluator) seenSoFar(j *Judge) string {
	switch {
	case d.broken != "" || d.seen != "" || d.cause.begun >= 0 && (j.Last-d.cause.begun)*j.period >= d.cause.ns:
		return ""
	case d.cause.begun < 0:
		return "waits for " + d.cause.after
	}
	return fmt.Sprintf("waits for the code since tick %d", d.cause.begun)
}

// noDTCEvaluator expects that trouble codes are absent in a window.
type noDTCEvaluator struct {
	question
	window windowEvaluator // its ticks
	bus    int
	code   uint32 // uds.AllDTCs: any
	mask   uds.Status
	spec   *diagnosis.Spec
	last   string
	lastAt int64
}

func (w expectSpec) resolveNoDTC(e *Expectation) {
	w.checkKeys("no trouble code", "no_dtc", "status", "from", "to", "bus")
	n := noDTCEvaluator{code: uds.AllDTCs, mask: storedMask}
	n.bus, n.spec = unitOf(w.entry, w.h)
	if text := w.text("no_dtc"); text != "any" {
		var err error
		n.code, err = n.spec.FindCode(text)
		w.check("no_dtc", err)
	}
	e.Want = "no trouble code " + w.text("no_dtc")
	if text := w.text("status"); text != "" {
		n.mask = w.status(n.spec)
		e.Want += " " + text
	}
	e.Want += w.setWindow(&n.window)
	e.newEvaluator = func() evaluator { c := n; return &c }
}

func (n *noDTCEvaluator) attach(j *Judge) {
	n.item = j.Agenda.Add(&diagnosis.Item{Bus: n.bus, From: n.window.from, To: n.window.to, Every: j.ticks(noDTCInterval), Job: n.spec.ReadCodes(n.mask)})
}

func (n *noDTCEvaluator) addEntry(*Judge, *rt.Entry) {}

func (n *noDTCEvaluator) addResult(j *Judge, r *diagnosis.Result) {
	answer, ok := n.answer(j, r)
	if !ok {
		return
	}
	list, err := n.spec.ParseCodes(n.mask, answer)
	if err != nil {
		n.fail(j, r, err.Error())
		return
	}
	for _, c := range list {
		if c.Status&n.mask != 0 && (n.code == uds.AllDTCs || c.Code == n.code) {
			n.fail(j, r, fmt.Sprintf("%s: %s", n.spec.NameCode(c.Code), n.spec.FormatStatus(c.Status)))
			return
		}
	}
	n.lastAt, n.last = r.Tick, r.Exchanges[len(r.Exchanges)-1].String()
}

func (n *noDTCEvaluator) finish(j *Judge, f *report.Finding) {
	finishWindow(j, f, &n.window, &n.question, fmt.Sprintf("none in %d answers, the last at tick %d: %s", n.asked, n.lastAt, n.last))
}

// finishWindow sets the finding of an expectation that asks again and again in a window.
func finishWindow(j *Judge, f *report.Finding, w *windowEvaluator, q *question, seen string) {
	end := w.to
	if end == 0 {
		end = j.length
	}
	f.Time = j.seconds(max(0, min(j.Last, max(end, w.from))-w.from))
	switch {
	case q.broken != "":
		f.Seen = q.broken
	case q.asked == 0 || end > j.Last:
		j.leaveOpen(f)
		f.Skipped = f.Skipped && !w.isOver(j)
	default:
		f.Held, f.Seen = true, seen
	}
}

func (n *noDTCEvaluator) seenSoFar(j *Judge) string {
	if n.broken != "" || n.window.to > 0 && j.Last >= n.window.to {
		return ""
	}
	return fmt.Sprintf("none in %d answers", n.asked)
}

// didEvaluator expects the value of a data identifier in a window: near a value or an output of the plant, between
// limits, or a text.
type didEvaluator struct {
	question
	window windowEvaluator // its ticks; with limits their values, SI
	bus    int
	value  diagnosis.Value
	is     string   // expected text; "": a number is expected
	of     *Reading // value of the plant; nil: the limits are fixed
	within float64  // tolerance around it, SI

	history [historyTicks]float64 // values of of by tick
	last    int64                 // newest tick in history
	margin  float64               // smallest distance to a limit, SI
	seen    string                // at that distance
}

// historyTicks is how many ticks an answer may be older than the newest entry of the ring.
const historyTicks = 1024

func (w expectSpec) resolveDID(e *Expectation) {
	w.checkKeys("an identifier", "did", "within", "of", "above", "below", "is", "from", "to", "bus")
	d := didEvaluator{}
	var spec *diagnosis.Spec
	d.bus, spec = unitOf(w.entry, w.h)
	_, values, err := spec.FindValues(w.text("did"))
	if err == nil && len(values) != 1 {
		err = fmt.Errorf("%s has %d values in %s; name one of them", w.text("did"), len(values), spec.File)
	}
	w.check("did", err)
	d.value = values[0]
	d.window = windowEvaluator{lo: math.Inf(-1), hi: math.Inf(1), open: true, Reading: Reading{Wanted: d.value.Wanted()}}
	want := ""
	switch within, of, limit := w.text("within"), w.text("of"), w.text("above")+w.text("below"); {
	case w.text("is") != "" && within+of+limit == "":
		d.is, want = w.text("is"), "is "+w.text("is")
	case !d.value.IsNumber():
		w.fail(w.get("did"), "%s is %s: expected is: TEXT", d.value.Name, d.value.Type)
	case within != "" && of != "" && limit == "":
		want = w.setNear(&d, within, of)
	case within+of == "" && limit != "":
		want = w.setLimits(&d.window)
	default:
		w.fail(w.get("did"), "%s: expected within: 3 K and of: X, or above: X, or below: X, or is: TEXT", d.value.Name)
	}
	e.Want = w.text("did") + " " + want + w.setWindow(&d.window)
	e.newEvaluator = func() evaluator { c := d; return &c }
}

// setNear sets the tolerance around a value, or around a value of the plant.
func (w expectSpec) setNear(d *didEvaluator, within, of string) string {
	r, err := FindReading(w.h, of)
	if err != nil {
		return w.setTolerance(&d.window, within, of)
	}
	if r.Dim != d.value.Wanted().Dim {
		w.fail(w.get("of"), "of: %s is in %s, %s in %s", of, r.Spelled, d.value.Name, d.value.Unit)
	}
	d.within, err = readTyped(within, d.value.Wanted().Difference())
	if err == nil && !(d.within > 0) {
		err = errors.New("the tolerance is not positive")
	}
	w.check("within", err)
	d.of = &r
	return "within " + within + " of " + of
}

func (d *didEvaluator) attach(j *Judge) {
	id := d.value.ID
	d.item = j.Agenda.Add(&diagnosis.Item{Bus: d.bus, From: d.window.from, To: d.window.to, Every: j.ticks(didInterval),
		Job: diagnosis.Job{Label: "read " + d.value.Name, Do: func(t *uds.Tester) ([]string, error) {
			data, err := t.ReadData(id)
			if err != nil {
				return nil, err
			}
			text, err := d.value.Format(data)
			return []string{text}, err
		}}})
}

func (d *didEvaluator) addEntry(_ *Judge, e *rt.Entry) {
	if d.of != nil && e.Kind == rt.KindStep {
		d.history[e.Tick%historyTicks], d.last = d.of.Value(e.Y, e.U), e.Tick
	}
}

func (d *didEvaluator) addResult(j *Judge, r *diagnosis.Result) {
	answer, ok := d.answer(j, r)
	if !ok {
		return
	}
	text, err := d.value.Format(answer[3:])
	if err != nil {
		d.fail(j, r, err.Error())
		return
	}
	what := d.value.Name + " " + text
	if d.is != "" {
		if strings.Trim(text, `"`) != d.is {
			d.fail(j, r, what)
		}
		d.seen = fmt.Sprintf("%s, at tick %d: %s", what, r.Tick, r.Exchanges[len(r.Exchanges)-1].String())
		return
	}
	number, err := d.value.Number(answer[3:])
	if err != nil {
		d.fail(j, r, err.Error())
		return
	}
	si, lo, hi := d.value.Wanted().ToSI(number), d.window.lo, d.window.hi
	if d.of != nil {
		at := min(r.Tick, d.last)
		if at < 1 || d.last-at >= historyTicks {
			return
		}
		v := d.history[at%historyTicks]
		lo, hi = v-d.within, v+d.within
		what += ", plant " + units.WithUnit(fmt.Sprintf("%.6g", d.of.FromSI(v)), d.of.Spelled)
	}
	if inside := si >= lo && si <= hi; !inside || d.of == nil && d.window.open && (si == lo || si == hi) {
		d.fail(j, r, what)
		return
	}
	if margin := min(si-lo, hi-si); d.seen == "" || margin < d.margin {
		d.margin, d.seen = margin, fmt.Sprintf("worst %s at tick %d: %s", what, r.Tick, r.Exchanges[len(r.Exchanges)-1].String())
	}
}

func (d *didEvaluator) finish(j *Judge, f *report.Finding) {
	finishWindow(j, f, &d.window, &d.question, fmt.Sprintf("%d answers, %s", d.asked, d.seen))
}

func (d *didEvaluator) seenSoFar(j *Judge) string {
	if d.broken != "" || d.window.to > 0 && j.Last >= d.window.to {
		return ""
	}
	return fmt.Sprintf("within the limits in %d answers", d.asked)
}
