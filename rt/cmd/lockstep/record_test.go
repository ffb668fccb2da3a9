package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/io/record"
	"lockstep/rt/virtual"
)

// replayed replays a record and returns the numbers of identical ticks and frames.
func replayed(t *testing.T, file string) (ticks, frames int, errors string, code int) {
	t.Helper()
	out, errors, code := lockstep(t, "replay", file)
	numbers := regexp.MustCompile(`\d+`).FindAllString(out, -1)
	if code != 0 || len(numbers) != 2 || strings.Count(out, "\n") != 1 {
		if code == 0 || out != "" {
			t.Errorf("replay: code %d, %q; want ticks and frames in a line", code, out)
		}
		return 0, 0, errors, code
	}
	ticks, _ = strconv.Atoi(numbers[0])
	frames, _ = strconv.Atoi(numbers[1])
	return ticks, frames, errors, code
}

func TestAReplayIsIdenticalBitForBit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, report := filepath.Join(dir, "run.rec"), filepath.Join(dir, "r.json")
	if _, errors, code := lockstep(t, "run", patientBench(t), "-for", "3s", "-record", file, "-report", report); code != 0 {
		t.Fatalf("code %d, %s", code, errors)
	}
	r := readReport(t, report)
	if r.Allocs != 0 || r.Record != file || r.RecordError != "" {
		t.Errorf("%d allocations, record %q, %q", r.Allocs, r.Record, r.RecordError)
	}
	csv := filepath.Join(dir, "out.csv")
	ticks, frames, errors, code := replayed(t, file)
	if want := int(r.RxFrames + r.TxFrames + r.TxDropped); code != 0 || ticks != 600 || frames != want {
		t.Errorf("code %d, %d ticks, %d frames, %s; want 600, %d", code, ticks, frames, errors, want)
	}
	if _, errors, code := lockstep(t, "replay", file, "-out", csv); code != 0 {
		t.Errorf("code %d, %s", code, errors)
	}
	data, err := os.ReadFile(csv)
	if lines := bytes.Count(data, []byte("\n")); err != nil || lines != 601 || !bytes.HasPrefix(data, []byte("time[s],w1[rpm],")) {
		t.Errorf("%v, %d lines; want a header and one for each tick", err, lines)
	}
}

// The record holds missed ticks, safe values and the end of the target as well.
func TestAReplayFollowsMissedTicksAndTheSafeState(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"skip 1000", "catchup 1000", "safe"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "run.rec")
		s := begin(t, nil, "run", patientBench(t, "overrun: skip 200", "overrun: "+policy), "-for", "2s", "-record", file)
		s.running()
		pid := s.child("target")
		syscall.Kill(pid, syscall.SIGSTOP)
		time.Sleep(100 * time.Millisecond)
		syscall.Kill(pid, syscall.SIGCONT)
		s.end()
		ticks, frames, errors, code := replayed(t, file)
		if code != 0 || ticks != 400 || frames == 0 {
			t.Errorf("%s: code %d, %d ticks, %d frames, %s", policy, code, ticks, frames, errors)
		}
		missed, safe, overruns := 0, 0, 0
		for _, e := range entries(t, file) {
			switch {
			case e.Kind == record.TickEntry && e.Tick.Flags&record.Missed != 0:
				missed++
			case e.Kind == record.FrameEntry && e.Frame.Sent && e.Frame.Safe:
				safe++
			case e.Kind == record.EventEntry && e.Event.Kind == record.Overrun && e.Event.Count > 0:
				overruns++
			}
		}
		if missed < 5 || overruns == 0 || (safe > 0) != (policy == "safe") {
			t.Errorf("%s: %d ticks missed, %d overruns, %d safe frames in the record", policy, missed, overruns, safe)
		}
	}
}

// entries reads all entries of a record.
func entries(t *testing.T, file string) (list []record.Entry) {
	t.Helper()
	r, err := record.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if err != nil {
			return list
		}
		list = append(list, *e)
	}
}

// The changed byte is one of a sent frame, or of an output.
func TestAReplayNamesTheFirstDifference(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.rec")
	if _, errors, code := lockstep(t, "run", patientBench(t), "-for", "500ms", "-record", file); code != 0 {
		t.Fatal(errors)
	}
	for want, change := range map[string]func(e *record.Entry) bool{ // tick and signal of the first difference; "": none
		"40 Speeds": func(e *record.Entry) bool {
			hit := e.Kind == record.FrameEntry && e.Frame.Sent && e.Frame.Tick == 40 && e.Frame.ID == 0x200
			e.Frame.Data[0] ^= 1
			return hit
		},
		"41 w1": func(e *record.Entry) bool {
			hit := e.Kind == record.TickEntry && e.Tick.Index == 41
			if hit {
				e.Tick.Y[0] *= 1 + 1e-15
			}
			return hit
		},
		"41 ": func(e *record.Entry) bool { // a tick is missing
			hit := e.Kind == record.TickEntry && e.Tick.Index == 42
			if hit {
				e.Tick.Index = 0 // not written
			}
			return hit
		},
	} {
		forged := filepath.Join(dir, "forged.rec")
		forge(t, file, forged, change)
		_, _, errors, code := replayed(t, forged)
		if code != 1 || !has(errors, strings.Fields(want)...) || strings.Count(errors, "\n") != 1 {
			t.Errorf("code %d, %q; want %q", code, errors, want)
		}
		if at, of := firstDifference(forged); fmt.Sprint(at, " ", of) != want {
			t.Errorf("tick %d, %q; want %q", at, of, want)
		}
	}
}

// firstDifference returns where a replay differs from a record, or where the record ends too early.
func firstDifference(file string) (tick int64, of string) {
	_, err := virtual.Replay{Record: file}.Run()
	var differs *virtual.DifferenceError
	if errors.As(err, &differs) {
		return differs.Tick, differs.Of
	}
	return 0, fmt.Sprint(err)
}

// forge copies a record and changes one entry.
func forge(t *testing.T, from, to string, change func(e *record.Entry) bool) {
	t.Helper()
	r, err := record.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := r.Header
	if h.Handover, err = r.Handover(); err != nil {
		t.Fatal(err)
	}
	w, err := record.Create(to, h)
	if err != nil {
		t.Fatal(err)
	}
	changed := false
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		before := *e
		if changed || !change(e) {
			e.Frame = before.Frame
		} else {
			changed = true
		}
		switch {
		case e.Kind == record.TickEntry && e.Tick.Index != 0:
			err = w.Tick(&e.Tick)
		case e.Kind == record.FrameEntry:
			err = w.Frame(&e.Frame)
		case e.Kind == record.EventEntry:
			err = w.Event(&e.Event)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || !changed {
		t.Fatalf("%v, changed %t", err, changed)
	}
}

func TestARecordOfAKilledSupervisorReplays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.rec")
	s := begin(t, nil, "run", patientBench(t), "-record", file)
	s.running()
	ticks := func() (n int) {
		r, err := record.Open(file)
		if err != nil {
			return 0 // the header is not written yet
		}
		r.Close()
		for _, e := range entries(t, file) {
			if e.Kind == record.TickEntry {
				n++
			}
		}
		return n
	}
	before := 0
	await(t, "100 ticks have reached the file", func() bool {
		before = ticks()
		return before >= 100
	})
	s.cmd.Process.Kill()
	s.end()
	_, _, errors, code := replayed(t, file)
	tick, of := firstDifference(file)
	if code != 1 || tick < int64(before) || of != "" || !has(errors, fmt.Sprint(tick)) {
		t.Errorf("code %d, tick %d, %s, %s; want that the record ends too early, and after which tick", code, tick, of, errors)
	}
	if after := ticks(); after < before {
		t.Errorf("%d ticks in the record; %d were there before the supervisor was killed", after, before)
	}
}

func TestARunContinuesWithoutARecordThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	out, errors, code := lockstep(t, "run", patientBench(t), "-for", "1s", "-record", "/dev/full", "-report", file)
	r := readReport(t, file)
	if code != 1 || r.Ticks != 200 || r.RecordError == "" || strings.Count(errors, "\n") != 1 || !has(errors, "lockstep: run: ", "/dev/full", r.RecordError) {
		t.Errorf("code %d, %d ticks, %q, %q\n%s", code, r.Ticks, r.RecordError, errors, out)
	}
	_, errors, code = lockstep(t, "run", patientBench(t), "-for", "1s", "-record", "/nowhere/run.rec")
	if code != 2 || strings.Count(errors, "\n") != 1 || !has(errors, "lockstep: run: ", "/nowhere/run.rec") {
		t.Errorf("code %d, %q", code, errors)
	}
}

func TestARecordIsExportedToEachFormat(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.rec")
	if _, errors, code := lockstep(t, "run", patientBench(t), "-for", "500ms", "-record", file); code != 0 {
		t.Fatal(errors)
	}
	for name, magic := range map[string]string{"a.log": "(", "a.asc": "date ", "a.blf": "LOGG", "a.mf4": "MDF ", "a.csv": "time[s]"} {
		to := filepath.Join(dir, name)
		if _, errors, code := lockstep(t, "export", file, "-o", to); code != 0 {
			t.Errorf("%s: code %d, %s", name, code, errors)
		}
		if data, _ := os.ReadFile(to); !strings.HasPrefix(string(data), magic) || len(data) < 1000 {
			t.Errorf("%s begins with %.10q", name, data)
		}
	}
	for _, c := range [][]string{{"export", file}, {"export", file, "-o", filepath.Join(dir, "x.txt")}, {"export", file, "-o", "x", "-format", "trc"}, {"export", "nothing.rec", "-o", filepath.Join(dir, "b.log")}, {"replay", "nothing.rec"}, {"replay", patientBench(t)}} {
		if out, errors, code := lockstep(t, c...); code != 2 || out != "" || strings.Count(errors, "\n") != 1 {
			t.Errorf("%v: code %d, %q, %q", c, code, out, errors)
		}
	}
}

// chunkOffsets returns the offsets of the chunks of a record.
func chunkOffsets(file []byte) (list []int) {
	marker := []byte("\x9eLC\xe9")
	for at := 0; ; {
		i := bytes.Index(file[at:], marker)
		if i < 0 {
			return list
		}
		list, at = append(list, at+i), at+i+len(marker)
	}
}

func TestExportOfADamagedRecordNamesTheGap(t *testing.T) {
	dir := t.TempDir()
	file, cut := filepath.Join(dir, "run.rec"), filepath.Join(dir, "cut.rec")
	if _, errors, code := lockstep(t, "sim", "powershift-bench", "-for", "6s", "-record", file); code != 0 {
		t.Fatal(errors)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	marks := chunkOffsets(whole)
	if len(marks) < 6 {
		t.Fatalf("%d chunks, too few for a gap in the middle", len(marks))
	}
	bad := bytes.Clone(whole)
	bad[marks[3]+100] ^= 1
	for name, data := range map[string][]byte{file: bad, cut: whole[:len(whole)-1]} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{file: {"lockstep: " + file + ": ticks ", " s), ", " rows, are missing"}, cut: {"lockstep: " + cut + ": cut off at byte ", "after tick 1200 (6 s)"}}[name]
		csv := filepath.Join(dir, "out.csv")
		out, errors, code := lockstep(t, "export", name, "-o", csv)
		if code != 1 || out != "" || strings.Count(errors, "\n") != 1 || !has(errors, want...) {
			t.Errorf("%s: code %d, %q, %q; want %q", name, code, out, errors, want)
		}
		rows, _ := os.ReadFile(csv)
		if missing := regexp.MustCompile(`(\d+) rows`).FindStringSubmatch(errors); missing != nil && fmt.Sprint(1201-bytes.Count(rows, []byte("\n"))) != missing[1] {
			t.Errorf("%d lines of 1201, but %s", bytes.Count(rows, []byte("\n")), errors)
		}
		want[0] = strings.Replace(want[0], "lockstep: ", "lockstep: warning: ", 1)
		_, errors, code = lockstep(t, "export", name, "-o", csv, "-partial")
		if again, _ := os.ReadFile(csv); code != 0 || strings.Count(errors, "\n") != 1 || !has(errors, want...) || !bytes.Equal(again, rows) {
			t.Errorf("%s -partial: code %d, %q; want %q", name, code, errors, want)
		}
		if _, _, errors, code := replayed(t, name); code != 1 || strings.Count(errors, "\n") != 1 || !has(errors, "identical up to tick ") {
			t.Errorf("replay %s: code %d, %s", name, code, errors)
		}
	}
}

func TestEveryExportWithFramesIsPlayed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, log, report, file := filepath.Join(dir, "a.rec"), filepath.Join(dir, "a.log"), filepath.Join(dir, "r.json"), filepath.Join(dir, "bench.yaml")
	if _, errors, code := lockstep(t, "sim", "powershift-bench", "-for", "2s", "-record", first); code != 0 {
		t.Fatal(errors)
	}
	commands := 0
	for _, e := range entries(t, first) {
		if e.Kind == record.FrameEntry && !e.Frame.Sent {
			commands++
		}
	}
	text, _, _ := lockstep(t, "plants", "powershift-bench")
	text = regexp.MustCompile(`(?m)^.*control_unit:.*\n`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`interface: \S+`).ReplaceAllString(text, "interface: file:"+log)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, format := range slices.DeleteFunc(record.Formats(), func(name string) bool { return name == "csv" }) {
		if _, errors, code := lockstep(t, "export", first, "-o", log, "-format", format); code != 0 {
			t.Fatalf("%s: %s", format, errors)
		}
		out, errors, code := lockstep(t, "sim", file, "-for", "2s", "-report", report)
		if r := readReport(t, report); code != 0 || !r.Clean || commands == 0 || r.RxFrames != uint64(commands) || r.Transitions < 5 {
			t.Errorf("%s: code %d, %s, %d frames in of %d, %d transitions\n%s", format, code, errors, r.RxFrames, commands, r.Transitions, out)
		}
		os.Remove(log)
	}
}

// A log replaces the bus: its frames of the unit drive the plant again.
func TestALogDrivesThePlant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, log, again, report := filepath.Join(dir, "a.rec"), filepath.Join(dir, "a.log"), filepath.Join(dir, "b.rec"), filepath.Join(dir, "r.json")
	if _, errors, code := lockstep(t, "run", patientBench(t), "-for", "3s", "-record", first); code != 0 {
		t.Fatal(errors)
	}
	if _, errors, code := lockstep(t, "export", first, "-o", log); code != 0 {
		t.Fatal(errors)
	}
	commands := 0
	for _, e := range entries(t, first) {
		if e.Kind == record.FrameEntry && !e.Frame.Sent {
			commands++
		}
	}
	for _, file := range []string{log, first, log + "@pair"} {
		out, errors, code := lockstep(t, "run", patientBench(t), "-bus", "file:"+file, "-for", "4s", "-record", again, "-report", report)
		r := readReport(t, report)
		if code != 0 || r.RxFrames != uint64(commands) || r.RxUnknown != 0 || r.Transitions < 12 || len(r.Played) != 1 || !strings.HasPrefix(r.Played[0], file+" ") || !has(out, r.Played[0]) {
			t.Errorf("%s: code %d, %s, %d frames in of %d, %d transitions; want all, and the three shifts\n%s",
				file, code, errors, r.RxFrames, commands, r.Transitions, out)
		}
		if ticks, _, errors, code := replayed(t, again); code != 0 || ticks != 800 {
			t.Errorf("%s: code %d, %d ticks, %s", file, code, ticks, errors)
		}
	}
	out, errors, code := lockstep(t, "run", patientBench(t), "-bus", "file:"+log+"@can7", "-for", "1s", "-report", report)
	if r := readReport(t, report); r.RxFrames != 0 || len(r.Played) != 1 || !strings.HasPrefix(r.Played[0], log+"@can7 ") || !has(out, r.Played[0]) {
		t.Errorf("a channel that is not there: code %d, %s, %d frames in\n%s", code, errors, r.RxFrames, out)
	}
	for bus, want := range map[string]string{"file:": `"file:"`, "file:" + filepath.Join(dir, "none"): filepath.Join(dir, "none"), "file:" + report: report} {
		if out, errors, code := lockstep(t, "run", "-bus", bus, "-for", "1s"); code == 0 || out != "" || !strings.Contains(errors, want) || strings.Count(errors, "\n") != 1 {
			t.Errorf("-bus %s: code %d, %q, %q", bus, code, out, errors)
		}
	}
}
