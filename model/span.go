package model

import (
	"math"
	"slices"
)

// span are the least and the largest value of a signal, as far as that is known.
func (p *Plant) span(i int) (low, high float64) {
	s := &p.signals[i]
	switch {
	case i < len(p.inputs):
		return p.inputs[i].Min, p.inputs[i].Max
	case s.course == nil && (s.law != nil || s.affine != nil):
		return math.Inf(-1), math.Inf(1)
	case s.course == nil:
		return sourceRange(s.source)
	}
	for _, term := range s.course {
		least, most := p.termSpan(term)
		low, high = low+least, high+most
	}
	return low, high
}

// termSpan is that of a product.
func (p *Plant) termSpan(term []factor) (least, most float64) {
	least, most = 1, 1
	for _, f := range term {
		a, b := sourceRange(f.leaf)
		if f.signal >= 0 {
			a, b = p.span(f.signal)
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

// largest is the largest absolute value of a signal as far as it is known, else 1; of a
// sum what its terms that are known add up to: the force of an element is not.
func (p *Plant) largest(i int) float64 {
	low, high := p.span(i)
	m := max(math.Abs(low), math.Abs(high))
	if s := &p.signals[i]; math.IsInf(m, 0) {
		m = s.most
		if s.law == nil && len(s.source.Sum) == 0 { // what an input without a range is by itself
			low, high = sourceRange(s.source)
			m = max(m, math.Abs(low), math.Abs(high))
		}
		sum := 0.0
		for _, term := range s.course {
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
