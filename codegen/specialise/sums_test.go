package specialise

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// The tick of a rail car computes the derivative of the state from many products per element. A sum
// that is stored after every term takes three instructions and the latency of a store per term.
func TestSumsOfRoundedProductsGrowInVariables(t *testing.T) {
	sys := rig.Assemble(t, "rail17")
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := Generate(Plant{Tables: tables, Package: "rail17"})
	if err != nil {
		t.Fatal(err)
	}
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
