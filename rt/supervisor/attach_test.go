package supervisor

import (
	"os"
	"testing"

	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/report"
)

// The kernel reuses process ids: the start time tells the processes apart.
func TestTargetIsTakenOverWhenAnotherProcessHasTheIDOfItsSupervisor(t *testing.T) {
	me := os.Getpid()
	r := &Session{View: report.View{Status: new(rt.StatusBlock)}}
	r.Status.Supervisor.Store(rt.Identity(me, host.StartTime("/", me)-1))
	if err := r.replaceSupervisor(); err != nil || r.Status.Supervisor.Load() != host.SelfIdentity() {
		t.Errorf("%v, the supervisor is %x, want %x", err, r.Status.Supervisor.Load(), host.SelfIdentity())
	}
}
