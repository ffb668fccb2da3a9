package cost

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// changeBound is the time of the slowest tick that changes the tables, over that of the worst tick
// without a change.
const changeBound = 2

// threadTime returns the processor time of this thread, ns. A preemption is not part of it.
func threadTime() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) // every Linux has this clock
	return at.Nano()
}

// checkChangeCost compares the processor time of the slowest tick that changes the tables of a plant with that of
// the worst tick without a change. The same motion runs several times, and the smallest time of each tick counts.
func checkChangeCost(t *testing.T, plant string) {
	const (
		period  = 5 * time.Millisecond
		ticks   = 400
		every   = 7
		repeats = 10
	)
	tables := rig.Prepare(t, plant, kernel.Options{Period: period}, false).Tables
	if tables.Partition != nil { // a plant in two parts keeps its parameters
		return
	}
	y := make([]float64, len(tables.Outputs))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fastest := func(changes bool) []float64 {
		list := slices.Repeat([]float64{math.Inf(1)}, ticks)
		for range repeats {
			now, spare := kernel.New(tables), kernel.New(tables)
			for k := range list {
				began := threadTime()
				if changes && k%every == 0 && spare.TakeOver(now, tables.Start) {
					now, spare = spare, now
				}
				now.Step(y, tables.Start)
				list[k] = min(list[k], float64(threadTime()-began))
			}
		}
		return list
	}

	worst, change := slices.Max(fastest(false)), 0.0
	for k, ns := range fastest(true) {
		if k%every == 0 {
			change = max(change, ns)
		}
	}
	t.Logf("%s: worst tick %.0f ns, with a change %.0f ns: ratio %.2f", plant, worst, change, change/worst)
	if !(change <= changeBound*worst) {
		t.Errorf("%s: a tick with a change takes %.2f times the worst tick without, want at most %d", plant, change/worst, changeBound)
	}
}

// powershift has precomputed lock sets, hybrid-spring also regions, truck laws, and train3 is stepped sparse.
func TestTickThatChangesTheTablesCostsAtMostTwiceTheWorstTick(t *testing.T) {
	lab.RequireLong(t, "measures")
	for _, plant := range []string{"powershift", "hybrid-spring", "truck", "train3"} {
		t.Run(plant, func(t *testing.T) { checkChangeCost(t, plant) })
	}
}
