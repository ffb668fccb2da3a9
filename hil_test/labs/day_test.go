package labs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// liveDay runs a text of the scenario automatic-day. A verdict counts where neither the bench nor the unit stalled; an
// expectation whose end lies beyond length is not judged.
func liveDay(t *testing.T, scenario string, length time.Duration) {
	t.Helper()
	day := filepath.Join(t.TempDir(), "day.yaml")
	if err := os.WriteFile(day, []byte(scenario), 0o666); err != nil {
		t.Fatal(err)
	}
	run := automaticOnVcan(t, length, "-scenario", day)

	var r struct {
		lab.Report
		Scenario struct {
			Expectations []struct {
				What, Seen string
				Held       bool
			} `json:"expectations"`
		} `json:"scenario"`
	}
	if err := json.Unmarshal(run.report, &r); err != nil || len(r.Scenario.Expectations) < 17 {
		t.Fatalf("exit %d, report %v: %s\n%s", run.code, err, run.report, run.err)
	}
	if want := uint64(length / (5 * time.Millisecond)); r.Ticks != want {
		t.Errorf("%d grid points stepped, want %d", r.Ticks, want)
	}
	stalled := r.Missed > 0 || r.RxOverflow > 0 || !strings.Contains(run.unit, " 0 missed") && !strings.Contains(run.unit, " 1 missed")
	held, answered := 0, false
	for _, e := range r.Scenario.Expectations {
		answered = answered || e.Held && strings.Contains(e.Seen, `vin "WLS00000000000027"`)
		if e.Held || strings.Contains(e.Seen, "not judged: the run ended at 120 s, the part ends at 589 s; 0 violations") {
			held++
			continue
		}
		t.Logf("stalled: %v: %s: %s", stalled, e.What, e.Seen)
		if !stalled {
			t.Errorf("broken: %s: %s", e.What, e.Seen)
		}
	}
	if !answered && !stalled {
		t.Errorf("the unit has not answered the tester\n%s", run.report)
	}
	if held < len(r.Scenario.Expectations)/2 { // a stall breaks a few
		t.Errorf("%d of %d expectations held\n%s", held, len(r.Scenario.Expectations), run.report)
	}
	t.Logf("missed %d ticks, exit %d, %d of %d expectations held", r.Missed, run.code, held, len(r.Scenario.Expectations))
}

// The first two minutes have the cold start, the fault with its trouble code, limp-home, the cycle of the ignition and
// clearing.
func TestLabFirstMinutesOfTheDayOnVcan(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	text, _, ok := strings.Cut(lab.MustRun(t, "plants", "automatic-day"), "  # After the first two minutes.\n")
	short := strings.Replace(text, "\nfor: 600 s\n", "\nfor: 120 s\n", 1)
	if !ok || short == text {
		t.Fatalf("automatic-day has no first two minutes:\n%s", text)
	}
	liveDay(t, short, 2*time.Minute)
}
