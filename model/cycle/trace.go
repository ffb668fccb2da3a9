package cycle

import "sort"

// Trace is a speed over time, linear between its points. Before the first point it has the first speed, after the
// last point the last one.
type Trace struct {
	At    []int64   // times of the points, ns, >= 0, increasing
	Value []float64 // speeds of the points, m/s, as many as At
}

// Eval returns the speed at a time, ns.
func (t *Trace) Eval(at int64) float64 {
	next := sort.Search(len(t.At), func(i int) bool { return t.At[i] > at })
	switch next {
	case 0:
		return t.Value[0]
	case len(t.At):
		return t.Value[next-1]
	}
	part := float64(at-t.At[next-1]) / float64(t.At[next]-t.At[next-1])
	return t.Value[next-1] + float64((t.Value[next]-t.Value[next-1])*part)
}
