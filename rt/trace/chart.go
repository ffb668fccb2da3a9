package trace

import (
	"fmt"
	"math"
	"slices"

	"lockstep/model/units"
	"lockstep/rt/plot"
)

// View says what of a trace is drawn or compared.
type View struct {
	From, To float64                // s; To = +Inf: to the end
	Unit     string                 // unit of all signals that it fits; "": the declared units
	Progress func(read, size int64) // called by Open with the bytes read of a record, of size; nil: not called
}

// Window returns the part of the trace in a view. It fails if there is none, or if the unit fits no signal.
func (t *Trace) Window(v View) (*Trace, error) {
	first, _ := slices.BinarySearch(t.Time, v.From)
	end, hit := slices.BinarySearch(t.Time, v.To)
	if hit {
		end++
	}
	if first >= end {
		return nil, outside(t.File, t.Time[0], t.Time[len(t.Time)-1])
	}
	part := &Trace{File: t.File, Time: t.Time[first:end], Gaps: t.Gaps}
	fits, reason := v.Unit == "", error(nil)
	for _, s := range t.Signals {
		s.Values = s.Values[first:end]
		if v.Unit != "" {
			converted, err := s.Converted(v.Unit)
			if s = converted; err == nil {
				fits = true
			} else {
				reason = err
			}
		}
		part.Signals = append(part.Signals, s)
	}
	if !fits {
		return nil, fmt.Errorf("-unit %s fits no signal: %s", v.Unit, units.Reason(reason))
	}
	return part, nil
}

// colours of the curves of a chart.
var colours = []string{"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#7f7f7f"}

// Sizes of a diagram, px.
const (
	sheetWidth  = 1200
	chartHeight = 260
	legendWidth = 220
)

// Sheet draws the signals: a chart for each unit, one below the other.
func (t *Trace) Sheet() *plot.Sheet {
	s := &plot.Sheet{}
	var drawn []string
	for _, first := range t.Signals {
		unit := first.Unit.Spelled
		if slices.Contains(drawn, unit) {
			continue
		}
		drawn = append(drawn, unit)
		var curves []plot.Curve
		for _, signal := range t.Signals {
			if signal.Unit.Spelled == unit {
				curves = append(curves, t.curve(&signal, signal.Name, len(curves)))
			}
		}
		addChart(s, unit, curves)
	}
	return s
}

// curve returns the curve of a signal.
func (t *Trace) curve(s *Signal, name string, number int) plot.Curve {
	c := plot.Curve{Name: name, Colour: colours[number%len(colours)], Width: 1.2}
	// Where a column of the image has several values, their extremes are drawn.
	const columns = 2 * (sheetWidth - legendWidth)
	if len(t.Time) <= 2*columns {
		c.X, c.Y = t.Time, s.Values
		return c
	}
	from, step := t.Time[0], (t.Time[len(t.Time)-1]-t.Time[0])/columns
	for i, r := range t.ranges(s, columns) {
		at := from + (float64(i)+0.5)*step
		c.X, c.Y = append(c.X, at, at), append(c.Y, r.low, r.high)
	}
	return c
}

// span is a range of values; NaN if there is none.
type span struct{ low, high float64 }

// ranges returns the range of a signal in each of n equal parts of the time. A value holds
// until the next one.
func (t *Trace) ranges(s *Signal, n int) []span {
	list := make([]span, n)
	from := t.Time[0]
	step := (t.Time[len(t.Time)-1] - from) / float64(n)
	k, v := 0, math.NaN()
	for i := range list {
		r := span{v, v}
		for ; k < len(t.Time) && (t.Time[k] < from+float64(i+1)*step || i == n-1); k++ {
			v = s.Values[k]
			if r.low, r.high = min(r.low, v), max(r.high, v); math.IsNaN(r.low) {
				r = span{v, v}
			}
		}
		list[i] = r
	}
	return list
}

// limits returns the axis range for values, a little wider than they are.
func limits(values ...[]float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, list := range values {
		for _, v := range list {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	switch margin := 0.05 * (high - low); {
	case low > high: // nothing is finite
		return 0, 1
	case !(margin > 1e-12*max(math.Abs(low), math.Abs(high))):
		margin = max(1, 0.1*math.Abs(low))
		return low - margin, high + margin
	default:
		return low - margin, high + margin
	}
}

// addChart adds a chart of curves with one unit at the bottom of a sheet.
func addChart(s *plot.Sheet, unit string, curves []plot.Curve) {
	var x, y [][]float64
	for _, c := range curves {
		x, y = append(x, c.X), append(y, c.Y)
	}
	c := plot.Chart{Top: s.Height, Width: sheetWidth, Height: chartHeight, Legend: legendWidth, Curves: curves}
	c.X.Name, c.Y.Name = "s", unit
	c.X.Low, c.X.High = x[0][0], x[0][len(x[0])-1]
	if c.X.High == c.X.Low {
		c.X.High++
	}
	c.Y.Low, c.Y.High = limits(y...)
	s.Charts = append(s.Charts, c)
	s.Width, s.Height = sheetWidth, s.Height+chartHeight
}
