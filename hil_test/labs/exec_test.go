package labs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// engagedGear matches the first shift of the program, to its end. On a slow machine the interpreter
// starts when the car already coasts; the program then engages the gear for that speed.
var engagedGear = regexp.MustCompile(`^powershift: \d\.\d\d s: shift \S+ -> (?:2-3-6\n.*gear 2-3-6|2-4-7\n.*gear 2-4-7|2-5-8\n.*gear 2-5-8) engaged`)

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
	if err != nil || unit.Unit != "/usr/bin/python3: on vcan0, signal: terminated" || !engagedGear.MatchString(unit.Output) {
		t.Errorf("%v: %+v", err, unit)
	}
}
