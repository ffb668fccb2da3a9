package main

import (
	"lockstep/rt/gen"
)

func defineGen(a *args) func() error {
	var r gen.Request
	a.required = "o"
	a.outputVar(&r.Dir, "o DIR", "output folder: new, empty, or written by an earlier gen")
	a.StringVar(&r.Bench, "bench BENCH.yaml", "",
		"write the sources of the target executable of this bench, with loop and signals, for go build and "+
			"run -kernel FILE; PLANT may be omitted")
	a.choice(&r.Lang, "lang", "language: go (the default) or c, one C99 file and its header", "go", "c")
	a.IntVar(&r.FMU, "fmu 2|3", 0,
		"write a co-simulation FMU of FMI version 2 or 3 with its sources, and with a binary if gcc is "+
			"installed")
	a.StringVar(&r.Package, "package IDENTIFIER", "",
		"name of the Go package, prefix in C (default: the plant's name, or the bench's)")
	step := a.gridFlags(&r.Scheme, &r.Form)
	a.list(&r.Drive, "drive INPUT,...",
		"inputs that the caller commands from the start, or all; the other inputs follow the plant's own "+
			"input waveforms, as in sim, until Drive is called")
	a.BoolVar(&r.Factor, "factorise", false,
		"factorise lock sets in the tick instead of precomputing them: small code for many lock sets, slower "+
			"at events, rounded differently from sim")

	a.IntVar(&r.Changes, "changes N", 0,
		"instants of a step at which commands may change besides its start, 1 to 64: adds Change")

	return func() error {
		r.Plant, r.Step, r.Progress = a.operand(), *step, interruptible("gen")
		return r.Run(stdout)
	}
}
