package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/guide"
	"lockstep/rt/scenario"
	"lockstep/rt/virtual"
)

var scenarioGuide = guide.Guide{Name: "scenario", Source: scenario.Guide}

// section returns the text of a section of the guide.
func section(t *testing.T, topic string) string {
	t.Helper()
	s, ok := scenarioGuide.Section(topic)
	if !ok {
		t.Fatalf("the guide has no section %s", topic)
	}
	return string(s.Source)
}

// rows returns the rows of the n-th table of a section, n from 0, without the marks of code.
func rows(t *testing.T, topic string, n int) (list [][]string) {
	t.Helper()
	parts := strings.Split(section(t, topic), "\n|---")
	if len(parts) < n+2 {
		t.Fatalf("section %s has no table %d", topic, n)
	}
	text, _, _ := strings.Cut(parts[n+1], "\n\n")
	for _, row := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		row = strings.NewReplacer("`", "", `\|`, "\x00").Replace(strings.Trim(row, "|"))
		var cells []string
		for _, c := range strings.Split(row, "|") {
			cells = append(cells, strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|")))
		}
		list = append(list, cells)
	}
	return list
}

// first returns the first cells of rows.
func first(rows [][]string) (list []string) {
	for _, r := range rows {
		list = append(list, r[0])
	}
	return list
}

// same compares the list of the guide with the list of the code, in any order.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: the guide lists %q, the code has %q", what, got, want)
	}
}

// prepared loads and prepares a bench.
func prepared(t *testing.T, name string) *bench.Handover {
	t.Helper()
	b, err := bench.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// protectedBench has protected sent and received frames, and an input that no bus drives.
func protectedBench(t *testing.T) *bench.Handover {
	return prepared(t, filepath.Join(benchtest.FaultFolder(t), "b.yaml"))
}

// The first scenario of the guide has the verdict and the JUnit XML that the guide shows.
func TestGuideExampleRuns(t *testing.T) {
	dir := t.TempDir()
	file, junit := filepath.Join(dir, "ice.yaml"), filepath.Join(dir, "verdict.xml")
	var text, verdict, cases string
	for _, b := range scenarioGuide.Blocks() {
		switch {
		case b.Language == "yaml":
			text = b.Text
		case strings.HasPrefix(b.Text, "  scenario ice-uphill"):
			verdict = b.Text
		case strings.Contains(b.Text, "<testcase"):
			cases = b.Text
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := virtual.Simulation{Plant: "truck-bench", Scenario: file, JUnit: junit, Every: 1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.Scenario == nil || !r.Scenario.Pass || !r.Clean || r.Ticks != 800 {
		t.Fatalf("%d ticks, clean %v, %+v", r.Ticks, r.Clean, r.Scenario)
	}
	var out strings.Builder
	r.Scenario.Text(&out)
	if got := strings.TrimPrefix(out.String(), "\n"); got != verdict || verdict == "" {
		t.Errorf("the guide shows the verdict\n%s\nit is\n%s", verdict, got)
	}
	if got, err := os.ReadFile(junit); err != nil || cases == "" || !strings.Contains(string(got), cases) {
		t.Errorf("%v: the guide shows\n%s\nthe file is\n%s", err, cases, got)
	}
}

// The first two minutes of the day are judged, and what comes later is skipped.
func TestGuideExampleOfAShorterRunIsRight(t *testing.T) {
	junit := filepath.Join(t.TempDir(), "verdict.xml")
	r, err := virtual.Simulation{Plant: "automatic-bench", Scenario: "automatic-day", For: 2 * time.Minute, JUnit: junit, Every: 1}.Run()
	if err != nil || !r.Scenario.Pass {
		t.Fatalf("error %v, want exit code 0: %+v", err, r)
	}
	var out strings.Builder
	r.Scenario.Text(&out)
	summary, _, _ := strings.Cut(strings.TrimPrefix(out.String(), "\n"), "\n")
	shown := slices.ContainsFunc(scenarioGuide.Blocks(), func(b guide.Block) bool { return b.Text == summary+"\n" })
	if !shown || !strings.HasSuffix(summary, ", 4 skipped: the run is shorter than the scenario") {
		t.Errorf("the guide does not show %q", summary)
	}
	if got, err := os.ReadFile(junit); err != nil || strings.Count(string(got), "<skipped ") != 4 || !strings.Contains(string(got), `failures="0" errors="0" skipped="4"`) {
		t.Errorf("%v:\n%s", err, got)
	}
}

// Each fragment in the guide is valid for an embedded bench.
func TestGuideFragmentsAreRead(t *testing.T) {
	benches := []*bench.Handover{prepared(t, "powershift-bench"), prepared(t, "truck-bench")}
	fragments := 0
	for _, b := range scenarioGuide.Blocks() {
		if b.Language != "text" || !regexp.MustCompile(`^(stimuli|faults|expect):`).MatchString(b.Text) {
			continue
		}
		fragments++
		var problems []string
		for _, h := range benches {
			if _, err := scenario.Parse("s.yaml", []byte("scenario: fragment\n"+b.Text), h.Clone()); err != nil {
				problems = append(problems, err.Error())
			}
		}
		if len(problems) == len(benches) {
			t.Errorf("line %d: no bench takes\n%s%s", b.Line, b.Text, strings.Join(problems, "\n"))
		}
	}
	if fragments < 8 {
		t.Errorf("%d fragments; want 8 or more", fragments)
	}
}

// known returns the list in an error of a scenario.
func known(t *testing.T, h *bench.Handover, text, after string) []string {
	t.Helper()
	_, err := scenario.Parse("s.yaml", []byte(text), h)
	_, list, ok := strings.Cut(fmt.Sprint(err), after)
	if !ok {
		t.Fatalf("%s: %v", text, err)
	}
	return strings.Split(list, ", ")
}

func TestGuideListsTheKeys(t *testing.T) {
	h := protectedBench(t)
	same(t, "file", first(rows(t, "scenario-file", 0)), known(t, h, "x: 1", "known are "))
	faults := slices.Concat(first(rows(t, "faults", 0)), first(rows(t, "faults", 1)))
	same(t, "fault", faults, known(t, h, "scenario: s\nfaults: [{x: 1}]", "known are "))
	same(t, "expect", first(rows(t, "expect", 0)), known(t, h, "scenario: s\nexpect: [{x: 1}]", "known are "))
	same(t, "count", first(rows(t, "count", 0)), known(t, h, "scenario: s\nexpect: [{count: {message: Speeds}}]", "with of one of "))
	same(t, "after", []string{"fault", "when"}, known(t, h, "scenario: s\nexpect: [{after: {x: 1}}]", "known are "))
	same(t, "answer", []string{"frame"}, known(t, h, "scenario: s\nexpect: [{answer: {x: 1}}]", "known are "))
	same(t, "parts of a count", []string{"message", "of"}, known(t, h, "scenario: s\nexpect: [{count: {x: 1}}]", "known are "))
	same(t, "leak", []string{"share", "time"}, known(t, h, "scenario: s\nfaults: [{leak: {x: 1}}]", "known are "))
	same(t, "checksum", []string{"value", "offset"}, known(t, h, "scenario: s\nfaults: [{checksum: {x: 1}}]", "known are "))
}

// Each kind of fault has the targets and the example of the guide, and is a topic.
func TestGuideListsTheTargetsOfEachKind(t *testing.T) {
	h := protectedBench(t)
	targets := map[string]string{
		"input": "input: clutch8.pressure", "signal": "signal: TCU_Pressure_1.pressure_C1", "sent": "frame: Torque", "received": "frame: TCU_Pressure_1",
		"bus": "bus: drive", "element": "element: clutch1",
	}
	kinds := rows(t, "faults", 1)
	for target, key := range targets {
		var got []string
		for _, k := range kinds {
			if of := strings.Split(k[2], ", "); !slices.Contains(of, target) {
				continue
			}
			got = append(got, k[0])
			if _, err := scenario.Parse("s.yaml", []byte("scenario: s\nfaults: [{"+key+", "+k[0]+": "+k[1]+"}]\n"), h); err != nil {
				t.Errorf("%s of %s: %v", k[0], target, err)
			}
		}
		wrong := map[string]string{"input": "drop: true", "signal": "drop: true", "bus": "drop: true", "element": "drop: true",
			"sent": "stuck: 1", "received": "stuck: 1"}[target]
		same(t, target, got, known(t, h, "scenario: s\nfaults: [{"+key+", "+wrong+"}]\n", "its kinds are "))
	}
	for _, k := range kinds {
		if !slices.Contains(scenarioGuide.Topics(), k[0]) {
			t.Errorf("the guide has no topic %s", k[0])
		}
		for _, of := range strings.Split(k[2], ", ") {
			if targets[of] == "" {
				t.Errorf("%s: there is no target %s", k[0], of)
			}
		}
	}
}

// The values in the sections of single kinds are accepted or refused as described.
func TestGuideNamesTheValuesOfEachKind(t *testing.T) {
	h := protectedBench(t)
	take := func(text string, ok bool) {
		t.Helper()
		if _, err := scenario.Parse("s.yaml", []byte("scenario: s\nfaults: [{"+text+"}]\n"), h); (err == nil) != ok {
			t.Errorf("%s: accepted %v (%v)", text, err == nil, err)
		}
	}
	for _, row := range rows(t, "checksum", 0) {
		take("frame: Torque, checksum: "+row[0], true)
	}
	for _, row := range rows(t, "open", 0) {
		take("input: clutch8.pressure, "+row[0], true)
		take("signal: Speeds.w1, "+row[0], true)
	}
	for text, ok := range map[string]bool{
		"input: clutch8.pressure, delay: 1000 ticks": true, "input: clutch8.pressure, delay: 1001 ticks": false,
		"frame: Speeds, delay: 64 ticks": true, "frame: Speeds, delay: 65 ticks": false,
		"frame: Speeds, burst: 64": true, "frame: Speeds, burst: 65": false, "frame: Speeds, length: 8": false, "frame: Speeds, length: 12": false,
		"input: clutch8.pressure, gain: 110 %": true, "input: clutch8.pressure, stuck: 99 bar": true, "signal: Speeds.w1, stuck: 400 rad/s": false,
		"input: clutch8.pressure, hold: true, for: 5 frames": false, "signal: Speeds.w1, hold: true, for: 5 frames": true,
		"frame: Speeds, drop: true, when: w1 > 0 and w2 > 0 and w3 > 0": false, "frame: Speeds, drop: true, when: w1 >= 0": false,
	} {
		take(text, ok)
	}
}

func TestGuideTopicsAreUnique(t *testing.T) {
	topics := scenarioGuide.Topics()
	for i, topic := range topics {
		if slices.Contains(topics[:i], topic) {
			t.Errorf("two headings are called %s", topic)
		}
	}
}
