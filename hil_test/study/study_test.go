package main

import (
	"encoding/csv"
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	truthfile "lockstep/hil_test/truth"
)

// short are the parameters of a short study.
var short = extent{until: 10, steps: spaced(0.0003), rounds: 3, swings: 20}

// linear is the problem with one spring.
var linear = problem{
	name: "table 1, linear", m: 1, x0: 0.3, inner: 10, spring: force{slopes: []float64{10}}, damper: viscous,
}

// foundOnce returns the result of the short study, which runs once.
var foundOnce = sync.OnceValue(func() *result { return do(short) })

// accuracies returns the accuracies of all methods on all problems.
func accuracies() (list []accuracy) {
	for _, f := range foundOnce().methods {
		list = append(list, f.accuracy...)
	}
	return list
}

// readFile returns the columns of a truth file by name.
func readFile(t *testing.T, name string) map[string][]float64 {
	t.Helper()
	return truthfile.Read(t, "../../model/plants/testdata/"+name+".csv").Columns()
}

// Independent code made the files, with 13 digits.
func TestTruthAgreesWithTheFiles(t *testing.T) {
	for _, c := range []struct {
		p    *problem
		file string
		tol  float64
	}{
		{&linear, "A1_linear", 1e-12},
		{&table2, "A2_pwa_spring_T2_continuous", 1e-12},
		{&table6, "A4_pwa_spring_T6", 1e-12},
		{&table9, "A7_static_friction_T9", 1e-11},
		{&lasting, "A9_energy_T6_undamped", 1e-11}, // the energy of the file drifts by 6e-14
	} {
		s := solve(c.p, 30)
		want := readFile(t, c.file)
		if len(want["t"]) != 301 {
			t.Errorf("%s: %d rows, want 301", c.file, len(want["t"]))
		}
		for i, at := range want["t"] {
			z := s.at(at)
			if !scalar.EqualWithinAbs(z[0], want["x"][i], c.tol) || !scalar.EqualWithinAbs(z[1], want["v"][i], c.tol) || !scalar.EqualWithinAbs(c.p.energy(z), want["E_mech"][i], c.tol) {
				t.Fatalf("%s: at %g s %v m, m/s and %g J, want %v, %v and %v", c.file, at, z, c.p.energy(z), want["x"][i], want["v"][i], want["E_mech"][i])
			}
		}
		if len(c.p.spring.borders) == 0 {
			continue
		}
		events := readFile(t, c.file+"_events")["t"]
		if len(s.list)-1 != len(events) {
			t.Fatalf("%s: %d boundaries are crossed, want %d", c.file, len(s.list)-1, len(events))
		}
		for i, at := range events {
			if got := s.list[i+1].t; !scalar.EqualWithinAbs(got, at, c.tol) {
				t.Errorf("%s: boundary %d at %.13g s, want %.13g", c.file, i, got, at)
			}
		}
	}
}

func TestErrorsHaveTheTheoreticalOrder(t *testing.T) {
	for _, a := range accuracies() {
		switch {
		case a.m.name == nLinear: // not a solution
		case a.p == &table9 || a.p == &table10: // below
		case a.m.order == exact:
			for i, e := range a.own {
				if !(e <= 1e-10) || !(a.published[i] <= 1e-10) {
					t.Errorf("%s, %s: error %.2g at steps of %g s, want at most 1e-10", a.p.name, a.m.name, e, short.steps[i])
				}
			}
		case a.m.order == 0:
			for i, e := range a.own {
				if !(e >= 0.1) {
					t.Errorf("%s, %s: error %.2g at steps of %g s, want no convergence", a.p.name, a.m.name, e, short.steps[i])
				}
			}
		default:
			tol := 0.15 // the position of a boundary in a step is random
			if a.m.order > 2 {
				tol = 0.6 // few steps lie between rounding and steps with two boundaries
			}
			if !scalar.EqualWithinAbs(a.order, float64(a.m.order), tol) {
				t.Errorf("%s, %s: the order of the error is %.2f, want %d: %.2g", a.p.name, a.m.name, a.order, a.m.order, a.own)
			}
		}
	}
}

// Dry friction jumps where the speed changes its sign, which a method must locate, too. Location of
// order 2 leaves an impulse of order 2.
func TestDryFrictionCostsAnOrderIfTheReversalIsNotLocated(t *testing.T) {
	for _, a := range accuracies() {
		switch {
		case a.p != &table9:
		case a.m.name == nFixed || a.m.name == nTaylor:
			if !(a.order > 0.8 && a.order < 1.5) {
				t.Errorf("%s: the order of the error is %.2f, want 1", a.m.name, a.order)
			}
		case a.m.name == nExact:
			if !(a.order > 1.9 && a.order < 3.2) {
				t.Errorf("%s: the order of the error is %.2f, want 2 to 3", a.m.name, a.order)
			}
		case a.m.name == nOurs:
			for i, e := range a.published {
				if !(e <= 1e-10) {
					t.Errorf("%s: error %.2g at steps of %g s", a.m.name, e, short.steps[i])
				}
			}
		}
	}
}

// A held input is late by half a step, in every method of 000.
func TestHeldInputReducesTheOrderToOne(t *testing.T) {
	for _, a := range accuracies() {
		switch {
		case a.p != &table10:
		case a.m.name == nExact:
			if !scalar.EqualWithinAbs(a.order, 1, 0.15) {
				t.Errorf("%s: the order of the error is %.2f, want 1", a.m.name, a.order)
			}
		case a.m.name == nOurs:
			for i, e := range a.published {
				if h := short.steps[i]; !(e <= 1e-6) || h <= 0.005 && !(e <= 1e-9) {
					t.Errorf("%s: error %.2g at steps of %g s", a.m.name, e, h)
				}
			}
		}
	}
}

func TestErrorPreservesNaN(t *testing.T) {
	nan := math.NaN()
	if e := solve(&table6, 1).off(0.5, vec{0, nan}); !math.IsNaN(e) {
		t.Errorf("error %g of a speed that is not a number, want NaN", e)
	}
}

// A state that is published after a shortened step belongs to a time before the tick.
func TestAdjustedStepsArePublishedWithAnErrorOfOrderOne(t *testing.T) {
	for _, a := range accuracies() {
		switch a.m.name {
		case nAdjust, nDelta, nExact:
			if a.p == &table9 || a.p == &table10 {
				continue // order 1 anyway, or no convergence
			}
			if !scalar.EqualWithinAbs(a.late, 1, 0.15) {
				t.Errorf("%s, %s: the order of the error at the tick is %.2f, want 1", a.p.name, a.m.name, a.late)
			}
		}
	}
}

// On one spring c, without a damper, every step has the same factor: |1 + i·w·h|² and so on.
func TestEnergyOnOneSpringGrowsByTheFactorOfTheory(t *testing.T) {
	const h, steps = 0.01, 300
	p := linear
	p.damper = lasting.damper
	h2c := h * h * p.spring.slopes[0] / p.m
	for name, factor := range map[string]float64{
		nEuler:   1 + h2c,
		nPower2:  math.Pow(1+h2c/4, 2),
		nPower:   math.Pow(1+h2c/100, 10),
		nPower99: math.Pow(1+h2c/1e4, 100),
		nTaylor:  1 + h2c*h2c/4,
		nFixed:   1,
	} {
		run, z := named(name).start(&p, h), vec{p.x0, 0}
		for range steps {
			z, _ = run.step(0, z)
		}
		got, want := p.energy(z)/p.energy(vec{p.x0, 0}), math.Pow(factor, steps)
		if !scalar.EqualWithinRel(got, want, 1e-11) {
			t.Errorf("%s: %.13g of the energy after %d steps, want %.13g", name, got, steps, want)
		}
	}
}

// On a spring with regions the energy of Euler grows by h·F²/m per second, to first order in h.
func TestEulerGainsTheMeanSquareOfTheForce(t *testing.T) {
	const until = swing
	s, p := solve(&lasting, until), &lasting
	force := find(p)
	const n = 20000
	mean := 0.0
	for i := range n {
		z := s.at(until * (float64(i) + 0.5) / n)
		f := p.m * force(0, z).rate(z)[1]
		mean += f * f / n
	}
	for _, h := range []float64{1e-5, 1e-4} {
		got := named(nEuler).leaks(p, h, until).end
		want := h * mean / p.m * until / p.energy(vec{p.x0, 0})
		if !(want > 0) || !scalar.EqualWithinRel(got, want, 100*h) {
			t.Errorf("steps of %g s: energy %+.4g after a swing, want %+.4g", h, got, want)
		}
	}
}

// A motion without damping preserves the area between neighbouring states. An external force
// multiplies it by 1 + (c - inner)/inner·(1 - cos(w·h)), which without inner stiffness is 1 +
// c·h²/2m.
func TestExternalForceChangesTheArea(t *testing.T) {
	const h = 0.05
	for _, inner := range []float64{0, 5, 20} {
		p, name := lasting, nFree
		if p.inner = inner; inner > 0 {
			name = nInner
		}
		for _, x := range []float64{0.05, 0.25} {
			c := find(&p)(0, vec{x, 0}).c
			want := 1 + c*h*h/2/p.m
			if inner > 0 {
				want = 1 + (c-inner)/inner*(1-math.Cos(math.Sqrt(inner/p.m)*h))
			}
			run := named(name).start(&p, h)
			const d = 0.01
			z, _ := run.step(0, vec{x, 0})
			zx, _ := run.step(0, vec{x + d, 0})
			zv, _ := run.step(0, vec{x, d})
			got := ((zx[0]-z[0])*(zv[1]-z[1]) - (zx[1]-z[1])*(zv[0]-z[0])) / (d * d)
			if !scalar.EqualWithinAbs(got, want, 1e-12) {
				t.Errorf("inner %g N/m, spring %g N/m: the area grows to %.13g, want %.13g", inner, c, got, want)
			}
		}
	}
}

// An inner stiffness below that of the spring gains energy, the stiffness of the stiffest region
// loses energy, as the areas say.
func TestInnerStiffnessDecidesWhetherTheEnergyGrows(t *testing.T) {
	for _, i := range foundOnce().inner {
		if i.c <= 1 && !(i.end > 0.1) || i.c >= 20 && !(i.end < -0.1) {
			t.Errorf("inner %g N/m: energy %+.2g", i.c, i.end)
		}
	}
}

func TestCoordinatesShiftedBackAreAnExternalForceWithInnerStiffness(t *testing.T) {
	for _, p := range []*problem{&table2, &table6, &lasting} {
		a, b := named(nShifted).start(p, 0.1), named(nInner).start(p, 0.1)
		y, z := vec{p.x0, 0}, vec{p.x0, 0}
		for k := range 300 {
			y, _ = a.step(0, y)
			z, _ = b.step(0, z)
			if !scalar.EqualWithinAbs(y[0], z[0], 1e-13) || !scalar.EqualWithinAbs(y[1], z[1], 1e-13) {
				t.Fatalf("%s, step %d: %v and %v", p.name, k, y, z)
			}
		}
	}
}

// The test checks the conclusions of README.md about adjusted steps of 0.1 s.
func TestAdjustedStepsKeepTheEnergyOnlyWithExactParts(t *testing.T) {
	end := func(name string) float64 { return named(name).leaks(&lasting, 0.1, 30).end }
	if e := end(nExact); !(math.Abs(e) < 1e-3) {
		t.Errorf("%s: energy %+.2g", nExact, e)
	}
	for _, name := range []string{nAdjust, nDelta} {
		if e := end(name); !(e > 1) {
			t.Errorf("%s: energy %+.2g, want more than twice that at the start", name, e)
		}
	}
	if e := end(nOurs); !(math.Abs(e) < 1e-11) {
		t.Errorf("%s: energy %+.2g", nOurs, e)
	}
}

func TestExternalForceIsUnstableLongBeforeHalfASecond(t *testing.T) {
	if h := rangeLimit(named(nFree), &table5); !(h > 0 && h <= 0.2) {
		t.Errorf("the mass leaves its range from steps of %g s on; figure 24 of 000 says 0.5 s", h)
	}
	for _, name := range []string{nInner, nOurs} {
		if h := rangeLimit(named(name), &table5); h != 0 {
			t.Errorf("%s: the mass leaves its range from steps of %g s on", name, h)
		}
	}
}

func TestEmbeddedPlantIsTheSameProblem(t *testing.T) {
	own := table2
	own.embedded = ""
	a, b := ours(&table2, 0.1), ours(&own, 0.1)
	for k := range 300 {
		y, _ := a.step(0, vec{})
		z, _ := b.step(0, vec{})
		if !scalar.EqualWithinAbs(y[0], z[0], 1e-14) || !scalar.EqualWithinAbs(y[1], z[1], 1e-14) {
			t.Fatalf("step %d: %v and %v", k, y, z)
		}
	}
}

func TestStudyWritesTablesAndPlots(t *testing.T) {
	r, dir := foundOnce(), t.TempDir()
	if err := r.files().write(dir); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.methods {
		if !(f.cost > 0) {
			t.Errorf("%s: %g ns", f.name, f.cost)
		}
		t.Logf("%-42s %6.2f of the linear system's cost", f.name, f.cost/r.methods[0].cost)
	}
	for name, rows := range map[string]int{"accuracy.csv": 1 + len(problems)*len(methods)*len(short.steps), "methods.csv": 1 + len(methods)} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if list, err := csv.NewReader(strings.NewReader(string(data))).ReadAll(); err != nil || len(list) != rows {
			t.Errorf("%s: %d rows, want %d: %v", name, len(list), rows, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "study.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range methods[1:] {
		if n := strings.Count(string(text), "| "+m.name+" |"); n != 5 {
			t.Errorf("study.md: %s is in %d tables, want 5", m.name, n)
		}
	}
	plots, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil || len(plots) != 23 {
		t.Fatalf("%d plots, want 23: figures 31 to 43 and two of each problem: %v", len(plots), err)
	}
	for _, file := range plots {
		wellFormed(t, file)
	}
}

// wellFormed checks that a plot is XML with curves and without NaN and Inf.
func wellFormed(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	paths := 0
	for d := xml.NewDecoder(strings.NewReader(string(data))); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "path" {
			paths++
		}
	}
	if paths < 10 || strings.Contains(string(data), "NaN") || strings.Contains(string(data), "Inf") {
		t.Errorf("%s: %d paths, want at least 10 and no NaN or Inf", filepath.Base(file), paths)
	}
}
