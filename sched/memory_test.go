package sched

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestTouchReadsEveryPageAndSkipsRemovedMappings(t *testing.T) {
	const size = 1 << 20
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	start := uintptr(unsafe.Pointer(&mem[0]))
	for i := 0; i < size; i += 4096 {
		mem[i] = 1
	}
	before := touched
	touch(start, start+size)
	if n := touched - before; n != size/4096%256 {
		t.Errorf("read %d of the pages, modulo 256; want %d", n, size/4096%256)
	}
	if err := unix.Munmap(mem); err != nil {
		t.Fatal(err)
	}
	touch(start, start+size) // and goes on
}

// fresh returns memory that nothing has touched.
func fresh(t *testing.T, size int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return mem
}

func TestAReservationIsReachableOnlyWhereItHasBeenTouched(t *testing.T) {
	mem := fresh(t, 8<<20)
	mem[2<<20] = 1
	mem[2<<20+maxUntouched] = 1 // the part between is not too large
	mem[5<<20] = 1
	start := uint64(uintptr(unsafe.Pointer(&mem[0])))
	m := mapping{start: start, end: start + 8<<20}
	page := uint64(os.Getpagesize())
	var got [][2]uint64
	for _, part := range m.parts(m.touched()) {
		got = append(got, [2]uint64{part.start - start, part.end - start})
	}
	want := [][2]uint64{
		{2<<20 - untouchedMargin, 2<<20 + maxUntouched + page + untouchedMargin},
		{5<<20 - untouchedMargin, 5<<20 + page + untouchedMargin},
		{8<<20 - untouchedMargin, 8 << 20},
	}
	if !slices.Equal(got, want) {
		t.Errorf("parts %x, want %x", got, want)
	}
	m.end = start + maxUntouched
	if parts := m.parts(m.touched()); len(parts) != 1 || parts[0] != m {
		t.Errorf("parts %+v of an untouched small mapping, want all of it", parts)
	}
	if parts := m.parts(nil); len(parts) != 1 || parts[0] != m {
		t.Errorf("parts %+v of a mapping whose pages are unknown, want all of it", parts)
	}
}

// The tick may be the first to write to a large slice.
func TestTheHeapIsReachableAsAWhole(t *testing.T) {
	heap := make([]byte, 64<<20)
	list, err := reachable()
	if err != nil {
		t.Fatal(err)
	}
	first := uint64(uintptr(unsafe.Pointer(&heap[0])))
	for at := first; at < first+uint64(len(heap)); at += 4096 {
		if !slices.ContainsFunc(list, func(m mapping) bool { return m.start <= at && at < m.end }) {
			t.Fatalf("byte %d of a new slice is not among the reachable memory", at-first)
		}
	}
	runtime.KeepAlive(heap)
}

func TestLockedMemoryIsLockedAndPresent(t *testing.T) {
	mem := fresh(t, 1<<20)
	start := uint64(uintptr(unsafe.Pointer(&mem[0])))
	list := []mapping{{start: start, end: start + 1<<20, read: true, write: true}}
	if missing := lockMemory(list); missing != nil {
		if !strings.Contains(missing.What, "mlock of 2 MB: ") || missing.Of != ResourceMemory {
			t.Errorf("%+v", missing)
		}
		return // a host that locks nothing
	}
	defer func() { _ = unix.Munlock(mem) }()
	var before, after unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &before)
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
	}
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &after)
	if n := after.Minflt - before.Minflt; n > 16 { // of 256 pages; the runtime may fault
		t.Errorf("%d page faults in locked memory", n)
	}
	if missing := lockMemory([]mapping{{start: 0, end: 1 << 60}}); missing == nil || !strings.Contains(missing.What, "needs 1099511627776 MB, more than half of the host's memory") {
		t.Errorf("memory of 2^60 bytes: %+v", missing)
	}
}
