package accuracy

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/rt/report"
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

// engagedGear returns the gear that the sleeves of a half of dct7 have engaged, 0: none; 8 is reverse.
func engagedGear(row map[string]float64, half int) int {
	for gear := 2 - half; gear <= 8; gear += 2 {
		if name := dctSleeve[gear]; row["s_"+name[:3]]*dctSide[name[3:]] > 9e-3 {
			return gear
		}
	}
	return 0
}

// carrier returns the gear whose clutch carries the larger torque, 0: none.
func carrier(row map[string]float64) int {
	k1, k2 := math.Abs(row["tau_K1"]), math.Abs(row["tau_K2"])
	switch {
	case max(k1, k2) < 1:
		return 0
	case k1 > k2:
		return engagedGear(row, 1)
	}
	return engagedGear(row, 0)
}

// dctRatio holds the speed of the input shaft of dct7 over that of the differential, by gear, from the teeth.
var dctRatio = [8]float64{0, 49. / 13 * 71 / 16, 50. / 22 * 71 / 16, 49. / 32 * 71 / 16, 46. / 41 * 71 / 16, 40. / 34 * 71 / 22, 39. / 41 * 71 / 22, 35. / 44 * 71 / 22}

// dctSleeve holds the synchroniser of each gear of dct7, dctSide the direction of its sleeve.
var (
	dctSleeve = [9]string{1: "S13.p", 3: "S13.n", 2: "S24.p", 4: "S24.n", 5: "S57.p", 7: "S57.n", 6: "S6R.p", 8: "S6R.n"}
	dctSide   = map[string]float64{".p": 1, ".n": -1}
)

// dctShift is what a shift of dct7-bench costs.
type dctShift struct {
	by    []int     // gears that carried the torque, from the first to the last
	took  float64   // from the wish to the locked clutch of the new gear, s; NaN: it has not locked
	gap   float64   // time with less than half of the smaller torque of the shafts before and after, s
	least float64   // least torque of the shafts over the smaller one
	jerk  float64   // largest change of the acceleration in 20 ms, m/s3
	work  []float64 // heat of the clutch in each of these gears, J
	cones float64   // heat of the cones of the synchronisers of these gears, J
	rows  []map[string]float64
}

// path returns the gears of a shift, as 7-6-3.
func (s dctShift) path() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(s.by), " ", "-"), "[]")
}

// total returns the heat of both clutches, J.
func (s dctShift) total() (sum float64) {
	for _, w := range s.work {
		sum += w
	}
	return sum
}

// dctBegin is the row of the wish.
const dctBegin = 140

// driveDct runs dct7-bench in D from a gear and a speed. The driver wants another gear at a time wish, s. The throttle has
// 15 % at the start and then the rows throttle of s and %; checks are the faults and expectations.
func driveDct(t *testing.T, length string, from, to int, kmh, wish float64, throttle, checks string) (*report.Report, []map[string]float64) {
	t.Helper()
	dir := t.TempDir()
	scenario, out := filepath.Join(dir, "drive.yaml"), filepath.Join(dir, "out.csv")
	text := fmt.Sprintf(`scenario: drive
for: %[1]s
start: {gear: %[2]d, v: %[4]g km/h}
stimuli:
  lever: 3
  gear_wish: {table: [[0, %[2]d], [%[5]g, %[2]d], [%[5]g, %[3]d]], units: [s, "1"]}
  throttle: {table: [[0, 15], %[6]s], units: [s, "%%"]}
  brake.pressure: 0 bar
%[7]s`, length, from, to, kmh, wish, throttle, checks)
	if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := virtual.Simulation{Plant: "dct7-bench", Scenario: scenario, Every: 1, SI: true, Out: out}.Run()
	if err != nil {
		t.Fatalf("%d-%d: %v", from, to, err)
	}
	return r, readRows(t, out)
}

// dctShiftOf runs dct7-bench through one shift at a wish. The throttle, %, goes from that of no torque to its value within
// a period of the shafts in first gear, so that they do not swing at the wish.
func dctShiftOf(t *testing.T, from, to int, kmh, throttle float64) dctShift {
	t.Helper()
	_, rows := driveDct(t, "6.2 s", from, to, kmh, 0.7, fmt.Sprintf("[0.6, %g]", throttle), "expect:\n  - {no_dtc: any, from: 0.1 s, to: 6.2 s}\n")
	const h, ahead = 0.005, 4 // step, rows of 20 ms
	s := dctShift{took: math.NaN(), rows: rows, by: []int{from}}
	end, holds := dctBegin, 0
	mode := map[bool]string{true: "K1.mode", false: "K2.mode"}[to%2 == 1]
	for ; holds < 20 && end < len(rows)-100; end++ { // the clutch of the new gear is locked for 0.1 s
		now := carrier(rows[end])
		if now != 0 && !slices.Contains(s.by, now) {
			s.by = append(s.by, now)
		}
		if holds++; now != to || rows[end][mode] != 0 {
			holds = 0
		}
	}
	if holds == 20 {
		s.took = float64(end-20-dctBegin) * h
	}
	mean := func(first, last int) (sum float64) {
		for _, r := range rows[first:last] {
			sum += r["T_shaft"] / float64(last-first)
		}
		return sum
	}
	usual := min(mean(dctBegin-20, dctBegin), mean(end+60, end+80))
	s.least = math.Inf(1)
	for k := dctBegin; k < end+60; k++ {
		if r := rows[k]; usual > 0 {
			s.least = min(s.least, r["T_shaft"]/usual)
			if r["T_shaft"] < usual/2 {
				s.gap += h
			}
		}
		s.jerk = max(s.jerk, math.Abs(rows[k+ahead]["a"]-rows[k]["a"])/(ahead*h))
	}
	s.work = make([]float64, len(s.by))
	for k := dctBegin; k < end+60; k++ {
		for half, name := range []string{"W_K2", "W_K1"} {
			gear := engagedGear(rows[k], half)
			if i := slices.Index(s.by, gear); i >= 0 {
				s.work[i] += rows[k+1][name] - rows[k][name]
			}
		}
		for _, gear := range s.by[1:] {
			cone := dctSleeve[gear] + ".cone"
			s.cones += math.Abs(rows[k][cone+".tau"]*rows[k][cone+".w_rel"]) * h
		}
	}
	return s
}

// A downshift under power, from one half of the gearbox to the other, drives the wheels throughout: the
// shafts keep a share of their torque. The engine has the speed of the new gear before the on-coming
// clutch carries, and it rises while the off-going clutch slips below its torque.
func TestDoubleClutchDownshiftsUnderPowerWithoutInterruption(t *testing.T) {
	for _, c := range []struct {
		from, to      int
		kmh, throttle float64
	}{{3, 2, 40, 60}, {5, 4, 60, 60}, {7, 6, 80, 60}, {7, 4, 60, 80}, {5, 2, 40, 80}, {6, 3, 60, 80}} {
		s := dctShiftOf(t, c.from, c.to, c.kmh, c.throttle)
		t.Logf("%d-%d: %.2f s, least torque %.2f, gap %.3f s, %.0f J, %.0f m/s3", c.from, c.to, s.took, s.least, s.gap, s.total(), s.jerk)
		if !(s.took < 1.2) || s.path() != fmt.Sprintf("%d-%d", c.from, c.to) || !(s.least > 0.1) {
			t.Errorf("%d-%d: by %s in %g s, least torque of the shafts %.2f of the usual one", c.from, c.to, s.path(), s.took, s.least)
		}
		on := map[bool]string{true: "tau_K1", false: "tau_K2"}[c.to%2 == 1]
		start, carries := s.rows[dctBegin], dctBegin
		for carries < len(s.rows)-1 && math.Abs(s.rows[carries][on]) < 5 {
			carries++
		}
		r := s.rows[carries] // the shafts swing by some percent of the speed
		if synchronous := dctRatio[c.to] * r["w_out"]; !(r["w_engine"] > 0.98*synchronous) || !(r["w_engine"] > 1.2*start["w_engine"]) {
			t.Errorf("%d-%d: the engine has %.1f rad/s when the new clutch carries, %.1f before the shift; the new gear needs %.1f",
				c.from, c.to, r["w_engine"], start["w_engine"], synchronous)
		}
		// While the off-going clutch slips, the engine accelerates by what it does not carry.
		slipping := (dctBegin + carries) / 2
		r, next := s.rows[slipping], s.rows[slipping+1]
		rate := (next["w_engine"] - r["w_engine"]) / 0.005
		if left := r["T_engine"] - r["tau_K1"] - r["tau_K2"]; !(rate > 100) || !(math.Abs(left/rate-0.22) < 0.02) {
			t.Errorf("%d-%d: %g N.m accelerate the engine by %g rad/s2, want those of 0.22 kg.m2", c.from, c.to, left, rate)
		}
	}
}

// A downshift under power within one half of the gearbox goes by a bridge gear, whose clutch drives the wheels while the
// sleeves change the gear.
func TestDoubleClutchBridgesADownshiftWithinOneHalf(t *testing.T) {
	for _, c := range []struct {
		from, to      int
		kmh, throttle float64
		by            string
	}{{7, 3, 60, 100, "7-6-3"}, {5, 3, 50, 60, "5-4-3"}, {4, 2, 40, 80, "4-3-2"}} {
		s := dctShiftOf(t, c.from, c.to, c.kmh, c.throttle)
		t.Logf("%s: %.2f s, least torque %.2f, gap %.3f s, %.0f J, %.0f m/s3", s.path(), s.took, s.least, s.gap, s.total(), s.jerk)
		if !(s.took < 1.5) || s.path() != c.by || !(s.least > 0.1) {
			t.Errorf("%d-%d: by %s in %g s, least torque of the shafts %.2f of the usual one", c.from, c.to, s.path(), s.took, s.least)
		}
	}
}

// A clutch that does not close lets the engine run at most 80 rad/s, 760 rpm, beyond the speeds of the gears of the shift.
// The unit stores P0811, and the car drives on in the half of the gearbox that works.
func TestDoubleClutchDrivesOnWithoutAClutch(t *testing.T) {
	lab.RequireLong(t, "drives 120 s with a tick of 5 ms in virtual time")
	for _, c := range []struct {
		open          int // number of the clutch
		from, to      int
		kmh, throttle float64
	}{
		{1, 4, 5, 50, 50}, {1, 2, 3, 40, 100}, {2, 3, 4, 50, 100}, {2, 1, 6, 30, 50}, // upshifts
		{1, 4, 3, 50, 50}, {1, 6, 1, 36, 100}, {2, 5, 2, 50, 100}, // downshifts
		{1, 4, 2, 40, 80}, {1, 2, 4, 40, 80}, {2, 7, 3, 60, 50}, {2, 3, 5, 50, 50}, // the bridge gear
		{1, 3, 3, 40, 100}, {2, 6, 6, 60, 50}, // no shift: the closed clutch opens
		{1, 4, 5, 50, 0}, {2, 5, 4, 50, 0}, // coasting
	} {
		r, rows := driveDct(t, "8 s", c.from, c.to, c.kmh, 1, fmt.Sprintf("[0.6, %g]", c.throttle), fmt.Sprintf(`faults:
  - {input: K%d.pressure, stuck: 0 bar, at: 0.9 s}
expect:
  - {dtc: P0811, after: 1 s, within: 6 s}
  - {did: limp_home, is: "yes", from: 7 s, to: 8 s}
`, c.open))
		beyond := math.Inf(-1)
		for _, r := range rows[180:] {
			fastest := max(dctRatio[c.from], dctRatio[c.to], dctRatio[carrier(r)])
			beyond = max(beyond, r["w_engine"]-max(r["v"]/0.31, r["w_out"])*fastest)
		}
		last := rows[len(rows)-1]
		gear := carrier(last)
		t.Logf("K%d, %d-%d at %g km/h, %g %%: %.0f rad/s beyond, gear %d at the end", c.open, c.from, c.to, c.kmh, c.throttle, beyond, gear)
		if !r.Scenario.Pass || !(beyond < 80) || gear == 0 || gear%2 == c.open%2 {
			t.Errorf("K%d, %d-%d at %g km/h, %g %%: %.0f rad/s beyond, gear %d at the end, %+v", c.open, c.from, c.to, c.kmh, c.throttle, beyond, gear, r.Scenario)
		}
	}
}

// Without K1 the engine speeds up when the driver starts; then the car starts in second gear.
func TestDoubleClutchStartsInSecondGearWithoutK1(t *testing.T) {
	scenario := filepath.Join(t.TempDir(), "start.yaml")
	const text = `scenario: start
for: 8 s
stimuli:
  lever: 3
  throttle: {table: [[0, 0], [1, 0], [1.1, 40]], units: [s, "%"]}
  brake.pressure: 0 bar
faults:
  - {input: K1.pressure, stuck: 0 bar, at: 0.1 s}
expect:
  - {dtc: P0811, after: 1 s, within: 2 s}
  - {did: gear, is: second, from: 3 s, to: 8 s}
  - {value: w_engine, below: 500 rad/s}
  - {answer: v > 20 km/h, after: 1 s, within: 7 s}
`
	if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := virtual.Simulation{Plant: "dct7-bench", Scenario: scenario, Every: 1}.Run()
	if err != nil || !r.Clean || !r.Scenario.Pass {
		t.Fatal(err, r.Scenario)
	}
}

// A driver who changes the throttle amid a shift gets it finished: no trouble code of the sound clutches, and the engine
// runs at most 30 rad/s beyond the speeds of the gears. Where the clutch of the new gear does not close, it runs at most
// 80 rad/s beyond them, and the gear before drives on.
func TestDoubleClutchFollowsTheThrottleAmidAShift(t *testing.T) {
	for _, c := range []struct {
		from, to            int
		kmh, before, behind float64 // throttle, %
		amid                float64 // from the wish to the change, s
		open                int     // number of a clutch that does not close; 0: none
	}{
		{4, 5, 50, 0, 80, 0.05, 0}, {4, 5, 50, 0, 80, 0.35, 0}, // the engine has left fourth gear
		{5, 4, 50, 0, 80, 0.05, 0}, {5, 4, 50, 0, 80, 0.35, 0}, {7, 3, 60, 0, 80, 0.5, 0}, // the engine speeds up by itself
		{1, 2, 20, 100, 10, 0.5, 0}, // the shafts swing when the throttle closes
		{5, 4, 50, 0, 80, 0.2, 2}, {7, 4, 60, 0, 80, 0.5, 2},
	} {
		checks := "expect:\n  - {no_dtc: any, from: 0.1 s, to: 6 s}\n"
		last, most := c.to, 30.0
		if c.open > 0 {
			last, most = c.from, 80
			checks = fmt.Sprintf("faults:\n  - {input: K%d.pressure, stuck: 0 bar, at: 0.9 s}\nexpect:\n  - {dtc: P0811, after: 1 s, within: 2 s}\n", c.open)
		}
		r, rows := driveDct(t, "6 s", c.from, c.to, c.kmh, 1,
			fmt.Sprintf("[0.6, %[1]g], [%[2]g, %[1]g], [%[3]g, %[4]g]", c.before, 1+c.amid, 1.05+c.amid, c.behind), checks)
		beyond := math.Inf(-1)
		for _, r := range rows[200:] {
			beyond = max(beyond, r["w_engine"]-max(r["v"]/0.31, r["w_out"])*max(dctRatio[c.from], dctRatio[c.to]))
		}
		gear := carrier(rows[len(rows)-1])
		t.Logf("K%d open, %d-%d, %g to %g %% after %g s: %.0f rad/s beyond, gear %d", c.open, c.from, c.to, c.before, c.behind, c.amid, beyond, gear)
		if !r.Scenario.Pass || !(beyond < most) || gear != last {
			t.Errorf("K%d open, %d-%d, %g to %g %% after %g s: %.0f rad/s beyond, gear %d, %+v", c.open, c.from, c.to, c.before, c.behind, c.amid, beyond, gear, r.Scenario)
		}
	}
}
