package scenario

import (
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// Reading is where a value stands in what Run tells of.
type Reading struct {
	Output bool // in y, otherwise in u
	Index  int
	Unit   string // in which people read it
	SI     string // in which it is told
}

// Of is the value there.
func (r Reading) Of(y, u []float64) float64 {
	if r.Output {
		return y[r.Index]
	}
	return u[r.Index]
}

// FindReading finds an output, an input that is known outside of the plant, or a bound signal.
func FindReading(h *bench.Handover, name string) (r Reading, err error) {
	v, err := findValue(h, name)
	if err != nil {
		return r, err
	}
	ports := h.Tables.Inputs
	if v.output {
		ports = h.Tables.Outputs
	}
	return Reading{Output: v.output, Index: v.index, Unit: v.gauge.name, SI: ports[v.index].Unit}, nil
}

// Conditions are of outputs, inputs and signals.
type Conditions [2]fault.Condition

// Hold tells whether all hold; NaN fulfils none.
func (list Conditions) Hold(y, u []float64) bool {
	e := rt.Entry{Y: y, U: u}
	return hold((*[2]fault.Condition)(&list), &e)
}

// Read reads a value as SI; a bare number is in r.Unit.
func (r Reading) Read(text string) (float64, error) {
	g := gaugeOf(r.Unit)
	return g.read(text)
}

// Difference is Read for a difference of values, such as a tolerance.
func (r Reading) Difference(text string) (float64, error) {
	g := gaugeOf(r.Unit)
	return g.difference(text, "")
}
