package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// Expectation is something that a scenario demands, resolved.
type Expectation struct {
	Name yamlfile.Scalar // [what is wanted]
	Want string          // in words

	value  *windowed
	answer *answered
	count  *counted
}

// windowed demands a value between limits in a window.
type windowed struct {
	value
	lo, hi   float64 // SI
	open     bool    // the limits themselves are outside
	from, to int64   // ticks, both judged; to 0: the end of the run
	shown    gauge   // to people
}

// answered demands something within a time after its cause.
type answered struct {
	tick  int64              // the cause: this tick,
	slot  int                // or when the fault in this slot becomes active; -1 not
	cause [2]fault.Condition // or when all of these that are set hold
	holds [2]fault.Condition // the answer: that these hold
	frame *message           // or that this one comes; nil: it is a condition
	ns    int64              // within
	after string             // the cause in words
}

// counted demands a number of frames.
type counted struct {
	message
	of     string
	lo, hi uint64
}

// expectSpec is an expectation as it is written.
type expectSpec struct {
	at                                              yamlfile.Scalar
	name, value, within, of, above, below, from, to yamlfile.Scalar
	answer, frame, after, fault, when               yamlfile.Scalar
	message, what, is, least, most                  yamlfile.Scalar
	yamlfile.Origin
}

// readExpectation reads an entry of expect.
func readExpectation(r *yamlfile.Reader, n ast.Node) expectSpec {
	s := expectSpec{at: yamlfile.ScalarAt(n, "expect"), Origin: r.Origin}
	mapped := func(n ast.Node) bool {
		switch n.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			return true
		}
		return false
	}
	known := []yamlfile.Key{
		{Name: "name", Read: func(n ast.Node) { s.name = yamlfile.ScalarAt(n, bench.ReadTitle(r, n, "expect: name")) }},
		{Name: "answer", Read: func(n ast.Node) {
			if !mapped(n) {
				s.answer = r.Scalar(n, "expect: answer")
				return
			}
			r.Mapping(n, "expect: answer", []yamlfile.Key{{Name: "frame", Read: r.StoreScalar(&s.frame, "expect: answer: frame")}})
		}},
		{Name: "after", Read: func(n ast.Node) {
			if !mapped(n) {
				s.after = r.Scalar(n, "expect: after")
				return
			}
			r.Mapping(n, "expect: after", []yamlfile.Key{
				{Name: "fault", Read: r.StoreScalar(&s.fault, "expect: after: fault")}, {Name: "when", Read: r.StoreScalar(&s.when, "expect: after: when")},
			})
		}},
		{Name: "count", Read: func(n ast.Node) {
			r.Mapping(n, "expect: count", []yamlfile.Key{
				{Name: "message", Read: r.StoreScalar(&s.message, "expect: count: message")}, {Name: "of", Read: r.StoreScalar(&s.what, "expect: count: of")},
			})
		}},
	}
	for _, k := range []struct {
		name string
		dst  *yamlfile.Scalar
	}{
		{"value", &s.value}, {"within", &s.within}, {"of", &s.of}, {"above", &s.above}, {"below", &s.below}, {"from", &s.from}, {"to", &s.to},
		{"is", &s.is}, {"at_least", &s.least}, {"at_most", &s.most},
	} {
		known = append(known, yamlfile.Key{Name: k.name, Read: r.StoreScalar(k.dst, "expect: "+k.name)})
	}
	r.Mapping(n, "expect", known)
	return s
}

// expectation resolves one.
func (s *Scenario) expectation(w *expectSpec, h *bench.Handover) (e Expectation, err error) {
	kinds := 0
	for _, k := range []yamlfile.Scalar{w.value, {Text: w.answer.Text + w.frame.Text}, {Text: w.message.Text + w.what.Text}} {
		if k.Text != "" {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		err = w.Errorf(w.at, "expect: one of value: PORT, answer: CONDITION and count: {message: M, of: WHAT} is wanted")
	case w.value.Text != "":
		e.value, e.Want, err = s.windowed(w, h)
	case w.message.Text+w.what.Text != "":
		e.count, e.Want, err = s.counted(w, h)
	default:
		e.answer, e.Want, err = s.answered(w, h)
	}
	e.Name = yamlfile.Scalar{Text: e.Want, Line: w.at.Line, Col: w.at.Col}
	if w.name.Text != "" {
		e.Name = w.name
	}
	if err == nil && slices.ContainsFunc(s.Expect, func(o Expectation) bool { return o.Name.Text == e.Name.Text }) {
		err = w.Errorf(e.Name, "expect: two are called %q: give one another name (name: ...)", e.Name.Text)
	}
	return e, err
}

// only refuses words that do not belong to this kind of expectation.
func (w *expectSpec) only(kind string, list ...yamlfile.Scalar) error {
	for _, k := range list {
		if k.Text != "" {
			return w.Errorf(k, "expect: %q does not belong to an expectation of %s", k.Text, kind)
		}
	}
	return nil
}

func (s *Scenario) windowed(w *expectSpec, h *bench.Handover) (e *windowed, want string, err error) {
	if err := w.only("a value", w.after, w.fault, w.when, w.is, w.least, w.most); err != nil {
		return nil, "", err
	}
	e = &windowed{lo: math.Inf(-1), hi: math.Inf(1), open: true}
	if e.value, err = findValue(h, w.value.Text); err != nil {
		return nil, "", w.Errorf(w.value, "expect: %w", err)
	}
	e.shown = e.gauge
	switch {
	case w.within.Text != "" && w.of.Text != "" && w.above.Text+w.below.Text == "":
		want, err = e.around(w)
	case w.above.Text+w.below.Text != "" && w.within.Text+w.of.Text == "":
		want, err = e.beyond(w)
	default:
		err = w.Errorf(w.value, "expect: %s: within: 2 %% and of: X are wanted, or above: X, or below: X", w.value.Text)
	}
	if err == nil {
		err = s.window(e, w, h)
	}
	return e, w.value.Text + " " + want + windowText(w), err
}

func windowText(w *expectSpec) (text string) {
	if w.from.Text != "" {
		text += " from " + w.from.Text
	}
	if w.to.Text != "" {
		text += " to " + w.to.Text
	}
	return text
}

// around sets the limits to a tolerance around a value; in % it is of the value.
func (e *windowed) around(w *expectSpec) (want string, err error) {
	e.open = false
	middle, err := e.limit(w.of)
	if err != nil {
		return "", w.Errorf(w.of, "expect: of: %w", err)
	}
	tolerance := 0.0
	if number, ok := strings.CutSuffix(w.within.Text, "%"); ok {
		if tolerance, err = strconv.ParseFloat(strings.TrimSpace(number), 64); err != nil {
			err = fmt.Errorf("%q is no number of %%", w.within.Text)
		}
		tolerance *= math.Abs(middle) / 100
	} else {
		tolerance, err = e.difference(w.within.Text, "")
	}
	if err == nil && !(tolerance > 0 && !math.IsInf(tolerance, 0)) {
		err = fmt.Errorf("%s of %s is no tolerance: it must be more than 0; beside 0 write it like %s", w.within.Text, w.of.Text, bench.WithUnit("0.1", e.gauge.name))
	}
	if err != nil {
		return "", w.Errorf(w.within, "expect: within: %w", err)
	}
	e.lo, e.hi = middle-tolerance, middle+tolerance
	return "within " + w.within.Text + " of " + w.of.Text, nil
}

// beyond sets one limit or both.
func (e *windowed) beyond(w *expectSpec) (want string, err error) {
	if w.above.Text != "" {
		if e.lo, err = e.limit(w.above); err != nil {
			return "", w.Errorf(w.above, "expect: above: %w", err)
		}
		want = "above " + w.above.Text
	}
	if w.below.Text != "" {
		if e.hi, err = e.limit(w.below); err != nil {
			return "", w.Errorf(w.below, "expect: below: %w", err)
		}
		want = strings.TrimPrefix(want+" and below "+w.below.Text, " and ")
	}
	if !(e.lo < e.hi) {
		return "", w.Errorf(w.below, "expect: %s: nothing is", want)
	}
	return want, nil
}

// limit reads a limit; its unit is what people are shown.
func (e *windowed) limit(w yamlfile.Scalar) (float64, error) {
	v, err := e.read(w.Text)
	if _, unit, ok := strings.Cut(w.Text, " "); ok && err == nil {
		if _, err := units.Convert(unit, e.unit); err == nil || unit == "degC" {
			e.shown = gaugeOf(unit)
		}
	}
	return v, err
}

// show is a value for people.
func (e *windowed) show(v float64) string {
	return bench.WithUnit(fmt.Sprintf("%.6g", e.shown.number(v)), e.shown.name)
}

// window sets the ticks that are judged.
func (s *Scenario) window(e *windowed, w *expectSpec, h *bench.Handover) (err error) {
	e.from = 1
	if w.from.Text != "" {
		if e.from, err = ParseInstant(h, w.from.Text); err != nil {
			return w.Errorf(w.from, "expect: from: %w", err)
		}
		e.from = max(1, e.from)
	}
	if w.to.Text != "" {
		if e.to, err = ParseInstant(h, w.to.Text); err != nil {
			return w.Errorf(w.to, "expect: to: %w", err)
		}
		if t, err := bare(w.to.Text, "s"); err == nil && math.RoundToEven(t*1e9) < float64(e.to*h.Tables.PeriodNs) {
			e.to-- // the last tick in the window, not the first after it
		}
		if e.to < e.from {
			return w.Errorf(w.to, "expect: to: no tick lies in the window%s", windowText(w))
		}
	}
	return s.ends(max(e.from, e.to), w, [2]yamlfile.Scalar{w.from, w.to}, h)
}

// ends refuses what lies beyond the end of the run.
func (s *Scenario) ends(tick int64, w *expectSpec, words [2]yamlfile.Scalar, h *bench.Handover) error {
	if s.Ticks == 0 || tick <= s.Ticks {
		return nil
	}
	word := words[1]
	if word.Text == "" {
		word = words[0]
	}
	return w.Errorf(word, "expect: %s is beyond the end of the run, at %s: it could not be judged", word.Text, s.FormatTick(s.Ticks, h))
}

func (s *Scenario) answered(w *expectSpec, h *bench.Handover) (e *answered, want string, err error) {
	if err := w.only("an answer", w.of, w.above, w.below, w.from, w.to, w.is, w.least, w.most); err != nil {
		return nil, "", err
	}
	e = &answered{slot: -1}
	if want = w.answer.Text; w.frame.Text != "" {
		m, err := findMessage(h, w.frame.Text)
		if err == nil && m.sent {
			err = fmt.Errorf("message %s is sent by the bench: it is no answer", w.frame.Text)
		}
		if err != nil {
			return nil, "", w.Errorf(w.frame, "expect: answer: %w", err)
		}
		e.frame, want = &m, "frame "+w.frame.Text
	} else if e.holds, err = ParseConditions(h, w.answer.Text); err != nil {
		return nil, "", w.Errorf(w.answer, "expect: answer: %w", err)
	}
	if err := s.cause(e, w, h); err != nil {
		return nil, "", err
	}
	within, err := bare(w.within.Text, "s")
	if e.ns = int64(math.RoundToEven(within * 1e9)); err == nil && !(within > 0 && within < 1e6) {
		err = fmt.Errorf("%s is not more than 0 s", w.within.Text)
	}
	if w.within.Text == "" {
		w.within, err = w.at, fmt.Errorf("the time is missing (within: 50 ms)")
	}
	if err != nil {
		return nil, "", w.Errorf(w.within, "expect: within: %w", err)
	}
	if e.slot < 0 && w.when.Text == "" {
		if err := s.ends(e.tick+e.ns/h.Tables.PeriodNs, w, [2]yamlfile.Scalar{w.after, w.within}, h); err != nil {
			return nil, "", err
		}
	}
	return e, want + " within " + w.within.Text + " after " + e.after, nil
}

// cause sets what an answer is timed from.
func (s *Scenario) cause(e *answered, w *expectSpec, h *bench.Handover) (err error) {
	given := 0
	for _, c := range []yamlfile.Scalar{w.after, w.fault, w.when} {
		if c.Text != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return w.Errorf(w.at, "expect: answer: after: 3 s, {fault: NAME} or {when: CONDITION} is wanted")
	case w.after.Text != "":
		e.after = w.after.Text
		if e.tick, err = ParseInstant(h, w.after.Text); err != nil {
			return w.Errorf(w.after, "expect: after: %w", err)
		}
	case w.fault.Text != "":
		e.after = "fault " + w.fault.Text
		if e.slot = slices.Index(s.FaultNames(), w.fault.Text); e.slot < 0 {
			return w.Errorf(w.fault, "expect: after: %w", unknown("fault", w.fault.Text, s.FaultNames()))
		}
	default:
		e.after = w.when.Text
		if e.cause, err = ParseConditions(h, w.when.Text); err != nil {
			return w.Errorf(w.when, "expect: after: %w", err)
		}
	}
	return nil
}

// countNames are what is counted of a received message, as Received has them.
var countNames = []string{"frames", "errors", "repeated", "sequence", "some_lost", "no_new", "timeouts", "length", "invalid", "range"}

func (s *Scenario) counted(w *expectSpec, h *bench.Handover) (e *counted, want string, err error) {
	if err := w.only("a count", w.within, w.of, w.above, w.below, w.from, w.to, w.after, w.fault, w.when); err != nil {
		return nil, "", err
	}
	if w.message.Text == "" || w.what.Text == "" {
		return nil, "", w.Errorf(w.at, "expect: count: {message: M, of: WHAT} is wanted, with of one of %s", strings.Join(countNames, ", "))
	}
	e = &counted{of: w.what.Text, hi: math.MaxUint64}
	if e.message, err = findMessage(h, w.message.Text); err != nil {
		return nil, "", w.Errorf(w.message, "expect: count: %w", err)
	}
	switch {
	case !slices.Contains(countNames, e.of):
		return nil, "", w.Errorf(w.what, "expect: count: of: %w", unknown("count", e.of, countNames))
	case e.sent && e.of != "frames":
		return nil, "", w.Errorf(w.what, "expect: count: of: the bench sends %s: only its frames are counted", w.message.Text)
	case w.is.Text == "" && w.least.Text == "" && w.most.Text == "" || w.is.Text != "" && w.least.Text+w.most.Text != "":
		return nil, "", w.Errorf(w.message, "expect: count: is: 5 is wanted, or at_least: 5, or at_most: 5")
	}
	for _, b := range []struct {
		word yamlfile.Scalar
		text string
		dst  []*uint64
	}{{w.is, "is ", []*uint64{&e.lo, &e.hi}}, {w.least, "at least ", []*uint64{&e.lo}}, {w.most, "at most ", []*uint64{&e.hi}}} {
		if b.word.Text == "" {
			continue
		}
		n, err := whole(b.word.Text, 0, math.MaxInt64)
		if err != nil {
			return nil, "", w.Errorf(b.word, "expect: count: %w", err)
		}
		for _, dst := range b.dst {
			*dst = uint64(n)
		}
		want += ", " + b.text + b.word.Text
	}
	if e.lo > e.hi {
		return nil, "", w.Errorf(w.least, "expect: count: no number is at least %d and at most %d", e.lo, e.hi)
	}
	return e, e.of + " of " + w.message.Text + ":" + strings.TrimPrefix(want, ","), nil
}
