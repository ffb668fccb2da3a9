package cycle

import (
	"math"
	"time"
)

// Judgement says how a speed kept to the band of a cycle.
type Judgement struct {
	Deviations int           // times that the speed left the band
	Violations int           // deviations that the regulation does not accept
	Outside    time.Duration // time outside of the band
	Longest    time.Duration // longest deviation
	First      time.Duration // start of the first violation; -1: there is none
	Largest    float64       // largest distance from the band, m/s; +Inf: a speed was not finite
	LargestAt  time.Duration // instant of Largest
	Complete   bool          // the samples reach the end of the cycle
}

// Passed reports whether the whole cycle was driven without a violation.
func (j *Judgement) Passed() bool { return j.Complete && j.Violations == 0 }

// Judge compares a speed with the band of a cycle between two instants, sample by sample. A deviation lasts
// from its first sample outside of the band to the next sample inside.
type Judge struct {
	c          *Cycle
	begin, end int64
	most       int // accepted deviations; 0: any number
	first      int // first point of the target that the band covers
	outside    bool
	violated   bool  // the deviation is a violation
	since      int64 // start of the deviation, ns
	j          Judgement
}

// NewJudge returns a Judge of the samples from begin to end, ns, with at most so many accepted deviations; 0: any
// number.
func NewJudge(c *Cycle, begin, end int64, most int) *Judge {
	return &Judge{c: c, begin: begin, end: end, most: most, j: Judgement{First: -1}}
}

// BandAt returns the lowest and the highest speed that the tolerance of a cycle accepts at an instant, ns.
func (c *Cycle) BandAt(at int64) (low, high float64) {
	first := 0
	return c.band(at, &first)
}

// band is BandAt for instants that do not decrease: first is kept between the calls and begins at 0.
func (c *Cycle) band(at int64, first *int) (low, high float64) {
	from, to := max(at-int64(c.Band.Time), 0), min(at+int64(c.Band.Time), c.End())
	a, b := c.Target.Eval(from), c.Target.Eval(to)
	low, high = min(a, b), max(a, b)
	for *first < len(c.Target.At) && c.Target.At[*first] < from {
		*first++
	}
	for i := *first; i < len(c.Target.At) && c.Target.At[i] <= to; i++ {
		low, high = min(low, c.Target.Value[i]), max(high, c.Target.Value[i])
	}
	return low - c.Band.Speed, high + c.Band.Speed
}

// Add judges a sample at an instant, ns; instants increase. Samples outside of the Judge's time are left out.
func (g *Judge) Add(at int64, v float64) {
	g.j.Complete = at >= g.end
	if at < g.begin || at > g.end {
		return
	}
	low, high := g.c.band(at, &g.first)
	beyond := max(low-v, v-high)
	if math.IsNaN(v) {
		beyond = math.Inf(1)
	}
	if beyond > rounding && beyond > g.j.Largest {
		g.j.Largest, g.j.LargestAt = beyond, time.Duration(at)
	}
	g.update(at, beyond > rounding)
	if math.IsInf(beyond, 1) { // no speed at all, however short
		g.violate()
	}
}

// rounding is the distance from the band that arithmetic explains, m/s.
const rounding = 1e-9

// update takes over whether the speed is outside of the band at an instant.
func (g *Judge) update(at int64, outside bool) {
	if outside && !g.outside {
		g.since, g.violated = at, false
		g.j.Deviations++
		if g.most > 0 && g.j.Deviations > g.most {
			g.violate()
		}
	}
	if g.outside {
		if lasted := time.Duration(at - g.since); lasted > g.c.Band.Longest {
			g.violate()
		}
	}
	if g.outside && !outside {
		g.close(at)
	}
	g.outside = outside
}

// violate counts the deviation as a violation.
func (g *Judge) violate() {
	if g.violated {
		return
	}
	g.violated = true
	g.j.Violations++
	if g.j.First < 0 {
		g.j.First = time.Duration(g.since)
	}
}

// close ends the deviation at an instant.
func (g *Judge) close(at int64) {
	lasted := time.Duration(at - g.since)
	g.j.Outside += lasted
	g.j.Longest = max(g.j.Longest, lasted)
}

// Judgement returns the judgement of the samples so far. last is the instant of the last sample, ns: a deviation that
// lasts is counted up to it.
func (g *Judge) Judgement(last int64) Judgement {
	copied := *g
	if copied.outside {
		copied.close(min(max(last, copied.since), copied.end))
	}
	return copied.j
}
