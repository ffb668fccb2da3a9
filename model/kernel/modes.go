package kernel

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"lockstep/model"
)

// buildModes projects and discretises the plant for every lock set, where all of them fit
// opt.Memory bytes. Otherwise it keeps only the mode without locks, and the kernel factorises the
// others in the tick.
func (t *Tables) buildModes(sys *model.System, opt Options) {
	for _, matrix := range [][]float64{sys.A, sys.B, sys.Bc, sys.W, sys.X0, sys.C, sys.D, sys.Dc} {
		for _, v := range matrix {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				refuse("its matrices are not finite: an inertia is too small or a stiffness too large")
			}
		}
	}

	if t.Combinations == tooMany && opt.Stepping == Dense {
		refuse("its %d springs and dampers with regions make too many combinations to count", len(t.Switches))
	}
	if t.stepsSparse(sys, opt) {
		stored := t.storedEnergy(sys.E)
		t.buildSparse(sys)
		t.measureSpeed(stored)
		t.setLeastSizes(sys)
		t.setSubstep(sys)
		return
	}

	t.Gram = product(t.W, t.Bc, t.Mc, t.N, t.Mc)
	t.projectMode(&t.Open, sys, 0)
	t.WA = product(t.W, t.Open.A, t.Mc, t.N, t.N)
	t.WB = product(t.W, t.Open.B, t.Mc, t.N, t.M+t.Mc)
	if t.modesFit(opt.Memory) {
		t.Modes = make([]Mode, t.Combinations<<t.Mc)
	} else if t.Form == Held {
		refuse("form %q needs every lock set precomputed; 2^%d of them in %d combinations of regions "+
			"do not fit %d bytes", Held, t.Mc, t.Combinations, opt.Memory)
	}

	regions := make([]model.System, len(t.Modes)>>t.Mc) // the plant in each combination of regions
	for c := range regions {
		regions[c] = *sys
		regions[c].A = t.withSlopes(sys.A, c)
	}
	inParallel(len(t.Modes), func(i int) {
		t.projectMode(&t.Modes[i], &regions[i>>t.Mc], uint64(i&(1<<t.Mc-1)))
	})

	t.chooseSubstep(sys)

	switch stored := t.storedEnergy(sys.E); {
	case sys.Partition != nil:
		t.buildPartition(sys)
	case t.Form == Held:
		t.Degree = 3
		t.buildHeldModes(stored)
	default:
		t.lowerDegree(stored)
		var mu sync.Mutex // serialises Progress
		done := 0
		inParallel(len(t.Modes), func(i int) {
			t.discretise(&t.Modes[i], stored)
			if opt.Progress != nil {
				mu.Lock()
				defer mu.Unlock()
				done++
				opt.Progress(done, len(t.Modes))
			}
		})
	}
}

// modesFit reports whether all lock sets and combinations fit the budget, bytes.
func (t *Tables) modesFit(budget int) bool {
	n, mw := t.N, t.M+t.Mc
	one := 8 * (3*n*n + 4*n*mw + t.Mc*(2*n+mw))
	return t.Mc < 31 && len(t.Faces) == 0 && t.Combinations <= budget/(one<<t.Mc)
}

// chooseSubstep measures how fast the plant is and sets the longest substep.
func (t *Tables) chooseSubstep(sys *model.System) {
	var all [][]float64
	if t.Combinations > maxCombinationsMeasured { // a stiffer spring never makes a plant slower: the steepest suffices
		all = append(all, t.withClasses(t.Open.A, t.steepest))
		for i := range t.Groups { // of a contact, the steepest class is not always the fastest
			for class := range t.Groups[i].First {
				if len(t.Groups[i].Switches) > 1 {
					all = append(all, t.withClasses(t.Open.A, func(g *Group) int {
						if g == &t.Groups[i] {
							return class
						}
						return t.steepest(g)
					}))
				}
			}
		}
	} else {
		for c := range t.Combinations {
			all = append(all, t.withSlopes(t.Open.A, c))
		}
	}

	for i := range t.Modes {
		all = append(all, t.Modes[i].A)
	}
	rates := make([]float64, len(all))
	inParallel(len(all), func(i int) { rates[i] = radius(all[i], t.N) })
	t.Radius = max(t.Radius, slices.Max(rates))
	t.Steepness = t.steepness()
	t.setSubstep(sys)
}

// maxCombinationsMeasured is the number of combinations that chooseSubstep measures one by one.
const maxCombinationsMeasured = 4096

// setSubstep sets the longest substep: at most one radian of the fastest mode, and short enough for
// the laws. A dense plant halves the period; a sparse one, which has no matrices of a substep, divides
// it by any number. In two parts the substep is the whole period.
func (t *Tables) setSubstep(sys *model.System) {
	h := float64(t.PeriodNs) * 1e-9
	fastest := max(t.Fastest(), t.WaveRate)
	t.Split, t.Delta = 1, h
	for t.Form == Projected && sys.Partition == nil && !(fastest*t.Delta <= 1) {
		if t.Sparse != nil {
			t.Split++
		} else {
			t.Split *= 2
		}
		t.Delta = h / float64(t.Split)
		if t.Split > MaxSplit {
			fit := time.Duration(0.999 * MaxSplit / fastest * 1e9)
			fit = fit.Truncate(max(1, fit/1000))
			who := fastestElement(sys.Paces, fastest)
			if t.WaveRate == fastest {
				who = model.Pace{Name: t.fastestWave(sys)}
			}
			period := time.Duration(t.PeriodNs)
			panic(refusal{who.Place, &TooFastError{Rate: fastest, Element: who.Name, Period: period, Fit: fit}})
		}
	}

	if sys.Partition != nil {
		t.Degree = cubic
		return
	}

	t.Degree = degree(max(t.Radius, t.WaveRate) * t.Delta)
}

// degree returns the degree of the Taylor polynomial whose remainder at radius·delta = r is below
// rounding; four more terms cover matrices that are not normal.
func degree(r float64) int {
	k, term := 1, r
	for k < maxDegree-4 && term > remainder {
		k++
		term *= r / float64(k)
	}

	return k + 4
}

// lowerDegree lowers the degree of the Taylor polynomial to what the matrices of all modes need. It leaves the degree
// where a wave drives the plant, or where the tick factorises its modes. stored is the energy of the states.
func (t *Tables) lowerDegree(stored []float64) {
	if len(t.Modes) == 0 || len(t.Waves) > 0 {
		return
	}
	size, needed := stateScales(stored), make([]int, len(t.Modes))
	inParallel(len(t.Modes), func(i int) {
		moves := make([]float64, t.N*t.N) // |delta·A|, of scaled states
		for at, v := range t.Modes[i].A {
			moves[at] = math.Abs(v) * t.Delta * size[at/t.N] / size[at%t.N]
		}
		needed[i] = degreeOf(moves, t.N, t.FirstLaw < t.M)
	})
	t.Degree = min(t.Degree, slices.Max(needed))
}

// minDegree is the least degree of the Taylor polynomial: one above that of a state under a parabola.
const minDegree = 4

// degreeOf returns the smallest degree d of the Taylor polynomial with a remainder below rounding. The first terms that
// it leaves out are
//
//	(delta·A)^(d+1)/(d+1)!·x    and    (delta·A)^(d-j)·j!/(d+1)!·delta·B·w_j    for j = 0, 1 and, with laws, 2
//
// moves is |delta·A|, n×n. The row sums of its powers bound those of delta·A, also of a matrix that is not normal.
func degreeOf(moves []float64, n int, laws bool) int {
	power := [maxDegree + 2]float64{1} // largest row sum of a power of moves
	rows := slices.Repeat([]float64{1}, n)
	for p := 1; p < len(power); p++ {
		rows = product(moves, rows, n, n, 1)
		power[p] = slices.Max(rows)
	}

	d, factorial := minDegree, 120.0 // of d+1
	for ; d < maxDegree; d++ {
		left := max(power[d+1], power[d], power[d-1])
		if laws {
			left = max(left, 2*power[d-2])
		}
		if left <= remainder*factorial {
			break
		}
		factorial *= float64(d + 2)
	}
	return d
}

// projectMode sets the continuous part of a mode:
//
//	tau_L = -G⁺·W_L·(A·x + B·v + Bc_S·tau_S)    with G = W_L·Bc_L
//
// G is singular where locks are redundant. Its pseudo-inverse G⁺ then selects the split of the
// torque with the smallest norm. The motion does not depend on the split.
func (t *Tables) projectMode(m *Mode, sys *model.System, kappa uint64) {
	n, mc, mw := t.N, t.Mc, t.M+t.Mc
	gInv, rank := pseudoInverse(t.Gram, mc, kappa)
	m.Redundant = rank < bits.OnesCount64(kappa)
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
	m.P = product(m.P, m.P, n, n, n) // the second product removes the rounding of the first
	m.A = product(m.P, sys.A, n, n, n)
	m.B = product(m.P, in, n, n, mw)
}

// discretise sets Phi and Gamma over delta from the exponential of
//
//	delta·A  I  0  0
//	0        0  I  0        Van Loan, IEEE TAC 23(3), 1978
//	0        0  0  I
//	0        0  0  0
//
// whose first row is Phi, phi1, phi2, phi3. Both sides are projected on the constraint, so that
// rounding never lets a locked slip drift.
func (t *Tables) discretise(m *Mode, e []float64) {
	n, mw := t.N, t.M+t.Mc
	full := exponential(m.A, e, n, t.Delta)
	hb := scale(m.B, t.Delta)
	m.Phi = product(m.P, product(full[0], m.P, n, n, n), n, n, n)
	m.G0 = product(m.P, product(full[1], hb, n, n, mw), n, n, mw)
	m.G1 = product(m.P, product(full[2], hb, n, n, mw), n, n, mw)
	m.G2 = scale(product(m.P, product(full[3], hb, n, n, mw), n, n, mw), 2)
}

// buildHeldModes replaces every mode by the papers' form over the whole step (Reiter, eq. 7-9), with
// the lock torque held:
//
//	tau_L = -(W_L·Hc_L)⁺·W_L·(Phi·x + Hv·v + Hc_S·tau_S)
func (t *Tables) buildHeldModes(stored []float64) {
	n, mc, mw := t.N, t.Mc, t.M+t.Mc
	var phi, hIn, hc, gram []float64 // of the regions
	for i := range t.Modes {
		m, kappa := &t.Modes[i], i&(1<<mc-1)
		if kappa == 0 {
			full := exponential(m.A, stored, n, t.Delta)
			phi, hIn, hc = full[0], product(full[1], scale(m.B, t.Delta), n, n, mw), nil
			for i := range n {
				hc = append(hc, hIn[i*mw+t.M:(i+1)*mw]...)
			}
			gram = product(t.W, hc, mc, n, mc)
		}

		gInv, _ := pseudoInverse(gram, mc, uint64(kappa))
		xi := product(gInv, t.W, mc, mc, n)
		in := slices.Clone(hIn)
		for i := range n {
			for j := range mc {
				if kappa>>j&1 == 1 {
					in[i*mw+t.M+j] = 0
				}
			}
		}

		m.T = negate(product(xi, phi, mc, n, n))
		m.U = negate(product(xi, in, mc, n, mw))
		m.Phi = product(m.P, sum(phi, product(hc, m.T, n, mc, n)), n, n, n) // P removes rounding only
		m.G0 = product(m.P, sum(in, product(hc, m.U, n, mc, mw)), n, n, mw)
		m.G1, m.G2 = scale(m.G0, 0.5), scale(m.G0, 0.25) // w at the middle of the substep
	}
}

// exponential returns Phi, phi1, phi2 and phi3 of delta·a. It scales the states by the energy e
// that they store, so that a stiff spring costs no digits. gonum's Exp drops the condition error of
// its solver, so the result is checked: two half steps must equal a whole one.
func exponential(a, e []float64, n int, delta float64) [4][]float64 {
	size := stateScales(e)
	over := func(d float64, blocks int) (out [4][]float64) {
		big := mat.NewDense(blocks*n, blocks*n, nil)
		for i := range n {
			for j := range n {
				big.Set(i, j, a[i*n+j]*d*size[i]/size[j])
			}
			for b := range blocks - 1 {
				big.Set(b*n+i, (b+1)*n+i, 1)
			}
		}

		var whole mat.Dense
		whole.Exp(big)
		for b := range blocks {
			out[b] = mat.DenseCopyOf(whole.Slice(0, n, b*n, (b+1)*n)).RawMatrix().Data
			for i := range out[b] {
				out[b][i] *= size[i%n] / size[i/n]
			}
		}

		return out
	}

	out, half := over(delta, 4), over(delta/2, 1)[0]
	twice := product(half, half, n, n, n)
	largest := 1.0
	for _, v := range out[0] {
		largest = max(largest, math.Abs(v))
	}
	for i, v := range twice {
		if !(math.Abs(v-out[0][i]) <= 1e-10*largest) {
			refuse("the matrix exponential over %g s is not accurate (%g against %g): "+
				"are the parameters many orders of magnitude apart?", delta, v, out[0][i])
		}
	}

	return out
}

// stateScales returns the scale of each state by the energy that one unit of it stores: powers of
// two, so that scaling is exact.
func stateScales(stored []float64) []float64 {
	size := make([]float64, len(stored))
	for i, e := range stored {
		size[i] = 1
		if e > 0 {
			size[i] = math.Exp2(math.Round(math.Log2(e) / 2))
		}
	}

	return size
}

// pseudoInverse inverts the part of g, mc×mc, that kappa selects, by singular values, and embeds it
// again; the rest is zero. It also returns the rank.
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
	size := func(i int) float64 { // light and heavy bodies get equal weight
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
