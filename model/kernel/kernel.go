package kernel

import (
	"math"
	"strconv"
)

// Modes of a friction element, numbered as in the Modelica Standard Library.
const (
	Backward int8 = -1 // slips, w_rel < 0
	Stuck    int8 = 0  // locked
	Forward  int8 = 1  // slips, w_rel > 0
	Free     int8 = 2  // no capacity, no torque
)

// maxEvents is the number of transitions that the log of one tick holds; further ones are only
// counted.
const maxEvents = 64

// slipZero is the slip below which an element counts as at rest, rad/s: far above the rounding of a
// projected state, far below any measurable slip.
const slipZero = 1e-9

// Event is one transition of a friction element, or of a switch that leaves a region.
type Event struct {
	Time     float64 // plant time, s
	Friction int     // index into Tables.Frictions; len(Frictions) + i is Tables.Switches[i]
	From, To int8    // modes, also Impact; for a switch, regions counted from 0
}

// EventNames returns the name of an event's element and the names of its state before and after. A
// region of a switch is named by its number, counted from 0.
func (t *Tables) EventNames(e Event) (element, from, to string) {
	if s := e.Friction - t.Mc; s >= 0 {
		return t.Switches[s].Name, strconv.Itoa(int(e.From)), strconv.Itoa(int(e.To))
	}
	return t.Frictions[e.Friction], modeName(e.From), modeName(e.To)
}

// modeName returns the name of a friction element's mode, as in the database.
func modeName(mode int8) string {
	return [...]string{"backward", "stuck", "forward", "free", "struck"}[mode-Backward]
}

// Kernel steps one plant. It is not safe for concurrent use.
type Kernel struct {
	t     *Tables
	h     float64 // period, s
	calls calls

	slips               SparseMatrix // W: slip of each element from the state
	bcT                 SparseMatrix // transpose of Bc
	outX, outV, outTau  SparseMatrix // C, D, Dc
	levels              SparseMatrix // rows of the switches: their level z from the state
	programs            []program
	argRows, argTauRows SparseMatrix // rows of the arguments of all programs, on x and on tau
	terms               []term       // of the arguments that programs read
	blocks              []Block
	bitOf               []blockBit // mc, bit of each friction element in kappa

	plantState             // at plant time
	input        []int     // signals: index of the entry of u that the signal follows, or -1; see Drive
	base         int       // combination of the regions; precomputed: index in Modes of the mode without locks
	slope        []float64 // affine signals, slope in the present regions
	offset       []float64 // affine signals, value at z = 0 in the present regions
	indicatorMax []float64 // event indicators, largest absolute value so far
	fixedSize    []float64 // event indicators, size that their borders give; -1: the size is indicatorMax
	tick         int64     // the step starts at grid time tick·h
	lag          float64   // s
	unconverged  uint64    // substeps in which the law iteration hit its limit
	log          [maxEvents]Event
	keepsLog     bool // the log holds transitions of TakeOver, which belong to the next step

	delayed     []float64 // rings of the delays in Tables.Samples, one after the other
	published   []float64 // m, sources as published at the grid time of tick publishedAt
	publishedAt int64     // tick number; -1: none
	timeTol     float64   // s; two instants closer than this are one
	impacts     []int     // mc, impacts in this advance
	termMax     []float64 // mc, largest term so far in the torque of a contact, N·m; 0 of other elements
	contactTol  []float64 // mc, load of a contact that counts as zero, N·m; 0 of other elements
	heldClosed  []bool    // mc, clearances held in a minimum substep in which they would close

	commands
	held held // of a quiet tick
	substep
	waves
	scratch
	instantLaws
	factor
	sensors
	partition partitionWork // of a plant with a Partition

	sparseWork // of a plant that is stepped sparse

	// Used where the modes are not precomputed:
	lockedMode   Mode // mode of lock set lockedSet in the regions lockedBase
	lockedSet    uint64
	lockedBase   int
	lockedPer    []float64 // mc, by contact: friction torque on its face per torque of the contact in lockedMode
	unlockedMode Mode      // mode without locks of the regions unlockedBase
	unlockedWA   []float64 // mc×n, W·unlockedMode.A
	unlockedBase int
}

// substep holds the signals and the motion over the current substep.
type substep struct {
	length     float64   // s
	w0, w1, w2 []float64 // m+mc, w = w0 + w1·theta + w2·theta²
	capC       []float64 // mc×3, kinetic capacity as a polynomial in theta, N·m
	c          []float64 // (degree+1)×n, Taylor coefficients of x in theta
	degree     int       // degree of the polynomial in use, at most Tables.Degree; lower only where stepped sparse
	slip       []float64 // mc, slip at the start, rad/s
	slip1      []float64 // mc, slip at the end, rad/s
	tau0       []float64 // mc, friction torques at the start, N·m
	torqueTol  float64   // N·m; torques closer than this are equal
	lawValues  []float64 // laws×2, law values at the middle and the end
	lawStart   []float64 // laws, values at the start
	lawMax     []float64 // laws, largest absolute value so far
	lawMaxKept []float64 // laws, lawMax before the law iteration
	sidesKept  []float64 // event indicators, their sides before the law iteration
	onValues   bool      // laws are iterated on the sides that their values have
	sidePassed float64   // side that the event indicator passed last takes
}

// scratch is working memory that holds nothing between calls.
type scratch struct {
	x1, xd          []float64  // n
	w               []float64  // m+mc, w at an instant
	tau             []float64  // mc, friction torques at an instant, N·m
	capNow          []float64  // mc, kinetic capacity at an instant, N·m
	poly            []float64  // the polynomial whose root is sought: max(degree, 2)+1 coefficients, made even by a zero
	modesBefore     []int8     // mc, modes before an event
	atZero          []bool     // mc, a law that is the capacity starts the substep at zero capacity
	rising          []bool     // mc, where atZero: the capacity begins there
	brokeAway       []bool     // mc, inside resolveModes: the element broke away at this instant
	limit           []float64  // mc, largest torque of the element while stuck, N·m
	kinetic         []float64  // mc, torque of the element after it breaks away, N·m
	applied         []float64  // mc, torque of an element outside kappa, N·m
	unlockedAccel   []float64  // mc, slip accelerations without the torques of the elements at rest, rad/s²
	indicatorEnd    []float64  // event indicators, value at the end of the substep, positive on the present side
	mayPass         []bool     // event indicators, can change their side in the substep
	mayChange       []bool     // mc, can change its mode in the substep
	mayLeave        []bool     // switches×2, can leave its region upwards and downwards in the substep
	indicatorMiddle []float64  // the same in the middle of the substep
	trialTau        []float64  // mc, torques tried by solveComplementarity, N·m
	unpressed       []float64  // mc, of a pressed element: its capacity without the contacts, N·m
	pressing        []float64  // mc, of a pressed element: the sign of its torque while the contacts are solved with it, else 0
	impactSlip      []float64  // mc, change of slip in an impact
	partner         []int      // closed contacts that an impact solves for, bits of a block
	trialPer        []float64  // mc, by contact: friction torque on its face per torque of the contact while the lock decision tries it
	atBound         []int8     // mc, the bound of the torque: 1 upper, -1 lower, 0 between them
	savedX          []float64  // n, state before the tick
	savedState      plantState // state kept while the plant advances to a prediction
	stack           []float64  // constants of all programs, then the arguments and the results of one: see bindOperations
	firstArg        int        // place of the first argument in stack
	firstResult     int        // place of the first result in stack

	// Used by correctContact, by switch of the group but contactRegion:
	contact       []contactLevel
	contactC      []float64 // ×(Tables.Degree+1), Taylor coefficients of the levels without their constants
	contactRegion []int     // switches, regions at an instant
}

// New returns a kernel at rest on tables t, which it never changes.
func New(t *Tables) *Kernel {
	n, mc, mw, laws := t.N, t.Mc, t.M+t.Mc, t.M-t.FirstLaw
	vec := func(n int) []float64 { return make([]float64, n) }
	k := &Kernel{
		t: t, h: float64(float64(t.PeriodNs) * 1e-9), calls: newCalls(t), partition: newPartitionWork(t),
		plantState: newPlantState(t), input: make([]int, t.M), indicatorMax: vec(len(t.Indicators)), fixedSize: t.indicatorSizes(),
		slope: vec(t.FirstLaw - t.FirstAffine), offset: vec(t.FirstLaw - t.FirstAffine),
		impacts: make([]int, mc), termMax: vec(mc), contactTol: vec(mc), heldClosed: make([]bool, mc),
		delayed: vec(t.delayedValues()), published: vec(t.M), commands: newCommands(t),
		sensors: sensors{make([]pulse, len(t.Pulses)), make([]int64, len(t.Pulses))},
		substep: substep{
			w0: vec(mw), w1: vec(mw), w2: vec(mw), capC: vec(3 * mc), c: vec((t.Degree + 1) * n), degree: t.Degree,
			slip: vec(mc), slip1: vec(mc), tau0: vec(mc), lawValues: vec(2 * laws), lawStart: vec(laws), lawMax: vec(laws),
			lawMaxKept: vec(laws), sidesKept: vec(len(t.Indicators)),
		},
		instantLaws: newInstantLaws(t),
		scratch: scratch{
			x1: vec(n), xd: vec(n), w: vec(mw), tau: vec(mc), capNow: vec(mc),
			poly: vec((max(t.Degree, 2) + 2) &^ 1), modesBefore: make([]int8, mc), brokeAway: make([]bool, mc),
			atZero: make([]bool, mc), rising: make([]bool, mc),
			limit: vec(mc), kinetic: vec(mc), applied: vec(mc),
			indicatorEnd: vec(len(t.Indicators)), indicatorMiddle: vec(len(t.Indicators)),
			mayPass: make([]bool, len(t.Indicators)), mayChange: make([]bool, mc), mayLeave: make([]bool, 2*len(t.Switches)),
			unpressed: vec(mc), pressing: vec(mc), impactSlip: vec(mc), partner: make([]int, maxImpactPartners),
			unlockedAccel: vec(mc), trialTau: vec(mc), trialPer: vec(mc), atBound: make([]int8, mc),
			savedX: vec(n), savedState: newPlantState(t),
		},
	}
	k.bindRows()
	k.held = held{move: vec(n), rate: vec(n), torque: vec(mc), slope: vec(mc)}
	k.contactRegion = make([]int, len(t.Switches))
	for g := range t.Groups {
		if n := len(t.Groups[g].Switches); n > len(k.contact) {
			k.contact, k.contactC = make([]contactLevel, n), vec(n*(t.Degree+1))
		}
	}
	largest := t.largestBlock()
	k.waves = newWaves(t)
	k.factor = factor{taken: make([]int, largest), l: vec(largest * largest), rhs: vec(largest * (2*n + mw))}
	switch {
	case t.Sparse != nil:
		k.sparseWork = newSparseWork(t, k.lawTrend, k.firstResult-k.firstArg)
	case t.Modes == nil:
		k.lockedPer = vec(mc)
		k.lockedMode = Mode{A: vec(n * n), B: vec(n * mw), T: vec(mc * n), U: vec(mc * mw), P: vec(n * n)}
		k.unlockedMode, k.unlockedWA, k.unlockedBase = t.Open, t.WA, 0
		if len(t.Switches) > 0 {
			k.unlockedMode.A, k.unlockedWA, k.unlockedBase = vec(n*n), vec(mc*n), -1
		}
	}

	k.Reset()
	return k
}

// Dims returns the lengths of u and y.
func (k *Kernel) Dims() (m, p int) { return len(k.t.Inputs), len(k.t.Outputs) }

// Events returns the transitions of the last Step. The slice is reused.
func (k *Kernel) Events() []Event { return k.log[:k.logged] }

// Unconverged returns the number of substeps, including those of predictions, in which the law
// iteration hit its limit: there the laws follow the motion more steeply than their slopes declare.
func (k *Kernel) Unconverged() uint64 { return k.unconverged }

// Reset returns the plant to time 0 and its initial state.
//
//go:nosplit
func (k *Kernel) Reset() {
	for j := range k.input {
		k.input[j] = k.t.Signals[j].Input
	}
	copy(k.x, k.t.X0)
	k.counts = counts{eta: 1}
	k.tick, k.lag, k.torqueTol = 0, 0, 0
	k.clearCommands()
	clear(k.idleShare)
	clear(k.leavingZero)
	clear(k.lawValues)
	clear(k.lawStart)
	clear(k.lawMax)
	if k.t.Sparse != nil {
		copy(k.lawMax, k.t.Sparse.LeastSize)
	}
	clear(k.indicatorMax)
	clear(k.termMax)
	clear(k.contactTol)
	k.resetPulses()
	k.publishedAt, k.held.isSet, k.held.starts, k.held.ends = -1, false, false, false
	clear(k.kappa)
	clear(k.lawTrend)
	k.lockedBase, k.timeTol = -1, minTimeTol
	k.setRegions(k.x)
	for i := range k.mode {
		k.mode[i] = Free
	}
	for i := range k.side {
		k.side[i] = 1
	}
	k.calls.settle(k)
	if len(k.t.Samples) > 0 {
		k.calls.sample(k, true)
		k.calls.settle(k)
	}
	k.events, k.transitions = 0, 0
	k.logged = 0
}

// modeAtSlip returns the mode that element i takes at slip s, rad/s, when it gains capacity.
//
//go:nosplit
func (k *Kernel) modeAtSlip(i int, s float64) int8 {
	switch {
	case s > slipZero:
		return Forward
	case s < -slipZero && !k.t.Friction[i].OneWay:
		return Backward
	}

	return Stuck
}

// Output writes the outputs at the current grid time, as Step does; before the first step at time
// 0.
func (k *Kernel) Output(y []float64) { k.writeOutputs(y) }

// Step advances the plant by one period. u holds the inputs from now on, in SI, up to the changes
// that Change has announced; y receives the outputs at the new grid time.
//
// It panics where the lengths differ from Dims. It does not allocate. Its result depends only on
// the calls since Reset.
//
//go:nosplit
func (k *Kernel) Step(y, u []float64) {
	if len(u) != len(k.t.Inputs) || len(y) != len(k.t.Outputs) {
		panic("kernel: wrong length of u or y")
	}
	if !k.keepsLog {
		k.logged = 0
	}
	k.keepsLog = false
	if k.fault == 0 {
		k.timeTol = minTimeTol + float64(1e-15*k.gridTime())
	}
	if k.t.Quiet && k.calls.stepQuiet(k, y, u) {
		k.tick++
		return
	}
	if k.fault == 0 && k.acceptInputs(u) {
		copy(k.savedX, k.x)
		copy(k.savedPulse, k.pulse)
		if k.t.Confined {
			k.wrapUnfollowed()
		}
		if len(k.t.Samples) > 0 {
			k.calls.sample(k, false)
		}
		k.advanceTick()
	}

	if k.fault != 0 {
		k.repeatInputs()
		clear(k.idleShare)
		k.lag = 0
	}

	k.tick++
	k.writeOutputs(y)
}

// stopIfNotFinite stops a plant whose state is not finite: the state returns to the start of the
// tick and the output "fault" gives the index of the first such state, counted from 1.
//
//go:nosplit
func (k *Kernel) stopIfNotFinite() bool {
	if hasFiniteSum(k.x) {
		return false
	}
	for i, v := range k.x {
		if !(math.Abs(v) <= math.MaxFloat64) {
			k.fault = i + 1
			copy(k.x, k.savedX)
			copy(k.pulse, k.savedPulse)
			return true
		}
	}

	return false
}

// writeOutputs writes y. While lag > 0 the outputs are a prediction for the grid time: the plant
// advances to it and returns.
//
//go:nosplit
func (k *Kernel) writeOutputs(y []float64) {
	step := y[len(y)-5:]
	step[0], step[1], step[2], step[3] = k.eta, k.lag, float64(k.events), float64(k.transitions)
	if k.lag > 0 {
		k.savedState.set(&k.plantState)
		k.advanceTo(-k.lag, 0, false)
	}

	step[4] = float64(k.fault)
	k.writePlantOutputs(y)
	if k.lag > 0 {
		k.restoreState()
	}
}

// restoreState returns from a prediction to the plant time.
//
//go:nosplit
func (k *Kernel) restoreState() {
	k.plantState.set(&k.savedState)
	k.selectCombination()
}

// writePlantOutputs writes the plant's outputs, those of the friction elements and the regions of
// the switches, as they are in the present state at the grid time.
//
//go:nosplit
func (k *Kernel) writePlantOutputs(y []float64) {
	if !k.held.ends {
		k.setSignalsNow(k.x)
		k.calls.setTorques(k, k.x)
		k.slips.mul(k.slip, k.x)
	}
	k.held.ends = false
	k.writePresent(y)
}

// writePresent writes the plant's outputs from the present state, signals, torques and slips.
//
//go:nosplit
func (k *Kernel) writePresent(y []float64) {
	p := len(k.outX.End)
	writeState(k, y, k.x, k.slip)
	k.addSlopeOutputs(y[:p])
	k.writePulses(y)
	for i, s := range k.t.Shown {
		y[p+3*k.t.Mc+i] = float64(k.region[s])
	}
}

// writeState writes the outputs of state x with slips slip, without affine signals, sensors and
// regions. It is a function: generated code has the statements of a function in place of its call, and a
// quiet tick then keeps the state in registers.
//
//go:nosplit
func writeState(k *Kernel, y, x, slip []float64) {
	p := len(k.outX.End)
	k.outX.mul(y[:p], x)
	k.outV.mulAdd(y[:p], k.w)
	k.outTau.mulAdd(y[:p], k.tau)
	for i := range k.mode {
		y[p+3*i] = float64(k.mode[i])
		y[p+3*i+1] = slip[i]
		y[p+3*i+2] = k.tau[i]
	}
}
