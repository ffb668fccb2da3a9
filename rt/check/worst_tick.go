package check

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/rt/bench"
	"lockstep/rt/progress"
	"lockstep/sched"
)

// exercise steps a plant through commands that are equal in every pass, so that each tick is
// measured several times. The least processor time of a tick is its own cost; the rest is
// interference from the machine.
type exercise struct {
	ExerciseCost // result; before the run Ticks is the largest number of ticks
	tables       *kernel.Tables
	prepareTick  tickPreparer

	costNs      []int64   // processor time of each tick, least of all passes, ns
	locks       []lockSet // lock set at the end of each tick
	mostNs      int64     // longest tick of all passes by the wall clock, ns
	fault       string    // name of a state that became non-finite; "": all states stayed finite
	limitNs     int64     // limit of the processor time of all passes, ns
	unconverged uint64    // substeps of all passes in which laws did not converge

	line         *progress.Line // nil: none
	passesBefore int64          // passes of the exercises before, at most
}

// tickPreparer prepares tick i of an exercise: it sets u and may call Reset of the kernel.
type tickPreparer func(k *kernel.Kernel, u []float64, i int, random *rand.Rand)

func newExercise(name string, t *kernel.Tables, ticks int, prepare tickPreparer) *exercise {
	return &exercise{ExerciseCost: ExerciseCost{Name: name, Ticks: ticks}, tables: t, prepareTick: prepare, limitNs: longest}
}

const (
	leastPasses = 3
	mostPasses  = 12            // limit of passes while the worst tick still becomes shorter
	passTime    = 100e6         // limit of the first pass of an exercise with commands, ns
	passTicks   = 50_000        // limit of ticks of a pass
	leastTicks  = 500           // ticks of a pass before the limits of time apply
	longest     = 6_000_000_000 // default limit of all passes, ns: a slow plant gets fewer, at least leastPasses
)

// worstTick measures the ticks of the plant under all exercises, and writes the worst tick
// with its share of the period.
func (c *Check) worstTick(p *checkedPlant) error {
	list, err := p.exercises(c.Progress)
	if err != nil {
		return err
	}
	defer c.Progress.End()
	fmt.Fprintf(c.Out, "  measured on this host, fastest of up to %d passes for each tick, at most %v per exercise:\n",
		mostPasses, time.Duration(leastPasses*longest))
	most := int64(0)
	for _, e := range list {
		e.run()
		c.Progress.Print(func() {
			fmt.Fprintf(c.Out, "    %-26s %6d ticks %2d times p50 %6.1f  worst %6.1f us\n",
				e.Name, e.Ticks, e.Times, float64(e.P50)/1e3, float64(e.WorstNs)/1e3)
		})
		most = max(most, e.mostNs)
		if e.fault != "" {
			c.warn("%s: under %s the state %s is no longer finite", p.file, e.Name, e.fault)
		}
		if e.unconverged > 0 {
			c.warn("%s: under %s laws did not converge in %d substeps, whose motion is less exact: a quantity that "+
				"a law reads may exceed its range in the plant file; state or widen the range, or take a shorter step", p.file, e.Name, e.unconverged)
		}
	}

	c.Progress.End()
	w := p.worst(list)
	fmt.Fprintf(c.Out, "    worst tick %.1f us, %.3g %% of %v (%s); with interference from this machine up to %.1f us\n",
		float64(w.WorstNs)/1e3, w.Share*100, p.period(), w.Under, float64(most)/1e3)
	switch {
	case w.Share > 1:
		return p.refuseStep(w)
	case w.Share > 0.5:
		c.warn("%s: the worst tick takes %.0f %% of the period of %v on this machine", p.file, w.Share*100, p.period())
	}

	return checkBudget(p, time.Duration(w.WorstNs))
}

// exercises returns the exercises of a plant: with its own input waveforms, and with worst-case
// commands. Inputs of a bench that no bus drives keep their own waveforms. The exercises begin their progress.
func (p *checkedPlant) exercises(line *progress.Line) (list []*exercise, err error) {
	own, driven := p.tables, p.tables
	again := func(which []bool) (*kernel.Tables, error) {
		t, err := kernel.Prepare(p.sys, kernel.Options{
			Period: p.period(), Driven: which, Scheme: own.Scheme, Form: own.Form, Places: own.Places, Ramped: own.Ramped,
			Progress: line.BeginPreparation("the exercises of " + p.file),
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		return t, nil
	}

	switch isDriven := func(s kernel.Signal) bool { return s.Input >= 0 }; {
	case len(own.Inputs) == 0:
	case slices.ContainsFunc(own.Signals, isDriven):
		own, err = again(nil)
	default:
		driven, err = again(slices.Repeat([]bool{true}, len(own.Inputs)))
	}

	if err != nil {
		return nil, err
	}
	length := int(bench.OwnLength(p.sys, nil, p.period()) / p.period())
	defer func() { beginExercises(list, line) }()
	list = []*exercise{newExercise("own input waveforms", own, min(max(length, leastTicks), passTicks), nil)}
	if len(driven.Inputs) == 0 {
		return list, nil
	}
	r := newRanges(p.sys)
	jump := func(_ *kernel.Kernel, u []float64, i int, _ *rand.Rand) {
		r.set(u, func(int) bool { return i%2 == 0 })
	}
	random := func(_ *kernel.Kernel, u []float64, _ int, random *rand.Rand) {
		for j := range u {
			u[j] = r.low[j] + random.Float64()*(r.high[j]-r.low[j])
		}
	}

	switching := func(_ *kernel.Kernel, u []float64, i int, random *rand.Rand) {
		if i%4 == 0 {
			r.set(u, func(int) bool { return random.IntN(2) == 0 })
		}
	}

	list = append(list,
		newExercise("all commands jump at once", driven, passTicks, jump),
		newExercise("random commands", driven, passTicks, random),
		newExercise("random commands at limits", driven, passTicks, switching),
		r.lockSetsFromRest(driven))
	if driven.Places > 0 {
		list = append(list, newExercise("changes inside of a step", driven, passTicks, r.changesInside(driven)))
	}
	return list, nil
}

// changesInside jumps all commands at the start of each step and at as many instants of it as the kernel
// takes. Ramped ones get a slope, too.
func (r *ranges) changesInside(t *kernel.Tables) tickPreparer {
	return func(k *kernel.Kernel, u []float64, _ int, random *rand.Rand) {
		h := float64(t.PeriodNs) * 1e-9
		value := func(j int) float64 { return r.low[j] + random.Float64()*(r.high[j]-r.low[j]) }
		for j := range u {
			u[j] = value(j)
		}
		for n := range t.Places {
			at := h * (float64(n) + random.Float64()) / float64(t.Places)
			for j := range u {
				from, slope := value(j), 0.0
				if t.Ramped[j] {
					slope = (value(j) - from) / h
				}
				k.Change(j, at, from, slope)
			}
		}
	}
}

// ranges holds the range of each command.
type ranges struct{ low, high []float64 }

// newRanges returns the ranges of the inputs. An input without a range gets twice the
// largest value of its own waveform, at least 1, on both sides.
func newRanges(sys *model.System) *ranges {
	r := &ranges{}
	for _, in := range sys.Inputs {
		most := 0.5
		for _, s := range sys.Signals[in.Signal].Source.Leaves() {
			for _, v := range s.V {
				most = max(most, math.Abs(v)+math.Abs(s.Amplitude))
			}
		}

		r.low = append(r.low, max(in.Min, -2*most))
		r.high = append(r.high, in.Max)
		if math.IsInf(in.Max, 1) {
			r.high[len(r.high)-1] = max(2*most, r.low[len(r.low)-1])
		}
	}

	return r
}

// set sets each command to its upper or lower limit.
func (r *ranges) set(u []float64, high func(j int) bool) {
	copy(u, r.low)
	for j := range u {
		if high(j) {
			u[j] = r.high[j]
		}
	}
}

// lockSetsFromRest restarts the plant repeatedly with all slips at zero and each command at a
// limit, so that successive restarts begin in different lock sets. Two ticks later all
// commands jump to other limits.
func (r *ranges) lockSetsFromRest(driven *kernel.Tables) *exercise {
	t := *driven
	t.X0 = make([]float64, t.N)
	t.Start = slices.Clone(t.Start)
	count := uint64(0)
	return newExercise("every lock set from rest", &t, passTicks,
		func(k *kernel.Kernel, u []float64, i int, random *rand.Rand) {
			if i == 0 {
				count = 0
			}
			switch i % 4 {
			case 0:
				set := count // all sets of up to 8 commands in turn, random sets of more
				if len(u) > 8 {
					set = random.Uint64()
				}
				count++
				r.set(u, func(j int) bool { return set>>(j%64)&1 == 1 })
				copy(t.Start, u)
				k.Reset()
			case 2:
				r.set(u, func(int) bool { return random.IntN(2) == 0 })
			}
		})
}

// beginExercises begins the progress of exercises. Their passes are counted, at most mostPasses of each.
func beginExercises(list []*exercise, line *progress.Line) {
	line.Begin(progress.Work{Total: int64(len(list) * mostPasses), Unit: "exercises", Scale: 1. / mostPasses, Digits: 1})
	for i, e := range list {
		e.line, e.passesBefore = line, int64(i*mostPasses)
	}
}

// run runs the passes.
func (e *exercise) run() {
	e.line.Note(e.Name)
	defer func() { e.line.Set(e.passesBefore + mostPasses) }()
	t := e.tables
	k := kernel.New(t)
	e.costNs, e.locks = make([]int64, e.Ticks), make([]lockSet, e.Ticks)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	e.pass(k, true)
	firstNs, stable := threadTime()-began, 0
	for e.Times = 1; e.Times < leastPasses || e.Times < mostPasses && stable < 2 &&
		threadTime()-began+firstNs <= e.limitNs; e.Times++ {
		before := slices.Max(e.costNs)
		if e.pass(k, false); slices.Max(e.costNs) > before-before/20 {
			stable++
		} else {
			stable = 0
		}
		e.line.Set(e.passesBefore + int64(e.Times))
	}

	e.unconverged = k.Unconverged()
	sorted := slices.Sorted(slices.Values(e.costNs))
	e.Ticks, e.P50, e.WorstNs = len(sorted), sorted[len(sorted)/2], sorted[len(sorted)-1]
}

// threadTime returns the processor time of this thread, ns.
func threadTime() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) // every Linux has this clock
	return at.Nano()
}

// pass steps through the exercise once. The first pass shortens the exercise to its limits
// of time.
func (e *exercise) pass(k *kernel.Kernel, first bool) {
	t := e.tables
	u, y := make([]float64, len(t.Inputs)), make([]float64, len(t.Outputs))
	fault, modes := bench.PortIndex(t.Outputs, "fault"), modeOutputs(t)
	random := rand.New(rand.NewPCG(1, 2))
	copy(u, t.Start)
	k.Reset()
	began := threadTime()
	for i := range e.costNs {
		if e.prepareTick != nil {
			e.prepareTick(k, u, i, random)
		}
		clock, start := sched.Now(), threadTime()
		k.Step(y, u)
		end := threadTime()
		e.mostNs = max(e.mostNs, sched.Now()-clock)
		if e.costNs[i] == 0 || end-start < e.costNs[i] {
			e.costNs[i] = end - start
		}
		if first {
			e.locks[i] = lockSetOf(y, modes)
		}
		if y[fault] != 0 {
			e.fault = t.StateName[max(0, int(y[fault])-1)]
			k.Reset()
		}

		limit := e.limitNs // the plant's own waveforms run in full
		if e.prepareTick != nil && i+1 >= leastTicks {
			limit = passTime
		} else if e.prepareTick != nil {
			limit = e.limitNs / leastPasses
		}

		if first && end-began > limit {
			e.costNs = e.costNs[:i+1]
			return
		}
	}
}
