package virtual

import (
	"math"
	"runtime"
	"testing"
	"time"

	"lockstep/rt"
	"lockstep/rt/report"
)

// The driver brakes on a road that is slippery on one side and steers against the yaw: frames go both ways, valves open
// and close, and wheels lock. The count is that of the process, in which the runtime allocates now and then, too: it does
// not in one run of three.
func TestTickOfABrakeBenchDoesNotAllocate(t *testing.T) {
	least := uint64(math.MaxUint64)
	for range 3 {
		least = min(least, allocationsOfTicks(t))
	}
	if least != 0 {
		t.Errorf("300 ticks allocate at least %d times; want no allocation", least)
	}
}

// allocationsOfTicks counts the allocations of the process within the ticks of a stop.
func allocationsOfTicks(t *testing.T) uint64 {
	t.Helper()
	w := &simulation{
		Simulation: Simulation{Plant: "esc-bench", Scenario: "esc-split", For: 1500 * time.Millisecond, Every: 1},
		view:       report.View{Status: new(rt.StatusBlock)}, unit: &virtualUnit{},
	}
	defer w.close()
	if err := w.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := w.startUnit(); err != nil {
		t.Fatal(err)
	}
	w.kernel.Output(w.loop.Y)
	var before, after runtime.MemStats
	allocs := uint64(0)
	for k := int64(1); !w.loop.Over(); k++ {
		due := time.Duration(k) * w.Step
		if err := w.advanceUnit(due); err != nil {
			t.Fatal(err)
		}
		at := w.clock.Wait()
		runtime.ReadMemStats(&before)
		w.loop.Tick(at)
		runtime.ReadMemStats(&after)
		allocs += after.Mallocs - before.Mallocs
		w.stepPorts(int64(due))
		if err := w.deliverSent(due); err != nil {
			t.Fatal(err)
		}
		w.record.Write(time.Now())
	}
	ticks, events := w.view.Status.Ticks.Load(), w.view.Status.Events.Load()
	if ticks != 300 || events < 10 {
		t.Errorf("%d ticks with %d events; want 300 with at least 10", ticks, events)
	}
	return allocs
}
