package main

import (
	"os"

	"lockstep/rt/gen"
)

func defineGen(a *args) func() error {
	var r gen.Request
	a.needed = "o"
	a.StringVar(&r.Dir, "o DIR", "", "write to this folder: a new one, an empty one, or one of an earlier gen")
	a.StringVar(&r.Bench, "bench BENCH.yaml", "",
		"write the target executable of this bench, with loop and signals, of which go build makes what run "+
			"-kernel starts; PLANT may be left out")
	a.choice(&r.Lang, "lang", "go (the default) or c, one C99 file and its header", "go", "c")
	a.IntVar(&r.FMU, "fmu 2|3", 0,
		"write a co-simulation FMU of this version, 2 or 3, with its sources, and a binary where there is a "+
			"gcc")
	a.StringVar(&r.Package, "package IDENTIFIER", "",
		"name of the Go package, prefix in C (default: the plant's name, or the bench's)")
	step := a.gridFlags(&r.Scheme, &r.Form)
	a.several(&r.Drive, "drive INPUT,...",
		"inputs that follow the caller from the start, or all; the others follow their own sources, as in "+
			"sim, until Drive")
	a.BoolVar(&r.Factor, "factorise", false,
		"have the tick solve the lock sets that would be precomputed: little text for many commands, slower "+
			"at events, rounded otherwise than in sim")

	return func() error {
		r.Plant, r.Step = a.name(), *step
		return r.Run(os.Stdout)
	}
}
