package kernel

import (
	"math"
	"slices"

	"lockstep/model"
)

// Steppings of a plant.
const (
	Dense  Stepping = "dense"  // one transition matrix per lock set, or the lock set factorised in the tick
	Sparse Stepping = "sparse" // Taylor polynomials of the substeps, with sparse matrices only
)

// Stepping is Dense or Sparse.
type Stepping string

// Costs by which Prepare selects the stepping, in multiplications of a dense row product.
const (
	sparseEntryCost = 1.6 // of an entry found by its index
	sparseRowCost   = 2.0 // of a row, however short
	minSparseGain   = 2   // factor that sparse must save: dense keeps a lock set to the last bit
	denseTaylorCost = 16  // products in a Taylor polynomial where Phi needs one
	minSparseStates = 20  // states below which the plant is always dense
)

// A law counts as at least this large where it converges, since a plant at rest has laws that are nothing but rounding:
// a part of its expected size, but at most the size that changes a speed by leastSpeed within a period. The ranges of
// inputs, from which the expected size follows, may be far wider than their values.
const (
	leastSize  = 1e-3
	leastSpeed = 1e-3 // rad/s, m/s, or the unit of another state; the law converges to 1e-9 of it
)

// setLeastSizes sets LeastSize of the laws that drive: what a law that is a capacity changes is not known.
func (t *Tables) setLeastSizes(sys *model.System) {
	t.Sparse.LeastSize = make([]float64, t.M-t.FirstLaw)
	for j := range t.Sparse.LeastSize {
		rate := 0.0
		for i := range t.N {
			rate = max(rate, math.Abs(sys.B[i*t.M+t.FirstLaw+j]))
		}
		if t.Sparse.Drives[j] { // the quotient is infinite for a capacity
			t.Sparse.LeastSize[j] = min(leastSize*sys.Signals[t.FirstLaw+j].Size, leastSpeed/(rate*float64(t.PeriodNs)*1e-9))
		}
	}
}

// stepsSparse reports whether the plant is stepped sparse. It is where the options demand it, where
// there are more friction elements than a word of kappa has bits, or where sparse is far cheaper.
func (t *Tables) stepsSparse(sys *model.System, opt Options) bool {
	if opt.Stepping != "" || t.Form == Held {
		return opt.Stepping == Sparse
	}
	entries := 0
	for _, v := range sys.A {
		if v != 0 {
			entries++
		}
	}

	n := float64(t.N)
	dense, sparse := n*n, sparseEntryCost*float64(entries)+sparseRowCost*n
	if t.modesFit(opt.Memory) && t.FirstLaw == t.M {
		dense /= denseTaylorCost
	}
	return t.Mc > maxFrictions || t.Combinations == tooMany || t.N >= minSparseStates && minSparseGain*sparse <= dense
}

// buildSparse makes the sparse tables of sys and moves the rows of laws, event indicators and
// switches into them.
func (t *Tables) buildSparse(sys *model.System) {
	n, m, mc, p := t.N, t.M, t.Mc, len(sys.Outputs)
	net := &SparseTables{
		A: sparseOf(sys.A, n, n), B: sparseOf(sys.B, n, m), W: sparseOf(sys.W, mc, n),
		BcT: sparseOf(transposed(sys.Bc, n, mc), mc, n),
		C:   sparseOf(sys.C, p, n), D: sparseOf(sys.D, p, m), Dc: sparseOf(sys.Dc, p, mc),
	}
	wa, wb := make([]float64, n), make([]float64, m)
	for i := range mc {
		clear(wa)
		clear(wb)
		for e := net.W.rowStart(i); e < net.W.End[i]; e++ {
			net.A.axpy(wa, net.W.Val[e], net.W.Col[e])
			net.B.axpy(wb, net.W.Val[e], net.W.Col[e])
		}

		net.WA.addRow(wa)
		net.WB.addRow(wb)
	}

	net.Levels, net.ArgRows, net.ArgTauRows = t.functionalRows()
	seen := slices.Concat(net.ArgRows.Col, net.Levels.Col)
	slices.Sort(seen)
	net.StatesRead = slices.Compact(seen)
	net.TorquesRead, net.TorquesSeen = t.torquesRead(t.programs()[:m-t.FirstLaw]), t.torquesRead(t.programs())
	net.Drives = make([]bool, m-t.FirstLaw)
	for _, j := range net.B.Col {
		if j >= t.FirstLaw {
			net.Drives[j-t.FirstLaw] = true
		}
	}

	for _, f := range t.Friction {
		if f.Signal >= t.FirstLaw {
			net.Drives[f.Signal-t.FirstLaw] = true
		}
	}

	net.Blocks = net.findBlocks(t.Friction)
	for _, i := range net.TorquesRead {
		net.Readers = append(net.Readers, t.lawsReading(i))
	}
	for j := t.FirstLaw; j < t.M; j++ {
		net.LawLoops = net.LawLoops || readsLater(t.Signals[j].Law, j)
	}
	net.Answers = t.findAnswers(net)
	net.FollowsA = make([]bool, len(t.Switches))
	for s := range t.Switches {
		net.FollowsA[s] = t.followsA(net, s)
	}
	net.Starts = slices.Repeat([]capacityStart{{Signal: -1}}, len(t.Indicators))
	for n, i := range t.LawPressed {
		net.Starts[t.PressedBy[n]] = capacityStart{t.Friction[i].Signal, t.Friction[i].Offset}
	}
	t.stripRows()
	t.Sparse = net
	if largest := t.largestBlock(); largest > maxFrictions {
		refuse("%d friction elements act on each other "+
			"without anything elastic between them; at most %d are possible", largest, maxFrictions)
	}

	t.W, t.Bc, t.Gram, t.C, t.D, t.Dc = nil, nil, nil, nil, nil, nil
}

// followsA reports whether neither friction nor an affine signal moves the states of the level of switch s.
func (t *Tables) followsA(net *SparseTables, s int) bool {
	for p := net.Levels.rowStart(s); p < net.Levels.End[s]; p++ {
		i := net.Levels.Col[p]
		if slices.Contains(net.BcT.Col, i) {
			return false
		}
		for e := net.B.rowStart(i); e < net.B.End[i]; e++ {
			if j := net.B.Col[e]; j >= t.FirstAffine && j < t.FirstLaw {
				return false
			}
		}
	}
	return true
}

// torquesRead returns the friction elements whose torques some programs read.
func (t *Tables) torquesRead(programs []*model.Program) []int {
	read := make([]bool, t.Mc)
	for _, p := range programs {
		for _, a := range p.Args {
			for i, v := range a.Tau {
				read[i] = read[i] || v != 0
			}
		}
	}

	return indicesOf(read)
}

// stripRows removes the full rows from laws, event indicators and switches. The plant shares these
// with its maker, so the rest of them is copied.
func (t *Tables) stripRows() {
	bare := func(p *model.Program) *model.Program {
		q := *p
		q.Args = slices.Clone(p.Args)
		for a := range q.Args {
			q.Args[a].Row, q.Args[a].Tau = nil, nil
		}
		return &q
	}

	for j := t.FirstLaw; j < t.M; j++ {
		t.Signals[j].Law = bare(t.Signals[j].Law)
	}
	t.Indicators = slices.Clone(t.Indicators)
	for g := range t.Indicators {
		t.Indicators[g] = *bare(&t.Indicators[g])
	}
	for i := range t.Samples {
		t.Samples[i].Value = *bare(&t.Samples[i].Value)
	}
	for s := range t.Switches {
		t.Switches[s].Row = nil
	}
}

// findBlocks groups the friction elements by the slips on which their torques act. A contact and the friction that
// follows its force are solved together, so they are in one group.
func (net *SparseTables) findBlocks(frictions []model.Friction) []Block {
	mc := len(frictions)
	gram := func(i, j int) float64 {
		sum := 0.0
		for e := net.W.rowStart(i); e < net.W.End[i]; e++ {
			for f := net.BcT.rowStart(j); f < net.BcT.End[j]; f++ {
				if net.W.Col[e] == net.BcT.Col[f] {
					sum += net.W.Val[e] * net.BcT.Val[f]
				}
			}
		}

		return sum
	}

	follows := func(i, j int) bool { // whether friction element i follows the force of contact j
		f := &frictions[i]
		return f.Face == 1+j || slices.ContainsFunc(f.Presses, func(p model.Press) bool { return p.Contact == j })
	}

	of := make([]int, mc) // block number of each element
	for i := range of {
		of[i] = i
		for j := range i {
			g := max(math.Abs(gram(i, j)), math.Abs(gram(j, i)))
			act := g*g > 1e-28*gram(i, i)*gram(j, j) || follows(i, j) || follows(j, i)
			if from, to := of[i], of[j]; act && from != to {
				for q := range i + 1 {
					if of[q] == from {
						of[q] = to
					}
				}
			}
		}
	}

	var list []Block
	for b := range mc {
		var g Block
		for i, at := range of {
			if at == b {
				g.Elements = append(g.Elements, i)
			}
		}

		for _, i := range g.Elements {
			for _, j := range g.Elements {
				g.Gram = append(g.Gram, gram(i, j))
			}
		}

		if len(g.Elements) > 0 {
			list = append(list, g)
		}
	}

	return list
}

// bytes returns the memory of the matrices and of the factorisations of the blocks, bytes.
func (net *SparseTables) bytes() int {
	total := 0
	for _, s := range []*SparseMatrix{&net.A, &net.B, &net.W, &net.BcT, &net.WA, &net.WB,
		&net.C, &net.D, &net.Dc, &net.Levels, &net.ArgRows, &net.ArgTauRows} {
		total += 8 * (len(s.End) + len(s.Col) + len(s.Val))
	}

	for _, b := range net.Blocks {
		total += 8 * (len(b.Elements) + 2*len(b.Gram))
	}
	return total
}
