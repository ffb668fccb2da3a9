package kernel

import (
	"math"
	"strconv"
)

// States of a friction element, as in the Modelica Standard Library.
const (
	Backward int8 = -1 // slips, w_rel < 0
	Stuck    int8 = 0
	Forward  int8 = 1 // slips, w_rel > 0
	Free     int8 = 2 // no capacity, no torque
)

// maxEvents is the room for the transitions of one tick; more are counted only.
const maxEvents = 64

// slipZero is the slip below which an element at rest counts as at rest, rad/s:
// far above the rounding of a projected state, far below anything measurable.
const slipZero = 1e-9

// Event is one transition of a friction element, or a switch that leaves a region.
type Event struct {
	Time     float64 // plant time, s
	Friction int     // index into Tables.Frictions; len(Frictions) + i is Tables.Switches[i]
	From, To int8    // modes, Struck is one as well; regions of a switch
}

// Names are those of an event: the element, and what it was and became. The region of
// a switch is its number, counted from 0.
func (t *Tables) Names(e Event) (element, from, to string) {
	if s := e.Friction - t.Mc; s >= 0 {
		return t.Switches[s].Name, strconv.Itoa(int(e.From)), strconv.Itoa(int(e.To))
	}
	return t.Frictions[e.Friction], modeName(e.From), modeName(e.To)
}

// modeName is the name of a friction element's state, as in the database.
func modeName(mode int8) string {
	switch mode {
	case Backward:
		return "backward"
	case Stuck:
		return "stuck"
	case Forward:
		return "forward"
	case Struck:
		return "struck"
	}
	return "free"
}

// Kernel steps one plant. It is not safe for concurrent use.
type Kernel struct {
	t     *Tables
	h     float64 // period, s
	calls calls

	slips              Sparse // W
	pushes             Sparse // transpose of Bc
	outX, outV, outTau Sparse // C, D, Dc
	levels             Sparse // rows of the switches
	programs           []program
	reads, readsTau    Sparse // rows of the arguments of all programs
	blocks             []Block
	home               []home

	x      []float64 // n, state at plant time
	input  []int     // signals: the entry of u that it follows, or -1; see Drive
	kappa  []uint64  // lock set of each block: Stuck elements, of redundant ones as many as there are directions
	mode   []int8    // mc
	region []int     // switches
	base   int       // their combination; where Modes are precomputed, its open mode among them
	side   []float64 // guards, +1 or -1
	reach  []float64 // guards, largest value so far
	tick   int64     // grid time at the start of the step is tick·h
	lag    float64   // s
	eta    float64   // 1: no event in the last step
	fault  int       // 1 + index of the state that became non-finite

	events, transitions uint64
	unsettled           uint64 // pieces
	log                 [maxEvents]Event
	logged              int // of it in use

	history    []float64 // History×inputs: the commands of the last ticks
	latest     int64     // tick of the last command
	nextSource float64   // next corner of a source, s
	shown      []float64 // m, sources as published at the grid time of tick shownAt
	shownAt    int64
	gap        float64 // two instants closer than this are one, s
	stalled    int     // events since the plant time last moved
	struck     []int   // mc, impacts of this travel
	shutIn     []bool  // mc, gaps held in a stride that would close in it

	piece
	scratch
	factor
	sensors
	parts parts

	net // of a plant that is stepped sparse

	// Where the modes are not precomputed:
	built     Mode // of lock set builtFor in the regions builtBase
	builtFor  uint64
	builtBase int
	bent      Mode      // the open mode of the regions bentFor
	bentWA    []float64 // mc×n, W·bent.A
	bentFor   int
}

// piece is what is known about the part of the step being walked.
type piece struct {
	length     float64   // s
	w0, w1, w2 []float64 // m+mc
	capC       []float64 // mc×3, kinetic capacity as a polynomial in theta
	c          []float64 // (degree+1)×n Taylor coefficients of x in theta
	degree     int       // of them: that of the tables, or less where a piece is stepped sparse
	slip       []float64 // mc, at its start
	slip1      []float64 // mc, at its end
	tau0       []float64 // mc, friction torques at its start, N·m
	noise      float64   // N·m: torques closer than this are equal
	fresh      []bool    // mc: broke away and has not left slipZero yet
	split      []float64 // mc, torque of idle elements: see idleTorque
	lawAt      []float64 // laws×2, their values at the middle and the end
	begunAt    []float64 // laws, their values at the start
	size       []float64 // laws, largest value so far
}

// scratch is room that holds nothing between calls.
type scratch struct {
	x1, xd  []float64   // n
	w       []float64   // m+mc, w at an instant
	tau     []float64   // mc
	capNow  []float64   // mc, kinetic capacity at an instant
	poly    []float64   // max(degree, 2)+1
	before  []int8      // mc, modes before an event
	broken  []bool      // mc, inside resolve: broke away at this instant
	limit   []float64   // mc, what an element can carry while stuck, N·m
	drag    []float64   // mc, what it transmits when it breaks, N·m
	give    []float64   // mc, torque of an element outside kappa, N·m
	rate    []float64   // mc, slip accelerations without the elements at rest, rad/s²
	args    []float64   // arguments of a program
	trial   []float64   // mc, torques tried by balance, N·m
	place   []int8      // mc, the bound at which they stand
	save    []float64   // n, state before the tick
	present moment      // kept while the plant goes ahead
	stack   [16]float64 // model.MaxStack
}

// New makes a kernel at rest on its tables, which it never changes.
func New(t *Tables) *Kernel {
	n, mc, mw, laws := t.N, t.Mc, t.M+t.Mc, t.M-t.FirstLaw
	vec := func(n int) []float64 { return make([]float64, n) }
	k := &Kernel{
		t: t, h: float64(t.PeriodNs) * 1e-9, calls: newCalls(t), parts: newParts(t),
		x: vec(n), input: make([]int, t.M), mode: make([]int8, mc), region: make([]int, len(t.Switches)), side: vec(len(t.Guards)), reach: vec(len(t.Guards)),
		struck: make([]int, mc), shutIn: make([]bool, mc), history: vec(t.History * len(t.Inputs)), shown: vec(t.M), shownAt: -1,
		sensors: sensing(t),
		piece: piece{
			w0: vec(mw), w1: vec(mw), w2: vec(mw), capC: vec(3 * mc), c: vec((t.Degree + 1) * n),
			slip: vec(mc), slip1: vec(mc), tau0: vec(mc), fresh: make([]bool, mc), split: vec(mc), lawAt: vec(2 * laws), begunAt: vec(laws), size: vec(laws),
		},
		scratch: scratch{
			x1: vec(n), xd: vec(n), w: vec(mw), tau: vec(mc), capNow: vec(mc),
			poly: vec(max(t.Degree, 2) + 1), before: make([]int8, mc), broken: make([]bool, mc),
			limit: vec(mc), drag: vec(mc), give: vec(mc), rate: vec(mc), trial: vec(mc), place: make([]int8, mc),
			save:    vec(n),
			present: moment{x: vec(n), split: vec(mc), mode: make([]int8, mc), fresh: make([]bool, mc), side: vec(len(t.Guards)), region: make([]int, len(t.Switches)), pulse: make([]pulse, len(t.Pulses))},
		},
	}
	k.degree = t.Degree
	k.bind()
	most := t.largestBlock()
	k.factor = factor{taken: make([]int, most), l: vec(most * most), rhs: vec(most * (2*n + mw))}
	if t.Net != nil {
		k.net, k.present.trend = newNet(t), vec(t.trends())
		k.Reset()
		return k
	}
	if t.Modes == nil {
		k.built = Mode{A: vec(n * n), B: vec(n * mw), T: vec(mc * n), U: vec(mc * mw), P: vec(n * n)}
		k.bent, k.bentWA, k.bentFor = t.Open, t.WA, 0
		if len(t.Switches) > 0 {
			k.bent.A, k.bentWA, k.bentFor = vec(n*n), vec(mc*n), -1
		}
	}
	k.Reset()
	return k
}

// Dims are the lengths of u and y.
func (k *Kernel) Dims() (m, p int) { return len(k.t.Inputs), len(k.t.Outputs) }

// Events are the transitions of the last Step. The slice is reused.
func (k *Kernel) Events() []Event { return k.log[:k.logged] }

// Unsettled is in how many pieces, those of predictions too, the laws had not come to rest
// when their rounds were spent: they follow the motion more steeply than their slopes say.
func (k *Kernel) Unsettled() uint64 { return k.unsettled }

// Reset puts the plant back to time 0 and its initial state.
func (k *Kernel) Reset() {
	for j := range k.input {
		k.input[j] = k.t.Signals[j].Input
	}
	copy(k.x, k.t.X0)
	k.tick, k.latest, k.lag, k.eta, k.fault, k.stalled, k.noise = 0, -1, 0, 1, 0, 0, 0
	for i := range k.t.History {
		copy(k.past(int64(i)), k.t.Start)
	}
	clear(k.split)
	clear(k.fresh)
	clear(k.lawAt)
	clear(k.begunAt)
	clear(k.size)
	clear(k.reach)
	k.resetPulses()
	k.shownAt = -1
	clear(k.kappa)
	clear(k.trend)
	k.builtBase, k.nextSource, k.gap = -1, 0, cornerGap
	k.locate(k.x)
	for i := range k.mode {
		k.mode[i] = Free
	}
	for i := range k.side {
		k.side[i] = 1
	}
	k.sources(k.x, 0, min(k.t.Delta, k.corner(0)))
	for i := range k.side {
		if k.run(k.guard(i), k.x, k.w0[:k.t.M]) < 0 {
			k.side[i] = -1
		}
	}
	k.sources(k.x, 0, k.length)
	k.slips.mul(k.slip, k.x)
	k.collide(k.closing()) // a freewheel that the plant starts against its direction
	k.relocate(0)
	k.begin(0)
	k.events, k.transitions = 0, 0
	k.logged = 0
}

// rest is the mode element i takes at slip s when it becomes active.
//
//go:nosplit
func (k *Kernel) rest(i int, s float64) int8 {
	switch {
	case s > slipZero:
		return Forward
	case s < -slipZero && !k.t.Friction[i].OneWay:
		return Backward
	}
	return Stuck
}

// Output writes the outputs at the current grid time, as Step does: at time 0
// before the first step.
func (k *Kernel) Output(y []float64) { k.publish(y) }

// Step takes the plant from one grid time to the next: u holds the inputs from
// now on, in SI, y receives the outputs at the new grid time.
//
// It panics where the lengths are not those of Dims. It does not allocate, and
// what it computes depends on nothing but the calls since Reset.
//
//go:nosplit
func (k *Kernel) Step(y, u []float64) {
	if len(u) != len(k.t.Inputs) || len(y) != len(k.t.Outputs) {
		panic("kernel: wrong length of u or y")
	}
	k.logged = 0
	if k.fault == 0 && k.accept(u) {
		k.gap = cornerGap + 1e-15*k.grid()
		copy(k.save, k.x)
		copy(k.saved, k.pulse)
		k.advance()
	}
	if k.fault != 0 {
		copy(k.past(k.tick), k.past(k.tick-1))
		clear(k.split)
		k.lag = 0
	}
	k.tick++
	k.publish(y)
}

// accept takes the inputs of a tick. One that is driven and not finite stops the
// plant: the fault names a state that it acts on, and the last inputs remain.
//
//go:nosplit
func (k *Kernel) accept(u []float64) bool {
	for i, j := range k.t.InputSignal {
		if k.input[j] >= 0 && !(math.Abs(u[i]) <= math.MaxFloat64) {
			k.fault = 1 + k.t.drives(j)
			return false
		}
	}
	copy(k.past(k.tick), u)
	k.latest = k.tick
	return true
}

// past is where the inputs given at a tick are kept: for as many ticks as the lag
// and the longest dead time span. Before the first they are those of Tables.Start.
//
//go:nosplit
func (k *Kernel) past(tick int64) []float64 {
	m, ring := len(k.t.Inputs), int64(k.t.History)
	at := int((tick+ring)%ring) * m
	return k.history[at : at+m]
}

// failed stops a plant whose state is no longer finite: it stays where the tick
// began and the output "fault" names the first such state.
//
//go:nosplit
func (k *Kernel) failed() bool {
	for i, v := range k.x {
		if !(math.Abs(v) <= math.MaxFloat64) {
			k.fault = i + 1
			copy(k.x, k.save)
			copy(k.pulse, k.saved)
			return true
		}
	}
	return false
}

// publish writes y. While lag > 0 it is the prediction for the grid time: the
// plant goes there and back.
//
//go:nosplit
func (k *Kernel) publish(y []float64) {
	step := y[len(y)-5:]
	step[0], step[1], step[2], step[3] = k.eta, k.lag, float64(k.events), float64(k.transitions)
	if k.lag > 0 {
		k.present.take(k)
		k.travel(-k.lag, 0, false)
	}
	step[4] = float64(k.fault)
	k.show(y)
	if k.lag > 0 {
		k.present.restore(k)
	}
}

// show writes the plant's own outputs and those of the friction elements as they
// are at the grid time.
//
//go:nosplit
func (k *Kernel) show(y []float64) {
	k.now(k.x)
	k.calls.torques(k, k.x)
	p := len(k.outX.End)
	k.outX.mul(y[:p], k.x)
	k.outV.mulAdd(y[:p], k.w)
	k.outTau.mulAdd(y[:p], k.tau)
	k.showSlopes(y[:p])
	k.showPulses(y)
	k.slips.mul(k.slip, k.x)
	for i := range k.mode {
		y[p+3*i] = float64(k.mode[i])
		y[p+3*i+1] = k.slip[i]
		y[p+3*i+2] = k.tau[i]
	}
	for s, r := range k.region {
		y[p+3*k.t.Mc+s] = float64(r)
	}
}
