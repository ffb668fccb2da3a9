package virtual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/report"
)

// A car of 1500 kg with a drive of 5000 N and brakes of 12 kN at the wheels of one axle.
const cyclePlant = `plant: car
inputs:
  accelerator: {unit: "%", min: 0, max: 100}
  brake: {unit: "%", min: 0, max: 100}
  gear: {unit: 1, min: 0, max: 3}
  grip: {unit: 1, min: 0, max: 1, default: 1}
elements:
  wheels: {type: inertia, J: 3 kg.m2}
  front: {type: inertia, J: 1 kg.m2}
  motor: {type: torque, flange: wheels, tau: {product: [1500 N.m, accelerator]}}
  brakes: {type: brake, flange: wheels, mu: 0.4, cgeo: 1 m, area: 90 cm2, pressure: {product: [10 bar, brake]}}
  roll: {type: ideal_rolling_wheel, a: wheels, b: tread, radius: 0.3 m}
  road: {type: brake, flange: tread, support: car, mu: 1, fn_max: 14 kN, f_normalized: grip}
  car: {type: vehicle, flange: front, m: 1500 kg, R: 0.3 m, A: 2.2 m2, Cd: 0.3, Cr: 0.01, g: 9.81, v_max: 60 m/s}
outputs:
  v: {speed: car}
  lever: {signal: gear}
`

const cycleBench = `bench: car-bench
plant: car.yaml
period: 5 ms
safe: {time: 100 ms, values: {v: 0}}
buses:
  drive:
    interface: can0
    database: car.dbc
    frames: {Car: {cycle: 10 ms}}
    send: [v -> Car.v]
`

const cycleBus = `VERSION ""

NS_ :

BS_:

BU_: TCU Bench

BO_ 256 Car: 8 Bench
 SG_ v : 0|16@1- (0.01,0) [-100|100] "m/s" TCU
`

// cycleFiles writes the car, its bench, a short cycle and a scenario. It returns their folder.
func cycleFiles(t *testing.T, scenario string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"car.yaml": cyclePlant, "car.dbc": cycleBus, "bench.yaml": cycleBench, "scenario.yaml": scenario,
		"short.csv": "time[s],v[km/h]\n0,0\n4,0\n14,50\n20,50\n28,0\n31,0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDriverFollowsTheWLTCInVirtualTime(t *testing.T) {
	dir := cycleFiles(t, "")
	r, err := Simulation{Plant: filepath.Join(dir, "car.yaml"), Cycle: "wltc-3b", Every: 1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean || r.Ticks != 360000 || r.Scenario == nil || len(r.Scenario.Findings) != 5 || !r.Scenario.Pass {
		t.Fatalf("%d ticks, clean %v, %+v; want 360000 ticks, and four phases and the whole cycle driven", r.Ticks, r.Clean, r.Scenario)
	}
	for i, want := range []string{"wltc-3b low", "wltc-3b medium", "wltc-3b high", "wltc-3b extra high", "wltc-3b"} {
		f := r.Scenario.Findings[i]
		if f.What != want || !strings.HasPrefix(f.Seen, "0 violations; RMSSE 0.") {
			t.Errorf("finding %d: %+v, want %s without a deviation", i+1, f, want)
		}
	}
}

// shortCycle drives the short cycle with more lines of a scenario.
func shortCycle(t *testing.T, lines string) (*report.Report, error) {
	t.Helper()
	dir := cycleFiles(t, "scenario: short\ndriver: {cycle: short.csv, mass: 1500 kg, f0: 147 N, f2: 0.4 N.s2/m2}\n"+lines)
	return Simulation{Plant: filepath.Join(dir, "car.yaml"), Scenario: filepath.Join(dir, "scenario.yaml"), Every: 1}.Run()
}

func TestCycleThatCannotBeFollowedBreaksTheVerdict(t *testing.T) {
	for name, x := range map[string]struct {
		lines, seen string
		held        bool
	}{
		"nothing is broken": {"", "0 violations; RMSSE", true},
		"weak drive":        {"faults: [{input: accelerator, gain: 0.2}]", "1 violation, the first at 5.", false},
		"ice":               {"stimuli: {grip: 0.05}", "violation", false},
		"failed brake":      {"faults: [{input: brake, stuck: 0 %, at: 15 s}]", "1 violation, the first at 21.", false},
		"ended early":       {"for: 20 s", "not judged: the run ended at 20 s, the part ends at 31 s; 0 violations", false},
	} {
		r, err := shortCycle(t, x.lines)
		if (err == nil) != x.held {
			t.Errorf("%s: error %v, want the verdict held: %v", name, err, x.held)
		}
		if r == nil || r.Scenario == nil || len(r.Scenario.Findings) != 1 {
			t.Fatalf("%s: %v, report %+v; want one finding", name, err, r)
		}
		f := r.Scenario.Findings[0]
		if f.Held != x.held || !strings.Contains(f.Seen, x.seen) || x.held && !strings.Contains(f.Seen, " EER ") {
			t.Errorf("%s: %+v, want held %v and %q", name, f, x.held, x.seen)
		}
	}
}

// A target of zero has no ratios: the verdict leaves them out.
func TestVerdictOnAStandstillHasNoRatios(t *testing.T) {
	dir := cycleFiles(t, "scenario: stand\ndriver: {cycle: stand.csv, mass: 1500 kg}\n")
	if err := os.WriteFile(filepath.Join(dir, "stand.csv"), []byte("time[s],v[km/h]\n0,0\n4,0\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := Simulation{Plant: filepath.Join(dir, "car.yaml"), Scenario: filepath.Join(dir, "scenario.yaml"), Every: 1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Scenario.Findings[0]; !f.Held || f.Seen != "0 violations; RMSSE 0 km/h" {
		t.Errorf("%+v, want a held standstill without ratios", f)
	}
}

func TestRunWithADriverReplays(t *testing.T) {
	dir := cycleFiles(t, "scenario: short\ndriver: {cycle: short.csv}\nfaults: [{input: brake, noise: 1 %, at: 18 s, seed: 3}]\n")
	record := filepath.Join(dir, "a.rec")
	r, err := Simulation{Plant: filepath.Join(dir, "bench.yaml"), Scenario: filepath.Join(dir, "scenario.yaml"), Record: record, Every: 1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "short.csv")); err != nil { // the record holds the cycle
		t.Fatal(err)
	}
	same, err := Replay{Record: record}.Run()
	if err != nil || same.Ticks != int64(r.Ticks) || same.Ticks != 6200 || same.Frames != 3111 { // 11 in the safe time
		t.Errorf("%v: %+v of %d ticks; want 6200 ticks and 3111 frames that are identical", err, same, r.Ticks)
	}
}

// The driver is an element of the plant; the scenario judges and has no pedals.
func TestCycleOfADriverInThePlantIsJudged(t *testing.T) {
	for torque, held := range map[string]bool{"1500 N.m": true, "300 N.m": false} {
		dir := cycleFiles(t, "scenario: short\ndriver: {cycle: short.csv, mass: 1500 kg, pedals: none}\n")
		plant := strings.NewReplacer(
			"  accelerator: {unit: \"%\", min: 0, max: 100}\n  brake: {unit: \"%\", min: 0, max: 100}\n  gear: {unit: 1, min: 0, max: 3}\n", "",
			"elements:", "elements:\n  d: {type: driver, cycle: short.csv, speed: speed}\n  speed: {type: speed_sensor, flange: car}",
			"1500 N.m, accelerator", torque+", d.accelerator", "10 bar, brake", "10 bar, d.brake", "signal: gear", "signal: d.lever",
		).Replace(cyclePlant)
		if err := os.WriteFile(filepath.Join(dir, "car.yaml"), []byte(plant), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := Simulation{Plant: filepath.Join(dir, "car.yaml"), Scenario: filepath.Join(dir, "scenario.yaml"), Every: 1}.Run()
		if (err == nil) != held || r == nil || len(r.Scenario.Findings) != 1 {
			t.Fatalf("%s: %v, want the verdict held: %v", torque, err, held)
		}
		if f := r.Scenario.Findings[0]; f.Held != held || !strings.Contains(f.Seen, "RMSSE") || held && !strings.Contains(f.Seen, " EER ") {
			t.Errorf("%s: %+v", torque, f)
		}
	}
}

func TestPortsOfTheDriverAreChecked(t *testing.T) {
	for driver, want := range map[string]string{
		"{speed: v}":                           "scenario.yaml:2:9: bench: driver: the cycle is missing (cycle: wltc-3b)",
		"{cycle: wltc}":                        `bench: driver: cycle: unknown cycle "wltc": give wltc-3b, ftp-75, nedc, hwfet or a file, FILE.csv`,
		"{cycle: none.csv}":                    "none.csv",
		"{cycle: nedc, speed: w}":              `driver: speed: there is no output "w"`,
		"{cycle: nedc, speed: lever}":          "driver: speed: output lever has the unit 1: name an output of a speed in m/s",
		"{cycle: nedc, accelerator: pedal}":    `driver: accelerator: there is no input "pedal"`,
		"{cycle: nedc, gear: grip}":            "driver: gear: the range of input grip is not 0 to 3: 0 park, 1 reverse, 2 neutral, 3 drive",
		"{cycle: nedc, preview: 0 s}":          "scenario.yaml:2:32: bench: driver: the preview time (s) is 0, want above 0 to 60",
		"{cycle: nedc, preview: 3}":            "driver: preview: 3 needs a unit",
		"{cycle: nedc, hold: 120 %}":           "scenario.yaml:2:29: bench: driver: the brake at standstill is 1.2, want 0 to 1",
		"{cycle: nedc, mass: 0 kg}":            "driver: cycle: the mass of the vehicle, 0 kg, is not positive",
		"{cycle: nedc, gearbox: 1}":            `driver: unknown key "gearbox"`,
		"{cycle: nedc, pedals: two}":           `scenario.yaml:2:31: bench: driver: pedals: "two" is not none`,
		"{cycle: nedc, pedals: none, knee: 9}": "scenario.yaml:2:43: bench: driver: knee: 9 needs a unit",
		"{pedals: none, cycle: nedc, gear: g}": "scenario.yaml:2:37: bench: driver: gear has no effect with pedals: none",
		"{cycle: nedc}\nstimuli: {brake: 0 %}": "driver: brake: input brake has a stimulus: leave out the stimulus or the driver's key",
		"{cycle: nedc, brake: accelerator}":    "driver: the pedals and the lever need inputs of their own",
	} {
		dir := cycleFiles(t, "scenario: s\ndriver: "+driver+"\n")
		_, err := Simulation{Plant: filepath.Join(dir, "car.yaml"), Scenario: filepath.Join(dir, "scenario.yaml"), Every: 1}.Run()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", driver, err, want)
		}
	}
}

// lanePlant is a car that follows its steering wheel without mass.
const lanePlant = `plant: car
inputs:
  steer: {unit: deg, min: -500, max: 500}
  wheel: {unit: rad}
  throttle: {unit: "%", min: 0, max: 100}
elements:
  car: {type: mass, m: 1500 kg, v_start: 20 m/s, s_start: 0 m}
  turn: {type: speed, flange: yaw, w_ref: {product: [3 rad/s, steer]}}
  yaw: {type: inertia, J: 1 kg.m2, phi_start: 0 rad, w_start: 0 rad/s}
  psi: {type: angle_sensor, flange: yaw}
  side: {type: gain, u: psi, k: 20 m/s}
  y: {type: integrator, u: side}
outputs:
  X: {position: car}
  Y: {signal: y}
  psi: {angle: yaw, unit: deg}
  v: {speed: car}
  angle: {signal: wheel}
  pedal: {signal: throttle}
`

func TestLaneOfTheDriverIsChecked(t *testing.T) {
	for lane, want := range map[string]string{
		"{lane: {path: [[0 m, 0 m], [0 m, 1 m]]}}":                     "scenario.yaml:2:36: bench: driver: lane: path: 0 m does not lie beyond the point before, at 0 m",
		"{lane: {path: [[0 m, 0 m, 1 m]]}}":                            "driver: lane: path: [x, y] of each point is wanted",
		"{lane: {path: []}}":                                           "driver: lane: path: 0 points, want 1 to 64",
		"{lane: {path: [[1, 0 m]]}}":                                   "driver: lane: path: 1 needs a unit",
		"{lane: {path: [[.nan m, 0 m]]}}":                              "driver: lane: path: ",
		"{lane: {x: v}}":                                               "scenario.yaml:2:20: bench: driver: lane: x: output v has the unit m/s, want m",
		"{lane: {speed: w}}":                                           `driver: lane: speed: there is no output "w"`,
		"{lane: {steer: rudder}}":                                      `driver: lane: steer: there is no input "rudder"`,
		"{lane: {steer: wheel}}":                                       "scenario.yaml:2:24: bench: driver: lane: steer: input wheel has no range: give it min and max in the plant file",
		"{lane: {steer: throttle}}":                                    "driver: lane: steer: input throttle has the unit 1, want rad",
		"{lane: {preview: 0 s}}":                                       "scenario.yaml:2:26: bench: driver: preview (s) of the lane is 0, want 0.1 to 10",
		"{lane: {gain: 0 rad.m}}":                                      "driver: gain (rad.m) of the lane is 0, want 0.1 to 10000",
		"{lane: {reaction: -1 s}}":                                     "driver: reaction (s) of the lane is -1, want 0 to 5",
		"{lane: {rate: 3}}":                                            `driver: lane: unknown key "rate"`,
		"{lane: {}}\nstimuli: {steer: 0 deg}":                          "driver: lane: steer: input steer has a stimulus: leave out the stimulus or the lane",
		"{cycle: nedc, lane: {}, brake: steer, accelerator: throttle}": "scenario.yaml:2:29: bench: driver: lane: steer: a pedal or the lever uses the input, too",
	} {
		dir := cycleFiles(t, "scenario: s\ndriver: "+lane+"\n")
		if err := os.WriteFile(filepath.Join(dir, "car.yaml"), []byte(lanePlant), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Simulation{Plant: filepath.Join(dir, "car.yaml"), Scenario: filepath.Join(dir, "scenario.yaml"), Every: 1}.Run()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", lane, err, want)
		}
	}
}

// A run with a driver who steers reaches the lane, and replays.
func TestRunWithALaneReplays(t *testing.T) {
	dir := cycleFiles(t, "scenario: s\nfor: 5 s\ndriver: {lane: {path: [[20 m, 0 m], [50 m, 3 m]], gain: 7 rad.m}}\n"+
		"expect: [{value: Y, within: 0.3 m, of: 3 m, from: 4.5 s}]\n")
	if err := os.WriteFile(filepath.Join(dir, "car.yaml"), []byte(lanePlant), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.rec")
	if _, err := (Simulation{Plant: filepath.Join(dir, "bench.yaml"), Scenario: filepath.Join(dir, "scenario.yaml"), Record: file, Every: 1}).Run(); err != nil {
		t.Fatal(err)
	}
	if same, err := (Replay{Record: file}).Run(); err != nil || same.Ticks != 1000 {
		t.Errorf("%v: %+v; want 1000 identical ticks", err, same)
	}
}
