package control

import (
	"fmt"
	"testing"
	"time"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/supervisor"
)

func TestATargetThatDoesNotEndIsSaid(t *testing.T) {
	p, err := host.Spawn("/bin/sleep", nil, nil, "60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	h := &bench.Handover{Bench: openHeld(t).Bench}
	h.Loop.Period, h.Loop.Safe.Ticks = time.Second, -2-int64(supervisor.starting/time.Second) // no time is left to wait
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

// The kernel gives ids away again: who has that of a supervisor that has ended is none.
func TestAProcessWithTheIDOfASupervisorThatHasEndedIsNotTakenForIt(t *testing.T) {
	p := sleeper(t)
	if p.Since == 0 || p.Since != host.StartTime("/", p.PID) {
		t.Fatalf("it began at %d", p.Since)
	}
	for _, c := range []struct {
		who   uint64
		alive bool
	}{
		{rt.Identity(p.PID, p.Since), true},
		{rt.Identity(p.PID, p.Since-1), false},
		{rt.Identity(p.PID, 0), true}, // it is not known
		{rt.Identity(0, 0), false},
	} {
		if host.Alive(c.who) != c.alive {
			t.Errorf("%x: alive is not %t", c.who, c.alive)
		}
	}
	r := &supervisor.Session{View: report.View{Page: new(rt.Page)}}
	r.Page.Supervisor.Store(rt.Identity(p.PID, p.Since-1))
	if err := r.succeed(); err != nil || r.Page.Supervisor.Load() != host.Self() {
		t.Errorf("%v, the supervisor is %x, want %x", err, r.Page.Supervisor.Load(), host.Self())
	}
	if other, err := host.Adopt(p.PID, p.Since-1); err == nil || err.Error() != "it has ended" {
		t.Errorf("taken for another one: %+v, %v", other, err)
	}
	s := &socket{name: "lone", pid: p.PID, since: p.Since - 1, lone: &report.View{Handover: &bench.Handover{Bench: &bench.Bench{}}, Page: new(rt.Page)}}
	if _, err := s.stop(true)(); err == nil || p.WaitEnded(100*time.Millisecond) {
		t.Errorf("%v, and the process that has its id now was killed: %t", err, p.WaitEnded(0))
	}
}
