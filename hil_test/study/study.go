package main

import (
	"math"
	"time"
)

// extent is how much of the study is done.
type extent struct {
	until  float64   // s, of every motion but the long ones
	steps  []float64 // of the curves of error over step, s
	rounds int       // of the measurement of cost
	swings int       // of the energy over a long time
}

var whole = extent{until: 30, steps: spaced(0.0002), rounds: 15, swings: 1000}

// spaced are steps from the first to 0.25 s, each a quarter longer than the one before,
// of whole microseconds: where a border lies in a step is chance, and evens out.
func spaced(first float64) (list []float64) {
	for h := first; h < 0.25; h *= 1.25 {
		list = append(list, math.Round(h*1e6)/1e6)
	}
	return list
}

// Steps at which 000 looks, s: its figures name none; 10 ms is that of figure 19, 100 ms
// that of table 6, 200 ms that of figure 23.
var looks = []float64{0.01, 0.1, 0.2}

// problems are those of the curves of error over step and over cost.
var problems = []*problem{&table6, &table2, &table3, &table9, &table10}

const swing = 2.2026 // s, of table 6 without a damper

// result is what the study finds.
type result struct {
	extent
	methods []*found
	views   []view // figures 31 to 36, then 40 to 43
	inner   []inner
}

// found is what the study finds of a method.
type found struct {
	*method
	accuracy []accuracy // per problem
	views    []reach
	leak             // of energy without a damper, at 0.1 s
	fine     float64 // the same at the end, with 10 ms
	long     float64 // after many swings
	leaves   float64 // shortest step at which the mass leaves its range, s; 0: none
	cost     float64 // ns per step of 0.1 s of table 6
}

// accuracy is a method's error over the step.
type accuracy struct {
	p              *problem
	m              *method
	own, published []float64 // per step
	work           []float64 // per step: the cost of a second of motion, in steps of the linear system
	order, late    float64   // of the two errors
}

// inner is what the inner stiffness does to the energy at 10 ms.
type inner struct{ c, end float64 }

// view is a problem at one step, for all methods.
type view struct {
	figure int // over the state; the next one is over time
	truth  *truth
	h      float64 // s
}

func do(e extent) *result {
	r := &result{extent: e}
	for i, ns := range costs(&table6, 0.1, e.rounds) {
		m := &methods[i]
		r.methods = append(r.methods, &found{
			method: m, leak: m.leaks(&lasting, 0.1, e.until), fine: m.leaks(&lasting, 0.01, e.until).end,
			long: m.leaks(&lasting, 0.1, swing*float64(e.swings)).end, leaves: border(m, &table5), cost: ns,
		})
	}

	for _, p := range problems {
		r.measure(p)
	}
	for i, h := range looks {
		r.look(31+2*i, &table6, h)
	}
	r.look(40, &table9, 0.1)
	r.look(42, &table10, 0.01)
	for _, c := range []float64{0, 1, 5, 10, 15, 20} {
		p, m := lasting, named(nInner)
		if p.inner = c; c == 0 {
			m = named(nFree)
		}
		r.inner = append(r.inner, inner{c, m.leaks(&p, 0.01, e.until).end})
	}

	return r
}

// look follows a problem with one step by all methods.
func (r *result) look(figure int, p *problem, h float64) {
	until := p.span(r.until)
	s := solve(p, until)
	r.views = append(r.views, view{figure, s, h})
	for _, f := range r.methods {
		f.views = append(f.views, f.follow(s, h, until, true))
	}
}

// measure finds errors and costs of a problem over the step.
func (r *result) measure(p *problem) {
	s := solve(p, p.span(r.until))
	work := make([][]float64, len(r.methods))
	for _, h := range r.steps {
		c := costs(p, h, r.rounds)
		for i := range work {
			work[i] = append(work[i], c[i]/c[0]/h)
		}
	}

	for i, f := range r.methods {
		a := precision(f.method, s, r.extent)
		a.work = work[i]
		f.accuracy = append(f.accuracy, a)
	}
}

func precision(m *method, s *truth, e extent) accuracy {
	a := accuracy{p: s.p, m: m}
	for _, h := range e.steps {
		f := m.follow(s, h, s.p.span(e.until), false)
		a.own, a.published = append(a.own, f.own), append(a.published, f.published)
	}

	a.order, a.late = order(e.steps, a.own), order(e.steps, a.published)
	return a
}

// reach is how far a method is from the truth, as a part of the range.
type reach struct {
	own       float64   // largest, of each state at the time it is of
	published float64   // largest, of each state at the tick it comes out
	adjusted  int       // ticks whose step was shorter than h
	t, x, v   []float64 // the motion, if it is kept
}

// follow runs a method until then, s.
func (m *method) follow(s *truth, h, until float64, keep bool) (r reach) {
	run := m.start(s.p, h)
	z, lag := vec{s.p.x0, 0}, 0.0
	for k := 1; float64(k)*h <= until*(1+1e-12); k++ {
		next, took := run.step(float64(k-1)*h-lag, z)
		z, lag = next, lag+h-took
		if math.Abs(lag) < 1e-9*h {
			lag = 0
		}
		if took < h {
			r.adjusted++
		}
		tick := float64(k) * h
		off := s.off(tick-lag, z)
		r.own = max(r.own, off)
		if lag != 0 {
			off = s.off(tick, z)
		}
		r.published = max(r.published, off)
		if keep {
			r.t, r.x, r.v = append(r.t, tick-lag), append(r.x, z[0]), append(r.v, z[1])
		}
	}

	return r
}

// order is the slope of the logarithm of the error over that of the step, by least
// squares, over the steps whose error is below 3 % and above what rounding leaves.
func order(h, e []float64) float64 {
	var steps, errors []float64
	for i := range h {
		if e[i] < 0.03 && e[i] > 1e-10 {
			steps, errors = append(steps, h[i]), append(errors, e[i])
		}
	}

	if len(steps) < 4 {
		return math.NaN()
	}
	_, b := powerLaw(steps, errors)
	return b
}

// leak is the energy of a method over time, as a part of that at the start, less 1.
type leak struct {
	t, e []float64
	end  float64 // at the end
}

// leaks runs a method without a damper.
func (m *method) leaks(p *problem, h, until float64) (l leak) {
	run, z, first := m.start(p, h), vec{p.x0, 0}, p.energy(vec{p.x0, 0})
	for t := 0.0; t < until; {
		next, took := run.step(t, z)
		z, t = next, t+took
		l.end = p.energy(z)/first - 1
		l.t, l.e = append(l.t, t), append(l.e, l.end)
	}

	return l
}

// costs are the ns of a step of h of every method, over 30 s from the start as 000 has
// them, at most 2000 steps: the least over rounds in which the methods take turns, since
// what else a machine does only adds.
func costs(p *problem, h float64, rounds int) []float64 {
	steps := min(2000, int(30/h+0.5))
	repeat := 2000 / steps
	out, runs := make([]float64, len(methods)), make([]runner, len(methods))
	for i, m := range methods {
		out[i], runs[i] = math.Inf(1), m.start(p, h)
	}
	for range rounds {
		for i, run := range runs {
			began := time.Now()
			for range repeat {
				run.reset()
				t, z := 0.0, vec{p.x0, 0}
				for range steps {
					next, took := run.step(t, z)
					t, z = t+took, next
				}
			}

			out[i] = min(out[i], float64(time.Since(began).Nanoseconds())/float64(steps*repeat))
		}
	}

	return out
}

// border is the shortest step, s, of whole hundredths, from which on a method leaves the
// range it was let go in within 30 s; 0: none up to 1 s.
func border(m *method, p *problem) float64 {
	for n := 1; n <= 100; n++ {
		h := float64(n) / 100
		run, t, z := m.start(p, h), 0.0, vec{p.x0, 0}
		for range int(30 / h) {
			next, took := run.step(t, z)
			if t, z = t+took, next; !(math.Abs(z[0]) <= 1.001*p.x0) {
				return h
			}
		}
	}

	return 0
}
