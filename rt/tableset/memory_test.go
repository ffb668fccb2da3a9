package tableset_test

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
	"lockstep/model/plants"
	"lockstep/rt/tableset"
)

// tablesOf prepares a plant, with texts replaced by others. Its inputs follow its own sources.
func tablesOf(t *testing.T, name string, replace ...string) *kernel.Tables {
	t.Helper()
	text, err := plants.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	sys := modeltest.System(t, strings.NewReplacer(replace...).Replace(string(text)))
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// memoryFor returns a memory for kernels like that of tables, whose target is this process.
func memoryFor(t *testing.T, tables *kernel.Tables) (*tableset.Memory, []*kernel.Kernel) {
	t.Helper()
	f, m, err := tableset.New(kernel.New(tables), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	target, err := tableset.Map(f) // at another address than m
	if err != nil {
		t.Fatal(err)
	}
	return m, target.Kernels()
}

// compareOffers steps a plant with tables a that takes over kernels from memory: tables b and a in turn, every
// 20 ticks. It compares each output with that of a plant whose kernels are on the heap.
func compareOffers(t *testing.T, a, b *kernel.Tables) {
	t.Helper()
	m, slots := memoryFor(t, a)
	one, other := kernel.NewSequence(a, nil), kernel.NewSequence(a, nil)
	other.UseSlots(slots)
	heap := []*kernel.Kernel{kernel.New(a), kernel.New(a)}
	want, got := make([]float64, len(a.Outputs)), make([]float64, len(a.Outputs))
	for k := range 300 {
		if k%20 == 10 {
			tables, slot := b, k/20%2
			if slot == 1 {
				tables = a
			}
			if err := m.Write(slot, []*kernel.Kernel{kernel.New(tables)}, tables.Name); err != nil {
				t.Fatal(err)
			}
			if text := m.Text(slot); text != tables.Name {
				t.Errorf("text %q, want %q", text, tables.Name)
			}
			runtime.GC() // what the memory holds must not depend on the heap of its writer
			heap[slot] = kernel.New(tables)
			one.UseSlots(heap)
			one.Offer(slot)
			if n := testing.AllocsPerRun(1, func() { other.Offer(slot) }); n != 0 {
				t.Errorf("an offer allocates %g times", n)
			}
		}
		one.Step(want, a.Start)
		other.Step(got, a.Start)
		for i := range want {
			if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
				t.Fatalf("tick %d: %s is %.17g, want %.17g", k+1, a.Outputs[i].Name, got[i], want[i])
			}
		}
		waits, why := one.Offered()
		if w, y := other.Offered(); w != waits || y != why {
			t.Fatalf("tick %d: offer waits %t, obstacle %d; want %t, %d", k+1, w, y, waits, why)
		}
	}
}

func TestKernelInSharedMemoryStepsAsOneOnTheHeap(t *testing.T) {
	for _, e := range plants.List() {
		if e.Kind != "plant" || e.Name == "train20" { // train3 is stepped sparse, too
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			a := tablesOf(t, e.Name)
			if a.Follows(a) != nil {
				t.Skip("a plant in two parts keeps its tables")
			}
			compareOffers(t, a, a)
		})
	}
	t.Run("other parameters", func(t *testing.T) {
		compareOffers(t, tablesOf(t, "powershift"), tablesOf(t, "powershift", "mu_oil: {value: 0.1", "mu_oil: {value: 0.12"))
	})
}

func TestTakingOverAKernelInSharedMemoryAllocatesNothing(t *testing.T) {
	a := tablesOf(t, "powershift")
	m, slots := memoryFor(t, a)
	for i := range slots {
		if err := m.Write(i, []*kernel.Kernel{kernel.New(a)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	s, y, n := kernel.NewSequence(a, nil), make([]float64, len(a.Outputs)), 0
	s.UseSlots(slots)
	if allocs := testing.AllocsPerRun(100, func() {
		s.Offer(n % 2)
		s.Step(y, a.Start)
		n++
	}); allocs != 0 {
		t.Errorf("%g allocations per change", allocs)
	}
}

func TestKernelThatIsTooLargeIsRefused(t *testing.T) {
	m, _ := memoryFor(t, tablesOf(t, "oscillator"))
	large := kernel.New(tablesOf(t, "powershift"))
	if err := m.Write(0, []*kernel.Kernel{large}, ""); err == nil || !strings.Contains(err.Error(), "the run has room for") {
		t.Errorf("error %v", err)
	}
	small := kernel.New(tablesOf(t, "oscillator"))
	if err := m.Write(0, []*kernel.Kernel{small}, strings.Repeat("x", 1<<14)); err == nil || !strings.Contains(err.Error(), "bytes of text") {
		t.Errorf("error %v", err)
	}
}

func TestKernelIsRefusedBeforeTheTargetHasMappedTheMemory(t *testing.T) {
	k := kernel.New(tablesOf(t, "oscillator"))
	f, m, err := tableset.New(k, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := m.Write(0, []*kernel.Kernel{k}, ""); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("error %v", err)
	}
}
