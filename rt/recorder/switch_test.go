package recorder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/checkpoint"
	"lockstep/rt/report"
	"lockstep/rt/runtest"
	"lockstep/sched"
)

// newOnRequest returns the recorder of a run that is not recorded yet, and a name for a record.
func newOnRequest(t *testing.T) (c *Recorder, file string) {
	t.Helper()
	run, memory := runtest.Guarded(t, benchtest.GuardedText(t)), checkpoint.NewMemory()
	memory.Use(checkpoint.New(new(int)))
	view := report.View{Handover: run.Handover, Status: run.Status, Checkpoint: memory}
	c, err := New(view, Options{Live: true})
	if err != nil {
		t.Fatal(err)
	}
	run.Status.StartNs.Store(uint64(sched.Now()))
	c.begin()
	return c, filepath.Join(t.TempDir(), "folder", "a.rec")
}

// announceStart announces the start of a record at batch 1.
func announceStart(t *testing.T, c *Recorder, file string) *Switch {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := c.PrepareStart(file)
	if err == nil {
		err = c.Announce(s, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// expectNoRecord checks the outcome of a start that failed, and that nothing of it remains.
func expectNoRecord(t *testing.T, c *Recorder, s *Switch, want string) {
	t.Helper()
	select {
	case err := <-s.Done():
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the start has the error %v, want %s", err, want)
		}
	default:
		t.Error("the start has no outcome")
	}
	if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the record remains: %v", err)
	}
	if c.Path() != "" || len(c.files) > 0 || c.w != nil {
		t.Errorf("record %q, files %v, want none", c.Path(), c.files)
	}
	if got := c.Refused(); !strings.HasPrefix(got, s.path+": ") || !strings.Contains(got, want) { // for a client that has left
		t.Errorf("refused: %q, want the file and %s", got, want)
	}
}

func TestStartThatFailsReportsItsError(t *testing.T) {
	c, file := newOnRequest(t)
	s := announceStart(t, c, file)
	os.RemoveAll(filepath.Dir(file))
	c.applySwitch(&rt.Entry{Kind: rt.KindCommand, Batch: 1, Tick: 5})
	expectNoRecord(t, c, s, "no such file")
	announceStart(t, c, file) // the next start is not affected
	c.applySwitch(&rt.Entry{Kind: rt.KindCommand, Batch: 1, Tick: 5})
	if c.Path() != file || c.w == nil || c.Refused() != "" {
		t.Errorf("record %q, refused %q, want %s", c.Path(), c.Refused(), file)
	}
	c.End()
	var r report.Report
	if c.Report(&r); r.Record != file || len(r.Records) != 1 || r.Records[0].First != 5 {
		t.Errorf("record %q, records %+v, want %s from tick 5", r.Record, r.Records, file)
	}
}

func TestStartTakesNoFileThatExists(t *testing.T) {
	c, file := newOnRequest(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{empty, "/proc/self/mem"} {
		if _, err := c.PrepareStart(name); err == nil || !strings.Contains(err.Error(), name+" exists") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(empty); err != nil {
		t.Error(err)
	}
	s := announceStart(t, c, file) // another program replaces the new file before the start is refused
	if err := os.Rename(empty, file); err != nil {
		t.Fatal(err)
	}
	c.Cancel(s)
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a file of another program is removed: %v", err)
	}
}

// A start that the loop refuses after its client has left, or that the run's end overtakes, leaves nothing.
func TestStartThatDoesNotHappenLeavesNothing(t *testing.T) {
	c, file := newOnRequest(t)
	s := announceStart(t, c, file)
	c.applySwitch(&rt.Entry{Kind: rt.KindCommand, Batch: 1, Tick: 5, Refused: true})
	expectNoRecord(t, c, s, errDelays.Error())

	s = announceStart(t, c, file)
	c.End()
	expectNoRecord(t, c, s, errEnded.Error())

	s, err := c.PrepareStart(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Announce(s, 1); !errors.Is(err, errEnded) {
		t.Errorf("a start after the end: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the record remains: %v", err)
	}
}

// Each record has its own error: a complete one is not called incomplete for another.
func TestIncompleteRecordIsNamed(t *testing.T) {
	c, file := newOnRequest(t)
	second := file + "2"
	for batch, name := range []string{file, second} {
		s := announceStart(t, c, name)
		s.batch = uint64(2*batch + 1)
		c.applySwitch(&rt.Entry{Kind: rt.KindCommand, Batch: s.batch, Tick: 5})
		if name == second {
			c.noteError(errors.New("no space"))
		}
		end, err := c.PrepareEnd()
		if err == nil {
			err = c.Announce(end, s.batch+1)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.applySwitch(&rt.Entry{Kind: rt.KindCommand, Batch: s.batch + 1, Tick: 9})
	}
	c.End()
	if err, want := c.Err(), "record "+second+" is incomplete: no space (1 times)"; !errors.Is(err, ErrIncomplete) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if got, want := c.Incomplete(), second+": no space (1 times)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
