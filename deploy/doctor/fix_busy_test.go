package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

func TestNothingIsChangedWhileABenchTicks(t *testing.T) {
	b := newBox(t, "throttled")
	p := b.plan()
	b.apply()
	b.set("proc/988/comm", "lockstep-target")
	b.set("proc/988/task/991/stat", stat(991, "lockstep-target", 80, unix.SCHED_FIFO)) // thread on the loop's CPU
	b.set("proc/988/task/991/status", "Cpus_allowed_list:\t3")
	before := b.tree()
	var text strings.Builder
	again := b.plan()
	if err := again.Text(&text); err != nil || len(again.Changes) > 0 {
		t.Errorf("planned: %v, %v", again.lines(), err)
	}
	text.Reset()
	b.req.Priority = 85
	if err := b.plan().Text(&text); err != nil || !strings.Contains(text.String(), "not now") {
		t.Errorf("the plan does not name the running bench: %v\n%s", err, &text)
	}
	var refused Refused
	if _, err := p.Apply(b.state); !errors.As(err, &refused) || !errors.Is(err, ErrBenchRuns) || refused.By.Process != 988 {
		t.Errorf("applied: %v", err)
	}
	if _, err := b.host().undo(b.state); !errors.As(err, &refused) {
		t.Errorf("undone: %v", err)
	}
	differ(t, "while it ticks", before, b.tree())
}

// A run reserves its CPU before it ticks, and between two segments of a soak nothing ticks.
func TestNothingIsChangedWhileABenchHasReservedACPU(t *testing.T) {
	b := newBox(t, "throttled")
	p := b.plan()
	if err := os.MkdirAll(filepath.Join(b.root, "proc/net"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.set("proc/net/unix", "0000000000000000: 00000002 00000000 00000000 0005 01 51012 @lockstep/cpu/3\n"+
		"0000000000000000: 00000002 00000000 00000000 0005 01 51013 @lockstep/cpu/3/supervisor/812/car")
	before := b.tree()
	var refused Refused
	if _, err := p.Apply(b.state); !errors.As(err, &refused) || !errors.Is(err, ErrBenchRuns) || refused.By != (Holder{"car", 812}) {
		t.Errorf("applied: %v", err)
	}
	var text strings.Builder
	if err := p.Text(&text); err != nil || !strings.Contains(text.String(), Holder{"car", 812}.String()) {
		t.Errorf("the plan does not name the running bench: %v\n%s", err, &text)
	}
	differ(t, "while it runs", before, b.tree())
	b.set("proc/net/unix", "")
	b.apply()
}

func TestASecondDoctorIsRefused(t *testing.T) {
	b := newBox(t, "throttled")
	before := b.tree()
	unlock, err := b.host().lockSettings()
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() ([]Step, error){
		"fix":  func() ([]Step, error) { return b.plan().Apply(b.state) },
		"undo": func() ([]Step, error) { return b.host().undo(b.state) },
	} {
		var refused Refused
		if steps, err := do(); !errors.As(err, &refused) || len(steps) > 0 || !errors.Is(err, ErrSettingsTaken) || strings.Contains(refused.Text, "\n") {
			t.Errorf("%s: %v, %+v", what, err, steps)
		}
	}
	differ(t, "refused", before, b.tree())
	i := slices.IndexFunc(sched.Reservations("/"), func(c sched.Reservation) bool {
		return c.What == b.reservation && c.Process == os.Getpid() && c.Owner == "doctor"
	})
	if i < 0 {
		t.Error("no reservation names this process")
	}
	unlock()
	b.apply()
	b.undo()
	differ(t, "after both", before, b.tree())
}
