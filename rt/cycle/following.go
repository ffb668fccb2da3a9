package cycle

import "math"

// Following judges a vehicle while it drives a cycle. Add does not allocate.
type Following struct {
	c       *Cycle
	vehicle *Vehicle
	whole   *Judge
	phases  []*Judge
	driven  []float64 // at RatePeriod from the start of the cycle, m/s
	at      int64     // instant of the last sample, ns
	v       float64   // its speed, m/s
	samples int
}

// Result is the judgement and the rating of a part of a cycle.
type Result struct {
	Phase string // "": the whole cycle
	Judgement
	Rating // NaN until the part is complete
}

// Follow returns a Following without samples. vehicle may be nil: the energy figures are NaN then.
func Follow(c *Cycle, vehicle *Vehicle) *Following {
	f := &Following{c: c, vehicle: vehicle, whole: NewJudge(c, 0, c.End(), c.Band.Most),
		driven: make([]float64, 0, c.End()/int64(RatePeriod)+1)}
	for _, p := range c.Phases {
		f.phases = append(f.phases, NewJudge(c, p.Begin, p.End, 0))
	}
	return f
}

// Add takes the speed at an instant of the cycle, m/s and ns. Instants increase; those beyond the end of the
// cycle are left out.
func (f *Following) Add(at int64, v float64) {
	if at < 0 || f.samples > 0 && at <= f.at {
		return
	}
	f.whole.Add(at, v)
	for _, j := range f.phases {
		j.Add(at, v)
	}
	for n := len(f.driven); n < cap(f.driven) && int64(n)*int64(RatePeriod) <= at; n++ {
		f.driven = append(f.driven, f.between(int64(n)*int64(RatePeriod), at, v))
	}
	f.at, f.v, f.samples = at, v, f.samples+1
}

// between returns the speed at an instant between the last sample and the next one; NaN: before the first sample.
func (f *Following) between(t, at int64, v float64) float64 {
	switch {
	case t == at:
		return v
	case f.samples == 0:
		return math.NaN()
	}
	part := float64(t-f.at) / float64(at-f.at)
	return f.v + float64(part*(v-f.v))
}

// Results returns the result of the whole cycle, and those of its phases.
func (f *Following) Results() (whole Result, phases []Result) {
	whole = Result{"", f.whole.Judgement(f.at), f.rate(0, f.c.End())}
	for i, p := range f.c.Phases {
		phases = append(phases, Result{p.Name, f.phases[i].Judgement(f.at), f.rate(p.Begin, p.End)})
	}
	return whole, phases
}

// rate rates the samples from begin to end, ns.
func (f *Following) rate(begin, end int64) Rating {
	from, to := (begin+int64(RatePeriod)-1)/int64(RatePeriod), end/int64(RatePeriod)+1
	if to > int64(len(f.driven)) || to-from < 1 {
		return unrated()
	}
	target := make([]float64, to-from)
	for i := range target {
		target[i] = f.c.Target.Eval((from + int64(i)) * int64(RatePeriod))
	}
	return Rate(f.driven[from:to], target, f.vehicle)
}

// unrated returns the rating of a part that was not driven to its end.
func unrated() Rating {
	nan := math.NaN()
	return Rating{nan, nan, nan, nan, nan, nan, nan, nan}
}
