package supervisor

import (
	"os"
	"testing"

	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/report"
)

// The kernel gives ids away again: who has that of a supervisor that has ended is none.
func TestATargetIsTakenOverFromAProcessThatHasTheIDOfItsSupervisor(t *testing.T) {
	me := os.Getpid()
	r := &Session{View: report.View{Page: new(rt.Page)}}
	r.Page.Supervisor.Store(rt.Identity(me, host.StartTime("/", me)-1))
	if err := r.succeed(); err != nil || r.Page.Supervisor.Load() != host.Self() {
		t.Errorf("%v, the supervisor is %x, want %x", err, r.Page.Supervisor.Load(), host.Self())
	}
}
