package control

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/inspect"
)

// EndLine formats the end of a run, from the answer to a stop that waits, as one line.
func (a *Answer) EndLine() string {
	word := "clean"
	if !a.Clean {
		word = "NOT clean"
	}
	return host.PrintableLine(fmt.Sprintf("%s: %s, after %.3f s: %d ticks, missed %d; %s",
		a.Bench, a.Ended, a.Time, a.Tick, a.Missed, word))
}

// Stop ends the run called which, a name, a file or a process id, or all runs that this user may
// end. now kills the targets at once. Stop calls report for each run that has ended. An *Exit has
// code 3 if there is no such run or it belongs to another user.
func Stop(which string, all, now bool, report func(*Answer)) error {
	list := sockets(controlDirs()...)
	defer func() { closeAll(list) }()
	if own := hasOwn(list, which); all || !own { // a run with a socket needs nothing else of this host
		list = withOrphans(list)
	}
	chosen := slices.DeleteFunc(slices.Clone(list), func(s socket) bool { return s.err != nil })
	if !all {
		which, err := benchName(which, hasOwn(list, which))
		if err != nil {
			return err
		}
		s, err := chooseRun(list, which)
		if err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		chosen = []socket{*s}
	}

	var ends sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, s := range chosen {
		ends.Go(func() {
			a, err := s.stop(now)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("stop: %w", err))
			} else {
				report(a)
			}
		})
	}

	ends.Wait()
	return errors.Join(errs...)
}

// withOrphans returns list with the targets that have no supervisor. It connects again: on a busy host the
// search takes longer than a run waits for a client that asks nothing.
func withOrphans(list []socket) []socket {
	lone := orphans()
	closeAll(list)
	return append(sockets(controlDirs()...), lone...)
}

// orphans returns the targets without a supervisor that this user may end.
func orphans() (list []socket) {
	for _, t := range findTargets(host.Holders(), none) {
		if t.isOrphan() {
			list = append(list, socket{name: host.FileName(t.bench), pid: t.pid, uid: t.uid, since: t.since, orphan: &t})
		}
	}

	return list
}

// foreignTimeout is the longest time until the run of another user ends: a service sends its safe
// state for 60 s at most, and then closes its record.
const foreignTimeout = 2 * time.Minute

// stop asks a run to end, and waits until it has ended.
func (s *socket) stop(now bool) (*Answer, error) {
	gone, err := host.OpenProcess(s.pid, s.since)
	if s.orphan != nil {
		if err == nil {
			s.orphan.Status, err = inspect.MapStatus(s.pid, s.uid)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		return s.stopOrphan(now, gone)
	}
	a := &Answer{}
	failed := s.ask(s.endLimit(), call{"POST", "/stop", StopRequest{Now: now, Wait: true}}, a)
	if failed == nil && err == nil { // else the process is in another namespace, and its answer is trusted
		gone.WaitDone(answerTimeout)
	}
	return a, failed
}

// endLimit is the longest time until the run has ended; 0: no limit, as writing to a disk may take long.
func (s *socket) endLimit() time.Duration {
	if s.rank() > 0 {
		return foreignTimeout
	}
	return 0
}

// endTimeout is the longest time until a target that is asked to end reaches its next grid point,
// real time.
const endTimeout = 30 * time.Second

// stopOrphan ends a target without a supervisor through its status block.
func (s *socket) stopOrphan(now bool, target *host.Process) (*Answer, error) {
	p, limit := s.orphan.Status, foreignTimeout
	if h := s.orphan.Handover; h != nil {
		limit = endTimeout + time.Duration(2+h.Loop.Safe.Ticks)*h.Loop.Period
	}
	if now {
		target.Signal(unix.SIGKILL)
	}
	p.Stop.Store(rt.StopPlanned)
	if !target.WaitDone(limit) {
		return nil, host.Exitf(1, "%s does not end and has no supervisor: lockstep stop %d -now kills it", s, s.pid)
	}

	if cpu := int(p.CPU.Load()) - 1; cpu >= 0 {
		host.TimersOf(cpu, &host.Reservations{}).Release()
	}
	a := &Answer{
		Bench: s.orphan.bench, Ended: "killed without a supervisor; no safe values were sent",
		Tick: int64(p.Ticks.Load()), Missed: p.Missed.Load(), Time: float64(p.SimNs.Load()) / 1e9,
	}
	if rt.State(p.State.Load()) == rt.Ended {
		reason := rt.Reason(p.Reason.Load())
		a.Ended, a.Clean = reason.String()+", without a supervisor", reason.Clean() && p.SafeReason.Load() == 0
	}

	return a, nil
}
