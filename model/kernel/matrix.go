package kernel

import "gonum.org/v1/gonum/mat"

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

// unsign takes the sign from what is zero in the matrices: it makes no difference to a sum,
// and no compiler writes -0 down as a constant.
func (t *Tables) unsign() {
	lists := [][]float64{t.Gram, t.WA, t.WB}
	for _, m := range append([]Mode{t.Open}, t.Modes...) {
		lists = append(lists, m.Phi, m.G0, m.G1, m.G2, m.A, m.B, m.T, m.U, m.P)
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

func negate(a []float64) []float64 { return scale(a, -1) }

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
		row := a[i*n : i*n+n : i*n+n]
		s := 0.0
		for j, v := range row {
			s += v * x[j]
		}
		dst[i] = s
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
		row := a[i*n : i*n+n : i*n+n]
		s := 0.0
		for j, v := range row {
			s += v * x[j]
		}
		dst[i] += s
	}
}

// fourRows multiplies the first four rows of a with x; together they keep four
// sums going where one would wait for its own last addition.
//
//go:nosplit
func fourRows(a, x []float64) (s0, s1, s2, s3 float64) {
	n := len(x)
	a0, a1, a2, a3 := a[:n], a[n:2*n], a[2*n:3*n], a[3*n:4*n]
	a0, a1, a2, a3 = a0[:len(x)], a1[:len(x)], a2[:len(x)], a3[:len(x)]
	for j, v := range x {
		s0 += a0[j] * v
		s1 += a1[j] * v
		s2 += a2[j] * v
		s3 += a3[j] * v
	}
	return s0, s1, s2, s3
}

// Sparse holds the entries of a matrix that are not zero, row by row.
type Sparse struct {
	End []int // per row: index behind its last entry
	Col []int
	Val []float64
}

// sparseOf leaves out the zeros of a, row-major with n columns.
func sparseOf(a []float64, rows, n int) (s Sparse) {
	for i := range rows {
		s.add(a[i*n : (i+1)*n])
	}
	return s
}

// add appends a row.
func (s *Sparse) add(row []float64) {
	for j, v := range row {
		if v != 0 {
			s.Col, s.Val = append(s.Col, j), append(s.Val, v)
		}
	}
	s.End = append(s.End, len(s.Col))
}

// begin is the index of the first entry of row i. What is called at the end of the tick's
// chains, here and below, shares nothing; the race detector's calls would not fit the stack.
//
//go:nosplit
//go:norace
func (s *Sparse) begin(i int) int {
	if i == 0 {
		return 0
	}
	return s.End[i-1]
}

// dot is row i times x.
//
//go:nosplit
//go:norace
func (s *Sparse) dot(i int, x []float64) float64 { return s.dotFrom(0, i, x) }

// dotFrom is sum and row i times x, added up from the left.
//
//go:nosplit
//go:norace
func (s *Sparse) dotFrom(sum float64, i int, x []float64) float64 {
	for p := s.begin(i); p < s.End[i]; p++ {
		sum += s.Val[p] * x[s.Col[p]]
	}
	return sum
}

// axpy adds a times row i to dst.
//
//go:nosplit
func (s *Sparse) axpy(dst []float64, a float64, i int) {
	for p := s.begin(i); p < s.End[i]; p++ {
		dst[s.Col[p]] += a * s.Val[p]
	}
}

// mul sets dst = s·x.
//
//go:nosplit
func (s *Sparse) mul(dst, x []float64) {
	p := 0
	for i, end := range s.End {
		sum := 0.0
		for ; p < end; p++ {
			sum += s.Val[p] * x[s.Col[p]]
		}
		dst[i] = sum
	}
}

// mulAdd adds s·x to dst.
//
//go:nosplit
func (s *Sparse) mulAdd(dst, x []float64) {
	p := 0
	for i, end := range s.End {
		sum := dst[i]
		for ; p < end; p++ {
			sum += s.Val[p] * x[s.Col[p]]
		}
		dst[i] = sum
	}
}

// zero reports whether all of x is zero.
//
//go:nosplit
func zero(x []float64) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

// dotRow is row i of a (row-major, len(x) columns) times x.
//
//go:nosplit
func dotRow(a []float64, i int, x []float64) float64 {
	n := len(x)
	s := 0.0
	for j, v := range a[i*n : i*n+n : i*n+n] {
		s += v * x[j]
	}
	return s
}

// axpy adds a·x to dst.
//
//go:nosplit
func axpy(dst []float64, a float64, x []float64) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += a * x[i]
	}
}

// scaleIn multiplies dst by a.
//
//go:nosplit
func scaleIn(dst []float64, a float64) {
	for i := range dst {
		dst[i] *= a
	}
}

// stream holds the same entries in the order in which they are multiplied without
// waiting for each other: the first of each row, the second of each, and so on.
type stream struct {
	row, col []int32
	val      []float64
}

func streamOf(s *Sparse) (out stream) {
	for nth := 0; len(out.val) < len(s.Val); nth++ {
		for i := range s.End {
			if p := s.begin(i) + nth; p < s.End[i] {
				out.row, out.col, out.val = append(out.row, int32(i)), append(out.col, int32(s.Col[p])), append(out.val, s.Val[p])
			}
		}
	}
	return out
}

// mulAdd adds the product with x to dst. They must not overlap: generated code adds up row by row.
//
//lockstep:noalias
//go:nosplit
func (s *stream) mulAdd(dst, x []float64) {
	row, col := s.row[:len(s.val)], s.col[:len(s.val)]
	for p, v := range s.val {
		dst[row[p]] += v * x[col[p]]
	}
}
