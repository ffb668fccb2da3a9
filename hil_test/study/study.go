package main

import (
	"math"
	"time"
)

// extent are the parameters of the study.
type extent struct {
	until  float64   // length of every motion except the long ones, s
	steps  []float64 // steps of the curves of error over step, s
	rounds int       // repetitions of the measurement of cost
	swings int       // swings of the energy over a long time
}

var whole = extent{until: 30, steps: spaced(0.0002), rounds: 15, swings: 1000}

// spaced returns steps from the first to 0.25 s, each a quarter longer than the one before, in
// whole microseconds. Many steps average out the position of a boundary in a step.
func spaced(first float64) (list []float64) {
	for h := first; h < 0.25; h *= 1.25 {
		list = append(list, math.Round(h*1e6)/1e6)
	}
	return list
}

// viewSteps are the steps of figures 31 to 36, s. 000 prints none for these; 10 ms is the step of
// its figure 19, 100 ms that of table 6, 200 ms that of figure 23.
var viewSteps = []float64{0.01, 0.1, 0.2}

// problems are the problems of the curves of error over step and over cost.
var problems = []*problem{&table6, &table2, &table3, &table9, &table10}

const swing = 2.2026 // period of table 6 without a damper, s

// result is the result of the study.
type result struct {
	extent
	methods []*found
	views   []view // figures 31 to 36, then 40 to 43
	inner   []inner
}

// found is the result for a method.
type found struct {
	*method
	accuracy []accuracy // per problem
	views    []reach
	leak             // drift of the energy without a damper, steps of 0.1 s
	fine     float64 // drift of the energy at the end, steps of 10 ms
	long     float64 // drift of the energy after many swings, steps of 0.1 s
	leaves   float64 // shortest step at which the mass leaves its range, s; 0: none
	cost     float64 // time of a step of 0.1 s of table 6, ns
}

// accuracy is a method's error over the step.
type accuracy struct {
	p              *problem
	m              *method
	own, published []float64 // errors of the state at its own time and at the tick, per step
	work           []float64 // cost of a second of motion, in steps of the linear system, per step
	order, late    float64   // orders of own and published
}

// inner is the drift of the energy at the end, steps of 10 ms, for an inner stiffness c, N/m.
type inner struct{ c, end float64 }

// view is a problem at one step, for all methods.
type view struct {
	figure int // number of the figure over the state; the next figure is over time
	truth  *truth
	h      float64 // s
}

func do(e extent) *result {
	r := &result{extent: e}
	for i, ns := range costs(&table6, 0.1, e.rounds) {
		m := &methods[i]
		r.methods = append(r.methods, &found{
			method: m, leak: m.leaks(&lasting, 0.1, e.until), fine: m.leaks(&lasting, 0.01, e.until).end,
			long: m.leaks(&lasting, 0.1, swing*float64(e.swings)).end, leaves: rangeLimit(m, &table5), cost: ns,
		})
	}

	for _, p := range problems {
		r.measure(p)
	}
	for i, h := range viewSteps {
		r.addView(31+2*i, &table6, h)
	}
	r.addView(40, &table9, 0.1)
	r.addView(42, &table10, 0.01)
	for _, c := range []float64{0, 1, 5, 10, 15, 20} {
		p, m := lasting, named(nInner)
		if p.inner = c; c == 0 {
			m = named(nFree)
		}
		r.inner = append(r.inner, inner{c, m.leaks(&p, 0.01, e.until).end})
	}

	return r
}

// addView runs a problem with one step by all methods.
func (r *result) addView(figure int, p *problem, h float64) {
	until := p.span(r.until)
	s := solve(p, until)
	r.views = append(r.views, view{figure, s, h})
	for _, f := range r.methods {
		f.views = append(f.views, f.follow(s, h, until, true))
	}
}

// measure adds the errors and costs of a problem over the step.
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

// reach is the error of a method, as a part of the range.
type reach struct {
	own       float64   // largest error of the states at their own times
	published float64   // largest error of the states at the ticks that publish them
	adjusted  int       // ticks with a step shorter than h
	t, x, v   []float64 // the motion, if kept
}

// follow runs a method until a time, s, and compares it with the truth.
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

// order returns the slope of the logarithm of the error over that of the step, by least squares,
// for errors below 3 % and above rounding (1e-10). NaN: fewer than four such errors.
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

// leak is the drift of the energy over time: energy over that at the start, less 1.
type leak struct {
	t, e []float64
	end  float64 // drift at the end
}

// leaks runs a method without a damper and returns the drift of its energy.
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

// costs returns the time of a step of every method, ns, over 30 s from the start as in 000, at most
// 2000 steps. It is the minimum over rounds in which the methods take turns, since other processes
// only add time.
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

// rangeLimit returns the shortest step, s, in hundredths, at which a method leaves its initial
// range within 30 s; 0: none up to 1 s.
func rangeLimit(m *method, p *problem) float64 {
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
