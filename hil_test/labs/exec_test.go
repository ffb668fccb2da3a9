package labs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// startWithProgram starts the demo bench on vcan0 with the Python program of the package as its control
// unit.
func startWithProgram(t *testing.T, d time.Duration) *lab.Bench {
	t.Helper()
	client, err := filepath.Abs("../../deploy/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", client)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	program := fmt.Sprintf("control_unit: {exec: [/usr/bin/python3, %s]}", filepath.Join(client, "examples", "powershift.py"))
	return lab.StartDemoOn(t, "vcan0", d, []lab.Edit{{"control_unit: powershift", program}}, "-besteffort")
}

func TestLabAPythonProgramIsTheControlUnitOnVcan(t *testing.T) {
	if !lab.InVCAN(t, "candump") {
		return
	}
	dump := lab.StartCandump(t, "vcan0")
	b := startWithProgram(t, 4*time.Second)
	r := b.AwaitReport()
	byID, _ := lab.EndCandump(t, dump)
	for _, id := range []string{"110", "111"} {
		if f := byID[id]; f == nil || len(f.Data) < 100 || uint64(len(f.Data)) > r.RxFrames {
			t.Errorf("%+v frames %s on the bus, the bench received %d", f, id, r.RxFrames)
		}
	}
	var unit struct {
		Unit   string `json:"unit"`
		Output string `json:"unit_output"`
	}
	data, err := os.ReadFile(b.File)
	if err == nil {
		err = json.Unmarshal(data, &unit)
	}
	if err != nil || !strings.HasSuffix(unit.Unit, "on vcan0, exit status 0") ||
		!strings.Contains(unit.Output, "shift 1-3-6 -> 2-3-6") || !strings.Contains(unit.Output, "gear 2-3-6 engaged") {
		t.Errorf("%v: %+v", err, unit)
	}
}

// The program ends with its relay, and the run is not clean.
func TestLabRunOnVcanNamesItsRelayThatWasKilled(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	b := startWithProgram(t, lab.UntilStopped)
	b.AwaitTicking()
	relay, program := processOf(t, "lockstep-unit"), processOf(t, "python3")
	if err := syscall.Kill(relay, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, "the program has ended", func() bool { return syscall.Kill(program, 0) != nil })
	b.Signal(syscall.SIGINT)
	if code := b.Wait(); code != 1 || !strings.Contains(b.Out.String()+b.Err.String(), "relay of /usr/bin/python3 ended at") {
		t.Errorf("exit %d, want 1\n%s%s", code, &b.Out, &b.Err)
	}
}

// processOf returns the process with a name.
func processOf(t *testing.T, name string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, _ := os.ReadFile(f); strings.TrimSpace(string(text)) == name {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			return pid
		}
	}
	t.Fatalf("no process %s", name)
	return 0
}
