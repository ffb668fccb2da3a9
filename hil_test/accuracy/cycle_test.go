package accuracy

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/model/plants"
	"lockstep/rt/virtual"
)

// The whole WLTC, 30 minutes, in virtual time: driver, car, automatic gearbox and its control unit on a bus
// with E2E protection. The oil warms up from 20 degC. The log has the factor over real time.
func TestAutomaticBenchDrivesTheWholeWLTC(t *testing.T) {
	lab.RequireLong(t, "drives 30 minutes in virtual time")
	out := filepath.Join(t.TempDir(), "out.csv")
	r, err := virtual.Simulation{Plant: "automatic-bench", Cycle: "wltc-3b", Every: 200, SI: true, Out: out}.Run()
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
	rows := readRows(t, out)
	oil := rows[len(rows)-1]["T_oil"] - 273.15
	if start := rows[0]["T_oil"] - 273.15; !(start < 20.1 && oil > 50 && oil < 100) {
		t.Errorf("the oil warms from %.1f to %.1f degC, want from 20 degC to its working temperature", start, oil)
	}
	t.Logf("%s; oil at %.1f degC; %.0f times real time", r.Unit, oil, 1800/r.Real)
}

// energyElements measure the energies of automatic-car: heat of the brake discs, work of the engine, of the air and
// of the rolling resistance, heat that the cooler takes.
const energyElements = `
  discs: {type: heat_capacitor, C: 20 kJ/K, T_start: 20 degC}
  w_crank: {type: speed_sensor, flange: crank}
  v_car: {type: speed_sensor, flange: car}
  P_engine: {type: product, u: [engine.tau, w_crank]}
  E_engine: {type: integrator, u: P_engine}
  P_air: {type: product, u: [v_car, v_car, v_car]}
  E_air: {type: integrator, u: P_air, k: 0.39 N.s2/m2}
  E_roll: {type: integrator, u: {product: [176.58 N, v_car]}}
  E_cooler: {type: integrator, u: {sum: [oil, -293.15 K]}, k: 25 W/K}

outputs:
  w_sun0: {speed: sun0}
  w_sun_small: {speed: sun_small}
  w_sun_large: {speed: sun_large}
  T_discs: {signal: discs}
  E_engine: {signal: E_engine}
  E_air: {signal: E_air}
  E_roll: {signal: E_roll}
  E_cooler: {signal: E_cooler}
`

// kineticEnergy returns the kinetic energy of automatic-car, J, from a row of outputs in SI units.
func kineticEnergy(row map[string]float64) float64 {
	energy := 1500 * row["v"] * row["v"] / 2
	for name, inertia := range map[string]float64{
		"w_engine": 0.25, "w_turbine": 0.022, "w_sun0": 0.002, "w_ring0": 0.005, "w_ring1": 0.1388,
		"w_sun_large": 0.009476, "w_sun_small": 0.001714, "w_out": 0.002,
	} {
		energy += inertia * row[name] * row[name] / 2
	}
	return energy
}

// readRows reads the outputs of a simulation.
func readRows(t *testing.T, file string) (list []map[string]float64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, texts := range rows[1:] {
		row := map[string]float64{}
		for j, text := range texts {
			name, _, _ := strings.Cut(rows[0][j], "[")
			if row[name], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, row)
	}
	return list
}

// driveWithEnergies drives automatic-car with energyElements through a cycle, and returns its outputs every second.
func driveWithEnergies(t *testing.T, cycle string) []map[string]float64 {
	t.Helper()
	dir := t.TempDir()
	read := func(name string) string {
		text, err := plants.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, text := range map[string]string{
		"car.yaml": strings.NewReplacer(", pressure: brake.pressure}", ", heat_port: discs, pressure: brake.pressure}",
			"\noutputs:\n", energyElements).Replace(read("automatic-car")),
		"bench.yaml":    strings.Replace(read("automatic-bench"), "plant: automatic-car", "plant: car.yaml", 1),
		"automatic.dbc": read("automatic.dbc"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out.csv")
	r, err := virtual.Simulation{Plant: filepath.Join(dir, "bench.yaml"), Cycle: cycle, Every: 200, SI: true, Out: out}.Run()
	if err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	return readRows(t, out)
}

// checkEnergies checks at every row that the losses of the gearbox are the heat in the oil and the heat that the
// cooler has taken. The losses are what the engine gives, less the kinetic energy, the work against the air and the
// rolling resistance, and the heat of the brake discs.
func checkEnergies(t *testing.T, rows []map[string]float64) {
	t.Helper()
	start, end, worst := rows[0], rows[len(rows)-1], 0.0
	for _, row := range rows {
		since := func(name string) float64 { return row[name] - start[name] }
		lost := since("E_engine") - since("E_air") - since("E_roll") - kineticEnergy(row) + kineticEnergy(start) - 20e3*since("T_discs")
		gap := math.Abs(lost - 16e3*since("T_oil") - since("E_cooler"))
		if worst = max(worst, gap); !(gap <= 1e-9*end["E_engine"]) {
			t.Errorf("at %g s the gearbox has lost %g J, and oil and cooler have taken %g J", row["time"], lost, 16e3*since("T_oil")+since("E_cooler"))
		}
	}
	t.Logf("engine %.4g J, air %.4g J, rolling %.4g J, cooler %.4g J; oil %.4g K, discs %.4g K warmer; largest gap %.2g J",
		end["E_engine"], end["E_air"], end["E_roll"], end["E_cooler"], end["T_oil"]-start["T_oil"], end["T_discs"]-start["T_discs"], worst)
}

// The driver launches the car, shifts through the gears and brakes to a standstill, twice.
func TestEnergyOfADriveCycleCloses(t *testing.T) {
	cycle := filepath.Join(t.TempDir(), "cycle.csv")
	if err := os.WriteFile(cycle, []byte("time[s],v[km/h]\n0,0\n4,0\n20,50\n26,50\n36,0\n40,0\n70,100\n74,100\n90,0\n94,0\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	rows := driveWithEnergies(t, cycle)
	checkEnergies(t, rows)
	start, end := rows[0], rows[len(rows)-1]
	if !(end["E_engine"] > 1e5 && end["T_discs"]-start["T_discs"] > 5 && end["T_oil"]-start["T_oil"] > 1) {
		t.Error("the drive is too short to heat oil and discs")
	}
}
