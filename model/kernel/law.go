package kernel

import (
	"math"

	"lockstep/model"
)

// coupling bounds the iterations that bring the laws of a piece in line with the
// motion they cause. Pieces are so short that each gains about a digit.
const coupling = 12

// settledLaw is the change of a law, as part of its largest value, that is none.
const settledLaw = 1e-13

// looseLaw is the change in the last round from which on a piece is not what its laws say.
const looseLaw = 1e-5

// torqued sets tau for state x, that at theta of the piece, where a law reads it, from
// w and capNow.
//
//go:nosplit
func (k *Kernel) torqued(x []float64, theta float64) {
	switch {
	case !k.t.ReadsTau:
	case k.t.Net != nil:
		k.torquesAt(theta)
	default:
		k.calls.torques(k, x)
	}
}

// laws sets the law signals of v for state x; the signals before them are set.
//
//go:nosplit
func (k *Kernel) laws(v, x []float64) {
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		v[j] = k.run(j-k.t.FirstLaw, x, v)
	}
}

// couple brings the laws over the piece in line with the motion they cause. Each
// law signal is the parabola through its values at the start, the middle and the
// end of the piece, and the state follows exactly from these: collocation at the
// three Lobatto points, of order four where the laws are smooth. It leaves the
// piece expanded.
//
//go:nosplit
func (k *Kernel) couple() {
	k.calls.expand(k, k.x)
	for range coupling {
		k.change = 0
		middle, end := k.follow(0, 0.5), k.follow(1, 1)
		for j := k.t.FirstLaw; j < k.t.M; j++ {
			q := j - k.t.FirstLaw
			k.w1[j], k.w2[j] = parabola(k.w0[j], k.lawAt[2*q], k.lawAt[2*q+1])
		}
		for i := range k.mode {
			k.capacity(i)
			k.slide(i)
		}
		k.calls.expand(k, k.x)
		if middle && end {
			return
		}
	}
}

// halvings are how often a piece is halved in which laws do not settle.
const halvings = 5

// halve takes half of a piece, time and again, until its laws settle; and counts it if they
// do not.
//
//go:nosplit
func (k *Kernel) halve(local float64) {
	for range halvings {
		if k.change <= looseLaw || !(k.length/2 > k.gap) {
			break
		}
		for j := k.t.FirstLaw; j < k.t.M; j++ { // where they were to go is no guess
			k.w1[j], k.w2[j] = 0, 0
		}
		k.trim(local, k.length/2)
		k.calls.couple(k)
		if k.t.Net != nil {
			k.calls.agree(k, false)
		}
	}
	if !(k.change <= looseLaw) {
		k.unsettled++
	}
}

// follow sets the laws of point p of couple, at theta of the piece, from the motion
// as it is expanded, and reports whether they are settled.
//
//go:nosplit
func (k *Kernel) follow(p int, theta float64) bool {
	k.horner(k.x1, theta)
	k.instant(theta)
	k.torqued(k.x1, theta)
	k.laws(k.w[:k.t.M], k.x1)
	settled := true
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		q := j - k.t.FirstLaw
		k.size[q] = max(k.size[q], math.Abs(k.w[j]))
		if step := math.Abs(k.w[j] - k.lawAt[2*q+p]); !(step <= settledLaw*k.size[q]) {
			settled, k.change = false, max(k.change, step/k.size[q])
		}
		k.lawAt[2*q+p] = k.w[j]
	}
	return settled
}

// parabola gives the coefficients of a + w1·theta + w2·theta² through a, b and c
// at 0, 1/2 and 1; they are exactly 0 for a constant.
//
//go:nosplit
func parabola(a, b, c float64) (w1, w2 float64) {
	w2 = 2*(a-b) + 2*(c-b)
	return c - a - w2, w2
}

// program is a law or a guard; row is that of its first argument in reads.
type program struct {
	*model.Program
	row  int
	bent bool // an argument reads an affine signal
}

// guard is the program of guard g: they follow the laws.
//
//go:nosplit
func (k *Kernel) guard(g int) int { return k.t.M - k.t.FirstLaw + g }

// run is the value of program i in state x with the signals v and the torques
// tau, where torqued has set them.
//
//go:nosplit
func (k *Kernel) run(i int, x, v []float64) float64 {
	p := &k.programs[i]
	for a := range p.Args {
		k.args[a] = k.argument(p, a, x, v)
	}
	return k.operate(p)
}

// argument is the value of argument a of program p.
//
//go:nosplit
//go:norace
func (k *Kernel) argument(p *program, a int, x, v []float64) float64 {
	f := &p.Args[a]
	s := k.reads.dotFrom(f.Const, p.row+a, x)
	for i, j := range f.Signal {
		s += f.Coef[i] * v[j]
	}
	s = k.readsTau.dotFrom(s, p.row+a, k.tau)
	if p.bent {
		s += k.sloped(f, x)
	}
	return s
}

// operate is the value of program p on the arguments in args.
//
//go:nosplit
func (k *Kernel) operate(p *program) float64 {
	s, top := &k.stack, -1
	for _, op := range p.Ops {
		switch op.Code {
		case model.Push:
			top++
			s[top] = op.Value
		case model.Arg:
			top++
			s[top] = k.args[op.Index]
		case model.Side:
			top++
			s[top] = k.side[op.Index]
		case model.Look:
			s[top] = look(&p.Tables[op.Index], s[top])
		case model.Look2:
			top--
			s[top] = look2(&p.Tables[op.Index], s[top], s[top+1])
		case model.If:
			if top--; k.side[op.Index] < 0 {
				s[top] = s[top+1]
			}
		case model.Add, model.Sub, model.Mul, model.Div, model.Min, model.Max:
			top--
			s[top] = binary(op.Code, s[top], s[top+1])
		default:
			s[top] = unary(op.Code, s[top])
		}
	}
	return s[0]
}

//go:nosplit
func binary(c model.Code, a, b float64) float64 {
	switch c {
	case model.Add:
		return a + b
	case model.Sub:
		return a - b
	case model.Mul:
		return a * b
	case model.Min:
		return min(a, b)
	case model.Max:
		return max(a, b)
	}
	if b == 0 {
		return 0
	}
	return a / b
}

//go:nosplit
func unary(c model.Code, b float64) float64 {
	switch c {
	case model.Neg:
		return -b
	case model.Abs:
		return math.Abs(b)
	case model.Sign:
		if b == 0 {
			return 0
		}
		return math.Copysign(1, b)
	case model.Sqrt:
		return math.Sqrt(max(0, b))
	case model.Exp:
		return exp(b)
	case model.Atan:
		return atan(b)
	case model.Sin:
		return sin(b)
	}
	return cos(b)
}

// look is table t at v.
//
//go:nosplit
func look(t *model.Table, v float64) float64 {
	if len(t.X) == 1 {
		return t.Z[0]
	}
	i, f := interval(t.X, v, t.Extend)
	return t.Z[i] + f*(t.Z[i+1]-t.Z[i])
}

// look2 is table t at row v and column w; both have at least two points.
//
//go:nosplit
func look2(t *model.Table, v, w float64) float64 {
	i, f := interval(t.X, v, t.Extend)
	j, g := interval(t.Y, w, t.Extend)
	c := len(t.Y)
	a := t.Z[i*c+j] + g*(t.Z[i*c+j+1]-t.Z[i*c+j])
	b := t.Z[(i+1)*c+j] + g*(t.Z[(i+1)*c+j+1]-t.Z[(i+1)*c+j])
	return a + f*(b-a)
}

// interval is the index i of the interval of x in which v lies, and v's place in
// it, held inside [0, 1] unless the table is extended.
//
//go:nosplit
func interval(x []float64, v float64, extend bool) (int, float64) {
	lo := 0
	for n := len(x) - 1; n > 1; n -= n / 2 { // it is among the n from lo on, whatever v is
		if x[lo+n/2] <= v {
			lo += n / 2
		}
	}
	f := (v - x[lo]) / (x[lo+1] - x[lo])
	if !extend {
		f = min(max(f, 0), 1)
	}
	return lo, f
}
