package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"lockstep/model/units"
	"lockstep/rt/junit"
	"lockstep/rt/plot"
)

// Comparison is the result of comparing two runs at their common times.
type Comparison struct {
	A, B       *Trace
	Times      []float64 // common times, s of A
	Shift      float64   // s: time of A less time of B
	Deviations []Deviation
	Only       [2][]string // names of the signals that only A, only B has
	Missing    [2][]string // of Only, those that are judged

	rows    [2][]int // index of each common time in A, in B
	aligned bool     // by a trigger, not by time
}

// Deviation is the difference of a signal between two runs. Its values are in the unit of the first run.
type Deviation struct {
	Name      string
	Unit      units.Wanted // of a difference
	Largest   float64      // largest difference; +Inf where one run alone has no number
	At        float64      // time of the largest one, s
	RMS       float64      // root of the mean square
	Tolerance float64      // NaN: the signal is not judged
	Since     float64      // time of the first difference beyond the tolerance, s; NaN: none

	signal [2]Signal
}

// Beyond reports whether the signal deviates beyond its tolerance.
func (d *Deviation) Beyond() bool { return !math.IsNaN(d.Since) }

// rank is larger, the worse a deviation is: relative to the tolerance, otherwise to the range of A.
func (d *Deviation) rank() float64 {
	low, high := limits(d.signal[0].Values)
	switch {
	case d.Beyond():
		return 1e9 + d.Largest/max(d.Tolerance, 1e-12*(high-low))
	case d.Largest == 0:
		return 0
	}
	return d.Largest / (high - low)
}

// sameTime is the largest difference of two equal times, s: they are multiples of different periods.
const sameTime = 1e-9

// Compare compares the signals that both traces have; a judged signal that one of them lacks is missing. Without tolerances every signal has the tolerance 0;
// with them, only the signals that they name are judged. trigger is a condition such as
// "clutch1.pressure > 2 bar": the runs are aligned where it is first true; "" aligns them by time.
func Compare(a, b *Trace, trigger string, tolerances []string) (*Comparison, error) {
	c := &Comparison{A: a, B: b}
	if trigger != "" {
		atA, err := a.firstTime(trigger)
		if err != nil {
			return nil, err
		}
		atB, err := b.firstTime(trigger)
		if err != nil {
			return nil, err
		}
		c.Shift, c.aligned = atA-atB, true
	}
	c.pairTimes()
	if len(c.Times) == 0 {
		return nil, fmt.Errorf("%s and %s have no time in common: compare runs with the same period", a.File, b.File)
	}
	for i := range a.Signals {
		s := a.Signals[i]
		k := slices.IndexFunc(b.Signals, func(o Signal) bool { return o.Name == s.Name })
		if k < 0 {
			c.Only[0] = append(c.Only[0], s.Name)
			continue
		}
		other, err := b.Signals[k].Converted(s.Unit.Spelled)
		if err != nil {
			return nil, fmt.Errorf("signal %q: %s", s.Name, units.Reason(err))
		}
		d := Deviation{Name: s.Name, Unit: s.Unit.Difference(), Tolerance: math.NaN(), Since: math.NaN(), signal: [2]Signal{s, other}}
		if len(tolerances) == 0 {
			d.Tolerance = 0
		}
		c.Deviations = append(c.Deviations, d)
	}
	for i := range b.Signals {
		if name := b.Signals[i].Name; !slices.ContainsFunc(c.Deviations, func(d Deviation) bool { return d.Name == name }) {
			c.Only[1] = append(c.Only[1], name)
		}
	}
	if len(c.Deviations) == 0 {
		return nil, fmt.Errorf("%s and %s have no signal in common: %s has %s; %s has %s", a.File, b.File,
			a.File, strings.Join(a.names(), ", "), b.File, strings.Join(b.names(), ", "))
	}
	for _, text := range tolerances {
		if err := c.setTolerance(text); err != nil {
			return nil, err
		}
	}
	for side, names := range c.Only {
		for _, name := range names {
			if len(tolerances) == 0 || slices.ContainsFunc(tolerances, func(text string) bool { return tolerates(text, name) }) {
				c.Missing[side] = append(c.Missing[side], name)
			}
		}
	}
	for i := range c.Deviations {
		c.measure(&c.Deviations[i])
	}
	slices.SortStableFunc(c.Deviations, func(x, y Deviation) int { return cmp.Compare(y.rank(), x.rank()) })
	return c, nil
}

// condition matches a trigger.
var condition = regexp.MustCompile(`^\s*([^\s<>]+)\s*([<>])\s*(.+)$`)

// firstTime returns the time at which a condition is first true.
func (t *Trace) firstTime(text string) (float64, error) {
	m := condition.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("trigger %q: write SIGNAL > VALUE or SIGNAL < VALUE", text)
	}
	i := slices.IndexFunc(t.Signals, func(s Signal) bool { return s.Name == m[1] })
	if i < 0 {
		return 0, fmt.Errorf("trigger %q: %s has no signal %q%s", text, t.File, m[1], units.Meant(m[1], t.names()))
	}
	s := &t.Signals[i]
	limit, err := s.Unit.Strict().Typed(m[3])
	if err != nil {
		return 0, fmt.Errorf("trigger %q: %s", text, units.Reason(err))
	}
	limit = s.Unit.FromSI(limit)
	for k, v := range s.Values {
		if m[2] == ">" && v > limit || m[2] == "<" && v < limit {
			return t.Time[k], nil
		}
	}
	return 0, fmt.Errorf("trigger %q is never true in %s", text, t.File)
}

func (t *Trace) names() (list []string) {
	for _, s := range t.Signals {
		list = append(list, s.Name)
	}
	return list
}

// pairTimes finds the times that both traces have.
func (c *Comparison) pairTimes() {
	for i, j := 0, 0; i < len(c.A.Time) && j < len(c.B.Time); {
		switch d := c.A.Time[i] - (c.B.Time[j] + c.Shift); {
		case d > sameTime:
			j++
		case d < -sameTime:
			i++
		default:
			c.Times = append(c.Times, c.A.Time[i])
			c.rows[0], c.rows[1] = append(c.rows[0], i), append(c.rows[1], j)
			i, j = i+1, j+1
		}
	}
}

// setTolerance applies "NAME=VALUE" to the signals that NAME matches.
func (c *Comparison) setTolerance(text string) error {
	pattern, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("tolerance %q: write NAME=VALUE, such as J1.w=1rpm", text)
	}
	found, names := false, []string(nil)
	for i := range c.Deviations {
		d := &c.Deviations[i]
		names = append(names, d.Name)
		match, err := path.Match(pattern, d.Name)
		if err != nil {
			return fmt.Errorf("tolerance %q: %w", text, err)
		}
		if !match && d.Name != pattern {
			continue
		}
		found = true
		si, err := d.Unit.Strict().Typed(value)
		if err != nil {
			return fmt.Errorf("tolerance %q of %s: %s", text, d.Name, units.Reason(err))
		}
		if d.Tolerance = d.Unit.FromSI(si); !(d.Tolerance >= 0) {
			return fmt.Errorf("tolerance %q: %s is not 0 or more", text, value)
		}
	}
	if !found {
		return fmt.Errorf("tolerance %q: no common signal %q%s; they have %s", text, pattern, units.Meant(pattern, names), strings.Join(names, ", "))
	}
	return nil
}

// tolerates reports whether a tolerance "NAME=VALUE" is that of a signal.
func tolerates(tolerance, name string) bool {
	pattern, _, _ := strings.Cut(tolerance, "=")
	match, _ := path.Match(pattern, name) // setTolerance has refused a bad pattern
	return match || pattern == name
}

// missing describes the judged signals that one run lacks; "" if there are none.
func (c *Comparison) missing() string {
	var list []string
	for side, names := range c.Missing {
		if names != nil {
			list = append(list, fmt.Sprintf("%s has no signal %s", []string{c.B.File, c.A.File}[side], strings.Join(names, ", ")))
		}
	}
	return strings.Join(list, "; ")
}

// measure compares the values of a signal at the common times.
func (c *Comparison) measure(d *Deviation) {
	sum := 0.0
	d.At = c.Times[0]
	for i, at := range c.Times {
		x, y := d.signal[0].Values[c.rows[0][i]], d.signal[1].Values[c.rows[1][i]]
		e := math.Abs(x - y)
		switch {
		case x == y || math.IsNaN(x) && math.IsNaN(y):
			e = 0
		case math.IsNaN(e):
			e = math.Inf(1)
		}
		sum += e * e
		if e > d.Largest {
			d.Largest, d.At = e, at
		}
		if e > d.Tolerance && !d.Beyond() {
			d.Since = at
		}
	}
	d.RMS = math.Sqrt(sum / float64(len(c.Times)))
}

// uncovered describes the part that one run alone has; "" if both begin and end together, within their
// larger step. Runs aligned by a trigger may begin and end apart.
func (c *Comparison) uncovered() string {
	step := 0.0
	for _, t := range []*Trace{c.A, c.B} {
		if n := len(t.Time); n > 1 {
			step = max(step, t.Time[1]-t.Time[0], t.Time[n-1]-t.Time[n-2])
		}
	}
	endA, endB := c.A.Time[len(c.A.Time)-1], c.B.Time[len(c.B.Time)-1]
	if c.aligned || max(math.Abs(c.A.Time[0]-c.B.Time[0]), math.Abs(endA-endB)) <= step+sameTime {
		return ""
	}
	return fmt.Sprintf("%s lasts from %.6g s to %.6g s, %s from %.6g s to %.6g s: give the common part with -from and -to",
		c.A.File, c.A.Time[0], endA, c.B.File, c.B.Time[0], endB)
}

// Err returns the error of a comparison that has signals beyond their tolerance, or of runs that lack signals, do
// not cover the same time or have gaps.
func (c *Comparison) Err() error {
	var beyond []string
	judged := 0
	for i := range c.Deviations {
		d := &c.Deviations[i]
		if !math.IsNaN(d.Tolerance) {
			judged++
		}
		if d.Beyond() {
			beyond = append(beyond, fmt.Sprintf("%s by %s at %.6g s", d.Name, short(d.Unit, d.Largest), d.At))
		}
	}
	if beyond == nil {
		text := cmp.Or(c.missing(), c.uncovered())
		if text == "" && c.Gaps() {
			text = gapsText
		}
		if text != "" {
			return errors.New(text)
		}
		return nil
	}
	text := beyond[0]
	if len(beyond) > 1 {
		text += fmt.Sprintf(", and %d more", len(beyond)-1)
	}
	return fmt.Errorf("%d of %d signals deviate beyond their tolerance: %s", len(beyond), judged, text)
}

// JUnit returns the verdict: a case for each judged signal, and one for the time that both runs cover.
func (c *Comparison) JUnit() *junit.Suite {
	last := c.Times[len(c.Times)-1]
	s := &junit.Suite{Class: "lockstep.diff", Name: c.A.File + " " + c.B.File, Begun: time.Now(), Time: last - c.Times[0]}
	for i := range c.Deviations {
		d := &c.Deviations[i]
		if math.IsNaN(d.Tolerance) {
			continue
		}
		text := fmt.Sprintf("largest %s at %.6g s, tolerance %s", short(d.Unit, d.Largest), d.At, short(d.Unit, d.Tolerance))
		s.Add(d.Name, d.At, !d.Beyond(), text)
	}
	for side, names := range c.Missing {
		for _, name := range names {
			s.Add(name, 0, false, "only in "+[]string{c.A.File, c.B.File}[side])
		}
	}
	text := c.uncovered()
	s.Add("time", last, text == "" && !c.Gaps(), cmp.Or(text, map[bool]string{true: gapsText}[c.Gaps()]))
	return s
}

// Gaps reports whether one of the runs is a record with gaps.
func (c *Comparison) Gaps() bool { return c.A.Gaps != nil || c.B.Gaps != nil }

const gapsText = "a record has gaps: what it lacks is not compared"

// Write prints the comparison as a table, the worst first. Equal signals are counted.
func (c *Comparison) Write(to io.Writer) error {
	n := len(c.Times)
	fmt.Fprintf(to, "%d common times from %.6g s to %.6g s of %s (%d) and %s (%d)\n",
		n, c.Times[0], c.Times[n-1], c.A.File, len(c.A.Time), c.B.File, len(c.B.Time))
	if c.Shift != 0 {
		fmt.Fprintf(to, "the times of %s are shifted by %.9g s\n", c.B.File, c.Shift)
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	equal, head := 0, "signal\tlargest\tat\tRMS\ttolerance\t\n"
	for i := range c.Deviations {
		d := &c.Deviations[i]
		if d.Largest == 0 {
			equal++
			continue
		}
		tolerance, verdict := "", "not judged"
		if !math.IsNaN(d.Tolerance) {
			tolerance, verdict = short(d.Unit, d.Tolerance), "within"
		}
		if d.Beyond() {
			verdict = fmt.Sprintf("BEYOND since %.6g s", d.Since)
		}
		fmt.Fprintf(table, "%s%s\t%s\t%.6g s\t%s\t%s\t%s\n", head, d.Name, short(d.Unit, d.Largest), d.At, short(d.Unit, d.RMS), tolerance, verdict)
		head = ""
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(to, "%d of %d common signals are equal, bit for bit\n", equal, len(c.Deviations))
	for i, names := range c.Only {
		if names != nil {
			fmt.Fprintf(to, "only in %s: %s\n", []string{c.A.File, c.B.File}[i], strings.Join(names, ", "))
		}
	}
	return nil
}

// short formats a difference with few digits.
func short(unit units.Wanted, v float64) string {
	return units.WithUnit(fmt.Sprintf("%.4g", v), unit.Spelled)
}

// Worst draws the signal that deviates most, and its difference.
func (c *Comparison) Worst() *plot.Sheet {
	d := &c.Deviations[0]
	s := &plot.Sheet{}
	one := c.A.curve(&d.signal[0], d.Name+" of "+c.A.File, 0)
	shifted := &Trace{Time: slices.Clone(c.B.Time)}
	for i := range shifted.Time {
		shifted.Time[i] += c.Shift
	}
	two := shifted.curve(&d.signal[1], d.Name+" of "+c.B.File, 1)
	two.Dash = []float64{6, 4}
	addChart(s, d.signal[0].Unit.Spelled, []plot.Curve{one, two})

	difference := Signal{Name: d.Name, Unit: d.Unit}
	for i := range c.Times {
		difference.Values = append(difference.Values, d.signal[1].Values[c.rows[1][i]]-d.signal[0].Values[c.rows[0][i]])
	}
	common := &Trace{Time: c.Times}
	addChart(s, d.Unit.Spelled, []plot.Curve{common.curve(&difference, "second less first", 2)})
	return s
}
