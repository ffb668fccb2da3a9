// Package rig puts a plant on a grid and times its steps. It judges nothing.
package rig

import (
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// Plant is a plant on a grid, to be stepped against the clock.
type Plant struct {
	*kernel.Kernel
	Tables *kernel.Tables
	Y, U   []float64
}

// Assemble assembles a plant: an embedded one by its name, or the text of one.
func Assemble(t testing.TB, plant string) *model.System {
	t.Helper()
	data := []byte(plant)
	if !strings.Contains(plant, "\n") {
		var err error
		if data, err = plants.Read(plant); err != nil {
			t.Fatal(err)
		}
	}
	p, err := plantfile.Load("plant.yaml", data, library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// Prepare puts a plant on a grid; driven: all its inputs come from outside.
func Prepare(t testing.TB, plant string, opt kernel.Options, driven bool) *Plant {
	t.Helper()
	sys := Assemble(t, plant)
	opt.Driven = make([]bool, len(sys.Inputs))
	for i := range opt.Driven {
		opt.Driven[i] = driven
	}
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	r := &Plant{Kernel: kernel.New(tables), Tables: tables}
	r.Y = make([]float64, len(tables.Outputs))
	r.U = append([]float64(nil), tables.Start...)
	return r
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

// TickCosts is the least time of every tick over a number of runs, without that
// of the clock: their mean and the dearest, ns, and the events of a run.
func (r *Plant) TickCosts(ticks, runs int, command func(tick int, u []float64)) (mean, dearest, events float64) {
	clock := time.Hour
	for range 1000 {
		at := time.Now()
		clock = min(clock, time.Since(at))
	}
	least := make([]time.Duration, ticks)
	for run := range runs {
		r.Reset()
		for k := range ticks {
			if command != nil {
				command(k, r.U)
			}
			at := time.Now()
			r.Step(r.Y, r.U)
			if d := time.Since(at); run == 0 || d < least[k] {
				least[k] = d
			}
		}
	}
	for _, d := range least {
		ns := float64((d - clock).Nanoseconds())
		mean, dearest = mean+ns/float64(ticks), max(dearest, ns)
	}
	return mean, dearest, r.Y[len(r.Y)-3]
}
