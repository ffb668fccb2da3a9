//go:build long

package labs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// liveDay runs a text of the scenario automatic-day with automatic-bench and its control unit, two processes on vcan0.
// The bench tolerates the stalls of a lab. A verdict counts where neither of them stalled. An expectation whose end
// lies beyond length is not judged.
func liveDay(t *testing.T, scenario string, length time.Duration) {
	t.Helper()
	dir := t.TempDir()
	text := strings.Replace(lab.MustRun(t, "plants", "automatic-bench"), "overrun: skip 200\n", "overrun: skip 1000\nwatchdog: 20 s\n", 1)
	file, bench, day := filepath.Join(dir, "report.json"), filepath.Join(dir, "bench.yaml"), filepath.Join(dir, "day.yaml")
	for name, text := range map[string]string{bench: text, day: scenario} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	unit := lab.Start(t, lab.Command(t), "ecu", "automatic", "-bus", "vcan0")
	unit.AwaitOutput("waiting for ShaftSpeeds")
	b := &lab.Bench{File: file, For: length}
	b.Process = lab.Start(t, lab.Command(t), "run", bench, "-bus", "vcan0", "-scenario", day, "-besteffort", "-report", file)
	code := b.WaitFor(length + lab.Timeout)
	unit.Signal(syscall.SIGINT)
	unit.Wait()

	var r struct {
		lab.Report
		Scenario struct {
			Expectations []struct {
				What, Seen string
				Held       bool
			} `json:"expectations"`
		} `json:"scenario"`
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || len(r.Scenario.Expectations) < 17 {
		t.Fatalf("exit %d, report %v: %s\n%s", code, err, data, &b.Err)
	}
	if want := uint64(length / (5 * time.Millisecond)); r.Ticks != want {
		t.Errorf("%d grid points stepped, want %d", r.Ticks, want)
	}
	log := unit.Out.String() + unit.Err.String()
	stalled := r.Missed > 0 || r.RxOverflow > 0 || !strings.Contains(log, " 0 missed") && !strings.Contains(log, " 1 missed")
	answered := false
	for _, e := range r.Scenario.Expectations {
		answered = answered || e.Held && strings.Contains(e.Seen, `vin "WLS00000000000027"`)
		if e.Held || strings.Contains(e.Seen, "not judged: the run ended at 120 s, the part ends at 589 s; 0 violations") {
			continue
		}
		t.Logf("stalled: %v: %s: %s", stalled, e.What, e.Seen)
		if !stalled {
			t.Errorf("broken: %s: %s", e.What, e.Seen)
		}
	}
	if !answered {
		t.Errorf("the unit has not answered the tester\n%s", data)
	}
	t.Logf("missed %d ticks, exit %d", r.Missed, code)
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

func TestLabWholeDayOnVcan(t *testing.T) {
	machine := lab.VCAN
	machine.Limit = 20 * time.Minute
	if !lab.Inside(t, machine) {
		return
	}
	liveDay(t, lab.MustRun(t, "plants", "automatic-day"), 10*time.Minute)
}
