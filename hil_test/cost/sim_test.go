package cost

import (
	"math"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
	"lockstep/rt/progress"
	"lockstep/rt/virtual"
)

// simBound is the bound of the processor time of a tick of sim that writes nothing over that of the table
// kernel alone.
const simBound = 2

// processorTime returns the time for which the threads of this process have had a processor, ns. Other processes
// do not add to it.
func processorTime(t *testing.T) float64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return float64(now.Nano())
}

// The simulation has the progress line of the command, in a log. Both run the same ticks with the plant's
// own waveforms, one after the other, many times; the fastest of each counts. A short simulation is subtracted: it is the time to load the plant.
func TestSimThatWritesNothingCostsLittleMoreThanItsKernel(t *testing.T) {
	lab.RequireLong(t, "measures")
	const (
		period = 5 * time.Millisecond
		ticks  = 100_000
		tries  = 6  // at least
		limit  = 24 // at most, until the ratio holds: other processes only add to a minimum
	)
	log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// powershift is at 1.96: noise gets an allowance.
	for plant, most := range map[string]float64{"coupled-clutches": simBound, "powershift": simBound * costNoise} {
		r := rig.Prepare(t, plant, kernel.Options{Period: period}, false)
		cost := func(run func()) float64 {
			began := processorTime(t)
			run()
			return processorTime(t) - began
		}
		simulate := func(n int) func() {
			return func() {
				s := virtual.Simulation{Plant: plant, For: time.Duration(n) * period, Step: period, Every: 1}
				s.Progress = progress.New(log, "sim")
				if _, err := s.Run(); err != nil {
					t.Fatal(err)
				}
			}
		}
		load, whole, alone := math.Inf(1), math.Inf(1), math.Inf(1)
		tick := math.Inf(1)
		for try := 0; try < tries || try < limit && !(tick <= most*alone); try++ {
			load = min(load, cost(simulate(1)))
			whole = min(whole, cost(simulate(1+ticks)))
			alone = min(alone, cost(func() {
				r.Reset()
				for range ticks {
					r.Step(r.Y, r.U)
				}
			})/ticks)
			tick = (whole - load) / ticks
		}
		t.Logf("%s: a tick of sim takes %.0f ns, of the kernel %.0f ns: ratio %.2f", plant, tick, alone, tick/alone)
		if !(tick <= most*alone) {
			t.Errorf("%s: a tick of sim takes %.2f times the time of its kernel, want at most %.1f", plant, tick/alone, most)
		}
	}
}
