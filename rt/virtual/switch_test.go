package virtual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/model/plants"
	"lockstep/rt/report"
)

// A record that starts in the middle of a run begins with the state of the loop there: it replays bit for bit, with
// the faults, values, parameters and snapshots of the run before. It ends at the tick of the answer.
func TestRecordThatStartsInTheMiddleOfARunReplays(t *testing.T) {
	name, file := writeBench(t, "switch", nil)
	dir := t.TempDir()
	rec, second := filepath.Join(dir, "a.rec"), filepath.Join(dir, "b.rec")
	ask, ended := openDoor(t, name, Simulation{Plant: file})
	expectAnswers(t, ask, []exchange{
		{"mark one", "mark: the run has no record"},
		{"record off", "record: the run is not recorded"},
		{"advance 1s", "advanced to tick 200"},
		{"snapshot warm", "in effect from tick 201"},
		{"fault name=n signal=Speeds.w1 noise=3rpm seed=5", "in effect from tick 201"},
		{"fault name=f frame=TCU_Pressure_1 drop at=1.2s for=300ms", "in effect from tick 201"},
		{"param mu_oil=0.12", "in effect from tick 201"},
		{"advance 333ms", "advanced to tick 267"},
		{"faults", "n  active  since tick 201  67  "},
		{"record on " + rec, "in effect from tick 268, 1.340 s on"},
		{"status", "record " + rec},
		{"record on " + second, "record: the run is recorded to " + rec},
		{"advance 100ms", "advanced to tick 287"},
		{"mark two", "in effect from tick 288"},
		{"record on " + second, "record: the run is recorded to " + rec},
		{"advance 500ms", "advanced to tick 387"},
		{"param mu_oil=0.14", "in effect from tick 388"},
		{"advance 500ms", "advanced to tick 487"},
		{"reset warm", "in effect from tick 488"},
		{"clear n", "in effect from tick 488"},
		{"advance 500ms", "advanced to tick 587"},
		{"record off", "in effect from tick 588"},
		{"advance 100ms", "advanced to tick 607"},
		{"record on " + rec, rec + " exists: give the record a new name"},
		{"fault name=d signal=Speeds.w1 delay=20ms", "in effect from tick 608"},
		{"record on " + second, "a fault delays values or frames: clear it first"},
		{"clear d", "in effect from tick 608"},
		{"advance 5ms", "advanced to tick 608"},
		{"record on " + second, "in effect from tick 609"},
		{"advance 2s", "advanced to tick 1008"},
		{"stop wait", name + ": stopped by ctl"},
	})
	r := <-ended
	if r == nil || !r.Clean || r.Record != rec+", "+second {
		t.Errorf("%+v", r)
	}
	if got, want := fmt.Sprint(r.Records), fmt.Sprint([]report.RecordFile{{File: rec, First: 268, Last: 587}, {File: second, First: 609, Last: 1009}}); got != want {
		t.Errorf("the report has the records %s, want %s", got, want)
	}
	var text strings.Builder
	if r.Text(&text); !strings.Contains(text.String(), rec+", ticks 268 to 587\n") || !strings.Contains(text.String(), second+", ticks 609 to 1009\n") {
		t.Errorf("the report has no ticks of the records:\n%s", &text)
	}
	for i, want := range []struct {
		file        string
		first, last int64
	}{{rec, 268, 587}, {second, 609, 1009}} {
		same, err := (Replay{Record: want.file}).Run()
		if err != nil || same.Ticks != want.last-want.first+1 {
			t.Errorf("record %d: %v, %v", i, same, err)
		}
		var ticks []int64
		for _, e := range recordtest.Entries(t, want.file) {
			if e.Kind == record.TickEntry {
				ticks = append(ticks, e.Tick.Index)
			}
		}
		if len(ticks) == 0 || ticks[0] != want.first || ticks[len(ticks)-1] != want.last {
			t.Errorf("record %d has the ticks %d, want %d to %d", i, ticks, want.first, want.last)
		}
	}
	if got := strings.Join(eventTexts(t, rec), "; "); !strings.HasPrefix(got, "268 param mu_oil=0.12 tables=") || !strings.Contains(got, "; 288 mark two; 388 param mu_oil=0.14 tables=") {
		t.Errorf("the record has %s", got)
	}
}

const sampledBench = `bench: %s
plant: sampled.yaml
period: 5 ms
overrun: skip 20
safe: {time: 100 ms, values: {v_car: 0}}
end: {planned: silence, shutdown: safe}
buses:
  drive: {interface: pair, database: sampled.dbc, frames: {Speeds: {cycle: 10 ms}}, send: [v_car -> Speeds.v]}
`

const sampledDatabase = `BU_: TCU Bench
BO_ 512 Speeds: 2 Bench
 SG_ v : 0|16@1- (0.01,0) [-300|300] "m/s" TCU
`

// A record that starts in a run, and one whose plant returns to a snapshot, hold the values that delays keep and the
// states of sampled blocks: they replay bit for bit.
func TestRecordOfSampledBlocksReplays(t *testing.T) {
	name, dir := fmt.Sprintf("sampled%d", os.Getpid()), t.TempDir()
	plant, err := os.ReadFile("../../model/plants/testdata/sampled.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"sampled.yaml": string(plant), "sampled.dbc": sampledDatabase,
		"bench.yaml": fmt.Sprintf(sampledBench, name)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rec := filepath.Join(dir, "a.rec")
	ask, ended := openDoor(t, name, Simulation{Plant: filepath.Join(dir, "bench.yaml")})
	expectAnswers(t, ask, []exchange{
		{"advance 80ms", "advanced to"}, {"snapshot warm", "in effect"}, {"advance 33ms", "advanced to"},
		{"record on " + rec, "in effect"}, {"advance 100ms", "advanced to"}, {"reset warm", "in effect"},
		{"advance 100ms", "advanced to"}, {"stop wait", name + ": stopped by ctl"},
	})
	<-ended
	if same, err := (Replay{Record: rec}).Run(); err != nil || same.Ticks < 35 {
		t.Errorf("%v, %v", same, err)
	}
}

// The copy of the state of every embedded bench fits the replay, with a drive cycle too.
func TestLaterRecordOfEveryBenchReplays(t *testing.T) {
	for _, e := range plants.List() {
		if e.Kind != "bench" {
			continue
		}
		data, err := plants.Read(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		cycles := []string{""}
		if strings.HasPrefix(e.Name, "automatic-bench") {
			cycles = append(cycles, "wltc-3b")
		}
		for i, cycle := range cycles {
			t.Run(e.Name+cycle, func(t *testing.T) {
				name, dir := fmt.Sprintf("later%d-%d", i, os.Getpid()), t.TempDir()
				file, rec := filepath.Join(dir, "bench.yaml"), filepath.Join(dir, "a.rec")
				if err := os.WriteFile(file, []byte(strings.Replace(string(data), "\nbench: ", "\nbench: "+name+" # ", 1)), 0o644); err != nil {
					t.Fatal(err)
				}
				ask, ended := openDoor(t, name, Simulation{Plant: file, Cycle: cycle})
				expectAnswers(t, ask, []exchange{
					{"advance 300ms", "advanced to"}, {"record on " + rec + "0", "in effect"}, {"record off", "in effect"},
					{"record on " + rec, "in effect"},
					{"advance 200ms", "advanced to"}, {"stop wait", name + ": stopped by ctl"},
				})
				<-ended
				if same, err := (Replay{Record: rec}).Run(); err != nil || same.Ticks == 0 {
					t.Errorf("%v, %v", same, err)
				}
				if same, err := (Replay{Record: rec + "0"}).Run(); err != nil || same.Ticks != 0 {
					t.Errorf("a record that ends before its first tick: %v, %v", same, err)
				}
			})
		}
	}
}
