package virtual

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/host"
	"lockstep/rt/recorder"
)

func TestBenchInVirtualTimeIsRepeatable(t *testing.T) {
	dir := t.TempDir()
	var lists [2][]record.Entry
	var csv [2][]byte
	for i, name := range []string{"a", "b"} {
		s := Simulation{Plant: "powershift-bench", For: 4 * time.Second, Every: 1,
			Record: filepath.Join(dir, name+".rec"), Out: filepath.Join(dir, name+".csv"), Report: filepath.Join(dir, name+".json")}
		r, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		// The unit shifts three times in 4 s, with no missed cycle and no late tick.
		if r.Ticks != 800 || !r.Virtual || !r.Clean || r.LateTicks != 0 || r.Missed != 0 || r.Transitions < 12 || r.RxFrames != 2*399 || r.TxFrames != 1600 {
			t.Errorf("%+v", r)
		}
		_, unit, _ := strings.Cut(r.Unit, ": ")
		if got, want := regexp.MustCompile(`\d+`).FindAllString(unit, -1), []string{"399", "0", "0", "1200", "0", "0"}; !slices.Equal(got, want) {
			t.Errorf("control unit %q, want %q: sent, missed, dropped, heard, malformed, lost", r.Unit, want)
		}
		lists[i] = recordtest.Entries(t, s.Record)
		if csv[i], err = os.ReadFile(s.Out); err != nil {
			t.Fatal(err)
		}
		same, err := Replay{Record: s.Record}.Run()
		if err != nil || same != (Replayed{Ticks: 800, Frames: 2398}) {
			t.Errorf("replay: %+v, %v", same, err)
		}
	}
	if !reflect.DeepEqual(lists[0], lists[1]) {
		t.Error("the records differ")
	}
	if string(csv[0]) != string(csv[1]) || strings.Count(string(csv[0]), "\n") != 802 {
		t.Errorf("the tables differ, or do not have a header and 801 rows: %d lines", strings.Count(string(csv[0]), "\n"))
	}
}

// Scenarios with random faults and answers of the unit give the same record twice, and replay.
func TestScenarioInVirtualTimeIsRepeatableAndReplays(t *testing.T) {
	dir := t.TempDir()
	noisy := filepath.Join(dir, "noisy.yaml")
	text := "scenario: noisy\nfor: 4 s\nfaults:\n  - {input: clutch2.pressure, noise: 0.5 bar, at: 500 ms, seed: 3}\n" +
		"  - {signal: Speeds.w1, noise: 5 rpm, when: w1 > 900 rpm, for: 100 frames}\n  - {frame: Speeds, delay: 15 ms, at: 2 s, for: 300 ms}\n" +
		"  - {bus: drive, bus_off: true, at: 3 s, for: 100 ms}\n"
	if err := os.WriteFile(noisy, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ bench, scenario string }{
		{"powershift-bench", noisy}, {"powershift-bench", "powershift-clutch-sticks"},
	} {
		var lists [2][]record.Entry
		for i, name := range []string{"a", "b"} {
			file := filepath.Join(t.TempDir(), name+".rec") // a process writes no file that it has read
			r, err := Simulation{Plant: c.bench, Scenario: c.scenario, Every: 1, Record: file}.Run()
			if err != nil {
				t.Fatalf("%s, %s: %v", c.bench, c.scenario, err)
			}
			same, err := Replay{Record: file}.Run()
			if err != nil || same.Ticks != int64(r.Ticks) || same.Frames == 0 {
				t.Errorf("%s, %s: %+v, %v", c.bench, c.scenario, same, err)
			}
			lists[i] = recordtest.Entries(t, file)
		}
		faults := 0
		for _, e := range lists[0] {
			if e.Kind == record.EventEntry && e.Event.Kind == record.Fault {
				faults++
			}
		}
		if !reflect.DeepEqual(lists[0], lists[1]) || faults < 4 {
			t.Errorf("%s, %s: the records differ, or have too few state changes of faults: %d", c.bench, c.scenario, faults)
		}
	}
}

func TestBenchWithoutAUnitReportsNoReceivedFrames(t *testing.T) {
	file := benchtest.DemoFile(t, "control_unit: powershift ", "#control_unit: powershift ", "interface: pair ", "interface: can0 ")
	r, err := Simulation{Plant: file, For: time.Second, Every: 1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.Unit != "none: no frames received" || r.RxFrames != 0 || r.TxFrames != 400 || len(r.Silent) != 2 {
		t.Errorf("control unit %q, %d frames in, %d out, silent %v", r.Unit, r.RxFrames, r.TxFrames, r.Silent)
	}
	// A bench that names its unit gets it, whatever the name of the interface.
	file = benchtest.DemoFile(t, "interface: pair ", "interface: can0 ")
	if r, err = (Simulation{Plant: file, For: time.Second, Every: 1}).Run(); err != nil || r.RxFrames != 2*99 {
		t.Errorf("%v, %d frames in, want 198", err, r.RxFrames)
	}
}

func TestLogReplacesTheUnitInVirtualTime(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "a.rec")
	if _, err := (Simulation{Plant: "powershift-bench", For: 3 * time.Second, Every: 1, Record: first}).Run(); err != nil {
		t.Fatal(err)
	}
	file := benchtest.DemoFile(t, "interface: pair ", "interface: \"file:"+first+"\" ")
	r, err := Simulation{Plant: file, For: 4 * time.Second, Every: 1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.RxFrames != 2*299 || r.Transitions < 12 || len(r.Played) != 1 || !strings.Contains(r.Played[0], "a.rec") || r.Unit != "" {
		t.Errorf("%d frames in, %d transitions, played %q, control unit %q", r.RxFrames, r.Transitions, r.Played, r.Unit)
	}
}

func TestLogWithAGapOrWithoutItsEndEndsTheRunWithCode1(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.rec")
	if _, err := (Simulation{Plant: "powershift-bench", For: 3 * time.Second, Every: 1, Record: file}).Run(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	marker := []byte("\x9eLC\xe9")
	gap := bytes.Clone(whole)
	data := bytes.Index(gap[len(gap)/2:], marker) + len(gap)/2
	gap[data+100] ^= 1
	b := benchtest.DemoFile(t, "interface: pair ", "interface: \"file:"+file+"\" ")
	for name, c := range map[string]struct {
		file []byte
		want string
	}{"gap": {gap, "1 gaps in the log, the first: "}, "cut": {whole[:len(whole)-1], "to the point where the file is cut"}} {
		if err := os.WriteFile(file, c.file, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Simulation{Plant: b, For: 4 * time.Second, Every: 1}.Run()
		var exit *host.Exit
		if !errors.As(err, &exit) || exit.Code != 1 || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || r.Clean {
			t.Errorf("%s: %v; want code 1 and %q", name, err, c.want)
		}
	}
}

func TestBrokenExpectationEndsAVirtualBenchWithCode1(t *testing.T) {
	dir := t.TempDir()
	scenario, junit, report := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "j.xml"), filepath.Join(dir, "r.json")
	text := "scenario: two\nfor: 1 s\nexpect:\n" +
		"  - {count: {message: TCU_Pressure_1, of: frames}, is: 99}\n" +
		"  - {value: w1, above: 9000 rpm, from: 500 ms}\n"
	if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Simulation{Plant: "powershift-bench", Scenario: scenario, JUnit: junit, Report: report, Every: 1}.Run()
	var exit *host.Exit
	if !errors.As(err, &exit) || exit.Code != 1 || strings.Count(err.Error(), "\n") != 0 || !strings.Contains(err.Error(), "scenario two: ") {
		t.Errorf("%v; want one line and code 1", err)
	}
	if r == nil || r.Ticks != 200 || len(r.Scenario.Findings) != 2 || !r.Scenario.Findings[0].Held || r.Scenario.Findings[1].Held {
		t.Errorf("%+v", r)
	}
	xml, err := os.ReadFile(junit)
	if err != nil || strings.Count(string(xml), "<testcase") != 2 || strings.Count(string(xml), "<failure") != 1 {
		t.Errorf("%v\n%s", err, xml)
	}
	var keys map[string]any
	data, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(data, &keys)
	}
	if err != nil || keys["virtual"] != true || keys["scenario"] == nil || keys["ticks"] != 200.0 {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestFullDiskDoesNotChangeTheVerdict(t *testing.T) {
	report, err := Simulation{Plant: "powershift-bench", For: 4 * time.Second, Scenario: "powershift-clutch-sticks", Record: "/dev/full", Every: 1}.Run()
	if !errors.Is(err, recorder.ErrIncomplete) || !strings.Contains(err.Error(), "/dev/full") || report == nil || report.Scenario == nil || !report.Scenario.Pass {
		t.Errorf("%+v (%v); want a verdict that held", report, err)
	}
}

func TestTruckInVirtualTimeIsRepeatable(t *testing.T) {
	var lists [2][]record.Entry
	for i := range lists {
		file := filepath.Join(t.TempDir(), "a.rec")
		r, err := Simulation{Plant: "truck-bench", For: 2 * time.Second, Every: 1, Record: file}.Run()
		if err != nil || r.RxFrames < 300 {
			t.Fatalf("%v, %+v", err, r)
		}
		lists[i] = recordtest.Entries(t, file)
	}
	if !reflect.DeepEqual(lists[0], lists[1]) {
		t.Error("the records differ")
	}
}

// The safe values after the end are sent in virtual time too.
func TestSafeValuesFollowTheEndOfAVirtualBench(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.rec")
	bench := benchtest.DemoFile(t, "planned: silence ", "planned: safe ")
	if _, err := (Simulation{Plant: bench, For: time.Second, Every: 1, Record: file}).Run(); err != nil {
		t.Fatal(err)
	}
	safe := 0
	for _, e := range recordtest.Entries(t, file) {
		if e.Kind == record.FrameEntry && e.Frame.Sent && e.Frame.Safe {
			safe++
		}
	}
	// 100 ms: all three at once, then in their cycles of 5, 10 and 10 ms.
	if safe < 3+20+9+9 || safe > 3+20+10+10 {
		t.Errorf("%d frames with the safe values, want about 41", safe)
	}
}

// The stimuli drive off; the fault applies the brake for a second.
func TestScenarioDrivesAPlantWithoutABench(t *testing.T) {
	dir := t.TempDir()
	scenario, out := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "o.csv")
	text := "scenario: half throttle\nfor: 3 s\nstimuli:\n  throttle: {table: [[0 s, 0], [2 s, 50 %]]}\nfaults:\n" +
		"  - {input: brake.pressure, stuck: 2 bar, at: 1 s, for: 500 ms}\nexpect:\n  - {value: throttle, within: 1 %, of: 50 %, from: 2 s}\n"
	if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Simulation{Plant: "automatic4", Scenario: scenario, Out: out, Step: 10 * time.Millisecond, Every: 1}.Run()
	if err != nil || r.Ticks != 300 || r.Bench != "" || r.Virtual || r.Scenario == nil || !r.Scenario.Findings[0].Held {
		t.Fatalf("%v, %+v", err, r)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(data)), "\n")
	throttle, brake := -1, -1
	for i, name := range strings.Split(rows[0], ",") {
		switch name {
		case "throttle[1]":
			throttle = i
		case "brake.pressure[bar]":
			brake = i
		}
	}
	if len(rows) != 302 || throttle < 0 || brake < 0 {
		t.Fatalf("%d rows, %s", len(rows), rows[0])
	}
	at := func(k, column int) float64 {
		v, err := strconv.ParseFloat(strings.Split(rows[1+k], ",")[column], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for k := 1; k <= 300; k++ { // of the step that ends at k
		wanted, pressed := min(float64(k)/200*0.5, 0.5), 0.0
		if k >= 100 && k < 150 {
			pressed = 2
		}
		if !scalar.EqualWithinAbs(at(k, throttle), wanted, 1e-9) || !scalar.EqualWithinAbs(at(k, brake), pressed, 1e-6) {
			t.Fatalf("tick %d: throttle %g, brake %g bar; want %g and %g", k, at(k, throttle), at(k, brake), wanted, pressed)
		}
	}
}

func TestLengthBelowThePeriodIsNotThatOfTheScenario(t *testing.T) {
	s := Simulation{Plant: "powershift-bench", Scenario: "powershift-clutch-sticks", For: time.Millisecond, Every: 1}
	if _, err := s.Run(); err == nil || !strings.Contains(err.Error(), "1ms is shorter than the period, 5ms") {
		t.Errorf("%v, want a refusal", err)
	}
}
