// Package rig owns plants on a grid for tests and studies: it prepares them and measures the time
// of their steps. It checks no result.
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

// Plant is a prepared plant with its vectors of outputs and inputs.
type Plant struct {
	*kernel.Kernel
	Tables *kernel.Tables
	Y, U   []float64 // outputs p, inputs m
}

// Load assembles a plant: an embedded one by its name, or the text of a plant file.
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

// New prepares an assembled plant. With commanded, all inputs come from U; otherwise from the
// plant's own input waveforms.
func New(sys *model.System, opt kernel.Options, commanded bool) (*Plant, error) {
	opt.Driven = make([]bool, len(sys.Inputs))
	for i := range opt.Driven {
		opt.Driven[i] = commanded
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
func Prepare(t testing.TB, plant string, opt kernel.Options, commanded bool) *Plant {
	t.Helper()
	r, err := New(Assemble(t, plant), opt, commanded)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Port returns the index of an output in Y; -1: there is none of that name.
func (r *Plant) Port(name string) int {
	return slices.IndexFunc(r.Tables.Outputs, func(o units.Port) bool { return o.Name == name })
}

// RunCost returns the mean time of a step in the fastest of several runs, ns. The minimum excludes
// time that the machine spends on other processes.
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

// LeastTicks returns for every tick its minimum time over several runs, by a clock, ns, and the
// number of events since the start of the run.
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

// TickCosts measures the minimum time of each tick over several runs, less the time of reading the
// clock. It returns the mean and the maximum over all ticks, ns, and the number of events of a run.
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
