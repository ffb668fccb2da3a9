package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// watchdog supervises the target and waits for nothing else: no terminal, no file. It kills a
// target that stops ticking. When the target has died, it sends the safe values on the buses within
// two ticks. The watchdog of a run with real-time rights is a process of its own, the guard.
type watchdog struct {
	report.View
	target *host.Process // target process; set by watch
	buses  []*can.Bus    // sockets that only send

	done       chan struct{} // closed after the end of the target and of the safe values
	supervisor int           // parent of the guard process, with which it ends; 0: this process is no guard
	guardError string        // why the guard does not guard the target; "": it does, or there is none
	protection
}

// protection is what a watchdog has done; a guard writes it as JSON.
type protection struct {
	Timeout   string        // reason why the watchdog killed the target; "": it did not
	Frames    int           // safe frames sent for the target
	SafeAfter time.Duration // from the last grid point of the target to the first safe frame
}

// watchdogInterval is the time between two reads of the tick counter.
const watchdogInterval = 20 * time.Millisecond

// watch supervises the target until its end: by its guard or, without a guard or after the guard's
// death, by a thread of this process. That thread has nice value -20 if the host grants it, so that
// load on the host delays the safe values less. The thread has no real-time priority: it would
// starve the garbage collector of this process on its CPU and then wait for it forever.
func (w *watchdog) watch(target, guard *host.Process) {
	w.target = target
	defer close(w.done)
	if guard != nil {
		<-guard.Done
		if json.Unmarshal(guard.Stdout.Bytes(), &w.protection) == nil {
			return
		}
		if !target.WaitEnded(0) {
			w.guardError = guard.HowEnded()
		}
	}

	runtime.LockOSThread()                                      // never unlocked: the thread ends with its nice value
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20) // best effort
	w.supervise()
}

// supervise kills a target that stops ticking and, after the end of the target, sends the safe
// values. It returns false if the supervisor of a guard has ended before.
func (w *watchdog) supervise() bool {
	for !w.waitEnded() {
		if w.supervisor != 0 && os.Getppid() != w.supervisor {
			return false
		}
		if w.Timeout != "" {
			continue
		}
		if overdue, _ := w.Behind(sched.Now()); overdue > w.limit() {
			w.Timeout = fmt.Sprintf("no tick for %.1f s (watchdog)", overdue.Seconds())
			w.target.Signal(unix.SIGKILL)
		}
	}

	p := w.Status
	incomplete := rt.State(p.State.Load()) != rt.Ended || rt.Reason(p.Reason.Load()) == rt.TimerFailed
	if p.StartNs.Load() != 0 && incomplete && w.Handover.Bench.End.TargetGone {
		w.sendSafeValues(sched.Now())
	}
	return true
}

// limit returns how long a tick may be overdue. While the target sends safe values after the end of
// the run, no tick comes.
func (w *watchdog) limit() time.Duration {
	d := w.Handover.Bench.Watchdog(len(w.Handover.Missing) == 0)
	if rt.Reason(w.Status.Reason.Load()) != rt.NotEnded {
		d += time.Duration(w.Handover.Loop.Safe.Ticks * w.Handover.Tables.PeriodNs)
	}
	return d
}

// waitEnded waits at most watchdogInterval and reports whether the loop has ended. The kernel
// reports the end of the loop's thread before the end of the process.
func (w *watchdog) waitEnded() bool {
	died, known := w.Status.WaitThreadExit(watchdogInterval)
	if !known {
		return w.target.WaitEnded(watchdogInterval)
	}
	return died || w.target.WaitEnded(0)
}

// sendSafeValues sends the safe values: every frame that the ignition and the network management let be sent at once,
// then each frame in its cycle. So it wakes no bus that sleeps. The counters continue from those of the target.
func (w *watchdog) sendSafeValues(now int64) {
	h, p := w.Handover, w.Status
	grid := sched.Grid{Start: int64(p.StartNs.Load()), Period: h.Tables.PeriodNs}
	h.Loop.Faults.SetWaveforms(h.Maps)
	p.HoldSetValues(h.Maps)
	at := 0
	for _, m := range h.Maps {
		for i := range m.Tx {
			m.Tx[i].SetCounts(p.TxCount[at].Load())
			m.Tx[i].PhaseTicks = int64(p.TxPhase[at].Load())
			at++
		}
	}

	first := (now - grid.Start) / grid.Period
	for k := first; k <= first+h.Loop.Safe.Ticks; k++ {
		if k > first {
			time.Sleep(time.Duration(grid.Due(k) - sched.Now()))
		}
		var f can.Frame
		at = 0
		for b, m := range h.Maps {
			here := p.TxFirst[at : at+len(m.Tx)]
			at += len(m.Tx)
			if p.Muted.Load()>>b&1 == 1 {
				continue
			}
			for i := range m.Tx {
				if k >= int64(here[i].Load()) && (k == first || m.Tx[i].Due(k)) && m.Encode(&f, i, k, h.Loop.Safe.Values, false) && w.buses[b].Send(&f) {
					w.Frames++
				}
			}
			w.buses[b].Flush(grid.Due(k), 0)
		}

		if k == first {
			w.SafeAfter = time.Duration(sched.Now() - grid.Due(int64(p.Ticks.Load())))
		}
	}
}

// useWire tells a socket of a bus by wire which box it sends to.
func useWire(h *bench.Handover, bus int, on *can.Bus) error {
	if h.Loop.Wires == nil {
		return nil
	}
	return on.UseWire(h.Loop.Wires[bus], nil, 0)
}

// close closes the buses.
func (w *watchdog) close() {
	for _, b := range w.buses {
		b.Close()
	}
	w.buses = nil
}
