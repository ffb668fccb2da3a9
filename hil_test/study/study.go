package main

import "math"

// extent is how much of the study is done.
type extent struct {
	until  float64   // s, of every motion but the long ones
	steps  []float64 // of the curves of error over step, s
	rounds int       // of the measurement of cost
	swings int       // of the energy over a long time
}

var (
	whole = extent{until: 30, steps: spaced(0.0002), rounds: 15, swings: 1000}
	short = extent{until: 10, steps: spaced(0.0003), rounds: 3, swings: 20}
)

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
	accuracy []accuracy
	views    []view // figures 31 to 36, then 40 to 43
	energy   []energy
	costs    []float64 // ns per step of 0.1 s of table 6, per method
	inner    []inner
	unstable []float64 // shortest step at which the mass leaves its range, per method, s; 0: none
}

// accuracy is a method's error over the step.
type accuracy struct {
	p              *problem
	m              *method
	own, published []float64 // per step
	work           []float64 // per step: the cost of a second of motion, in steps of the linear system
	order, late    float64   // of the two errors
}

// energy is what a method does to it at 0.1 s without a damper.
type energy struct {
	m    *method
	leak         // at 0.1 s
	fine float64 // at the end, with 10 ms
	long float64 // after many swings
}

// inner is what the inner stiffness does to the energy at 10 ms.
type inner struct{ c, end float64 }

func do(e extent) *result {
	r := &result{extent: e}
	for _, p := range problems {
		s := solve(p, p.span(e.until))
		for i := range methods {
			r.accuracy = append(r.accuracy, precision(&methods[i], s, e))
		}
		r.works(p)
	}
	for i, h := range looks {
		r.views = append(r.views, look(31+2*i, &table6, h, e.until))
	}
	r.views = append(r.views, look(40, &table9, 0.1, e.until), look(42, &table10, 0.01, e.until))
	for i := range methods {
		m := &methods[i]
		one := energy{m: m, leak: m.leaks(&lasting, 0.1, e.until), fine: m.leaks(&lasting, 0.01, e.until).end}
		one.long = m.leaks(&lasting, 0.1, swing*float64(e.swings)).end
		r.energy = append(r.energy, one)
		r.unstable = append(r.unstable, border(m, &table5))
	}
	for _, c := range []float64{0, 1, 5, 10, 15, 20} {
		p, m := lasting, named(nInner)
		if p.inner = c; c == 0 {
			m = named(nFree)
		}
		r.inner = append(r.inner, inner{c, m.leaks(&p, 0.01, e.until).end})
	}
	r.costs = costs(&table6, 0.1, e.rounds)
	return r
}

// view is what all methods make of a problem at one step.
type view struct {
	figure int // over the state; the next one is over time
	truth  *truth
	h      float64 // s
	rows   []reach // per method
}

func look(figure int, p *problem, h, until float64) view {
	until = p.span(until)
	w := view{figure: figure, truth: solve(p, until), h: h}
	for i := range methods {
		w.rows = append(w.rows, methods[i].follow(w.truth, h, until, true))
	}
	return w
}

// works adds the cost to the last problem.
func (r *result) works(p *problem) {
	list := r.accuracy[len(r.accuracy)-len(methods):]
	for _, h := range r.steps {
		c := costs(p, h, r.rounds)
		for i := range list {
			list[i].work = append(list[i].work, c[i]/c[0]/h)
		}
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
