package supervisor

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// guard is the part of the supervisor that watches over the target and waits for
// nothing else: no terminal, no file. When the target has died it puts the safe
// values on the buses in its place, within two ticks; when no tick comes any more
// it ends the target first.
type guard struct {
	report.View
	target *host.Process // since it was started
	buses  []*can.Bus    // of the supervisor's own; they only send

	done      chan struct{} // closed when the target has ended and the buses are as they shall be
	hung      string        // why it ended the target; "" it did not
	frames    int           // safe frames sent in the target's place
	safeAfter time.Duration // from the last grid point that the target served to the first of them
}

// guardInterval is how often the guard looks at the tick counter.
const guardInterval = 20 * time.Millisecond

// watch watches over the target until it has ended. Its thread is the nicest to itself that the
// host grants, -20: the bus must not wait for whatever else this host is doing. It
// has no real-time priority: this process collects garbage, and a real-time thread
// that waits for the collector on its CPU would never let it run.
func (g *guard) watch(target *host.Process) {
	g.target = target
	defer close(g.done)
	runtime.LockOSThread()                                      // and never unlocked: the thread ends with its priority
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20) // best effort
	for !g.waitEnded() {
		if g.hung != "" {
			continue
		}
		if still, _ := g.Behind(sched.Now()); still > g.hangLimit() {
			g.hung = fmt.Sprintf("no tick for %.1f s (watchdog)", still.Seconds())
			g.target.Signal(unix.SIGKILL)
		}
	}

	p := g.Status
	unsaid := rt.State(p.State.Load()) != rt.Ended || rt.Reason(p.Reason.Load()) == rt.TimerFailed // what is on the bus
	if p.StartNs.Load() != 0 && unsaid && g.Handover.Bench.End.TargetGone {
		g.sendSafeValues(sched.Now())
	}
}

// hangLimit is how long no tick may come. None does while the safe values follow the
// end of a run.
func (g *guard) hangLimit() time.Duration {
	d := g.Handover.Bench.WatchNs
	if rt.Reason(g.Status.Reason.Load()) != rt.NotEnded {
		d += g.Handover.Loop.Safe.Ticks * g.Handover.Tables.PeriodNs
	}
	return time.Duration(d)
}

// waitEnded waits a little, and tells whether the loop has ended: its thread says so
// before its process does.
func (g *guard) waitEnded() bool {
	died, known := g.Status.WaitThreadExit(guardInterval)
	if !known {
		return g.target.WaitEnded(guardInterval)
	}
	return died || g.target.WaitEnded(0)
}

// sendSafeValues sends the safe values: every frame at once, then in their cycles. The
// counters go on from where the target was.
func (g *guard) sendSafeValues(now int64) {
	h, p := g.Handover, g.Status
	grid := sched.Grid{Start: int64(p.StartNs.Load()), Period: h.Tables.PeriodNs}
	at := 0
	for _, m := range h.Maps {
		for i := range m.Tx {
			m.Tx[i].SetCounts(p.TxCount[at].Load())
			at++
		}
	}

	first := (now - grid.Start) / grid.Period
	for k := first; k <= first+h.Loop.Safe.Ticks; k++ {
		if k > first {
			time.Sleep(time.Duration(grid.Due(k) - sched.Now()))
		}
		var f can.Frame
		for b, m := range h.Maps {
			for i := range m.Tx {
				if (k == first || m.Tx[i].Due(k)) && m.Encode(&f, i, k, h.Loop.Safe.Values, false) && g.buses[b].Send(&f) {
					g.frames++
				}
			}
		}

		if k == first {
			g.safeAfter = time.Duration(sched.Now() - grid.Due(int64(p.Ticks.Load())))
		}
	}
}

// close gives up the guard's buses.
func (g *guard) close() {
	for _, b := range g.buses {
		b.Close()
	}
	g.buses = nil
}
