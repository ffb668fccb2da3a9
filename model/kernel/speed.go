package kernel

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// measureSpeed sets the largest eigenvalue of a plant that is stepped sparse, with the steepest
// slopes, and the steepness of its laws:
//
//	steepness⁴ = largest eigenvalue of R·(|A| + D·R)³·D
//
// R holds how much the laws change with the states, D how much they drive the states. The product is
// a bound on the fourth derivative of the laws, from which the error of a substep follows: see
// sparseLawError. stored is the energy of the states.
func (t *Tables) measureSpeed(stored []float64) {
	size, scaled := stateScales(stored), make([]float64, t.N)
	t.Radius = largestEigenvalue(t.N, func(dst, x []float64) {
		for i, v := range x {
			scaled[i] = v / size[i]
		}
		t.applyRates(dst, scaled, keepSign)
		for i := range dst {
			dst[i] *= size[i]
		}
	})
	count := t.M - t.FirstLaw
	if count == 0 {
		return
	}
	acts, moved, law := make([]float64, t.N), make([]float64, t.N), make([]float64, count)
	t.Steepness = math.Sqrt(math.Sqrt(largestEigenvalue(count, func(dst, y []float64) {
		t.lawDrives(acts, y)
		for range 3 {
			t.applyRates(moved, acts, math.Abs)
			t.lawResponses(law, acts)
			t.lawDrives(acts, law)
			axpy(acts, 1, moved)
		}
		t.lawResponses(dst, acts)
	})))
	t.Sparse.SelfRate = make([]float64, count)
	unit, follows := make([]float64, count), make([]float64, count)
	for l := range unit {
		clear(unit)
		unit[l] = 1
		t.lawDrives(acts, unit)
		t.lawResponses(follows, acts)
		t.Sparse.SelfRate[l] = follows[l]
	}
}

// keepSign returns v.
func keepSign(v float64) float64 { return v }

// applyRates sets dst to A·x with the steepest slopes of every switch; sign maps each entry.
func (t *Tables) applyRates(dst, x []float64, sign func(float64) float64) {
	net := t.Sparse
	drive := make([]float64, t.M)
	for s := range t.Switches {
		sw, z := &t.Switches[s], 0.0
		for p := net.Levels.rowStart(s); p < net.Levels.End[s]; p++ {
			z += sign(net.Levels.Val[p]) * x[net.Levels.Col[p]]
		}
		for _, j := range sw.Signals {
			drive[j] += sign(t.steepestSlope(j)) * z
		}
	}

	for i := range dst {
		dst[i] = 0
		for p := net.A.rowStart(i); p < net.A.End[i]; p++ {
			dst[i] += sign(net.A.Val[p]) * x[net.A.Col[p]]
		}
		for p := net.B.rowStart(i); p < net.B.End[i]; p++ {
			dst[i] += sign(net.B.Val[p]) * drive[net.B.Col[p]]
		}
	}
}

// lawDrives sets dst, n, to how much laws of size y drive each state.
func (t *Tables) lawDrives(dst, y []float64) {
	net := t.Sparse
	clear(dst)
	for i := range dst {
		for p := net.B.rowStart(i); p < net.B.End[i]; p++ {
			if l := net.B.Col[p] - t.FirstLaw; l >= 0 {
				dst[i] += math.Abs(net.B.Val[p]) * y[l]
			}
		}
	}

	for f := range t.Friction {
		if l := t.Friction[f].Signal - t.FirstLaw; l >= 0 {
			for p := net.BcT.rowStart(f); p < net.BcT.End[f]; p++ {
				dst[net.BcT.Col[p]] += t.Friction[f].Gain * math.Abs(net.BcT.Val[p]) * y[l]
			}
		}
	}
}

// lawResponses sets dst, one per law, to how much each law changes with states of size x. The rows of
// a law include those of the laws that it reads.
func (t *Tables) lawResponses(dst, x []float64) {
	net, row := t.Sparse, 0
	for l := range dst {
		law := t.Signals[t.FirstLaw+l].Law
		dst[l] = 0
		for a := range law.Args {
			s := 0.0
			for p := net.ArgRows.rowStart(row); p < net.ArgRows.End[row]; p++ {
				s += math.Abs(net.ArgRows.Val[p]) * x[net.ArgRows.Col[p]]
			}

			dst[l] += law.Slopes[a] * s
			row++
		}
	}
}

// Sizes of the eigenvalue problems of a long plant.
const (
	smallEigen       = 160 // dimension up to which all eigenvalues are computed
	krylovDimensions = 80  // dimensions of the Krylov space that gives the largest eigenvalue otherwise
)

// krylovMargin covers the error of the largest eigenvalue of a Krylov space, which lies below the
// plant's.
const krylovMargin = 1.01

// largestEigenvalue returns the largest absolute eigenvalue of a linear map of n dimensions: from
// all columns where n is small, otherwise by Arnoldi's method (Saad, Numerical methods for large
// eigenvalue problems, algorithm 6.2).
func largestEigenvalue(n int, apply func(dst, x []float64)) float64 {
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
		_, f := math.Modf(float64(i+1) * math.Phi) // a vector without any symmetry of the plant
		basis[0][i] = f - 0.5
	}

	normalise(basis[0])
	h := mat.NewDense(krylovDimensions, krylovDimensions, nil)
	used := krylovDimensions
	for j := range krylovDimensions {
		w := make([]float64, n)
		apply(w, basis[j])
		for range 2 { // the second pass removes the rounding of the first
			for i, b := range basis {
				p := dotRow(b, 0, w)
				axpy(w, -p, b)
				h.Set(i, j, h.At(i, j)+p)
			}
		}

		size := normalise(w)
		if j+1 == krylovDimensions {
			break
		}
		if !(size > 1e-12*mat.Norm(h, 2)) {
			used = j + 1
			break
		}

		h.Set(j+1, j, size)
		basis = append(basis, w)
	}

	return krylovMargin * spectralRadius(h.Slice(0, used, 0, used))
}

// normalise scales x to length 1 and returns its previous length.
func normalise(x []float64) float64 {
	size := math.Sqrt(dotRow(x, 0, x))
	if size > 0 {
		scaleIn(x, 1/size)
	}
	return size
}

// radius returns the largest absolute eigenvalue of a, n×n, rad/s.
func radius(a []float64, n int) float64 {
	return spectralRadius(mat.NewDense(n, n, slices.Clone(a)))
}

// spectralRadius returns the largest absolute eigenvalue of a.
func spectralRadius(a mat.Matrix) (r float64) {
	var eig mat.Eigen
	if !eig.Factorize(a, mat.EigenNone) {
		refuse("the eigenvalues cannot be computed")
	}
	for _, v := range eig.Values(nil) {
		r = max(r, cmplx.Abs(v))
	}
	return r
}

// gains returns how much each law changes with each state, laws×n, and how much it drives each
// state, n×laws.
func (t *Tables) gains() (rows, acts []float64) {
	count, n := t.M-t.FirstLaw, t.N
	rows, acts = make([]float64, count*n), make([]float64, n*count)
	for j := range count {
		law, row := t.Signals[t.FirstLaw+j].Law, rows[j*n:(j+1)*n]
		for a := range law.Args {
			arg := &law.Args[a]
			for i, r := range arg.Row {
				row[i] += law.Slopes[a] * math.Abs(r)
			}
		}
	}

	for l := range count {
		for i := range n {
			acts[i*count+l] = math.Abs(t.Open.B[i*(t.M+t.Mc)+t.FirstLaw+l])
			for f := range t.Friction {
				if t.Friction[f].Signal == t.FirstLaw+l {
					acts[i*count+l] += t.Friction[f].Gain * math.Abs(t.Bc[i*t.Mc+f])
				}
			}
		}
	}

	return rows, acts
}

// steepness returns how fast the laws can follow the motion they cause, rad/s. It is the larger of
// the gain from law to law through the plant and, for laws that act through a deflection, its
// square root.
func (t *Tables) steepness() float64 {
	count, n := t.M-t.FirstLaw, t.N
	if count == 0 {
		return 0
	}
	rows, acts := t.gains()
	direct := radius(product(rows, acts, count, n, count), count)
	moves := make([]float64, n*n)
	for i, v := range t.withClasses(t.Open.A, t.steepest) {
		moves[i] = math.Abs(v)
	}
	indirect := radius(product(rows, product(moves, acts, n, n, count), count, n, count), count)
	return max(direct, math.Sqrt(indirect))
}

// decay returns how fast laws and dampers make the active part decay, 1/s.
func (t *Tables) decay(active []int) float64 {
	rows, acts := t.gains()
	count, n, own := t.M-t.FirstLaw, t.N, len(active)
	rates := make([]float64, own*own)
	for q, i := range active {
		for c, j := range active {
			if i == j {
				rates[q*own+c] = math.Abs(t.Open.A[i*n+j])
			}
			for l := range count {
				rates[q*own+c] += acts[i*count+l] * rows[l*n+j]
			}
		}
	}

	return radius(rates, own)
}
