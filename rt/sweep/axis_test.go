package sweep

import (
	"math"
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

func TestRandomNumbersAreNeither0Nor1(t *testing.T) {
	for _, bits := range []uint64{0, 1, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		if v := within01(bits); !(v > 0 && v < 1) {
			t.Errorf("of the bits %x: %v", bits, v)
		}
	}
}
