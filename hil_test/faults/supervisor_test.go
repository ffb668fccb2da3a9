package faults

import (
	"strconv"
	"strings"
	"syscall"
	"time"
)

// orphan starts a run and kills its supervisor. It returns the process id of the target and the
// time of the kill.
func orphan(a *attempt, gone string) (s *session, target int, killed time.Time) {
	s = a.run(plan{change: []string{"supervisor_gone: stop after 1 s", "supervisor_gone: " + gone}})
	s.bus.ticking(50)
	target = a.target()
	killed = time.Now()
	a.kill(s)
	return s, target, killed
}

// checkSafeAfter checks that the safe values begin 300 ms after the end of the supervisor.
func (s *session) checkSafeAfter(all []frame, killed time.Time) {
	s.Helper()
	_, safe := s.bus.split(all)
	if len(safe) == 0 {
		s.Fatalf("%d frames, none of them safe", len(all))
	}
	d := safe[0].at.Sub(killed)
	s.must(d > 295*time.Millisecond, "safe values %v after the end of the supervisor, want 300 ms", d)
	s.inTime(d < 340*time.Millisecond, "safe values %v after the end of the supervisor, want 300 ms", d)
}

// kill kills a supervisor.
func (a *attempt) kill(s *session) {
	a.Helper()
	a.signal(s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.over
}

// awaitOutput waits until the output contains a text.
func (s *session) awaitOutput(want string) {
	s.Helper()
	for until := time.Now().Add(timeout); !strings.Contains(s.out.String(), want); time.Sleep(5 * time.Millisecond) {
		select {
		case <-s.over:
			s.Fatalf("ended without %q in its output: %s", want, s.errors.String())
		default:
		}
		if time.Now().After(until) {
			s.Fatalf("no %q in the output within %v:\n%s", want, timeout, s.out.String())
		}
	}
}

func goneContinue(a *attempt) {
	s, target, _ := orphan(a, "continue")
	defer syscall.Kill(target, syscall.SIGKILL)
	s.bus.ticking(250) // 1.25 s, longer than the stop after 1 s of the demo bench
	for range 2 {
		b := a.attach(a.mark)
		b.awaitOutput(a.mark + ": attached to the target, process " + strconv.Itoa(target) + "; Ctrl-C ends the run\n")
		b.awaitOutput(" missed ")
		a.kill(b)
		s.bus.ticking(20)
	}
	b := a.attach(strconv.Itoa(target))
	b.awaitOutput("attached")
	b.ctrlC()
	b.ends(0, "")
	all, r := s.bus.end(), b.read()
	_, safe := s.bus.split(all)
	a.must(len(safe) == 0, "%d safe frames; want the plant to the end", len(safe))
	a.must(r.Clean && r.Ended == "stopped by interrupt" && r.Bench == a.mark, "clean %t, %q, bench %s", r.Clean, r.Ended, r.Bench)
	a.must(r.Ticks >= uint64(len(of(all, speeds))) && r.TxFrames == uint64(len(all)) && r.Usage != nil && r.Allocs == 0,
		"the report says %d ticks, %d frames, %+v; %d came", r.Ticks, r.TxFrames, r.Usage, len(all))
	s.bus.counted(all, r)
}

func goneSafe(a *attempt) {
	s, target, killed := orphan(a, "safe after 300 ms")
	defer syscall.Kill(target, syscall.SIGKILL)
	s.bus.ticking(150)
	b := a.attach(strconv.Itoa(target))
	b.awaitOutput("SAFE since ")
	b.ctrlC()
	b.ends(1, "run: the supervisor has ended; in the safe state since ")
	all, r := s.bus.end(), b.read()
	s.checkSafeAfter(all, killed)
	a.must(r.Safe == "the supervisor has ended" && r.Usage != nil, "safe state: %q", r.Safe)
	s.bus.counted(all, r)
}

func goneStop(a *attempt) {
	s, _, killed := orphan(a, "stop after 300 ms")
	all := s.bus.end()
	s.bus.checkSafeEnd(all)
	s.checkSafeAfter(all, killed)
}

// supervisorCrash sends a signal to which the Go runtime reacts as to a fatal error of its own.
func supervisorCrash(a *attempt) {
	s := a.run(plan{change: []string{"supervisor_gone: stop after 1 s", "supervisor_gone: continue"}})
	s.bus.ticking(50)
	target := a.target()
	defer syscall.Kill(target, syscall.SIGKILL)
	a.signal(s.cmd.Process.Pid, syscall.SIGSEGV)
	<-s.over
	if status := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGABRT {
		a.Fatalf("the supervisor ended with %v, want SIGABRT", s.cmd.ProcessState)
	}
	s.bus.ticking(250)
	b := a.attach(strconv.Itoa(target))
	b.awaitOutput("attached")
	b.ctrlC()
	b.ends(0, "")
	s.bus.counted(s.bus.end(), b.read())
}

func attachSupervised(a *attempt) {
	s := a.run(plan{})
	s.bus.ticking(20)
	for _, which := range []string{a.mark, strconv.Itoa(a.target())} {
		a.attach(which).ends(3, "attach: "+a.mark+", process "+strconv.Itoa(a.target())+", has a supervisor, process "+strconv.Itoa(s.cmd.Process.Pid))
	}
	s.bus.ticking(20)
	s.ctrlC()
	s.checkCleanEnd(false, "stopped by interrupt")
}

func attachEnded(a *attempt) {
	s := a.run(plan{args: []string{"-for", "100ms"}})
	s.bus.ticking(1)
	target := a.processes("target")
	s.ends(0, "")
	a.attach(a.mark).ends(3, "attach: ")
	for _, pid := range target {
		a.attach(strconv.Itoa(pid)).ends(3, "attach: ")
	}
}

func attachedTargetDies(a *attempt) {
	s, target, _ := orphan(a, "continue")
	b := a.attach(strconv.Itoa(target))
	b.awaitOutput("attached")
	a.awaitGuard() // of the attached supervisor
	s.bus.ticking(20)
	a.signal(target, syscall.SIGKILL)
	b.ends(1, "the target process died (")
	all, r := s.bus.end(), b.read()
	s.bus.checkSafeEnd(all)
	s.bus.counted(all, r)
	_, safe := s.bus.split(all)
	a.must(r.SafeFrames == len(safe), "the report says %d safe frames, %d came", r.SafeFrames, len(safe))
	gap := s.gapBeforeSafe(all)
	a.inTime(gap <= 2*tick, "the first safe value came %v after the last frame; want 10 ms", gap)
}

func attachTwice(a *attempt) {
	s, target, _ := orphan(a, "continue")
	defer syscall.Kill(target, syscall.SIGKILL)
	one, two := a.attach(a.mark), a.attach(a.mark)
	select {
	case <-one.over:
		one, two = two, one
	case <-two.over:
	case <-time.After(timeout):
		a.Fatal("both attached")
	}
	two.ends(3, "has a supervisor, process "+strconv.Itoa(one.cmd.Process.Pid))
	one.awaitOutput("attached")
	s.bus.ticking(20)
	one.ctrlC()
	one.ends(0, "")
	s.bus.counted(s.bus.end(), one.read())
}

func orphanShutdown(a *attempt) {
	s, target, _ := orphan(a, "continue")
	s.bus.ticking(20)
	a.signal(target, syscall.SIGTERM)
	s.bus.checkSafeEnd(s.bus.end())
}
