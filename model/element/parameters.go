package element

import (
	"math"

	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// Number reads a required parameter.
func (e *Element) Number(key, unit, meaning string) (float64, syntax.Field) {
	f, ok := e.Fields[key]
	if !ok {
		e.Fail(e.At, "%s: %s needs %s (%s, %s)", e.What(), e.Kind.Name, key, meaning, unit)
		return math.NaN(), f
	}
	return e.Value(f, unit), f
}

// Option reads a parameter that has a default.
func (e *Element) Option(key, unit string, missing float64) (float64, syntax.Field) {
	f, ok := e.Fields[key]
	if !ok {
		return missing, syntax.Field{At: e.At}
	}
	return e.Value(f, unit), f
}

// Has tells whether a key is written.
func (e *Element) Has(key string) bool {
	_, ok := e.Fields[key]
	return ok
}

// Value reads a number with a unit, in SI.
func (e *Element) Value(f syntax.Field, unit string) float64 {
	return e.Quantity(f, e.What()+": "+f.Key, units.Want(unit))
}

// Need reads a required parameter > 0; AtLeastZero one >= 0 with a default, AboveZero one
// > 0 with a default.
func (e *Element) Need(key, unit, meaning string) float64 {
	x, f := e.Number(key, unit, meaning)
	e.Positive(x, f, meaning+" "+key, unit)
	return x
}

func (e *Element) AtLeastZero(key, unit string, missing float64) float64 {
	x, f := e.Option(key, unit, missing)
	e.NotNegative(x, f, key, unit)
	return x
}

func (e *Element) AboveZero(key, unit string, missing float64) float64 {
	x, f := e.Option(key, unit, missing)
	e.Positive(x, f, key, unit)
	return x
}

// Positive fails unless x > 0; NotNegative unless x >= 0.
func (e *Element) Positive(x float64, f syntax.Field, name, unit string) {
	if !(x > 0) {
		e.Fail(f.At, "%s: %s %s is not positive", e.What(), name, units.Format(x, unit))
	}
}

func (e *Element) NotNegative(x float64, f syntax.Field, name, unit string) {
	if !(x >= 0) {
		e.Fail(f.At, "%s: %s %s is negative", e.What(), name, units.Format(x, unit))
	}
}

// Waveform reads a value over time: an index into the signals of the network.
func (e *Element) Waveform(f syntax.Field, unit string) int {
	return e.Signal(f, e.What()+": "+f.Key, e.Name+"."+f.Key, units.Want(unit))
}

// NeedWaveform reads a value over time that must be there.
func (e *Element) NeedWaveform(key, unit, meaning string) int {
	f, ok := e.Fields[key]
	if !ok {
		e.Fail(e.At, "%s: %s needs %s (%s, %s, or the name of an input)", e.What(), e.Kind.Name, key, meaning, unit)
		return 0
	}
	return e.Waveform(f, unit)
}

// Per chooses the spelling of a unit by the element's domain.
func (e *Element) Per(rot, trans string) string {
	if e.Domain == network.Translational {
		return trans
	}
	return rot
}

// Flag reads true or false.
func (e *Element) Flag(key string) bool {
	f, ok := e.Fields[key]
	if !ok {
		return false
	}
	text := e.Text(f, e.What()+": "+key)
	if text != "true" && text != "false" {
		e.Fail(f.At, "%s: %s: %q is neither true nor false", e.What(), key, text)
	}
	return text == "true"
}
