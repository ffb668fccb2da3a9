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
	name    string // prefix in C
	tables  *kernel.Tables
	system  *model.System
	goFiles files
	cFiles  files
}

// embedded generates the Go and the C of an embedded plant on a grid. driven makes all inputs
// follow u.
func embedded(name string, driven bool, period time.Duration) (subject, error) {
	s, err := onGrid(name, driven, period)
	if err != nil {
		return subject{}, err
	}
	var report codegen.Report
	if s.goFiles, report, err = codegen.GenerateGo(s.job()); err == nil {
		s.cFiles, _, err = s.job().TranslateC(s.goFiles, report)
	}
	return s, err
}

// onGrid returns an embedded plant on a grid, without generated code.
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

// script returns random operations like those of a bus: inputs that are constant, ramp, jump and
// chatter, and that begin and cease to follow u. With nan, some inputs are NaN or infinite.
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
			lo, hi := s.inputRange(i)
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

// inputRange returns the range of a random input: its limits, or a range around its start if it has
// none.
func (s *subject) inputRange(i int) (lo, hi float64) {
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

// embeddedPlants returns two small embedded plants with their code; with the tag long, all.
var embeddedPlants = sync.OnceValues(func() ([]subject, error) {
	var list []subject
	for _, e := range plants.List() {
		if e.Kind == "plant" && (breadth || e.Name == "coupled-clutches" || e.Name == "two-masses") {
			list = append(list, subject{name: e.Name})
		}
	}
	failures := make([]error, len(list))
	var all sync.WaitGroup
	slots := make(chan bool, runtime.NumCPU())
	for i := range list {
		all.Go(func() {
			slots <- true
			list[i], failures[i] = embedded(list[i].name, false, 5*time.Millisecond)
			<-slots
		})
	}
	all.Wait()
	return list, errors.Join(failures...)
})

// theEmbedded returns the embedded plants of the given names; without names, all.
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

// newPlantBuild writes the C of plants and drive.c.
func newPlantBuild(t testing.TB, list []subject) *cBuild {
	t.Helper()
	all := map[string]files{}
	for _, s := range list {
		all[s.name] = s.cFiles
	}
	return newCBuild(t, all)
}

// compareBits executes a random script on the table kernel and on the kernel in C.
func (s *subject) compareBits(t *testing.T, d cDriver, seed uint64, ticks int, nan bool) {
	t.Helper()
	if len(s.tables.StateName) > 40 { // a train, or a gearbox with dog clutches: slow
		ticks = 200
	}
	run := s.script(seed, ticks, nan)
	want := run.runGo(kernel.New(s.tables))
	if where := run.difference(want, d.run(t, s.name, run)); where != "" {
		_, p := kernel.New(s.tables).Dims()
		t.Errorf("%s: %s (of %d outputs)", s.name, where, p)
	}
}

// TestPlantsInCGiveTheSameBitsAtEveryOptimisation covers -O0, -O2 and -O3. The tests of package
// codegen cover all plants at -O1.
func TestPlantsInCGiveTheSameBitsAtEveryOptimisation(t *testing.T) {
	list := theEmbedded(t)
	build := newPlantBuild(t, list)
	for _, flags := range []string{"-O0", "-O2 -ffp-contract=off", "-O3 -march=native -ffp-contract=off"} {
		d := build.build(t, flags)
		for _, s := range list {
			s.compareBits(t, d, 2, 3000, false)
		}
	}
}

// TestPlantsInCHaveNoUndefinedBehaviour runs under sanitizers; some inputs are NaN.
func TestPlantsInCHaveNoUndefinedBehaviour(t *testing.T) {
	list := theEmbedded(t)
	d := newPlantBuild(t, list).build(t, "-O1 -g "+sanitizers)
	for _, s := range list {
		s.compareBits(t, d, 3, 1500, true)
	}
}

// TestFusedProductsChangeRoundingOnly compiles with fused products and sums. The motion that the
// plants' own sources cause then differs by rounding.
func TestFusedProductsChangeRoundingOnly(t *testing.T) {
	list := theEmbedded(t, "coupled_clutches", "two_masses")
	d := newPlantBuild(t, list).build(t, "-O3 -march=native -ffp-contract=fast")
	for _, s := range list {
		var run script
		for range 300 {
			run.step(s.tables.Start)
		}
		want, got := run.runGo(kernel.New(s.tables)), d.run(t, s.name, run)
		p := len(s.tables.Outputs) + 1
		for j := range p - 6 { // without eta, the counters and the result of the step
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
