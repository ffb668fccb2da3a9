package main

import (
	"math"
	"time"
)

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
		r.own = most(r.own, off)
		if lag != 0 {
			off = s.off(tick, z)
		}
		r.published = most(r.published, off)
		if keep {
			r.t, r.x, r.v = append(r.t, tick-lag), append(r.x, z[0]), append(r.v, z[1])
		}
	}
	return r
}

// most is the larger one; what is no number stays.
func most(a, b float64) float64 {
	if !(b <= a) && !math.IsNaN(a) {
		return b
	}
	return a
}

// order is the slope of the logarithm of the error over that of the step, by least
// squares, over the steps whose error is below 3 % and above what rounding leaves.
func order(h, e []float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range h {
		if e[i] < 0.03 && e[i] > 1e-10 {
			x, y := math.Log(h[i]), math.Log(e[i])
			n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
		}
	}
	if n < 4 {
		return math.NaN()
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// leak is the energy of a method over time, as a part of that at the start, less 1.
type leak struct {
	t, e []float64
	end  float64 // at the end
	most float64 // farthest from 0
}

// leaks runs a method without a damper.
func (m *method) leaks(p *problem, h, until float64) (l leak) {
	run, z, first := m.start(p, h), vec{p.x0, 0}, p.energy(vec{p.x0, 0})
	for t := 0.0; t < until; {
		next, took := run.step(t, z)
		z, t = next, t+took
		l.end = p.energy(z)/first - 1
		l.most = most(l.most, math.Abs(l.end))
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
	out := make([]float64, len(methods))
	for i := range out {
		out[i] = math.Inf(1)
	}
	runs := make([]runner, len(methods))
	for i := range methods {
		runs[i] = methods[i].start(p, h)
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
