package kernel

import (
	"errors"
	"fmt"
	"math"
	"time"

	"lockstep/model"
	"lockstep/model/units"
)

// Scheme says what a tick does after an event.
type Scheme string

// Form says how a lock is held over a piece.
type Form string

const (
	Papers   Scheme = "papers"   // one eta step per tick, the rest goes into the lag buffer
	Complete Scheme = "complete" // finish the tick after the event, within EventBudget

	Projected Form = "projected" // one exact transition matrix per lock set
	Held      Form = "held"      // one transition matrix, lock torque held over the step
)

// Bounds of the tick. They are what makes its cost known before a run.
const (
	maxFrictions = 64   // bits of kappa
	maxSplit     = 256  // pieces of a step, at most: a faster plant wants a finer grid
	sparseLooks  = 1200 // states times the events that a tick of a long plant looks for, so that all of them
	leastLooks   = 2    // cost about the same in a plant of any length; and so many at least
	extraEvents  = 64   // events a tick looks for beyond its budget: those that move nothing
	maxDegree    = 24   // of the Taylor polynomial; 1/24! is below rounding
)

// Options fix how a plant is put on the grid.
type Options struct {
	Period      time.Duration // h; > 0
	Driven      []bool        // per System.Inputs: driven from outside; otherwise its own source. nil: none
	Scheme      Scheme        // "" is Complete
	Form        Form          // "" is Projected
	EventBudget int           // events completed per tick under Complete; 0 is 16, with gaps 64; of a plant stepped sparse those that are located, 0 is 2 to 80 by its length
	Memory      int           // bytes that precomputed lock sets may take; 0 is 64 MiB. Beyond it they are factorised in the tick
	Stepping    Stepping      // "" chooses by cost
	LagBound    time.Duration // lag from which a tick of Papers no longer stops at its first event; 0 is 3 periods
}

// Tables is a plant on a grid: plain data that never changes, made by Prepare,
// fit to be sent to another process.
type Tables struct {
	Name      string
	PeriodNs  int64
	Inputs    []units.Port // of u
	Outputs   []units.Port // of y
	Start     []float64    // u at rest: what each input's own source gives at time 0
	Frictions []string     // names, in the order of the bits of kappa

	Scheme      Scheme
	Form        Form
	EventBudget int
	Looks       int     // events that a tick looks for, in each period that it spans
	LagBound    float64 // s

	N, M, Mc     int
	FirstAffine  int // the signals from here on are affine in a switch
	FirstLaw     int // and from here on laws
	Switches     []Switch
	Combinations int       // of the classes of all switches
	History      int       // ticks of commands kept
	Delay        []float64 // s, dead time of each input
	InputSignal  []int     // the signal of each input
	Steepness    float64   // how fast a law can follow the motion it causes, rad/s
	Guards       []model.Program
	Reads        []Reads // of each guard
	ReadsTau     bool    // a law or a guard reads the friction torques
	Delta        float64 // longest piece, s
	Split        int     // Period / Delta
	Corners      int     // of sources in the time one tick can span, at most
	Degree       int     // of the Taylor polynomial of a piece
	Radius       float64 // largest eigenvalue over all modes, rad/s
	X0           []float64
	W            []float64 // mc×n
	Bc           []float64 // n×mc
	Gram         []float64 // mc×mc: W·Bc, slip accelerations per friction torque
	WA, WB       []float64 // mc×n, mc×(m+mc): W·A, W·(B, Bc)
	Friction     []model.Friction
	Gapped       []int // those that are gaps
	Signals      []Signal
	Pulses       []model.Pulses
	C, D, Dc     []float64 // p×n, p×m, p×mc
	StateName    []string
	Partition    *Partition // nil: stepped as one
	Open         Mode       // no lock, affine signals without their slopes; without Phi and Gamma
	Modes        []Mode     // Combinations·2^mc, the lock sets of each by kappa; nil where they do not fit
	Net          *Net       // of a plant that is stepped sparse, which has no Open, Modes, W to Gram, C to Dc
}

// Signal is where one entry of v comes from.
type Signal struct {
	Input  int // index in u, or -1
	Source model.Source
	Law    *model.Program
	Affine *model.Affine
}

// Mode holds the matrices of one lock set; see the table of symbols.
type Mode struct {
	Phi  []float64 // n×n
	G0   []float64 // n×(m+mc)
	G1   []float64 // n×(m+mc)
	G2   []float64 // n×(m+mc)
	A    []float64 // n×n, the plant on the constraint
	B    []float64 // n×(m+mc)
	T    []float64 // mc×n
	U    []float64 // mc×(m+mc)
	P    []float64 // n×n
	Rank int       // directions the locks take; less than their number where the split of the torque is not unique
}

// Bytes is the memory of the precomputed modes.
func (t *Tables) Bytes() int {
	total := 0
	for i := range t.Modes {
		m := &t.Modes[i]
		total += 8 * (len(m.Phi) + 3*len(m.G0) + len(m.A) + len(m.B) + len(m.T) + len(m.U) + len(m.P))
	}
	return total
}

// Prepare discretises sys on a grid of opt.Period and precomputes every lock set.
//
// It fails on a period that is not positive, on more than 64 friction elements that act
// on each other with nothing elastic between them, and on a plant too fast for the grid
// (the message names the frequency and a period that fits).
func Prepare(sys *model.System, opt Options) (*Tables, error) {
	budget := opt.EventBudget
	opt, err := complete(sys, opt)
	if err != nil {
		return nil, err
	}
	n, m, mc := len(sys.X0), len(sys.Signals), len(sys.Frictions)
	t := &Tables{
		Name: sys.Name, PeriodNs: opt.Period.Nanoseconds(),
		Scheme: opt.Scheme, Form: opt.Form, EventBudget: opt.EventBudget, Looks: opt.EventBudget + extraEvents, LagBound: opt.LagBound.Seconds(),
		N: n, M: m, Mc: mc, X0: sys.X0, W: sys.W, Bc: sys.Bc,
		Friction: sys.Frictions, C: sys.C, D: sys.D, Dc: sys.Dc, Pulses: sys.Pulses,
	}
	for i, f := range sys.Frictions {
		if f.Gap != nil {
			t.Gapped = append(t.Gapped, i)
		}
	}
	bindSignals(t, sys, opt.Driven)
	bindSwitches(t, sys)
	t.Reads = t.reads()
	t.Corners = t.corners()
	listOutputs(t, sys)
	for _, s := range sys.States {
		t.StateName = append(t.StateName, s.Name)
	}
	if err := t.buildModes(sys, opt); err != nil {
		return nil, err
	}
	t.unsign()
	if t.Net != nil && budget == 0 {
		t.EventBudget = min(max(sparseLooks/t.N, leastLooks), opt.EventBudget+extraEvents)
	}
	if t.Net != nil {
		t.Looks = t.EventBudget
	}
	return t, nil
}

func complete(sys *model.System, opt Options) (Options, error) {
	if opt.Scheme == "" {
		opt.Scheme = Complete
	}
	if opt.Form == "" {
		opt.Form = Projected
	}
	if opt.EventBudget == 0 {
		opt.EventBudget = 16
		for _, sw := range sys.Switches {
			opt.EventBudget = min(64, opt.EventBudget+2*len(sw.Borders)) // a stiff spring is passed to and fro
		}
		for _, f := range sys.Frictions {
			if f.Gap != nil {
				opt.EventBudget = 64 // rebounds come in piles
			}
		}
	}
	if opt.Memory == 0 {
		opt.Memory = 64 << 20
	}
	if opt.LagBound == 0 {
		opt.LagBound = 3 * opt.Period
	}
	if opt.Driven == nil {
		opt.Driven = make([]bool, len(sys.Inputs))
	}
	if sys.Partition != nil && opt.Stepping == "" {
		opt.Stepping = Dense
	}
	if opt.Form == Held {
		for _, f := range sys.Frictions {
			if f.Gap != nil { // the part of a step behind an impact is no part of the whole
				return opt, fmt.Errorf("kernel: plant %q: %w", sys.Name, &OptionError{"form", string(Held), f.Name,
					fmt.Sprintf("holds the force of a contact over a step, in which it chatters; take form %q", Projected)})
			}
		}
	}
	switch {
	case opt.Period <= 0:
		return opt, fmt.Errorf("kernel: period %v is not positive", opt.Period)
	case opt.Scheme != Papers && opt.Scheme != Complete:
		return opt, fmt.Errorf("kernel: scheme %q is neither %q nor %q", opt.Scheme, Papers, Complete)
	case sys.Partition != nil && opt.Stepping != Dense:
		return opt, &PlaceError{sys.Partition.Place, fmt.Errorf("kernel: plant %q: partition: %w", sys.Name, &OptionError{"stepping", string(opt.Stepping), "",
			fmt.Sprintf("is another way to step; take stepping %q", Dense)})}
	case opt.Form != Projected && opt.Form != Held:
		return opt, fmt.Errorf("kernel: form %q is neither %q nor %q", opt.Form, Projected, Held)
	case opt.EventBudget < 1:
		return opt, fmt.Errorf("kernel: event budget %d is below 1", opt.EventBudget)
	case opt.LagBound < opt.Period:
		return opt, fmt.Errorf("kernel: lag bound %v is below the period %v", opt.LagBound, opt.Period)
	case len(opt.Driven) != len(sys.Inputs):
		return opt, errors.New("kernel: len(Driven) is not the number of inputs")
	case len(sys.X0) == 0:
		return opt, fmt.Errorf("kernel: plant %q has no state: it has no inertia that can move", sys.Name)
	case len(sys.Frictions) > maxFrictions && (opt.Stepping == Dense || opt.Form == Held):
		return opt, fmt.Errorf("kernel: plant %q has %d friction elements; at most %d are possible", sys.Name, len(sys.Frictions), maxFrictions)
	}
	return opt, nil
}

func bindSignals(t *Tables, sys *model.System, driven []bool) {
	t.FirstLaw, t.Guards = len(sys.Signals), sys.Guards
	for j, s := range sys.Signals {
		t.Signals = append(t.Signals, Signal{Input: -1, Source: s.Source, Law: s.Law, Affine: s.Affine})
		if s.Law != nil {
			t.FirstLaw = min(t.FirstLaw, j)
		}
	}
	t.FirstAffine = t.FirstLaw
	for t.FirstAffine > 0 && t.Signals[t.FirstAffine-1].Affine != nil {
		t.FirstAffine--
	}
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
		longest = max(longest, in.Delay)
		if driven[i] {
			t.Signals[in.Signal].Input = i
		} else {
			t.Signals[in.Signal].Source = delayed(sys.Signals[in.Signal].Source, in.Delay)
		}
	}
	for _, f := range sys.Frictions {
		s := &t.Signals[f.Signal].Source
		*s = crossing(*s, f.Offset)
	}
	t.History = int(longest/h) + t.periods() + 2
}

// drives is the first state that signal j acts on, directly or as the capacity of
// a friction element; 0 where it acts through a law.
//
//go:nosplit
func (t *Tables) drives(j int) int {
	if t.Net != nil {
		return t.Net.drives(j, t.Friction)
	}
	for i := range t.N {
		if t.Open.B[i*(t.M+t.Mc)+j] != 0 {
			return i
		}
		for f := range t.Friction {
			if t.Friction[f].Signal == j && t.Bc[i*t.Mc+f] != 0 {
				return i
			}
		}
	}
	return 0
}

// programs are those of the laws and of the guards.
func (t *Tables) programs() []*model.Program {
	var list []*model.Program
	for _, s := range t.Signals[t.FirstLaw:] {
		list = append(list, s.Law)
	}
	for i := range t.Guards {
		list = append(list, &t.Guards[i])
	}
	return list
}

// listOutputs names y: the plant's own outputs, three per friction element, the
// region of each switch counted from 0, five of the step itself.
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
	for _, s := range sys.Switches {
		port(s.Name+".region", "1", 0, float64(len(s.Borders)))
	}
	port("eta", "1", 0, 1)
	port("lag", "s", 0, inf)
	port("events", "1", 0, inf)
	port("transitions", "1", 0, inf)
	port("fault", "1", 0, float64(len(sys.X0)))
}
