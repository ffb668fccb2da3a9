package recorder

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt/bench"
	"lockstep/rt/report"
)

func TestTruncatedRecordIsNotPlayed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.rec")
	w, err := record.Create(path, record.Header{Period: 5e6})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(2) {
		if err := w.Frame(&record.Frame{Time: 1e9 + i, Other: i == 1, Frame: can.Frame{ID: 0x100, Len: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Lost(1, 3, "the ring was full"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut, want := range map[int]string{
		0: "run.rec was played to the end; frames at most 0.000 ms late; 1 gaps in the log",
		5: "run.rec was played to the point where the file is cut: " + path + ": cut off at byte ",
	} {
		if err := os.WriteFile(path, whole[:len(whole)-cut], 0o666); err != nil {
			t.Fatal(err)
		}
		p, target, err := OpenPlayer(bench.LogPrefix+path, []can.Filter{{}})
		if err != nil {
			t.Fatal(err)
		}
		p.PlayUntil(math.MaxInt64)
		if got := p.Report(); !strings.Contains(got, want) || p.played != 2 {
			t.Errorf("cut by %d: %d frames, %q; want 2, %q", cut, p.played, got, want)
		}
		p.Bus.Close()
		p.Log.Close()
		target.Close()
	}
}

// CheckEnds reads the beginning of a log only: a later line is read while the log is played.
func TestRunOfALogThatBreaksLaterIsNotClean(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive.log")
	if err := os.WriteFile(path, []byte(strings.Repeat("(1.0) can0 100#11\n", 1000)+"(2.0) can0 1#1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	p, target, err := OpenPlayer(bench.LogPrefix+path, []can.Filter{{}})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	defer p.Bus.Close()
	defer p.Log.Close()
	p.PlayUntil(math.MaxInt64)
	r := &report.Report{Clean: true}
	AddPlayed([]*Player{p}, r)
	if r.Clean || !strings.Contains(r.Ended, path+":1001: ") || len(r.Played) != 1 {
		t.Errorf("clean %t, %q; want line 1001", r.Clean, r.Ended)
	}
}
