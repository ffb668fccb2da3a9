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
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/rt/bench"
	"lockstep/sched"
)

// exercise steps a plant through commands that are the same in every pass, so
// that each tick can be measured several times: the fastest, in processor time, is
// the tick's own cost, the rest is what else the machine did.
type exercise struct {
	name   string
	tables *kernel.Tables
	ticks  int
	// before prepares tick i: it sets u and may Reset the kernel.
	before func(k *kernel.Kernel, u []float64, i int, random *rand.Rand)

	cost  []int64   // ns, per tick the fastest of the passes
	locks []lockSet // per tick, as it ended
	times int       // passes made
	most  int64     // ns on the clock, longest of all passes
	fault string    // the first state that was no longer finite
	loose uint64    // pieces of all passes in which laws did not settle
}

const (
	leastPasses = 3
	mostPasses  = 12            // as long as the dearest tick still gets cheaper
	passTime    = 100e6         // ns, of the first pass of an exercise with commands
	passTicks   = 50_000        //
	leastTicks  = 500           //
	longest     = 6_000_000_000 // ns, of an exercise: a dear plant is measured less often, and then in fewer ticks
)

// dearest measures the ticks of the plant under what can be asked of it, and
// writes them beside the period.
func (c *Check) dearest(p *understood) error {
	list, err := p.exercises()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "  measured here and now, each tick up to %d times of which the fastest counts, at most %v each:\n", mostPasses, time.Duration(longest))
	worst, at, most := int64(0), "", int64(0)
	for _, e := range list {
		e.run()
		sorted := slices.Sorted(slices.Values(e.cost))
		half, top := sorted[len(sorted)/2], sorted[len(sorted)-1]
		fmt.Fprintf(c.Out, "    %-26s %6d ticks %2d times  p50 %7.1f  dearest %7.1f us\n", e.name, len(sorted), e.times, float64(half)/1e3, float64(top)/1e3)
		if top > worst {
			worst, at = top, e.name
		}
		most = max(most, e.most)
		if e.fault != "" {
			c.warn("%s: under %s the state %s is no longer finite", p.file, e.name, e.fault)
		}
		if e.loose > 0 {
			c.warn("%s: under %s laws did not settle in %d pieces: something that they read grows beyond what is known of it; tell a sensor its range, or take a shorter step",
				p.file, e.name, e.loose)
		}
	}
	part := float64(worst) / float64(p.tables.PeriodNs) * 100
	fmt.Fprintf(c.Out, "    dearest tick %.1f us, %.3g %% of %v (%s); with what else this machine did up to %.1f us\n",
		float64(worst)/1e3, part, p.period(), at, float64(most)/1e3)
	if part > 50 {
		c.warn("%s: the dearest tick takes %.0f %% of the period of %v on this machine", p.file, part, p.period())
	}
	return affords(p, time.Duration(worst))
}

// MeasureDearest finds the dearest tick of a bench's plant on this host, and under what it
// was found.
func MeasureDearest(b *bench.Bench, t *kernel.Tables) (dearest time.Duration, where string, err error) {
	list, err := measured(b, t)
	for _, e := range list {
		if top := time.Duration(slices.Max(e.cost)); top > dearest {
			dearest, where = top, e.name
		}
	}
	return dearest, where, err
}

// measured are the exercises of a bench's plant, made.
func measured(b *bench.Bench, t *kernel.Tables) ([]*exercise, error) {
	file, data, err := b.Read(b.Plant)
	if err != nil {
		return nil, err
	}
	plant, err := plantfile.Load(file, data, library.Elements())
	if err != nil {
		return nil, err
	}
	p := &understood{file: b.File, tables: t}
	if err := p.assemble(plant); err != nil {
		return nil, err
	}
	list, err := p.exercises()
	for _, e := range list {
		e.run()
	}
	return list, err
}

// exercises are the plant with what drives it now, and with its commands at
// their worst. A bench leaves inputs that no bus drives as they are.
func (p *understood) exercises() ([]*exercise, error) {
	own, driven := p.tables, p.tables
	again := func(which []bool) (*kernel.Tables, error) {
		t, err := kernel.Prepare(p.sys, kernel.Options{Period: p.period(), Driven: which, Scheme: own.Scheme, Form: own.Form})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		return t, nil
	}
	var err error
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
	list := []*exercise{{name: "own sources", tables: own, ticks: min(max(length, leastTicks), passTicks)}}
	if len(driven.Inputs) == 0 {
		return list, nil
	}
	r := newRanges(p.sys)
	jump := func(_ *kernel.Kernel, u []float64, i int, _ *rand.Rand) {
		for j := range u {
			u[j] = r.end(j, i%2 == 0)
		}
	}
	random := func(_ *kernel.Kernel, u []float64, _ int, random *rand.Rand) {
		for j := range u {
			u[j] = r.low[j] + random.Float64()*(r.high[j]-r.low[j])
		}
	}
	switching := func(_ *kernel.Kernel, u []float64, i int, random *rand.Rand) {
		if i%4 == 0 {
			for j := range u {
				u[j] = r.end(j, random.IntN(2) == 0)
			}
		}
	}
	return append(list,
		&exercise{name: "all commands jump at once", tables: driven, ticks: passTicks, before: jump},
		&exercise{name: "random commands", tables: driven, ticks: passTicks, before: random},
		&exercise{name: "random commands at borders", tables: driven, ticks: passTicks, before: switching},
		r.fromRest(driven)), nil
}

// ranges are the values that a command can have.
type ranges struct{ low, high []float64 }

// newRanges takes the ranges of the inputs; one without has up to twice the
// largest value of its own source, at least 1, on both sides.
func newRanges(sys *model.System) *ranges {
	r := &ranges{}
	for _, in := range sys.Inputs {
		most := 0.5
		leaf := func(s *model.Source) {
			for _, v := range s.V {
				most = max(most, math.Abs(v)+math.Abs(s.Amplitude))
			}
		}
		source := &sys.Signals[in.Signal].Source
		leaf(source)
		for _, factors := range source.Sum {
			for i := range factors {
				leaf(&factors[i])
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

func (r *ranges) end(i int, high bool) float64 {
	if high {
		return r.high[i]
	}
	return r.low[i]
}

// fromRest starts the plant again and again with every slip at zero and each
// command at one border: so one lock set after the other holds from the start. Two
// ticks later all commands jump to others.
func (r *ranges) fromRest(driven *kernel.Tables) *exercise {
	t := *driven
	t.X0 = make([]float64, t.N)
	t.Start = slices.Clone(t.Start)
	count := uint64(0)
	return &exercise{name: "every lock set from rest", tables: &t, ticks: passTicks,
		before: func(k *kernel.Kernel, u []float64, i int, random *rand.Rand) {
			if i == 0 {
				count = 0
			}
			switch i % 4 {
			case 0:
				set := count // every one while they are few, random ones afterwards
				if len(u) > 8 {
					set = random.Uint64()
				}
				count++
				for j := range u {
					u[j] = r.end(j, set>>(j%64)&1 == 1)
				}
				copy(t.Start, u)
				k.Reset()
			case 2:
				for j := range u {
					u[j] = r.end(j, random.IntN(2) == 0)
				}
			}
		}}
}

// run makes the passes.
func (e *exercise) run() {
	t := e.tables
	k := kernel.New(t)
	e.cost, e.locks = make([]int64, e.ticks), make([]lockSet, e.ticks)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := worked()
	e.pass(k, true)
	one, settled := worked()-began, 0
	for e.times = 1; e.times < mostPasses && (e.times < leastPasses || settled < 2) && worked()-began+one <= longest; e.times++ {
		before := slices.Max(e.cost)
		if e.pass(k, false); slices.Max(e.cost) > before-before/20 {
			settled++
		} else {
			settled = 0
		}
	}
	e.loose = k.Unsettled()
}

// worked is the processor time of this thread, ns.
func worked() int64 {
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) != nil {
		return sched.Now() // a kernel without it: what else the machine did counts as well
	}
	return at.Nano()
}

// pass steps through the exercise once; the first pass cuts it to passTime, and what
// takes longest for leastPasses to a third of that.
func (e *exercise) pass(k *kernel.Kernel, first bool) {
	t := e.tables
	u, y := make([]float64, len(t.Inputs)), make([]float64, len(t.Outputs))
	fault, modes := bench.PortIndex(t.Outputs, "fault"), modesIn(t)
	random := rand.New(rand.NewPCG(1, 2))
	copy(u, t.Start)
	k.Reset()
	began := worked()
	for i := range e.cost {
		if e.before != nil {
			e.before(k, u, i, random)
		}
		clock, start := sched.Now(), worked()
		k.Step(y, u)
		end := worked()
		e.most = max(e.most, sched.Now()-clock)
		if e.cost[i] == 0 || end-start < e.cost[i] {
			e.cost[i] = end - start
		}
		if first {
			e.locks[i] = locked(y, modes)
		}
		if y[fault] != 0 {
			e.fault = t.StateName[max(0, int(y[fault])-1)]
			k.Reset()
		}
		limit := int64(longest) // of what the plant does by itself all is seen
		if e.before != nil && i+1 >= leastTicks {
			limit = passTime
		} else if e.before != nil {
			limit = longest / leastPasses
		}
		if first && end-began > limit {
			e.cost = e.cost[:i+1]
			return
		}
	}
}
