package kernel_test

import "math"

// lemke solves w = q + M·z, w >= 0, z >= 0, wᵀ·z = 0 by Lemke's method with
// lexicographic ratios (Cottle, Pang, Stone, The Linear Complementarity Problem,
// algorithms 4.4.5 and 4.9). It returns z and w.
func lemke(m [][]float64, q []float64) (z, w []float64, ok bool) {
	n := len(q)
	z, w = make([]float64, n), make([]float64, n)
	l := &tableau{n: n}
	worst := -1
	for i, v := range q {
		row := make([]float64, 2*n+2) // w, z, z0, right side
		row[i], row[2*n], row[2*n+1] = 1, -1, v
		for j := range n {
			row[n+j] = -m[i][j]
		}
		l.row, l.basis = append(l.row, row), append(l.basis, i)
	}
	for i, v := range q {
		if v < 0 && (worst < 0 || l.less(i, 1, worst, 1)) {
			worst = i
		}
	}
	if worst < 0 {
		return z, append(w[:0], q...), true
	}
	enter := 2 * n
	for leave := worst; ; {
		out := l.basis[leave]
		l.pivot(leave, enter)
		if out == 2*n {
			break
		}
		enter = (out + n) % (2 * n)
		if leave = l.ratio(enter); leave < 0 || l.pivots > 50*n {
			return nil, nil, false
		}
	}
	for i, b := range l.basis {
		if v := l.row[i][2*n+1]; b < n {
			w[b] = v
		} else {
			z[b-n] = v
		}
	}
	return z, w, true
}

type tableau struct {
	n      int
	row    [][]float64
	basis  []int
	pivots int
}

// less compares rows a/da and b/db lexicographically, right side first.
func (l *tableau) less(a int, da float64, b int, db float64) bool {
	ra, rb := l.row[a], l.row[b]
	for k := -1; k < l.n; k++ {
		j := k
		if k < 0 {
			j = 2*l.n + 1
		}
		va, vb := ra[j]/da, rb[j]/db
		if !(math.Abs(va-vb) <= 1e-13*(1+math.Abs(va))) {
			return va < vb
		}
	}
	return false
}

// ratio picks the row that leaves when column enter grows; z0 leaves if it can.
func (l *tableau) ratio(enter int) int {
	best := -1
	for i, row := range l.row {
		if row[enter] <= 1e-10 {
			continue
		}
		if best < 0 || l.less(i, row[enter], best, l.row[best][enter]) {
			best = i
		}
	}
	if best < 0 {
		return -1
	}
	end := 2*l.n + 1
	for i, row := range l.row {
		if l.basis[i] == 2*l.n && row[enter] > 1e-10 &&
			row[end]/row[enter] <= l.row[best][end]/l.row[best][enter]+1e-14 {
			return i
		}
	}
	return best
}

func (l *tableau) pivot(r, c int) {
	l.pivots++
	row := l.row[r]
	d := row[c]
	for j := range row {
		row[j] /= d
	}
	for i, other := range l.row {
		if f := other[c]; i != r && f != 0 {
			for j := range other {
				other[j] -= f * row[j]
			}
		}
	}
	l.basis[r] = c
}

// boxFriction finds torques tau_i <= high_i, and >= -high_i unless oneWay, with
// slip accelerations s' = a - S·tau, S symmetric and not negative, such that
//
//	tau_i = high_i where s'_i > 0, -high_i where s'_i < 0, in between where it is 0.
//
// s' is unique, tau need not be. Both come back in units in which S_ii is 1.
func boxFriction(s [][]float64, a, high []float64, oneWay []bool) (tau, slip []float64, ok bool) {
	k := len(a)
	var two []int
	scale := make([]float64, k)
	q := make([]float64, k)
	size := 0.0
	for i := range a {
		scale[i] = math.Sqrt(s[i][i])
		size = max(size, math.Abs(a[i])/scale[i], high[i]*scale[i])
		if !oneWay[i] {
			two = append(two, i)
		}
	}
	if size == 0 {
		return make([]float64, k), make([]float64, k), true
	}
	dim := k + len(two)
	m := make([][]float64, dim)
	for i := range m {
		m[i] = make([]float64, dim)
	}
	for i := range k {
		q[i] = a[i] / scale[i]
		for j := range k {
			m[i][j] = s[i][j] / (scale[i] * scale[j])
			q[i] -= m[i][j] * high[j] * scale[j]
		}
		q[i] /= size
	}
	for r, i := range two {
		m[i][k+r], m[k+r][i] = 1, -1
		q = append(q, 2*high[i]*scale[i]/size)
	}
	z, w, ok := lemke(m, q)
	if !ok {
		return nil, nil, false
	}
	tau, slip = make([]float64, k), make([]float64, k)
	for i := range k {
		tau[i] = high[i] - z[i]*size/scale[i]
		slip[i] = w[i]
	}
	for r, i := range two {
		slip[i] -= z[k+r]
	}
	return tau, slip, true
}
