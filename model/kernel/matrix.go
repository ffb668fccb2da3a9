package kernel

import (
	"math/bits"

	"gonum.org/v1/gonum/mat"
)

// product is a·b for row-major a (r×k) and b (k×c), before the run only.
func product(a, b []float64, r, k, c int) []float64 {
	out := make([]float64, r*c)
	if r == 0 || k == 0 || c == 0 {
		return out
	}
	mat.NewDense(r, c, out).Mul(mat.NewDense(r, k, a), mat.NewDense(k, c, b))
	return out
}

func sum(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		out[i] = a[i] + b[i]
	}
	return out
}

func scale(a []float64, f float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		out[i] = f * a[i]
	}
	return out
}

func negate(a []float64) []float64 { return scale(a, -1) }

func identity(n int) []float64 {
	out := make([]float64, n*n)
	for i := range n {
		out[i*n+i] = 1
	}
	return out
}

func popcount(kappa uint64) int { return bits.OnesCount64(kappa) }

// mul sets dst = a·x, a row-major len(dst)×len(x). dst and x must not overlap.
func mul(dst, a, x []float64) {
	n := len(x)
	for i := range dst {
		row := a[i*n : i*n+n : i*n+n]
		s := 0.0
		for j, v := range row {
			s += v * x[j]
		}
		dst[i] = s
	}
}

// mulAdd adds a·x to dst.
func mulAdd(dst, a, x []float64) {
	n := len(x)
	for i := range dst {
		row := a[i*n : i*n+n : i*n+n]
		s := 0.0
		for j, v := range row {
			s += v * x[j]
		}
		dst[i] += s
	}
}

// dotRow is row i of a (row-major, len(x) columns) times x.
func dotRow(a []float64, i int, x []float64) float64 {
	n := len(x)
	s := 0.0
	for j, v := range a[i*n : i*n+n : i*n+n] {
		s += v * x[j]
	}
	return s
}

// axpy adds a·x to dst.
func axpy(dst []float64, a float64, x []float64) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += a * x[i]
	}
}

// scaleIn multiplies dst by a.
func scaleIn(dst []float64, a float64) {
	for i := range dst {
		dst[i] *= a
	}
}
