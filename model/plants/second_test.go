package plants_test

import (
	"math"
	"strings"
)

// second is an independent solver with a plant written by hand: bodies with an inertia matrix, dry
// friction, stops, and forces that are smooth between region boundaries. With fixed locks, contacts
// and regions it extrapolates the midpoint rule (Gragg, Bulirsch, Stoer; order 12). It locates their
// changes by bisection of the step. At rest it tries every combination of locks and contacts. It
// shares no code with the kernel or the assembly.
type second struct {
	unloaded bool        // the contact after the first impact carries no load, which the solver takes as open
	names    []string    // names of the states; the first n are speeds
	inertia  [][]float64 // n×n, kg or kg·m²
	x        []float64
	t        float64 // time, s
	step     float64 // longest step, s
	// motion sets d to the forces on the n speeds, without those of rubs and stops, and to
	// the rates of the other states.
	motion  func(t float64, x, d []float64)
	rubs    []rub
	stops   []stop
	borders []border
	corners []float64 // breakpoints of forces and capacities over time, s, ascending
	events  []happening

	inverse [][]float64 // inverse of inertia
	next    float64     // next step, s; short after an event, since a flight may be short
	bonds   []bond      // active locks and contacts
	stages  [3][]float64
	columns [order / 2][]float64
}

const order = 12 // order of a step

// seen returns the names and values of the states, of the friction forces and of the contact forces.
func (s *second) seen() (names []string, values []float64) {
	names, values = append(names, s.names...), append(values, s.x[:len(s.names)]...)
	s.rate(s.t, s.x, make([]float64, len(s.x)))
	for _, r := range s.rubs {
		tau := -r.force
		if r.way != 0 {
			tau = float64(r.way) * r.capacity(s.t, s.x)
		}
		names, values = append(names, strings.Replace(r.lock, "lock", "tau", 1)), append(values, tau)
	}
	for _, p := range s.stops {
		if !p.touches {
			p.force = 0
		}
		names, values = append(names, p.name), append(values, p.force)
	}
	return names, values
}

// rub is dry friction along row·v.
type rub struct {
	lock, slip string // names of its events
	row        []float64
	capacity   func(t float64, x []float64) float64 // N or N·m
	way        int                                  // direction of slip, 1 or -1; 0: locked
	force      float64                              // force in lock, N or N·m
}

// stop is a rigid stop that keeps gap(x) >= 0; its rate is row·v.
type stop struct {
	name    string // name of its force
	gap     func(x []float64) float64
	row     []float64
	e       float64 // restitution
	ks      float64 // ratio of the contact forces on the pushing and the pushed body (Reiter, eq. 128)
	way     int     // index of the border whose region 1 means that both move ahead; if ks != 1
	touches bool
	force   float64 // contact force, N or N·m
}

// border is a list of region boundaries at value(x) = at[i]; a step ends at each.
type border struct {
	name   string // "": no event
	value  func(x []float64) float64
	at     []float64
	region int
}

// bond is a lock or contact that keeps row·v = 0 by a force; push is the acceleration by force 1.
type bond struct {
	row, push []float64
	force     *float64
}

// ready computes the derived fields and the initial modes.
func (s *second) ready() *second {
	n := len(s.inertia)
	for i := range n {
		e := make([]float64, n)
		e[i] = 1
		a := make([][]float64, n)
		for j := range n {
			a[j] = append(append([]float64(nil), s.inertia[j]...), e[j])
		}
		s.inverse = append(s.inverse, eliminate(a)) // symmetric
	}
	for i := range s.stages {
		s.stages[i] = make([]float64, len(s.x))
	}
	for i := range s.columns {
		s.columns[i] = make([]float64, len(s.x))
	}
	for i := range s.borders {
		b := &s.borders[i]
		for b.region < len(b.at) && b.value(s.x) > b.at[b.region] {
			b.region++
		}
	}
	for i := range s.rubs {
		if v := dot(s.rubs[i].row, s.x); v != 0 {
			s.rubs[i].way = int(math.Copysign(1, v))
		}
	}
	s.chooseModes()
	s.next = s.step
	return s
}

// eliminate solves a·x = b; the last column of a is b.
func eliminate(a [][]float64) []float64 {
	n := len(a)
	for p := range n {
		best := p
		for i := p; i < n; i++ {
			if !(math.Abs(a[i][p]) <= math.Abs(a[best][p])) { // NaN propagates to x
				best = i
			}
		}
		a[p], a[best] = a[best], a[p]
		for i := range n {
			if f := a[i][p] / a[p][p]; i != p {
				for j := p; j <= n; j++ {
					a[i][j] -= f * a[p][j]
				}
			}
		}
	}
	x := make([]float64, n)
	for i := range n {
		x[i] = a[i][n] / a[i][i]
	}
	return x
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// bind lists the bonds of the present modes, stops first.
func (s *second) bind() {
	s.bonds = s.bonds[:0]
	for i := range s.stops {
		p := &s.stops[i]
		if !p.touches {
			continue
		}
		on := append([]float64(nil), p.row...)
		for j, f := range on {
			if p.ks != 1 && (f < 0) == (s.borders[p.way].region == 1) {
				on[j] *= p.ks
			}
		}
		s.bonds = append(s.bonds, bond{p.row, s.pushed(on), &p.force})
	}
	for i := range s.rubs {
		if r := &s.rubs[i]; r.way == 0 {
			s.bonds = append(s.bonds, bond{r.row, s.pushed(r.row), &r.force})
		}
	}
}

// pushed returns the accelerations of the bodies by a force.
func (s *second) pushed(force []float64) []float64 {
	a := make([]float64, len(force))
	for i, r := range s.inverse {
		a[i] = dot(r, force)
	}
	return a
}

// hold computes the forces of the bonds, or impulses, and changes v by them so that every row·v = 0.
func (s *second) hold(v []float64) {
	n := len(s.bonds)
	g := make([][]float64, n)
	for i, b := range s.bonds {
		g[i] = make([]float64, n+1)
		for j, c := range s.bonds {
			g[i][j] = dot(b.row, c.push)
		}
		g[i][n] = -dot(b.row, v)
	}
	for k, f := range eliminate(g) {
		*s.bonds[k].force = f
		for i, p := range s.bonds[k].push {
			v[i] += p * f
		}
	}
}

// rate sets d to the derivatives of x, and sets the forces of the bonds.
func (s *second) rate(t float64, x, d []float64) {
	s.motion(t, x, d)
	n := len(s.inertia)
	for _, r := range s.rubs {
		if r.way != 0 {
			f := float64(r.way) * r.capacity(t, x)
			for i, c := range r.row {
				d[i] -= c * f
			}
		}
	}
	copy(d, s.pushed(d[:n]))
	s.hold(d[:n])
}

// advance solves one step of length h, s, with the present modes.
func (s *second) advance(h float64) {
	d := make([]float64, len(s.x))
	for k := range s.columns {
		n := 2 * (k + 1)
		sub := h / float64(n)
		last, now, next := s.stages[0], s.stages[1], s.stages[2]
		copy(last, s.x)
		s.rate(s.t, last, d)
		for i := range now {
			now[i] = last[i] + sub*d[i]
		}
		for m := 1; m < n; m++ {
			s.rate(s.t+float64(m)*sub, now, d)
			for i := range next {
				next[i] = last[i] + 2*sub*d[i]
			}
			last, now, next = now, next, last
		}
		for i, c := range now {
			for j := range k {
				ratio := float64(n) / float64(2*(k-j))
				better := c + (c-s.columns[j][i])/(ratio*ratio-1)
				s.columns[j][i], c = c, better
			}
			s.columns[k][i] = c
		}
	}
	copy(s.x, s.columns[len(s.columns)-1])
	s.t += h
}
