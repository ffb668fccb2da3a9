package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/bench/benchtest"
	"lockstep/rt/report"
)

// A bench without a virtual control unit is checked, simulated and run on a pair. All its frames go
// out, its received messages are late as on a card whose control unit is silent.
func TestABenchWithoutAControlUnitRunsOnAPair(t *testing.T) {
	text := benchtest.DemoText(t, "control_unit: powershift ", "# control_unit: powershift ") +
		"    messages:\n      TCU_Pressure_1: {timeout: 50 ms, on_timeout: {substitute: {clutch1.pressure: 3 bar}}}\n"
	file := filepath.Join(t.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errors, code := lockstep(t, "check", file)
	if code != 0 || errors != "" || !has(out, "on pair", "nobody is at the other end", "clutch1.pressure is 3 bar") {
		t.Errorf("check: code %d, %s\n%s", code, errors, out)
	}
	for _, command := range []string{"sim", "run"} {
		result := filepath.Join(t.TempDir(), "report.json")
		out, errors, code := lockstep(t, command, file, "-for", "1s", "-report", result)
		data, err := os.ReadFile(result)
		var r report.Report
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if code != 0 || err != nil {
			t.Fatalf("%s: code %d, %v, %s\n%s", command, code, err, errors, out)
		}
		if r.TxDropped != 0 || r.BusDown != 0 || r.BusErrors != 0 || r.RxFrames != 0 || r.TxFrames+r.TxLost != 400 ||
			len(r.Silent) != 2 || !r.Silent[0].Substituted || r.Messages[0].Timeouts != 1 || !r.Messages[0].Late || r.Messages[1].Timeouts != 1 {
			t.Errorf("%s: %+v", command, r)
		}
	}

	if err := os.WriteFile(file, []byte(strings.Replace(text, "w2 -> Speeds.w2", "w2 -> Speeds.w5", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"check", "sim", "run"} {
		if _, errors, code := lockstep(t, command, file); code != 2 || !has(errors, `no signal "w5"`) {
			t.Errorf("%s with a wrong signal: code %d, %s", command, code, errors)
		}
	}
}
