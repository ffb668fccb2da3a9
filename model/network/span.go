package network

import (
	"math"
	"slices"
)

// Range are the least and the largest value of a signal, as far as that is known.
func (p *Plant) Range(i int) (low, high float64) {
	s := &p.Signals[i]
	switch {
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

// termSpan is that of a product.
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

// boundTimes is a·b, 0 where one of them is 0 and the other has no bound.
func boundTimes(a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a * b
}

// MaxAbs is the largest absolute value of a signal as far as it is known, else 1; of a
// sum what its terms that are known add up to: the force of an element is not.
func (p *Plant) MaxAbs(i int) float64 {
	low, high := p.Range(i)
	m := max(math.Abs(low), math.Abs(high))
	if s := &p.Signals[i]; math.IsInf(m, 0) {
		m = s.MaxAbs
		if s.Law == nil && len(s.Source.Sum) == 0 { // what an input without a range is by itself
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
