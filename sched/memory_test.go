package sched

import (
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
