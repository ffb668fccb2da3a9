package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/network"
)

// Expectation is an expectation of a scenario, resolved.
type Expectation struct {
	Name yamlfile.Scalar // default: Want
	Want string          // expected value, for people

	newEvaluator func() evaluator // evaluator of one run
}

// windowEvaluator expects a value between limits in a window.
type windowEvaluator struct {
	Reading
	lo, hi   float64 // limits, SI
	open     bool    // the limits themselves are outside
	from, to int64   // first and last tick of the window; to 0: the end of the run

	ticks   int64   // ticks evaluated
	outside int64   // ticks with the value outside the limits
	margin  float64 // smallest distance to a limit, SI; < 0: outside
	worst   float64 // value at that distance, SI
	at      int64   // tick of that value
}

// answerEvaluator expects an answer within a time after its cause.
type answerEvaluator struct {
	slot  int        // slot of the fault whose start is the cause; -1: the cause is a tick or a condition
	cause Conditions // conditions whose start is the cause

	ignition int // 1 + state of the ignition whose start is the cause, each time; 0: none

	holds Conditions // conditions that are the answer
	frame *message   // message that is the answer; nil: holds is
	ns    int64      // longest time from cause to answer, ns
	after string     // cause, for people

	cleared  bool // the fault was cleared before it started
	answered      // to the present cause

	slowest answered // of the earlier causes that were answered in time
	times   int      // earlier causes
}

// answered is an answer to a cause.
type answered struct {
	begun      int64 // tick of the cause; -1: none so far
	answeredNs int64 // time from cause to answer, ns; -1: no answer so far
	at         int64 // tick of the answer
	stamped    bool  // answeredNs is by the kernel's stamp, otherwise by ticks
}

// noAnswer is an answer before its cause.
var noAnswer = answered{begun: -1, answeredNs: -1}

// countEvaluator expects a number of frames.
type countEvaluator struct {
	message
	of     string // one of countNames
	lo, hi uint64
	seen   uint64
}

// expectKeys are the keys of an expectation; expectParts are the keys of its values that are
// mappings.
var (
	expectKeys = []string{
		"name", "answer", "after", "count", "value", "within", "of", "above", "below", "from", "to",
		"is", "at_least", "at_most", "silent", "dtc", "no_dtc", "status", "did", "bus",
	}
	expectParts = map[string][]string{"answer": {"frame"}, "after": {"fault", "when"}, "count": {"message", "of"}}
)

// expectSpec is an expectation as a scenario file has it.
type expectSpec struct {
	*entry
	s *Scenario
	h *bench.Handover
}

// resolve resolves the expectation for the bench.
func (w expectSpec) resolve() (e Expectation) {
	var kinds []string
	for _, kind := range []string{"value", "answer", "count", "silent", "dtc", "no_dtc", "did"} {
		if w.get(kind).Line > 0 {
			kinds = append(kinds, kind)
		}
	}

	if len(kinds) != 1 {
		w.fail(w.at, "expected one of value: PORT, answer: CONDITION, count: {message: M, of: WHAT}, silent: NODE, dtc: CODE, no_dtc: CODE|any and did: NAME")
	}
	switch kinds[0] {
	case "value":
		w.resolveValue(&e)
	case "answer":
		w.resolveAnswer(&e)
	case "count":
		w.resolveCount(&e)
	case "silent":
		w.resolveSilent(&e)
	case "dtc":
		w.resolveDTC(&e)
	case "no_dtc":
		w.resolveNoDTC(&e)
	case "did":
		w.resolveDID(&e)
	}

	if e.Name = w.get("name"); e.Name.Text == "" {
		e.Name = yamlfile.Scalar{Text: e.Want, Line: w.at.Line, Col: w.at.Col}
	}
	if slices.ContainsFunc(w.s.Expect, func(o Expectation) bool { return o.Name.Text == e.Name.Text }) {
		w.fail(e.Name, "two expectations are named %q: give one of them another name (name: ...)", e.Name.Text)
	}
	return e
}

// checkKeys refuses keys that do not belong to this kind of expectation.
func (w expectSpec) checkKeys(kind string, keys ...string) {
	for _, f := range w.fields {
		name, _, _ := strings.Cut(f.key, ".")
		if f.Text != "" && name != "name" && !slices.Contains(keys, name) {
			w.fail(f.Scalar, "%q does not belong to an expectation of %s", f.Text, kind)
		}
	}
}

func (w expectSpec) resolveValue(e *Expectation) {
	w.checkKeys("a value", "value", "within", "of", "above", "below", "from", "to")
	v := windowEvaluator{lo: math.Inf(-1), hi: math.Inf(1), open: true, margin: math.Inf(1)}
	value := w.get("value")
	var err error
	if v.Reading, err = FindReading(w.h, value.Text); err != nil {
		w.fail(value, "%w", err)
	}

	var want string
	switch within, of, limit := w.text("within"), w.text("of"), w.text("above")+w.text("below"); {
	case within != "" && of != "" && limit == "":
		want = w.setTolerance(&v, within, of)
	case within+of == "" && limit != "":
		want = w.setLimits(&v)
	default:
		w.fail(value, "%s: expected within: 2 %% and of: X, or above: X, or below: X", value.Text)
	}

	e.Want = value.Text + " " + want + w.setWindow(&v)
	e.newEvaluator = func() evaluator { c := v; return &c }
}

// setTolerance sets the limits to a tolerance around a value. A tolerance in % is relative to the value,
// and a difference if the value is in % itself.
func (w expectSpec) setTolerance(v *windowEvaluator, within, of string) (want string) {
	middle := w.readLimit(v, "of")
	typed, err := units.Evaluate(within, nil)
	tolerance := typed.SI * math.Abs(middle)
	switch share := err == nil && typed.Spelled() == "%" && v.Spelled != "%" && !strings.HasSuffix(of, "%"); {
	case !share:
		tolerance, err = readTyped(within, v.Difference())
	case v.Dim == units.Want("K").Dim:
		err = fmt.Errorf("%s of %s is no tolerance of a temperature; write it in K", within, of)
	}

	if err == nil && !(tolerance > 0 && !math.IsInf(tolerance, 0)) {
		err = fmt.Errorf("%s of %s is not a positive tolerance; around 0 use a tolerance with a unit, like %s",
			within, of, units.WithUnit("0.1", v.Difference().Spelled))
	}

	w.check("within", err)
	v.open, v.lo, v.hi = false, middle-tolerance, middle+tolerance
	return "within " + within + " of " + of
}

// setLimits sets the lower limit, the upper limit or both.
func (w expectSpec) setLimits(v *windowEvaluator) (want string) {
	var list []string
	if above := w.text("above"); above != "" {
		v.lo, list = w.readLimit(v, "above"), append(list, "above "+above)
	}
	if below := w.text("below"); below != "" {
		v.hi, list = w.readLimit(v, "below"), append(list, "below "+below)
	}
	want = strings.Join(list, " and ")
	if !(v.lo < v.hi) {
		w.fail(w.get("below"), "%s: no value is", want)
	}
	return want
}

// readLimit reads a limit to SI.
func (w expectSpec) readLimit(v *windowEvaluator, key string) float64 {
	limit, err := readTyped(w.text(key), v.Wanted)
	w.check(key, err)
	return limit
}

// setWindow sets the window and returns it in words.
func (w expectSpec) setWindow(v *windowEvaluator) (want string) {
	for _, key := range []string{"from", "to"} {
		if at := w.text(key); at != "" {
			want += " " + key + " " + at
		}
	}

	v.from, v.to = max(1, w.instant(w.h, "from")), w.instant(w.h, "to")
	if to := w.text("to"); to != "" {
		if t, err := readTyped(to, seconds); err == nil && math.RoundToEven(t*1e9) < float64(v.to*w.h.Tables.PeriodNs) {
			v.to-- // a time is rounded up to a tick; the window ends at the last tick before it
		}
		if v.to < v.from {
			w.fail(w.get("to"), "to: no tick lies in the window%s", want)
		}
	}

	w.checkEnd(max(v.from, v.to), "from", "to")
	return want
}

// checkEnd refuses a tick after the end of the run. The error is at key last, or at first if last
// is missing.
func (w expectSpec) checkEnd(tick int64, first, last string) {
	at := w.get(last)
	if at.Text == "" {
		at = w.get(first)
	}
	if w.s.Ticks > 0 && tick > w.s.Ticks {
		w.fail(at, "%s is after the end of the run, at %s: the expectation could not be judged", at.Text, w.s.FormatTick(w.s.Ticks, w.h))
	}
}

func (w expectSpec) resolveAnswer(e *Expectation) {
	w.checkKeys("an answer", "answer", "after", "within")
	a := answerEvaluator{slot: -1, answered: noAnswer, slowest: noAnswer, holds: w.conditions(w.h, "answer")}
	want := w.text("answer")
	if name := w.text("answer.frame"); name != "" {
		m, err := findMessage(w.h, name)
		if err == nil && m.sent {
			err = fmt.Errorf("the bench sends message %s: an answer must be a received message", name)
		}
		w.check("answer.frame", err)
		a.frame, want = &m, "frame "+name
	}

	if want == "" {
		w.fail(w.at, "answer: expected a condition or {frame: MESSAGE}")
	}
	w.setCause(&a)
	text := w.setWithin(&a)
	e.Want = want + " within " + text + " after " + a.after
	e.newEvaluator = func() evaluator { c := a; return &c }
}

// setWithin sets the longest time from cause to answer, and returns it as written.
func (w expectSpec) setWithin(a *answerEvaluator) string {
	ns, err := w.within()
	w.check("within", err)
	if a.ns = ns; a.begun >= 0 {
		w.checkEnd(a.begun+a.ns/w.h.Tables.PeriodNs, "after", "within")
	}
	return w.text("within")
}

// setCause sets the cause of an answer.
func (w expectSpec) setCause(a *answerEvaluator) {
	tick, name, when := w.text("after"), w.text("after.fault"), w.text("after.when")
	state, ignition := strings.CutPrefix(tick, "ignition ")
	switch {
	case ignition:
		s, err := network.ParseState(state)
		if w.h.Loop.Network == nil {
			err = errNoIgnition
		}
		w.check("after", err)
		a.after, a.ignition = tick, 1+int(s)
	case tick != "":
		a.after, a.begun = tick, w.instant(w.h, "after")
	case when != "" && name == "":
		a.after, a.cause = when, w.conditions(w.h, "after.when")
	case name != "" && when == "":
		a.after, a.slot = "fault "+name, slices.Index(w.s.FaultNames(), name)
		if a.slot < 0 {
			w.check("after.fault", unknownName("fault", name, w.s.FaultNames()))
		}
	default:
		w.fail(w.at, "answer: expected after: 3 s, ignition STATE, {fault: NAME} or {when: CONDITION}")
	}
}

// The counts of a sent message: its frames, and those of other nodes with its identifier.
const (
	framesCount    = "frames"
	conflictsCount = "conflicts"
)

// countNames are the counts: of a received message, by their names in report.Received, and of a sent
// one.
var countNames = []string{
	framesCount, "errors", "repeated", "sequence", "some_lost", "no_new", "timeouts", "length", "format",
	"beyond", "brs", "esi", "invalid", "range", conflictsCount,
}

func (w expectSpec) resolveCount(e *Expectation) {
	w.checkKeys("a count", "count", "is", "at_least", "at_most")
	name, of := w.get("count.message"), w.get("count.of")
	if name.Text == "" || of.Text == "" {
		w.fail(w.at, "count: expected {message: M, of: WHAT}, with of one of %s", strings.Join(countNames, ", "))
	}
	c := countEvaluator{of: of.Text, hi: math.MaxUint64}
	var err error
	c.message, err = findMessage(w.h, name.Text)
	w.check("count.message", err)

	is, least, most := w.text("is"), w.text("at_least"), w.text("at_most")
	switch {
	case !slices.Contains(countNames, c.of):
		w.fail(of, "count: of: %w", unknownName("count", c.of, countNames))
	case c.sent && c.of != framesCount && c.of != conflictsCount:
		w.fail(of, "count: of: the bench sends %s: only %s and %s of a sent message are counted",
			name.Text, framesCount, conflictsCount)
	case !c.sent && c.of == conflictsCount:
		w.fail(of, "count: of: the bench receives %s: %s are counted of a sent message", name.Text, conflictsCount)
	case (is != "") == (least+most != ""):
		w.fail(name, "count: expected is: 5, or at_least: 5, or at_most: 5")
	}

	var list []string
	for _, bound := range []struct {
		key, text string
		dst       []*uint64
	}{{"is", is, []*uint64{&c.lo, &c.hi}}, {"at_least", least, []*uint64{&c.lo}}, {"at_most", most, []*uint64{&c.hi}}} {
		if bound.text == "" {
			continue
		}
		n, err := parseWhole(bound.text, 0, math.MaxInt64)
		if err != nil {
			w.fail(w.get(bound.key), "count: %w", err)
		}
		for _, dst := range bound.dst {
			*dst = uint64(n)
		}
		list = append(list, strings.ReplaceAll(bound.key, "_", " ")+" "+bound.text)
	}

	if c.lo > c.hi {
		w.fail(w.get("at_least"), "count: no number is at least %d and at most %d", c.lo, c.hi)
	}
	e.Want = c.of + " of " + name.Text + ": " + strings.Join(list, ", ")
	e.newEvaluator = func() evaluator { run := c; return &run }
}
