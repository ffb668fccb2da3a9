package law

import (
	"math"
	"slices"
	"testing"

	"lockstep/model"
)

// A table joined with the points of others has its own values everywhere, also where a point is beside its end by rounding,
// or lies beyond all of them.
func TestTableWithPointsOfOthersKeepsItsValues(t *testing.T) {
	for _, table := range []model.Table{
		{Extend: true, X: []float64{math.Nextafter(0.3, 0), 2, 6}, Z: []float64{1.1, 5.3, 7}},
		{Extend: true, X: []float64{-5, math.Nextafter(0.3, 1)}, Z: []float64{3, 4.7}},
		{Extend: true, X: []float64{10, 11}, Z: []float64{1, 2}},
		{X: []float64{5, 6}, Z: []float64{3, 4}},
	} {
		own := straight(table)
		for _, others := range [][]float64{{0.3}, {0.3, 2}, {-7, 40}} {
			points := slices.Compact(slices.Sorted(slices.Values(append(others, own.Breakpoints()...))))
			with := withPoints(own, points)
			for x := -20.0; x < 20; x += 0.37 {
				if got, want := tableAt(&with, x), tableAt(&own, x); !(math.Abs(got-want) <= 1e-8*(1+math.Abs(want))) {
					t.Errorf("%v with %v: %g at %g, want %g", table, others, got, x, want)
				}
			}
		}
	}
}
