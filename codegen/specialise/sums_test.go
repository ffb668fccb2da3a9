package specialise

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// generated returns the generated files of an embedded plant.
func generated(t *testing.T, plant string) map[string][]byte {
	t.Helper()
	sys := rig.Assemble(t, plant)
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := Generate(Plant{Tables: tables, Package: "tick"})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The tick of a rail car computes the derivative of the state from many products per element. A sum
// that is stored after every term takes three instructions and the latency of a store per term.
func TestSumsOfRoundedProductsGrowInVariables(t *testing.T) {
	files := generated(t, "rail17")
	added := regexp.MustCompile(`(?m)^\s*(k\.\w+\[[^=\n]*\]) \+= float64\(`)
	sums := 0
	for name, text := range files {
		for _, function := range strings.Split(string(text), "\nfunc ") {
			sums += strings.Count(function, "\tsum")
			terms := map[string]int{}
			for _, m := range added.FindAllStringSubmatch(function, -1) {
				if terms[m[1]]++; terms[m[1]] == 4 {
					head, _, _ := strings.Cut(function, "\n")
					t.Errorf("%s: %s adds four products to %s in memory", name, head, m[1])
				}
			}
		}
	}
	if !(sums > 100) {
		t.Errorf("%d terms of sums in variables, want more than 100", sums)
	}
}

// A loop between known numbers counts from 0, and a row of a table whose start the tick computes is masked at its start
// only: the compiler sees the other indices within bounds.
func TestIndicesOfKnownRangeAreNotMasked(t *testing.T) {
	tick := string(generated(t, "car-abs")["tick.go"])
	for _, c := range []struct{ slow, want string }{
		{`for ; \w+ < \d+; \w+ \+= 1 \{`, `k\.w0\[15\+j\]`}, // the laws are the signals from 15 on
		{`\[3\*j ?& ?\d+\]`, `k\.lawTrend\[3\*j\]`},
		{`\[\(\w+&\d+\+\d+\)&\d+\]`, `termsCoef\[\w+&\d+\+1\]`},
	} {
		if m := regexp.MustCompile(c.slow).FindString(tick); m != "" || !regexp.MustCompile(c.want).MatchString(tick) {
			t.Errorf("found %q, or nothing like %s", m, c.want)
		}
	}
}
