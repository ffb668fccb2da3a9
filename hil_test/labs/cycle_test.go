package labs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// automaticRun is a finished run of automatic-bench with its control unit, two processes on vcan0.
type automaticRun struct {
	code   int
	err    string // standard error of the bench
	report []byte
	unit   string // output of the unit
}

// automaticOnVcan runs automatic-bench for a time. The bench tolerates the stalls of a lab.
func automaticOnVcan(t *testing.T, length time.Duration, args ...string) (r automaticRun) {
	t.Helper()
	dir := t.TempDir()
	text := strings.Replace(lab.MustRun(t, "plants", "automatic-bench"), "overrun: skip 200\n", "overrun: skip 1000\nwatchdog: 20 s\n", 1)
	file, bench := filepath.Join(dir, "report.json"), filepath.Join(dir, "bench.yaml")
	if err := os.WriteFile(bench, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	unit := lab.Start(t, lab.Command(t), "ecu", "automatic", "-bus", "vcan0")
	unit.AwaitOutput("waiting for ShaftSpeeds")
	b := &lab.Bench{File: file, For: length}
	b.Process = lab.Start(t, lab.Command(t), append([]string{"run", bench, "-bus", "vcan0", "-besteffort", "-report", file}, args...)...)
	r.code = b.WaitFor(length + lab.Timeout)
	unit.Signal(syscall.SIGINT)
	unit.Wait()
	var err error
	if r.report, err = os.ReadFile(file); err != nil {
		t.Fatalf("exit %d, %v\n%s", r.code, err, &b.Err)
	}
	r.err, r.unit = b.Err.String(), unit.Out.String()+unit.Err.String()
	return r
}

// driveOnVcan drives a cycle of a length. A verdict counts where neither the bench nor the unit stalled.
func driveOnVcan(t *testing.T, cycle string, length time.Duration) {
	t.Helper()
	run := automaticOnVcan(t, length, "-cycle", cycle)
	var r struct {
		lab.Report
		Messages []lab.ProtectedMessage `json:"messages"`
		Scenario struct {
			Pass         bool `json:"pass"`
			Expectations []struct{ What, Seen string }
		} `json:"scenario"`
	}
	if err := json.Unmarshal(run.report, &r); err != nil || len(r.Messages) != 2 || len(r.Scenario.Expectations) == 0 {
		t.Fatalf("exit %d, report %v: %s\n%s", run.code, err, run.report, run.err)
	}
	for _, e := range r.Scenario.Expectations {
		t.Logf("%s: %s", e.What, e.Seen)
	}
	if want := uint64(length / (5 * time.Millisecond)); r.Ticks != want {
		t.Errorf("%d grid points stepped, want the %d of the cycle", r.Ticks, want)
	}

	// Every frame of the unit that arrives is protected as the bench expects, and the other way round.
	m, management := r.Messages[0], r.Messages[1]
	if m.Errors != 0 || m.Repeated != 0 || m.OK+m.SomeLost+m.Sequence != m.Frames || m.Frames+management.Frames != r.RxFrames || r.RxUnknown != 0 {
		t.Errorf("the bench has counted %+v of %d frames, %d of them unknown; want no error of the protection", m, r.RxFrames, r.RxUnknown)
	}
	log := run.unit
	var cycles, missed, dropped, received, malformed int
	at := strings.LastIndex(log, "automatic: ")
	if _, err := fmt.Sscanf(log[max(at, 0):], "automatic: %d cycles sent, %d missed, %d frames dropped, %d frames received, %d malformed",
		&cycles, &missed, &dropped, &received, &malformed); err != nil {
		t.Fatalf("the unit's last line has no counts: %v\n%s", err, log)
	}
	stalled := r.Missed > 0 || missed > 0 || r.RxOverflow > 0
	if malformed != 0 || received == 0 || received > int(r.TxFrames) || !stalled && !strings.Contains(log, "gear 2 engaged") {
		t.Errorf("the unit received %d of %d frames, %d malformed; want the most of them, and shifts\n%s", received, r.TxFrames, malformed, log)
	}
	t.Logf("missed %d ticks, %d cycles of the unit", r.Missed, missed)
	switch {
	case stalled && run.code != 0 && run.code != 1:
		t.Errorf("exit %d, want 0 or 1, for a verdict\n%s", run.code, run.err)
	case !stalled && (run.code != 0 || !r.Scenario.Pass):
		t.Errorf("exit %d without a stall; want the cycle driven within its tolerance\n%s", run.code, run.err)
	}
}

// The driver launches, shifts up, holds the speed and stops, in real time.
func TestLabDriverFollowsACycleOnVcan(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	cycle := filepath.Join(t.TempDir(), "cycle.csv")
	if err := os.WriteFile(cycle, []byte("time[s],v[km/h]\n0,0\n4,0\n14,40\n18,40\n27,0\n30,0\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	driveOnVcan(t, cycle, 30*time.Second)
}
