package kernel_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// The guide counts the multiplications of a quiet tick of powershift and of a tick with one event. An entry of a matrix
// that is 0 in all lock sets, or 1 in all, takes none.
func TestGuideCountsTheProductsOfPowershift(t *testing.T) {
	data, err := plants.Read("powershift")
	if err != nil {
		t.Fatal(err)
	}
	tab := tablesOf(t, string(data))
	entries := func(of func(m *kernel.Mode) []float64) (count int) {
		for at := range of(&tab.Modes[0]) {
			zeros, ones := 0, 0
			for q := range tab.Modes {
				switch of(&tab.Modes[q])[at] {
				case 0:
					zeros++
				case 1:
					ones++
				}
			}
			if zeros < len(tab.Modes) && ones < len(tab.Modes) {
				count++
			}
		}
		return count
	}
	phi, g0 := entries(func(m *kernel.Mode) []float64 { return m.Phi }), entries(func(m *kernel.Mode) []float64 { return m.G0 })
	g1, a := entries(func(m *kernel.Mode) []float64 { return m.G1 }), entries(func(m *kernel.Mode) []float64 { return m.A })
	b := entries(func(m *kernel.Mode) []float64 { return m.B })
	quiet, check, substep := phi+g0, phi+g0+g1, tab.Degree*a+2*b
	event := check + 2*substep
	guide, err := os.ReadFile("METHOD.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("The degree of the Taylor polynomial is %d.", tab.Degree),
		fmt.Sprintf("| %d + %d = %d |", phi, g0, quiet),
		fmt.Sprintf("| %d + 2·%d = %d |", phi, g0, check),
		fmt.Sprintf("| %d·%d + 2·%d = %d |", tab.Degree, a, b, substep),
		fmt.Sprintf("takes %d multiplications, or %.1f times the quiet tick", event, float64(event)/float64(quiet)),
	} {
		if !strings.Contains(strings.ReplaceAll(string(guide), "\n", " "), want) {
			t.Errorf("the guide does not say %q", want)
		}
	}
	t.Logf("degree %d, %d states", tab.Degree, tab.N)
}
