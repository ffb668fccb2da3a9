package accuracy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/sigmap"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// The unit of the table in the bench guide: it computes the eight pressures of the powershift gearbox
// every 10 ms, up to 1 ms early or late, and sends them at once.
const (
	unitCycle  = 0.010 // s
	unitJitter = 0.001 // s
	unitRun    = 4.0   // s
)

// powershift returns the gearbox. Its own sources are the continuous commands, delayed by late, s.
func powershift(t testing.TB, late float64) *model.System {
	t.Helper()
	data, err := plants.Read("powershift")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plantfile.Load("powershift.yaml", data, library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sys.Inputs {
		if isPressure(sys, i) {
			sys.Inputs[i].Delay = late
		}
	}
	return sys
}

func isPressure(sys *model.System, i int) bool {
	return strings.HasSuffix(sys.Inputs[i].Name, ".pressure")
}

// speeds returns w1 to w4 at every 10 ms of a plant that step moves by one period.
func speeds(k *kernel.Kernel, period time.Duration, step func(tick int64, y []float64)) (list []float64) {
	_, p := k.Dims()
	y := make([]float64, p)
	for tick := int64(1); tick <= int64(unitRun/period.Seconds()+0.5); tick++ {
		step(tick, y)
		if tick*int64(period)%10e6 == 0 {
			list = append(list, y[:4]...)
		}
	}
	return list
}

// continuous returns the speeds under the continuous commands, late s.
func continuous(t testing.TB, late float64) []float64 {
	t.Helper()
	sys := powershift(t, late)
	tables, err := kernel.Prepare(sys, kernel.Options{Period: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	k, u := kernel.New(tables), slices.Clone(tables.Start)
	return speeds(k, time.Millisecond, func(_ int64, y []float64) { k.Step(y, u) })
}

// commanded returns the speeds under the frames of the unit, as a plan has them act.
func commanded(t testing.TB, period time.Duration, arrival, ramp bool) []float64 {
	t.Helper()
	sys := powershift(t, 0)
	m := len(sys.Inputs)
	opt := kernel.Options{Period: period, Driven: make([]bool, m), Ramped: make([]bool, m), Places: rt.MaxPlaces}
	plan, rx := rt.InputPlan{AtArrival: arrival, RampNs: make([]int64, m)}, sigmap.Rx{}
	for i := range sys.Inputs {
		if isPressure(sys, i) {
			rx.Fields = append(rx.Fields, sigmap.Field{Index: i})
			if opt.Driven[i], opt.Ramped[i] = true, ramp; ramp {
				plan.RampNs[i] = int64(unitCycle * 1e9)
			}
		}
	}
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	k, maps := kernel.New(tables), []*sigmap.Map{{Rx: []sigmap.Rx{rx}}}
	set, err := fault.New(fault.Plan{}, fault.System{PeriodNs: int64(period), M: m, P: len(tables.Outputs), Maps: maps, Plant: k})
	if err != nil {
		t.Fatal(err)
	}
	inputs := rt.NewInputs(plan, maps, int64(period), tables.Start, k)
	u, random := slices.Clone(tables.Start), rand.New(rand.NewPCG(1, 1))
	frame := func(n int64) int64 { return int64((float64(n)*unitCycle + unitJitter*(2*random.Float64()-1)) * 1e9) }
	n := int64(1)
	next := frame(n)
	return speeds(k, period, func(tick int64, y []float64) {
		for ; next < tick*int64(period); n, next = n+1, frame(n+1) {
			for _, f := range rx.Fields {
				u[f.Index] = kernel.SourceAt(&sys.Signals[sys.Inputs[f.Index].Signal].Source, float64(next)*1e-9)
			}
			inputs.Receive(0, 0, next, u)
		}
		set.BeginTick(tick, y)
		k.Step(y, inputs.Command(set.DisturbInputs(tick, inputs.Advance(tick, u, set)), set))
	})
}

// apart returns the largest difference of two lists, and its root mean square, rad/s.
func apart(a, b []float64) (largest, rms float64) {
	for i := range a {
		d := math.Abs(a[i] - b[i])
		largest, rms = max(largest, d), rms+d*d
	}
	return largest, math.Sqrt(rms / float64(len(a)))
}

// ways are the rows of the table for one period.
var ways = []struct {
	name          string // first column of the table
	arrival, ramp bool
}{{"`grid`", false, false}, {"`arrival`", true, false}, {"`arrival`, `ramp`", true, true}}

// The table of the bench guide: the difference of the speeds from those under the continuous command,
// at once and delayed by the mean delay of the way. With inputs_at: arrival the period has no
// influence.
func TestTheGuideStatesTheErrorOfEachWayInWhichAnInputActs(t *testing.T) {
	now := continuous(t, 0)
	var byArrival [2][]float64
	for _, period := range []time.Duration{5 * time.Millisecond, 10 * time.Millisecond} {
		for _, way := range ways {
			late := unitCycle / 2 // a value is held for a cycle
			switch {
			case way.ramp:
				late = unitCycle
			case !way.arrival: // from the start of the step in which its frame arrives
				late -= period.Seconds() / 2
			}
			got := commanded(t, period, way.arrival, way.ramp)
			most, rms := apart(got, now)
			mostLate, rmsLate := apart(got, continuous(t, late))
			row := fmt.Sprintf("| %d ms | %s | %.2g | %.2g | %.2g | %.2g | %.2g |", period.Milliseconds(), way.name, most, rms, late*1e3, mostLate, rmsLate)
			if !strings.Contains(string(bench.Guide), row) {
				t.Errorf("the bench guide lacks the row %s", row)
			}
			if !way.arrival {
				continue
			}
			which := 0
			if way.ramp {
				which = 1
			}
			if before := byArrival[which]; before != nil {
				if d, _ := apart(got, before); !(d <= 1e-9) {
					t.Errorf("%s: the speeds at 5 ms and at 10 ms are %g rad/s apart", way.name, d)
				}
			}
			byArrival[which] = got
		}
	}
}
