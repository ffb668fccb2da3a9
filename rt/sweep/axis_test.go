package sweep

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/rt/virtual"
)

const spread = `sweep: spread
plant: rotor.yaml
for: 1 s
parameters:
  mu: {of: brake.mu, random: log, from: 0.01, to: 1}
  J: {of: wheel.J, random: normal, mean: 2 kg.m2, deviation: 100e-3 kg.m2}
  w: {of: wheel.w_start, from: 10 rad/s, to: 20 rad/s}
cases: {latin_hypercube: 1000, seed: 7}
results:
  phi: {final: phi}
`

func TestLatinHypercubeHasOneCaseInEachStratum(t *testing.T) {
	s := load(t, folder(t, spread))
	if s.Cases != 1000 {
		t.Fatalf("%d cases", s.Cases)
	}
	var columns [3][]float64
	for p, share := range []func(v float64) float64{
		func(v float64) float64 { return math.Log(v/0.01) / math.Log(100) },
		func(v float64) float64 { return (1 + math.Erf((v-2)/0.1/math.Sqrt2)) / 2 },
		func(v float64) float64 { return (v - 10) / 10 },
	} {
		seen := make([]int, s.Cases)
		for i := range s.Cases {
			v := share(s.parameters[p].values[s.parameters[p].index(i)])
			if !(v > 0 && v < 1) {
				t.Fatalf("parameter %d, case %d: share %g", p, i, v)
			}
			columns[p] = append(columns[p], v)
			seen[int(v*float64(s.Cases))]++
		}
		// A value at the edge of its stratum may be rounded into the next one.
		if n := s.Cases - int64(len(slices.DeleteFunc(seen, func(n int) bool { return n != 1 }))); !(n <= 4) {
			t.Errorf("parameter %d: %d strata do not have one case", p, n)
		}
	}
	for _, pair := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		r := 0.0
		for i := range columns[0] {
			r += (columns[pair[0]][i] - 0.5) * (columns[pair[1]][i] - 0.5) * 12 / float64(s.Cases)
		}
		if !(math.Abs(r) < 4/math.Sqrt(1000)) { // four standard deviations of independent ones
			t.Errorf("parameters %v are correlated by %.3g", pair, r)
		}
	}
}

func TestRandomValuesHaveTheirDistributionAndAreRepeatable(t *testing.T) {
	text := strings.NewReplacer("to: 1}", "to: 1, seed: 3, n: 4000}", "100e-3 kg.m2}", "100e-3 kg.m2, seed: 3, n: 4000}",
		"w: {of: wheel.w_start,", "w: {of: wheel.w_start, random: uniform, seed: 3, n: 4000,", "{latin_hypercube: 1000, seed: 7}", "zip").Replace(spread)
	file := folder(t, text)
	s, again := load(t, file), load(t, file)
	if s.Hash != again.Hash {
		t.Error("a file that is read again has another hash")
	}
	for p, want := range [][2]float64{{math.Log(0.1), math.Log(100) / math.Sqrt(12)}, {2, 0.1}, {15, 10 / math.Sqrt(12)}} {
		var sum, squares float64
		for i := range s.Cases {
			v := s.parameters[p].values[i]
			if v != again.parameters[p].values[i] {
				t.Fatalf("parameter %d, case %d: another value", p, i)
			}
			if p == 0 {
				v = math.Log(v)
			}
			sum += v - want[0]
			squares += (v - want[0]) * (v - want[0])
		}
		n := float64(s.Cases)
		if mean := sum / n / want[1]; !(math.Abs(mean) < 4/math.Sqrt(n)) {
			t.Errorf("parameter %d: the mean is off by %.3g deviations", p, mean)
		}
		if ratio := math.Sqrt(squares/n) / want[1]; !(math.Abs(ratio-1) < 4/math.Sqrt(2*n)) {
			t.Errorf("parameter %d: the deviation is %.3g times the expected one", p, ratio)
		}
	}
}

func TestShardsDivideCasesAndFastestValuesEvenly(t *testing.T) {
	for _, all := range []int64{1, 5, 16, 17, 1000} {
		for _, n := range []int64{1, 2, 4, 7, 40} {
			seen := make([]int, all)
			for i := range n {
				p, even := Shard{I: i, N: n}, int64(0)
				for block := range p.cases(all) {
					number := p.number(block)
					if number >= all || shardOf(number, n) != i || number/n != block {
						t.Fatalf("%d of %d: block %d has case %d of %d", i, n, block, number, all)
					}
					seen[number]++
					even += 1 - number%2
				}
				if share := float64(even) / float64(p.cases(all)); all == 1000 && !(share > 0.2 && share < 0.8) {
					t.Errorf("%d of %d: %.2g of the cases are even", i, n, share)
				}
			}
			if slices.Min(seen) != 1 || slices.Max(seen) != 1 {
				t.Fatalf("%d cases in %d shards: each is in %d to %d of them", all, n, slices.Min(seen), slices.Max(seen))
			}
		}
	}
}

// BenchmarkCase compares a case with a simulation of the same plant, alternately.
func BenchmarkCase(b *testing.B) {
	for _, c := range []struct{ plant, of, value string }{{"rotor.yaml", "wheel.J", "1.5"}, {"automatic4", "crank.J", "0.25"}} {
		b.Run(c.plant, func(b *testing.B) {
			file := folder(b, "sweep: one\nplant: "+c.plant+"\nfor: 5 s\nparameters: {"+c.of+": ["+c.value+"]}\nresults: {n: {final: transitions}}\n")
			w, err := load(b, file).worker()
			if err != nil {
				b.Fatal(err)
			}
			var spent [2]time.Duration
			for b.Loop() {
				start := time.Now()
				if row, ok := w.run(0); !ok || row.Failed != "" {
					b.Fatal(row.Failed)
				}
				middle := time.Now()
				plant := c.plant
				if strings.HasSuffix(plant, ".yaml") {
					plant = filepath.Join(filepath.Dir(file), plant)
				}
				if _, err := (virtual.Simulation{Plant: plant, For: 5 * time.Second, Every: 1}).Run(); err != nil {
					b.Fatal(err)
				}
				spent[0] += middle.Sub(start)
				spent[1] += time.Since(middle)
			}
			b.ReportMetric(spent[0].Seconds()/spent[1].Seconds(), "of_a_simulation")
		})
	}
}

// declared is a room whose temperature and speed are declared in degC and rpm.
const declared = `plant: declared
inputs:
  T: {unit: degC, min: -40, max: 120, default: 20}
  p: {unit: bar, min: 0, max: 50, default: 3}
elements:
  wheel: {type: inertia, J: 2 kg.m2, w_start: 1500 rpm}
  brake: {type: brake, flange: wheel, mu: 0.1, cgeo: 1 m, area: 1 cm2, pressure: p}
outputs:
  n: {speed: wheel, unit: rpm}
  T_room: {signal: T, unit: degC}
  p_out: {signal: p, unit: bar}
`

func TestResultsAreInTheDeclaredUnit(t *testing.T) {
	file := folder(t, `sweep: declared
plant: declared.yaml
for: 2 s
parameters:
  T: {random: normal, mean: 20 degC, deviation: 5 K, seed: 1, n: 2}
  p: [0, 5 bar]
results:
  n: {final: n}
  n_SI: {final: n, unit: rad/s}
  turned: {integral: n}
  T_end: {final: T_room}
  T_mean: {mean: T_room, unit: K}
  T_rms: {rms: T_room}
  p_end: {final: p_out}
  p_rms: {rms: p_out, unit: kPa}
  work: {integral: brake.tau*n}
  same: {first: n < 1500.1 rpm}
`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "declared.yaml"), []byte(declared), 0o666); err != nil {
		t.Fatal(err)
	}
	s := load(t, file)
	dir := t.TempDir()
	o := do(t, s, dir, 1, Shard{0, 1, ""})
	var titles []string
	for _, c := range o.Head.Columns {
		titles = append(titles, c.title())
	}
	want := "case T[degC] p[bar] n[rpm] n_SI[rad/s] turned[rpm.s] T_end[degC] T_mean[K] T_rms[K] p_end[bar] p_rms[kPa] work[kg.m2/s2] same[s] failed"
	if got := strings.Join(titles, " "); got != want {
		t.Errorf("the columns are\n%s\nwant\n%s", got, want)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	check := func(o *Outcome, rpm, celsius, bar float64) {
		t.Helper()
		for i := range o.Rows {
			T, p := o.get(t, "T")[i]+celsius, o.get(t, "p")[i]*bar
			slope := 0.1 * 1 * 1e-4 * p / 2 // rad/s²: mu, cgeo and area of the brake over the inertia
			w := 1500 * math.Pi / 30
			near("n", o.get(t, "n")[i]*rpm, w-2*slope)
			near("turned", o.get(t, "turned")[i]*rpm, 2*w-2*slope)
			near("T_end", o.get(t, "T_end")[i]+celsius, T)
			near("T_mean", o.get(t, "T_mean")[i], T)
			near("T_rms", o.get(t, "T_rms")[i], T)
			near("p_end", o.get(t, "p_end")[i]*bar, p)
			if size := math.Abs(T - 293.15); !(size > 0 && size < 40) {
				t.Errorf("case %d: T is %v K: a deviation of 5 K around 20 degC is wanted", i, T)
			}
		}
	}
	check(o, math.Pi/30, 273.15, 1e5)
	for _, si := range []bool{false, true} {
		merged, err := Merge(dir, filepath.Join(dir, "all.parquet"), "", si)
		if err != nil {
			t.Fatal(err)
		}
		if si {
			check(merged, 1, 0, 1)
			if got := merged.Head.Columns[2].title() + merged.Head.Columns[3].title() + merged.Head.Columns[5].title(); got != "p[Pa]n[rad/s]turned[rad/s.s]" {
				t.Errorf("in SI the columns are %s", got)
			}
		} else {
			check(merged, math.Pi/30, 273.15, 1e5)
		}
	}

	for _, c := range [][3]string{
		{"p: [0, 5 bar]", "p: [0, 5]", "p.default: 5 needs a unit: 5 bar?"},
		{"p: [0, 5 bar]", "wheel.w_start: [1600]", `wheel.w_start: 1600 needs a unit: 1600 rpm?; the file has "1500 rpm"`},
		{"p: [0, 5 bar]", "wheel.J: [3 bar]", "wheel.J: unit bar does not fit"},
		{"deviation: 5 K", "deviation: 5 degC", "a difference of temperatures cannot be in degC; write it in K"},
		{"deviation: 5 K", "deviation: 5", "deviation: 5 needs a unit: 5 K?"},
		{"{rms: T_room}", "{rms: T_room, unit: degC}", "rms of this value cannot be in degC; write K"},
		{"{rms: T_room}", "{settles: T_room, within: 5 degC, of: 20 degC}", "a difference of temperatures cannot be in degC"},
		{"{rms: T_room}", "{settles: T_room, within: 5 K, of: 20}", "of: 20 needs a unit: 20 degC?"},
		{"n < 1500.1 rpm", "n < 1500", "n: 1500 needs a unit: 1500 rpm?"},
		{"{final: n, unit: rad/s}", "{final: n, unit: bar}", `unit "bar" does not fit; the result is in rpm`},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		wrong := filepath.Join(filepath.Dir(file), "wrong.yaml")
		if err := os.WriteFile(wrong, []byte(strings.Replace(string(text), c[0], c[1], 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(wrong); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: %v, want %q", c[1], err, c[2])
		}
	}
}

// A name is no number, although it has a sign of arithmetic or looks like a number.
func TestNamesCannotBeVaried(t *testing.T) {
	for address, want := range map[string]string{
		"bench.bench": "is not a number", "bench.about": "is not a number", "bench.plant": "is not a number",
		"bench.overrun": "is not a number", "scenario.scenario": "is not a number", "scenario.expect[0].name": "is not a number",
		"scenario.expect[0].value": "is not a number",
		"scenario.for":             "3 needs a unit: 3 ms or 3 s?", "scenario.expect[0].from": "3 needs a unit",
		"scenario.pedal.table[1][0]": "3 needs a unit: 3 ms or 3 s?", "scenario.pedal.table[1][1]": "3 needs a unit: 3 bar?",
		"bench.period": "3 needs a unit", "scenario.road.fl": "", "bench.control_unit.slip": "",
	} {
		text := strings.NewReplacer("BENCH", "abs-bench", "ADDRESS", `"`+address+`"`, "VALUES", "3").Replace(stops)
		_, err := Load(folder(t, text))
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

func TestRandomNumbersAreNeither0Nor1(t *testing.T) {
	for _, bits := range []uint64{0, 1, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		if v := within01(bits); !(v > 0 && v < 1) {
			t.Errorf("of the bits %x: %v", bits, v)
		}
	}
}
