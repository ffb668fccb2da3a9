package labs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// The program is the example of the Python package.
func TestLabAPythonProgramIsTheControlUnitOnVcan(t *testing.T) {
	if !lab.InVCAN(t, "candump") {
		return
	}
	client, err := filepath.Abs("../../deploy/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", client)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	dump := lab.StartCandump(t, "vcan0")
	program := fmt.Sprintf("control_unit: {exec: [/usr/bin/python3, %s]}", filepath.Join(client, "examples", "powershift.py"))
	b := lab.StartDemoOn(t, "vcan0", lab.UntilStopped, []lab.Edit{{"control_unit: powershift", program}}, "-besteffort")
	lab.Await(t, "3 s of the program's frames", func() bool { return strings.Count(dump.Out.String(), " 110#") >= 300 })
	r := b.Stop()
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
	if err != nil || unit.Unit != "/usr/bin/python3: on vcan0, signal: terminated" ||
		!strings.Contains(unit.Output, "shift 1-3-6 -> 2-3-6") || !strings.Contains(unit.Output, "gear 2-3-6 engaged") {
		t.Errorf("%v: %+v", err, unit)
	}
}
