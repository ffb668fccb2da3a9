package supervisor

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/control"
	"lockstep/rt/fault"
	"lockstep/rt/host"
	"lockstep/rt/tableset"
	"lockstep/rt/target"
	"lockstep/sched"
)

// start starts the control unit, if the run has it, and the target. A signal ends the wait for the control unit.
func (r *Session) start(signals <-chan os.Signal) (err error) {
	if r.Handover.Timer.Sleep == sched.Timerfd {
		t := host.TimersOf(r.Handover.Thread.CPU, r.Reservations)
		if m := t.Raise(sched.TimerPriority(r.Handover.Thread.Priority)); m != nil {
			r.missing = append(r.missing, *m)
		}
		r.restore = t.Release
	}

	if err := r.startOwnUnit(signals); err != nil {
		return fmt.Errorf("run: %w", err)
	}

	r.Status.Supervisor.Store(host.SelfIdentity())
	held, err := r.Reservations.Files()
	r.inherit.target = slices.Concat(r.inherit.target, held, r.inherit.unconnected)
	if err != nil {
		return fmt.Errorf("run: target process: %w", err)
	}
	if r.Target, err = host.Spawn(r.program, withoutGC, r.inherit.target, target.Command); err != nil {
		return fmt.Errorf("run: target process: %w", err)
	}
	r.startedAt = sched.Now()
	r.Reservations.NameTarget(r.Target.PID)
	r.applyAffinity()
	r.startGuard()
	r.inherit.close()
	go r.watchdog.watch(r.Target, r.Guard)
	r.states.watch()
	r.ports.serve()
	r.power.serve()
	for _, p := range r.players {
		go p.Play(r.Status)
	}
	r.record.Record(len(r.missing) > 0)
	return nil
}

// Close kills the processes that this supervisor started, closes all files and restores the
// settings of the host. A target that was not taken over continues. Close does nothing in a panic
// during the run: the end of this process closes the rest, and the target reacts to it as to the
// death of any supervisor.
func (r *Session) Close() {
	if r.watching {
		return
	}
	r.inherit.close()
	r.page.Close()
	r.metrics.Close()
	r.Control.Close()
	r.inherit.life.Close() // no effect on nil
	r.file.Close()
	r.Scenario.Close()
	for _, p := range []*host.Process{r.Target, r.Unit, r.Guard} {
		if p != nil && p.IsChild() {
			p.Kill()
			p.Close()
		}
	}

	for _, p := range r.players {
		p.Log.Close()
	}
	r.states.close()
	r.watchdog.close()
	r.ports.close()
	r.power.close()
	r.notify.close()
	r.record.Release()
	r.restore()
	r.Reservations.Close()
}

// Limits of waiting, real time.
const (
	startTimeout = time.Minute     // from the start of the target to its first grid point
	Grace        = 2 * time.Second // from the last grid point, or the request to end, to the end of the target
)

// checkAffinity notes whether the loop's thread is still pinned to its CPU. The kernel moves the
// thread when the CPU goes offline.
func (r *Session) checkAffinity() {
	var set unix.CPUSet
	if unix.SchedGetaffinity(int(r.Status.Thread.Load()), &set) != nil {
		return // the thread has ended
	}
	if r.Status.Pinned.Load() == 1 && (set.Count() != 1 || !set.IsSet(r.Handover.Thread.CPU)) {
		r.loop.migrated.Store(true)
	}
}

// overdueReason returns why the supervisor must end the run: the target did not start or end in
// time, or the run lost a required address; "" for no reason.
func (r *Session) overdueReason(now int64) string {
	start, last := int64(r.Status.StartNs.Load()), r.Handover.Loop.Ticks
	grid := sched.Grid{Start: start, Period: r.Handover.Tables.PeriodNs}
	lost := cmp.Or(r.ports.endReason(), r.power.endReason())
	switch {
	case lost != "":
		return lost
	case start == 0 && now > r.startedAt+int64(startTimeout):
		return fmt.Sprintf("no tick within %v", startTimeout)
	case start != 0 && last > 0 && now > grid.Due(last+r.Handover.Loop.Safe.Ticks)+int64(Grace):
		_, points := r.Behind(now)
		return fmt.Sprintf("%d grid points were not served %v after the end of the run", points, Grace)
	}

	return ""
}

// pollInterval is the time between two polls of the status block.
const pollInterval = 100 * time.Millisecond

// repeatWindow is the time after the first signal in which further signals count as the same
// request: timeout(1) and a closing terminal send two.
const repeatWindow = 500 * time.Millisecond

// poll does the periodic work of the supervisor while the target ticks.
func (r *Session) poll(now time.Time) {
	r.notify.poll(now)
	r.ledger.Collect(r.View)
	r.clock.Collect(r.View)
	if r.Options.OnPoll != nil {
		r.Options.OnPoll(now)
	}
	if !r.loop.ticked && r.Status.Ticks.Load() > 0 {
		r.applyAffinity()
		r.loop.ticked = true
	}

	if r.loop.ticked {
		r.checkAffinity()
		if r.loop.affinity.LoopsChanged(now) {
			r.applyAffinity()
		}
	}
}

// applyAffinity keeps all threads of the run except the loop off the CPUs of loops, see
// host.Affinity.
func (r *Session) applyAffinity() {
	if r.loop.affinity == nil {
		r.loop.affinity = host.NewAffinity(r.Handover.Thread.CPU, r.Reservations)
	}
	var others []int
	for _, p := range []*host.Process{r.Unit, r.Guard} {
		if p != nil {
			others = append(others, p.PID)
		}
	}
	if r.Unit != nil && r.Bench.Program != nil {
		others = append(others, host.Descendants(r.Unit.PID)...)
	}
	r.loop.affinity.Apply(r.Target.PID, int(r.Status.Thread.Load()), others...)
}

// watch supervises the run until the target has ended. The first signal, or a reason from
// overdueReason, asks the target to end. A second signal, or Grace without an end, kills the target.
// watch never waits for the terminal.
func (r *Session) watch(signals <-chan os.Signal) {
	r.watching = true
	r.supervise(signals)
	r.watching = false // not deferred, see Close
}

// supervise is the loop of watch.
func (r *Session) supervise(signals <-chan os.Signal) {
	show := newStatus(r)
	defer show.end()
	clock := time.NewTicker(pollInterval)
	defer clock.Stop()
	var unitDone chan struct{}
	if r.Unit != nil {
		unitDone = r.Unit.Done
	}
	var killDue, windowOver <-chan time.Time
	killOnSignal := false // the next signal is a second request
	requestStop := func(how uint64) {
		r.Status.Stop.Store(how)
		killDue = time.After(Grace + time.Duration((2+r.Handover.Loop.Safe.Ticks)*r.Handover.Tables.PeriodNs))
	}

	for {
		select {
		case now := <-clock.C:
			show.requestDraw(now)
			r.poll(now)
			if r.Stop == "" && r.overdue == "" {
				if r.overdue = r.overdueReason(sched.Now()); r.overdue != "" {
					requestStop(rt.StopPlanned)
				}
			}
		case s := <-signals:
			r.killed = s == control.Request(control.StopNow)
			if r.killed || killOnSignal {
				r.Target.Kill()
				return
			}

			if r.Stop != "" {
				continue
			}
			r.Stop, windowOver = strings.ToLower(s.String()), time.After(repeatWindow)
			requestStop(map[bool]uint64{true: rt.StopShutdown, false: rt.StopPlanned}[s == syscall.SIGTERM])
		case <-windowOver:
			for len(signals) > 0 { // signals of the first request, delayed on a busy host
				<-signals
			}
			killOnSignal = true
		case <-killDue:
			r.Target.Kill()
			return
		case <-unitDone:
			r.unitEndedAt, unitDone = float64(r.Status.SimNs.Load())/1e9, nil
		case <-r.Target.Done:
			return
		}
	}
}

// Target runs the target process with the table kernel, in this binary executed again. A
// *host.Exit carries exit code 1 if the run did not end cleanly. unused is data of this binary for
// sched.Thread.Enter.
func Target(unused [][]byte) error {
	if err := target.Run("", tableKernel, unused); err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// tableKernel makes the plant from the tables that follow the hand-over.
func tableKernel(h *target.Handover) (target.Parts, error) {
	t := &kernel.Tables{}
	if err := h.Next(t); err != nil {
		return target.Parts{}, err
	}
	var changes []kernel.Change
	if err := h.Next(&changes); err != nil {
		return target.Parts{}, err
	}
	plant := kernel.NewSequence(t, changes)
	plant.ReserveSnapshots(fault.MaxSnapshots)
	if h.TableSetFD != 0 {
		sets, err := tableset.Map(os.NewFile(uintptr(h.TableSetFD), "table sets"))
		if err != nil {
			return target.Parts{}, err
		}
		plant.UseSlots(sets.Kernels())
	}
	return target.Parts{Plant: plant}, nil
}
