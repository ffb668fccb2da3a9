package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/yamlfile"
	"lockstep/rt/virtual"
)

// rotor is a wheel that a brake stops from speed w: it slides until J·w/tau, with tau = mu·fn at a
// radius of 1 m.
const rotor = `plant: rotor
inputs:
  fn: {unit: N, min: 0, max: 1000, default: {table: [[0, 100], [10, 100]]}}
elements:
  wheel: {type: inertia, J: 2 kg.m2, w_start: 100 rad/s}
  brake: {type: brake, flange: wheel, mu: 0.5, cgeo: 1 m, fn: fn}
  push: {type: torque, flange: wheel, tau: 0}
outputs:
  w: {speed: wheel}
  phi: {angle: wheel}
  heat: {torque: brake}
`

// folder creates a folder with the rotor and a sweep of it.
func folder(t testing.TB, text string) (file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "sweep.yaml")
	for name, text := range map[string]string{file: text, filepath.Join(dir, "rotor.yaml"): rotor} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func load(t testing.TB, file string) *Sweep {
	t.Helper()
	s, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// do runs a shard.
func do(t testing.TB, s *Sweep, dir string, workers int, p Shard) *Outcome {
	t.Helper()
	o, err := (&Run{Sweep: s, Shard: p, Dir: dir, Workers: workers, Notes: io.Discard}).Do()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// get returns a column of the table; null is NaN.
func (o *Outcome) get(t testing.TB, name string) (list []float64) {
	t.Helper()
	i := slices.IndexFunc(o.Head.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no column %s", name)
	}
	for _, row := range o.records {
		v := math.NaN()
		if !row[i].IsNull() {
			v = row[i].Double()
		}
		list = append(list, v)
	}
	return list
}

func TestSlidingBrakeMatchesItsClosedForm(t *testing.T) {
	o := do(t, load(t, folder(t, `sweep: slide
plant: rotor.yaml
step: 5 ms
for: 10 s
parameters:
  brake.mu: {from: 0.3, to: 0.6, steps: 4}
  F: {of: ["fn.default.table[0][1]", "fn.default.table[1][1]"], values: [100 N, 0.2 kN]}
  w0: {of: wheel.w_start, values: [50, 100]}
results:
  turns: {final: phi}
  stopped: {first: w < 0.001 rad/s}
  rests: {settles: w, within: 0.1 rpm, of: 0}
  heat: {integral: brake.tau*brake.w_rel, unit: kJ}
  mean: {mean: w}
  rms: {rms: w}
  top: {max: w, unit: rpm}
  low: {min: w, from: 1 s, to: 2 s}
  locks: {count: transitions}
  slows: {count: w < 10 rad/s}
`)), t.TempDir(), 2, Shard{0, 1, ""})
	if o.Rows != 16 || o.Failed != 0 {
		t.Fatalf("%d cases, %d failed", o.Rows, o.Failed)
	}
	const J, h, length = 2.0, 0.005, 10.0
	within := func(i int, what string, got, want, tol float64) {
		t.Helper()
		if !scalar.EqualWithinAbs(got, want, tol) {
			t.Errorf("case %d: %s is %.9g, want %.9g within %.2g", i, what, got, want, tol)
		}
	}
	for i := range o.Rows {
		mu, fn, w0 := o.get(t, "brake.mu")[i], o.get(t, "F")[i], o.get(t, "w0")[i]
		if want := []float64{0.3, 0.4, 0.5, 0.6}[i/4]; !scalar.EqualWithinRel(mu, want, 1e-15) || fn != []float64{100, 200}[i/2%2] || w0 != []float64{50, 100}[i%2] {
			t.Fatalf("case %d is of mu %g, fn %g, w0 %g: the last parameter is not the fastest", i, mu, fn, w0)
		}
		tau := mu * fn
		stop := J * w0 / tau
		within(i, "angle", o.get(t, "turns")[i], w0*stop/2, 1e-9*w0*stop)
		within(i, "time of the stop", o.get(t, "stopped")[i], stop, h)
		if got := o.get(t, "stopped")[i]; !(got >= stop-1e-4) {
			t.Errorf("case %d stands at %g s, before it can at %g s", i, got, stop)
		}
		within(i, "time from which it rests", o.get(t, "rests")[i], stop, h)
		within(i, "heat, kJ", o.get(t, "heat")[i], J*w0*w0/2/1e3, tau*tau/J*h*h/1e3) // of the last interval
		within(i, "mean", o.get(t, "mean")[i], w0*stop/2/length, 1e-3)
		within(i, "rms", o.get(t, "rms")[i], math.Sqrt(w0*w0*stop/3/length), 1e-3)
		within(i, "top, rpm", o.get(t, "top")[i], w0*30/math.Pi, 1e-9)
		within(i, "low", o.get(t, "low")[i], max(0, w0-2*tau/J), 1e-9)
		within(i, "transitions", o.get(t, "locks")[i], 1, 0)
		within(i, "times below 10 rad/s", o.get(t, "slows")[i], 1, 0)
	}
	for name, unit := range map[string]string{"brake.mu": "", "F": "N", "w0": "rad/s", "turns": "rad", "stopped": "s", "heat": "kJ", "top": "rpm", "locks": ""} {
		i := slices.IndexFunc(o.Head.Columns, func(c Column) bool { return c.Name == name })
		if got := o.Head.Columns[i].Unit; got != unit {
			t.Errorf("column %s is in %q, want %q", name, got, unit)
		}
	}
}

func TestStoppingDistanceGrowsOnSlipperyRoads(t *testing.T) {
	o := do(t, load(t, folder(t, `sweep: roads
bench: abs-bench
scenario: abs-dry
parameters:
  mu: {of: [scenario.road.fl, scenario.road.fr, scenario.road.rl, scenario.road.rr], values: [1, 0.85, 0.7]}
results:
  s: {final: s}
  p: {max: p_fl, unit: bar}
`)), t.TempDir(), 2, Shard{0, 1, ""})
	s := o.get(t, "s")
	for i := 1; i < len(s); i++ {
		if !(s[i] > s[i-1]+1) {
			t.Errorf("stopping distances %.4g m: they do not grow", s)
		}
	}
	if !(s[0] < 71.1) { // that on locked wheels, of the scenario
		t.Errorf("on the dry road the car needs %g m", s[0])
	}
	n := len(o.Head.Columns)
	first, last := o.records[0], o.records[2]
	if !first[n-3].Boolean() || !first[n-2].IsNull() || last[n-3].Boolean() || !strings.Contains(string(last[n-2].ByteArray()), "shorter stop than on locked wheels") {
		t.Errorf("the scenario's verdict on the dry road is %v %v, on the wet one %v %v", first[n-3], first[n-2], last[n-3], last[n-2])
	}
}

func TestCaseEqualsASimulationOfTheChangedFile(t *testing.T) {
	s := load(t, folder(t, `sweep: one
plant: automatic4
for: 1 s
parameters:
  car.m: [1234.5 kg]
  C1.pressure.default.table[0][1]: [2.5 bar]
results:
  v: {final: v}
  w: {final: w_engine}
`))
	o := do(t, s, t.TempDir(), 1, Shard{0, 1, ""})
	w, err := s.worker()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("m: 1500 kg", "m: 1234.5 kg", "table: [[0, 3], [17.0, 3]", "table: [[0, 2.5], [17.0, 3]").Replace(string(w.from.Files["automatic4.yaml"]))
	file, out := filepath.Join(t.TempDir(), "changed.yaml"), filepath.Join(t.TempDir(), "out.csv")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := (virtual.Simulation{Plant: file, For: time.Second, Every: 1, Out: out}).Run(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	head, last := strings.Split(lines[0], ","), strings.Split(lines[len(lines)-1], ",")
	for column, name := range map[string]string{"v[m/s]": "v", "w_engine[rad/s]": "w"} {
		want, err := strconv.ParseFloat(last[slices.Index(head, column)], 64)
		if got := o.get(t, name)[0]; err != nil || got != want {
			t.Errorf("%s is %v in the sweep, %v in a simulation of the changed file (%v)", column, got, want, err)
		}
	}
}

// The brake's torque is 50 N.m; the wheel turns w0²·J/(2·tau) until it stands.
func TestParameterWithARangeIsVariedByItsName(t *testing.T) {
	file := folder(t, `sweep: inertia
plant: rotor.yaml
for: 10 s
parameters:
  J_wheel: [1 kg.m2, 3 kg.m2, 5 kg.m2]
results:
  turns: {final: phi}
`)
	text := "parameters:\n  J_wheel: {value: 2 kg.m2, min: 1 kg.m2, max: 4 kg.m2, tune: true}\n"
	plant := strings.Replace(strings.Replace(rotor, "J: 2 kg.m2", "J: J_wheel", 1), "inputs:\n", text+"inputs:\n", 1)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "rotor.yaml"), []byte(plant), 0o666); err != nil {
		t.Fatal(err)
	}

	o := do(t, load(t, file), t.TempDir(), 1, Shard{0, 1, ""})
	turns := o.get(t, "turns")
	for i, J := range []float64{1, 3} {
		if want := 100 * 100 * J / 2 / 50; !scalar.EqualWithinRel(turns[i], want, 1e-9) {
			t.Errorf("J %g: angle %.12g, want %.12g", J, turns[i], want)
		}
	}
	if o.Failed != 1 || !math.IsNaN(turns[2]) {
		t.Errorf("%d cases failed, want only that with 5 kg.m2, outside the range", o.Failed)
	}
}

const mixed = `sweep: mixed
plant: rotor.yaml
for: 6 s
parameters:
  J: {of: wheel.J, values: [1 kg.m2, -1 kg.m2, 3 kg.m2]}
  mu: {of: brake.mu, random: uniform, from: 0.2, to: 0.6, seed: 4, n: 5}
  tau: {of: push.tau, values: [0 N.m, 1.7e308 N.m]}
results:
  phi: {final: phi}
  stop: {first: w < 99 rad/s}
`

func TestWorkersAndShardsDoNotChangeTheTable(t *testing.T) {
	s := load(t, folder(t, mixed))
	var want []byte
	for _, v := range []struct{ workers, shards int64 }{{1, 1}, {2, 1}, {3, 5}, {1, 7}, {2, 40}} {
		dir := t.TempDir()
		for i := range v.shards {
			do(t, s, dir, int(v.workers), Shard{i, v.shards, ""})
		}
		table := filepath.Join(dir, "all.parquet")
		if _, err := Merge(dir, table, s.Hash, false); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d workers and %d shards give a different table than one of each", v.workers, v.shards)
		}
	}
}

func TestFailedCaseIsARowWithItsReason(t *testing.T) {
	o := do(t, load(t, folder(t, mixed)), t.TempDir(), 2, Shard{0, 1, ""})
	J, tau, phi := o.get(t, "J"), o.get(t, "tau"), o.get(t, "phi")
	for i, row := range o.records {
		failed := row[len(row)-1]
		want := ""
		switch {
		case J[i] < 0:
			want = "rotor.yaml:5:29: model: element \"wheel\": J -1 kg.m2"
		case tau[i] > 0:
			want = "rotor.yaml:7:44: model: element \"push\": tau: 1.7e+308 N.m is outside"
		}
		if failed.IsNull() != (want == "") || math.IsNaN(phi[i]) != (want != "") || !strings.Contains(string(failed.ByteArray()), want) {
			t.Errorf("case %d, J %g, tau %g: phi %g, failed %q, want %q", i, J[i], tau[i], phi[i], failed.ByteArray(), want)
		}
	}
	if o.Failed != 20 {
		t.Errorf("%d of 30 cases failed, want 20", o.Failed)
	}
}

func TestWrongFileIsRefusedBeforeTheFirstCase(t *testing.T) {
	good := `sweep: good
plant: rotor.yaml
for: 1 s
parameters:
  mu: {of: brake.mu, from: 0.2, to: 0.6, steps: 5}
results:
  phi: {final: phi}
`
	load(t, folder(t, good))
	for _, c := range [][3]string{ // replace, by, the error
		{"brake.mu", "brake.my", `5:12: sweep: the files have no value brake.my (did you mean brake.mu?)`},
		{"brake.mu, from: 0.2, to: 0.6", "fn.max, from: 100, to: 600", `5:12: sweep: fn.max: 600 needs a unit: 600 N?; the file has "1000"`},
		{"brake.mu, from: 0.2, to: 0.6", "\"fn.default.table[1][1]\", from: 100, to: 600", `5:12: sweep: fn.default.table[1][1]: 600 needs a unit: 600 N?; the file has "100"`},
		{"brake.mu, from: 0.2, to: 0.6", "\"fn.default.table[1][0]\", from: 5, to: 10", `5:12: sweep: fn.default.table[1][0]: 10 needs a unit: 10 ms or 10 s?; the file has "10"`},
		{"brake.mu, from: 0.2, to: 0.6", "fn.max, from: 0, to: 6 rpm", `5:12: sweep: fn.max: unit rpm does not fit, N is wanted; the file has "1000"`},
		{"brake.mu, from: 0.2, to: 0.6", "brake.mu, from: 0.2 kN, to: 0.6", `5:40: sweep: mu: 0.6 needs a unit: 0.6 kN?`},
		{"for: 1 s", "for: 1", `3:6: sweep: for: 1 needs a unit: 1 ms or 1 s?`},
		{"phi}", "phi, to: 0.5}", `7:25: sweep: phi: to: 0.5 needs a unit: 0.5 ms or 0.5 s?`},
		{"{final: phi}", "{settles: w, within: 1, of: 0}", `7:29: sweep: phi: within: 1 needs a unit: 1 rad/s?`},
		{"{final: phi}", "{settles: w, within: 1 rpm, of: 3}", `7:40: sweep: phi: of: 3 needs a unit: 3 rad/s?`},
		{"{final: phi}", "{first: w < 3}", `7:16: sweep: phi: first: w: 3 needs a unit: 3 rad/s?`},
		{"brake.mu", "wheel.type", `5:12: sweep: wheel.type is not a number: "inertia"`},
		{"from: 0.2", "from: .nan", `5:28: sweep: mu: from: .nan is not a finite number`},
		{"to: 0.6", "to: .inf", `5:37: sweep: mu: to: .inf is not a finite number`},
		{"from: 0.2, to: 0.6", "from: 1e308, to: -1e308", `5:28: sweep: mu: 1e308 and -1e308 are too large: a value between them is not finite`},
		{"from: 0.2, to: 0.6", "from: 1 kg, to: 2 kg", `5:12: sweep: brake.mu: unit "kg" (kg) does not fit what stands there (1); the file has "0.5"`},
		{"to: 0.6", "to: 6 %", `5:28: sweep: mu: 0.2 needs a unit: 0.2 % or 20 %?`},
		{"steps: 5", "steps: 2000000", `5:49: sweep: mu: steps: "2000000" is not a whole number from 1 to 1000000`},
		{"steps: 5", "steps: 1", `5:49: sweep: mu: steps: one value cannot be both 0.2 and 0.6; use at least 2 steps`},
		{"steps: 5", "stops: 5", `5:42: sweep: mu: unknown key "stops" (did you mean steps?); known are values, of,`},
		{", steps: 5", "", `5:3: sweep: mu: steps is missing; expected a list, {from, to, steps} or {random, from, to, seed, n}`},
		{"from: 0.2", "random: flat, from: 0.2", `5:30: sweep: mu: random: "flat" is unknown`},
		{"steps: 5}", "steps: 1000}\n  J: {of: wheel.J, from: 1, to: 2, steps: 1001}", `5:3: sweep: cases: 1001000 cases, at most 1000000 are possible`},
		{"steps: 5}", "steps: 5}\n  J: {of: wheel.J, values: [1, 2]}\ncases: zip", `6:3: sweep: cases: zip: J has 2 values, mu has 5`},
		{"steps: 5}", "steps: 5}\n  nu: {of: brake.mu, values: [1, 2]}", `6:12: sweep: brake.mu is varied twice: it is also brake.mu in line 5`},
		{"phi}", "psi}", `7:16: sweep: phi: final: there is no input, output or bound signal "psi" (did you mean phi?)`},
		{"phi}", "phi, unit: kg}", `7:27: sweep: phi: unit "kg" does not fit; the result is in rad`},
		{"phi}", "phi, to: 2 s}", `7:16: sweep: phi: the window from 0 s to 2 s is empty, or after the end of the case at 1 s`},
		{"final: phi", "first: phi", `7:16: sweep: phi: first: expected a condition, like v < 0.1 m/s`},
		{"final: phi", "final: phi, max: phi", `7:3: sweep: phi: expected one of final, min`},
		{"phi: {", "failed: {", `7:3: sweep: two columns of the table are named failed`},
		{"rotor.yaml", "rotor", `2:8: sweep: plant: no file rotor, and no embedded file`},
		{"plant: rotor.yaml", "bench: rotor.yaml", `2:8: sweep: bench: rotor.yaml is a plant: write plant: rotor.yaml`},
		{"sweep: good", "sweep: a b", `1:8: sweep: sweep: "a b" is not a name`},
		{"sweep: good", "sweep: a[1]", `1:8: sweep: sweep: "a[1]" is not a name`},
		{"from: 0.2", "from: many", `5:28: sweep: "many" is not a finite number with or without a unit, like 0.1 or 8 bar`},
		{"for: 1 s", "for: 1 kg", `3:6: sweep: for: "1 kg": unit kg does not fit, s is wanted`},
		{"for: 1 s", "for: 0 s", `3:6: sweep: for: 0 s is not a positive duration`},
		{"results:", "result:", `6:1: sweep: sweep file: unknown key "result" (did you mean results?)`},
		{"parameters:\n  mu:", "parameters:\n  mu: [", `sweep: `},
	} {
		file := folder(t, strings.Replace(good, c[0], c[1], 1))
		_, err := Load(file)
		var at *yamlfile.FileError
		if !errors.As(err, &at) || at.File != file || !strings.Contains(fmt.Sprintf("%d:%d: sweep: %v", at.Line, at.Col, at.Err), c[2]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q for %q: %v, want %s", c[1], c[0], err, c[2])
		}
	}
}

func TestMergeNamesMissingShardsAndRefusesForeignOnes(t *testing.T) {
	s, dir := load(t, folder(t, mixed)), t.TempDir()
	for _, i := range []int64{0, 2, 4} {
		do(t, s, dir, 2, Shard{i, 5, ""})
	}
	want := func(dir, hash string, is func(error) bool) {
		t.Helper()
		if _, err := Merge(dir, filepath.Join(t.TempDir(), "all.csv"), hash, false); !is(err) {
			t.Errorf("%v", err)
		}
	}
	two := func(err error) bool {
		return err != nil && err.Error() == "sweep: 2 of 5 shards are missing in "+dir+": 1, 3"
	}
	foreign := func(err error) bool { return errors.Is(err, ErrOtherSweep) }
	want(dir, "", two)
	want(dir, strings.Repeat("0", 64), func(err error) bool { return foreign(err) && strings.Contains(err.Error(), "mixed-"+s.Hash[:12]) })
	other := load(t, folder(t, strings.Replace(mixed, "seed: 4", "seed: 5", 1)))
	if other.Hash == s.Hash {
		t.Fatal("another seed has the same hash")
	}
	do(t, other, dir, 2, Shard{1, 5, ""})
	want(dir, "", foreign)
	want(dir, s.Hash, two)
	for _, i := range []int64{1, 3} {
		do(t, s, dir, 2, Shard{i, 5, ""})
	}
	if o, err := Merge(dir, filepath.Join(t.TempDir(), "all.csv"), s.Hash, false); err != nil || int64(o.Rows) != s.Cases {
		t.Errorf("with a shard of another sweep in the folder: %v, %v", o, err)
	}
	want(t.TempDir(), "", func(err error) bool { return errors.Is(err, ErrNoShard) })
	_, err := (&Run{Sweep: s, Shard: Shard{1, 6, ""}, Dir: dir, Workers: 1, Notes: io.Discard}).Do()
	if err == nil || !strings.Contains(err.Error(), "is one of 5 shards, this run one of 6: use that number (-shard I/5)") {
		t.Errorf("a shard of 6 with shards of 5: %v", err)
	}
}

func TestEmbeddedSweepTradesHeatForJerk(t *testing.T) {
	o := do(t, load(t, "automatic4-ramps"), t.TempDir(), 2, Shard{0, 1, ""})
	heat, most, n := o.get(t, "heat"), o.get(t, "a_most"), 6
	for i := range heat {
		if i%n == 0 {
			continue // the shortest ramp of a pressure
		}
		if !(heat[i] > heat[i-1] && most[i] < most[i-1]) {
			t.Errorf("case %d: a longer ramp gives %.4g kJ after %.4g, %.4g m/s2 after %.4g", i, heat[i], heat[i-1], most[i], most[i-1])
		}
	}
}
