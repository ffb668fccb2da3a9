package control

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/report"
)

// Ending is how a run that lockstep stop has ended was.
type Ending struct {
	Bench   string
	Process int    // of the supervisor; of the target where there was none
	Ended   string // why, in words
	Clean   bool   // it broke no policy
	Ticks   int64
	Missed  uint64
	Time    float64 // simulated
}

// String is the run in a line.
func (e *Ending) String() string {
	word := "clean"
	if !e.Clean {
		word = "NOT clean"
	}
	return host.Printable(fmt.Sprintf("%s: %s, after %.3f s: %d ticks, missed %d; %s", e.Bench, e.Ended, e.Time, e.Ticks, e.Missed, word))
}

// Stop ends runs, each called by a name, a file or a process id, without any all that this
// user may end; now: at once, by killing the target. It tells each time a run is gone. An
// *Exit carries exit code 3 where there is no such run or it belongs to somebody else.
func Stop(names []string, now bool, tell func(*Ending)) error {
	list := append(sockets(controlDirs()...), orphans()...)
	defer closeAll(list)
	var meant []*socket
	for _, which := range names {
		which, err := nameOf(which)
		if err != nil {
			return err
		}
		s, err := choose(list, which)
		if err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		meant = append(meant, s)
	}
	for i := range list {
		if s := &list[i]; len(names) == 0 && s.err == nil {
			meant = append(meant, s)
		}
	}
	var trouble []error
	waits := make([]func() (*Ending, error), len(meant))
	for i, s := range meant { // all are asked before one is waited for
		waits[i] = s.stop(now)
	}
	for _, wait := range waits {
		e, err := wait()
		if err != nil {
			trouble = append(trouble, fmt.Errorf("stop: %w", err))
			continue
		}
		tell(e)
	}
	return errors.Join(trouble...)
}

// orphans are the targets without a supervisor that this user may end.
func orphans() (list []socket) {
	for _, pid := range targets() {
		since := host.StartTime("/", pid)
		h, page, err := OpenTarget(pid)
		if err == nil && !host.Alive(page.Supervisor.Load()) && rt.State(page.State.Load()) != rt.Ended {
			list = append(list, socket{name: host.FileName(h.Bench.Name), pid: pid, since: since, lone: &report.View{Handover: h, Page: page}})
		}
	}
	return list
}

// stop asks a run to end; wait waits until it is gone.
func (s *socket) stop(now bool) (wait func() (*Ending, error)) {
	gone, err := host.Adopt(s.pid, s.since)
	if s.lone != nil {
		return s.stopLone(now, gone, err)
	}
	words := []string{"stop", "wait"}
	if now {
		words = []string{"stop", "now", "wait"}
	}
	asked := s.send(words...)
	return func() (*Ending, error) {
		if asked != nil {
			return nil, asked
		}
		a, e := s.hear() // without a limit: a disk may take its time
		if e != nil {
			return nil, e
		}
		if err == nil { // else a process of another namespace: its word will do
			gone.WaitDone(patient)
		}
		return &Ending{a.Bench, s.pid, a.Ended, a.Clean, a.Tick, a.Missed, a.Time}, nil
	}
}

// serving is within what a target that is asked to end has reached its next grid point, real time.
const serving = 30 * time.Second

// stopLone ends a target without a supervisor, by its page.
func (s *socket) stopLone(now bool, target *host.Process, err error) (wait func() (*Ending, error)) {
	p := s.lone.Page
	if now && err == nil {
		target.Signal(unix.SIGKILL)
	}
	p.Stop.Store(rt.StopPlanned)
	return func() (*Ending, error) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		if h := s.lone.Handover; !target.WaitDone(serving + time.Duration(2+h.Loop.Safe.Ticks)*h.Loop.Period) {
			return nil, &host.Exit{Code: 1, Err: fmt.Errorf("%s does not end; nobody watches over it: lockstep stop %d -now kills it", s, s.pid)}
		}
		host.TimersOf(s.lone.Handover.Thread.CPU, &host.Reservations{}).Lower()
		e := &Ending{Bench: s.lone.Handover.Bench.Name, Process: s.pid, Ended: "killed without a supervisor, and nobody has put the safe values on its buses",
			Ticks: int64(p.Ticks.Load()), Missed: p.Missed.Load(), Time: float64(p.SimNs.Load()) / 1e9}
		if rt.State(p.State.Load()) == rt.Ended {
			reason := rt.Reason(p.Reason.Load())
			e.Ended, e.Clean = reason.String()+", without a supervisor", reason.Clean() && p.SafeReason.Load() == 0
		}
		return e, nil
	}
}
