package bench

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/target"
	"lockstep/sched"
)

// start starts the control unit, where it is virtual, and the target.
func (r *run) start() (err error) {
	if r.h.Timer.Sleep == sched.Timerfd {
		t := timersOf(r.h.Thread.CPU, r.holds)
		if m := t.raise(min(99, r.h.Thread.Priority+1)); m != nil {
			r.missing = append(r.missing, *m)
		}
		r.restore = t.lower
	}
	if r.unitEnd != nil {
		if err := r.startUnit("fd:3", r.unitEnd); err != nil {
			return err
		}
	}
	r.page.Supervisor.Store(self())
	held, err := r.holds.files()
	r.files = append(r.files, held...)
	if err != nil {
		return fmt.Errorf("run: target process: %w", err)
	}
	// The runtime's settings come before its first instruction: no collection in
	// the whole life of the target, and a second processor for the runtime's own.
	env := []string{"GOGC=off", "GOMEMLIMIT=off", "GOMAXPROCS=2"}
	if r.target, err = spawn(r.program, env, r.files, target.Command); err != nil {
		return fmt.Errorf("run: target process: %w", err)
	}
	r.begun = sched.Now()
	r.holds.inherited(r.target.pid)
	r.closeFiles() // so that each end of a bus has one owner
	r.confine()
	go r.guard.watch()
	r.states.follow()
	r.claims.follow()
	for _, p := range r.players {
		go p.play(r.page)
	}
	r.others.follow()
	if r.record != nil {
		go r.record.run()
	}
	return nil
}

// startUnit starts the virtual control unit on a bus; it inherits files.
func (r *run) startUnit(bus string, files ...*os.File) (err error) {
	args := r.bench.unitArgs(bus)
	if len(files) == 0 { // on a bus with a name it sees no end of the run
		ours, theirs, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("run: control unit %s: %w", r.bench.Unit.Text, err)
		}
		defer ours.Close()
		r.life, files, args = theirs, []*os.File{ours}, append(args, "-until", "3")
	}
	start := func() { r.unit, err = spawn("", nil, files, args...) }
	if r.soak != nil {
		preferred(start)
	} else {
		start()
	}
	if err != nil {
		return fmt.Errorf("run: control unit %s: %w", r.bench.Unit.Text, err)
	}
	return nil
}

func (r *run) closeFiles() {
	for _, f := range r.files {
		f.Close()
	}
	if r.unitEnd != nil {
		r.unitEnd.Close()
	}
	r.files, r.unitEnd = nil, nil
}

// close ends what this supervisor has started and is still there, and leaves the host
// as it was. A target that it has failed to take over goes on.
func (r *run) close() {
	r.closeFiles()
	r.control.close()
	r.life.Close() // of nil it does nothing
	for _, p := range []*process{r.target, r.unit} {
		if p != nil && p.cmd != nil {
			p.kill()
			p.close()
		}
	}
	for _, p := range r.players {
		p.from.Close()
	}
	r.states.finish()
	if r.guard != nil {
		r.guard.close()
	}
	r.others.close()
	r.claims.close()
	if r.notify != nil {
		r.notify.close()
	}
	r.record.release()
	r.restore()
	r.holds.close()
}

// What the supervisor waits for, real time.
const (
	starting = 30 * time.Second // from the start of the target to its first grid point
	grace    = 2 * time.Second  // from the last grid point to the end, and from asking for the end to it
)

// place looks whether the loop's thread is still on its CPU: the kernel moves it away
// when that is taken offline.
func (r *run) place() {
	var set unix.CPUSet
	if unix.SchedGetaffinity(int(r.page.Thread.Load()), &set) != nil {
		return // it has ended
	}
	if set.Count() == 1 && set.IsSet(r.h.Thread.CPU) {
		r.placed = true
	} else if r.placed {
		r.strayed.Store(true)
	}
}

// late says that the target should have ended by itself, or begun, and how it fell
// short, or that it has lost an address that it cannot do without; "" is no reason to
// worry.
func (r *run) late(now int64) string {
	start, last := int64(r.page.StartNs.Load()), r.h.Loop.Ticks
	grid := sched.Grid{Start: start, Period: r.h.Tables.PeriodNs}
	lost := r.claims.ends()
	switch {
	case lost != "":
		return lost
	case start == 0 && now > r.begun+int64(starting):
		return fmt.Sprintf("no tick within %v", starting)
	case start != 0 && last > 0 && now > grid.Due(last+r.h.Loop.Safe.Ticks)+int64(grace):
		_, points := r.behind(now)
		return fmt.Sprintf("%v after its end %d grid points were not served", grace, points)
	}
	return ""
}

// look is how often the supervisor looks at the page.
const look = 100 * time.Millisecond

// again is how long after the first signal another one is the same wish: timeout(1)
// and a terminal that is closed say it twice.
const again = 500 * time.Millisecond

// look is done again and again while the target ticks.
func (r *run) look(now time.Time) {
	r.notify.look(now)
	r.ledger.collect(r.page)
	r.soak.look(now)
	if !r.ticked && r.page.Ticks.Load() > 0 {
		r.confine()
		r.ticked = true
		if r.options.Follow != nil {
			files, _ := r.h.Hashes()
			r.options.Follow.Begin(Begun{r.h.Thread, files, r.page})
		}
	}
	if r.ticked {
		r.place()
		r.makeRoom(now)
	}
}

// watch follows the run until the target has ended. The first signal, or a target
// that should have ended, asks it to end, another one, or two seconds of no answer,
// kill it. It never waits for the terminal.
func (r *run) watch(signals <-chan os.Signal) {
	show := newStatus(r)
	defer show.end()
	clock := time.NewTicker(look)
	defer clock.Stop()
	var unitDone chan struct{}
	if r.unit != nil {
		unitDone = r.unit.done
	}
	var patience, ripe <-chan time.Time
	insists := false // another signal is a second wish
	end := func(how uint64) {
		r.page.Stop.Store(how)
		patience = time.After(grace + time.Duration((2+r.h.Loop.Safe.Ticks)*r.h.Tables.PeriodNs))
	}
	for {
		select {
		case now := <-clock.C:
			show.look(now)
			r.look(now)
			if r.stop == "" && r.overdue == "" {
				if r.overdue = r.late(sched.Now()); r.overdue != "" {
					end(rt.StopPlanned)
				}
			}
		case s := <-signals:
			r.killed = s == asked(stopNow)
			if r.killed || insists {
				r.target.kill()
				return
			}
			if r.stop != "" {
				continue
			}
			r.stop, ripe = strings.ToLower(s.String()), time.After(again)
			end(map[bool]uint64{true: rt.StopShutdown, false: rt.StopPlanned}[s == syscall.SIGTERM])
		case <-ripe:
			for len(signals) > 0 { // on a busy host the same wish may still lie there
				<-signals
			}
			insists = true
		case <-patience:
			r.target.kill()
			return
		case <-unitDone:
			r.unitDie, unitDone = float64(r.page.SimNs.Load())/1e9, nil
		case <-r.target.done:
			return
		}
	}
}
