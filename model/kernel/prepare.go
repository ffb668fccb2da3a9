package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/units"
)

// Scheme selects what a tick does after an event.
type Scheme string

// Form selects how a lock is held over a substep.
type Form string

const (
	Papers   Scheme = "papers"   // stop at the first event of a tick; the rest of its time goes into the lag
	Complete Scheme = "complete" // finish the tick after the events, within EventBudget

	Projected Form = "projected" // one exact transition matrix per lock set
	Held      Form = "held"      // one transition matrix, lock torque held over the step
)

// Bounds of the tick, which fix its cost before a run.
const (
	maxFrictions    = 64   // bits of a word of kappa
	MaxSplit        = 256  // substeps of a period, at most; a faster plant needs a shorter period
	sparseEventWork = 1200 // states times events located per tick of a sparse plant: equal cost for any length
	minSparseEvents = 2    // events located per tick of a sparse plant, at least
	extraEvents     = 64   // events located per tick beyond the budget, for those that change no mode
	maxPeriod       = time.Hour
	maxHistory      = 2_000_000 // ticks whose commands are kept, at most: a delay of 2 s in steps of 1 us
	maxPlaces       = 64        // instants in a tick at which commands change, at most
	maxDegree       = 24        // degree of the Taylor polynomial, at most; 1/24! is below rounding
)

// Options selects how a plant is put on the grid.
type Options struct {
	Period time.Duration // h; > 0
	Driven []bool        // per System.Inputs: commanded through u, otherwise its own source; nil: all false
	Scheme Scheme        // "" is Complete
	Form   Form          // "" is Projected

	// EventBudget is the number of events completed per tick under Complete; 0 is 16, with
	// clearances 64. For a plant stepped sparse it is the number of events located; 0 is 2 to 80 by
	// its length.
	EventBudget int

	Places int    // instants inside of a tick at which commands may change, at most 64; 0: none, see Kernel.Change
	Ramped []bool // per System.Inputs: the command may be a line with a slope; nil: none; needs Places

	Memory   int           // bytes of precomputed lock sets, 0: 64 MiB; beyond it lock sets are factorised in the tick
	Stepping Stepping      // "" selects by cost
	LagBound time.Duration // lag above which a tick of Papers passes its first event; 0: 3 periods

	Progress func(done, total int) // called with the number of lock sets prepared, of total; nil: not called
}

// Tables is a plant on a grid, made by Prepare: plain data that never changes and can be sent to
// another process.
type Tables struct {
	Name      string
	PeriodNs  int64        // period, ns
	Inputs    []units.Port // u
	Outputs   []units.Port // y
	Start     []float64    // u at rest: the value of each input's own source at time 0
	Frictions []string     // names, in the order of the bits of kappa

	Scheme      Scheme
	Form        Form
	EventBudget int
	EventChecks int     // events located per period
	LagBound    float64 // s

	N, M, Mc       int       // numbers of states, signals and friction elements
	FirstAffine    int       // the signals from this index on are affine in a switch
	FirstLaw       int       // the signals from this index on are laws
	Waves          []int     // signals whose source is not straight between its breakpoints; form projected only
	WaveRate       float64   // rate of the fastest sine or product of sines, rad/s
	LawPressed     []int     // friction elements whose capacity is a law
	PressedAnew    []int     // friction elements whose capacity or torque changes while laws are iterated
	PressedBy      []int     // of LawPressed: event indicator of that law at the offset of the capacity
	PressingLaws   []int     // laws that are a capacity, and those that they read
	WavePressed    []int     // friction elements whose capacity follows a wave
	Capacities     []int     // friction elements with a capacity: all but the clearances
	Constants      []int     // signals with one value for all time: sources that are not inputs
	ConstantValues []float64 // of Constants
	Varying        []int     // the other signals before FirstAffine
	Switches       []Switch
	Shown          []int           // switches whose region is an output
	Groups         []Group         // switches whose regions select slopes together
	Combinations   int             // number of combinations of the classes of all groups
	History        int             // number of past ticks whose u is stored
	Places         int             // instants inside of a tick at which commands may change, at most
	Ramped         []bool          // per input: a command may be a line with a slope
	AnyRamped      bool            // an input is ramped
	RampPressed    []int           // friction elements whose capacity is a ramped input
	Delay          []float64       // s, dead time of each input
	InputSignal    []int           // index of the signal of each input
	Drivable       []int           // inputs that follow their own source until Drive changes that
	FirstState     []int           // the first state on which each input acts
	Steepness      float64         // how fast a law can follow motion, rad/s; sparse: also that of other states
	Indicators     []model.Program // event indicators (System.Guards)
	Reads          []Reads         // inputs of each event indicator
	ReadsTau       bool            // whether a law or an event indicator reads the friction torques
	Iterated       []int           // laws of the law iteration
	Instant        bool            // whether the laws of an instant are solved by solveInstant
	LoopReadsTau   bool            // whether an iterated law, an event indicator or a sample reads the friction torques
	Downstream     []int           // laws that follow from the law iteration: see splitLaws
	Delta          float64         // longest substep, s
	Split          int             // Period / Delta
	Breakpoints    int             // breakpoints of sources within the time that a tick can span, at most
	Quiet          bool            // whether ticks can be quiet: see stepQuiet
	Steady         bool            // whether every signal is constant over a substep: see isSteady
	SteadyTick     bool            // Steady, and no command changes between the last substep of a tick and its end
	DecidesAlone   bool            // whether the lock decision reads no torque of a lock: see decidesAlone
	Timed          bool            // whether a signal can follow a waveform over time
	Degree         int             // degree of the Taylor polynomial of a substep
	Radius         float64         // largest absolute eigenvalue over all modes, rad/s
	X0             []float64       // n
	W              []float64       // mc×n
	Bc             []float64       // n×mc
	Gram           []float64       // mc×mc: W·Bc, slip acceleration per friction torque
	WA, WB         []float64       // mc×n, mc×(m+mc): W·A, W·(B, Bc)
	Friction       []model.Friction
	Clearances     []int     // indices of the friction elements that are clearances
	Confined       bool      // whether switches or clearances exist in regions of other switches only
	Pressed        []int     // friction elements that contacts press: model.Friction.Presses
	PressesOn      []int     // mc, friction element that a contact presses, -1: none; nil without Pressed
	PressesPer     []float64 // mc, capacity of that element per force of the contact
	Faces          []int     // friction on the faces of contacts: model.Friction.Face
	FaceOn         []int     // mc, friction on the face of a contact, -1: none; nil without Faces
	Signals        []Signal
	Pulses         []model.Pulses
	Samples        []Sample
	C, D, Dc       []float64 // p×n, p×m, p×mc
	StateName      []string
	Partition      *Partition    // nil: the plant is stepped as one
	Open           Mode          // no lock, affine signals without their slopes, no Phi and Gamma
	Modes          []Mode        // Combinations·2^mc, ordered by combination, then kappa; nil where they do not fit
	Sparse         *SparseTables // of a plant stepped sparse, which has no Open, Modes, W to Gram, C to Dc
}

// Signal is the origin of one entry of v.
type Signal struct {
	Input  int // index in u, or -1
	Source model.Source
	Law    *model.Program
	Affine *model.Affine
	Wave   int // index in Tables.Waves, or -1
}

// Mode holds the matrices of one lock set; METHOD.md defines the symbols.
type Mode struct {
	Phi []float64 // n×n
	G0  []float64 // n×(m+mc)
	G1  []float64 // n×(m+mc)
	G2  []float64 // n×(m+mc)
	A   []float64 // n×n, the plant projected on the constraint
	B   []float64 // n×(m+mc)
	T   []float64 // mc×n
	U   []float64 // mc×(m+mc)
	P   []float64 // n×n
	R   []float64 // mc×n, of a plant with quiet ticks: slope of a slip, or of the torque of a lock, over a period

	Redundant bool // the locks have fewer independent directions than their number: the torque split is not unique
}

// Bytes returns the memory of the precomputed modes, bytes.
func (t *Tables) Bytes() int {
	total := 0
	for i := range t.Modes {
		m := &t.Modes[i]
		total += 8 * (len(m.Phi) + 3*len(m.G0) + len(m.A) + len(m.B) + len(m.T) + len(m.U) + len(m.P) + len(m.R))
	}

	return total
}

// Prepare discretises sys on a grid of opt.Period and precomputes every lock set.
//
// It fails on a period that is not positive, and on more than 64 friction elements that act on each
// other without elasticity between them. It also fails on a plant too fast for the grid; the
// message names the frequency and a period that fits.
func Prepare(sys *model.System, opt Options) (t *Tables, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			t, err = nil, fmt.Errorf("kernel: plant %q: %w", sys.Name, r.err)
			if r.place != "" {
				err = &PlaceError{r.place, err}
			}
		default:
			panic(r)
		}
	}()

	budget := opt.EventBudget
	if opt, err = completeOptions(sys, opt); err != nil {
		return nil, err
	}
	n, m, mc := len(sys.X0), len(sys.Signals), len(sys.Frictions)
	t = &Tables{
		Name: sys.Name, PeriodNs: opt.Period.Nanoseconds(),
		Scheme: opt.Scheme, Form: opt.Form, Places: opt.Places, Ramped: opt.Ramped,
		EventBudget: opt.EventBudget, EventChecks: opt.EventBudget + extraEvents, LagBound: opt.LagBound.Seconds(),
		N: n, M: m, Mc: mc, X0: sys.X0, W: sys.W, Bc: sys.Bc,
		Friction: sys.Frictions, C: sys.C, D: sys.D, Dc: sys.Dc, Pulses: sys.Pulses,
	}
	for i, f := range sys.Frictions {
		if f.Gap != nil {
			t.Clearances = append(t.Clearances, i)
			t.Confined = t.Confined || len(f.Gap.While) > 0
		} else {
			t.Capacities = append(t.Capacities, i)
		}
	}
	t.bindPressed()
	t.bindFaces()
	for i := range sys.Switches {
		t.Confined = t.Confined || len(sys.Switches[i].While) > 0 || sys.Switches[i].Wrap != nil
	}

	bindSignals(t, sys, opt.Driven)
	bindSwitches(t, sys)
	bindSamples(t, sys)
	t.Reads = t.indicatorReads()
	capacities := make([]bool, t.M)
	for _, i := range t.LawPressed {
		capacities[t.Friction[i].Signal] = true
	}
	t.PressingLaws = t.lawsBehind(capacities)
	t.PressedAnew = t.LawPressed
	if len(t.Faces) > 0 {
		t.PressedAnew = t.Capacities
	}
	t.checkSourcePeriods(sys)
	t.Breakpoints = t.maxBreakpoints()
	listOutputs(t, sys)
	for _, s := range sys.States {
		t.StateName = append(t.StateName, s.Name)
	}
	t.buildModes(sys, opt)
	t.splitLaws(sys)
	t.Quiet, t.Timed, t.Steady, t.DecidesAlone = t.canBeQuiet(), t.isTimed(), t.isSteady(), t.decidesAlone()
	t.SteadyTick = t.Steady && t.Places == 0 && !slices.ContainsFunc(t.Delay, func(d float64) bool { return d > 0 })
	if t.Quiet {
		inParallel(len(t.Modes), func(kappa int) { t.setSlopes(&t.Modes[kappa], kappa) })
	}
	t.clearNegativeZeros()
	if t.Sparse != nil && budget == 0 {
		t.EventBudget = min(max(sparseEventWork/t.N, minSparseEvents), opt.EventBudget+extraEvents)
	}
	if t.Sparse != nil {
		t.EventChecks = t.EventBudget
	}
	return t, nil
}

// refusal is the panic by which functions below Prepare refuse a plant.
type refusal struct {
	place string // FILE:LINE:COL of an element; "": no single element
	err   error
}

// refuse panics with a refusal that names no single element.
func refuse(format string, args ...any) { panic(refusal{"", fmt.Errorf(format, args...)}) }

// completeOptions sets the defaults of opt and checks it against sys.
func completeOptions(sys *model.System, opt Options) (Options, error) {
	gap := slices.IndexFunc(sys.Frictions, func(f model.Friction) bool { return f.Gap != nil })
	if opt.EventBudget == 0 {
		opt.EventBudget = 16
		for _, sw := range sys.Switches {
			opt.EventBudget = min(64, opt.EventBudget+2*len(sw.Borders)) // a stiff spring crosses its boundary repeatedly
		}
		if gap >= 0 {
			opt.EventBudget = 64 // rebounds accumulate
		}
	}

	opt.Scheme, opt.Form = cmp.Or(opt.Scheme, Complete), cmp.Or(opt.Form, Projected)
	opt.Memory, opt.LagBound = cmp.Or(opt.Memory, 64<<20), cmp.Or(opt.LagBound, 3*opt.Period)
	if opt.Driven == nil {
		opt.Driven = make([]bool, len(sys.Inputs))
	}
	if opt.Ramped == nil {
		opt.Ramped = make([]bool, len(sys.Inputs))
	}
	if sys.Partition != nil {
		opt.Stepping = cmp.Or(opt.Stepping, Dense)
	}

	switch {
	case opt.Form == Held && gap >= 0: // the rest of a step after an impact cannot be interpolated
		return opt, fmt.Errorf("kernel: plant %q: element %q: form %q holds the force of a contact over a step, "+
			"so the contact chatters; use form %q", sys.Name, sys.Frictions[gap].Name, Held, Projected)
	case opt.Period <= 0:
		return opt, fmt.Errorf("kernel: period %v is not positive", opt.Period)
	case opt.Period > maxPeriod:
		return opt, fmt.Errorf("kernel: period %v is longer than %v", opt.Period, maxPeriod)
	case opt.Scheme != Papers && opt.Scheme != Complete:
		return opt, fmt.Errorf("kernel: scheme %q is neither %q nor %q", opt.Scheme, Papers, Complete)
	case sys.Partition != nil && opt.Stepping != Dense:
		return opt, &PlaceError{sys.Partition.Place, fmt.Errorf("kernel: plant %q: partition: stepping %q "+
			"cannot step a plant in two parts; use stepping %q", sys.Name, opt.Stepping, Dense)}
	case sys.Partition != nil && opt.Places > 0:
		return opt, &PlaceError{sys.Partition.Place, fmt.Errorf("kernel: plant %q: partition: a plant in two parts "+
			"takes its inputs at the start of a step, not inside of it: no inputs_at: arrival, no ramp", sys.Name)}
	case sys.Partition != nil && len(sys.Samples) > 0:
		return opt, &PlaceError{sys.Samples[0].Place, fmt.Errorf("kernel: plant %q: element %q: a plant in two parts "+
			"cannot set states at ticks; leave the partition or the element out", sys.Name, sys.Samples[0].Name)}
	case opt.Places < 0 || opt.Places > maxPlaces:
		return opt, fmt.Errorf("kernel: %d places for changes in a step are not from 0 to %d", opt.Places, maxPlaces)
	case len(opt.Ramped) != len(sys.Inputs):
		return opt, fmt.Errorf("kernel: %d entries in Ramped; the plant has %d inputs", len(opt.Ramped), len(sys.Inputs))
	case opt.Places == 0 && slices.Contains(opt.Ramped, true):
		return opt, errors.New("kernel: a ramped input needs places for changes in a step")
	case opt.Form != Projected && opt.Form != Held:
		return opt, fmt.Errorf("kernel: form %q is neither %q nor %q", opt.Form, Projected, Held)
	case opt.EventBudget < 1:
		return opt, fmt.Errorf("kernel: event budget %d is below 1", opt.EventBudget)
	case opt.LagBound < opt.Period:
		return opt, fmt.Errorf("kernel: lag bound %v is below the period %v", opt.LagBound, opt.Period)
	case len(opt.Driven) != len(sys.Inputs):
		return opt, fmt.Errorf("kernel: %d entries in Driven; the plant has %d inputs", len(opt.Driven), len(sys.Inputs))
	case len(sys.X0) == 0:
		return opt, fmt.Errorf("kernel: plant %q has no state: it has no inertia that can move", sys.Name)
	case len(sys.Frictions) > maxFrictions && (opt.Stepping == Dense || opt.Form == Held):
		return opt, fmt.Errorf("kernel: plant %q has %d friction elements; at most %d are possible",
			sys.Name, len(sys.Frictions), maxFrictions)
	}

	return opt, nil
}

// bindSignals lists the signals and the inputs with their dead times. driven says which inputs u
// commands.
func bindSignals(t *Tables, sys *model.System, driven []bool) {
	t.FirstLaw, t.Indicators = len(sys.Signals), slices.Clone(sys.Guards)
	for j, s := range sys.Signals {
		t.Signals = append(t.Signals, Signal{Input: -1, Wave: -1, Source: s.Source, Law: s.Law, Affine: s.Affine})
		if s.Law != nil {
			t.FirstLaw = min(t.FirstLaw, j)
		}
	}

	t.FirstAffine = t.FirstLaw
	for t.FirstAffine > 0 && t.Signals[t.FirstAffine-1].Affine != nil {
		t.FirstAffine--
	}
	t.addCapacityIndicators()
	for _, p := range t.programs() {
		for _, a := range p.Args {
			t.ReadsTau = t.ReadsTau || a.Tau != nil
		}
	}

	h, longest := float64(t.PeriodNs)*1e-9, 0.0
	for i, in := range sys.Inputs {
		t.Inputs = append(t.Inputs, in.Port)
		t.Start = append(t.Start, sourceAt(&sys.Signals[in.Signal].Source, 0, 0))
		t.Delay = append(t.Delay, in.Delay)
		t.InputSignal = append(t.InputSignal, in.Signal)
		t.FirstState = append(t.FirstState, firstStateOf(sys, in.Signal))
		t.AnyRamped = t.AnyRamped || t.Ramped[i]
		longest = max(longest, in.Delay)
		if driven[i] {
			t.Signals[in.Signal].Input = i
		} else {
			t.Drivable = append(t.Drivable, i)
			t.Signals[in.Signal].Source = delayed(sys.Signals[in.Signal].Source, in.Delay)
		}
	}

	for i, f := range sys.Frictions {
		s := &t.Signals[f.Signal]
		s.Source = splitAtOffset(s.Source, f.Offset)
		if s.Input >= 0 && t.Ramped[s.Input] {
			t.RampPressed = append(t.RampPressed, i)
		}
	}

	if !(longest/h <= maxHistory-64) {
		refuse("an input is delayed by %.9g s, more than %d steps of %v; take a step of at least %v", longest, maxHistory-64,
			time.Duration(t.PeriodNs), time.Duration(math.Ceil(longest/(maxHistory-64)*1e9)))
	}
	t.History = int(longest/h) + t.maxPeriods() + 2
	if t.Form == Projected && sys.Partition == nil {
		t.bindWaves()
	}
	for j := range t.Signals[:t.FirstAffine] {
		if s := &t.Signals[j].Source; isConstant(s) && !slices.Contains(t.InputSignal, j) {
			t.Constants, t.ConstantValues = append(t.Constants, j), append(t.ConstantValues, sourceAt(s, 0, 0))
		} else {
			t.Varying = append(t.Varying, j)
		}
	}
}

// addCapacityIndicators adds an event indicator for each law that is a capacity: it crosses 0 where
// the capacity begins or ends.
func (t *Tables) addCapacityIndicators() {
	type zero struct {
		signal int
		offset float64
	}

	of := map[zero]int{}
	for i, f := range t.Friction {
		law := t.Signals[f.Signal].Law
		if law == nil {
			continue
		}
		z := zero{f.Signal, f.Offset}
		if _, ok := of[z]; !ok {
			of[z] = len(t.Indicators)
			p := *law
			p.Ops = append(slices.Clone(law.Ops), model.Op{Code: model.Push, Value: f.Offset}, model.Op{Code: model.Sub})
			t.Indicators = append(t.Indicators, p)
		}
		t.LawPressed, t.PressedBy = append(t.LawPressed, i), append(t.PressedBy, of[z])
	}
}

// firstStateOf returns the first state on which signal j acts, directly or as the capacity of a
// friction element; 0 where it acts through a law.
func firstStateOf(sys *model.System, j int) int {
	m, mc := len(sys.Signals), len(sys.Frictions)
	var pressed []int
	for f, k := range sys.Frictions {
		if k.Signal == j {
			pressed = append(pressed, f)
		}
	}
	for i := range sys.X0 {
		if sys.B[i*m+j] != 0 || slices.ContainsFunc(pressed, func(f int) bool { return sys.Bc[i*mc+f] != 0 }) {
			return i
		}
	}

	return 0
}

// programs returns the programs of the laws, followed by those of the event indicators and the samples.
func (t *Tables) programs() []*model.Program {
	var list []*model.Program
	for _, s := range t.Signals[t.FirstLaw:] {
		list = append(list, s.Law)
	}
	for i := range t.Indicators {
		list = append(list, &t.Indicators[i])
	}
	for i := range t.Samples {
		list = append(list, &t.Samples[i].Value)
	}
	return list
}

// listOutputs names y: the plant's own outputs, three per friction element, the region of each
// switch counted from 0, and five of the step itself.
func listOutputs(t *Tables, sys *model.System) {
	inf := math.Inf(1)
	port := func(name, unit string, lo, hi float64) {
		t.Outputs = append(t.Outputs, units.Port{Name: name, Unit: unit, Min: lo, Max: hi})
	}
	t.Outputs = append(t.Outputs, sys.Outputs...)
	for _, f := range sys.Frictions {
		t.Frictions = append(t.Frictions, f.Name)
		port(f.Name+".mode", "1", -1, 2)
		if f.Translational {
			port(f.Name+".v_rel", "m/s", -inf, inf)
			port(f.Name+".f", "N", -inf, inf)
			continue
		}

		port(f.Name+".w_rel", "rad/s", -inf, inf)
		port(f.Name+".tau", "N.m", -inf, inf)
	}

	for i, s := range sys.Switches {
		if !s.Inner {
			t.Shown = append(t.Shown, i)
			port(s.Name+".region", "1", 0, float64(len(s.Borders)))
		}
	}
	port("eta", "1", 0, 1)
	port("lag", "s", 0, inf)
	port("events", "1", 0, inf)
	port("transitions", "1", 0, inf)
	port("fault", "1", 0, float64(len(sys.X0)))
}

// OutputForm tells what the values of an output are.
type OutputForm struct {
	About   string   // description; "" for an output of the plant file
	Integer bool     // the values are whole numbers
	Modes   []string // names of the values Backward, Backward+1 and so on; nil: not a mode
}

// OutputForm returns the form of output i: see listOutputs.
func (t *Tables) OutputForm(i int) OutputForm {
	steps := [...]OutputForm{
		{About: "instant of the first event within the step as a fraction of it; 1 without an event"},
		{About: "time by which the plant is behind the grid"},
		{About: "number of events since the start", Integer: true},
		{About: "number of changes of mode since the start", Integer: true},
		{About: "0, or the number from 1 of the state that is not finite", Integer: true},
	}
	region := len(t.Outputs) - len(steps) - len(t.Shown)
	mode := region - 3*t.Mc
	switch {
	case i < mode:
		return OutputForm{}
	case i < region:
		of := " of friction element " + t.Frictions[(i-mode)/3]
		if what := (i - mode) % 3; what != 0 {
			return OutputForm{About: [...]string{"", "slip", "torque or force"}[what] + of}
		}
		names := make([]string, 0, 4)
		for m := Backward; m <= Free; m++ {
			names = append(names, modeName(m))
		}
		return OutputForm{About: "mode" + of, Integer: true, Modes: names}
	case i < region+len(t.Shown):
		return OutputForm{About: "region of " + t.Switches[t.Shown[i-region]].Name + ", from 0", Integer: true}
	}
	return steps[i-region-len(t.Shown)]
}

// PlaceError is an error caused by one place of a plant file.
type PlaceError struct {
	Place string // FILE:LINE:COL of the element or section
	Err   error
}

func (e *PlaceError) Error() string { return e.Place + ": " + e.Err.Error() }

func (e *PlaceError) Unwrap() error { return e.Err }

// TooFastError refuses a period in which the fastest mode of a plant needs more than MaxSplit
// substeps.
type TooFastError struct {
	Rate    float64       // of the fastest mode, rad/s
	Element string        // name of the element that causes the rate; "": no single one
	Period  time.Duration // the refused period
	Fit     time.Duration // a period that fits; 0: none is long enough
}

func (e *TooFastError) Error() string {
	name, hint := "", "; none is short enough, is a unit wrong?"
	if e.Element != "" {
		name = fmt.Sprintf(" of %q", e.Element)
	}
	if e.Fit > 0 {
		hint = fmt.Sprintf("; %v would fit", e.Fit)
	}
	return fmt.Sprintf("its fastest mode, %.4g rad/s (%.4g Hz)%s, is too fast for a period of %v%s",
		e.Rate, e.Rate/(2*math.Pi), name, e.Period, hint)
}
