package accuracy

import (
	"math"
	"path/filepath"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/rt/virtual"
)

// The double-clutch bench shifts through all gears and back in virtual time. The log has a row for each shift: how long
// the shafts carry less than half of the torque before it, the work that heats each clutch, and the largest jerk.
func TestDoubleClutchBenchShiftsThroughAllGears(t *testing.T) {
	lab.RequireLong(t, "drives 42 s with a tick of 5 ms in virtual time")
	out := filepath.Join(t.TempDir(), "out.csv")
	r, err := virtual.Simulation{Plant: "dct7-bench", Scenario: "dct7-shifts", Every: 1, SI: true, Out: out}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean || r.Scenario == nil || !r.Scenario.Pass {
		t.Fatalf("%+v", r.Scenario)
	}
	rows := readRows(t, out)
	const period, before, after = 0.005, 40, 160 // ticks
	t.Logf("%8s %6s %14s %8s %8s %8s", "time s", "shift", "interruption s", "K1 J", "K2 J", "m/s3")
	shifts, gear, last := 0, 1, 0
	for i := before; i < len(rows)-after; i++ {
		from, to := gear, carrier(rows[i])
		if from == to || to == 0 || i < last+80 { // where both clutches carry little, they alternate
			continue
		}
		gear, last = to, i
		shifts++
		usual, less, jerk := math.Abs(rows[i-before]["T_shaft"]), 0, 0.0
		for j := i - before + 1; j < i+after; j++ {
			if math.Abs(rows[j]["T_shaft"]) < usual/2 {
				less++
			}
			jerk = max(jerk, math.Abs(rows[j]["a"]-rows[j-1]["a"])/period)
		}
		w1, w2 := rows[i+after]["W_K1"]-rows[i-before]["W_K1"], rows[i+after]["W_K2"]-rows[i-before]["W_K2"]
		t.Logf("%8.2f %3d-%d  %14.3f %8.0f %8.0f %8.0f", float64(i)*period, from, to, float64(less)*period, w1, w2, jerk)
		// Where gears rattle beyond the budget of events, energy may change within a minimum substep.
		if !(w1+w2 < 20e3) || !(min(w1, w2) >= -1e-2*max(w1, w2)) {
			t.Errorf("the shift %d-%d heats the clutches by %g and %g J", from, to, w1, w2)
		}
	}
	if shifts < 12 || gear != 1 {
		t.Errorf("%d shifts to gear %d, want those from first to seventh gear and back", shifts, gear)
	}
}

// carrier returns the gear whose clutch carries the larger torque, 0: none.
func carrier(row map[string]float64) int {
	k1, k2 := math.Abs(row["tau_K1"]), math.Abs(row["tau_K2"])
	engaged := func(plus, minus string, gears [4]int) int {
		for i, name := range []string{plus, minus} {
			switch s := row[name]; {
			case s > 9e-3:
				return gears[2*i]
			case s < -9e-3:
				return gears[2*i+1]
			}
		}
		return 0
	}
	switch {
	case max(k1, k2) < 1:
		return 0
	case k1 > k2:
		return engaged("s_S13", "s_S57", [4]int{1, 3, 5, 7})
	}
	return engaged("s_S24", "s_S6R", [4]int{2, 4, 6, 8})
}
