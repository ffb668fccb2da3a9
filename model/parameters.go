package model

import "math"

// number reads a required parameter.
func (e *element) number(key, unit, meaning string) (float64, field) {
	f, ok := e.fields[key]
	if !ok {
		e.fail(e.at, "%s: %s needs %s (%s, %s)", e.what(), e.kind.name, key, meaning, unit)
		return math.NaN(), f
	}
	return e.value(f, unit), f
}

// option reads a parameter that has a default.
func (e *element) option(key, unit string, missing float64) (float64, field) {
	f, ok := e.fields[key]
	if !ok {
		return missing, field{at: e.at}
	}
	return e.value(f, unit), f
}

func (e *element) has(key string) bool {
	_, ok := e.fields[key]
	return ok
}

func (e *element) value(f field, unit string) float64 {
	u, _ := Units(unit)
	return e.quantity(f, e.what()+": "+f.key, wanted{u, unit})
}

// need reads a required parameter > 0; atLeastZero one >= 0 with a default, above0 one
// > 0 with a default.
func (e *element) need(key, unit, meaning string) float64 {
	x, f := e.number(key, unit, meaning)
	e.positive(x, f, meaning+" "+key, unit)
	return x
}

func (e *element) atLeastZero(key, unit string, missing float64) float64 {
	x, f := e.option(key, unit, missing)
	e.notNegative(x, f, key, unit)
	return x
}

func (e *element) above0(key, unit string, missing float64) float64 {
	x, f := e.option(key, unit, missing)
	e.positive(x, f, key, unit)
	return x
}

// positive fails unless x > 0; notNegative unless x >= 0.
func (e *element) positive(x float64, f field, name, unit string) {
	if !(x > 0) {
		e.fail(f.at, "%s: %s %s is not positive", e.what(), name, withUnit(x, unit))
	}
}

func (e *element) notNegative(x float64, f field, name, unit string) {
	if !(x >= 0) {
		e.fail(f.at, "%s: %s %s is negative", e.what(), name, withUnit(x, unit))
	}
}

// drive reads a value over time: an index into Plant.signals.
func (e *element) drive(f field, unit string) int {
	u, _ := Units(unit)
	return e.signal(f, e.what()+": "+f.key, e.name+"."+f.key, wanted{u, unit})
}

// command reads a value over time that must be there.
func (e *element) command(key, unit, meaning string) int {
	f, ok := e.fields[key]
	if !ok {
		e.fail(e.at, "%s: %s needs %s (%s, %s, or the name of an input)", e.what(), e.kind.name, key, meaning, unit)
		return 0
	}
	return e.drive(f, unit)
}

// per chooses the spelling of a unit by the element's domain.
func (e *element) per(rot, trans string) string {
	if e.domain == translational {
		return trans
	}
	return rot
}
