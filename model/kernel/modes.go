package kernel

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"lockstep/model"
)

// buildModes projects and discretises the plant for every lock set, where they
// fit the budget of bytes; otherwise only the open one is kept, and the kernel
// factorises the others in place.
func (t *Tables) buildModes(sys *model.System, opt Options) error {
	for _, part := range [][]float64{sys.A, sys.B, sys.Bc, sys.W, sys.X0, sys.C, sys.D, sys.Dc} {
		for _, v := range part {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("kernel: plant %q: its matrices are not finite: an inertia is too small or a stiffness too large", t.Name)
			}
		}
	}
	if t.Combinations == uncounted && opt.Stepping == Dense {
		return fmt.Errorf("kernel: plant %q: its %d springs and dampers with regions make more combinations than can be counted", t.Name, len(t.Switches))
	}
	if t.steps(sys, opt) {
		stored := t.stored(sys.E)
		if err := t.buildNet(sys); err != nil {
			return err
		}
		if err := t.speeds(stored); err != nil {
			return err
		}
		return t.cut(sys)
	}
	t.Gram = product(t.W, t.Bc, t.Mc, t.N, t.Mc)
	t.project(&t.Open, sys, 0)
	t.WA = product(t.W, t.Open.A, t.Mc, t.N, t.N)
	t.WB = product(t.W, t.Open.B, t.Mc, t.N, t.M+t.Mc)
	if t.fits(opt.Memory) {
		t.Modes = make([]Mode, t.Combinations<<t.Mc)
	} else if t.Form == Held {
		return fmt.Errorf("kernel: plant %q: form %q needs every lock set precomputed; 2^%d of them in %d combinations of regions do not fit %d bytes",
			t.Name, Held, t.Mc, t.Combinations, opt.Memory)
	}
	bent := *sys
	for i := range t.Modes {
		if kappa := i & (1<<t.Mc - 1); kappa == 0 {
			bent.A = t.bent(sys.A, i>>t.Mc)
		}
		t.project(&t.Modes[i], &bent, uint64(i&(1<<t.Mc-1)))
	}
	if err := t.choosePieces(sys); err != nil {
		return err
	}
	if sys.Partition != nil {
		return t.split(sys)
	}
	if t.Form == Held {
		t.Degree = 3
		return t.hold(sys)
	}
	stored := t.stored(sys.E)
	for i := range t.Modes {
		if err := t.discretise(&t.Modes[i], stored); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether all lock sets and combinations fit the budget of bytes.
func (t *Tables) fits(budget int) bool {
	n, mw := t.N, t.M+t.Mc
	one := 8 * (3*n*n + 4*n*mw + t.Mc*(n+mw))
	return t.Mc < 31 && t.Combinations <= budget/(one<<t.Mc)
}

// choosePieces measures how fast the plant is, for its pieces.
func (t *Tables) choosePieces(sys *model.System) error {
	for _, c := range t.fastCombinations() {
		r, err := radius(t.bent(t.Open.A, c), t.N)
		if err != nil {
			return t.failed(err)
		}
		t.Radius = max(t.Radius, r)
	}
	for i := range t.Modes {
		r, err := radius(t.Modes[i].A, t.N)
		if err != nil {
			return t.failed(err)
		}
		t.Radius = max(t.Radius, r)
	}
	var err error
	if t.Steepness, err = t.steepness(); err != nil {
		return t.failed(err)
	}
	return t.cut(sys)
}

// cut fixes the longest piece: at most one radian of the fastest mode, and half of the
// time in which a law can follow the motion it causes; or the whole step, in two parts.
func (t *Tables) cut(sys *model.System) error {
	h := float64(t.PeriodNs) * 1e-9
	fastest := max(t.Radius, 2*t.Steepness)
	t.Split, t.Delta = 1, h
	for t.Form == Projected && sys.Partition == nil && fastest*t.Delta > 1 {
		t.Split *= 2
		t.Delta = h / float64(t.Split)
		if t.Split > maxSplit {
			fit := time.Duration(0.999 * maxSplit / fastest * 1e9)
			fit = fit.Truncate(max(1, fit/1000))
			who := culprit(sys.Paces, fastest)
			err := t.failed(&TooFastError{Rate: fastest, Element: who.Name, Period: time.Duration(t.PeriodNs), Fit: fit})
			if who.Place != "" {
				return &PlaceError{who.Place, err}
			}
			return err
		}
	}
	if sys.Partition != nil {
		t.Degree = cubic
		return nil
	}
	t.Degree = degree(t.Radius * t.Delta)
	return nil
}

// failed says of which plant err is.
func (t *Tables) failed(err error) error { return fmt.Errorf("kernel: plant %q: %w", t.Name, err) }

// degree of the Taylor polynomial whose remainder at radius·delta = r is below
// rounding; four more cover matrices that are not normal.
func degree(r float64) int {
	k, term := 1, r
	for k < maxDegree-4 && term > 1e-17 {
		k++
		term *= r / float64(k)
	}
	return k + 4
}

// project fills the continuous part of a mode:
//
//	tau_L = -G⁺·W_L·(A·x + B·v + Bc_S·tau_S)    with G = W_L·Bc_L
//
// G is singular where locks are redundant; its pseudo-inverse G⁺ then splits the
// torque with the smallest norm. The motion does not depend on the split.
func (t *Tables) project(m *Mode, sys *model.System, kappa uint64) {
	n, mc, mw := t.N, t.Mc, t.M+t.Mc
	gInv, rank := pseudoInverse(t.Gram, mc, kappa)
	m.Rank = rank
	lock := product(gInv, sys.W, mc, mc, n) // G⁺·W_L, zero rows for the others
	in := make([]float64, n*mw)
	for i := range n {
		copy(in[i*mw:], sys.B[i*t.M:(i+1)*t.M])
		for j := range mc {
			if kappa>>j&1 == 0 {
				in[i*mw+t.M+j] = sys.Bc[i*mc+j]
			}
		}
	}
	m.T = negate(product(lock, sys.A, mc, n, n))
	m.U = negate(product(lock, in, mc, n, mw))
	m.P = sum(identity(n), negate(product(sys.Bc, lock, n, mc, n)))
	m.P = product(m.P, m.P, n, n, n) // the second takes out the rounding of the first
	m.A = product(m.P, sys.A, n, n, n)
	m.B = product(m.P, in, n, n, mw)
}

// discretise fills Phi and Gamma over delta from the exponential of
//
//	delta·A  I  0  0
//	0        0  I  0        Van Loan, IEEE TAC 23(3), 1978
//	0        0  0  I
//	0        0  0  0
//
// whose first row is Phi, phi1, phi2, phi3; both sides are put on the constraint
// so that rounding never lets a locked slip drift.
func (t *Tables) discretise(m *Mode, e []float64) error {
	n, mw := t.N, t.M+t.Mc
	full, err := exponential(m.A, e, n, t.Delta)
	if err != nil {
		return fmt.Errorf("kernel: plant %q: %w", t.Name, err)
	}
	hb := scale(m.B, t.Delta)
	m.Phi = product(m.P, product(full[0], m.P, n, n, n), n, n, n)
	m.G0 = product(m.P, product(full[1], hb, n, n, mw), n, n, mw)
	m.G1 = product(m.P, product(full[2], hb, n, n, mw), n, n, mw)
	m.G2 = scale(product(m.P, product(full[3], hb, n, n, mw), n, n, mw), 2)
	return nil
}

// hold replaces every mode by the papers' form over the whole step (000 eq. 7-9):
// tau_L = -(W_L·Hc_L)⁺·W_L·(Phi·x + Hv·v + Hc_S·tau_S), held.
func (t *Tables) hold(sys *model.System) error {
	mc := t.Mc
	for c := range t.Combinations {
		if err := t.holdIn(c<<mc, t.stored(sys.E)); err != nil {
			return err
		}
	}
	return nil
}

// holdIn does so for the lock sets from base on.
func (t *Tables) holdIn(base int, stored []float64) error {
	n, mc, mw := t.N, t.Mc, t.M+t.Mc
	open := t.Modes[base]
	full, err := exponential(open.A, stored, n, t.Delta)
	if err != nil {
		return fmt.Errorf("kernel: plant %q: %w", t.Name, err)
	}
	phi, hIn := full[0], product(full[1], scale(open.B, t.Delta), n, n, mw)
	hc := make([]float64, n*mc)
	for i := range n {
		copy(hc[i*mc:(i+1)*mc], hIn[i*mw+t.M:(i+1)*mw])
	}
	gram := product(t.W, hc, mc, n, mc)
	for kappa := range 1 << mc {
		m := &t.Modes[base|kappa]
		gInv, _ := pseudoInverse(gram, mc, uint64(kappa))
		xi := product(gInv, t.W, mc, mc, n)
		in := append([]float64(nil), hIn...)
		for i := range n {
			for j := range mc {
				if kappa>>j&1 == 1 {
					in[i*mw+t.M+j] = 0
				}
			}
		}
		m.T = negate(product(xi, phi, mc, n, n))
		m.U = negate(product(xi, in, mc, n, mw))
		m.Phi = product(m.P, sum(phi, product(hc, m.T, n, mc, n)), n, n, n) // P takes out rounding only
		m.G0 = product(m.P, sum(in, product(hc, m.U, n, mc, mw)), n, n, mw)
		m.G1, m.G2 = scale(m.G0, 0.5), scale(m.G0, 0.25) // w at the middle of the piece
	}
	return nil
}

// exponential gives Phi, phi1, phi2 and phi3 of delta·a. It is taken of states
// measured by the energy e they store, so that a stiff spring costs no digits.
// gonum's Exp drops the condition error of its solver, so the result is checked:
// two half steps must make a whole one.
func exponential(a, e []float64, n int, delta float64) ([4][]float64, error) {
	var out, half [4][]float64
	size := sizes(e)
	for pass, d := range []float64{delta, delta / 2} {
		big := mat.NewDense(4*n, 4*n, nil)
		for i := range n {
			for j := range n {
				big.Set(i, j, a[i*n+j]*d*size[i]/size[j])
			}
			for b := range 3 {
				big.Set(b*n+i, (b+1)*n+i, 1)
			}
		}
		var whole mat.Dense
		whole.Exp(big)
		for b := range 4 {
			block := mat.DenseCopyOf(whole.Slice(0, n, b*n, (b+1)*n)).RawMatrix().Data
			for i := range block {
				block[i] *= size[i%n] / size[i/n]
			}
			if pass == 0 {
				out[b] = block
			} else {
				half[b] = block
			}
		}
	}
	twice := product(half[0], half[0], n, n, n)
	most := 0.0
	for i := range twice {
		most = max(most, math.Abs(out[0][i]), 1)
	}
	for i := range twice {
		if !(math.Abs(twice[i]-out[0][i]) <= 1e-10*most) {
			return out, fmt.Errorf("the matrix exponential over %g s is not accurate (%g against %g): are the parameters many orders of magnitude apart?",
				delta, twice[i], out[0][i])
		}
	}
	return out, nil
}

// sizes are those of the states by the energy that one unit of each stores: powers of
// two, so that scaling is exact.
func sizes(stored []float64) []float64 {
	size := make([]float64, len(stored))
	for i, e := range stored {
		size[i] = 1
		if e > 0 {
			size[i] = math.Exp2(math.Round(math.Log2(e) / 2))
		}
	}
	return size
}

// pseudoInverse inverts the part of g (mc×mc) that kappa selects, by singular
// values, and embeds it again; the rest is zero. It returns the rank as well.
func pseudoInverse(g []float64, mc int, kappa uint64) ([]float64, int) {
	out := make([]float64, mc*mc)
	var set []int
	for i := range mc {
		if kappa>>i&1 == 1 {
			set = append(set, i)
		}
	}
	k := len(set)
	if k == 0 {
		return out, 0
	}
	sub := mat.NewDense(k, k, nil)
	size := func(i int) float64 { // makes light and heavy bodies weigh the same
		if s := math.Sqrt(math.Abs(g[i*mc+i])); s > 0 {
			return s
		}
		return 1
	}
	for i, r := range set {
		for j, c := range set {
			sub.Set(i, j, g[r*mc+c]/(size(r)*size(c)))
		}
	}
	var svd mat.SVD
	if !svd.Factorize(sub, mat.SVDThin) {
		return out, 0
	}
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	s := svd.Values(nil)
	rank := 0
	for rank < k && s[rank] > 1e-11*s[0] {
		rank++
	}
	for i, r := range set {
		for j, c := range set {
			for q := range rank {
				out[r*mc+c] += v.At(i, q) * u.At(j, q) / (s[q] * size(r) * size(c))
			}
		}
	}
	return out, rank
}
