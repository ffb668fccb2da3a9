package faults

import (
	"strings"
	"syscall"
	"time"
)

// checkCleanEnd checks a clean end with exit 0: safe values or silence on the bus, and the reason
// in the report.
func (s *session) checkCleanEnd(safe bool, why string) {
	s.Helper()
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	s.must(r.Clean && r.Ended == why, "clean %t: %q, want %q", r.Clean, r.Ended, why)
	s.bus.counted(all, r)
	if safe {
		s.bus.checkSafeEnd(all)
		return
	}
	_, some := s.bus.split(all)
	s.must(len(some) == 0, "%d safe frames, want silence", len(some))
	s.must(len(all) == int(r.TxFrames), "%d frames came, %d were sent", len(all), r.TxFrames)
}

func timeOver(a *attempt) {
	s := a.run(plan{change: []string{"planned: silence", "planned: safe"}, args: []string{"-for", "1s"}})
	s.checkCleanEnd(true, "done")
	r := s.read()
	a.must(r.Ticks == 200 && r.SimTime == 1, "%d ticks, %g s; want 200, 1 s", r.Ticks, r.SimTime)
}

func ctrlCSilence(a *attempt) {
	s := a.run(plan{})
	s.bus.ticking(50)
	s.ctrlC()
	s.checkCleanEnd(false, "stopped by interrupt")
}

func sigterm(a *attempt) {
	s := a.run(plan{})
	s.bus.ticking(50)
	a.signal(s.cmd.Process.Pid, syscall.SIGTERM)
	s.checkCleanEnd(true, "stopped by terminated")
}

func sigtermToAll(a *attempt) {
	s := a.run(plan{})
	s.bus.ticking(50)
	a.signal(a.target(), syscall.SIGTERM)
	a.signal(s.cmd.Process.Pid, syscall.SIGTERM)
	s.checkCleanEnd(true, "stopped by terminated")
}

func terminalClosed(a *attempt) {
	s := a.run(plan{})
	s.bus.ticking(50)
	a.signal(s.cmd.Process.Pid, syscall.SIGHUP)
	s.checkCleanEnd(false, "stopped by hangup")
}

func ctrlCAtOnce(a *attempt) {
	s := a.run(plan{change: []string{"planned: silence", "planned: safe"}})
	s.bus.ticking(50)
	s.ctrlC()
	time.Sleep(time.Millisecond) // otherwise the kernel merges both signals
	s.ctrlC()
	s.checkCleanEnd(true, "stopped by interrupt")
}

func ctrlCTwice(a *attempt) {
	s := a.run(plan{})
	s.bus.ticking(50)
	a.signal(a.target(), syscall.SIGSTOP)
	s.ctrlC()
	time.Sleep(time.Second) // a second Ctrl-C at once does not count
	s.ctrlC()
	s.ends(1, "run: stopped by interrupt; the target process did not answer and was killed, after ")
	all, r := s.bus.end(), s.read()
	s.bus.checkSafeEnd(all)
	s.bus.counted(all, r)
	a.must(strings.Contains(s.out.String(), "safe state   "), "no line about the safe state in the output:\n%s", s.out.String())
}
