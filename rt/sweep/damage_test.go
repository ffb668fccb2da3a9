package sweep

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestOnlyADamagedShardIsComputedAgain(t *testing.T) {
	s, dir := load(t, folder(t, mixed)), t.TempDir()
	o := do(t, s, dir, 2, Shard{0, 2, ""})
	first := o
	whole, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	if o := do(t, s, dir, 2, Shard{0, 2, ""}); !o.Already || o.Rows != 15 || o.Failed != first.Failed || first.Failed == 0 {
		t.Errorf("a complete shard: already %v, %d rows, %d failed", o.Already, o.Rows, o.Failed)
	}
	damaged := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(o.Path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readParquet(o.Path); !errors.Is(err, ErrDamaged) {
			t.Fatalf("damage is not seen: %v", err)
		}
	}
	for at := 0; at < len(whole); at += 7 {
		damaged(whole[:at])
		bent := bytes.Clone(whole)
		bent[at] ^= 0x10
		damaged(bent)
	}
	damaged(whole[:len(whole)/2])
	if o := do(t, s, dir, 2, Shard{0, 2, ""}); o.Already {
		t.Error("a damaged shard is taken for a whole one")
	}
	again, err := os.ReadFile(o.Path)
	if err != nil || !bytes.Equal(again, whole) {
		t.Errorf("the shard computed again differs (%v)", err)
	}
}

func TestJournalIsReadUpToItsLastCompleteRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	values := []float64{0.1, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64}
	rows := []Row{
		{Case: 3, Results: []*float64{&values[0], nil}, Judged: true, Broken: "a; b"},
		{Case: 7, Results: []*float64{nil, nil}, Failed: `why <"\u00e9\n`},
		{Case: 1, Results: []*float64{&values[1], &values[2]}},
		{Case: 2, Results: []*float64{&values[3], &values[0]}},
	}
	j, err := openJournal(path, 2)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for i := range rows {
		if err := j.add(rows[i]); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, j.end)
	}
	j.Close()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range int64(len(all) + 1) {
		for _, bend := range []bool{false, true} {
			data := bytes.Clone(all[:cut])
			if bend && cut > 0 {
				data[cut-1] ^= 1
			}
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			want := 0
			for _, end := range ends {
				if end < cut || end == cut && !bend {
					want++
				}
			}
			j, err := openJournal(path, 2)
			if err != nil {
				t.Fatal(err)
			}
			got, err := j.rows()
			if err != nil || len(got) != want || !reflect.DeepEqual(got, rows[:want]) && want > 0 {
				t.Fatalf("cut at %d, bent %v: %v (%v), want %d rows", cut, bend, got, err, want)
			}
			if err := j.add(rows[2]); err != nil {
				t.Fatal(err)
			}
			j.Close()
			if k, err := openJournal(path, 2); err != nil {
				t.Fatal(err)
			} else if got, err := k.rows(); err != nil || len(got) != want+1 {
				t.Fatalf("cut at %d: a row after it makes %d (%v)", cut, len(got), err)
			} else {
				k.Close()
			}
		}
	}
}

// The drive cycle of a plant determines the results, too.
func TestFileThatAPlantNamesBelongsToTheHash(t *testing.T) {
	file := folder(t, "sweep: hill\nplant: hill.yaml\nfor: 1 s\nparameters: {m: {of: car.m, values: [1000 kg, 2000 kg]}}\nresults: {v: {final: v}}\n")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("hill.yaml", `plant: hill
inputs: {wind: {unit: N, default: 0 N}}
elements:
  d: {type: driver, cycle: hill.csv, speed: v}
  car: {type: mass, m: 1500 kg}
  v: {type: speed_sensor, flange: car}
  pull: {type: force, flange: car, f: {product: [6 kN, d.accelerator]}}
  air: {type: force, flange: car, f: wind}
outputs: {v: {speed: car}}
`)
	write("hill.csv", "time[s],v[km/h]\n0,0\n5,30\n")
	s := load(t, file)
	write("hill.csv", "time[s],v[km/h]\n0,0\n5,60\n")
	if _, err := (&Run{Sweep: s, Shard: Shard{0, 1, ""}, Dir: t.TempDir(), Workers: 1, Notes: io.Discard}).Do(); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if again := load(t, file); again.Hash == s.Hash {
		t.Error("a sweep with another cycle has the same hash")
	}
}

// So does the drive cycle of a scenario, which is read once: all cases of a run have the cycle of its hash.
func TestCycleOfAScenarioBelongsToTheHash(t *testing.T) {
	file := folder(t, "sweep: hill\nplant: hill.yaml\nscenario: drive.yaml\nfor: 1 s\nparameters: {m: {of: car.m, values: [1000 kg, 2000 kg]}}\nresults: {v: {final: v}}\n")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("hill.yaml", `plant: hill
inputs:
  throttle: {unit: 1, min: 0, max: 1}
  brake: {unit: 1, min: 0, max: 1}
elements:
  car: {type: mass, m: 1500 kg}
  pull: {type: force, flange: car, f: {product: [6 kN, throttle]}}
  stop: {type: force, flange: car, f: {product: [-9 kN, brake]}}
outputs: {v: {speed: car}}
`)
	write("drive.yaml", "scenario: drive\ndriver: {cycle: hill.csv, speed: v, accelerator: throttle, brake: brake}\n")
	write("hill.csv", "time[s],v[km/h]\n0,0\n5,30\n")
	s := load(t, file)
	w, err := s.worker()
	if err != nil {
		t.Fatal(err)
	}
	before, _ := w.run(0)
	write("hill.csv", "time[s],v[km/h]\n0,0\n5,60\n")
	if after, _ := w.run(0); before.Failed != "" || !(*after.Results[0] == *before.Results[0]) {
		t.Errorf("a case follows another cycle than the one before it: %v, %v", before, after)
	}
	if _, err := (&Run{Sweep: s, Shard: Shard{0, 1, ""}, Dir: t.TempDir(), Workers: 1, Notes: io.Discard}).Do(); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if again := load(t, file); again.Hash == s.Hash {
		t.Error("a sweep with another cycle has the same hash")
	}
}

func TestFileThatChangesBeforeItsShardRunsIsRefused(t *testing.T) {
	file := folder(t, mixed)
	s := load(t, file)
	plant := filepath.Join(filepath.Dir(file), "rotor.yaml")
	if err := os.WriteFile(plant, []byte(strings.Replace(rotor, "mu: 0.5", "mu: 0.4", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Run{Sweep: s, Shard: Shard{0, 1, ""}, Dir: t.TempDir(), Workers: 1, Notes: io.Discard}).Do(); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if again := load(t, file); again.Hash == s.Hash {
		t.Error("another plant has the same hash")
	}
}

// A kill during the write of a shard's file leaves a hidden draft. The next start of the shard
// reuses it, even after a change of the sweep, and waits for a draft that another process is
// writing.
func TestDraftOfAKilledProcessIsReused(t *testing.T) {
	s, dir := load(t, folder(t, mixed)), t.TempDir()
	p := Shard{1, 3, "test"}
	if err := os.WriteFile(filepath.Join(dir, ".mixed-shard-1-of-3.draft"), bytes.Repeat([]byte("half"), 1e5), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "mixed-0123456789ab-shard-1-of-3.parquet")
	var written atomic.Bool
	writing, release := make(chan bool), make(chan bool)
	go replace(path, "mixed-shard-1-of-3", func(w io.Writer) error {
		writing <- true
		<-release
		written.Store(true)
		_, err := w.Write([]byte("another version"))
		return err
	})
	<-writing
	time.AfterFunc(time.Second, func() { release <- true })
	o := do(t, s, dir, 1, p)
	if !written.Load() {
		t.Error("the shard did not wait for who writes a file of its name")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "another version" {
		t.Errorf("the file of the other process is %q, %v", text, err)
	}
	if _, _, err := readParquet(o.Path); err != nil {
		t.Error(err)
	}
	do(t, s, dir, 1, p) // the shard is complete
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("files %v", list)
	}
}
