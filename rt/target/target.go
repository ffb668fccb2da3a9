// Package target owns the process that ticks: it takes the hand-over, enters its thread and ticks
// until the run is over.
//
// It reads no bench and assembles no plant. The caller brings the kernel: tables in the command,
// compiled code in a generated executable. Such an executable consists of this package and its
// imports.
//
// Reading order: target.go (Main, Run), handover.go (Handover, Open).
package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/sched"
)

// Command is the first argument of a target process.
const Command = "target"

// The descriptors the target inherits; the buses follow.
// They stay open: who attaches reads them.
const (
	HandoverFD = 3
	StatusFD   = 4
	FirstBusFD = 5
)

// Parts are what a target ticks with.
type Parts struct {
	Plant   rt.Plant
	Signals []rt.Signals // one per bus, each on its map of the hand-over; nil: the maps' own tables
}

// Maker makes the parts of a hand-over and of what follows it.
type Maker func(h *Handover) (Parts, error)

// Main is all that a generated executable does; it returns the exit code.
func Main(mark string, makes Maker) int {
	if len(os.Args) != 2 || os.Args[1] != Command {
		fmt.Fprintf(os.Stderr, "lockstep: this is a target process: lockstep run BENCH.yaml -kernel %s starts it\n",
			os.Args[0])
		return 2
	}

	if err := Run(mark, makes); err != nil {
		fmt.Fprintf(os.Stderr, "lockstep: %v\n", err)
		return 1
	}

	return 0
}

// Run takes what the process inherited and ticks until the run is over; the error says why the
// end was not a clean one. Before the first tick it writes to its standard output what the host
// refused, []sched.Missing as JSON.
func Run(mark string, makes Maker) error {
	runtime.LockOSThread()
	name := append([]byte(sched.TargetName), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0); err != nil {
		return fmt.Errorf("target: %w", os.NewSyscallError("prctl(PR_SET_NAME)", err))
	}
	// The goroutine may be on another thread by now than the first, which names the process.
	_ = os.WriteFile("/proc/self/comm", []byte(sched.TargetName), 0)
	// The terminal and the service manager speak to the supervisor, and it may end
	// before the target has said its last word.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	h, err := Open(os.NewFile(HandoverFD, "handover"))
	if err != nil {
		return fmt.Errorf("%w (a target is started by `lockstep run` only)", err)
	}
	if h.Mark != mark {
		return errors.New("target: the run is not of the plant and the signals that this executable was made from: generate it again")
	}
	status, err := rt.MapStatusBlock(os.NewFile(StatusFD, "page"))
	if err != nil {
		return err
	}
	loop, err := h.assemble(status, makes)
	if err != nil {
		return err
	}
	if err := status.RegisterThreadExit(); err != nil {
		return err
	}
	stopOnSIGTERM(status)
	startSpareThreads()
	latency, missing := sched.HoldLatency()
	if latency != nil {
		defer latency.Close()
	}
	refused := h.Thread.Enter()
	if missing != nil {
		refused = append(refused, *missing)
	}
	if err := json.NewEncoder(os.Stdout).Encode(refused); err != nil && !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("target: %w", err)
	}
	if err := loop.Run(); err != nil {
		return err
	}
	if reason := rt.Reason(status.Reason.Load()); !reason.Clean() {
		return errors.New(reason.String())
	}
	return nil
}

// stopOnSIGTERM lets SIGTERM end the run as a shutdown: the supervisor may be gone,
// and the service manager asks all processes of a service. What waits here does not
// run before the signal comes.
func stopOnSIGTERM(status *rt.StatusBlock) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		status.Stop.Store(rt.StopShutdown)
	}()
}

// startSpareThreads makes the runtime start more threads than a run can need and park
// them. It would otherwise start one, and allocate for it, when the loop sleeps in
// a system call for longer than usual and another goroutine is to run.
func startSpareThreads() {
	const spare = 4 // two processors, twice
	ready, leave := make(chan struct{}), make(chan struct{})
	for range spare {
		go func() {
			runtime.LockOSThread() // this goroutine's thread is nobody else's now
			ready <- struct{}{}
			<-leave
			runtime.UnlockOSThread() // the thread outlives the goroutine
			ready <- struct{}{}
		}()
	}

	for range spare {
		<-ready
	}
	close(leave)
	for range spare {
		<-ready
	}
}

// assemble makes the loop of what was handed over; the bus sockets are inherited.
func (h *Handover) assemble(page *rt.StatusBlock, makes Maker) (*rt.Loop, error) {
	parts, err := makes(h)
	if err != nil {
		return nil, err
	}
	var buses []*can.Bus
	for i := range h.Maps {
		bus, err := can.Inherit(os.NewFile(uintptr(FirstBusFD+i), fmt.Sprintf("bus %d", i)))
		if err != nil {
			return nil, err
		}
		buses = append(buses, bus)
	}

	ticker, err := sched.NewTimer(h.Timer.Sleep, h.Loop.Period, time.Duration(h.Timer.SpinNs))
	if err != nil {
		return nil, err
	}
	loop, err := rt.New(h.Loop, parts.Plant, buses, h.Maps, ticker, page)
	if err == nil && parts.Signals != nil {
		loop.UseCoders(parts.Signals)
	}
	return loop, err
}
