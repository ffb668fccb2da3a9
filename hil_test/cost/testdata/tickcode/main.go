// Command tickcode has a function for each kind of call that is forbidden in a tick, and the
// function clean without such a call. tick_code_test.go must find the former and accept the latter.
package main

import (
	"fmt"
	"math"
	"os"
	"sync"
	"syscall"
)

type thing struct {
	next *thing
	list []int
	data [64]float64
	at   int
	call func(*thing)
	lock sync.Mutex
	m    map[int]int
	c    chan int
	any  any
}

//go:noinline
//go:nosplit
func clean(t *thing) {
	t.at = (t.at + 1) & 63
	t.data[t.at] = math.Sqrt(math.Abs(t.data[0])) + float64(t.data[1]*t.data[2])
	if t.at < len(t.list) {
		t.list = t.list[:t.at]
	}
	copy(t.data[:8], t.data[8:])
	syscall.RawSyscall6(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
}

//go:noinline
//go:nosplit
func fuses(t *thing) { t.data[0] += t.data[1] * t.data[2] }

//go:noinline
func grows(t *thing) { clean(t) }

//go:noinline
//go:nosplit
func deep(t *thing) { grows(t) }

//go:noinline
//go:nosplit
func allocates(t *thing) int { return *escapes(t.at) }

//go:noinline
//go:nosplit
func escapes(v int) *int { return &v }

//go:noinline
//go:nosplit
func appends(t *thing) int {
	s := append(t.list, 1)
	return len(s)
}

//go:noinline
//go:nosplit
func storesPointer(t *thing) { t.next = t }

//go:noinline
//go:nosplit
func locks(t *thing) { t.lock.Lock() }

//go:noinline
//go:nosplit
func readsMap(t *thing) int { return t.m[t.at] }

//go:noinline
//go:nosplit
func sends(t *thing) { t.c <- 1 }

//go:noinline
//go:nosplit
func defers(t *thing) {
	for range t.at {
		defer clean(t)
	}
}

//go:noinline
//go:nosplit
func asserts(t *thing) string { return t.any.(fmt.Stringer).String() }

//go:noinline
//go:nosplit
func sine(t *thing) { t.data[0] = math.Sin(t.data[1]) }

//go:noinline
//go:nosplit
func rounds(t *thing) { t.data[0] = math.Floor(t.data[1]) }

//go:noinline
//go:nosplit
func prints(t *thing) { fmt.Fprintln(os.Stderr, t.at) }

//go:noinline
//go:nosplit
func blocks(t *thing) { syscall.Syscall(syscall.SYS_READ, uintptr(t.at), 0, 0) }

//go:noinline
//go:nosplit
func indirect(t *thing) { t.call(t) }

//go:noinline
func recurses(t *thing) {
	if t.at--; t.at > 0 {
		recursesToo(t)
	}
}

//go:noinline
func recursesToo(t *thing) { recurses(t) }

func main() {
	t := &thing{call: clean}
	for _, f := range []func(*thing){
		clean, fuses, deep, storesPointer, locks, sends, defers, sine, rounds, prints, blocks, indirect, recurses,
	} {
		f(t)
	}
	fmt.Println(allocates(t), appends(t), readsMap(t), asserts(t))
}
