package plants_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/truth"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// judderText is the text of an embedded plant with some of it replaced; each old part must
// be there once.
func judderText(t testing.TB, name string, replace ...string) string {
	t.Helper()
	data, err := plants.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(replace); i += 2 {
		if n := strings.Count(text, replace[i]); n != 1 {
			t.Fatalf("%s has %q %d times", name, replace[i], n)
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return text
}

// The truth has bodies at any angle. The plant is linearised about the standing vehicle, with laws
// for the terms of second order. No contact slips in 20 s.
func TestJudderMatchesTheNonlinearVehicle(t *testing.T) {
	tr := truth.Read(t, "testdata/E1_case1.csv").AfterEvents()
	loose := map[string]float64{
		"F_f2": 3e-3, // 0.09 N of 41 N: the inertia of the rear wheel, J/R² = 32 kg, along the second order is left out
		"y":    1e-2, // 0.7 um of 0.14 mm: hubs are taken to accelerate as all of the vehicle does
	}
	for _, period := range []time.Duration{5 * time.Millisecond, time.Millisecond} {
		worst, events, _ := run(t, load(t, "judder"), kernel.Options{Period: period}, tr)
		if len(events) > 0 {
			t.Errorf("%v: %d transitions, want none", period, len(events))
		}
		var seen []string
		for _, name := range tr.Names[1:] {
			e, ok := worst[name]
			if !ok {
				continue
			}
			seen = append(seen, fmt.Sprintf("%s %.1e", name, e))
			tol := 1e-3
			if l, ok := loose[name]; ok {
				tol = l
			}
			if !(e <= tol) {
				t.Errorf("%v: %s is off by %.2g of its range, more than %g", period, name, e, tol)
			}
		}
		if len(seen) != 17 {
			t.Errorf("%d columns are compared, want 17: %v", len(seen), seen)
		}
		t.Logf("%v: error over range: %s", period, strings.Join(seen, ", "))
	}
}

// A hub stays on its axis: the joints are eliminated, not stabilised, so nothing drifts
// but by the rounding of positions of 167 m.
func TestJudderJointsDoNotDrift(t *testing.T) {
	text := judderText(t, "judder") + `  hub1: {position: front.hub.x}
  mount1: {position: car.front.x}
  hub2: {position: rear.hub.x}
  mount2: {position: car.rear.x}
`
	tables, err := kernel.Prepare(assembled(t, "judder", []byte(text)), kernel.Options{Period: 5 * time.Millisecond, Driven: []bool{true, true}})
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(tables)
	y, u := make([]float64, len(tables.Outputs)), []float64{323.47, 320}
	last := len(y)
	for i, o := range tables.Outputs {
		if o.Name == "hub1" {
			last = i
		}
	}
	k.Output(y)
	start := [2]float64{y[last] - y[last+1], y[last+2] - y[last+3]}
	drift, most, sticks := 0.0, 0.0, 0
	for range 4000 {
		k.Step(y, u)
		for _, e := range k.Events() {
			if e.To == kernel.Stuck {
				sticks++
			}
		}
		for i, s := range start {
			d := math.Abs(y[last+2*i] - y[last+2*i+1] - s)
			if !(d <= 1e-12) {
				t.Fatalf("joint %d is %.2g m off its axis after %g m", i+1, d, y[last])
			}
			drift = max(drift, d)
		}
		most = max(most, y[last])
	}
	if !(most >= 100) || !(sticks >= 100) {
		t.Errorf("it came %g m far only, and the clutch stuck %d times", most, sticks)
	}
	t.Logf("drift %.1e m over %.0f m with a clutch that stuck %d times", drift, most, sticks)
}

// judder-ice.yaml is judder.yaml with other numbers and another head comment.
func TestJudderOnIceDiffersInItsNumbersOnly(t *testing.T) {
	body := func(text string) string { return text[strings.Index(text, "plant: "):] }
	want := body(judderText(t, "judder",
		"plant: judder\n", "plant: judder-ice\n",
		"about: Car whose clutch judders, body and wheels in the plane, rolling at 5 m/s\n", "about: Car backwards on ice whose driven wheel sticks and slips\n",
		"mu_0: 0.8                       # dry road: sticking", "mu_0: 0.1                       # ice: sticking",
		"mu: 0.75                        # and sliding", "mu: 0.07                        # and sliding",
		"v_0: 5 m/s\n", "v_0: -5 m/s\n", "default: 200}", "default: -168.48}"))
	if have := body(judderText(t, "judder-ice")); have != want {
		t.Error("judder-ice.yaml differs from judder.yaml by more than its road, speed and torque")
	}
}

// A wheel in the air has no normal force and no traction (judder paper, eq. 5).
func TestJudderWheelLiftsOff(t *testing.T) {
	text := judderText(t, "judder", "y_start: h, phi_start: 0,", "y_start: h, phi_start: 0, v_y_start: 3 m/s,")
	tables, err := kernel.Prepare(assembled(t, "judder", []byte(text)), kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(tables)
	column := map[string]int{}
	for i, o := range tables.Outputs {
		column[o.Name] = i
	}
	y, u := make([]float64, len(tables.Outputs)), make([]float64, len(tables.Inputs))
	flying := 0
	for range 600 {
		k.Step(y, u)
		load, push := y[column["F_N1"]], y[column["F_f1"]]
		if !(load >= 0) || !(math.Abs(push) <= 0.8*load*(1+1e-9)+1e-9) {
			t.Fatalf("normal force %g N, tangential %g N", load, push)
		}
		if load == 0 {
			flying++
		}
	}
	if flying < 5 || !(math.Abs(y[column["F_N1"]]+y[column["F_N2"]]-2*7161.3) < 300) {
		t.Errorf("%d ticks in the air, then %g and %g N on the road", flying, y[column["F_N1"]], y[column["F_N2"]])
	}
	t.Logf("%d ticks in the air", flying)
}
