package kernel

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mat"
)

// speeds sets the largest eigenvalue of a plant that is stepped sparse, at its
// steepest, and the steepness of its laws; stored is the energy of its states.
func (t *Tables) speeds(stored []float64) error {
	size, scaled := sizes(stored), make([]float64, t.N)
	var err error
	t.Radius, err = largest(t.N, func(dst, x []float64) {
		for i, v := range x {
			scaled[i] = v / size[i]
		}
		t.flow(dst, scaled, keepSign)
		for i := range dst {
			dst[i] *= size[i]
		}
	})
	if err != nil {
		return t.failed(err)
	}
	count := t.M - t.FirstLaw
	if count == 0 {
		return nil
	}
	acts, moved := make([]float64, t.N), make([]float64, t.N)
	direct, err := largest(count, func(dst, y []float64) {
		t.lawsAct(acts, y)
		t.lawsFollow(dst, acts)
	})
	if err != nil {
		return t.failed(err)
	}
	indirect, err := largest(count, func(dst, y []float64) {
		t.lawsAct(acts, y)
		t.flow(moved, acts, math.Abs)
		t.lawsFollow(dst, moved)
	})
	if err != nil {
		return t.failed(err)
	}
	t.Steepness = max(direct, math.Sqrt(indirect))
	t.Net.Own = make([]float64, count)
	unit, follows := make([]float64, count), make([]float64, count)
	for l := range unit {
		clear(unit)
		unit[l] = 1
		t.lawsAct(acts, unit)
		t.lawsFollow(follows, acts)
		t.Net.Own[l] = follows[l]
	}
	return nil
}

func keepSign(v float64) float64 { return v }

// flow sets dst to A·x with the steepest slopes of every switch, of entries as sign
// makes them.
func (t *Tables) flow(dst, x []float64, sign func(float64) float64) {
	net := t.Net
	drive := make([]float64, t.M)
	for s := range t.Switches {
		sw, z := &t.Switches[s], 0.0
		for p := net.Levels.begin(s); p < net.Levels.End[s]; p++ {
			z += sign(net.Levels.Val[p]) * x[net.Levels.Col[p]]
		}
		r := t.steepestRegion(sw)
		for _, j := range sw.Signals {
			drive[j] += sign(t.Signals[j].Affine.Slope[r]) * z
		}
	}
	for i := range dst {
		dst[i] = 0
		for p := net.A.begin(i); p < net.A.End[i]; p++ {
			dst[i] += sign(net.A.Val[p]) * x[net.A.Col[p]]
		}
		for p := net.B.begin(i); p < net.B.End[i]; p++ {
			dst[i] += sign(net.B.Val[p]) * drive[net.B.Col[p]]
		}
	}
}

// lawsAct sets dst, n, to how much laws of size y drive each state.
func (t *Tables) lawsAct(dst, y []float64) {
	net := t.Net
	clear(dst)
	for i := range dst {
		for p := net.B.begin(i); p < net.B.End[i]; p++ {
			if l := net.B.Col[p] - t.FirstLaw; l >= 0 {
				dst[i] += math.Abs(net.B.Val[p]) * y[l]
			}
		}
	}
	for f := range t.Friction {
		if l := t.Friction[f].Signal - t.FirstLaw; l >= 0 {
			for p := net.Push.begin(f); p < net.Push.End[f]; p++ {
				dst[net.Push.Col[p]] += t.Friction[f].Gain * math.Abs(net.Push.Val[p]) * y[l]
			}
		}
	}
}

// lawsFollow sets dst, one per law, to how much each law follows states of size x, through
// the laws that it reads, too.
func (t *Tables) lawsFollow(dst, x []float64) {
	net, row := t.Net, 0
	for l := range dst {
		law := t.Signals[t.FirstLaw+l].Law
		dst[l] = 0
		for a := range law.Args {
			s := 0.0
			for p := net.Reads.begin(row); p < net.Reads.End[row]; p++ {
				s += math.Abs(net.Reads.Val[p]) * x[net.Reads.Col[p]]
			}
			for i, j := range law.Args[a].Signal {
				if j >= t.FirstLaw && j < t.FirstLaw+l {
					s += math.Abs(law.Args[a].Coef[i]) * dst[j-t.FirstLaw]
				}
			}
			dst[l] += law.Slopes[a] * s
			row++
		}
	}
}

// Sizes of the eigenvalue problems of a long plant.
const (
	smallEigen = 160 // up to here all eigenvalues are computed
	krylov     = 80  // otherwise the largest one of so many dimensions
)

// krylovMargin covers what the largest eigenvalue of a Krylov space may be below that
// of the plant.
const krylovMargin = 1.01

// largest is the largest absolute eigenvalue of a linear map of n dimensions: from all
// of its columns where they are few, otherwise by Arnoldi's method (Saad, Numerical
// methods for large eigenvalue problems, algorithm 6.2).
func largest(n int, apply func(dst, x []float64)) (float64, error) {
	if n <= smallEigen {
		a, unit, column := make([]float64, n*n), make([]float64, n), make([]float64, n)
		for j := range n {
			clear(unit)
			unit[j] = 1
			apply(column, unit)
			for i, v := range column {
				a[i*n+j] = v
			}
		}
		return radius(a, n)
	}
	basis := [][]float64{make([]float64, n)}
	for i := range basis[0] {
		_, f := math.Modf(float64(i+1) * math.Phi) // no symmetry of a plant has it
		basis[0][i] = f - 0.5
	}
	normalise(basis[0])
	h := mat.NewDense(krylov, krylov, nil)
	used := krylov
	for j := range krylov {
		w := make([]float64, n)
		apply(w, basis[j])
		for range 2 { // the second takes out the rounding of the first
			for i, b := range basis {
				p := dotRow(b, 0, w)
				axpy(w, -p, b)
				h.Set(i, j, h.At(i, j)+p)
			}
		}
		size := normalise(w)
		if j+1 == krylov {
			break
		}
		if !(size > 1e-12*mat.Norm(h, 2)) {
			used = j + 1
			break
		}
		h.Set(j+1, j, size)
		basis = append(basis, w)
	}
	var eig mat.Eigen
	if !eig.Factorize(h.Slice(0, used, 0, used), mat.EigenNone) {
		return 0, errors.New("the eigenvalues cannot be computed")
	}
	r := 0.0
	for _, v := range eig.Values(nil) {
		r = max(r, cmplx.Abs(v))
	}
	return krylovMargin * r, nil
}

// normalise makes x one long, and returns how long it was.
func normalise(x []float64) float64 {
	size := math.Sqrt(dotRow(x, 0, x))
	if size > 0 {
		scaleIn(x, 1/size)
	}
	return size
}

// radius is the largest absolute eigenvalue of a, n×n, in rad/s.
func radius(a []float64, n int) (float64, error) {
	var eig mat.Eigen
	if !eig.Factorize(mat.NewDense(n, n, append([]float64(nil), a...)), mat.EigenNone) {
		return 0, fmt.Errorf("the eigenvalues cannot be computed")
	}
	r := 0.0
	for _, v := range eig.Values(nil) {
		r = max(r, cmplx.Abs(v))
	}
	return r, nil
}
