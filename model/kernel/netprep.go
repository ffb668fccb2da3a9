package kernel

import (
	"fmt"
	"math"
	"slices"

	"lockstep/model"
)

// How a plant is stepped.
const (
	Dense Stepping = "dense"  // one transition matrix per lock set, or the lock set factorised in the tick
	Local Stepping = "sparse" // on the Taylor polynomials of its pieces, without a matrix that is not sparse
)

// Stepping is Dense or Local.
type Stepping string

// Costs by which Prepare chooses, in multiplications of a product of a row and a vector.
const (
	sparseEntry = 1.6 // of an entry found by its index
	sparseRow   = 2.0 // of a row, however short
	sparseGain  = 2   // what sparse must be worth: dense follows a lock set to the last bit
	denseDegree = 16  // products that a Taylor polynomial takes, where Phi needs one
	sparseLeast = 20  // states, from which on it can matter
)

// steps decides how the plant is stepped: sparse where it is asked for, where more
// friction elements than kappa has bits leave no choice, or where it is the cheaper by far.
func (t *Tables) steps(sys *model.System, opt Options) bool {
	if opt.Stepping != "" || t.Form == Held {
		return opt.Stepping == Local
	}
	entries := 0
	for _, v := range sys.A {
		if v != 0 {
			entries++
		}
	}
	n := float64(t.N)
	dense, sparse := n*n, sparseEntry*float64(entries)+sparseRow*n
	if t.fits(opt.Memory) && t.FirstLaw == t.M {
		dense /= denseDegree
	}
	return t.Mc > maxFrictions || t.Combinations == uncounted || t.N >= sparseLeast && sparseGain*sparse <= dense
}

// buildNet makes the net of sys and gives the rows of laws, guards and switches to it.
func (t *Tables) buildNet(sys *model.System) error {
	n, m, mc, p := t.N, t.M, t.Mc, len(sys.Outputs)
	net := &Net{
		A: sparseOf(sys.A, n, n), B: sparseOf(sys.B, n, m), W: sparseOf(sys.W, mc, n), Push: sparseOf(transposed(sys.Bc, n, mc), mc, n),
		C: sparseOf(sys.C, p, n), D: sparseOf(sys.D, p, m), Dc: sparseOf(sys.Dc, p, mc),
	}
	wa, wb := make([]float64, n), make([]float64, m)
	for i := range mc {
		clear(wa)
		clear(wb)
		for e := net.W.begin(i); e < net.W.End[i]; e++ {
			net.A.axpy(wa, net.W.Val[e], net.W.Col[e])
			net.B.axpy(wb, net.W.Val[e], net.W.Col[e])
		}
		net.WA.add(wa)
		net.WB.add(wb)
	}
	net.Levels, net.Reads, net.ReadsTau = t.rows()
	for i := range n {
		if slices.Contains(net.Reads.Col, i) || slices.Contains(net.Levels.Col, i) {
			net.Seen = append(net.Seen, i)
		}
	}
	net.Felt, net.Drives = t.felt(), make([]bool, m-t.FirstLaw)
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
	t.stripRows()
	net.Blocks = net.blocks(mc)
	t.Net = net
	if most := t.largestBlock(); most > maxFrictions {
		return fmt.Errorf("kernel: plant %q: %d friction elements act on each other without anything elastic between them; at most %d are possible",
			t.Name, most, maxFrictions)
	}
	t.W, t.Bc, t.Gram, t.C, t.D, t.Dc = nil, nil, nil, nil, nil, nil
	return nil
}

// felt are the friction elements whose torques laws read.
func (t *Tables) felt() []int {
	read := make([]bool, t.Mc)
	for _, s := range t.Signals[t.FirstLaw:] {
		for _, a := range s.Law.Args {
			for i, v := range a.Tau {
				read[i] = read[i] || v != 0
			}
		}
	}
	return marked(read)
}

// stripRows takes the full rows from laws, guards and switches, which the plant shares
// with its maker: what is left is copied.
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
	t.Guards = slices.Clone(t.Guards)
	for g := range t.Guards {
		t.Guards[g] = *bare(&t.Guards[g])
	}
	for s := range t.Switches {
		t.Switches[s].Row = nil
	}
}

// blocks groups the friction elements by what their torques act on.
func (net *Net) blocks(mc int) []Block {
	gram := func(i, j int) float64 {
		sum := 0.0
		for e := net.W.begin(i); e < net.W.End[i]; e++ {
			for f := net.Push.begin(j); f < net.Push.End[j]; f++ {
				if net.W.Col[e] == net.Push.Col[f] {
					sum += net.W.Val[e] * net.Push.Val[f]
				}
			}
		}
		return sum
	}
	of := make([]int, mc) // the block of each
	for i := range of {
		of[i] = i
		for j := range i {
			g := max(math.Abs(gram(i, j)), math.Abs(gram(j, i)))
			if from, to := of[i], of[j]; g*g > 1e-28*gram(i, i)*gram(j, j) && from != to {
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
				g.Of = append(g.Of, i)
			}
		}
		for _, i := range g.Of {
			for _, j := range g.Of {
				g.Gram = append(g.Gram, gram(i, j))
			}
		}
		if len(g.Of) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// bytes is the memory of the matrices and of the factorisations of the blocks.
func (net *Net) bytes() int {
	total := 0
	for _, s := range []*Sparse{&net.A, &net.B, &net.W, &net.Push, &net.WA, &net.WB, &net.C, &net.D, &net.Dc, &net.Levels, &net.Reads, &net.ReadsTau} {
		total += 8 * (len(s.End) + len(s.Col) + len(s.Val))
	}
	for _, b := range net.Blocks {
		total += 8 * (len(b.Of) + 2*len(b.Gram))
	}
	return total
}

// openAt is OpenAt.
func (net *Net) openAt(t *Tables, x []float64) []float64 {
	n := t.N
	a := make([]float64, n*n)
	for i := range n {
		net.A.axpy(a[i*n:(i+1)*n], 1, i)
		for p := net.B.begin(i); p < net.B.End[i]; p++ {
			if f := t.Signals[net.B.Col[p]].Affine; f != nil {
				sw := &t.Switches[f.Switch]
				region := sw.regionOf(sw.Const + net.Levels.dot(f.Switch, x))
				net.Levels.axpy(a[i*n:(i+1)*n], net.B.Val[p]*f.Slope[region], f.Switch)
			}
		}
	}
	return a
}
