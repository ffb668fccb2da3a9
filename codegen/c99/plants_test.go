package c99_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep/codegen"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// subject is a plant on a grid.
type subject struct {
	name   string // prefix in C
	tables *kernel.Tables
	system *model.System
	inGo   files
	text   files // in C
}

// embedded puts an embedded plant on a grid, into Go and into C; driven: all its inputs come
// from outside.
func embedded(name string, driven bool, period time.Duration) (subject, error) {
	s, err := onGrid(name, driven, period)
	if err != nil {
		return subject{}, err
	}
	var report codegen.Report
	if s.inGo, report, err = codegen.Go(s.job()); err == nil {
		s.text, _, err = s.job().InC(s.inGo, report)
	}
	return s, err
}

// onGrid puts an embedded plant on a grid.
func onGrid(name string, driven bool, period time.Duration) (subject, error) {
	data, err := plants.Read(name)
	if err != nil {
		return subject{}, err
	}
	p, err := plantfile.Load(name+".yaml", data, library.Elements())
	if err != nil {
		return subject{}, err
	}
	sys, err := assemble.System(p)
	if err != nil {
		return subject{}, err
	}
	opt := kernel.Options{Period: period, Driven: make([]bool, len(sys.Inputs))}
	for i := range opt.Driven {
		opt.Driven[i] = driven
	}
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		return subject{}, err
	}
	return subject{name: strings.ReplaceAll(name, "-", "_"), tables: tables, system: sys}, nil
}

func (s *subject) job() codegen.Job {
	return codegen.Job{Tables: s.tables, System: s.system, Hash: codegen.HashOf(s.tables), Command: "lockstep gen " + s.name, Package: s.name}
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

// embeddedPlants are plants that come with the command, in C: two small ones, and all in
// hil_test/long.
var embeddedPlants = sync.OnceValues(func() ([]subject, error) {
	var list []subject
	for _, e := range plants.List() {
		if e.Kind == "plant" && (breadth || e.Name == "coupled-clutches" || e.Name == "two-masses") {
			list = append(list, subject{name: e.Name})
		}
	}
	failures := make([]error, len(list))
	var all sync.WaitGroup
	free := make(chan bool, runtime.NumCPU())
	for i := range list {
		all.Go(func() {
			free <- true
			list[i], failures[i] = embedded(list[i].name, false, 5*time.Millisecond)
			<-free
		})
	}
	all.Wait()
	return list, errors.Join(failures...)
})

// theEmbedded are these, or some of them.
func theEmbedded(t testing.TB, names ...string) (list []subject) {
	t.Helper()
	all, err := embeddedPlants()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if len(names) == 0 || slices.Contains(names, s.name) {
			list = append(list, s)
		}
	}
	if len(names) > 0 && len(list) != len(names) {
		t.Fatalf("%d of the plants %q", len(list), names)
	}
	return list
}

// builtOf writes plants and the program that drives them.
func builtOf(t testing.TB, list []subject) *cBuild {
	t.Helper()
	all := map[string]files{}
	for _, s := range list {
		all[s.name] = s.text
	}
	return newCBuild(t, all)
}

// same has both kernels do a random run.
func (s *subject) same(t *testing.T, d cDriver, seed uint64, ticks int, nan bool) {
	t.Helper()
	if len(s.tables.StateName) > 50 { // a train
		ticks = 200
	}
	run := s.script(seed, ticks, nan)
	want := run.inGo(kernel.New(s.tables))
	if where := run.differs(want, d.run(t, s.name, run)); where != "" {
		_, p := kernel.New(s.tables).Dims()
		t.Errorf("%s: %s (of %d outputs)", s.name, where, p)
	}
}

// TestPlantsInCAreTheSameWhateverTheOptimiser does so from none to all of it; package
// codegen has all plants do so with a little of it.
func TestPlantsInCAreTheSameWhateverTheOptimiser(t *testing.T) {
	list := theEmbedded(t)
	build := builtOf(t, list)
	for _, flags := range []string{"-O0", "-O2 -ffp-contract=off", "-O3 -march=native -ffp-contract=off"} {
		d := build.with(t, flags)
		for _, s := range list {
			s.same(t, d, 2, 3000, false)
		}
	}
}

// TestPlantsInCHaveNothingUndefined has the sanitizers watch, with inputs that are no
// number, too.
func TestPlantsInCHaveNothingUndefined(t *testing.T) {
	list := theEmbedded(t)
	d := builtOf(t, list).with(t, "-O1 -g "+sanitizers)
	for _, s := range list {
		s.same(t, d, 3, 1500, true)
	}
}

// TestContractionStaysBelowRounding lets products and sums be fused: the motion from the
// plants' own sources then differs by rounding.
func TestContractionStaysBelowRounding(t *testing.T) {
	list := theEmbedded(t, "coupled_clutches", "two_masses")
	d := builtOf(t, list).with(t, "-O3 -march=native -ffp-contract=fast")
	for _, s := range list {
		var run script
		for range 300 {
			run.step(s.tables.Start)
		}
		want, got := run.inGo(kernel.New(s.tables)), d.run(t, s.name, run)
		p := len(s.tables.Outputs) + 1
		for j := range p - 6 { // without eta and what counts
			span, off := 0.0, 0.0
			for i := j; i < len(want); i += p {
				span, off = max(span, math.Abs(want[i])), max(off, math.Abs(want[i]-got[i]))
				if got[i] != got[i] {
					off = math.Inf(1)
				}
			}
			if !(off <= 1e-12*span) {
				t.Errorf("%s: %s is off by %.2g of its range", s.name, s.tables.Outputs[j].Name, off/span)
			}
		}
	}
}
