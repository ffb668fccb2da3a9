package labs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/rt/report"
)

// liveDay runs the first part of the scenario automatic-day. A verdict counts where neither the bench nor the unit
// stalled; an expectation that needs a longer run is skipped.
func liveDay(t *testing.T, length time.Duration, skipped int) {
	t.Helper()
	run := automaticOnVcan(t, length, "-scenario", "automatic-day", "-for", length.String())

	var r struct {
		lab.Report
		Scenario report.ScenarioResult `json:"scenario"`
	}
	if err := json.Unmarshal(run.report, &r); err != nil || len(r.Scenario.Findings) < 20 { // one more where an answer came late
		t.Fatalf("exit %d, report %v: %s\n%s", run.code, err, run.report, run.err)
	}
	if want := uint64(length / (5 * time.Millisecond)); r.Ticks != want {
		t.Errorf("%d grid points stepped, want %d", r.Ticks, want)
	}
	stalled := r.Missed > 0 || r.RxOverflow > 0 || !strings.Contains(run.unit, " 0 missed") && !strings.Contains(run.unit, " 1 missed")
	verdicts := map[string]int{}
	answered := false
	for _, f := range r.Scenario.Findings {
		verdicts[f.Verdict()]++
		answered = answered || f.Held && strings.Contains(f.Seen, `vin "WLS00000000000027"`)
		if !f.Broken() {
			continue
		}
		t.Logf("stalled: %v: %s", stalled, f.String())
		if !stalled {
			t.Errorf("broken: %s", f.String())
		}
	}
	if !stalled && (!answered || verdicts["skipped"] != skipped) {
		t.Errorf("the unit has answered the tester: %t; verdicts %v, want %d skipped\n%s", answered, verdicts, skipped, run.report)
	}
	if (run.code == 0) != (verdicts["broken"] == 0) {
		t.Errorf("exit %d with verdicts %v", run.code, verdicts)
	}
	t.Logf("missed %d ticks, exit %d, verdicts %v", r.Missed, run.code, verdicts)
}

// The first two minutes have the cold start, the fault with its trouble code, limp-home, the cycle of the ignition and
// clearing.
func TestLabFirstMinutesOfTheDayOnVcan(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	liveDay(t, 2*time.Minute, 4)
}
