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

func TestStopReportsATargetThatDoesNotEnd(t *testing.T) {
	p, err := host.Spawn("/bin/sleep", nil, nil, "60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	h := &bench.Handover{ForSupervisors: bench.ForSupervisors{Bench: openControlled(t).Bench}}
	h.Loop.Period, h.Loop.Safe.Ticks = time.Second, -2-int64(endTimeout/time.Second) // no time is left to wait
	s := &socket{name: "lone", pid: p.PID, orphan: &targetProcess{View: report.View{Handover: h, Status: new(rt.StatusBlock)}}}
	target, err := host.OpenProcess(p.PID, p.Since)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.stopOrphan(false, target)
	if want := fmt.Sprintf("lone (process %d) does not end and has no supervisor: lockstep stop %[1]d -now kills it", p.PID); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// The kernel reuses process ids: a later process with the id of the target is not killed.
func TestStopSparesAProcessThatReusesTheIDOfATarget(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := host.OpenProcess(cmd.Process.Pid, 0)
	if err != nil {
		t.Skip("this kernel has no pidfd: ", err)
	}
	s := &socket{name: "lone", pid: p.PID, since: p.Since - 1, orphan: &targetProcess{View: report.View{Handover: &bench.Handover{ForSupervisors: bench.ForSupervisors{Bench: &bench.Bench{}}}, Status: new(rt.StatusBlock)}}}
	if _, err := s.stop(true); err == nil || p.WaitEnded(100*time.Millisecond) {
		t.Errorf("%v, and the process that has its id now was killed: %t", err, p.WaitEnded(0))
	}
}

// lockstep doctor holds the settings, not a run.
func TestHolderOfTheHostSettingsIsNotListedAsARun(t *testing.T) {
	what := fmt.Sprintf("host/%d", os.Getpid())
	for _, name := range []string{what, sched.Reservation{What: what, Role: "supervisor", Process: os.Getpid(), Owner: "doctor"}.String()} {
		fd, err := sched.Reserve(name)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	if slices.ContainsFunc(List(), func(v ListedRun) bool { return v.Supervisor == os.Getpid() }) {
		t.Error("ps takes it for a run")
	}
}

func TestEndOfARunIsOneLine(t *testing.T) {
	e := Answer{Bench: "b\x1b", Ended: "stopped by ctl", Clean: true, Tick: 600, Missed: 2, Time: 3}
	if got, want := e.EndLine(), "b: stopped by ctl, after 3.000 s: 600 ticks, missed 2; clean"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.Clean = false
	if got := e.EndLine(); !strings.HasSuffix(got, "; NOT clean") {
		t.Errorf("%q", got)
	}
}
