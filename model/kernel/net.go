package kernel

import "lockstep/model"

// Net is a long plant: a train of cars, a shaft of many parts. Each of its states acts
// on few others, so no matrix of it is dense, and neither its memory nor the cost of a
// piece grows faster than its length. It is stepped on its Taylor polynomials alone;
// a lock set is not a matrix but the elements that carry it: their torques
//
//	tau_L = -G_L⁻¹·W_L·(A·x + B·v + Bc_S·tau_S)    with G_L = W_L·Bc_L
//
// are found block by block at every derivative, where a block is a group of friction
// elements that G joins: those of one bogie, of one gearbox.
type Net struct {
	A        Sparse // n×n, without affine slopes
	B        Sparse // n×m
	W        Sparse // mc×n
	Push     Sparse // mc×n, the transpose of Bc
	WA, WB   Sparse // mc×n, mc×m: W·A, W·B
	C, D, Dc Sparse
	Levels   Sparse    // switches×n
	Reads    Sparse    // rows of the arguments of all laws and guards
	ReadsTau Sparse    // and what they read of the friction torques
	Seen     []int     // states that laws and guards read
	Felt     []int     // friction elements whose torques laws read
	Drives   []bool    // laws: it acts on a state or is a capacity; others are only read
	Own      []float64 // laws: how fast one can follow the motion that it causes itself, rad/s
	Blocks   []Block
}

// Block is a group of friction elements whose torques act on each other's slips.
type Block struct {
	Of   []int     // its elements
	Gram []float64 // len(Of)²: W·Bc among them
}

// gathered is what torques tau add to the slip acceleration of element l of the block.
//
//go:nosplit
func (g *Block) gathered(l int, tau []float64) float64 {
	sum := 0.0
	for p, i := range g.Of {
		sum += g.Gram[l*len(g.Of)+p] * tau[i]
	}
	return sum
}

// home is where a friction element has its bit of kappa.
type home struct{ block, bit int }

// bind makes what the kernel reads row by row: of the tables, or of their net.
func (k *Kernel) bind() {
	t, row, most := k.t, 0, 0
	for _, p := range t.programs() {
		k.programs = append(k.programs, program{p, row, t.bends(p)})
		row, most = row+len(p.Args), max(most, len(p.Args))
	}
	k.args = make([]float64, most)
	k.blocks = t.Blocks()
	if net := t.Net; net != nil {
		k.slips, k.pushes, k.levels, k.reads, k.readsTau = net.W, net.Push, net.Levels, net.Reads, net.ReadsTau
		k.outX, k.outV, k.outTau = net.C, net.D, net.Dc
	} else {
		k.slips, k.pushes = sparseOf(t.W, t.Mc, t.N), sparseOf(transposed(t.Bc, t.N, t.Mc), t.Mc, t.N)
		k.levels, k.reads, k.readsTau = t.rows()
		p := len(t.C) / t.N
		k.outX, k.outV, k.outTau = sparseOf(t.C, p, t.N), sparseOf(t.D, p, t.M), sparseOf(t.Dc, p, t.Mc)
	}
	k.home = make([]home, t.Mc)
	for b := range k.blocks {
		for l, i := range k.blocks[b].Of {
			k.home[i] = home{b, l}
		}
	}
	k.kappa, k.present.kappa = make([]uint64, len(k.blocks)), make([]uint64, len(k.blocks))
}

// bends reports whether program p reads an affine signal.
func (t *Tables) bends(p *model.Program) bool {
	for _, a := range p.Args {
		for _, j := range a.Signal {
			if j >= t.FirstAffine && j < t.FirstLaw {
				return true
			}
		}
	}
	return false
}

// Blocks are the groups of friction elements that are settled together: all of them
// where their lock sets are matrices.
func (t *Tables) Blocks() []Block {
	if t.Net != nil {
		return t.Net.Blocks
	}
	all := Block{Gram: t.Gram}
	for i := range t.Mc {
		all.Of = append(all.Of, i)
	}
	return []Block{all}
}

// rows are those of the switches and of the arguments of laws and guards.
func (t *Tables) rows() (levels, reads, readsTau Sparse) {
	for s := range t.Switches {
		levels.add(t.Switches[s].Row)
	}
	for _, p := range t.programs() {
		for a := range p.Args {
			reads.add(p.Args[a].Row)
			readsTau.add(p.Args[a].Tau)
		}
	}
	return levels, reads, readsTau
}

// transposed is a, rows×columns.
func transposed(a []float64, rows, columns int) []float64 {
	out := make([]float64, len(a))
	for i := range rows {
		for j := range columns {
			out[j*rows+i] = a[i*columns+j]
		}
	}
	return out
}

// mobility is the slip acceleration of element i per torque of its own.
//
//go:nosplit
func (k *Kernel) mobility(i int) float64 {
	at := k.home[i]
	g := &k.blocks[at.block]
	return g.Gram[at.bit*(len(g.Of)+1)]
}

// net is the room of a kernel that is stepped sparse.
type net struct {
	locks      []blockFactor
	free       []float64 // mc, slip accelerations without any friction torque
	left       []float64 // mc, slip accelerations that locks take away
	forced     []float64 // m, signals with the slopes of affine ones
	held       []float64 // (degree+1)×mc, Taylor coefficients of the friction torques over the piece
	trend      []float64 // laws×3: slope and bend of each where the last piece ended, per s and s²; its factor, 1/s
	echoes     []echo    // felt×3: at the start, at the lawPoints
	echoed     []float64 // felt×2: the part of a torque that laws give back to it, and the modes in which they do; in one with trend
	at         []float64 // 2×n, what laws and guards read of the state at the lawPoints
	answer     []float64 // laws×2, the laws there
	asked      []float64 // laws×4, lawAt and answer of the round before
	flow       stream    // A
	inflow     stream    // B
	bending    stream    // of it what affine signals drive
	term, next []float64 // n, a term of what a change of the laws changes
	dw1, dw2   []float64 // m+mc, that change
	dtau       []float64 // mc
	argPoly    []float64 // arguments×(degree+1) of a guard over the piece
	rounds     int       // taken in this piece
	rough      bool      // it is expanded as far as it takes to find an event about
	change     float64   // largest of a law in the last round, as part of its size, NaN where one is not finite
}

// blockFactor is the factorisation of the lock set of a block.
type blockFactor struct {
	of uint64
	factor
	turn []float64 // 1 by the diagonal of l
}

func newNet(t *Tables) net {
	mc, laws, mw := t.Mc, t.M-t.FirstLaw, t.M+t.Mc
	vec := func(n int) []float64 { return make([]float64, n) }
	most := 0
	for _, p := range t.programs() {
		most = max(most, len(p.Args))
	}
	n := net{
		free: vec(mc), left: vec(mc), forced: vec(t.M), held: vec((t.Degree + 1) * mc), at: vec(2 * t.N), answer: vec(2 * laws), asked: vec(4 * laws),
		flow: streamOf(&t.Net.A), inflow: streamOf(&t.Net.B), bending: streamOf(t.Net.bending(t.FirstAffine, t.FirstLaw)),
		term: vec(t.N), next: vec(t.N), dw1: vec(mw), dw2: vec(mw), dtau: vec(mc), argPoly: vec(most * (t.Degree + 1)),
	}
	n.trend = vec(t.trends())
	n.echoes, n.echoed = make([]echo, 3*len(t.Net.Felt)), n.trend[3*laws:]
	for b := range t.Net.Blocks {
		s := len(t.Net.Blocks[b].Of)
		n.locks = append(n.locks, blockFactor{factor: factor{taken: make([]int, s), l: vec(s * s), rhs: vec(s)}, turn: vec(s)})
	}
	return n
}

// bending is B of the affine signals, those from first up to end.
func (net *Net) bending(first, end int) *Sparse {
	out := new(Sparse)
	for i := range net.B.End {
		for p := net.B.begin(i); p < net.B.End[i]; p++ {
			if j := net.B.Col[p]; j >= first && j < end {
				out.Col, out.Val = append(out.Col, j), append(out.Val, net.B.Val[p])
			}
		}
		out.End = append(out.End, len(out.Col))
	}
	return out
}

// trends is the length of trend.
func (t *Tables) trends() int { return 3*(t.M-t.FirstLaw) + 2*len(t.Net.Felt) }

// largestBlock is the number of elements of the largest.
func (t *Tables) largestBlock() int {
	most := 0
	for _, b := range t.Blocks() {
		most = max(most, len(b.Of))
	}
	return most
}

// drives is the first state that signal j acts on, directly or as the capacity of a
// friction element; 0 where it acts through a law.
//
//go:nosplit
func (net *Net) drives(j int, friction []model.Friction) int {
	first := len(net.A.End)
	for i := range first {
		for p := net.B.begin(i); p < net.B.End[i]; p++ {
			if net.B.Col[p] == j {
				first = min(first, i)
			}
		}
	}
	for f := range friction {
		if p := net.Push.begin(f); friction[f].Signal == j && p < net.Push.End[f] {
			first = min(first, net.Push.Col[p])
		}
	}
	if first == len(net.A.End) {
		return 0
	}
	return first
}
