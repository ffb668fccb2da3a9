package virtual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
)

// A scenario stores the plant at a grid point. Each reset to it gives the outputs that have followed, bit for bit,
// and a reset to the start those of the start.
func TestScenarioReturnsThePlantToItsStatesAtTheirTicks(t *testing.T) {
	dir := t.TempDir()
	file, out := filepath.Join(dir, "states.yaml"), filepath.Join(dir, "out.csv")
	text := `scenario: states
for: 4 s
stimuli: {clutch1.pressure: 10 bar}
states:
  - {at: 1 s, snapshot: warm}
  - {at: 2 s, reset: warm}
  - {at: 2.5 s, reset: true}
  - {at: 3.005 s, reset: warm}
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Simulation{Plant: "powershift", Scenario: file, Out: out, Every: 1, SI: true}.Run()
	if err != nil || len(r.Scenario.Findings) != 4 {
		t.Fatalf("%v, %+v", err, r)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(data)), "\n")[1:] // a row for each grid point, from 0
	values := func(k int) string { _, v, _ := strings.Cut(rows[k], ","); return v }
	for k := 1; k <= 99; k++ {
		if values(400+k) != values(200+k) || values(601+k) != values(200+k) {
			t.Fatalf("%d ticks after the snapshot: %s, after its resets %s and %s", k, values(200+k), values(400+k), values(601+k))
		}
		if values(500+k) != values(k) {
			t.Fatalf("%d ticks after the start: %s, after the reset %s", k, values(k), values(500+k))
		}
	}
	if values(201) == values(1) || values(400) == values(200) {
		t.Error("the plant does not move")
	}
}

// The states of a scenario are in the verdict and in the record, which replays. The door can use them, and
// delete none.
func TestRecordOfAScenarioWithStatesReplays(t *testing.T) {
	name, file := writeBench(t, "states", map[string]string{"s.yaml": `scenario: states
for: 3 s
states:
  - {at: 500 ms, snapshot: warm}
  - {at: 1 s, reset: warm}
  - {at: 2 s, reset: true}
`})
	rec := filepath.Join(t.TempDir(), "a.rec")
	ask, ended := openDoor(t, name, Simulation{Plant: file, Record: rec, Scenario: filepath.Join(filepath.Dir(file), "s.yaml")})
	expectAnswers(t, ask, []exchange{
		{"reset warm", "reset: refused at tick 1: the scenario stores this snapshot at a later tick"},
		{"advance 700ms", "advanced to tick 140"},
		{"status", "snapshot warm         tick 101, 0.505 s"},
		{"reset warm", "in effect from tick 141"},
		{"snapshot other", "in effect from tick 141"},
		{"snapshot -delete other", "in effect from tick 141"},
		{"snapshot -delete other", `there is no snapshot "other"`},
		{"snapshot -delete warm", "the scenario uses warm"},
		{"reset other", `there is no snapshot "other"`},
		{"advance 3s", "done, after 3.000 s: 600 ticks, missed 0; clean"},
	})
	r := <-ended
	if r == nil || r.Scenario == nil || !r.Scenario.Pass || len(r.Scenario.Findings) != 3 {
		t.Fatalf("%+v", r)
	}
	if _, err := (Replay{Record: rec}).Run(); err != nil {
		t.Error(err)
	}
	var notes []string
	for _, e := range recordtest.Entries(t, rec) {
		if e.Kind == record.EventEntry && e.Event.Kind == record.Note {
			notes = append(notes, fmt.Sprint(e.Event.Tick, " ", e.Event.Text))
		}
	}
	if got := strings.Join(notes, "; "); !strings.Contains(got, "101 snapshot warm; 201 reset warm; 401 reset") {
		t.Errorf("the record has %s", got)
	}
}
