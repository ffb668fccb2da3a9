// Package target owns the process that ticks: it reads the hand-over, enters its thread and ticks
// until the run is over.
//
// It reads no bench and assembles no plant. Its caller makes the kernel: from tables in the command,
// from compiled code in a generated executable. Such an executable consists of this package and its
// imports only.
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
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/checkpoint"
	"lockstep/rt/fault"
	"lockstep/sched"
)

// Command is the first argument of a target process.
const Command = "target"

// Descriptors that the target inherits; the buses follow. They stay open for supervisors that attach.
const (
	HandoverFD = 3
	StatusFD   = 4
	FirstBusFD = 5
)

// Parts are the plant and the signal coders of a target.
type Parts struct {
	Plant     rt.Plant
	Snapshots fault.Restorer // of the plant; nil: the plant has its own, or none
	Signals   []rt.Signals   // one per bus, for its map of the hand-over; nil: the tables of the maps
}

// Maker makes the parts from a hand-over and the values that follow it.
type Maker func(h *Handover) (Parts, error)

// Main is the main function of a generated executable; it returns the exit code.
func Main(mark string, makes Maker) int {
	if len(os.Args) != 2 || os.Args[1] != Command {
		fmt.Fprintf(os.Stderr, "lockstep: this is a target process: lockstep run BENCH.yaml -kernel %s starts it\n",
			os.Args[0])
		return 2
	}

	if err := Run(mark, makes, nil); err != nil {
		fmt.Fprintf(os.Stderr, "lockstep: %v\n", err)
		return 1
	}

	return 0
}

// Run reads the inherited descriptors and ticks until the run is over. It returns an error if the run
// does not end cleanly. Before the first tick it writes the rights that the host refused to standard
// output, as []sched.Missing in JSON. unused is data of the executable for sched.Thread.Enter.
func Run(mark string, makes Maker, unused [][]byte) error {
	runtime.LockOSThread()
	name := append([]byte(sched.TargetName), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0); err != nil {
		return fmt.Errorf("target: %w", os.NewSyscallError("prctl(PR_SET_NAME)", err))
	}
	// The process has the name of its first thread; this goroutine may run on another thread.
	_ = os.WriteFile("/proc/self/comm", []byte(sched.TargetName), 0)
	// The terminal and the service manager signal the supervisor. It may end before the target.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	h, err := Open(os.NewFile(HandoverFD, "handover"))
	if err != nil {
		return fmt.Errorf("%w (a target is started by `lockstep run` only)", err)
	}
	if h.Mark != mark {
		return errors.New("target: this executable was generated from another plant or other signals: generate it again")
	}
	status, err := rt.MapStatusBlock(os.NewFile(StatusFD, "status block"))
	if err != nil {
		return err
	}
	status.CPU.Store(uint64(1 + h.Thread.CPU))
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
	refused := h.Thread.Enter(unused...)
	if !slices.ContainsFunc(refused, func(m sched.Missing) bool { return m.Of == sched.ResourceCPU }) {
		status.Pinned.Store(1)
	}
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

// stopOnSIGTERM makes SIGTERM end the run as a shutdown. The service manager signals all processes of a
// service, and the supervisor may have ended. The goroutine runs only after the signal.
func stopOnSIGTERM(status *rt.StatusBlock) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		status.Stop.Store(rt.StopShutdown)
	}()
}

// startSpareThreads makes the Go runtime start and park more threads than a run needs. Otherwise the
// runtime would start a thread, and allocate, when the loop stays long in a system call while another
// goroutine is ready.
func startSpareThreads() {
	const spare = 4 // two processors, twice
	ready, leave := make(chan struct{}), make(chan struct{})
	for range spare {
		go func() {
			runtime.LockOSThread() // the thread runs only this goroutine
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

// assemble makes the loop from the hand-over and the inherited bus sockets.
func (h *Handover) assemble(status *rt.StatusBlock, makes Maker) (*rt.Loop, error) {
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
	loop, err := rt.New(h.Loop, parts.Plant, buses, h.Maps, ticker, status)
	if err == nil && parts.Signals != nil {
		loop.UseCoders(parts.Signals)
	}
	if err == nil && parts.Snapshots != nil {
		loop.UseSnapshots(parts.Snapshots)
	}
	if err == nil && h.StateFD != 0 {
		var m *checkpoint.Memory
		if m, err = checkpoint.Map(os.NewFile(uintptr(h.StateFD), "state")); err == nil {
			loop.UseCheckpoint(m)
		}
	}
	return loop, err
}
