package driver_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/model/cycle"
	"lockstep/model/driver"
	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

const period = 10 * time.Millisecond

// car is a plant in which the driver drives a mass with road load: the accelerator gives force, the brake friction.
func car(options string) string {
	return "inputs: {push: {unit: N, min: -1e5, max: 1e5}}\n" + modeltest.PlantOf(`
d: {type: driver, speed: v, `+options+`}
car: {type: mass, m: 1500 kg}
v: {type: speed_sensor, flange: car}
gear: {type: combi_table_1ds, u: d.lever, table: [[0, 0], [1, -1], [2, 0], [3, 1]]}
pull: {type: force, flange: car, f: {product: [6 kN, gear, d.accelerator]}}
brakes: {type: brake, flange: car, mu: 0.4, cgeo: 1, fn: {product: [30 kN, d.brake]}}
air: {type: quadratic_speed_dependent_force, flange: car, f_nominal: -400 N, v_nominal: 30, ForceDirection: false}
slope: {type: force, flange: car, f: push}
`, `v: {speed: car}
target: {signal: d.target}
ahead: {signal: d.ahead}
accelerator: {signal: d.accelerator}
brake: {signal: d.brake}
lever: {signal: d.lever}`)
}

// follow drives to an instant, s, with a driver.Driver beside the element: both decide on the same target and speed
// every tick. It returns how often each signal of the element changed.
func follow(t *testing.T, b *modeltest.Bench, s driver.Settings, to float64, parked func(at float64) bool, push func(at float64) float64) (changes [3]int) {
	t.Helper()
	d, err := driver.New(s)
	if err != nil {
		t.Fatal(err)
	}
	var out, last driver.Output
	for at := 0.0; at < to; at = float64(b.Ticks) * period.Seconds() {
		d.Step(&out, &driver.Input{Target: b.Get("target"), Ahead: b.Get("ahead"), Speed: b.Get("v"), Parked: parked(at)})
		b.Set("push", push(at))
		b.To(at+period.Seconds(), nil)
		for i, pair := range [3][2]float64{{b.Get("accelerator"), out.Accelerator}, {b.Get("brake"), out.Brake},
			{b.Get("lever"), float64(out.Lever)}} {
			if math.Float64bits(pair[0]) != math.Float64bits(pair[1]) {
				t.Fatalf("at %g s: accelerator %v, brake %v, lever %v of the element, %+v of the driver; speed %v", at,
					b.Get("accelerator"), b.Get("brake"), b.Get("lever"), out, b.Get("v"))
			}
			if pair[1] != [3]float64{last.Accelerator, last.Brake, float64(last.Lever)}[i] {
				changes[i]++
			}
		}
		last = out
	}
	return changes
}

// TestElementIsTheDriverOfAScenarioBitForBit drives the low phase of the WLTC.
func TestElementIsTheDriverOfAScenarioBitForBit(t *testing.T) {
	b := modeltest.New(t, car("cycle: wltc-3b, phases: 1"), period)
	c, err := cycle.Load("wltc-3b")
	if err != nil {
		t.Fatal(err)
	}
	judge := cycle.Follow(c.First(1), c.First(1).Whole(), nil)
	changes := follow(t, b, driver.Default(0.01), 592, func(at float64) bool { return at >= 589 }, func(at float64) float64 {
		now := int64(math.Round(at * 1e9))
		judge.Add(now, b.Get("v"))
		if got, want := b.Get("target"), c.Target.Eval(now); at < 589 && !(math.Abs(got-want) < 1e-9) {
			t.Fatalf("at %g s: target %v m/s, want %v", at, got, want)
		}
		return 0
	})
	if r := judge.Result(); !r.Passed() {
		t.Errorf("%+v, want no violation", r.Judgement)
	}
	if changes[0] < 10000 || changes[1] < 3000 || changes[2] < 6 || b.Get("lever") != 0 {
		t.Errorf("accelerator, brake and lever changed %d times, and the lever ends at %v; want a driven cycle that ends in park",
			changes, b.Get("lever"))
	}
}

// writeCycle writes a cycle with a launch, a stop and a drive backwards, and returns the file.
func writeCycle(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "yard.csv")
	text := "time[s],v[km/h]\n0,0\n3,0\n8,30\n14,30\n14.5,10\n17,0\n20,0\n24,-8\n28,-8\n30,0\n33,0\n40,60\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestElementIsTheDriverForAnySettings pushes the car about: the pedals saturate, the integrator stands, the car rolls
// back and is driven backwards.
func TestElementIsTheDriverForAnySettings(t *testing.T) {
	file := writeCycle(t)
	random := rand.New(rand.NewPCG(1, 2))
	var changes [3]int
	for range 12 {
		s := driver.Default(0.01)
		s.Preview, s.Proportional, s.Integral = 0.1+random.Float64(), 3*random.Float64(), random.Float64()
		s.Acceleration, s.Knee, s.Deceleration = 1+4*random.Float64(), 1+5*random.Float64(), 1+8*random.Float64()
		s.Hold = random.Float64()
		b := modeltest.New(t, car(fmt.Sprintf("cycle: %q, preview: %v, proportional: %v, integral: %v, acceleration: %v, "+
			"knee: %v, deceleration: %v, hold: %v", file, s.Preview, s.Proportional, s.Integral, s.Acceleration, s.Knee,
			s.Deceleration, s.Hold)), period)
		force := 0.0
		for i, n := range follow(t, b, s, 50, func(at float64) bool { return at >= 40 }, func(float64) float64 {
			if random.IntN(200) == 0 {
				force = 8000 * (random.Float64() - 0.5)
			}
			return force
		}) {
			changes[i] += n
		}
	}
	if changes[0] < 10000 || changes[1] < 5000 || changes[2] < 60 {
		t.Errorf("accelerator, brake and lever changed %d times", changes)
	}
}

func TestLeverIsInParkDuringASoakAndAfterTheEnd(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf("idle: {type: inertia, J: 1}\nd: {type: driver, cycle: ftp-75, speed: 0 m/s, samplePeriod: 50 ms}",
		"lever: {signal: d.lever}"), 50*time.Millisecond)
	for _, c := range []struct{ at, lever float64 }{{10, 3}, {1360, 3}, {1373, 0}, {1965, 0}, {1975, 3}, {2470, 3}, {2480, 0}} {
		b.To(c.at, nil).Is("lever", c.lever, 0)
	}
}

func TestDriverDecidesAtItsPeriod(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf("idle: {type: inertia, J: 1}\nd: {type: driver, cycle: ftp-75, speed: 0 m/s, samplePeriod: 50 ms}",
		"lever: {signal: d.lever}\nbrake: {signal: d.brake}\naccelerator: {signal: d.accelerator}"), 25*time.Millisecond)
	last, changed := b.Get("brake"), 0
	b.To(30, func(float64) {
		if b.Get("brake") != last {
			changed++
			if last = b.Get("brake"); b.Ticks%2 != 1 {
				t.Errorf("the brake moves at tick %d, between two decisions", b.Ticks)
			}
		}
	}).Is("lever", 3, 0)
	if changed == 0 {
		t.Error("the brake never moves")
	}
}

func TestDriverRefusesWrongParametersInOneLine(t *testing.T) {
	long := filepath.Join(t.TempDir(), "one.csv")
	if err := os.WriteFile(long, []byte("time[s],v[km/h]\n1,0\n2,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ options, want string }{
		{"cycle: wltc-3c", `unknown cycle "wltc-3c" (did you mean wltc-3b?): give wltc-3b, ftp-75, nedc, hwfet or a file, FILE.csv`},
		{"preview: 1 s", "driver needs cycle"},
		{"cycle: none.csv", "none.csv"},
		{"cycle: " + long, "the first row is at 1 s: a cycle begins at 0 s"},
		{"cycle: hwfet, phases: 2", "phases 2 is no number of phases of hwfet, 1 to 1"},
		{"cycle: nedc, phases: 2.5", "phases 2.5 is no number of phases of nedc, 1 to 5"},
		{"cycle: nedc, phases: 0", "phases 0 is below 1"},
		{"cycle: nedc, preview: 0", "preview 0 s is not positive"},
		{"cycle: nedc, preview: 61 s", "preview 61 s is outside 1e-9 to 60 s"},
		{"cycle: nedc, preview: 2 m", "preview"},
		{"cycle: nedc, proportional: -1", "proportional -1 1/s is negative"},
		{"cycle: nedc, integral: 1e7", "integral 10000000 1/s2 is outside 0 to 1e6 1/s2"},
		{"cycle: nedc, acceleration: 0", "acceleration 0 m/s2 is not positive"},
		{"cycle: nedc, knee: -1", "knee -1 m/s is not positive"},
		{"cycle: nedc, deceleration: 1e9", "deceleration 1e+09 m/s2 is outside"},
		{"cycle: nedc, hold: 1.2", "hold 1.2 is outside 0 to 1"},
		{"cycle: nedc, samplePeriod: 2 s", "samplePeriod 2 s is outside"},
		{"cycle: nedc, tolerance: 2 km/h", `unknown key "tolerance"`},
	} {
		err := modeltest.Check(car(c.options))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "t.yaml:4:") {
			t.Errorf("%s: got  %v\nwant %s", c.options, err, c.want)
		}
	}
	sys := modeltest.System(t, car("cycle: nedc"))
	if _, err := kernel.Prepare(sys, kernel.Options{Period: 4 * time.Millisecond}); err == nil ||
		!strings.Contains(err.Error(), `element "d": samplePeriod 0.01 s is not a multiple of the step 0.004 s`) {
		t.Errorf("a step of 4 ms: %v", err)
	}
}
