package network

import (
	"math"

	"lockstep/model"
)

// SourceRange bounds the values of a single source.
func SourceRange(s model.Source) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range s.V {
		low, high = min(low, v), max(high, v)
	}
	return low - math.Abs(s.Amplitude), high + math.Abs(s.Amplitude)
}

// Constant is the source of one value.
func Constant(v float64) model.Source { return model.Source{T: []float64{0}, V: []float64{v}} }

// Waveform is a value over time while it is read: a sum of products of factors.
type Waveform [][]Factor

// Factor is a source, or a signal of the plant.
type Factor struct {
	Leaf   model.Source
	Signal int // -1: leaf counts
}

// Source is a waveform without signals.
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

// Linear is a sum of signals with constant factors, and constants, as a form; nil for
// others.
func (c Waveform) Linear() (f Form) {
	for _, term := range c {
		m := measure{Kind: OfOne, Coef: 1}
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
