package c99_test

import (
	"slices"
	"testing"
	"time"

	"lockstep/model/plants"
)

const (
	ratioRounds = 9                     // alternating runs; odd, for a median
	ratioTime   = 30 * time.Millisecond // of the ticks of one run
	slowTick    = 5000                  // ns; slower ticks are timed one by one, as a block would be interrupted
	ratioLimit  = 1.7                   // of Go over C; the aim is goOverC
)

// listed returns the plants of the list of ratios: with the tag long all embedded ones.
func listed() (names []string) {
	for _, e := range plants.List() {
		if e.Kind == "plant" && (breadth || slices.ContainsFunc(racers, func(r racer) bool { return r.name == e.Name })) {
			names = append(names, e.Name)
		}
	}
	return names
}

// median returns the median of a list of odd length.
func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// TestTicksWithConstantInputsInGoOverC lists the time of a tick of 5 ms with constant inputs in generated Go over that in
// generated C, for each plant: the median over alternating runs, and the ratio of the fastest runs, which other processes
// disturb less. The C has the flags of the guide, GENERATE.md.
func TestTicksWithConstantInputsInGoOverC(t *testing.T) {
	needGcc(t)
	for _, name := range listed() {
		t.Run(name, func(t *testing.T) {
			s, err := embedded(name, true, 5*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			inC := newCBuild(t, map[string]files{s.name: s.cFiles}).build(t, "-O2 -ffp-contract=off").binary
			inGo := buildGo(t, []subject{s})
			constant := s.tracks()[0]
			ns, _, _ := constant.timeProgram(t, inC, s.name, 2, blockTicks)
			runs, block := min(max(int(float64(ratioTime)/(ns*raceTicks)), 2), 1000), blockTicks
			if ns > slowTick {
				block = 1
			}
			var ratio, goNs, cNs []float64
			for range ratioRounds {
				g, _, got := constant.timeProgram(t, inGo, s.name, runs, block)
				c, _, want := constant.timeProgram(t, inC, s.name, runs, block)
				if got != want {
					t.Fatalf("%v in Go, %v in C", got, want)
				}
				ratio, goNs, cNs = append(ratio, g/c), append(goNs, g), append(cNs, c)
			}
			fastestC, fastestGo := slices.Min(cNs), slices.Min(goNs)
			least := min(median(ratio), fastestGo/fastestC)
			t.Logf("%-18s C %9.1f ns, Go %9.1f ns, Go over C: median %.2f, of the fastest %.2f (aim %.1f)",
				name, fastestC, fastestGo, median(ratio), fastestGo/fastestC, goOverC)
			if !(least <= ratioLimit) {
				t.Errorf("%s: Go over C %.2f, want at most %.1f", name, least, ratioLimit)
			}
		})
	}
}
