package control

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

func TestEndOfARunIsReportedToAllWaitingClients(t *testing.T) {
	c := newControlled(t)
	const many = 5
	var answers [many]*Answer
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() {
			a, err := c.ask("stop", "wait")
			if err != nil {
				t.Error(err)
			}
			answers[i] = a
		})
	}
	if s := <-c.stop; s != Request("ctl") {
		t.Errorf("stopped by %v", s)
	}
	for c.s.waitingClients.Load() < many {
		time.Sleep(time.Millisecond)
	}
	if a := c.must("stop", "now"); a.Bench != "open bench" || <-c.stop != Request(StopNow) {
		t.Errorf("stop now: %+v", a)
	}
	c.end()
	c.s.CloseListener()
	c.s.AnswerWaiting(&report.Report{Bench: "open bench", Ended: "stopped", Clean: true, Ticks: 7, Missed: 2, SimTime: 0.5})
	wait.Wait()
	for _, a := range answers {
		if a == nil || a.Ended != "stopped" || !a.Clean || a.Tick != 7 || a.Missed != 2 || a.Time != 0.5 {
			t.Errorf("%+v", a)
		}
	}
}

func TestRunIsListedFromItsStatusBlock(t *testing.T) {
	h := openControlled(t)
	h.Thread.CPU, h.Reservations = 2, []string{host.CPUPrefix + "2"}
	p := new(rt.StatusBlock)
	r := report.View{Handover: h, Status: p}
	if v := newListedRun(r, 12); v.State != "preparing" || !v.Since.IsZero() || v.Shared {
		t.Errorf("before the start: %+v", v)
	}
	p.Supervisor.Store(11)
	p.State.Store(uint64(rt.Running))
	p.StartNs.Store(uint64(sched.Now() - int64(10*time.Millisecond)))
	p.Ticks.Store(2)
	p.Missed.Store(1)
	if v := newListedRun(r, 12); v.State != "running" || v.Supervisor != 11 || v.Target != 12 || v.Ticks != 2 || v.Missed != 1 ||
		!(time.Since(v.Since) < time.Minute && time.Since(v.Since) > 0) {
		t.Errorf("%+v", v)
	}
	p.StartNs.Store(uint64(sched.Now() - int64(2*time.Second)))
	if v := newListedRun(r, 12); !strings.HasPrefix(v.State, "no tick for ") {
		t.Errorf("%+v", v)
	}
	p.SafeReason.Store(uint64(rt.BusLost))
	if v := newListedRun(r, 12); v.State != "safe: a bus was down or off" {
		t.Errorf("%+v", v)
	}
	var text strings.Builder
	v := newListedRun(r, 12)
	v.Hint = "do"
	if err := Table(&text, []ListedRun{*v, {Bench: "x", CPU: -1, unknown: true, State: "not known"}}); err != nil || strings.Count(text.String(), "\n") != 3 ||
		!strings.Contains(text.String(), "drive=pair") || !strings.Contains(text.String(), "; do\n") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// The supervisor is this process. It gives no answer, as when its door is full; its target is known.
func TestARunWhoseSupervisorGivesNoAnswerIsListedOnce(t *testing.T) {
	self := os.Getpid()
	p := new(rt.StatusBlock)
	p.Supervisor.Store(rt.Identity(self, host.StartTime("/", self)))
	p.State.Store(uint64(rt.Running))
	p.StartNs.Store(uint64(sched.Now()))
	p.Ticks.Store(2)
	x := &targetProcess{pid: 12, uid: os.Getuid(), View: report.View{Handover: openControlled(t), Status: p}}
	silent := ListedRun{Bench: "silent", Supervisor: self, CPU: -1, State: noAnswer, unknown: true}
	other := ListedRun{Bench: "other", Supervisor: 1, CPU: -1, State: noAnswer, unknown: true}
	list := addTarget([]ListedRun{other, silent}, x, nil)
	if v := list[len(list)-1]; len(list) != 2 || v.Target != 12 || v.Supervisor != self || v.Ticks != 2 || v.unknown || !strings.HasSuffix(v.State, "; its supervisor gives no answer") {
		t.Errorf("%+v", list)
	}
	x.uid++ // the target of another user names this supervisor: the row is not his
	if list := addTarget([]ListedRun{silent}, x, nil); len(list) != 2 || list[0].Target != 0 {
		t.Errorf("%+v", list)
	}
	p.Supervisor.Store(0)
	if list := addTarget([]ListedRun{silent}, x, nil); len(list) != 2 || list[1].Hint == "" {
		t.Errorf("%+v", list)
	}
}
