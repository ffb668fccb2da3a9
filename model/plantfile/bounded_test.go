package plantfile_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

// prepared prepares the plant of a text, or returns why it is refused.
func prepared(text string) error {
	d, err := plantfile.Parse("p.yaml", []byte(text), library.Elements())
	if err != nil {
		return err
	}
	plant, err := d.Load()
	if err != nil {
		return err
	}
	sys, err := assemble.System(plant)
	if err != nil {
		return err
	}
	if _, err := assemble.StartOf(plant); err != nil {
		return err
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
	if err == nil {
		kernel.New(tables)
	}
	return err
}

// chainOf returns a plant of n bodies; join returns the elements between body i-1 and body i.
func chainOf(n int, inertia string, join func(i int) string) string {
	var text strings.Builder
	text.WriteString("plant: p\nelements:\n  ground: {type: fixed}\n")
	for i := range n {
		fmt.Fprintf(&text, "  b%d: {type: inertia, J: %s}\n", i, inertia)
		if i > 0 {
			text.WriteString(join(i))
		}
	}
	return text.String()
}

// between returns an element between body i-1 and body i.
func between(format string, values ...string) func(i int) string {
	return func(i int) string {
		text := fmt.Sprintf("  k%d: {type: %s, a: b%d, b: b%d}\n", i, format, i-1, i)
		if len(values) > 0 {
			text = strings.ReplaceAll(text, "VALUE", values[i%len(values)])
		}
		return text
	}
}

// many returns n elements; I stands for their number.
func many(n int, element string) string {
	var text strings.Builder
	for i := range n {
		text.WriteString("  " + strings.ReplaceAll(element, "I", fmt.Sprint(i)) + "\n")
	}
	return text.String()
}

// processorTime returns the processor time of this process.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestPreparationIsBoundedInTime prepares plants with the largest and the smallest accepted numbers, and
// with as many elements as a file may have. Each is accepted or refused within a bounded multiple of the
// processor time of an ordinary chain of 400 bodies and springs, prepared by the same process. The bounds
// are those of a file (size, elements), of every number (units.AllSizes), of the substeps of a period
// (kernel.MaxSplit) and of the memory for lock sets.
func TestPreparationIsBoundedInTime(t *testing.T) {
	spring := between("spring, c: 100")
	began := processorTime(t)
	if err := prepared(chainOf(400, "1", spring)); err != nil {
		t.Fatal(err)
	}
	ordinary := max(processorTime(t)-began, 20*time.Millisecond) // the clock of a busy host is coarse
	const most = 100                                             // the chain of 1000 bodies takes 18

	two := chainOf(2, "1", spring)
	for _, c := range []struct{ name, text, refused string }{ // refused: part of the error, "": accepted
		{"stiffest springs on lightest bodies", chainOf(60, "1e-12", between("spring, c: 1e15")), "too fast for a period"},
		{"stiffest and softest springs by turns", chainOf(200, "1e12", between("spring, c: VALUE", "1e15", "1e-12")), ""},
		{"largest and smallest dampers by turns", chainOf(100, "1e12", between("spring_damper, c: VALUE", "1e15, d: 1e12", "1e-12, d: 1e-12")), ""},
		{"largest and smallest ratios by turns", chainOf(300, "1", between("ideal_gear, ratio: VALUE", "1e6", "1e-6")), ""},
		{"largest ratios in a chain", chainOf(300, "1", between("ideal_gear, ratio: 1e6")), "correct a ratio"},
		{"largest ratios of planetary sets", many(200, "sI: {type: inertia, J: 1}\n  rI: {type: inertia, J: 1}\n  cI: {type: inertia, J: 1}\n"+
			"  pI: {type: ideal_planetary, sun: sI, carrier: cI, ring: rI, ratio: 1e6}"), ""},
		{"chain of losses", chainOf(100, "1", between("lossy_gear, lossTable: [[0, 0.97, 0.96, 0.5, 0.6]], ratio: VALUE", "2", "0.5")), "its losses depend too strongly"},
		{"massless nodes of all stiffnesses", two + "  m0: {type: spring, a: b0, b: x0, c: 1e15}\n" + many(300, "sI: {type: spring, a: xI, b: yI, c: 1e-12}\n"+
			"  tI: {type: spring, a: xI, b: b1, c: 1e-12}\n  uI: {type: spring, a: yI, b: b1, c: 1e15}"), "whose torque would be lost in rounding"},
		{"springs of four regions", chainOf(60, "1", between("affine_spring, c: [40, 300, 100, 900], borders: [0.03, 0.08, 0.2]")), ""},
		{"springs of four regions and clutches", chainOf(6, "1", between("affine_spring, c: [40, 300, 100, 900], borders: [0.03, 0.08, 0.2]")) +
			many(6, "cI: {type: brake, flange: bI, mu: 1, cgeo: 1, fn: 10}"), ""},
		{"most clutches", chainOf(65, "1", between("clutch, mu: 1, cgeo: 1, fn: 10")), ""},
		{"most brakes of one body", two + many(64, "cI: {type: brake, flange: b0, mu: 1, cgeo: 1, fn: 10}"), ""},
		{"more brakes of one body", two + many(300, "cI: {type: brake, flange: b0, mu: 1, cgeo: 1, fn: 10}"), "at most 64 are possible"},
		{"shortest pulses", two + many(60, "cI: {type: brake, flange: b0, mu: 1, cgeo: 1, fn: {pulse: {amplitude: 1, width: 50, period: 1e-6 s}}}"), "repeats every"},
		{"every body joined to every other", chainOf(40, "1", func(i int) string {
			return many(i, fmt.Sprintf("k%d_I: {type: spring, a: bI, b: b%d, c: 1}", i, i))
		}), ""},
		{"most elements", chainOf(1000, "1", spring), ""},
		{"more elements", chainOf(1001, "1", spring), "more than 2000 elements"},
		{"longest file", two + "# " + strings.Repeat("x", 262144), "more than 262144"},
	} {
		if !strings.HasPrefix(c.text, "plant:") {
			c.text = "plant: p\nelements:\n" + c.text
		}
		began := processorTime(t)
		done := make(chan error, 1)
		go func() { done <- prepared(c.text) }()
		for waits := true; waits; {
			select {
			case err := <-done:
				waits = false
				if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%s: %v; want %q", c.name, err, c.refused)
				}
			case <-time.After(20 * time.Millisecond):
				if spent := processorTime(t) - began; spent > most*ordinary {
					t.Fatalf("%s: %v of processor time and not ready, more than %d times the %v of 400 bodies", c.name, spent, most, ordinary)
				}
			}
		}
		t.Logf("%-40s %.2f of 400 bodies", c.name, float64(processorTime(t)-began)/float64(ordinary))
	}
}
