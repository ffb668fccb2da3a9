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
			{"reset", "reset: a change of parameters takes effect at the next tick: advance first"},
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
parameters:
  wide: {value: 1 rad, min: 0.01 rad, max: 2 rad, tune: true}
  J: {value: 1 kg.m2, min: 0.5 kg.m2, max: 3 kg.m2, tune: true}
inputs: {tau: {unit: N.m, default: 0}}
elements:
  disc: {type: inertia, J: J, phi_start: 0, w_start: 0.1 rad/s}
  drive: {type: torque, flange: disc, tau: tau}
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

// writeStops writes a bench of a disc between two stops, and a scenario for it.
func writeStops(t *testing.T, what, scenario string) (name, dir string) {
	t.Helper()
	name, dir = fmt.Sprintf("%s-%d", what, os.Getpid()), t.TempDir()
	for file, text := range map[string]string{"stops.yaml": stopsPlant, "stops.dbc": stopsDatabase,
		"bench.yaml": fmt.Sprintf(stopsBench, name), "scenario.yaml": scenario} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return name, dir
}

// A disc stands beyond the stop of the new tables: the change is refused at once, and an earlier one of the
// same tick stays.
func TestChangeThatAStandingPlantCannotTakeOverIsRefusedAtOnce(t *testing.T) {
	name, dir := writeStops(t, "stops", "")
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

// A value that a request gives stays when the scenario changes parameters: the scenario changes the others. The
// speed is the integral of 0.03 N·m over the inertias of its intervals.
func TestParametersOfAScenarioChangeUnderALiveChange(t *testing.T) {
	name, dir := writeStops(t, "phases", `scenario: phases
parameters:
  - {at: 1 s, J: 2 kg.m2}
  - {at: 2 s, wide: 1.6 rad}
  - {at: 3 s, J: 3 kg.m2, wide: 1.7 rad}
`)
	rec := filepath.Join(dir, "a.rec")
	ask, ended := openDoor(t, name, Simulation{Plant: filepath.Join(dir, "bench.yaml"), Record: rec, Scenario: filepath.Join(dir, "scenario.yaml")})
	expectAnswers(t, ask, []exchange{
		{"set tau=0.03N.m", "in effect from tick 1,"},
		{"advance 500ms", "tick 100"},
		{"param wide=1.5rad", "in effect from tick 101,"},
		{"get J wide", "J     1 kg.m2  \n  wide  1 rad    \n"},
		{"advance 5ms", "tick 101"},
		{"get J wide", "J     1 kg.m2  \n  wide  1.5 rad  \n"},
		{"advance 1495ms", "tick 400"},
		{"get J wide", "J     2 kg.m2  \n  wide  1.5 rad  \n"},
		{"param J=1.5kg.m2", "in effect from tick 401,"}, // a change of the scenario at the same tick
		{"advance 5ms", "tick 401"},
		{"get J wide", "J     1.5 kg.m2  \n  wide  1.5 rad    \n"},
		{"advance 1995ms", "tick 800"},
		{"get J wide", "J     1.5 kg.m2  \n  wide  1.5 rad    \n"},
		{"get w", "w  0.185 rad/s"}, // 0.1 + 0.03·(1/1 + 1/2 + 2/1.5)
		{"status", "changes of parameters: 2, refused 0"},
		{"stop wait", "stopped by ctl"},
	})
	<-ended
	if _, err := (Replay{Record: rec}).Run(); err != nil {
		t.Error(err)
	}
}

// Frames that act between grid points, values that are set and changes of parameters meet in one step.
func TestArrivalsSetValuesAndParametersOfOneTickReplay(t *testing.T) {
	name := fmt.Sprintf("meet-%d", os.Getpid())
	text, err := os.ReadFile(benchtest.OpenFile(t))
	if err != nil {
		t.Fatal(err)
	}
	file, rec := filepath.Join(t.TempDir(), "bench.yaml"), filepath.Join(t.TempDir(), "a.rec")
	changed := strings.NewReplacer("bench: open bench", "bench: "+name+"\ninputs_at: arrival", "period: 5 ms", "period: 7 ms", "scheme: papers", "scheme: complete",
		"cycle: 5 ms", "cycle: 7 ms", "cycle: 10 ms, counter", "cycle: 14 ms, counter",
		"cycle: 10 ms, phase: 5 ms", "cycle: 14 ms, phase: 7 ms").Replace(string(text)) // the frames of the unit come every 10 ms
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	ask, ended := openDoor(t, name, Simulation{Plant: file, Record: rec})
	const changes = 4
	for i := range changes {
		tick := 1 + 31*i
		from := fmt.Sprintf("in effect from tick %d,", tick)
		expectAnswers(t, ask, []exchange{
			{fmt.Sprintf("param mu_oil=0.1%d", 2+i), from},
			{fmt.Sprintf("set clutch7.pressure=%dbar", i), from},
			{"advance 217ms", fmt.Sprintf("advanced to tick %d", tick+30)},
		})
	}
	expectAnswers(t, ask, []exchange{{"get mu_oil clutch7.pressure", "mu_oil            0.15   \n  clutch7.pressure  3 bar"}, {"stop wait", "stopped by ctl"}})
	<-ended
	between, events := 0, eventTexts(t, rec)
	for _, e := range recordtest.Entries(t, rec) {
		if e.Kind == record.FrameEntry && !e.Frame.Sent && e.Frame.Acts > 0 && e.Frame.Acts%7e6 != 0 {
			between++
		}
	}
	if between == 0 || len(events) != 2*changes {
		t.Errorf("%d frames between grid points, changes %q", between, events)
	}
	if _, err := (Replay{Record: rec}).Run(); err != nil {
		t.Error(err)
	}
}
