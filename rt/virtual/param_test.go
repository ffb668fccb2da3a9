package virtual

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt/bench/benchtest"
)

// writeBench writes the demo bench with a name of its own, and further files.
func writeBench(t *testing.T, what string, files map[string]string, replace ...string) (name, file string) {
	t.Helper()
	name = fmt.Sprintf("%s-%d", what, os.Getpid())
	file = benchtest.DemoFile(t, append([]string{"bench: powershift-bench", "bench: " + name}, replace...)...)
	for other, text := range files {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), other), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return name, file
}

// eventsOf returns the entries of a record that do not depend on the clock.
func eventsOf(t *testing.T, file string) []record.Entry {
	t.Helper()
	list := recordtest.Entries(t, file)
	for i := range list {
		list[i].Tick.Phases = nil
	}
	return list
}

// Changes of a standing run take effect at its next tick. A later one at the same tick has the values of the
// earlier one, and the record has one set of tables.
func TestParametersOfAStandingRunChangeAtItsNextTick(t *testing.T) {
	name, file := writeBench(t, "param", nil)
	var records [2][]record.Entry
	for i := range records {
		rec := filepath.Join(t.TempDir(), "a.rec")
		ask, ended := openDoor(t, name, Simulation{Plant: file, Record: rec})
		expectAnswers(t, ask, []exchange{
			{"param mu_oil=0.12", "in effect from tick 1, 0.005 s on"},
			{"get mu_oil", "tick 0, 0.000 s\n  mu_oil  0.1  "},
			{"status", "param mu_oil  0.12"},
			{"advance 100ms", "advanced to tick 20"},
			{"get mu_oil", "tick 20, 0.100 s\n  mu_oil  0.12  "},
			{"param mu_oil=0.14", "in effect from tick 21, 0.105 s on"},
			{"set clutch1.pressure=3bar", "drives the input"},
			{"param mu_oil=0.16", "in effect from tick 21, 0.105 s on"},
			{"param mu_oil=0.3", "0.3 is outside 0.05 to 0.2"},
			{"status", "param mu_oil          0.16"},
			{"mark between", "in effect from tick 21"},
			{"advance 5ms", "advanced to tick 21"},
			{"get mu_oil", "tick 21, 0.105 s\n  mu_oil  0.16  "},
			{"advance 1s", "advanced to tick 221"},
			{"status", "changes of parameters: 2, refused 0"},
			{"stop wait", name + ": stopped by ctl, after "},
		})
		if r := <-ended; r == nil || !r.Clean || r.Changes != 2 {
			t.Errorf("%+v", r)
		}
		var words []string
		for _, text := range eventTexts(t, rec) {
			text, _, _ = strings.Cut(text, " tables=")
			words = append(words, text)
		}
		if got, want := fmt.Sprint(words), "[1 param mu_oil=0.12 21 mark between 21 param mu_oil=0.16]"; got != want {
			t.Errorf("the record has %s, want %s", got, want)
		}
		if _, err := (Replay{Record: rec}).Run(); err != nil {
			t.Error(err)
		}
		records[i] = eventsOf(t, rec)
	}
	if !reflect.DeepEqual(records[0], records[1]) {
		t.Error("the same requests have given two records")
	}
}

const stopsPlant = `plant: stops
parameters: {wide: {value: 1 rad, min: 0.01 rad, max: 2 rad, tune: true}}
elements:
  disc: {type: inertia, J: 1 kg.m2, phi_start: 0, w_start: 0.1 rad/s}
  ground: {type: fixed}
  stops: {type: clearance, a: ground, b: disc, phi_min: -1 rad, phi_max: wide, restitution: 0}
outputs: {phi: {angle: disc}, w: {speed: disc}}
`

const stopsBench = `bench: %s
plant: stops.yaml
period: 5 ms
overrun: skip 20
safe: {time: 100 ms, values: {w: 0}}
buses:
  drive:
    interface: pair
    database: stops.dbc
    frames: {Speeds: {cycle: 10 ms}}
    send: [w -> Speeds.w]
`

const stopsDatabase = `VERSION ""
BU_: Plant
BO_ 100 Speeds: 8 Plant
 SG_ w : 0|16@1- (0.001,0) [0|0] "rad/s" Vector__XXX
`

// A disc stands beyond the stop of the new tables: the change is refused at once, and an earlier one of the
// same tick stays.
func TestChangeThatAStandingPlantCannotTakeOverIsRefusedAtOnce(t *testing.T) {
	name := fmt.Sprintf("stops-%d", os.Getpid())
	dir := t.TempDir()
	for file, text := range map[string]string{"stops.yaml": stopsPlant, "stops.dbc": stopsDatabase, "bench.yaml": fmt.Sprintf(stopsBench, name)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ask, ended := openDoor(t, name, Simulation{Plant: filepath.Join(dir, "bench.yaml"), Record: filepath.Join(dir, "a.rec")})
	expectAnswers(t, ask, []exchange{
		{"advance 1s", "advanced to tick 200"},
		{"param wide=0.5rad", "in effect from tick 201"},
		{"param wide=0.05rad", "param: the change is refused at tick 201: clearance stops.max would be overlapped"},
		{"status", "param wide              0.5rad"},
		{"advance 9s", "advanced to tick 2000"},
		{"get phi wide", "phi   0.5 rad  \n  wide  0.5 rad  \n"},
		{"status", "changes of parameters: 1, refused 0"},
		{"stop wait", "stopped by ctl"},
	})
	<-ended
	if _, err := (Replay{Record: filepath.Join(dir, "a.rec")}).Run(); err != nil {
		t.Error(err)
	}
}
