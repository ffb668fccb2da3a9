package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/checkpoint"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/runtest"
)

func TestPreviousEndIsThatOfTheReportOfTheSameBench(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	b := &bench.Bench{Name: "a", Metrics: "127.0.0.1:9464"}
	for _, c := range []struct {
		text, want string
	}{
		{`{"plant": "p", "bench": "a", "ended": "a tick was missed (stop)", "clean": false}`, "a tick was missed (stop)"},
		{`{"plant": "p", "bench": "b", "ended": "done", "clean": true}`, ""},
		{`{"bench": "a", "ended"`, ""}, {"", ""},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := previousEnd(file, b)
		if (got == nil) != (c.want == "") || got != nil && (got.Why != c.want || got.Clean) {
			t.Errorf("%s: %+v", c.text, got)
		}
	}
	if got := previousEnd(filepath.Join(t.TempDir(), "none"), b); got != nil {
		t.Errorf("without a report: %+v", got)
	}
}

// A record that starts while the run lasts has figures.
func TestFiguresFollowTheRunningRecord(t *testing.T) {
	run, memory := runtest.Guarded(t, benchtest.GuardedText(t)), checkpoint.NewMemory()
	memory.Use(checkpoint.New(new(int)))
	view := report.View{Handover: run.Handover, Status: run.Status, Checkpoint: memory}
	c, err := recorder.New(view, recorder.Options{Live: true})
	if err != nil {
		t.Fatal(err)
	}
	figures := &recordFigures{}
	if got := figures.of(c); got != nil {
		t.Errorf("without a record: %+v", got)
	}
	s, err := c.PrepareStart(filepath.Join(t.TempDir(), "a.rec"))
	if err == nil {
		err = c.Announce(s, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := figures.of(c); got == nil || got.Incomplete || got.Free == 0 {
		t.Errorf("with a record: %+v", got)
	}
	c.Cancel(s)
	if got := figures.of(c); got != nil {
		t.Errorf("after the record: %+v", got)
	}
}
