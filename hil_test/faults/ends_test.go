package faults

import (
	"strings"
	"syscall"
	"time"
)

// ended checks a clean end: what the bus carried, safe values or silence, and that
// the report tells why.
func (s *session) ended(safe bool, why string) {
	s.Helper()
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	s.must(r.Clean && r.Ended == why, "clean %t: %q, want %q", r.Clean, r.Ended, why)
	s.bus.counted(all, r)
	if safe {
		s.bus.farewell(all)
		return
	}
	_, some := s.bus.parted(all)
	s.must(len(some) == 0, "%d safe frames, want silence", len(some))
	s.must(len(all) == int(r.TxFrames), "%d frames came, %d were sent", len(all), r.TxFrames)
}

func timeOver(a *trial) {
	s := a.run(plan{change: []string{"planned: silence", "planned: safe"}, args: []string{"-for", "1s"}})
	s.ended(true, "done")
	r := s.read()
	a.must(r.Ticks == 200 && r.SimTime == 1, "%d ticks, %g s; want 200, 1 s", r.Ticks, r.SimTime)
}

func ctrlCSilence(a *trial) {
	s := a.run(plan{})
	s.bus.ticking(50)
	s.ctrlC()
	s.ended(false, "stopped by interrupt")
}

func sigterm(a *trial) {
	s := a.run(plan{})
	s.bus.ticking(50)
	a.signal(s.cmd.Process.Pid, syscall.SIGTERM)
	s.ended(true, "stopped by terminated")
}

func sigtermToAll(a *trial) {
	s := a.run(plan{})
	s.bus.ticking(50)
	a.signal(a.target(), syscall.SIGTERM)
	a.signal(s.cmd.Process.Pid, syscall.SIGTERM)
	s.ended(true, "stopped by terminated")
}

func terminalClosed(a *trial) {
	s := a.run(plan{})
	s.bus.ticking(50)
	a.signal(s.cmd.Process.Pid, syscall.SIGHUP)
	s.ended(false, "stopped by hangup")
}

func ctrlCAtOnce(a *trial) {
	s := a.run(plan{change: []string{"planned: silence", "planned: safe"}})
	s.bus.ticking(50)
	s.ctrlC()
	time.Sleep(time.Millisecond) // else the kernel makes one signal of them
	s.ctrlC()
	s.ended(true, "stopped by interrupt")
}

func ctrlCTwice(a *trial) {
	s := a.run(plan{})
	s.bus.ticking(50)
	a.signal(a.target(), syscall.SIGSTOP)
	s.ctrlC()
	time.Sleep(time.Second) // at once it would be the same wish
	s.ctrlC()
	s.ends(1, "run: stopped by interrupt; the target process did not answer and was killed, after ")
	all, r := s.bus.end(), s.read()
	s.bus.farewell(all)
	s.bus.counted(all, r)
	a.must(strings.Contains(s.out.String(), "safe state   "), "the output does not tell of the safe values:\n%s", s.out.String())
}
