package accuracy

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/model/plants"
	"lockstep/rt/virtual"
)

// The whole WLTC, 30 minutes, in virtual time: driver, car, automatic gearbox and its control unit on a bus
// with E2E protection. The log has the factor over real time.
func TestAutomaticBenchDrivesTheWholeWLTC(t *testing.T) {
	lab.RequireLong(t, "drives 30 minutes in virtual time")
	begun := time.Now()
	r, err := virtual.Simulation{Plant: "automatic-bench", Cycle: "wltc-3b", Every: 1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean || r.Ticks != 360000 || r.RxUnknown+r.RxShort+r.RxRange+r.RxBad != 0 {
		t.Errorf("%d ticks, clean %t, ended %q; frames unknown %d, short %d, out of range %d, badly protected %d",
			r.Ticks, r.Clean, r.Ended, r.RxUnknown, r.RxShort, r.RxRange, r.RxBad)
	}
	if r.Scenario == nil || !r.Scenario.Pass || len(r.Scenario.Findings) != 5 {
		t.Fatalf("%+v; want four phases and the whole cycle driven within the tolerance", r.Scenario)
	}
	for _, f := range r.Scenario.Findings {
		t.Logf("%s: %s", f.What, f.Seen)
	}
	t.Logf("%s; %.0f times real time", r.Unit, 1800/time.Since(begun).Seconds())
}

// energyElements measure the energies of automatic4: heat of oil and brake discs, work of the engine, of the
// air and of the rolling resistance.
const energyElements = `
  oil: {type: heat_capacitor, C: 16 kJ/K, T_start: 20 degC}
  discs: {type: heat_capacitor, C: 20 kJ/K, T_start: 20 degC}
  w_crank: {type: speed_sensor, flange: crank}
  v_car: {type: speed_sensor, flange: car}
  P_engine: {type: product, u: [engine.tau, w_crank]}
  E_engine: {type: integrator, u: P_engine}
  P_air: {type: product, u: [v_car, v_car, v_car]}
  E_air: {type: integrator, u: P_air, k: 0.39 N.s2/m2}
  E_roll: {type: integrator, u: {product: [176.58 N, v_car]}}

outputs:
  w_sun0: {speed: sun0}
  w_sun_small: {speed: sun_small}
  w_sun_large: {speed: sun_large}
  T_oil: {signal: oil}
  T_discs: {signal: discs}
  E_engine: {signal: E_engine}
  E_air: {signal: E_air}
  E_roll: {signal: E_roll}
`

// storedEnergy returns the kinetic energy of automatic4 and the heat in oil and discs, J, from a row of
// outputs in SI units.
func storedEnergy(row map[string]float64) float64 {
	energy := float64(16e3*row["T_oil"]) + float64(20e3*row["T_discs"]) + 1500*row["v"]*row["v"]/2
	for name, inertia := range map[string]float64{
		"w_engine": 0.25, "w_turbine": 0.022, "w_sun0": 0.002, "w_ring0": 0.005, "w_ring1": 0.1388,
		"w_sun_large": 0.009476, "w_sun_small": 0.001714, "w_out": 0.002,
	} {
		energy += inertia * row[name] * row[name] / 2
	}
	return energy
}

// The driver launches the car, shifts through the gears and brakes to a standstill, twice. What the engine
// gives is at each instant kinetic energy, heat of converter, clutches and brakes, or work against the air
// and the rolling resistance.
func TestEnergyOfADriveCycleCloses(t *testing.T) {
	dir := t.TempDir()
	read := func(name string) string {
		text, err := plants.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	plant := regexp.MustCompile(`, pressure: (C[1-5]|RC)\.pressure}`).ReplaceAllString(read("automatic4"), ", heat_port: oil$0")
	plant = strings.NewReplacer(", pressure: brake.pressure}", ", heat_port: discs, pressure: brake.pressure}",
		"    type: torque_converter\n", "    type: torque_converter\n    heat_port: oil\n", "\noutputs:\n", energyElements).Replace(plant)
	for name, text := range map[string]string{
		"car.yaml":      plant,
		"bench.yaml":    strings.Replace(read("automatic-bench"), "plant: automatic4", "plant: car.yaml", 1),
		"automatic.dbc": read("automatic.dbc"),
		"cycle.csv":     "time[s],v[km/h]\n0,0\n4,0\n20,50\n26,50\n36,0\n40,0\n70,100\n74,100\n90,0\n94,0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out.csv")
	r, err := virtual.Simulation{Plant: filepath.Join(dir, "bench.yaml"), Cycle: filepath.Join(dir, "cycle.csv"), Every: 200, SI: true, Out: out}.Run()
	if err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(i int) map[string]float64 {
		row := map[string]float64{}
		for j, text := range rows[i] {
			name, _, _ := strings.Cut(rows[0][j], "[")
			if row[name], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
		return row
	}
	start, worst := numbers(1), 0.0
	work := func(row map[string]float64) float64 { return row["E_engine"] - row["E_air"] - row["E_roll"] }
	end := numbers(len(rows) - 1)
	for i := 2; i < len(rows); i++ {
		row := numbers(i)
		gap := math.Abs(work(row) - work(start) - storedEnergy(row) + storedEnergy(start))
		if worst = max(worst, gap); !(gap <= 1e-9*end["E_engine"]) {
			t.Errorf("at %g s %g J are missing of %g J", row["time"], gap, end["E_engine"])
		}
	}
	t.Logf("engine %.4g J, air %.4g J, rolling %.4g J, oil %.4g K, discs %.4g K warmer; largest gap %.2g J; tick %v", end["E_engine"], end["E_air"],
		end["E_roll"], end["T_oil"]-start["T_oil"], end["T_discs"]-start["T_discs"], worst, r.Tick)
	if !(end["E_engine"] > 1e5 && end["T_discs"]-start["T_discs"] > 5 && end["T_oil"]-start["T_oil"] > 1) {
		t.Error("the drive is too short to heat oil and discs")
	}
}
