package plants_test

import (
	"math"
	"strings"
)

// second is a plant solved a second time, for tests: bodies with an inertia matrix, dry
// friction, a stop and forces that are smooth between borders, written down by hand. It
// extrapolates the midpoint rule (Gragg, Bulirsch, Stoer; order 12) within one case of
// what sticks, what touches and what lies between which borders, halves the step in
// which that changes until it ends there, and finds what is at rest by trying every case.
// It shares no code with the kernel, nor with the assembly.
type second struct {
	names   []string    // of the states; the first n are speeds
	inertia [][]float64 // n×n, kg or kg·m²
	x       []float64
	t       float64 // s
	step    float64 // longest, s
	// motion sets d to the forces on the n speeds, without those of rubs and stops, and to
	// the rates of the other states.
	motion  func(t float64, x, d []float64)
	rubs    []rub
	stops   []stop
	borders []border
	corners []float64 // s, ascending: where a force or a capacity bends over time
	events  []happening

	inverse [][]float64 // of inertia
	next    float64     // s, the next step: short after an event, since a flight may be
	bonds   []bond      // what sticks and touches
	stages  [3][]float64
	columns [order / 2][]float64
}

const order = 12 // of a step

// seen are the states and what holds what sticks or touches.
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
	lock, slip string // how its events are called
	row        []float64
	capacity   func(t float64, x []float64) float64 // N or N·m
	way        int                                  // 0 sticks, 1 or -1 slips
	force      float64                              // what it takes while it sticks
}

// stop is a rigid stop that keeps gap(x) >= 0; its rate is row·v.
type stop struct {
	name    string // of its force
	gap     func(x []float64) float64
	row     []float64
	e       float64 // restitution
	ks      float64 // of the force in contact, what the body that pushes gets (Reiter, eq. 128)
	way     int     // border whose region 1 means that both move ahead; with ks != 1
	touches bool
	force   float64 // in contact
}

// border is what ends a step at value(x) = at[i]; between them are regions.
type border struct {
	name   string // "": no event
	value  func(x []float64) float64
	at     []float64
	region int
}

// bond keeps row·v = 0 by a force, which accelerates the bodies by push.
type bond struct {
	row, push []float64
	force     *float64
}

// ready computes what follows from the rest; the plant is in the case in which it starts.
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
	s.settle()
	s.next = s.step
	return s
}

// eliminate solves a·x = b; the last column of a is b.
func eliminate(a [][]float64) []float64 {
	n := len(a)
	for p := range n {
		best := p
		for i := p; i < n; i++ {
			if !(math.Abs(a[i][p]) <= math.Abs(a[best][p])) { // what is no number shows in x
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

// bind lists the bonds of the present case: of stops first.
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

// pushed is how a force accelerates the bodies.
func (s *second) pushed(force []float64) []float64 {
	a := make([]float64, len(force))
	for i, r := range s.inverse {
		a[i] = dot(r, force)
	}
	return a
}

// hold changes v by the bonds' forces, or impulses, until every row·v = 0.
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

// rate sets d to the rates of x, and the forces of the bonds.
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

// advance goes h on from where the plant is, in the present case.
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
