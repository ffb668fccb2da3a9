package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
)

// stepsOf returns the outputs of each tick of a record.
func stepsOf(t *testing.T, rec string) map[int64][]float64 {
	t.Helper()
	list := map[int64][]float64{}
	for _, e := range recordtest.Entries(t, rec) {
		if e.Kind == record.TickEntry {
			list[e.Tick.Index] = slices.Clone(e.Tick.Y)
		}
	}
	return list
}

// The gearbox without a control unit slows down. After a reset it repeats its start, and after the reset to a
// snapshot what has followed the snapshot, bit for bit, while the ticks go on. The target allocates nothing,
// and the record replays.
func TestResetRepeatsTheStartAndASnapshotBitForBit(t *testing.T) {
	const same = 20 // ticks compared
	dir := t.TempDir()
	name := fmt.Sprintf("reset-%d", os.Getpid())
	file := patientBench(t, "bench: powershift-bench", "bench: "+name, "control_unit: powershift", "",
		"      - TCU_Pressure_2.pressure_C7 -> clutch7.pressure\n", "")
	rec, report := filepath.Join(dir, "run.rec"), filepath.Join(dir, "r.json")
	s := begin(t, nil, "run", file, "-record", rec, "-report", report)
	s.running()
	after := func(tick int64) {
		t.Helper()
		for ctl(t, name, "status").Tick < tick+same {
			time.Sleep(10 * time.Millisecond)
		}
	}
	after(0)
	warm := ctl(t, name, "snapshot", "warm")
	after(warm.Tick)
	ctl(t, name, "set", "clutch7.pressure=8 bar")
	set := ctl(t, name, "release", "clutch7.pressure")
	after(set.Tick)
	back := ctl(t, name, "reset", "warm")
	after(back.Tick)
	start := ctl(t, name, "reset")
	after(start.Tick)
	a := ctl(t, name, "status")
	if len(a.Snapshots) != 1 || a.Snapshots[0].Name != "warm" || a.Snapshots[0].Tick != warm.Tick || a.Resets != 2 || back.Carried {
		t.Errorf("status: %+v after %+v", a, back)
	}
	for words, want := range map[string]string{
		"reset wram":                          `there is no snapshot "wram" (did you mean warm?)`,
		"reset warm hot":                      "takes the name of one snapshot, or none for the start",
		"snapshot 2nd":                        `"2nd" is not a name: use 1 to 32 letters, digits and _, not a digit first`,
		"snapshot":                            "needs one name",
		"snapshot warm hot":                   "needs one name",
		"snapshot " + strings.Repeat("w", 33): "is not a name",
	} {
		if _, errors, code := lockstep(t, append([]string{"ctl", name}, strings.Fields(words)...)...); code != 2 || !strings.Contains(errors, want) {
			t.Errorf("%s: code %d, %s; want %s", words, code, errors, want)
		}
	}
	ctl(t, name, "stop")
	if code := s.end(); code != 0 {
		t.Errorf("code %d, %s\n%s", code, s.errors.String(), s.out.String())
	}
	r := readReport(t, report)
	if r.Allocs != 0 || r.GCCycles != 0 || r.Resets != 2 {
		t.Errorf("report: %d allocations, %d collections, %d resets", r.Allocs, r.GCCycles, r.Resets)
	}

	y := stepsOf(t, rec)
	if slices.Equal(y[back.Tick-1], y[warm.Tick-1]) || slices.Equal(y[1], y[warm.Tick]) {
		t.Error("the gearbox stands still: the test shows nothing")
	}
	for _, c := range []struct{ first, again int64 }{{warm.Tick, back.Tick}, {1, start.Tick}} {
		for k := range int64(same) {
			first, again := y[c.first+k], y[c.again+k]
			for i := range first {
				if len(again) != len(first) || math.Float64bits(first[i]) != math.Float64bits(again[i]) {
					t.Fatalf("output %d is %g at tick %d, %g at tick %d", i, first[i], c.first+k, again[i], c.again+k)
				}
			}
		}
	}
	if ticks, _, errors, code := replayed(t, rec); code != 0 || ticks < int(start.Tick) {
		t.Errorf("replay: code %d, %d ticks, %s", code, ticks, errors)
	}
}

// Where parameters have changed since a snapshot, its state is carried over to the present ones, and the
// answer says so.
func TestResetToASnapshotKeepsThePresentParameters(t *testing.T) {
	dir := t.TempDir()
	_, name := openBench(t)
	file := patientBench(t, "bench: powershift-bench", "bench: "+name, "control_unit: powershift", "", "scheme: papers", "scheme: complete")
	rec := filepath.Join(dir, "run.rec")
	s := begin(t, nil, "run", file, "-record", rec)
	s.running()
	warm := ctl(t, name, "snapshot", "warm")
	ctl(t, name, "param", "mu_oil=0.15")
	back := ctl(t, name, "reset", "warm")
	again := ctl(t, name, "snapshot", "warm")
	exact := ctl(t, name, "reset", "warm")
	a := ctl(t, name, "status")
	if !back.Carried || exact.Carried || a.Parameters["mu_oil"] != "0.15" || a.Changes != 1 || a.Resets != 2 || len(a.Snapshots) != 1 || a.Snapshots[0].Tick != again.Tick {
		t.Errorf("%+v, %+v, %+v after %+v", back, exact, a, warm)
	}
	out, errors, code := lockstep(t, "ctl", name, "status")
	if code != 0 || !strings.Contains(out, "snapshot warm  ") || !strings.Contains(out, "resets: 2\n") {
		t.Errorf("status: code %d, %s%s", code, out, errors)
	}
	ctl(t, name, "stop")
	if code := s.end(); code != 0 {
		t.Errorf("code %d, %s\n%s", code, s.errors.String(), s.out.String())
	}
	if _, _, errors, code := replayed(t, rec); code != 0 {
		t.Errorf("replay: code %d, %s", code, errors)
	}
}
