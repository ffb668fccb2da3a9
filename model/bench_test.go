package model_test

import (
	"lockstep/model"
	"lockstep/model/kernel"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"
)

// bench steps a plant given as text and reads its outputs by name.
type bench struct {
	t      *testing.T
	k      *kernel.Kernel
	tables *kernel.Tables
	y, u   []float64
	ticks  int
}

func newBench(t *testing.T, text string, period time.Duration) *bench {
	t.Helper()
	return newBenchOf(t, text, kernel.Options{Period: period})
}

func newBenchOf(t *testing.T, text string, opt kernel.Options) *bench {
	t.Helper()
	p, err := model.Load("t.yaml", []byte(text), model.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := model.Assemble(p)
	if err != nil {
		t.Fatal(err)
	}
	opt.Driven = slices.Repeat([]bool{true}, len(sys.Inputs))
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, k: kernel.New(tables), tables: tables, y: make([]float64, len(tables.Outputs))}
	b.u = append(b.u, tables.Start...)
	b.k.Output(b.y)
	return b
}

// to steps until the given time; hook sees every grid time.
func (b *bench) to(seconds float64, hook func(at float64)) *bench {
	h := float64(b.tables.PeriodNs) * 1e-9
	for float64(b.ticks)*h < seconds-h/2 {
		b.k.Step(b.y, b.u)
		b.ticks++
		if hook != nil {
			hook(float64(b.ticks) * h)
		}
	}
	return b
}

func (b *bench) get(name string) float64 {
	b.t.Helper()
	for i, o := range b.tables.Outputs {
		if o.Name == name {
			return b.y[i]
		}
	}
	b.t.Fatalf("no output %q", name)
	return math.NaN()
}

func (b *bench) set(name string, v float64) {
	for i, in := range b.tables.Inputs {
		if in.Name == name {
			b.u[i] = v
			return
		}
	}
	b.t.Fatalf("no input %q", name)
}

// is checks an output against a closed form.
func (b *bench) is(name string, want, tol float64) {
	b.t.Helper()
	if got := b.get(name); !scalar.EqualWithinAbsOrRel(got, want, tol, tol) {
		b.t.Errorf("%s is %.12g at %g s, want %.12g", name, got, float64(b.ticks*int(b.tables.PeriodNs))*1e-9, want)
	}
}

const ms = time.Millisecond

// plantOf wraps elements and outputs, one per line, to a plant.
func plantOf(elements, outputs string) string {
	indent := func(s string) string {
		return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ") + "\n"
	}
	return "plant: t\nelements:\n" + indent(elements) + "outputs:\n" + indent(outputs)
}
