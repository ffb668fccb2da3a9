package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/scenario"
	"lockstep/rt/virtual"
)

// rules are the rules by which a result is computed; resultKeys are the further keys of a result.
var (
	rules      = []string{"final", "min", "max", "mean", "rms", "integral", "first", "settles", "count"}
	resultKeys = []string{"within", "to", "of", "from", "unit"}
)

// rule returns the rule of a result and its value or condition.
func (s *spec) rule() (rule string, of yamlfile.Scalar) {
	list := slices.DeleteFunc(slices.Clone(rules), func(key string) bool { return !s.has(key) })
	if len(list) != 1 {
		s.fail("", "expected one of %s, with an output or a condition", strings.Join(rules, ", "))
	}
	rule = list[0]
	of = s.get(rule)
	switch {
	case rule == "settles" && !(s.has("within") && s.has("of")):
		s.fail(rule, "expected {settles: %s, within: TOLERANCE, of: VALUE}", of.Text)
	case rule != "settles" && (s.has("within") || s.has("of")):
		s.fail(rule, "within and of are keys of settles")
	case rule == "count" && s.has("unit"):
		s.fail("unit", "unit: a count has no unit")
	case timed(rule) && s.has("unit"):
		s.fail("unit", "unit: the result is a time in s")
	}

	return rule, of
}

// timed reports whether the rule sets the unit of the result.
func timed(rule string) bool { return rule == "first" || rule == "settles" || rule == "count" }

// meter measures one result in one case.
type meter struct {
	rule       string
	unit       string               // unit of the result
	scale      float64              // result in that unit per SI value
	of         []scenario.Reading   // one reading, or two factors
	conditions *scenario.Conditions // nil: of is measured
	from, to   int64                // first and last grid point
	lo, hi     float64              // limits of settles, SI
	period     float64              // s

	points int64   // grid points measured
	value  float64 // result so far, SI; NaN: none
	last   float64 // reading at the last grid point, SI
	first  float64 // reading at the first grid point, SI
	held   bool    // conditions or limits held at the last grid point
}

// newMeter returns the meter of a result for a case.
func newMeter(s spec, c *virtual.Case) (m *meter, err error) {
	s.Reader = &yamlfile.Reader{Origin: s.Origin}
	err = s.Try(func() { m = s.meter(c) })
	return m, err
}

func (s *spec) meter(c *virtual.Case) *meter {
	rule, of := s.rule()
	m := &meter{rule: rule, scale: 1, to: c.Handover.Loop.Ticks, period: float64(c.Handover.Tables.PeriodNs) / 1e9, value: math.NaN()}
	instant := func(key string, at *int64) {
		if s.has(key) {
			var err error
			if *at, err = scenario.ParseInstant(c.Handover, s.get(key).Text); err != nil {
				s.fail(key, "%s: %w", key, err)
			}
		}
	}

	instant("from", &m.from)
	instant("to", &m.to)
	if m.from > m.to || m.to > c.Handover.Loop.Ticks {
		s.fail(rule, "the window from %.6g s to %.6g s is empty, or after the end of the case at %.6g s",
			float64(m.from)*m.period, float64(m.to)*m.period, float64(c.Handover.Loop.Ticks)*m.period)
	}

	switch condition := strings.ContainsAny(of.Text, "<>"); {
	case condition && (rule == "first" || rule == "count"):
		list, err := scenario.ParseConditions(c.Handover, of.Text)
		if err != nil {
			s.fail(rule, "%s: %w", rule, err)
		}
		m.conditions = &list
	case rule == "first":
		s.fail(rule, "first: expected a condition, like v < 0.1 m/s")
	default:
		m.read(s, of, c)
	}

	if rule == "first" || rule == "settles" {
		m.unit = "s"
	}
	return m
}

// read finds the readings of a result and its unit.
func (m *meter) read(s *spec, of yamlfile.Scalar, c *virtual.Case) {
	var units []string
	for name := range strings.SplitSeq(of.Text, "*") {
		reading, err := scenario.FindReading(c.Handover, strings.TrimSpace(name))
		if err != nil {
			s.fail(m.rule, "%s: %w", m.rule, err)
		}
		m.of = append(m.of, reading)
		units = append(units, reading.SI)
	}

	if len(m.of) > 2 || len(m.of) > 1 && timed(m.rule) {
		s.fail(m.rule, "%s: %q has too many factors", m.rule, of.Text)
	}

	switch m.rule {
	case "count":
	case "settles":
		middle, err := m.of[0].Read(s.get("of").Text)
		if err != nil {
			s.fail("of", "of: %w", err)
		}
		tolerance, err := m.of[0].Difference(s.get("within").Text)
		if err == nil && !(tolerance > 0) {
			err = fmt.Errorf("%s is not positive", s.get("within").Text)
		}
		if err != nil {
			s.fail("within", "within: %w", err)
		}
		m.lo, m.hi = middle-tolerance, middle+tolerance
	case "integral":
		m.setUnit(s, append(units, "s"))
	default:
		m.setUnit(s, units)
	}
}

// setUnit sets the unit of a result whose SI unit is the product of these units.
func (m *meter) setUnit(s *spec, spelled []string) {
	m.unit = spelled[0]
	if len(spelled) > 1 {
		u, err := units.Parse("(" + strings.Join(spelled, ").(") + ")")
		if err != nil {
			s.fail("", "%w", err)
		}
		m.unit = u.SI
		if u.Dim.String() != "1" {
			m.unit = u.Dim.String()
		}
	}

	if s.has("unit") {
		scale, err := units.Convert(m.unit, s.get("unit").Text)
		if err != nil {
			s.fail("unit", "%s", units.Reason(err))
		}
		m.scale, m.unit = scale, s.get("unit").Text
	}

	if m.unit == "1" {
		m.unit = ""
	}
}

// measure evaluates grid point k.
func (m *meter) measure(k int64, y, u []float64) {
	if k < m.from || k > m.to {
		return
	}
	var v float64
	var holds bool
	if m.conditions != nil {
		holds = m.conditions.Hold(y, u)
	} else {
		v = m.of[0].Value(y, u)
		for _, factor := range m.of[1:] {
			v *= factor.Value(y, u)
		}
		holds = v >= m.lo && v <= m.hi
	}

	now, begins := float64(k)*m.period, m.points == 0
	if begins {
		m.first = v
	}
	switch m.rule {
	case "final":
		m.value = v
	case "min", "max":
		if begins || v != v || m.rule == "min" && v < m.value || m.rule == "max" && v > m.value {
			m.value = v // NaN stays
		}
	case "first":
		if holds && math.IsNaN(m.value) {
			m.value = now
		}
	case "settles":
		if !holds {
			m.value = math.NaN()
		} else if !m.held {
			m.value = now
		}
	case "count":
		switch {
		case begins:
			m.value = 0
		case m.conditions == nil:
			m.value = v - m.first
		case holds && !m.held:
			m.value++
		}
	default: // integral, mean and rms by the trapezoidal rule
		a, b := m.last, v
		if m.rule == "rms" {
			a, b = a*a, b*b
		}
		if begins {
			m.value = 0
		} else {
			m.value += m.period * (a + b) / 2
		}
	}

	m.points++
	m.last, m.held = v, holds
}

// result returns the result; NaN: none.
func (m *meter) result() float64 {
	length := float64(m.points-1) * m.period
	v := m.value
	switch {
	case m.rule == "mean" && length == 0:
		v = m.first
	case m.rule == "mean":
		v /= length
	case m.rule == "rms" && length == 0:
		v = math.Abs(m.first)
	case m.rule == "rms":
		v = math.Sqrt(v / length)
	}

	return v * m.scale
}
