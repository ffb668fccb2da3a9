package kernel

import (
	"math"

	"lockstep/model"
)

// segment is the row of a table that holds at time t: T[i] <= t < T[i+1]; -1
// before the first.
func segment(s *model.Source, t float64) int {
	lo, hi := 0, len(s.T) // number of rows with T <= t
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s.T[mid] <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// line is the straight piece of s around time t: value at t and slope per s.
func line(s *model.Source, t float64) (v, slope float64) {
	i := segment(s, t)
	switch {
	case i < 0:
		return s.V[0], 0
	case i >= len(s.T)-1:
		return s.V[len(s.V)-1], 0
	}
	slope = (s.V[i+1] - s.V[i]) / (s.T[i+1] - s.T[i])
	return s.V[i] + slope*(t-s.T[i]), slope
}

func valueAt(s *model.Source, t float64) float64 {
	v, _ := line(s, t)
	return v
}

// nextCorner is the first corner of any source after time t.
func (k *Kernel) nextCorner(t float64) float64 {
	next := math.Inf(1)
	for j := range k.t.Signals {
		sig := &k.t.Signals[j]
		if sig.Input >= 0 {
			continue
		}
		if i := segment(&sig.Source, t+cornerGap) + 1; i < len(sig.Source.T) {
			next = min(next, sig.Source.T[i])
		}
	}
	return next
}

// cornerGap is the time below which two instants are one, s.
const cornerGap = 1e-12

// sources sets w over the piece that begins at time t and lasts length:
// commands held, tables as the straight line they are around the middle of the
// piece (exact, since pieces end at corners), the torque of slipping elements
// from the clipped capacity at its two ends and its middle.
func (k *Kernel) sources(t, length float64) {
	k.length = length
	m := k.t.M
	for j := range k.t.Signals {
		sig := &k.t.Signals[j]
		if sig.Input >= 0 {
			k.w0[j], k.w1[j], k.w2[j] = k.in[sig.Input], 0, 0
			continue
		}
		v, slope := line(&sig.Source, t+length/2)
		k.w0[j], k.w1[j], k.w2[j] = v-slope*length/2, slope*length, 0
	}
	for i := range k.t.Friction {
		f := &k.t.Friction[i]
		v, slope := k.w0[f.Signal], k.w1[f.Signal]
		a := f.Gain * max(0, v-f.Offset)
		b := f.Gain * max(0, v+slope/2-f.Offset)
		c := f.Gain * max(0, v+slope-f.Offset)
		k.cap0[i], k.cap1[i] = a, c
		k.capC[3*i], k.capC[3*i+1], k.capC[3*i+2] = a, -3*a+4*b-c, 2*a-4*b+2*c
		dir := 0.0
		if k.mode[i] == Forward || k.mode[i] == Backward {
			dir = float64(k.mode[i])
		}
		k.w0[m+i], k.w1[m+i], k.w2[m+i] = dir*k.capC[3*i], dir*k.capC[3*i+1], dir*k.capC[3*i+2]
	}
}

// capMiddle is the kinetic capacity in the middle of the piece: an element is
// active in a piece when it is positive there.
func (k *Kernel) capMiddle(i int) float64 {
	return k.capC[3*i] + k.capC[3*i+1]/2 + k.capC[3*i+2]/4
}

// instant sets w and capNow at place theta of the piece.
func (k *Kernel) instant(theta float64) {
	for j := range k.w {
		k.w[j] = k.w0[j] + theta*(k.w1[j]+theta*k.w2[j])
	}
	for i := range k.capNow {
		k.capNow[i] = max(0, k.capC[3*i]+theta*(k.capC[3*i+1]+theta*k.capC[3*i+2]))
	}
}

// expand sets the Taylor coefficients of the state over the piece, from x:
// x(theta) = sum c_j·theta^j, c_(j+1) = length/(j+1)·(A·c_j + B·w_j).
// In the held form it is the papers' straight line (000 eq. 14).
func (k *Kernel) expand(x []float64) {
	n, m := k.t.N, &k.t.Modes[k.kappa]
	copy(k.c[:n], x)
	if k.t.Form == Held {
		k.whole(k.c[n:2*n], x)
		part := k.length / k.t.Delta
		for i := range n {
			k.c[n+i] = part * (k.c[n+i] - x[i])
		}
		return
	}
	for j := range k.t.Degree {
		next := k.c[(j+1)*n : (j+2)*n]
		mul(next, m.A, k.c[j*n:(j+1)*n])
		switch j {
		case 0:
			mulAdd(next, m.B, k.w0)
		case 1:
			mulAdd(next, m.B, k.w1)
		case 2:
			mulAdd(next, m.B, k.w2)
		}
		f := k.length / float64(j+1)
		for i := range next {
			next[i] *= f
		}
	}
}

// whole sets dst to the state after one piece of length delta, from x.
func (k *Kernel) whole(dst, x []float64) {
	m := &k.t.Modes[k.kappa]
	mul(dst, m.Phi, x)
	mulAdd(dst, m.G0, k.w0)
	mulAdd(dst, m.G1, k.w1)
	mulAdd(dst, m.G2, k.w2)
}

// horner sets dst to the state at theta of the expanded piece.
func (k *Kernel) horner(dst []float64, theta float64) {
	n := k.t.N
	for i := range dst {
		s := k.c[k.t.Degree*n+i]
		for j := k.t.Degree - 1; j >= 0; j-- {
			s = s*theta + k.c[j*n+i]
		}
		dst[i] = s
	}
}
