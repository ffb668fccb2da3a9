package supervisor

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/rt/target"
	"lockstep/sched"
)

// start starts the control unit, where it is virtual, and the target.
func (r *Session) start() (err error) {
	if r.Handover.Timer.Sleep == sched.Timerfd {
		t := host.TimersOf(r.Handover.Thread.CPU, r.Reservations)
		if m := t.Raise(min(99, r.Handover.Thread.Priority+1)); m != nil {
			r.missing = append(r.missing, *m)
		}
		r.restore = t.Release
	}

	if r.inherit.unit != nil {
		if err := r.startUnit("fd:3", r.inherit.unit); err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}

	r.Status.Supervisor.Store(host.SelfIdentity())
	held, err := r.Reservations.Files()
	r.inherit.target = append(r.inherit.target, held...)
	if err != nil {
		return fmt.Errorf("run: target process: %w", err)
	}
	// The runtime's settings come before its first instruction: no collection in
	// the whole life of the target, and a second processor for the runtime's own.
	env := []string{"GOGC=off", "GOMEMLIMIT=off", "GOMAXPROCS=2"}
	if r.Target, err = host.Spawn(r.program, env, r.inherit.target, target.Command); err != nil {
		return fmt.Errorf("run: target process: %w", err)
	}
	r.startedAt = sched.Now()
	r.Reservations.NameTarget(r.Target.PID)
	r.inherit.close()
	r.applyAffinity()
	go r.guard.watch(r.Target)
	r.states.watch()
	r.claims.defend()
	for _, p := range r.players {
		go p.Play(r.Status)
	}
	r.record.Record(len(r.missing) > 0)
	return nil
}

// startUnit starts the virtual control unit on a bus; it inherits files.
func (r *Session) startUnit(bus string, files ...*os.File) (err error) {
	args := r.Bench.ControlUnitArgs(bus)
	if len(files) == 0 { // on a bus with a name it sees no end of the run
		ours, theirs, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("control unit %s: %w", r.Bench.Unit.Text, err)
		}
		defer ours.Close()
		r.inherit.life, files, args = theirs, []*os.File{ours}, append(args, "-until", "3")
	}

	start := func() { r.Unit, err = host.Spawn("", nil, files, args...) }
	if r.Options.Priority {
		host.WithPriority(start)
	} else {
		start()
	}

	if err != nil {
		return fmt.Errorf("control unit %s: %w", r.Bench.Unit.Text, err)
	}
	return nil
}

// StartNamedUnit starts the virtual control unit on a bus with a name, which it reaches as its
// own node, and waits until it listens there. It does nothing where the unit is on a pair or
// the bench names none.
func (r *Session) StartNamedUnit(bus string) error {
	name := r.Bench.Unit.Text
	if r.inherit.unit != nil || name == "" {
		return nil
	}
	if err := r.startUnit(bus); err != nil {
		return err
	}
	for range starting / pollInterval { // it speaks when it listens
		if len(r.Unit.Stdout.Bytes()) > 0 {
			return nil
		}
		if r.Unit.WaitDone(pollInterval) {
			return fmt.Errorf("control unit %s: %s", name, r.Unit.HowEnded())
		}
	}

	return fmt.Errorf("control unit %s does not listen to %s within %v", name, bus, starting)
}

// Close ends what this supervisor has started and is still there, and leaves the host
// as it was. A target that it has failed to take over goes on.
func (r *Session) Close() {
	r.inherit.close()
	r.Control.Close()
	for _, f := range []*os.File{r.inherit.life, r.file} {
		f.Close() // of nil it does nothing
	}
	for _, p := range []*host.Process{r.Target, r.Unit} {
		if p != nil && p.IsChild() {
			p.Kill()
			p.Close()
		}
	}

	for _, p := range r.players {
		p.Log.Close()
	}
	r.states.close()
	r.guard.close()
	r.claims.close()
	r.notify.close()
	r.record.Release()
	r.restore()
	r.Reservations.Close()
}

// What the supervisor waits for, real time.
const (
	starting = 30 * time.Second // from the start of the target to its first grid point
	Grace    = 2 * time.Second  // from the last grid point to the end, and from asking for the end to it
)

// checkAffinity looks whether the loop's thread is still on its CPU: the kernel moves it away
// when that is taken offline.
func (r *Session) checkAffinity() {
	var set unix.CPUSet
	if unix.SchedGetaffinity(int(r.Status.Thread.Load()), &set) != nil {
		return // it has ended
	}
	if set.Count() == 1 && set.IsSet(r.Handover.Thread.CPU) {
		r.loop.pinned = true
	} else if r.loop.pinned {
		r.loop.migrated.Store(true)
	}
}

// overdueReason returns why the supervisor has to end the run: the target has not begun, or not ended,
// in time, or an address that the run needs is lost. "" is no reason.
func (r *Session) overdueReason(now int64) string {
	start, last := int64(r.Status.StartNs.Load()), r.Handover.Loop.Ticks
	grid := sched.Grid{Start: start, Period: r.Handover.Tables.PeriodNs}
	lost := r.claims.endReason()
	switch {
	case lost != "":
		return lost
	case start == 0 && now > r.startedAt+int64(starting):
		return fmt.Sprintf("no tick within %v", starting)
	case start != 0 && last > 0 && now > grid.Due(last+r.Handover.Loop.Safe.Ticks)+int64(Grace):
		_, points := r.Behind(now)
		return fmt.Sprintf("%v after its end %d grid points were not served", Grace, points)
	}

	return ""
}

// pollInterval is how often the supervisor looks at the page.
const pollInterval = 100 * time.Millisecond

// repeatWindow is how long after the first signal another one is the same wish: timeout(1)
// and a terminal that is closed say it twice.
const repeatWindow = 500 * time.Millisecond

// poll is done again and again while the target ticks.
func (r *Session) poll(now time.Time) {
	r.notify.poll(now)
	r.ledger.Collect(r.View)
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

// applyAffinity keeps the threads of the run's processes off the CPUs of loops, see affinity.
func (r *Session) applyAffinity() {
	if r.loop.affinity == nil {
		r.loop.affinity = host.NewAffinity(r.Handover.Thread.CPU, r.Reservations)
	}
	var others []int
	if r.Unit != nil {
		others = append(others, r.Unit.PID)
	}
	r.loop.affinity.Apply(r.Target.PID, int(r.Status.Thread.Load()), others...)
}

// watch follows the run until the target has ended. The first signal, or a target
// that should have ended, asks it to end, another one, or two seconds of no answer,
// kill it. It never waits for the terminal.
func (r *Session) watch(signals <-chan os.Signal) {
	show := newStatus(r)
	defer show.end()
	clock := time.NewTicker(pollInterval)
	defer clock.Stop()
	var unitDone chan struct{}
	if r.Unit != nil {
		unitDone = r.Unit.Done
	}
	var patience, ripe <-chan time.Time
	insists := false // another signal is a second wish
	end := func(how uint64) {
		r.Status.Stop.Store(how)
		patience = time.After(Grace + time.Duration((2+r.Handover.Loop.Safe.Ticks)*r.Handover.Tables.PeriodNs))
	}

	for {
		select {
		case now := <-clock.C:
			show.requestDraw(now)
			r.poll(now)
			if r.Stop == "" && r.overdue == "" {
				if r.overdue = r.overdueReason(sched.Now()); r.overdue != "" {
					end(rt.StopPlanned)
				}
			}
		case s := <-signals:
			r.killed = s == control.Request(control.StopNow)
			if r.killed || insists {
				r.Target.Kill()
				return
			}

			if r.Stop != "" {
				continue
			}
			r.Stop, ripe = strings.ToLower(s.String()), time.After(repeatWindow)
			end(map[bool]uint64{true: rt.StopShutdown, false: rt.StopPlanned}[s == syscall.SIGTERM])
		case <-ripe:
			for len(signals) > 0 { // on a busy host the same wish may still lie there
				<-signals
			}
			insists = true
		case <-patience:
			r.Target.Kill()
			return
		case <-unitDone:
			r.unitEndedAt, unitDone = float64(r.Status.SimNs.Load())/1e9, nil
		case <-r.Target.Done:
			return
		}
	}
}

// Target is the process that ticks with the table kernel: this binary, executed again.
// An *Exit carries exit code 1 when the end was not a clean one.
func Target() error {
	if err := target.Run("", tableKernel); err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// tableKernel makes the kernel of the tables that follow the hand-over.
func tableKernel(h *target.Handover) (target.Parts, error) {
	t := &kernel.Tables{}
	if err := h.Next(t); err != nil {
		return target.Parts{}, err
	}
	return target.Parts{Plant: kernel.New(t)}, nil
}
