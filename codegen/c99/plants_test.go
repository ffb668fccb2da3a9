package c99_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockstep/codegen"
	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// subject is a plant on a grid.
type subject struct {
	name   string // prefix in C
	tables *kernel.Tables
	system *model.System
}

// embedded puts an embedded plant on a grid; driven: all its inputs come from outside.
func embedded(t testing.TB, name string, driven bool, period time.Duration) subject {
	t.Helper()
	data, err := plants.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.Load(name+".yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := p.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	opt := kernel.Options{Period: period, Driven: make([]bool, len(sys.Inputs))}
	for i := range opt.Driven {
		opt.Driven[i] = driven
	}
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	return subject{strings.ReplaceAll(name, "-", "_"), tables, sys}
}

func (s *subject) job() codegen.Job {
	return codegen.Job{Tables: s.tables, System: s.system, Hash: codegen.HashOf(s.tables), Command: "lockstep gen " + s.name, Package: s.name}
}

// inC is the plant in C.
func (s *subject) inC(t testing.TB) files {
	t.Helper()
	files, _, err := codegen.C(s.job())
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// script is a random run as a bus commands it: inputs that are held, that ramp, jump and
// chatter, that begin and cease to be driven; with nan, some that are no number.
func (s *subject) script(seed uint64, ticks int, nan bool) (run script) {
	r := rand.New(rand.NewPCG(seed, 4))
	m := len(s.tables.Inputs)
	now, slope := append([]float64(nil), s.tables.Start...), make([]float64, m)
	for tick := range ticks {
		if m > 0 && r.IntN(30) == 0 {
			run.add(opOutput+r.IntN(3), r.IntN(m), r.IntN(2))
		}
		if tick > 0 && r.IntN(400) == 0 {
			run.add(opReset, 0, 0)
		}
		u := make([]float64, m)
		for i := range u {
			lo, hi := s.reach(i)
			switch r.IntN(30) {
			case 0:
				slope[i] = 0
			case 1:
				slope[i] = (hi - lo) * (r.Float64() - 0.5) / 20
			case 2:
				now[i], slope[i] = lo+(hi-lo)*r.Float64(), 0
			case 3:
				now[i], slope[i] = lo, 0
			case 4:
				now[i], slope[i] = hi, 0
			}
			now[i] = min(max(now[i]+slope[i], lo), hi)
			u[i] = now[i]
			if r.IntN(6) == 0 {
				u[i] += 1e-3 * (hi - lo) * (r.Float64() - 0.5)
			}
			if nan && tick > ticks/3 && r.IntN(200*m) == 0 {
				u[i] = awkward[r.IntN(len(awkward))]
			}
		}
		run.step(u)
	}
	return run
}

// reach is what a random input goes through: its range, or some about its start.
func (s *subject) reach(i int) (lo, hi float64) {
	p, start := s.tables.Inputs[i], s.tables.Start[i]
	lo, hi = p.Min, p.Max
	if math.IsInf(lo, 0) {
		lo = start - 10 - 2*math.Abs(start)
	}
	if math.IsInf(hi, 0) {
		hi = start + 10 + 2*math.Abs(start)
	}
	return lo, hi
}

// embeddedPlants are all plants that come with the command.
func embeddedPlants(t testing.TB) (list []subject) {
	for _, e := range plants.List() {
		if e.Kind == "plant" {
			list = append(list, embedded(t, e.Name, false, 5*time.Millisecond))
		}
	}
	return list
}
