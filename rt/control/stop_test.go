package control

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

func TestATargetThatDoesNotEndIsSaid(t *testing.T) {
	p, err := host.Spawn("/bin/sleep", nil, nil, "60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	h := &bench.Handover{Bench: openControlled(t).Bench}
	h.Loop.Period, h.Loop.Safe.Ticks = time.Second, -2-int64(serving/time.Second) // no time is left to wait
	s := &socket{name: "lone", pid: p.PID, lone: &report.View{Handover: h, Page: new(rt.Page)}}
	target, err := host.Adopt(p.PID, p.Since)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.stopLone(false, target, nil)()
	if want := fmt.Sprintf("lone (process %d) does not end; nobody watches over it: lockstep stop %[1]d -now kills it", p.PID); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// The kernel gives ids away again: who has that of a target that has ended is not killed.
func TestAProcessWithTheIDOfATargetThatHasEndedIsNotStopped(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := host.Adopt(cmd.Process.Pid, 0)
	if err != nil {
		t.Skip("this kernel has no pidfd: ", err)
	}
	s := &socket{name: "lone", pid: p.PID, since: p.Since - 1, lone: &report.View{Handover: &bench.Handover{Bench: &bench.Bench{}}, Page: new(rt.Page)}}
	if _, err := s.stop(true)(); err == nil || p.WaitEnded(100*time.Millisecond) {
		t.Errorf("%v, and the process that has its id now was killed: %t", err, p.WaitEnded(0))
	}
}

// As long as somebody changes the settings of the host that is no run.
func TestWhoChangesTheHostIsNotListed(t *testing.T) {
	fd, err := sched.Claim(sched.Claimed{What: fmt.Sprintf("host/%d", os.Getpid()), Role: "supervisor", Process: 812, Owner: "doctor"}.String())
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if slices.ContainsFunc(List(), func(v Listed) bool { return v.Supervisor == 812 }) {
		t.Error("ps takes it for a run")
	}
}

func TestAnEndingIsALine(t *testing.T) {
	e := Ending{Bench: "b\x1b", Ended: "stopped by ctl", Clean: true, Ticks: 600, Missed: 2, Time: 3}
	if got, want := e.String(), "b: stopped by ctl, after 3.000 s: 600 ticks, missed 2; clean"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.Clean = false
	if got := e.String(); !strings.HasSuffix(got, "; NOT clean") {
		t.Errorf("%q", got)
	}
}
