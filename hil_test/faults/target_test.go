package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt/report"
)

// targetDies kills the target with a signal and checks that the supervisor sends the safe values.
func targetDies(a *attempt, how syscall.Signal, why string) {
	s := a.run(plan{})
	s.bus.ticking(100)
	a.signal(a.target(), how)
	s.ends(1, "run: the target process died ("+why)
	all, r := s.bus.end(), s.read()
	s.bus.checkSafeEnd(all)
	s.bus.counted(all, r)
	before, safe := s.bus.split(all)
	a.must(r.SafeFrames == len(safe), "the report says %d safe frames, %d came", r.SafeFrames, len(safe))
	a.must(r.Ticks >= uint64(len(of(before, speeds))) && r.Usage == nil, "%d ticks, usage %v; want at least %d, none", r.Ticks, r.Usage, len(of(before, speeds)))
	gap := s.gapBeforeSafe(all)
	a.Logf("%v from the last frame to the first safe one, %.3f ms from the last grid point", gap, r.SafeAfter*1e3)
	a.inTime(gap <= 2*tick && r.SafeAfter <= 2*tick.Seconds(), "the first safe value came %v after the last frame, %g s after the last tick; want 10 ms", gap, r.SafeAfter)
}

func targetSIGKILL(a *attempt) { targetDies(a, syscall.SIGKILL, "signal: killed; last tick ") }
func targetSIGSEGV(a *attempt) { targetDies(a, syscall.SIGSEGV, "exit status 2: SIGSEGV: ") }
func targetSIGABRT(a *attempt) { targetDies(a, syscall.SIGABRT, "exit status 2: SIGABRT: ") }

func targetGoneSilence(a *attempt) {
	s := a.run(plan{change: []string{"target_gone: safe", "target_gone: silence"}})
	s.bus.ticking(50)
	a.signal(a.target(), syscall.SIGKILL)
	s.ends(1, "run: the target process died (signal: killed; last tick ")
	all, r := s.bus.end(), s.read()
	_, safe := s.bus.split(all)
	a.must(len(safe) == 0 && r.SafeFrames == 0, "%d safe frames, the report says %d; want silence", len(safe), r.SafeFrames)
}

// guard returns the process id of the guard; 0: the host refuses real-time priority, so there is none.
func (a *attempt) guard() int {
	a.Helper()
	if !realtime() {
		return 0
	}
	list := a.processes("guard")
	for until := time.Now().Add(timeout); len(list) == 0 && time.Now().Before(until); list = a.processes("guard") {
		time.Sleep(5 * time.Millisecond)
	}
	if len(list) != 1 {
		a.Fatalf("there are %d guard processes, want 1", len(list))
	}
	return list[0]
}

// awaitGuard waits until the guard has its real-time priority, one below that of the demo's loop.
func (a *attempt) awaitGuard() (pid int) {
	a.Helper()
	pid = a.guard()
	for until := time.Now().Add(timeout); pid != 0; time.Sleep(5 * time.Millisecond) {
		attr, err := unix.SchedGetAttr(pid, 0)
		if err != nil || time.Now().After(until) {
			a.Fatalf("the guard has no real-time priority: %+v, %v", attr, err)
		}
		if attr.Policy == unix.SCHED_FIFO && attr.Priority == 79 {
			return pid
		}
	}
	return pid
}

// realtime reports whether this host grants SCHED_FIFO to the processes of this user.
func realtime() bool {
	return exec.Command("chrt", "-f", "79", "true").Run() == nil
}

// overload starts two processes per CPU that always run, at ordinary priority, until the end of the
// attempt.
func overload(a *attempt) {
	a.Helper()
	for range 2 * runtime.NumCPU() {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			a.Fatal(err)
		}
		a.Cleanup(func() { _ = busy.Process.Kill(); _ = busy.Wait() })
	}
}

// gapAfterDeath kills the target of a run and returns the time from its last frame to the first safe
// one.
func gapAfterDeath(a *attempt, s *session) time.Duration {
	s.bus.ticking(20)
	a.signal(a.target(), syscall.SIGKILL)
	s.bus.await("safe values", func(all []frame) bool {
		_, safe := s.bus.split(all)
		return len(safe) > 0
	})
	return s.gapBeforeSafe(s.bus.all())
}

// namesGuard reports whether a report names the early end of the guard.
func namesGuard(r report.Report) bool {
	return r.BestEffort && slices.ContainsFunc(r.BestEffortWhy, func(why string) bool {
		return strings.HasPrefix(why, "the guard process failed (signal: killed)")
	})
}

func targetDiesOverloaded(a *attempt) {
	overload(a)
	var gaps []time.Duration
	for range 5 {
		s := a.run(plan{})
		guard := a.awaitGuard()
		gaps = append(gaps, gapAfterDeath(a, s))
		s.ends(1, "run: the target process died (signal: killed")
		a.must(guard == 0 || !namesGuard(s.read()), "the guard ended before the target: %q", s.read().BestEffortWhy)
	}
	slices.Sort(gaps)
	a.Logf("from the last frame to the first safe one: %v", gaps)
	a.inTime(!realtime() || gaps[len(gaps)/2] <= 2*tick, "the median of %v is above two ticks, %v", gaps, 2*tick)
}

// The supervisor is stopped, as by a host that never runs it.
func targetDiesUnsupervised(a *attempt) {
	s := a.run(plan{})
	guard := a.awaitGuard()
	s.bus.ticking(20)
	if guard != 0 {
		a.signal(s.cmd.Process.Pid, syscall.SIGSTOP)
	}
	gap := gapAfterDeath(a, s)
	a.signal(s.cmd.Process.Pid, syscall.SIGCONT)
	s.ends(1, "run: the target process died (signal: killed")
	all, r := s.bus.end(), s.read()
	s.bus.checkSafeEnd(all)
	s.bus.counted(all, r)
	_, safe := s.bus.split(all)
	a.must(r.SafeFrames == len(safe), "the report says %d safe frames, %d came", r.SafeFrames, len(safe))
	a.inTime(gap <= 2*tick, "the first safe value came %v after the last frame; want two ticks, %v", gap, 2*tick)
}

func guardDies(a *attempt) {
	s := a.run(plan{})
	guard := a.awaitGuard()
	if guard != 0 {
		a.signal(guard, syscall.SIGKILL)
	}
	s.bus.ticking(20)
	gap := gapAfterDeath(a, s)
	s.ends(1, "run: the target process died (signal: killed")
	all, r := s.bus.end(), s.read()
	s.bus.checkSafeEnd(all)
	s.bus.counted(all, r)
	_, safe := s.bus.split(all)
	a.must(r.SafeFrames == len(safe), "the report says %d safe frames, %d came", r.SafeFrames, len(safe))
	a.must(namesGuard(r) == (guard != 0), "the report says %q; want the death of the guard", r.BestEffortWhy)
	a.inTime(gap <= 2*tick, "the first safe value came %v after the last frame; want two ticks, %v", gap, 2*tick)
}

// runaway is a plant whose torque grows with its speed: w = e^(1000·t) rad/s, which overflows a
// float64 at 0.71 s.
const runaway = `plant: runaway
elements:
  rotor: {type: inertia, J: 1 kg.m2, w_start: 1 rad/s}
  drive: {type: linear_speed_dependent_torque, flange: rotor, tau_nominal: 1000 N.m, w_nominal: 1 rad/s, TorqueDirection: false}
outputs:
  w: {speed: rotor}
`

const runawayDBC = `VERSION ""
BU_: Bench
BO_ 512 Speeds: 8 Bench
 SG_ w : 0|32@1- (0.1,0) [0|0] "rad/s" Bench
 SG_ count : 60|4@1+ (1,0) [0|15] "" Bench
`

const runawayBench = `bench: %s
plant: runaway.yaml
period: 5 ms
overrun: skip 1000
safe: {time: 100 ms, values: {w: 20 rad/s}}
end: {non_finite: %s}
buses:
  drive:
    interface: fd:3
    database: runaway.dbc
    frames: {Speeds: {cycle: 5 ms, counter: count}}
    send: [w -> Speeds.w]
`

// runDiverging runs the runaway plant until the run ends by itself. It returns the frames before
// the first safe one, and the safe ones.
func runDiverging(a *attempt, end string) (before, safe []frame) {
	for name, text := range map[string]string{"runaway.yaml": runaway, "runaway.dbc": runawayDBC} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			a.Fatal(err)
		}
	}
	s := a.run(plan{text: fmt.Sprintf(runawayBench, a.mark, end)})
	s.ends(1, "run: state rotor.w of the plant is no longer finite, after 0.7")
	all, r := s.bus.end(), s.read()
	a.must(r.TxRefused == 0, "%d attempts to send a value that is not a number, want none", r.TxRefused)
	s.bus.counted(all, r)
	for _, f := range all {
		if uint32(f.data) == 200 {
			safe = append(safe, f)
			continue
		}
		a.must(len(safe) == 0, "a frame of the plant after a safe one: %016x", f.data)
		before = append(before, f)
	}
	// From 0.02 s on the signal carries its maximum.
	a.inTime(len(before) > 100, "%d frames of the plant, want 142", len(before))
	for i, f := range before[min(5, len(before)):] {
		a.must(uint32(f.data) == 1<<31-1, "frame %d carries %#x; want the maximum of the signal", i+5, uint32(f.data))
	}
	return before, safe
}

func nonFinite(a *attempt) {
	_, safe := runDiverging(a, "safe")
	a.must(len(safe) > 0 && len(safe) <= 21, "%d safe frames, want 20", len(safe))
	a.inTime(len(safe) > 10, "%d safe frames, want 20", len(safe))
}

func nonFiniteSilence(a *attempt) {
	_, safe := runDiverging(a, "silence")
	a.must(len(safe) == 0, "%d safe frames, want silence", len(safe))
}
