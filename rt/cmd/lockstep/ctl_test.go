package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/io/record"
	"lockstep/rt/control"
)

// openBench writes the demo bench under a unique name, with two pressures that no bus drives.
func openBench(t *testing.T) (file, name string) {
	t.Helper()
	name = fmt.Sprintf("ctl-%d-%s", os.Getpid(), t.Name())
	return patientBench(t, "bench: powershift-bench", "bench: "+name,
		"      - TCU_Pressure_2.pressure_C7 -> clutch7.pressure\n", "", "      - TCU_Pressure_2.pressure_C8 -> clutch8.pressure\n", ""), name
}

// ctl sends a request to a run and returns the answer.
func ctl(t *testing.T, words ...string) (a control.Answer) {
	t.Helper()
	out, errors, code := lockstep(t, append([]string{"ctl", "-json"}, words...)...)
	if code != 0 || errors != "" {
		left, _ := filepath.Glob("/run/lockstep/*")
		t.Fatalf("ctl %q: code %d, %s; sockets %q", words, code, errors, left)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("ctl %q: %v in %q", words, err, out)
	}
	return a
}

func TestARunChangedByCtlReplaysBitForBit(t *testing.T) {
	dir := t.TempDir()
	file, name := openBench(t)
	rec, report := filepath.Join(dir, "run.rec"), filepath.Join(dir, "r.json")
	s := begin(t, nil, "run", file, "-record", rec, "-report", report)
	s.running()
	if a := ctl(t, name, "status"); a.Bench != name || a.Process != s.cmd.Process.Pid || a.State != "running" || a.Tick == 0 {
		t.Errorf("status: %+v", a)
	}
	drop := ctl(t, file, "fault", "name=lost speeds", "frame=Speeds", "drop", "for=5 frames") // a run is found by its file name as well
	leak := ctl(t, name, "fault", "name=leak", "input=clutch1.pressure", "leak={share: 30 %, time: 200 ms}")
	var watching [5]*session
	for i := range watching { // every tick, beside the loop
		watching[i] = begin(t, nil, "ctl", name, "watch", "w1", "clutch7.pressure", "Speeds.w1", "health.wakeup_latency", "-every", "tick", "-json")
	}
	set := ctl(t, name, "set", "clutch7.pressure=3 bar", "clutch8.pressure=4 bar")
	for faults := ctl(t, name, "faults").Faults; len(faults) != 2 || faults[0].State != "over"; faults = ctl(t, name, "faults").Faults {
		if len(faults) != 2 || faults[0].Name != "lost speeds" || faults[1].State != "active" {
			t.Fatalf("faults: %+v", faults)
		}
	}
	clear := ctl(t, name, "clear", "leak")
	var values control.Values
	if out, errors, code := lockstep(t, "ctl", name, "get", "clutch8.pressure", "-json"); code != 0 || json.Unmarshal([]byte(out), &values) != nil ||
		values.Tick < set.Tick || values.Values[0].Unit != "bar" || !(math.Abs(*values.Values[0].Value-4) < 1e-9) {
		t.Errorf("code %d, %s%s", code, out, errors)
	}
	released := ctl(t, name, "release", "clutch7.pressure")
	mark := ctl(t, name, "mark", "the door", "opens")
	line := fmt.Sprintf("0  lost speeds  over  since tick %d  5  frame=Speeds drop 'for=5 frames'\n", drop.Tick)
	if out, _, code := lockstep(t, "ctl", name, "faults"); code != 0 || !strings.Contains(out, line) {
		t.Errorf("code %d, %q", code, out)
	}
	ctl(t, name, "stop")
	if code := s.end(); code != 0 || !has(readReport(t, report).Ended, "ctl") {
		t.Errorf("code %d, %s\n%s", code, s.errors.String(), s.out.String())
	}
	for _, w := range watching {
		if code := w.end(); code != 0 {
			t.Errorf("watch: code %d, %s", code, w.errors.String())
		}
		checkWatched(t, w.out.String(), set.Tick)
	}
	asc := filepath.Join(dir, "run.asc")
	if _, errors, code := lockstep(t, "export", rec, "-o", asc); code != 0 {
		t.Errorf("export: code %d, %s", code, errors)
	}
	if text, err := os.ReadFile(asc); err != nil || !strings.Contains(string(text), fmt.Sprintf("tick %d parameter: mark 'the door opens'\n", mark.Tick)) {
		t.Errorf("the log has no mark, %v", err)
	}
	if ticks, _, errors, code := replayed(t, rec); code != 0 || ticks == 0 {
		t.Errorf("replay: code %d, %d ticks, %s", code, ticks, errors)
	}
	if r := readReport(t, report); r.Allocs != 0 || r.GCCycles != 0 {
		t.Errorf("the target: %d allocations, %d collections", r.Allocs, r.GCCycles)
	}
	if _, errors, code := lockstep(t, "ctl", name, "status"); code != 3 || strings.Count(errors, "\n") != 1 || !has(errors, `"`+name+`"`) {
		t.Errorf("after the end: code %d, %q", code, errors)
	}
	checkSession(t, rec, map[int64]string{
		drop.Tick:     "fault 'name=lost speeds' frame=Speeds drop 'for=5 frames'",
		leak.Tick:     "fault name=leak input=clutch1.pressure 'leak={share: 30 %, time: 200 ms}'",
		set.Tick:      "set 'clutch7.pressure=3 bar' 'clutch8.pressure=4 bar'",
		clear.Tick:    "clear leak",
		released.Tick: "release clutch7.pressure",
		mark.Tick:     "mark 'the door opens'",
	})
}

// checkWatched checks a stream of every tick: it has all ticks from its first to the end of the run, and
// the pressure of `set` from its tick on.
func checkWatched(t *testing.T, text string, set int64) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := control.Sample{}
	for _, line := range lines[1 : len(lines)-1] {
		var l control.Sample
		if err := json.Unmarshal([]byte(line), &l); err != nil || last.Tick > 0 && l.Tick != last.Tick+1 {
			t.Fatalf("%s after tick %d, %v", line, last.Tick, err)
		}
		if l.Tick == set && !(math.Abs(l.Last[1]-3) < 1e-9) {
			t.Errorf("%s: want 3 bar", line)
		}
		last = l
	}
	var end control.StreamEnd
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || !has(end.Ended, "ctl") || !end.Clean || end.Tick != last.Tick || last.Tick < set {
		t.Errorf("the last line is %s, after tick %d", lines[len(lines)-1], last.Tick)
	}
}

// checkSession checks that a record has the lines at their ticks, and the two pressures only at the
// tick of `set`.
func checkSession(t *testing.T, file string, lines map[int64]string) {
	t.Helper()
	r, err := record.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	column := map[string]int{}
	for i, s := range r.Header.Inputs {
		column[s.Name] = i
	}
	seven, eight := column["clutch7.pressure"], column["clutch8.pressure"]
	var first7, first8 int64
	commands, last := 0, int64(0)
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		switch e.Kind {
		case record.TickEntry:
			if e.Tick.U[seven] == 3e5 && first7 == 0 {
				first7 = e.Tick.Index
			}
			if e.Tick.U[eight] == 4e5 && first8 == 0 {
				first8 = e.Tick.Index
			}
			last = e.Tick.Index
		case record.EventEntry:
			if e.Event.Kind != record.Parameter {
				continue
			}
			if commands++; lines[e.Event.Tick] != e.Event.Text || last >= e.Event.Tick {
				t.Errorf("tick %d, after tick %d: %q, want %q before it", e.Event.Tick, last, e.Event.Text, lines[e.Event.Tick])
			}
		}
	}
	if commands != len(lines) || first7 != first8 || !strings.HasPrefix(lines[first7], "set ") {
		t.Errorf("%d commands, want %d; 3 bar from tick %d, 4 bar from tick %d on, want both from that of set", commands, len(lines), first7, first8)
	}
}

func TestCtlReachesARunThatWasTakenOver(t *testing.T) {
	file, name := openBench(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "supervisor_gone: stop after 1 s", "supervisor_gone: continue", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	s := begin(t, nil, "run", file)
	s.running()
	ctl(t, name, "fault", "name=early", "frame=Speeds", "drop")
	ctl(t, name, "param", "mu_oil=0.12")
	early := ctl(t, name, "snapshot", "early")
	watch := begin(t, nil, "ctl", name, "watch", "w1")
	for !has(watch.out.String(), "w1[rpm]") {
		time.Sleep(10 * time.Millisecond)
	}
	pid := s.child("target")
	defer syscall.Kill(pid, syscall.SIGKILL)
	s.cmd.Process.Kill()
	s.end()
	if code := watch.end(); code != 1 || strings.Count(watch.errors.String(), "\n") != 1 {
		t.Errorf("watch when the supervisor has died: code %d, %s", code, watch.errors.String())
	}
	if _, errors, code := lockstep(t, "ctl", name, "status"); code != 3 { // the socket exists and nothing listens
		t.Errorf("without a supervisor: code %d, %s", code, errors)
	}
	again := begin(t, nil, "attach", name)
	again.running()
	if a := ctl(t, name, "faults"); len(a.Faults) != 1 || a.Faults[0].State != "active" || a.Process != again.cmd.Process.Pid {
		t.Errorf("%+v", a)
	}
	if _, errors, code := lockstep(t, "ctl", name, "mark", "x"); code != 2 || !has(errors, "record") {
		t.Errorf("mark without a record: code %d, %s", code, errors)
	}
	dir := t.TempDir()
	first := ctl(t, name, "record", "on", filepath.Join(dir, "first.rec"))
	ctl(t, name, "mark", "x")
	late := ctl(t, name, "fault", "name=late", "frame=Status", "drop")
	var values control.Values
	if out, errors, code := lockstep(t, "ctl", name, "get", "w1", "-json"); code != 0 || json.Unmarshal([]byte(out), &values) != nil || values.Tick < late.Tick {
		t.Errorf("code %d, %s%s", code, out, errors)
	}
	if out, errors, code := lockstep(t, "ctl", name, "get", "mu_oil"); code != 0 || !has(out, "mu_oil  0.12") {
		t.Errorf("parameter of the earlier supervisor: code %d, %s%s", code, out, errors)
	}
	if a := ctl(t, name, "status"); len(a.Snapshots) != 1 || a.Snapshots[0].Name != "early" || a.Snapshots[0].Tick != early.Tick {
		t.Errorf("snapshots of the earlier supervisor: %+v", a.Snapshots)
	}
	if a := ctl(t, name, "reset", "early"); a.Tick <= late.Tick || a.Carried {
		t.Errorf("reset to the snapshot of the earlier supervisor: %+v", a)
	}
	ctl(t, name, "param", "mu_oil=0.13")
	if a := ctl(t, name, "param", "mu_oil=0.14"); a.Parameters["mu_oil"] != "0.14" {
		t.Errorf("%+v", a)
	}
	if a := ctl(t, name, "status"); a.Parameters["mu_oil"] != "0.14" || a.Changes != 3 {
		t.Errorf("%+v, want three changes", a)
	}
	ctl(t, name, "record", "off")
	ctl(t, name, "record", "on", filepath.Join(dir, "second.rec"))
	if a := ctl(t, name, "clear", "all"); len(a.Slots) != 2 {
		t.Errorf("%+v, want both cleared", a)
	}
	ctl(t, name, "stop")
	if code := again.end(); code != 0 {
		t.Errorf("code %d, %s", code, again.errors.String())
	}
	for _, rec := range []string{"first.rec", "second.rec"} { // what the earlier supervisor has changed is in their start
		if ticks, _, errors, code := replayed(t, filepath.Join(dir, rec)); code != 0 || ticks == 0 || rec == "first.rec" && int64(ticks) < late.Tick-first.Tick {
			t.Errorf("%s: code %d, %d ticks, %s", rec, code, ticks, errors)
		}
	}
}

func TestWrongRequestsEndWithOneLine(t *testing.T) {
	t.Parallel()
	file, name := openBench(t)
	s := begin(t, nil, "run", file)
	s.running()
	for line, want := range map[string]string{ // words of the line
		name + " statsu":                          `"statsu" status?)`,
		name + " set clutch7.pressure=3rpm":       "set: clutch7.pressure:",
		name + " set clutch1.pressure=3bar":       "set: clutch1.pressure: TCU_Pressure_1.pressure_C1",
		name + " clear nothing":                   `clear: "nothing"`,
		name + " fault frame=Sped drop":           `fault: word 1: "Sped" Speeds?)`,
		name + " fault frame=Speeds drop for=-1s": "fault: word 3: for: -1s",
		name:                     "ctl: 1 BENCH|PROCESS",
		name + " status -jsno":   "ctl: -jsno -json?)",
		"nobody-runs-me status":  `ctl: "nobody-runs-me"`,
		"nobody-runs-me st\x1bx": `ctl: "nobody-runs-me"`,
	} {
		out, errors, code := lockstep(t, append([]string{"ctl"}, strings.Fields(line)...)...)
		known := map[bool]int{true: 3, false: 2}[strings.HasPrefix(line, "nobody")]
		if code != known || out != "" || strings.Count(errors, "\n") != 1 || !has(errors, strings.Fields(want)...) {
			t.Errorf("ctl %s: code %d, %q, %q; want %d and %s", line, code, out, errors, known, want)
		}
	}
	start := time.Now()
	ctl(t, name, "stop")
	if code := s.end(); code != 0 {
		t.Errorf("after %v: code %d, %s", time.Since(start), code, s.errors.String())
	}
}
