package sched

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
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

// A target collects no garbage: the part of the heap behind what it uses is not reachable.
func TestTheUnusedEndOfTheHeapIsNotReachable(t *testing.T) {
	if os.Getenv("GOGC") != "off" {
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), "GOGC=off")
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("without garbage collection: %v\n%s", err, out)
		}
		return
	}
	var kept [][]byte
	for range 40 { // the heap grows by 4 MiB at a time
		kept = append(kept, make([]byte, 300<<10))
		list, err := reachable()
		if err != nil {
			t.Fatal(err)
		}
		holds := func(at uint64) bool {
			return slices.ContainsFunc(list, func(m mapping) bool { return m.start <= at && at < m.end })
		}
		for _, slice := range kept {
			for at := 0; at < len(slice); at += 4096 {
				if !holds(uint64(uintptr(unsafe.Pointer(&slice[at])))) {
					t.Fatalf("byte %d of a slice is not among the reachable memory", at)
				}
			}
		}
		behind := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(make([]byte, 2<<20)))))
		if holds(behind + 1<<20) {
			t.Fatal("memory that was used after the list was made is among the reachable memory")
		}
	}
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

// The code of a tick is //go:nosplit. A package with such code that is missing from tickPackages would
// have page faults in a run.
func TestEveryPackageWithCodeOfTheTickIsKeptPresent(t *testing.T) {
	seen := 0
	for _, dir := range []string{"sched", "rt", "rt/fault", "rt/target", "io/can", "io/sigmap", "model", "model/kernel"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") || !strings.Contains(string(text), "\n//go:nosplit\n") {
				continue
			}
			if seen++; !isOfTick("lockstep/" + dir + ".(*T).f") {
				t.Errorf("%s has code of the tick, but its package is not in tickPackages", file)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d files have code of the tick", seen)
	}
}

func TestCodeOfTheTickIsToldByItsName(t *testing.T) {
	for name, want := range map[string]bool{
		"lockstep/rt.(*Loop).Tick": true, "lockstep/rt/fault.(*Set).DisturbInputs": true, "type:.eq.lockstep/io/can.Frame": true,
		"lockstep/sched.onThread[go.shape.int]": true, "main.(*Plant).Step": true, "runtime.memmove": true, "internal/runtime/atomic.Load": true,
		"lockstep/rt/plot.Draw": false, "lockstep/io/yamlfile.Read": false, "runtime/pprof.StartCPUProfile": false, "type:.eq.[2]string": false,
		"slices.IndexFunc[go.shape.[]lockstep/rt.Entry]": false, "fmt.Sprintf": false, "": false,
	} {
		if got := isOfTick(name); got != want {
			t.Errorf("%q: of the tick %v, want %v", name, got, want)
		}
		if n := testing.AllocsPerRun(10, func() { isOfTick(name) }); n != 0 {
			t.Errorf("%q: %g allocations, want 0", name, n)
		}
	}
}

// The function of this package that reads the clock is present; most code of this program, such as that
// of package testing, is not counted.
func TestOnlyCodeOfTheTickIsReachableByIt(t *testing.T) {
	all, err := reachable()
	if err != nil {
		t.Fatal(err)
	}
	list, err := reachableByTick(nil)
	if err != nil {
		t.Fatal(err)
	}
	size := func(list []mapping) (n uint64) {
		for _, m := range list {
			if m.exec && m.advice() != 0 {
				n += m.end - m.start
			}
		}
		return n
	}
	at := uint64(reflect.ValueOf(Now).Pointer())
	if !slices.ContainsFunc(list, func(m mapping) bool { return m.exec && m.start <= at && at < m.end }) {
		t.Errorf("the code of Now, at %x, is not reachable", at)
	}
	if n, most := size(list), size(all); n == 0 || n > most*3/4 {
		t.Errorf("%d of %d bytes of code are reachable by the tick", n, most)
	}
}

func TestPagesWithoutATableAreTheOthers(t *testing.T) {
	page := uint64(os.Getpagesize())
	m := mapping{start: 10 * page, end: 20 * page, read: true}
	for _, c := range []struct{ start, end, size uint64 }{
		{12*page + 1, 15*page + 1, 8}, {10 * page, 20 * page, 0}, {10 * page, 12 * page, 8}, {0, 0, 10}, {5 * page, 15 * page, 10}, {12, 12*page - 1, 10},
	} {
		n := uint64(0)
		for _, part := range m.without(c.start, c.end) {
			n += part.end - part.start
		}
		if n != c.size*page {
			t.Errorf("without %x to %x: %d pages, want %d", c.start, c.end, n/page, c.size)
		}
	}
}

// constants is data of the executable, several pages long, that nothing uses.
var constants = [5 << 12]byte{1}

func TestUnusedDataOfTheExecutableIsNotReachable(t *testing.T) {
	page := uint64(os.Getpagesize())
	start := uint64(uintptr(unsafe.Pointer(&constants[0])))
	first, last := (start+page-1)/page*page, (start+uint64(len(constants)))/page*page // whole pages
	holds := func(list []mapping, at uint64) bool {
		return slices.ContainsFunc(list, func(m mapping) bool { return m.start <= at && at < m.end })
	}
	all, err := reachableByTick(nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := reachableByTick([][]byte{nil, constants[:]})
	if err != nil {
		t.Fatal(err)
	}
	for at := first; at < last; at += page {
		if !holds(all, at) || holds(list, at) {
			t.Errorf("page %x: reachable %v, and %v where it is unused; want true and false", at, holds(all, at), holds(list, at))
		}
	}
	for _, at := range []uint64{first - 1, last} { // of other data, too
		if !holds(list, at) {
			t.Errorf("the byte at %x beside unused data is not reachable", at)
		}
	}
}
