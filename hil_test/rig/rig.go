// Package rig owns plants on a grid for tests and studies: it prepares them and times their steps.
// It judges nothing.
package rig

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
	"lockstep/model/units"
)

// Plant is a plant on a grid, to be stepped against the clock.
type Plant struct {
	*kernel.Kernel
	Tables *kernel.Tables
	Y, U   []float64
}

// Load assembles a plant: an embedded one by its name, or the text of one.
func Load(plant string) (*model.System, error) {
	data := []byte(plant)
	if !strings.Contains(plant, "\n") {
		var err error
		if data, err = plants.Read(plant); err != nil {
			return nil, err
		}
	}

	p, err := plantfile.Load("plant.yaml", data, library.Elements())
	if err != nil {
		return nil, err
	}
	return assemble.System(p)
}

// Assemble is Load in a test.
func Assemble(t testing.TB, plant string) *model.System {
	t.Helper()
	sys, err := Load(plant)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// New puts an assembled plant on a grid; driven: all its inputs come from outside.
func New(sys *model.System, opt kernel.Options, driven bool) (*Plant, error) {
	opt.Driven = make([]bool, len(sys.Inputs))
	for i := range opt.Driven {
		opt.Driven[i] = driven
	}
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		return nil, err
	}
	return &Plant{
		Kernel: kernel.New(tables), Tables: tables,
		Y: make([]float64, len(tables.Outputs)), U: slices.Clone(tables.Start),
	}, nil
}

// Prepare is Load and New in a test.
func Prepare(t testing.TB, plant string, opt kernel.Options, driven bool) *Plant {
	t.Helper()
	r, err := New(Assemble(t, plant), opt, driven)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Port is the index of an output.
func (r *Plant) Port(name string) int {
	return slices.IndexFunc(r.Tables.Outputs, func(o units.Port) bool { return o.Name == name })
}

// RunCost is the least time of a whole run, per step, over a number of runs, ns:
// the kernel's cost and not that of what else the machine does.
func (r *Plant) RunCost(ticks, runs int, command func(tick int, u []float64)) float64 {
	best := time.Duration(math.MaxInt64)
	for range runs {
		r.Reset()
		at := time.Now()
		for k := range ticks {
			if command != nil {
				command(k, r.U)
			}
			r.Step(r.Y, r.U)
		}

		best = min(best, time.Since(at))
	}

	return float64(best.Nanoseconds()) / float64(ticks)
}

// LeastTicks is the least time of every tick over a number of runs, by a clock, ns, and how
// many events there had been after it.
func (r *Plant) LeastTicks(ticks, runs int, command func(tick int, u []float64), clock func() float64) (least, events []float64) {
	least, events = make([]float64, ticks), make([]float64, ticks)
	for run := range runs {
		r.Reset()
		for k := range ticks {
			if command != nil {
				command(k, r.U)
			}
			began := clock()
			r.Step(r.Y, r.U)
			if took := clock() - began; run == 0 || took < least[k] {
				least[k] = took
			}
			events[k] = r.Y[len(r.Y)-3]
		}
	}

	return least, events
}

// TickCosts takes the least time of each tick over a number of runs, without that of the clock. It
// returns the mean and the largest of these times, ns, and the number of events of a run.
func (r *Plant) TickCosts(ticks, runs int, command func(tick int, u []float64)) (mean, worst, events float64) {
	start := time.Now()
	clock := func() float64 { return float64(time.Since(start).Nanoseconds()) }
	own := math.Inf(1)
	for range 1000 {
		began := clock()
		own = min(own, clock()-began)
	}

	least, counts := r.LeastTicks(ticks, runs, command, clock)
	for _, ns := range least {
		mean, worst = mean+(ns-own)/float64(ticks), max(worst, ns-own)
	}
	return mean, worst, counts[ticks-1]
}
