package kernel

import (
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// product returns a·b for row-major a (r×k) and b (k×c); before the run only.
func product(a, b []float64, r, k, c int) []float64 {
	out := make([]float64, r*c)
	if r == 0 || k == 0 || c == 0 {
		return out
	}
	mat.NewDense(r, c, out).Mul(mat.NewDense(r, k, a), mat.NewDense(k, c, b))
	return out
}

// sum returns a + b.
func sum(a, b []float64) []float64 { return floats.AddTo(make([]float64, len(a)), a, b) }

// scale returns f·a.
func scale(a []float64, f float64) []float64 { return floats.ScaleTo(make([]float64, len(a)), f, a) }

// clearNegativeZeros replaces -0 by 0 in the matrices. No sum changes, and no compiler writes -0 as
// a constant.
func (t *Tables) clearNegativeZeros() {
	lists := [][]float64{t.Gram, t.WA, t.WB}
	for _, m := range append([]Mode{t.Open}, t.Modes...) {
		lists = append(lists, m.Phi, m.G0, m.G1, m.G2, m.A, m.B, m.T, m.U, m.P, m.R)
	}
	if p := t.Partition; p != nil {
		lists = append(lists, p.Phi, p.Omega0, p.Omega1)
	}
	for _, list := range lists {
		for i, v := range list {
			if v == 0 {
				list[i] = 0
			}
		}
	}
}

// negate returns -a.
func negate(a []float64) []float64 { return scale(a, -1) }

// identity returns the unit matrix of size n.
func identity(n int) []float64 {
	out := make([]float64, n*n)
	for i := range n {
		out[i*n+i] = 1
	}
	return out
}

// mul sets dst = a·x, a row-major len(dst)×len(x). dst and x must not overlap.
//
//lockstep:noalias
//go:nosplit
func mul(dst, a, x []float64) {
	n, four := len(x), len(dst)&^3
	for i := 0; i < four; i += 4 {
		s0, s1, s2, s3 := fourRows(a[i*n:(i+4)*n], x)
		d := dst[i : i+4]
		d[0], d[1], d[2], d[3] = s0, s1, s2, s3
	}

	for i := four; i < len(dst); i++ {
		dst[i] = dotRow(a, i, x)
	}
}

// mulPlus sets dst = a·x + b. dst must not overlap the others.
//
//lockstep:noalias
//go:nosplit
func mulPlus(dst, a, x, b []float64) {
	n, four := len(x), len(dst)&^3
	for i := 0; i < four; i += 4 {
		s0, s1, s2, s3 := fourRows(a[i*n:(i+4)*n], x)
		d, e := dst[i:i+4], b[i:i+4]
		d[0], d[1], d[2], d[3] = s0+e[0], s1+e[1], s2+e[2], s3+e[3]
	}

	for i := four; i < len(dst); i++ {
		dst[i] = dotRow(a, i, x) + b[i]
	}
}

// mulAdd adds a·x to dst.
//
//go:nosplit
func mulAdd(dst, a, x []float64) {
	n, four := len(x), len(dst)&^3
	for i := 0; i < four; i += 4 {
		s0, s1, s2, s3 := fourRows(a[i*n:(i+4)*n], x)
		d := dst[i : i+4]
		d[0] += s0
		d[1] += s1
		d[2] += s2
		d[3] += s3
	}

	for i := four; i < len(dst); i++ {
		dst[i] += dotRow(a, i, x)
	}
}

// fourRows multiplies the first four rows of a by x. Four sums grow side by side, where one would
// wait for its own last addition.
//
//go:nosplit
func fourRows(a, x []float64) (s0, s1, s2, s3 float64) {
	n := len(x)
	a0, a1, a2, a3 := a[:n], a[n:2*n], a[2*n:3*n], a[3*n:4*n]
	a0, a1, a2, a3 = a0[:len(x)], a1[:len(x)], a2[:len(x)], a3[:len(x)]
	for j, v := range x {
		s0 += float64(a0[j] * v)
		s1 += float64(a1[j] * v)
		s2 += float64(a2[j] * v)
		s3 += float64(a3[j] * v)
	}

	return s0, s1, s2, s3
}

// SparseMatrix holds the entries of a matrix that are not zero, row by row.
type SparseMatrix struct {
	End []int // per row: index after its last entry
	Col []int // column of each entry
	Val []float64
}

// sparseOf returns the non-zero entries of a, row-major with n columns.
func sparseOf(a []float64, rows, n int) (s SparseMatrix) {
	for i := range rows {
		s.addRow(a[i*n : (i+1)*n])
	}
	return s
}

// addRow appends a row.
func (s *SparseMatrix) addRow(row []float64) {
	for j, v := range row {
		if v != 0 {
			s.Col, s.Val = append(s.Col, j), append(s.Val, v)
		}
	}

	s.End = append(s.End, len(s.Col))
}

// transposed returns the transpose of s, which has the given number of columns.
func (s *SparseMatrix) transposed(columns int) *SparseMatrix {
	entries := make([]SparseMatrix, columns) // of each column, as a row
	for i := range s.End {
		for p, end := s.rowStart(i), s.End[i]; p < end; p++ {
			c := &entries[s.Col[p]]
			c.Col, c.Val = append(c.Col, i), append(c.Val, s.Val[p])
		}
	}
	out := new(SparseMatrix)
	for _, c := range entries {
		out.Col, out.Val = append(out.Col, c.Col...), append(out.Val, c.Val...)
		out.End = append(out.End, len(out.Col))
	}

	return out
}

// rowStart returns the index of the first entry of row i. This method and the two below end the
// longest call chains of the tick. They share no memory, and the race detector's calls would not
// fit the stack.
//
//go:nosplit
//go:norace
func (s *SparseMatrix) rowStart(i int) int {
	if i == 0 {
		return 0
	}
	return s.End[i-1]
}

// dot returns row i times x.
//
//go:nosplit
//go:norace
func (s *SparseMatrix) dot(i int, x []float64) float64 { return s.dotFrom(0, i, x) }

// dotFrom returns sum plus row i times x, added from the left.
//
//go:nosplit
//go:norace
func (s *SparseMatrix) dotFrom(sum float64, i int, x []float64) float64 {
	for p, end := s.rowStart(i), s.End[i]; p < end; p++ {
		sum += float64(s.Val[p] * x[s.Col[p]])
	}
	return sum
}

// axpy adds a times row i to dst.
//
//go:nosplit
func (s *SparseMatrix) axpy(dst []float64, a float64, i int) {
	for p, end := s.rowStart(i), s.End[i]; p < end; p++ {
		dst[s.Col[p]] += float64(a * s.Val[p])
	}
}

// mul sets dst = s·x.
//
//go:nosplit
func (s *SparseMatrix) mul(dst, x []float64) {
	p := 0
	for i, end := range s.End {
		sum := 0.0
		for ; p < end; p++ {
			sum += float64(s.Val[p] * x[s.Col[p]])
		}
		dst[i] = sum
	}
}

// mulAdd adds s·x to dst.
//
//go:nosplit
func (s *SparseMatrix) mulAdd(dst, x []float64) {
	p := 0
	for i, end := range s.End {
		if p == end {
			continue
		}
		sum := dst[i]
		for ; p < end; p++ {
			sum += float64(s.Val[p] * x[s.Col[p]])
		}
		dst[i] = sum
	}
}

// isZero reports whether all of x is zero.
//
//go:nosplit
func isZero(x []float64) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}

	return true
}

// dotRow returns row i of a (row-major, len(x) columns) times x.
//
//go:nosplit
func dotRow(a []float64, i int, x []float64) float64 {
	n := len(x)
	s := 0.0
	for j, v := range a[i*n : i*n+n : i*n+n] {
		s += float64(v * x[j])
	}
	return s
}

// axpy adds a·x to dst.
//
//go:nosplit
func axpy(dst []float64, a float64, x []float64) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += float64(a * x[i])
	}
}

// scaleIn multiplies dst by a.
//
//go:nosplit
func scaleIn(dst []float64, a float64) {
	for i := range dst {
		dst[i] = float64(dst[i] * a)
	}
}

// anyTrue reports whether an element of the list is true.
//
//go:nosplit
func anyTrue(list []bool) bool {
	any := false
	for _, v := range list {
		any = any || v
	}
	return any
}

// stream holds the entries of a matrix in an order in which products need not wait for each other:
// the first of each row, then the second of each, and so on.
type stream struct {
	row, col []uint32 // not signed: extending a sign takes an instruction for each index
	val      []float64
}

// streamOf returns the entries of s as a stream.
func streamOf(s *SparseMatrix) (out stream) {
	for nth := 0; len(out.val) < len(s.Val); nth++ {
		for i := range s.End {
			if p := s.rowStart(i) + nth; p < s.End[i] {
				out.row, out.col, out.val = append(out.row, uint32(i)), append(out.col, uint32(s.Col[p])), append(out.val, s.Val[p])
			}
		}
	}

	return out
}

// mulAdd adds the product with x to dst. dst and x must not overlap: generated code adds up row by
// row.
//
//lockstep:noalias
//go:nosplit
func (s *stream) mulAdd(dst, x []float64) {
	row, col := s.row[:len(s.val)], s.col[:len(s.val)]
	for p, v := range s.val {
		dst[row[p]] += float64(v * x[col[p]])
	}
}
