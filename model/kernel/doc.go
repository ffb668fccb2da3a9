// Package kernel owns an assembled plant on a grid: it discretises the plant, precomputes its lock
// sets and steps it.
//
// Prepare makes Tables from a model.System, New a Kernel from Tables, Step one tick. Prepare may
// fail and allocates. Step does neither; every loop in it has a bound that Prepare fixed. The
// package does not read files, clocks or names of buses.
//
// METHOD.md describes the method: equations and their sources, symbols, tolerances, the bounds of a
// tick, and every source file in reading order. Begin with prepare.go, kernel.go and step.go.
//
// Every function that Step reaches is marked //go:nosplit: the scheduler of Go preempts a goroutine
// where a function may grow its stack, and at any instruction of a function without the mark. A
// function added to the tick gets the mark, appends nothing and stores no pointer. It calls nothing
// of the runtime but memmove and memclr, and of package math only functions that are one
// instruction (elementary.go has the other functions). hil_test/cost/tick_code_test.go disassembles
// the command and names the chain of calls that breaks this.
//
// The linker refuses a chain of direct calls of more than about 800 bytes of stack; the indirect
// calls of calls.go restart the count. All of a tick must fit in 16 KB without recursion: the loop
// grows its stack to 64 KB before the first tick. A build without inlining (-gcflags=-l) takes more
// than the linker allows.
package kernel
