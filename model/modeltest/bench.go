// Package modeltest owns the helpers of tests that start from the text of a plant: they return its
// system, a kernel that steps it, or its error. It is only for tests and holds no expectations.
package modeltest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/kernel"
	"lockstep/model/units"
)

// Bench steps a plant given as text and reads its outputs by name.
type Bench struct {
	t      *testing.T
	Kernel *kernel.Kernel
	Tables *kernel.Tables
	Y, U   []float64 // outputs and inputs
	Ticks  int       // steps so far
}

// New prepares a plant for a period.
func New(t *testing.T, text string, period time.Duration) *Bench {
	t.Helper()
	return NewWith(t, text, kernel.Options{Period: period})
}

// NewWith prepares a plant with options of the kernel; all inputs are driven.
func NewWith(t *testing.T, text string, opt kernel.Options) *Bench {
	t.Helper()
	return prepare(t, text, opt, true)
}

// NewUndriven prepares a plant with options of the kernel; its inputs follow their own waveforms.
func NewUndriven(t *testing.T, text string, opt kernel.Options) *Bench {
	t.Helper()
	return prepare(t, text, opt, false)
}

func prepare(t *testing.T, text string, opt kernel.Options, driven bool) *Bench {
	t.Helper()
	sys := System(t, text)
	opt.Driven = slices.Repeat([]bool{driven}, len(sys.Inputs))
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	b := &Bench{t: t, Kernel: kernel.New(tables), Tables: tables, Y: make([]float64, len(tables.Outputs))}
	b.U = append(b.U, tables.Start...)
	b.Kernel.Output(b.Y)
	return b
}

// To steps until a time, s, and calls hook after each step; hook may be nil.
func (b *Bench) To(seconds float64, hook func(at float64)) *Bench {
	h := float64(b.Tables.PeriodNs) * 1e-9
	for float64(b.Ticks)*h < seconds-h/2 {
		b.Kernel.Step(b.Y, b.U)
		b.Ticks++
		if hook != nil {
			hook(float64(b.Ticks) * h)
		}
	}

	return b
}

// Get returns the value of an output.
func (b *Bench) Get(name string) float64 {
	b.t.Helper()
	return b.Y[b.find("output", name, b.Tables.Outputs)]
}

// find returns the index of the port called name.
func (b *Bench) find(kind, name string, ports []units.Port) int {
	b.t.Helper()
	i := slices.IndexFunc(ports, func(p units.Port) bool { return p.Name == name })
	if i < 0 {
		b.t.Fatalf("no %s %q", kind, name)
	}
	return i
}

// Set sets an input, in SI.
func (b *Bench) Set(name string, v float64) {
	b.U[b.find("input", name, b.Tables.Inputs)] = v
}

// Is checks that an output has the value want, within tol, absolute or relative.
func (b *Bench) Is(name string, want, tol float64) {
	b.t.Helper()
	if got := b.Get(name); !scalar.EqualWithinAbsOrRel(got, want, tol, tol) {
		b.t.Errorf("%s is %.12g at %g s, want %.12g", name, got, float64(b.Ticks*int(b.Tables.PeriodNs))*1e-9, want)
	}
}

// PlantOf returns the text of a plant with elements and outputs, one per line.
func PlantOf(elements, outputs string) string {
	indent := func(s string) string {
		return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ") + "\n"
	}
	return "plant: t\nelements:\n" + indent(elements) + "outputs:\n" + indent(outputs)
}
