package supervisor

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
		r.restore = t.Lower
	}
	if r.inherit.unit != nil {
		if err := r.startUnit("fd:3", r.inherit.unit); err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}
	r.Page.Supervisor.Store(host.Self())
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
	r.begun = sched.Now()
	r.Reservations.Inherited(r.Target.PID)
	r.inherit.close()
	r.confine()
	go r.guard.watch(r.Target)
	r.states.follow()
	r.claims.follow()
	for _, p := range r.players {
		go p.Play(r.Page)
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
	for range starting / look { // it speaks when it listens
		if len(r.Unit.Stdout.Bytes()) > 0 {
			return nil
		}
		if r.Unit.WaitDone(look) {
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
	r.inherit.life.Close() // of nil it does nothing
	for _, p := range []*host.Process{r.Target, r.Unit} {
		if p != nil && p.Ours() {
			p.Kill()
			p.Close()
		}
	}
	for _, p := range r.players {
		p.Log.Close()
	}
	r.states.finish()
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

// place looks whether the loop's thread is still on its CPU: the kernel moves it away
// when that is taken offline.
func (r *Session) place() {
	var set unix.CPUSet
	if unix.SchedGetaffinity(int(r.Page.Thread.Load()), &set) != nil {
		return // it has ended
	}
	if set.Count() == 1 && set.IsSet(r.Handover.Thread.CPU) {
		r.loop.placed = true
	} else if r.loop.placed {
		r.loop.migrated.Store(true)
	}
}

// late returns why the supervisor has to end the run: the target has not begun, or not ended,
// in time, or an address that the run needs is lost. "" is no reason.
func (r *Session) late(now int64) string {
	start, last := int64(r.Page.StartNs.Load()), r.Handover.Loop.Ticks
	grid := sched.Grid{Start: start, Period: r.Handover.Tables.PeriodNs}
	lost := r.claims.ends()
	switch {
	case lost != "":
		return lost
	case start == 0 && now > r.begun+int64(starting):
		return fmt.Sprintf("no tick within %v", starting)
	case start != 0 && last > 0 && now > grid.Due(last+r.Handover.Loop.Safe.Ticks)+int64(Grace):
		_, points := r.Behind(now)
		return fmt.Sprintf("%v after its end %d grid points were not served", Grace, points)
	}
	return ""
}

// look is how often the supervisor looks at the page.
const look = 100 * time.Millisecond

// again is how long after the first signal another one is the same wish: timeout(1)
// and a terminal that is closed say it twice.
const again = 500 * time.Millisecond

// look is done again and again while the target ticks.
func (r *Session) look(now time.Time) {
	r.notify.look(now)
	r.ledger.Collect(r.Page)
	r.observer.Look(now)
	if !r.loop.ticked && r.Page.Ticks.Load() > 0 {
		r.confine()
		r.loop.ticked = true
		if r.Options.Follow != nil {
			files, _ := r.Handover.Hashes()
			r.Options.Follow.Begin(Begun{r.Handover.Thread, files, r.Page})
		}
	}
	if r.loop.ticked {
		r.place()
		if r.loop.affinity.Changed(now) {
			r.confine()
		}
	}
}

// confine keeps the threads of the run's processes off the CPUs of loops, see affinity.
func (r *Session) confine() {
	if r.loop.affinity == nil {
		r.loop.affinity = host.NewAffinity(r.Handover.Thread.CPU, r.Reservations)
	}
	var others []int
	if r.Unit != nil {
		others = append(others, r.Unit.PID)
	}
	r.loop.affinity.Apply(r.Target.PID, int(r.Page.Thread.Load()), others...)
}

// watch follows the run until the target has ended. The first signal, or a target
// that should have ended, asks it to end, another one, or two seconds of no answer,
// kill it. It never waits for the terminal.
func (r *Session) watch(signals <-chan os.Signal) {
	show := newStatus(r)
	defer show.end()
	clock := time.NewTicker(look)
	defer clock.Stop()
	var unitDone chan struct{}
	if r.Unit != nil {
		unitDone = r.Unit.Done
	}
	var patience, ripe <-chan time.Time
	insists := false // another signal is a second wish
	end := func(how uint64) {
		r.Page.Stop.Store(how)
		patience = time.After(Grace + time.Duration((2+r.Handover.Loop.Safe.Ticks)*r.Handover.Tables.PeriodNs))
	}
	for {
		select {
		case now := <-clock.C:
			show.look(now)
			r.look(now)
			if r.Stop == "" && r.overdue == "" {
				if r.overdue = r.late(sched.Now()); r.overdue != "" {
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
			r.Stop, ripe = strings.ToLower(s.String()), time.After(again)
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
			r.unitDie, unitDone = float64(r.Page.SimNs.Load())/1e9, nil
		case <-r.Target.Done:
			return
		}
	}
}
