package main

import (
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// ours is the kernel on the same mass and spring: the embedded plant where there is one.
func ours(p *problem, h float64) runner {
	tables, err := prepare(p, h)
	if err != nil {
		panic("study: " + err.Error()) // the plants are ours
	}
	x, v := 0, 0
	for i, o := range tables.Outputs {
		switch o.Name {
		case "x":
			x = i
		case "v":
			v = i
		}
	}
	k := kernel.New(tables)
	inputs, outputs := k.Dims()
	u, y := make([]float64, inputs), make([]float64, outputs)
	step := func(float64, vec) (vec, float64) {
		k.Step(y, u)
		return vec{y[x], y[v]}, h
	}
	return runner{step, k.Reset}
}

func prepare(p *problem, h float64) (*kernel.Tables, error) {
	text := []byte(p.plant())
	if p.embedded != "" {
		var err error
		if text, err = plants.Read(p.embedded); err != nil {
			return nil, err
		}
	}
	plant, err := plantfile.Load("study.yaml", text, library.Elements())
	if err != nil {
		return nil, err
	}
	sys, err := assemble.System(plant)
	if err != nil {
		return nil, err
	}
	return kernel.Prepare(sys, kernel.Options{Period: time.Duration(h*1e9 + 0.5)})
}
