package mechanics_test

import "math"

// springRow is an independent solver for a row of bodies: affine springs between neighbours and to
// the ground, a stop on either side of each gap, one brake. It takes small Runge-Kutta steps with
// fixed regions, locks and contacts, and locates their changes by bisection. At rest it tries every
// combination of locks and contacts. It shares no code with the kernel.
type springRow struct {
	m       []float64
	springs []rowSpring // spring i acts on bodies i and i-1; spring 0 on body 0 and the ground
	stops   []rowStop
	brake   int
	hold    float64 // capacity of the brake, N
	push    func(t float64) float64
	pushed  int
	t       float64
	x, v    []float64
	region  []int
	sliding float64 // direction of slip of the brake: 1, -1; 0: locked
	contact []bool
	impacts int
	gaveUp  bool
}

type rowSpring struct {
	c, borders, offsets []float64
	d                   float64
}

type rowStop struct {
	a, b           int // -1: ground
	sign, limit, e float64
}

func (r *springRow) stretch(i int) (z, rate float64) {
	if i == 0 {
		return r.x[0], r.v[0]
	}
	return r.x[i] - r.x[i-1], r.v[i] - r.v[i-1]
}

// forces returns the forces on all bodies, N, without those of contacts and of a locked brake.
func (r *springRow) forces() []float64 {
	f := make([]float64, len(r.m))
	for i, s := range r.springs {
		z, rate := r.stretch(i)
		tau := s.c[r.region[i]]*z + s.offsets[r.region[i]] + s.d*rate
		f[i] -= tau
		if i > 0 {
			f[i-1] += tau
		}
	}
	f[r.pushed] += r.push(r.t)
	f[r.brake] -= r.sliding * r.hold
	return f
}

func (r *springRow) opening(s rowStop) (gap, rate float64) {
	return s.sign * (r.x[s.b] - r.x[s.a] - s.limit), s.sign * (r.v[s.b] - r.v[s.a])
}

// constraints returns the active constraints: contacts, then the brake if it holds.
func (r *springRow) constraints(touch []bool, holds bool) [][]float64 {
	var w [][]float64
	for i, s := range r.stops {
		if touch[i] {
			c := make([]float64, len(r.m))
			c[s.b], c[s.a] = s.sign, -s.sign
			w = append(w, c)
		}
	}
	if holds {
		c := make([]float64, len(r.m))
		c[r.brake] = 1
		w = append(w, c)
	}
	return w
}

// accelerations returns the accelerations under constraints w, m/s², and the constraint forces, N.
func (r *springRow) accelerations(w [][]float64) (a, lambda []float64) {
	a = r.forces()
	for i := range a {
		a[i] /= r.m[i]
	}
	lambda = solveRows(w, r.m, a)
	for k, c := range w {
		for i := range a {
			a[i] += c[i] * lambda[k] / r.m[i]
		}
	}
	return a, lambda
}

// solveRows returns lambda of w·(a + M⁻¹·wᵀ·lambda) = 0 by Gauss-Jordan elimination with pivoting.
func solveRows(w [][]float64, m, a []float64) []float64 {
	n := len(w)
	g := make([][]float64, n)
	for i := range w {
		g[i] = make([]float64, n+1)
		for j := range w {
			for k := range m {
				g[i][j] += w[i][k] * w[j][k] / m[k]
			}
		}
		for k := range m {
			g[i][n] -= w[i][k] * a[k]
		}
	}
	for p := range n {
		best := p
		for i := p; i < n; i++ {
			if !(math.Abs(g[i][p]) <= math.Abs(g[best][p])) {
				best = i
			}
		}
		g[p], g[best] = g[best], g[p]
		for i := range n {
			if i != p {
				f := g[i][p] / g[p][p]
				for j := p; j <= n; j++ {
					g[i][j] -= f * g[p][j]
				}
			}
		}
	}
	out := make([]float64, n)
	for i := range n {
		out[i] = g[i][n] / g[i][i]
	}
	return out
}

const rowZero = 1e-9 // speed that counts as zero, m/s

// chooseModes tries every combination of contacts and locks at rest and takes the best fit.
func (r *springRow) chooseModes() {
	var at []int
	for i, s := range r.stops {
		if gap, rate := r.opening(s); gap <= 1e-12 && math.Abs(rate) < rowZero {
			at = append(at, i)
		}
	}
	ways := []float64{r.sliding}
	if math.Abs(r.v[r.brake]) < rowZero {
		ways = []float64{0, 1, -1}
	}
	best := math.Inf(1)
	var bestTouch []bool
	bestWay := 0.0
	for set := range 1 << len(at) {
		touch := make([]bool, len(r.stops))
		for k, i := range at {
			touch[i] = set>>k&1 == 1
		}
		for _, way := range ways {
			r.sliding = way
			bad := 0.0
			a, lambda := r.accelerations(r.constraints(touch, way == 0))
			k := 0
			for i, s := range r.stops {
				if touch[i] {
					bad = max(bad, -lambda[k])
					k++
				}
				if gap, rate := r.opening(s); gap <= 1e-12 && math.Abs(rate) < rowZero && !touch[i] {
					bad = max(bad, -s.sign*(a[s.b]-a[s.a]))
				}
			}
			if way == 0 {
				bad = max(bad, math.Abs(lambda[k])-r.hold)
			} else if len(ways) > 1 {
				bad = max(bad, -way*a[r.brake])
			}
			if bad < best-1e-12 {
				best, bestTouch, bestWay = bad, touch, way
			}
		}
	}
	r.contact, r.sliding = bestTouch, bestWay
	w := r.constraints(r.contact, r.sliding == 0)
	jump := solveRows(w, r.m, r.v) // removes rounding errors
	for k, c := range w {
		for i := range r.v {
			r.v[i] += c[i] * jump[k] / r.m[i]
		}
	}
}

// applyImpact applies the impact on stop i and the impacts that it causes on closed stops, the
// fastest first.
func (r *springRow) applyImpact(i int) {
	for n := 0; i >= 0; n++ {
		s := r.stops[i]
		_, rate := r.opening(s)
		e := s.e
		if -e*rate < rowZero {
			e = 0
		}
		p := -(1 + e) * rate * s.sign / (1/r.m[s.a] + 1/r.m[s.b])
		r.v[s.b] += p / r.m[s.b]
		r.v[s.a] -= p / r.m[s.a]
		r.impacts++
		if n > 300 {
			r.gaveUp = true
			return
		}
		worst := -rowZero
		i = -1
		for j, s := range r.stops {
			if gap, rate := r.opening(s); (gap <= 1e-12 || r.contact[j]) && rate < worst {
				i, worst = j, rate
			}
		}
	}
	if v := r.v[r.brake]; math.Abs(v) >= rowZero {
		r.sliding = math.Copysign(1, v)
	}
}

// step takes one Runge-Kutta step of length h, s, from the present state.
func (r *springRow) step(h float64) {
	n := len(r.m)
	t, x, v := r.t, append([]float64(nil), r.x...), append([]float64(nil), r.v...)
	var kx, kv [4][]float64
	for k, part := range []float64{0, 0.5, 0.5, 1} {
		r.t = t + part*h
		if k > 0 {
			for i := range n {
				r.x[i], r.v[i] = x[i]+part*h*kx[k-1][i], v[i]+part*h*kv[k-1][i]
			}
		}
		kx[k] = append([]float64(nil), r.v...)
		kv[k], _ = r.accelerations(r.constraints(r.contact, r.sliding == 0))
	}
	for i := range n {
		r.x[i] = x[i] + h/6*(kx[0][i]+2*kx[1][i]+2*kx[2][i]+kx[3][i])
		r.v[i] = v[i] + h/6*(kv[0][i]+2*kv[1][i]+2*kv[2][i]+kv[3][i])
	}
	r.t = t + h
}

// changed returns the change of mode due in the present state and the index of its part. what is 0
// for none, 1 for a region, 2 for a contact that opens, 3 for an impact, 4 for the brake.
func (r *springRow) changed() (what, which int) {
	for i, s := range r.springs {
		z, _ := r.stretch(i)
		if q := r.region[i]; q > 0 && z < s.borders[q-1]-1e-13 {
			return 1, -i - 1
		} else if q < len(s.borders) && z > s.borders[q]+1e-13 {
			return 1, i + 1
		}
	}
	_, lambda := r.accelerations(r.constraints(r.contact, r.sliding == 0))
	k := 0
	for i, s := range r.stops {
		gap, rate := r.opening(s)
		if r.contact[i] {
			if !(lambda[k] >= -1e-10) {
				return 2, i
			}
			k++
		} else if gap < 0 && rate < 0 {
			return 3, i
		}
	}
	if r.sliding == 0 {
		if !(math.Abs(lambda[k]) <= r.hold+1e-10) {
			return 4, 0
		}
	} else if r.sliding*r.v[r.brake] < 0 {
		return 4, 0
	}
	return 0, 0
}

// solveUntil solves up to a time, s.
func (r *springRow) solveUntil(end float64) {
	const h = 1e-4
	for tries := 0; r.t < end-1e-13; tries++ {
		if tries > 1e5 {
			r.gaveUp = true
			return
		}
		t, x, v := r.t, append([]float64(nil), r.x...), append([]float64(nil), r.v...)
		back := func() { r.t = t; copy(r.x, x); copy(r.v, v) }
		length := min(h, end-r.t)
		r.step(length)
		what, which := r.changed()
		if what == 0 {
			continue
		}
		low, high := 0.0, length
		for high-low > 1e-15 && low < (low+high)/2 && (low+high)/2 < high {
			mid := (low + high) / 2
			back()
			r.step(mid)
			if c, i := r.changed(); c == 0 {
				low = mid
			} else {
				high, what, which = mid, c, i
			}
		}
		back()
		r.step(high)
		switch what {
		case 1:
			if which > 0 {
				r.region[which-1]++
			} else {
				r.region[-which-1]--
			}
		case 3:
			r.applyImpact(which)
			r.chooseModes()
		case 4:
			if r.sliding != 0 {
				r.v[r.brake] = 0
			}
			r.chooseModes()
		default:
			r.chooseModes()
		}
	}
}
