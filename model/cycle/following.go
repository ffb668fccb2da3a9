package cycle

import "math"

// Following judges a vehicle while it drives a cycle, or a phase of one. Add does not allocate.
type Following struct {
	c       *Cycle
	part    Phase
	vehicle *Vehicle
	judge   *Judge
	driven  []float64 // at RatePeriod from the start of the part, m/s
	at      int64     // instant of the last sample, ns
	v       float64   // its speed, m/s
	samples int
}

// Result is the judgement and the rating of a cycle or of a phase.
type Result struct {
	Phase string // "": the whole cycle
	Judgement
	Rating // NaN until the part is complete
}

// Whole returns the whole cycle as one phase without a name.
func (c *Cycle) Whole() Phase { return Phase{End: c.End()} }

// Parts returns the phases, and after them the whole cycle if it has several.
func (c *Cycle) Parts() []Phase {
	if len(c.Phases) == 1 {
		return []Phase{c.Whole()}
	}
	return append(append([]Phase(nil), c.Phases...), c.Whole())
}

// Follow returns a Following of a part of a cycle, without samples. vehicle may be nil: the energy figures are
// NaN then. Band.Most counts for the whole cycle only.
func Follow(c *Cycle, part Phase, vehicle *Vehicle) *Following {
	most := 0
	if part.Begin == 0 && part.End == c.End() {
		most = c.Band.Most
	}
	return &Following{c: c, part: part, vehicle: vehicle, judge: NewJudge(c, part.Begin, part.End, most),
		driven: make([]float64, 0, (part.End-part.Begin)/int64(RatePeriod)+1)}
}

// Add takes the speed at an instant of the cycle, m/s and ns. Instants increase; those beyond the end of the
// part are left out.
func (f *Following) Add(at int64, v float64) {
	if at < 0 || f.samples > 0 && at <= f.at {
		return
	}
	if math.IsInf(v, 0) {
		v = math.NaN() // no speed: neither judged as one nor rated
	}
	f.judge.Add(at, v)
	for len(f.driven) < cap(f.driven) {
		next := f.part.Begin + int64(len(f.driven))*int64(RatePeriod)
		if next > at {
			break
		}
		f.driven = append(f.driven, f.between(next, at, v))
	}
	f.at, f.v, f.samples = at, v, f.samples+1
}

// between returns the speed at an instant up to the sample at hand. Before the first sample it is that of the
// sample if it follows within RatePeriod, otherwise NaN.
func (f *Following) between(t, at int64, v float64) float64 {
	switch {
	case t == at || f.samples == 0 && at-t <= int64(RatePeriod):
		return v
	case f.samples == 0:
		return math.NaN()
	}
	part := float64(t-f.at) / float64(at-f.at)
	return f.v + float64(part*(v-f.v))
}

// Result returns the result of the samples so far.
func (f *Following) Result() Result {
	return Result{f.part.Name, f.judge.Judgement(f.at), f.rate()}
}

// rate rates the samples of a part that is complete.
func (f *Following) rate() Rating {
	if len(f.driven) < cap(f.driven) {
		nan := math.NaN()
		return Rating{nan, nan, nan, nan, nan, nan, nan, nan}
	}
	target := make([]float64, len(f.driven))
	for i := range target {
		target[i] = f.c.Target.Eval(f.part.Begin + int64(i)*int64(RatePeriod))
	}
	return Rate(f.driven, target, f.vehicle)
}
