package bench

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
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/sched"
)

// TargetCommand is the first argument that makes this binary the target process.
const TargetCommand = "target"

// The descriptors the target inherits; the buses follow.
// They stay open: who attaches reads them.
const (
	handoverFD = 3
	pageFD     = 4
	firstBusFD = 5
)

// targetName is how ps and chrt show the target; 15 letters at most.
const targetName = "lockstep-target"

// Target is the process that ticks: it takes what it inherited and ticks until
// the run is over. An *Exit carries exit code 1 when the end was not a clean one.
// Before the first tick it writes to its standard output what the host refused,
// []sched.Missing as JSON.
func Target() error {
	reason, err := target()
	if err == nil && !reason.Clean() {
		err = errors.New(reason.String())
	}
	if err != nil {
		return &Exit{1, err}
	}
	return nil
}

func target() (rt.Reason, error) {
	runtime.LockOSThread()
	name := append([]byte(targetName), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0); err != nil {
		return 0, fmt.Errorf("bench: target: %w", os.NewSyscallError("prctl(PR_SET_NAME)", err))
	}
	// The terminal and the service manager speak to the supervisor, and it may end
	// before the target has said its last word.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	h, err := loadHandover(os.NewFile(handoverFD, "handover"))
	if err != nil {
		return 0, fmt.Errorf("%w (`lockstep %s` is started by `lockstep run` only)", err, TargetCommand)
	}
	page, err := rt.MapPage(os.NewFile(pageFD, "page"))
	if err != nil {
		return 0, err
	}
	loop, err := h.assemble(page)
	if err != nil {
		return 0, err
	}
	if err := page.Bequeath(); err != nil {
		return 0, err
	}
	terminated(page)
	spareThreads()
	latency, missing := sched.HoldLatency()
	if latency != nil {
		defer latency.Close()
	}
	refused := h.Thread.Enter()
	if missing != nil {
		refused = append(refused, *missing)
	}
	if err := json.NewEncoder(os.Stdout).Encode(refused); err != nil && !errors.Is(err, syscall.EPIPE) {
		return 0, fmt.Errorf("bench: target: %w", err)
	}
	err = loop.Run()
	return rt.Reason(page.Reason.Load()), err
}

// terminated lets SIGTERM end the run as a shutdown: the supervisor may be gone,
// and the service manager asks all processes of a service. What waits here does not
// run before the signal comes.
func terminated(page *rt.Page) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		page.Stop.Store(rt.StopShutdown)
	}()
}

// spareThreads makes the runtime start more threads than a run can need and park
// them. It would otherwise start one, and allocate for it, when the loop sleeps in
// a system call for longer than usual and another goroutine is to run.
func spareThreads() {
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
func (h *Handover) assemble(page *rt.Page) (*rt.Loop, error) {
	var buses []*can.Bus
	for i := range h.Maps {
		bus, err := can.Inherit(os.NewFile(uintptr(firstBusFD+i), fmt.Sprintf("bus %d", i)))
		if err != nil {
			return nil, err
		}
		buses = append(buses, bus)
	}
	ticker, err := sched.NewTimer(h.Timer.Sleep, time.Duration(h.Tables.PeriodNs), time.Duration(h.Timer.SpinNs))
	if err != nil {
		return nil, err
	}
	return rt.New(h.Loop, kernel.New(h.Tables), buses, h.Maps, ticker, page)
}
