package network

import (
	"math"
	"slices"

	"lockstep/model"
)

// SourceRange returns bounds of the values of a source without Sum.
func SourceRange(s model.Source) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range s.V {
		low, high = min(low, v), max(high, v)
	}
	return low - math.Abs(s.Amplitude), high + math.Abs(s.Amplitude)
}

// Largest returns the largest absolute value of a list.
func Largest(list []float64) (most float64) {
	for _, v := range list {
		most = max(most, math.Abs(v))
	}
	return most
}

// Constant returns a source with one value.
func Constant(v float64) model.Source { return model.Source{T: []float64{0}, V: []float64{v}} }

// Waveform is a value over time as a plant file gives it: a sum of products of factors.
type Waveform [][]Factor

// Factor is a source, or a signal of the plant.
type Factor struct {
	Leaf   model.Source
	Signal int // index of the signal; -1: Leaf applies
}

// Source returns a waveform without signals as a source.
func (c Waveform) Source() model.Source {
	if len(c) == 1 && len(c[0]) == 1 {
		return c[0][0].Leaf
	}
	var s model.Source
	for _, term := range c {
		var leaves []model.Source
		for _, f := range term {
			leaves = append(leaves, f.Leaf)
		}
		s.Sum = append(s.Sum, leaves)
	}

	return s
}

// Linear returns a waveform as a form if it is a sum of constants and of signals with constant
// factors, otherwise nil.
func (c Waveform) Linear() (f Form) {
	for _, term := range c {
		m := Measure{Kind: OfOne, Coef: 1}
		for _, x := range term {
			switch {
			case x.Signal >= 0 && m.Kind == OfOne:
				m.Kind, m.Index = OfSignal, x.Signal
			case x.Signal >= 0 || len(x.Leaf.V) != 1 || x.Leaf.Amplitude != 0:
				return nil
			default:
				m.Coef *= x.Leaf.V[0]
			}
		}

		f = append(f, m)
	}

	return f
}

// Range returns the least and the largest value of a signal; ±Inf if unknown.
func (p *Plant) Range(i int) (low, high float64) {
	s := &p.Signals[i]
	switch {
	case s.Bounds != nil:
		return s.Bounds.Low, s.Bounds.High
	case i < len(p.Inputs):
		return p.Inputs[i].Min, p.Inputs[i].Max
	case s.Waveform == nil && (s.Law != nil || s.Affine != nil):
		return math.Inf(-1), math.Inf(1)
	case s.Waveform == nil:
		return SourceRange(s.Source)
	}

	for _, term := range s.Waveform {
		least, most := p.termSpan(term)
		low, high = low+least, high+most
	}

	return low, high
}

// SetRange declares the least and the largest value of a law.
func (s *Signal) SetRange(low, high float64) {
	s.Bounds, s.MaxAbs = &Range{low, high}, max(math.Abs(low), math.Abs(high))
}

// termSpan returns the least and the largest value of a product.
func (p *Plant) termSpan(term []Factor) (least, most float64) {
	least, most = 1, 1
	for _, f := range term {
		a, b := SourceRange(f.Leaf)
		if f.Signal >= 0 {
			a, b = p.Range(f.Signal)
		}
		ends := []float64{boundTimes(least, a), boundTimes(least, b), boundTimes(most, a), boundTimes(most, b)}
		least, most = slices.Min(ends), slices.Max(ends)
	}

	return least, most
}

// boundTimes returns a·b; 0 if one of them is 0, also if the other is infinite.
func boundTimes(a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a * b
}

// MaxAbs returns the largest absolute value expected of a signal; 1 if unknown. Of a sum it counts
// the terms with a known range, so not the force of an element.
func (p *Plant) MaxAbs(i int) float64 {
	low, high := p.Range(i)
	m := max(math.Abs(low), math.Abs(high))
	if s := &p.Signals[i]; math.IsInf(m, 0) {
		m = s.MaxAbs
		if s.Law == nil && len(s.Source.Sum) == 0 { // the default of an input without a range
			low, high = SourceRange(s.Source)
			m = max(m, math.Abs(low), math.Abs(high))
		}

		sum := 0.0
		for _, term := range s.Waveform {
			if least, most := p.termSpan(term); !math.IsInf(least, 0) && !math.IsInf(most, 0) {
				sum += max(math.Abs(least), math.Abs(most))
			}
		}

		m = max(m, sum)
	}

	if m > 0 && !math.IsInf(m, 0) {
		return m
	}
	return 1
}
