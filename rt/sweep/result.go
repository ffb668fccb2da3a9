package sweep

import (
	"cmp"
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
	unit       units.Wanted         // unit of the result
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
	m := &meter{rule: rule, unit: units.Want("1"), to: c.Handover.Loop.Ticks, period: float64(c.Handover.Tables.PeriodNs) / 1e9, value: math.NaN()}
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
		m.unit = units.Want("s")
	}
	return m
}

// read finds the readings of a result and its unit.
func (m *meter) read(s *spec, of yamlfile.Scalar, c *virtual.Case) {
	for name := range strings.SplitSeq(of.Text, "*") {
		reading, err := scenario.FindReading(c.Handover, strings.TrimSpace(name))
		if err != nil {
			s.fail(m.rule, "%s: %w", m.rule, err)
		}
		m.of = append(m.of, reading)
	}

	if len(m.of) > 2 || len(m.of) > 1 && timed(m.rule) {
		s.fail(m.rule, "%s: %q has too many factors", m.rule, of.Text)
	}

	switch m.rule {
	case "count":
	case "settles":
		middle, tolerance := s.quantity("of", m.of[0].Wanted), s.quantity("within", m.of[0].Difference())
		if !(tolerance > 0) {
			s.fail("within", "within: %s is not positive", s.get("within").Text)
		}
		m.lo, m.hi = middle-tolerance, middle+tolerance
	default:
		m.setUnit(s)
	}
}

// setUnit sets the unit of the result: by the key unit, else the declared unit of the value. A
// product is in SI.
func (m *meter) setUnit(s *spec) {
	m.unit = m.of[0].Wanted
	var spelled []string
	for _, factor := range m.of {
		spelled = append(spelled, factor.SI)
	}
	if m.rule == "integral" {
		spelled = append(spelled, "s")
	}

	if len(spelled) > 1 {
		u, err := units.Parse("(" + strings.Join(spelled, ").(") + ")")
		if err != nil {
			s.fail("", "%w", err)
		}
		m.unit = units.Wanted{Unit: units.Unit{Factor: 1, Dim: u.Dim}, Spelled: u.SI}
		if u.Dim.String() != "1" {
			m.unit.Spelled = u.Dim.String()
		}
		// The integral of bar is in bar.s; that of 1/min is not 1/min.s, in which the minute is a time.
		own, err := units.ParseWanted(m.of[0].Spelled + ".s")
		if len(m.of) == 1 && err == nil && own.Factor == m.of[0].Factor {
			m.unit = own
		}
	}

	if m.rule == "rms" { // in degC it would depend on the zero
		m.unit = m.unit.Difference()
	}
	if s.has("unit") {
		want, err := units.ParseWanted(s.get("unit").Text)
		switch {
		case err != nil:
			s.fail("unit", "%s", units.Reason(err))
		case want.Dim != m.unit.Dim:
			s.fail("unit", "unit %q does not fit; the result is in %s", want.Spelled, cmp.Or(m.unit.Spelled, "1"))
		case want.Zero != 0 && (m.rule == "rms" || len(spelled) > 1):
			s.fail("unit", "unit: %s of this value cannot be in %s; write K", m.rule, want.Spelled)
		}
		m.unit = want
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

	return m.unit.FromSI(v)
}
