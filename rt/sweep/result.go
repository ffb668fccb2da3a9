package sweep

import (
	"math"
	"slices"
	"strings"

	"lockstep/model/units"
	"lockstep/rt/scenario"
	"lockstep/rt/virtual"
)

// resultSpec is a column of results as the file has it.
type resultSpec struct {
	key word

	Final    word `yaml:"final"`
	Min      word `yaml:"min"`
	Max      word `yaml:"max"`
	Mean     word `yaml:"mean"`
	RMS      word `yaml:"rms"`
	Integral word `yaml:"integral"`
	First    word `yaml:"first"`
	Settles  word `yaml:"settles"`
	Count    word `yaml:"count"`

	Within word `yaml:"within"`
	To     word `yaml:"to"`
	Of     word `yaml:"of"`
	From   word `yaml:"from"`
	Unit   word `yaml:"unit"`
}

// rules are what results can be of their value.
var rules = []string{"final", "min", "max", "mean", "rms", "integral", "first", "settles", "count"}

// kind is the rule of the result and what it is of.
func (r *resultSpec) kind() (rule string, of word) {
	for i, w := range []word{r.Final, r.Min, r.Max, r.Mean, r.RMS, r.Integral, r.First, r.Settles, r.Count} {
		if w.text != "" {
			rule, of = rule+" "+rules[i], w
		}
	}
	return strings.TrimPrefix(rule, " "), of
}

func (r *resultSpec) complete() error {
	rule, of := r.kind()
	switch {
	case !slices.Contains(rules, rule):
		return r.key.errorf("%s: one of %s is wanted, with what it is of", r.key.text, strings.Join(rules, ", "))
	case rule == "settles" && (r.Within.text == "" || r.Of.text == ""):
		return of.errorf("%s: {settles: %s, within: TOLERANCE, of: VALUE} is wanted", r.key.text, of.text)
	case rule != "settles" && r.Within.text+r.Of.text != "":
		return of.errorf("%s: within and of go with settles", r.key.text)
	case timed(rule) && r.Unit.text != "":
		return r.Unit.errorf("%s: unit: it is a %s", r.key.text, map[bool]string{true: "number", false: "time, in s"}[rule == "count"])
	}
	return nil
}

// timed tells whether a result has a unit of its own.
func timed(rule string) bool { return rule == "first" || rule == "settles" || rule == "count" }

// meter measures one result in one case.
type meter struct {
	rule       string
	unit       string // of the result
	scale      float64
	of         []scenario.Reading // one, or two that are multiplied
	conditions *scenario.Conditions
	from, to   int64   // grid points
	lo, hi     float64 // of settles
	period     float64 // s

	points int64
	value  float64 // so far
	last   float64 // value of the grid point before
	first  float64
	held   bool
}

// meter makes the meter for a case.
func (r *resultSpec) meter(c *virtual.Case) (m *meter, err error) {
	rule, of := r.kind()
	m = &meter{rule: rule, scale: 1, to: c.Ticks(), period: float64(c.PeriodNs()) / 1e9, value: math.NaN()}
	if r.From.text != "" {
		if m.from, err = c.Instant(r.From.text); err != nil {
			return nil, r.From.errorf("%s: from: %w", r.key.text, err)
		}
	}
	if r.To.text != "" {
		if m.to, err = c.Instant(r.To.text); err != nil {
			return nil, r.To.errorf("%s: to: %w", r.key.text, err)
		}
	}
	if m.from > m.to || m.to > c.Ticks() {
		return nil, of.errorf("%s: the window from %.6g s to %.6g s is empty, or beyond the end of the case at %.6g s", r.key.text,
			float64(m.from)*m.period, float64(m.to)*m.period, float64(c.Ticks())*m.period)
	}
	if strings.ContainsAny(of.text, "<>") && (rule == "first" || rule == "count") {
		list, err := c.Conditions(of.text)
		if err != nil {
			return nil, of.errorf("%s: %s: %w", r.key.text, rule, err)
		}
		m.conditions, m.unit = &list, map[bool]string{true: "s", false: ""}[rule == "first"]
		return m, nil
	}
	if rule == "first" {
		return nil, of.errorf("%s: first: a condition is wanted, like v < 0.1 m/s", r.key.text)
	}
	return m, m.read(r, of, c)
}

// read finds what a result is of, and its unit.
func (m *meter) read(r *resultSpec, of word, c *virtual.Case) error {
	var units []string
	for name := range strings.SplitSeq(of.text, "*") {
		reading, err := c.Reading(strings.TrimSpace(name))
		if err != nil {
			return of.errorf("%s: %s: %w", r.key.text, m.rule, err)
		}
		m.of = append(m.of, reading)
		units = append(units, reading.SI)
	}
	if len(m.of) > 2 || len(m.of) > 1 && timed(m.rule) {
		return of.errorf("%s: %s: %q multiplies too many", r.key.text, m.rule, of.text)
	}
	switch m.rule {
	case "count":
		return nil
	case "settles":
		m.unit = "s"
		middle, err := m.of[0].Read(r.Of.text)
		if err != nil {
			return r.Of.errorf("%s: of: %w", r.key.text, err)
		}
		tolerance, err := m.of[0].Difference(r.Within.text)
		if err == nil && !(tolerance > 0) {
			err = r.Within.errorf("%s is not more than 0", r.Within.text)
		}
		if err != nil {
			return r.Within.errorf("%s: within: %w", r.key.text, err)
		}
		m.lo, m.hi = middle-tolerance, middle+tolerance
		return nil
	case "integral":
		units = append(units, "s")
	}
	return m.show(r, units)
}

// show sets the unit of a result whose SI unit is the product of units.
func (m *meter) show(r *resultSpec, spelled []string) (err error) {
	m.unit = spelled[0]
	if len(spelled) > 1 {
		u, err := units.Parse("(" + strings.Join(spelled, ").(") + ")")
		if err != nil {
			return r.key.errorf("%s: %w", r.key.text, err)
		}
		m.unit = u.SI
		if u.Dim.String() != "1" {
			m.unit = u.Dim.String()
		}
	}
	if r.Unit.text != "" {
		if m.scale, err = units.Convert(m.unit, r.Unit.text); err != nil {
			return r.Unit.errorf("%s: %s", r.key.text, strings.TrimPrefix(err.Error(), "model: "))
		}
		m.unit = r.Unit.text
	}
	if m.unit == "1" {
		m.unit = ""
	}
	return nil
}

// take takes grid point k.
func (m *meter) take(k int64, y, u []float64) {
	if k < m.from || k > m.to {
		return
	}
	if m.conditions != nil {
		m.happen(k, m.conditions.Hold(y, u))
		return
	}
	v := m.of[0].Of(y, u)
	if len(m.of) > 1 {
		v *= m.of[1].Of(y, u)
	}
	switch m.rule {
	case "final":
		m.value = v
	case "min", "max":
		if m.points == 0 || v != v || m.rule == "min" && v < m.value || m.rule == "max" && v > m.value {
			m.value = v // once NaN, always
		}
	case "settles":
		if inside := v >= m.lo && v <= m.hi; inside && !m.held {
			m.value, m.held = float64(k)*m.period, true
		} else if !inside {
			m.value, m.held = math.NaN(), false
		}
	case "count":
		if m.points == 0 {
			m.first = v
		}
		m.value = v - m.first
	default:
		m.sum(v)
	}
	m.points++
	m.last = v
}

// sum integrates by the trapezoidal rule, of rms the square.
func (m *meter) sum(v float64) {
	a, b := m.last, v
	if m.rule == "rms" {
		a, b = a*a, b*b
	}
	if m.points == 0 {
		m.value = 0
		m.first = v
		return
	}
	m.value += m.period * (a + b) / 2
}

// happen takes whether the conditions hold.
func (m *meter) happen(k int64, holds bool) {
	switch {
	case m.rule == "first":
		if holds && math.IsNaN(m.value) {
			m.value = float64(k) * m.period
		}
	case m.points == 0:
		m.value = 0
	case holds && !m.held:
		m.value++
	}
	m.points++
	m.held = holds
}

// result is what was measured; NaN: there is none.
func (m *meter) result() float64 {
	length := float64(m.points-1) * m.period
	v := m.value
	switch {
	case m.points == 0:
		return math.NaN()
	case m.rule == "mean" && m.points > 1:
		v /= length
	case m.rule == "rms" && m.points > 1:
		v = math.Sqrt(v / length)
	case m.rule == "mean":
		v = m.first
	case m.rule == "rms":
		v = math.Abs(m.first)
	}
	return v * m.scale
}
