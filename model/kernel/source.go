package kernel

import (
	"math"
	"slices"

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

// crossing is s with a row more wherever it passes through v between two rows, so
// that max(0, s - v) is straight between rows as well.
func crossing(s model.Source, v float64) model.Source {
	var out model.Source
	for i := range s.T {
		if i > 0 && (s.V[i-1]-v)*(s.V[i]-v) < 0 && s.T[i] > s.T[i-1] {
			part := (v - s.V[i-1]) / (s.V[i] - s.V[i-1])
			out.T, out.V = append(out.T, s.T[i-1]+part*(s.T[i]-s.T[i-1])), append(out.V, v)
		}
		out.T, out.V = append(out.T, s.T[i]), append(out.V, s.V[i])
	}
	return out
}

// corners is the largest number of corners of all sources within the time that
// one tick can span.
func (t *Tables) corners() int {
	var at []float64
	for _, s := range t.Signals {
		if s.Input < 0 {
			at = append(at, s.Source.T...)
		}
	}
	slices.Sort(at)
	most, first := 0, 0
	for i := range at {
		for at[i]-at[first] > float64(t.periods())*float64(t.PeriodNs)*1e-9 {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
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
		k.slide(i)
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
// In the held form it is the papers' straight line (000 eq. 14) with w at the
// middle of what has passed of the piece.
func (k *Kernel) expand(x []float64) {
	n, m := k.t.N, &k.t.Modes[k.kappa]
	copy(k.c[:n], x)
	if k.t.Form == Held {
		part := k.length / k.t.Delta
		mul(k.c[n:2*n], m.Phi, x)
		mulAdd(k.c[n:2*n], m.G0, k.w0)
		mul(k.c[2*n:3*n], m.G1, k.w1)
		mul(k.c[3*n:], m.G2, k.w2)
		for i := range n {
			k.c[n+i] = part * (k.c[n+i] - x[i])
			k.c[2*n+i] *= part
			k.c[3*n+i] *= part
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

// rates sets xd to the derivative of the state under w: in the held form what a
// step makes of it, as its lock torques do.
func (k *Kernel) rates(w []float64) {
	m := &k.t.Modes[k.kappa]
	if k.t.Form == Projected {
		mul(k.xd, m.A, k.x)
		mulAdd(k.xd, m.B, w)
		return
	}
	mul(k.xd, m.Phi, k.x)
	mulAdd(k.xd, m.G0, w)
	for i, v := range k.x {
		k.xd[i] = (k.xd[i] - v) / k.t.Delta
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
