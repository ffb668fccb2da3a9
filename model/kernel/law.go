package kernel

import (
	"math"

	"lockstep/model"
)

// maxLawIterations bounds the iterations that make the laws of a substep consistent with the motion
// they cause. Substeps are so short that each iteration gains about a digit.
const maxLawIterations = 12

// lawTol is the change of a law below which it has converged, as part of its largest value.
const lawTol = 1e-13

// looseLawTol is the change in the last iteration above which a substep counts as not converged.
const looseLawTol = 1e-5

// setTorquesRead sets tau from w and capNow where an iterated law or an event indicator reads it, for state
// x at theta of the substep.
//
//go:nosplit
func (k *Kernel) setTorquesRead(x []float64, theta float64) {
	switch {
	case !k.t.LoopReadsTau:
	case k.t.Sparse != nil:
		k.setTorquesAt(theta)
	default:
		k.calls.setTorques(k, x)
	}
}

// evaluateLaws sets the law signals of v for state x; the signals before them must be set.
//
//go:nosplit
func (k *Kernel) evaluateLaws(v, x []float64) {
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		v[j] = k.evaluateProgram(j-k.t.FirstLaw, x, v)
	}
}

// iterateOnce sets the laws of v in an iteration for state x: on the sides of the substep, or with
// onValues on those of their values.
//
//go:nosplit
func (k *Kernel) iterateOnce(v, x []float64) {
	if k.onValues {
		k.calls.evaluateOnSides(k, v, x)
		return
	}
	k.evaluateIterated(v, x)
}

// evaluateIterated sets the iterated laws of v for state x; the signals before them must be set.
//
//go:nosplit
func (k *Kernel) evaluateIterated(v, x []float64) {
	for _, j := range k.t.Iterated {
		v[j] = k.evaluateProgram(j-k.t.FirstLaw, x, v)
	}
}

// solveLaws makes the laws over the substep consistent with the motion they cause. Each law signal
// is the parabola through its values at the start, the middle and the end of the substep, and the
// state follows exactly from these: collocation at the three Lobatto points, of order four where
// the laws are smooth. It leaves the substep expanded.
//
//go:nosplit
func (k *Kernel) solveLaws() {
	k.calls.expand(k, k.x)
	for i := range maxLawIterations {
		k.lawChange = 0
		middle, end := k.updateLaws(0, 0.5), k.updateLaws(1, 1)
		for _, j := range k.t.Iterated {
			q := j - k.t.FirstLaw
			k.w1[j], k.w2[j] = parabola(k.w0[j], k.lawValues[2*q], k.lawValues[2*q+1])
		}
		k.expandFrictions(k.t.PressedAnew)
		last := middle && end || i == maxLawIterations-1
		if last && len(k.t.Downstream) > 0 {
			k.solveDownstream()
		}
		if k.t.Form == Held || len(k.t.Faces) > 0 {
			k.calls.expand(k, k.x)
		} else { // w0 and so the first coefficient are as before
			k.expandHigher()
		}
		if last {
			return
		}
	}
}

// maxHalvings is how often a substep is halved in which laws do not converge.
const maxHalvings = 5

// repeatUntilConverged repeats a substep whose laws do not converge: on the sides that their values
// have, as the straight continuation of a limit may run away, and then halved until they converge. It
// counts the substep in unconverged if they do not.
//
//go:nosplit
func (k *Kernel) repeatUntilConverged(local float64, halvings int) {
	if k.lawChange <= looseLawTol {
		return
	}
	copy(k.sidesKept, k.side)
	k.onValues = true
	length := k.length
	for range 1 + halvings {
		if k.lawChange <= looseLawTol || !(length > k.timeTol) {
			break
		}
		for j := k.t.FirstLaw; j < k.t.M; j++ { // their extrapolation is no good guess
			k.w1[j], k.w2[j] = 0, 0
		}
		copy(k.side, k.sidesKept)
		copy(k.lawMax, k.lawMaxKept)
		k.restartSubstep(local, length)
		k.calls.solveLaws(k)
		if k.t.Sparse != nil {
			k.calls.iterateLaws(k, false)
		}
		length = float64(k.length / 2)
	}

	k.onValues = false
	copy(k.side, k.sidesKept)
	if !(k.lawChange <= looseLawTol) {
		k.unconverged++
	}
}

// updateLaws sets the laws of point p of solveLaws, at theta of the substep, from the expanded
// motion. It reports whether they have converged.
//
//go:nosplit
func (k *Kernel) updateLaws(p int, theta float64) bool {
	k.horner(k.x1, theta)
	if k.t.LoopReadsTau || k.t.Instant || len(k.t.Downstream) > 0 || len(k.t.Waves) > 0 || len(k.t.Faces) > 0 {
		k.setInstant(theta)
	} else { // the laws follow from no capacity
		k.setParabolas(theta)
	}
	if k.t.Instant {
		k.calls.solveInstant(k, k.x1)
	} else {
		k.setTorquesRead(k.x1, theta)
		k.iterateOnce(k.w[:k.t.M], k.x1)
	}
	settled := true
	for _, j := range k.t.Iterated {
		q := j - k.t.FirstLaw
		k.lawMax[q] = max(k.lawMax[q], math.Abs(k.w[j]))
		if change := math.Abs(k.w[j] - k.lawValues[2*q+p]); !(change <= lawTol*min(k.lawMax[q], math.MaxFloat64)) {
			settled, k.lawChange = false, max(k.lawChange, change/k.lawMax[q])
		}
		k.lawValues[2*q+p] = k.w[j]
	}

	return settled
}

// lawAtZero sets atZero of the elements whose capacity is a law: whether the law is at the offset of
// the capacity at theta, 0 or 1, of the substep. It reports whether there is one. A law that reads other laws is
// at the offset, too, where its event indicator has passed it and its value has not: the event is located on the
// parabolas of the laws that it reads.
//
//go:nosplit
func (k *Kernel) lawAtZero(theta float64) bool {
	any := false
	for n, i := range k.t.LawPressed {
		f := &k.t.Friction[i]
		j := f.Signal
		v := k.w0[j] + float64(theta*(k.w1[j]+k.w2[j])) - f.Offset
		k.atZero[i] = math.Abs(v) <= indicatorTol*k.lawMax[j-k.t.FirstLaw] || k.side[k.t.PressedBy[n]]*v < 0
		any = any || k.atZero[i]
	}

	return any
}

// ahead is the part of a substep at which a capacity that starts at zero shows whether it begins.
const ahead = 1e-3

// setRising sets rising of the elements whose capacity is a law: whether the capacity is above zero
// soon after the start of the substep.
//
//go:nosplit
func (k *Kernel) setRising() {
	k.setRates(k.w0)
	for i, v := range k.x {
		k.x1[i] = v + float64(ahead*k.length*k.xd[i])
	}
	k.setInstant(ahead)
	for _, j := range k.t.PressingLaws {
		k.w[j] = k.evaluateProgram(j-k.t.FirstLaw, k.x1, k.w[:k.t.M])
	}
	for _, i := range k.t.LawPressed {
		f := &k.t.Friction[i]
		k.rising[i] = k.w[f.Signal]-f.Offset > indicatorTol*k.lawMax[f.Signal-k.t.FirstLaw]
	}
}

// parabola returns the coefficients of a + w1·theta + w2·theta² through a, b and c at 0, 1/2 and 1.
// They are exactly 0 for a constant.
//
//go:nosplit
func parabola(a, b, c float64) (w1, w2 float64) {
	w2 = float64(2*(a-b)) + float64(2*(c-b))
	return c - a - w2, w2
}

// program is a law or an event indicator, as it is evaluated. Of its arguments the tick sets those that operations
// read; those after them only carry slopes.
type program struct {
	*model.Program
	row          int           // row of its first argument in argRows
	read         []argument    // arguments that operations read
	readsAffine  bool          // one of them reads an affine signal
	readsLaw     bool          // one of them reads a law
	instructions []instruction // its operations; equal ones on equal operands once
	result       int           // place of its value in Kernel.stack
}

// instruction is an operation of a program on values in Kernel.stack. It puts its own value behind the arguments, in
// the order of the instructions. It is short, so that the laws of a plant stay in the cache of the processor.
type instruction struct {
	code       model.Code
	index      int32 // of a table or an event indicator
	a, b, c, d int32 // places of the operands, in the order of the stack of model.Op; 0: none
}

// argument is an argument of a program: a constant plus its terms on states, on signals and on friction torques,
// which lie in this order in Kernel.terms.
type argument struct {
	plain                    argumentKind
	index                    int // of the state or the signal of a plain argument
	constant                 float64
	start                    int // of its terms in Kernel.terms
	states, signals, torques int // numbers of its terms
}

// argumentKind tells an argument that is one state or one signal, which most are, from other ones.
type argumentKind uint8

const (
	sumOfTerms argumentKind = iota
	plainState
	plainSignal
)

// term is a term of an argument: a factor of a state, a signal or a friction torque.
type term struct {
	coef  float64
	index int
}

// indicatorProgram returns the index of the program of event indicator g; the laws come first.
//
//go:nosplit
func (k *Kernel) indicatorProgram(g int) int { return k.t.M - k.t.FirstLaw + g }

// evaluateProgram returns the value of program i in state x with the signals v, and the torques tau
// where setTorquesRead has set them.
//
//go:nosplit
func (k *Kernel) evaluateProgram(i int, x, v []float64) float64 {
	return k.evaluate(&k.programs[i], x, v)
}

// evaluate is evaluateProgram for program p.
//
//lockstep:programs
//go:nosplit
func (k *Kernel) evaluate(p *program, x, v []float64) float64 {
	for a := range p.read {
		k.stack[k.firstArg+a] = k.argument(p, a, x, v)
	}
	return k.execute(p)
}

// argument returns the value of argument a of program p.
//
//go:nosplit
//go:norace
func (k *Kernel) argument(p *program, a int, x, v []float64) float64 {
	f := &p.read[a]
	switch f.plain {
	case plainState:
		return x[f.index]
	case plainSignal:
		return v[f.index]
	}

	s := f.constant
	for _, m := range k.terms[f.start : f.start+f.states] {
		s += float64(m.coef * x[m.index])
	}
	for _, m := range k.terms[f.start+f.states : f.start+f.states+f.signals] {
		s += float64(m.coef * v[m.index])
	}
	for _, m := range k.terms[f.start+f.states+f.signals : f.start+f.states+f.signals+f.torques] {
		s += float64(m.coef * k.tau[m.index])
	}
	if p.readsAffine {
		s += k.slopePart(&p.Args[a], x)
	}
	return s
}

// execute returns the value of program p on the arguments in stack.
//
//lockstep:programs
//go:nosplit
func (k *Kernel) execute(p *program) float64 {
	s := k.stack
	for i := range p.instructions {
		op := &p.instructions[i]
		a, b := s[op.a], s[op.b]
		v := a
		switch op.code { // the most frequent first: generated code compares one after the other
		case model.Mul:
			v = float64(a * b)
		case model.Sub:
			v = a - b
		case model.Add:
			v = a + b
		case model.Div:
			if v = 0; !(b < minDivisor && b > -minDivisor) {
				v = a / b
			}
		case model.If:
			if k.side[op.index] < 0 {
				v = b
			}
		case model.Side:
			v = k.side[op.index]
		case model.Sqrt:
			v = math.Sqrt(max(0, a))
		case model.Line:
			v = lineAt(&p.Tables[op.index], int(b), a)
		case model.Max:
			v = max(a, b)
		case model.Min:
			v = min(a, b)
		case model.Look:
			v = lookup(&p.Tables[op.index], a)
		case model.Atan:
			v = atan(a)
		case model.Exp:
			v = exp(a)
		case model.Neg:
			v = -a
		case model.Abs:
			v = math.Abs(a)
		case model.Sign:
			if v = 0; a != 0 {
				v = math.Copysign(1, a)
			}
		case model.Choose:
			if v = s[op.c]; a >= 0 {
				v = b
			}
		case model.Look2:
			v = lookup2(&p.Tables[op.index], a, b)
		case model.Patch:
			v = patchAt(&p.Tables[op.index], int(b), int(s[op.d]), a, s[op.c])
		case model.Sin:
			v = sin(a)
		case model.Cos:
			v = cos(a)
		}
		s[k.firstResult+i] = v
	}

	return s[p.result]
}

// minDivisor is the size of a divisor below which it counts as 0. A speed that locks have brought to 0 may keep a
// rounding of 5e-324; the product of two quotients by it would be infinite.
const minDivisor = 1e-100

// lookup returns the value of table t at v.
//
//go:nosplit
func lookup(t *model.Table, v float64) float64 {
	if len(t.X) == 1 {
		return t.Z[0]
	}
	i, f := interval(t.X, v, t.Extend)
	return t.Z[i] + float64(f*(t.Z[i+1]-t.Z[i]))
}

// lineAt returns the value at v of the line through points i and i+1 of table t.
//
//go:nosplit
func lineAt(t *model.Table, i int, v float64) float64 {
	return t.Z[i] + float64(share(t.X, i, v)*(t.Z[i+1]-t.Z[i]))
}

// patchAt returns the value at row v and column w of table t, continued from its interval i of rows
// and j of columns.
//
//go:nosplit
func patchAt(t *model.Table, i, j int, v, w float64) float64 {
	c, g := len(t.Y), share(t.Y, j, w)
	a := t.Z[i*c+j] + float64(g*(t.Z[i*c+j+1]-t.Z[i*c+j]))
	b := t.Z[(i+1)*c+j] + float64(g*(t.Z[(i+1)*c+j+1]-t.Z[(i+1)*c+j]))
	return a + float64(share(t.X, i, v)*(b-a))
}

// share returns the place of v in interval i of x, 0 to 1 inside.
//
//go:nosplit
func share(x []float64, i int, v float64) float64 { return (v - x[i]) / (x[i+1] - x[i]) }

// lookup2 returns the value of table t at row v and column w; both need at least two points.
//
//go:nosplit
func lookup2(t *model.Table, v, w float64) float64 {
	i, f := interval(t.X, v, t.Extend)
	j, g := interval(t.Y, w, t.Extend)
	c := len(t.Y)
	a := t.Z[i*c+j] + float64(g*(t.Z[i*c+j+1]-t.Z[i*c+j]))
	b := t.Z[(i+1)*c+j] + float64(g*(t.Z[(i+1)*c+j+1]-t.Z[(i+1)*c+j]))
	return a + float64(f*(b-a))
}

// interval returns the index i of the interval of x that contains v, and the place of v in it,
// clipped to [0, 1] unless the table is extended.
//
//go:nosplit
func interval(x []float64, v float64, extend bool) (int, float64) {
	lo := 0
	for n := len(x) - 1; n > 1; n -= n / 2 { // the interval is among the n from lo on, for every v
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
