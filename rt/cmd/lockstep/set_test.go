package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/rt/report"
)

const pushedCar = `plant: car
parameters:
  m_car: {value: 1500 kg, min: 800 kg, max: 3500 kg, tune: true}
inputs:
  push: {unit: N, min: 0, max: 10 kN, default: 1000 N}
elements:
  car: {type: mass, m: m_car}
  hand: {type: force, flange: car, f: push}
outputs: {v: {speed: car}}
`

const pushedCarBench = `bench: push
plant: car.yaml
period: 5 ms
overrun: skip 1000
buses:
  drive:
    interface: pair
    database: car.dbc
    frames: {Speed: {cycle: 10 ms}}
    send: [v -> Speed.v]
`

const pushedCarMessages = `VERSION ""
BU_: BENCH UNIT
BO_ 256 Speed: 2 BENCH
 SG_ v : 0|16@1+ (0.01,0) [0|655.35] "m/s" UNIT
`

// The speed of a pushed mass after 3 s is F·t/m.
func TestASetParameterActsInEveryCommandAndStandsInRecordAndReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant, bench := filepath.Join(dir, "car.yaml"), filepath.Join(dir, "push.yaml")
	for file, text := range map[string]string{plant: pushedCar, bench: pushedCarBench, filepath.Join(dir, "car.dbc"): pushedCarMessages} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out, file, rec := filepath.Join(dir, "o.csv"), filepath.Join(dir, "r.json"), filepath.Join(dir, "o.rec")
	lastSpeed := func(how string, args ...string) {
		t.Helper()
		if _, errors, code := lockstep(t, args...); code != 0 {
			t.Fatalf("%s: code %d, %s", how, code, errors)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		_, rows := columns(t, string(text))
		if v := rows[len(rows)-1][1]; !scalar.EqualWithinRel(v, 1000*3/2000.0, 1e-12) {
			t.Errorf("%s: speed %.17g m/s after 3 s, want %.17g", how, v, 1000*3/2000.0)
		}
	}

	lastSpeed("plant", "sim", plant, "-for", "3s", "-out", out, "-set", "m_car=2t", "-report", file)
	lastSpeed("bench", "sim", bench, "-for", "3s", "-out", out, "-set", "m_car=2t", "-record", rec, "-report", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil || r.Set != "m_car=2t" {
		t.Errorf("the report says %q, error %v, want m_car=2t", r.Set, err)
	}
	lastSpeed("replay", "replay", rec, "-out", out)

	for _, name := range []string{plant, bench} {
		said, errors, code := lockstep(t, "check", name, "-set", "m_car=2t")
		if code != 0 || !strings.Contains(said, "m_car[kg] 800..3500, now 2000 kg") {
			t.Errorf("check %s: code %d, %s%s", name, code, said, errors)
		}
		_, errors, code = lockstep(t, "check", name, "-set", "m_car=5t")
		if code != 2 || !strings.Contains(errors, "set m_car=5t: 5000 kg is outside 800 to 3500 kg") {
			t.Errorf("check %s -set m_car=5t: code %d, %s", name, code, errors)
		}
	}
}
