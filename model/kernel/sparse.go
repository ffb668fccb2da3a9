package kernel

import (
	"math"
	"slices"

	"lockstep/model"
)

// SparseTables holds the matrices of a long plant, such as a train of cars or a shaft of many
// parts. Each state acts on few others, so memory and the cost of a substep grow in proportion to
// the length. The plant is stepped on its Taylor polynomials alone. A lock set has no matrix; the
// torques of its elements
//
//	tau_L = -G_L⁻¹·W_L·(A·x + B·v + Bc_S·tau_S)    with G_L = W_L·Bc_L
//
// are solved block by block at every derivative. A block is a group of friction elements that G
// couples, such as those of one bogie or one gearbox.
type SparseTables struct {
	A           SparseMatrix // n×n, without affine slopes
	B           SparseMatrix // n×m
	W           SparseMatrix // mc×n
	BcT         SparseMatrix // mc×n, the transpose of Bc
	WA, WB      SparseMatrix // mc×n, mc×m: W·A, W·B
	C, D, Dc    SparseMatrix // p×n, p×m, p×mc
	Levels      SparseMatrix // switches×n
	ArgRows     SparseMatrix // n columns: rows of the arguments of all laws and event indicators
	ArgTauRows  SparseMatrix // mc columns: the part of these arguments that reads friction torques
	StatesRead  []int        // states that laws, event indicators and switches read
	TorquesRead []int        // friction elements whose torques laws read
	TorquesSeen []int        // friction elements whose torques laws or event indicators read
	Readers     [][]int      // by torque of TorquesRead: laws that read it, and those that read these laws, in order
	LawLoops    bool         // a law reads itself or a later one: one evaluation of all laws does not set them
	Answers     []torqueAnswer
	Starts      []capacityStart // event indicators
	FollowsA    []bool          // switches: A alone moves the level, as of a deflection; no friction and no affine signal does
	Drives      []bool          // laws: the law acts on a state or is a capacity; others are only read
	LeastSize   []float64       // laws: size from which the law must converge
	SelfRate    []float64       // laws: how fast a law can follow the motion that it causes itself, rad/s
	Blocks      []Block
}

// Block is a group of friction elements whose torques act on each other's slips.
type Block struct {
	Elements []int     // indices of the friction elements
	Gram     []float64 // len(Elements)², W·Bc of these elements
}

// capacityStart is the law and the offset of the capacity whose start an event indicator shows; Signal is -1 for others.
type capacityStart struct {
	Signal int
	Offset float64
}

// addedAcceleration returns the slip acceleration that torques tau add to element l of the block, rad/s². Most of the
// torques are 0.
//
//go:nosplit
func (g *Block) addedAcceleration(l int, tau []float64) float64 {
	sum := 0.0
	for p, i := range g.Elements {
		if tau[i] != 0 {
			sum += float64(g.Gram[l*len(g.Elements)+p] * tau[i])
		}
	}
	return sum
}

// blockBit is the position of a friction element in kappa.
type blockBit struct{ block, bit int }

// bindRows sets the matrices that the kernel reads row by row, from the tables or their sparse
// part.
func (k *Kernel) bindRows() {
	t, row, longest := k.t, 0, 0
	for _, p := range t.programs() {
		k.programs = append(k.programs, program{Program: p, row: row})
		row, longest = row+len(p.Args), max(longest, len(p.Args))
	}

	k.bindOperations(longest)
	k.blocks = t.Blocks()
	if net := t.Sparse; net != nil {
		k.slips, k.bcT, k.levels, k.argRows, k.argTauRows = net.W, net.BcT, net.Levels, net.ArgRows, net.ArgTauRows
		k.outX, k.outV, k.outTau = net.C, net.D, net.Dc
	} else {
		k.slips, k.bcT = sparseOf(t.W, t.Mc, t.N), sparseOf(transposed(t.Bc, t.N, t.Mc), t.Mc, t.N)
		k.levels, k.argRows, k.argTauRows = t.functionalRows()
		p := len(t.C) / t.N
		k.outX, k.outV, k.outTau = sparseOf(t.C, p, t.N), sparseOf(t.D, p, t.M), sparseOf(t.Dc, p, t.Mc)
	}
	for i := range k.programs {
		k.bindArguments(&k.programs[i])
	}

	k.bitOf = make([]blockBit, t.Mc)
	for b := range k.blocks {
		for l, i := range k.blocks[b].Elements {
			k.bitOf[i] = blockBit{b, l}
		}
	}
}

// bindOperations sets the instructions of the programs, which have up to the given number of arguments, and stack:
// their constants, the first 0, and space for the arguments and the results of one of them.
func (k *Kernel) bindOperations(args int) {
	k.stack = []float64{0}
	places := map[uint64]int{0: 0} // of the constants, by their bits
	for i := range k.programs {
		for _, op := range k.programs[i].Ops {
			if bits := math.Float64bits(op.Value); op.Code == model.Push && places[bits] == 0 && bits != 0 {
				places[bits] = len(k.stack)
				k.stack = append(k.stack, op.Value)
			}
		}
	}
	k.firstArg, k.firstResult = len(k.stack), len(k.stack)+args
	longest := 0
	for i := range k.programs {
		k.bindInstructions(&k.programs[i], places)
		longest = max(longest, len(k.programs[i].instructions))
	}
	k.stack = slices.Concat(k.stack, make([]float64, args+longest))
}

// bindInstructions sets the instructions of p; constants are the places of constants by their bits.
func (k *Kernel) bindInstructions(p *program, constants map[uint64]int) {
	var stack []int // places of the values that the operations of p leave
	known := map[instruction]int{}
	for _, op := range p.Ops {
		switch op.Code {
		case model.Push:
			stack = append(stack, constants[math.Float64bits(op.Value)])
			continue
		case model.Arg:
			stack = append(stack, k.firstArg+op.Index)
			continue
		}
		from := len(stack) - op.Code.Operands()
		var operands [4]int32
		for i, place := range stack[from:] {
			operands[i] = int32(place)
		}
		in := instruction{op.Code, int32(op.Index), operands[0], operands[1], operands[2], operands[3]}
		at, ok := known[in]
		if !ok {
			at = k.firstResult + len(p.instructions)
			known[in] = at
			p.instructions = append(p.instructions, in)
		}
		stack = append(stack[:from], at)
	}
	p.result = stack[0]
}

// bindArguments sets the arguments that the operations of p read.
func (k *Kernel) bindArguments(p *program) {
	read := 0
	for _, op := range p.Ops {
		if op.Code == model.Arg {
			read = max(read, op.Index+1)
		}
	}
	add := func(s *SparseMatrix, row int) int {
		from := s.rowStart(row)
		for e := from; e < s.End[row]; e++ {
			k.terms = append(k.terms, term{s.Val[e], s.Col[e]})
		}
		return s.End[row] - from
	}
	for a := range p.Args[:read] {
		f, affine := &p.Args[a], false
		bound := argument{constant: f.Const, start: len(k.terms), states: add(&k.argRows, p.row+a), signals: len(f.Signal)}
		for i, j := range f.Signal {
			k.terms = append(k.terms, term{f.Coef[i], j})
			affine = affine || j >= k.t.FirstAffine && j < k.t.FirstLaw
			p.readsLaw = p.readsLaw || j >= k.t.FirstLaw
		}
		bound.torques = add(&k.argTauRows, p.row+a)
		p.readsAffine = p.readsAffine || affine
		one := bound.states+bound.signals == 1 && bound.torques == 0 && k.terms[bound.start].coef == 1
		if one && f.Const == 0 && !affine {
			if bound.plain, bound.index = plainSignal, k.terms[bound.start].index; bound.states == 1 {
				bound.plain = plainState
			}
		}
		p.read = append(p.read, bound)
	}
}

// Blocks returns the groups of friction elements that are resolved together; all of them where
// their lock sets are matrices.
func (t *Tables) Blocks() []Block {
	if t.Sparse != nil {
		return t.Sparse.Blocks
	}
	all := Block{Gram: t.Gram}
	for i := range t.Mc {
		all.Elements = append(all.Elements, i)
	}
	return []Block{all}
}

// functionalRows returns the rows of the switches and of the arguments of laws and event
// indicators.
func (t *Tables) functionalRows() (levels, reads, readsTau SparseMatrix) {
	for s := range t.Switches {
		levels.addRow(t.Switches[s].Row)
	}
	for _, p := range t.programs() {
		for a := range p.Args {
			reads.addRow(p.Args[a].Row)
			readsTau.addRow(p.Args[a].Tau)
		}
	}

	return levels, reads, readsTau
}

// transposed returns the transpose of a, rows×columns.
func transposed(a []float64, rows, columns int) []float64 {
	out := make([]float64, len(a))
	for i := range rows {
		for j := range columns {
			out[j*rows+i] = a[i*columns+j]
		}
	}

	return out
}

// mobility returns the slip acceleration of element i per unit of its own torque; negative.
//
//go:nosplit
func (k *Kernel) mobility(i int) float64 {
	at := k.bitOf[i]
	g := &k.blocks[at.block]
	return g.Gram[at.bit*(len(g.Elements)+1)]
}

// sparseWork is the working memory of a kernel that is stepped sparse.
type sparseWork struct {
	locks          []blockFactor   // factorisation of each block
	sliding        []slidingFactor // factorisation of each block with friction that slides on faces
	projecting     bool            // projectSlips projects a state: the friction that slides on faces does not act
	freeAccel      []float64       // mc, slip accelerations without any friction torque, rad/s²
	residualAccel  []float64       // mc, slip accelerations that the locks must cancel, rad/s²
	lockTorque     []float64       // mc, torques of the locks, 0 of other elements, N·m
	signals        []float64       // m, signals with the slope parts of affine ones
	startRate      []float64       // n, derivative of the state at the start of the expanded substep
	tauPoly        []float64       // (degree+1)×mc, Taylor coefficients of the friction torques over the substep
	torqueIterates []torqueIterate // TorquesRead×3: at the start and at the lawPoints
	torqueFeedback []float64       // TorquesRead×2, part of lawTrend: torque gain through the laws, and its modes
	lawStates      []float64       // 2×n, states that laws and event indicators read, at the lawPoints
	lawResults     []float64       // laws×2, the laws evaluated at the lawPoints
	lastIterate    []float64       // laws×4, lawValues and lawResults of the previous iteration
	aStream        stream          // A
	bStream        stream          // B
	affineStream   stream          // columns of B of the affine signals
	slipStream     stream          // W
	frictionStream stream          // Bc
	largeBlocks    bool            // products with W and Bc take the rows of locks alone, not the streams
	faceBits       []uint64        // friction on faces of each block, as bits of kappa
	term, next     []float64       // n, terms of the correction by a change of the laws
	dw1, dw2       []float64       // m+mc, change of w1 and w2
	dtau           []float64       // mc, change of the torques
	argPoly        []float64       // arguments×(degree+1) of an event indicator over the substep
	iterations     int             // law iterations taken in this substep
	onLaws         bool            // event indicators read the laws of the state, not their parabolas
	shortened      bool            // the expansion is that of the substep before it was shortened
	coarse         bool            // the expansion suffices to locate an event coarsely
	lawChange      float64         // largest change of a law in the last iteration, as part of its size; NaN: not finite
}

// minLargeBlock is the mean number of elements of a block from which the rows of locks cost less than a stream of all
// rows: few elements of a gearbox with teeth are locked at a time. In the small blocks of a train the stream costs less.
const minLargeBlock = 8

// blockFactor is the factorisation of the lock set of a block.
type blockFactor struct {
	kappa uint64 // lock set that is factorised
	factor
	inverseDiag []float64 // 1 / diagonal of l

	// Of two locks: their elements, and the entries of inverseDiag and of l below its diagonal.
	first, second                      int
	inverseFirst, inverseSecond, below float64
}

// newSparseWork returns the working memory for t; torqueFeedback is part of trend.
func newSparseWork(t *Tables, trend []float64, args int) sparseWork {
	mc, laws, mw := t.Mc, t.M-t.FirstLaw, t.M+t.Mc
	vec := func(n int) []float64 { return make([]float64, n) }
	n := sparseWork{
		freeAccel: vec(mc), residualAccel: vec(mc), lockTorque: vec(mc), signals: vec(t.M),
		startRate: vec(t.N), tauPoly: vec((t.Degree + 1) * mc),
		lawStates: vec(2 * t.N), lawResults: vec(2 * laws), lastIterate: vec(4 * laws),
		aStream: streamOf(&t.Sparse.A), bStream: streamOf(&t.Sparse.B),
		affineStream: streamOf(t.Sparse.affineColumns(t.FirstAffine, t.FirstLaw)),
		slipStream:   streamOf(&t.Sparse.W), frictionStream: streamOf(t.Sparse.BcT.transposed(t.N)),
		largeBlocks: mc >= minLargeBlock*len(t.Sparse.Blocks), faceBits: make([]uint64, len(t.Sparse.Blocks)),
		term: vec(t.N), next: vec(t.N), dw1: vec(mw), dw2: vec(mw), dtau: vec(mc),
		argPoly: vec(args * (t.Degree + 1)),
	}
	n.torqueIterates, n.torqueFeedback = make([]torqueIterate, 3*len(t.Sparse.TorquesRead)), trend[3*laws:]
	for b := range t.Sparse.Blocks {
		for l, i := range t.Sparse.Blocks[b].Elements {
			if slices.Contains(t.Faces, i) {
				n.faceBits[b] |= 1 << l
			}
		}
		s := len(t.Sparse.Blocks[b].Elements)
		f := factor{taken: make([]int, s), l: vec(s * s), rhs: vec(s)}
		n.locks = append(n.locks, blockFactor{factor: f, inverseDiag: vec(s)})
		if len(t.Faces) > 0 {
			f = factor{taken: make([]int, s), l: vec(s * s), rhs: vec(s)}
			n.sliding = append(n.sliding, slidingFactor{factor: f, per: vec(s)})
		}
	}

	return n
}

// affineColumns returns the columns of B of the affine signals, first to end-1.
func (net *SparseTables) affineColumns(first, end int) *SparseMatrix {
	out := new(SparseMatrix)
	for i := range net.B.End {
		for p := net.B.rowStart(i); p < net.B.End[i]; p++ {
			if j := net.B.Col[p]; j >= first && j < end {
				out.Col, out.Val = append(out.Col, j), append(out.Val, net.B.Val[p])
			}
		}

		out.End = append(out.End, len(out.Col))
	}

	return out
}

// largestBlock returns the number of elements in the largest block.
func (t *Tables) largestBlock() int {
	largest := 0
	for _, b := range t.Blocks() {
		largest = max(largest, len(b.Elements))
	}
	return largest
}
