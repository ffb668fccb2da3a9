package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"lockstep/model/plantfile"
)

// A supervisor that takes a run over, or a change of parameters, may find the drive cycle of the plant changed or gone.
func TestFilesThatAPlantNamesAreReadOnce(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cycle := write("hill.csv", "time[s],v[km/h]\n0,0\n5,30\n9,0\n")
	write("car.yaml", `plant: car
parameters: {m: {value: 1500 kg, min: 500, max: 3000, tune: true}}
inputs: {wind: {unit: N, min: -100, max: 100, default: 0 N}}
elements:
  d: {type: driver, cycle: hill.csv, speed: v}
  car: {type: mass, m: m}
  v: {type: speed_sensor, flange: car}
  pull: {type: force, flange: car, f: {product: [6 kN, d.accelerator]}}
  air: {type: force, flange: car, f: wind}
outputs: {v: {speed: car, unit: km/h}}
`)
	write("car.dbc", "BU_: TCU Bench\nBO_ 256 TCU_1: 2 TCU\n SG_ f : 0|16@1- (0.01,0) [-100|100] \"N\" Bench\n"+
		"BO_ 512 Speeds: 4 Bench\n SG_ v : 0|16@1- (0.01,0) [-300|300] \"km/h\" TCU\n")
	b, err := Load(write("b.yaml", `bench: b
plant: car.yaml
period: 5 ms
overrun: skip 20
safe: {time: 100 ms, values: {v: 0}}
end: {planned: silence, shutdown: safe}
buses:
  drive:
    interface: vcan0
    database: car.dbc
    frames: {Speeds: {cycle: 10 ms}}
    send: [v -> Speeds.v]
    receive: [TCU_1.f -> wind]
    messages: {TCU_1: {cycle: 10 ms, timeout: 50 ms}}
`))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	set := []plantfile.Assignment{{Name: "m", Value: "1800 kg"}}
	want, err := h.PrepareChange(set)
	if err != nil {
		t.Fatal(err)
	}
	digest := b.Digest()

	taken, err := h.Reload()
	if err != nil {
		t.Fatal(err)
	}
	for change, edit := range map[string]func() error{
		"changed": func() error { return os.WriteFile(cycle, []byte("time[s],v[km/h]\n0,0\n5,90\n"), 0o644) },
		"gone":    func() error { return os.Remove(cycle) },
	} {
		if err := edit(); err != nil {
			t.Fatal(err)
		}
		for who, h := range map[string]*Handover{"the same supervisor": h, "another supervisor": taken} {
			got, err := h.PrepareChange(set)
			if err != nil {
				t.Errorf("cycle %s: %s: %v", change, who, err)
			} else if DigestOfData(got) != DigestOfData(want) {
				t.Errorf("cycle %s: %s prepares other tables", change, who)
			}
		}
		write("hill.csv", "time[s],v[km/h]\n0,0\n5,60\n9,0\n")
	}

	files, err := b.Sources()
	if err != nil {
		t.Fatal(err)
	}
	if f := files[1]; f.Role != "data" || f.Name != "hill.csv" || !bytes.Contains(f.Text, []byte("5,30")) {
		t.Errorf("the second source is %s %s %q, want data hill.csv as it was read", f.Role, f.Name, f.Text)
	}
	if b, err = Load(filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err = Prepare(b); err != nil {
		t.Fatal(err)
	}
	if b.Digest() == digest {
		t.Error("a bench with another cycle has the same digest")
	}
}
