package sched

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/sched/hostinfo"
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

// The mapping needs no memory: nothing is written to it.
func TestMoreThanHalfOfTheHostsMemoryIsNotLocked(t *testing.T) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	total := int(info.Totalram) * int(info.Unit)
	mem, err := unix.Mmap(-1, 0, total/4*3, unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	m := lockMemory()
	if m == nil || m.Of != ResourceMemory || !strings.Contains(m.Help, "smaller plant") {
		_ = unix.Munlockall()
		t.Fatalf("%d of %d bytes are mapped; missing: %+v", len(mem), total, m)
	}
	var size, all int // MB, kB
	_, text, _ := strings.Cut(m.What, " maps ")
	if _, err := fmt.Sscan(text, &size); err != nil {
		t.Fatalf("%q: %v", m.What, err)
	}
	if _, err := fmt.Sscan(hostinfo.Files("/").Fields("proc/self/status")["VmSize"], &all); err != nil {
		t.Fatal(err)
	}
	if size < len(mem)>>20 || size > all>>10 {
		t.Errorf("the process is said to map %d MB; a mapping alone has %d MB, all have %d MB", size, len(mem)>>20, all>>10)
	}
}

func TestLargestMappingMadePresentHas256MB(t *testing.T) {
	for size, want := range map[uint64]int{256 << 20: unix.MADV_POPULATE_WRITE, 256<<20 + 4096: 0} {
		if got := (mapping{start: 4096, end: 4096 + size, read: true, write: true}).advice(); got != want {
			t.Errorf("%d bytes: advice %d, want %d", size, got, want)
		}
	}
}
