package main

import (
	"os"
	"strings"

	"lockstep/rt/gen"
)

const genUsage = "gen PLANT -o DIR [-bench BENCH.yaml] [-lang go|c] [-fmu 2|3] [-package NAME] [-step 5ms] [-scheme NAME] [-form NAME] [-drive NAME,...] [-factorise]"

func runGen(list []string) error {
	a := newArgs("gen", genUsage)
	var r gen.Request
	a.StringVar(&r.Dir, "o", "", "write to this folder: a new one, an empty one, or one of an earlier gen")
	a.StringVar(&r.Bench, "bench", "", "write the target executable of this bench, with loop and signals, of which go build makes what run -kernel starts; PLANT may be left out")
	a.choice(&r.Lang, "lang", "go (the default) or c, one C99 file and its header", "go", "c")
	a.IntVar(&r.FMU, "fmu", 0, "write a co-simulation FMU of this version, 2 or 3, with its sources, and a binary where there is a gcc")
	a.StringVar(&r.Package, "package", "", "name of the Go package, prefix in C (default: the plant's name, or the bench's)")
	step := a.span("step", 0, "period of the grid of a plant (default 5ms); a bench has its own")
	a.choice(&r.Scheme, "scheme", "complete (the default) or papers, as in sim; a bench has its own", "complete", "papers")
	a.choice(&r.Form, "form", "projected (the default) or held, as in sim", "projected", "held")
	a.Func("drive", "inputs that follow the caller from the start: `NAME,...` or all; the others follow their own sources, as in sim, until Drive", func(s string) error {
		r.Drive = append(r.Drive, strings.Split(s, ",")...)
		return nil
	})
	a.BoolVar(&r.Factor, "factorise", false, "have the tick solve the lock sets that would be precomputed: little text for many commands, slower at events, rounded otherwise than in sim")
	if err := a.parse(list, 0, 1, os.Stdout); err != nil {
		return err
	}
	if len(a.names) == 1 {
		r.Plant = a.names[0]
	}
	r.Step = *step
	return r.Run(os.Stdout)
}
