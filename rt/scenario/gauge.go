package scenario

import (
	"errors"
	"math"
	"strconv"

	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
)

// gauge is a unit in which numbers are written and shown; bare ones count in it. One
// that package model does not know has bare numbers only.
type gauge struct {
	name   string
	unit   string  // that quantities are asked for in: of the same dimension
	factor float64 // SI per unit
	zero   float64 // SI where the number is 0
}

// gaugeOf is a unit as a plant or a database has it.
func gaugeOf(name string) gauge {
	name = bench.UnitOrOne(name)
	if name == "degC" || name == "°C" {
		return gauge{name, "K", 1, 273.15}
	}
	return gauge{name, name, factorOf(name), 0}
}

// factorOf is a unit in SI; 1 of one that is unknown.
func factorOf(unit string) float64 {
	u, err := units.Parse(unit)
	if err != nil {
		return 1
	}
	return u.Factor
}

// si is a number as SI, number is its inverse.
func (m *gauge) si(number float64) float64 { return number*m.factor + m.zero }
func (m *gauge) number(si float64) float64 { return (si - m.zero) / m.factor }

// read reads a value as SI.
func (m *gauge) read(text string) (float64, error) {
	if v, ok := bareNumber(text); ok {
		return m.si(v), nil
	}
	return bare(text, m.unit)
}

// difference reads a difference of values, or one per something ("/s"), as SI.
func (m *gauge) difference(text, per string) (float64, error) {
	if v, ok := bareNumber(text); ok {
		return v * m.factor, nil
	}
	if per != "" {
		return bare(text, "("+m.unit+")"+per)
	}
	return bare(text, m.unit)
}

func bareNumber(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// bare reads a quantity as SI.
func bare(text, unit string) (float64, error) {
	v, err := units.Quantity(text, unit, nil)
	if err != nil {
		err = errors.New(bench.QuantityError(yamlfile.Scalar{Text: text}, err))
	}
	return v, err
}
