package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
)

// Expectation is something that a scenario demands, resolved.
type Expectation struct {
	Name yamlfile.Scalar // [what is wanted]
	Want string          // in words

	begin func() criterion // for a run
}

// windowCriterion demands a value between limits in a window.
type windowCriterion struct {
	Reading
	lo, hi   float64 // SI
	open     bool    // the limits themselves are outside
	from, to int64   // ticks, both judged; to 0: the end of the run
	display  scale   // to people

	ticks   int64   // judged,
	outside int64   // of them outside,
	margin  float64 // and how far inside the worst one was
	worst   float64
	at      int64 // its tick
}

// answerCriterion demands something within a time after its cause.
type answerCriterion struct {
	slot  int        // of the fault whose begin is the cause; -1: it is a tick or a condition
	cause Conditions // when all of these that are set hold
	holds Conditions // the answer: that these hold
	frame *message   // or that this one comes; nil: it is a condition
	ns    int64      // within
	after string     // the cause in words

	begun      int64 // tick of the cause; -1: it has not come
	cleared    bool  // and will not: the fault was cleared before
	answeredNs int64 // ns, from its cause to it; -1: it has not come
	at         int64 // tick that brought it
	stamped    bool  // it is by the kernel's stamp
}

// countCriterion demands a number of frames.
type countCriterion struct {
	message
	of     string
	lo, hi uint64
	seen   uint64
}

// expectKeys are the keys of an expectation, expectParts those of its values that are mappings.
var (
	expectKeys = []string{
		"name", "answer", "after", "count", "value", "within", "of", "above", "below", "from", "to",
		"is", "at_least", "at_most",
	}
	expectParts = map[string][]string{"answer": {"frame"}, "after": {"fault", "when"}, "count": {"message", "of"}}
)

// expectSpec is an expectation as it is written, of a scenario for a bench.
type expectSpec struct {
	*entry
	s *Scenario
	h *bench.Handover
}

// resolve makes an expectation of it.
func (w expectSpec) resolve() (e Expectation) {
	var kinds []string
	for _, kind := range []string{"value", "answer", "count"} {
		if w.get(kind).Line > 0 {
			kinds = append(kinds, kind)
		}
	}

	if len(kinds) != 1 {
		w.fail(w.at, "one of value: PORT, answer: CONDITION and count: {message: M, of: WHAT} is wanted")
	}
	switch kinds[0] {
	case "value":
		w.resolveValue(&e)
	case "answer":
		w.resolveAnswer(&e)
	case "count":
		w.resolveCount(&e)
	}

	if e.Name = w.get("name"); e.Name.Text == "" {
		e.Name = yamlfile.Scalar{Text: e.Want, Line: w.at.Line, Col: w.at.Col}
	}
	if slices.ContainsFunc(w.s.Expect, func(o Expectation) bool { return o.Name.Text == e.Name.Text }) {
		w.fail(e.Name, "two are called %q: give one another name (name: ...)", e.Name.Text)
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
	v := windowCriterion{lo: math.Inf(-1), hi: math.Inf(1), open: true, margin: math.Inf(1)}
	value := w.get("value")
	var err error
	if v.Reading, err = FindReading(w.h, value.Text); err != nil {
		w.fail(value, "%w", err)
	}
	v.display = v.scale

	var want string
	switch within, of, limit := w.text("within"), w.text("of"), w.text("above")+w.text("below"); {
	case within != "" && of != "" && limit == "":
		want = w.setTolerance(&v, within, of)
	case within+of == "" && limit != "":
		want = w.setLimits(&v)
	default:
		w.fail(value, "%s: within: 2 %% and of: X are wanted, or above: X, or below: X", value.Text)
	}

	e.Want = value.Text + " " + want + w.setWindow(&v)
	e.begin = func() criterion { c := v; return &c }
}

// setTolerance sets the limits to a tolerance around a value; in % it is of the value.
func (w expectSpec) setTolerance(v *windowCriterion, within, of string) (want string) {
	middle := w.readLimit(v, "of")
	var tolerance float64
	var err error
	if number, ok := strings.CutSuffix(within, "%"); ok {
		if tolerance, err = strconv.ParseFloat(strings.TrimSpace(number), 64); err != nil {
			err = fmt.Errorf("%q is no number of %%", within)
		}
		tolerance *= math.Abs(middle) / 100
	} else {
		tolerance, err = v.Difference(within)
	}

	if err == nil && !(tolerance > 0 && !math.IsInf(tolerance, 0)) {
		err = fmt.Errorf("%s of %s is no tolerance: it must be more than 0; beside 0 write it like %s",
			within, of, units.WithUnit("0.1", v.scale.name))
	}

	w.check("within", err)
	v.open, v.lo, v.hi = false, middle-tolerance, middle+tolerance
	return "within " + within + " of " + of
}

// setLimits sets one limit or both.
func (w expectSpec) setLimits(v *windowCriterion) (want string) {
	var list []string
	if above := w.text("above"); above != "" {
		v.lo, list = w.readLimit(v, "above"), append(list, "above "+above)
	}
	if below := w.text("below"); below != "" {
		v.hi, list = w.readLimit(v, "below"), append(list, "below "+below)
	}
	want = strings.Join(list, " and ")
	if !(v.lo < v.hi) {
		w.fail(w.get("below"), "%s: nothing is", want)
	}
	return want
}

// readLimit reads a limit; its unit is what people are shown.
func (w expectSpec) readLimit(v *windowCriterion, key string) float64 {
	text := w.text(key)
	limit, err := v.Read(text)
	if _, unit, ok := strings.Cut(text, " "); ok && err == nil {
		if _, err := units.Convert(unit, v.unit); err == nil || unit == "degC" {
			v.display = scaleOf(unit)
		}
	}

	w.check(key, err)
	return limit
}

// format is a value for people.
func (v *windowCriterion) format(value float64) string {
	return units.WithUnit(fmt.Sprintf("%.6g", v.display.fromSI(value)), v.display.name)
}

// setWindow sets the ticks that are judged, and returns them in words.
func (w expectSpec) setWindow(v *windowCriterion) (want string) {
	for _, key := range []string{"from", "to"} {
		if at := w.text(key); at != "" {
			want += " " + key + " " + at
		}
	}

	v.from, v.to = max(1, w.instant(w.h, "from")), w.instant(w.h, "to")
	if to := w.text("to"); to != "" {
		if t, err := parseQuantity(to, "s"); err == nil && math.RoundToEven(t*1e9) < float64(v.to*w.h.Tables.PeriodNs) {
			v.to-- // the last tick in the window, not the first after it
		}
		if v.to < v.from {
			w.fail(w.get("to"), "to: no tick lies in the window%s", want)
		}
	}

	w.checkEnd(max(v.from, v.to), "from", "to")
	return want
}

// checkEnd refuses what lies beyond the end of the run; of two keys the last one that is there says so.
func (w expectSpec) checkEnd(tick int64, first, last string) {
	at := w.get(last)
	if at.Text == "" {
		at = w.get(first)
	}
	if w.s.Ticks > 0 && tick > w.s.Ticks {
		w.fail(at, "%s is beyond the end of the run, at %s: it could not be judged", at.Text, w.s.FormatTick(w.s.Ticks, w.h))
	}
}

func (w expectSpec) resolveAnswer(e *Expectation) {
	w.checkKeys("an answer", "answer", "after", "within")
	a := answerCriterion{slot: -1, begun: -1, answeredNs: -1, holds: w.conditions(w.h, "answer")}
	want := w.text("answer")
	if name := w.text("answer.frame"); name != "" {
		m, err := findMessage(w.h, name)
		if err == nil && m.sent {
			err = fmt.Errorf("message %s is sent by the bench: it is no answer", name)
		}
		w.check("answer.frame", err)
		a.frame, want = &m, "frame "+name
	}

	if want == "" {
		w.fail(w.at, "answer: a condition or {frame: MESSAGE} is wanted")
	}
	w.setCause(&a)
	text := w.text("within")
	if text == "" {
		w.fail(w.at, "within: the time is missing (within: 50 ms)")
	}
	within, err := parseQuantity(text, "s")
	if err == nil && !(within > 0 && within < 1e6) {
		err = fmt.Errorf("%s is not more than 0 s", text)
	}
	w.check("within", err)
	if a.ns = int64(math.RoundToEven(within * 1e9)); a.begun >= 0 {
		w.checkEnd(a.begun+a.ns/w.h.Tables.PeriodNs, "after", "within")
	}
	e.Want = want + " within " + text + " after " + a.after
	e.begin = func() criterion { c := a; return &c }
}

// setCause sets what an answer is timed from.
func (w expectSpec) setCause(a *answerCriterion) {
	tick, name, when := w.text("after"), w.text("after.fault"), w.text("after.when")
	switch {
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
		w.fail(w.at, "answer: after: 3 s, {fault: NAME} or {when: CONDITION} is wanted")
	}
}

// countNames are what is counted of a received message, as Received has them.
var countNames = []string{
	"frames", "errors", "repeated", "sequence", "some_lost", "no_new", "timeouts", "length", "invalid", "range",
}

func (w expectSpec) resolveCount(e *Expectation) {
	w.checkKeys("a count", "count", "is", "at_least", "at_most")
	name, of := w.get("count.message"), w.get("count.of")
	if name.Text == "" || of.Text == "" {
		w.fail(w.at, "count: {message: M, of: WHAT} is wanted, with of one of %s", strings.Join(countNames, ", "))
	}
	c := countCriterion{of: of.Text, hi: math.MaxUint64}
	var err error
	c.message, err = findMessage(w.h, name.Text)
	w.check("count.message", err)

	is, least, most := w.text("is"), w.text("at_least"), w.text("at_most")
	switch {
	case !slices.Contains(countNames, c.of):
		w.fail(of, "count: of: %w", unknownName("count", c.of, countNames))
	case c.sent && c.of != "frames":
		w.fail(of, "count: of: the bench sends %s: only its frames are counted", name.Text)
	case (is != "") == (least+most != ""):
		w.fail(name, "count: is: 5 is wanted, or at_least: 5, or at_most: 5")
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
	e.begin = func() criterion { run := c; return &run }
}
