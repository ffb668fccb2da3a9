package plantfile_test

import (
	"strings"
	"testing"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

const twoParts = `plant: wheel
elements:
  rail: {type: fixed}
  axle: {type: mass, m: 10}
  spring: {type: spring, a: rail, b: axle, c: 1000}
  wheel: {type: inertia, J: 1}
  brake: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: 1}
outputs:
  w: {speed: wheel}
`

func TestPartitionIsReadWithItsDefaultsOrRefusedAtItsPlace(t *testing.T) {
	for text, want := range map[string]*model.Partition{
		"":                                  nil,
		"partition: {N_sub: 5, N_iter: 2}":  {Sub: 5, Iter: 2, Place: "wheel.yaml:10:1"},
		"partition: {N_sub: 20, N_iter: 5}": {Sub: 20, Iter: 5, Place: "wheel.yaml:10:1"},
		"partition: {N_iter: 3}":            {Sub: 1, Iter: 3, Place: "wheel.yaml:10:1"},
		"partition: {N_sub: 2}":             {Sub: 2, Iter: 0, Place: "wheel.yaml:10:1"},
	} {
		p, err := plantfile.Load("wheel.yaml", []byte(twoParts+text), library.Elements())
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		sys, err := assemble.System(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := sys.Partition; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"partition: {N_sub: 0}":      "wheel.yaml:10:20: model: partition: N_sub 0 is not a whole number from 1 to 20",
		"partition: {N_sub: 21}":     "N_sub 21 is not a whole number from 1 to 20",
		"partition: {N_sub: 1.5}":    "N_sub 1.5 is not a whole number",
		"partition: {N_iter: -1}":    "wheel.yaml:10:21: model: partition: N_iter -1 is not a whole number from 0 to 5",
		"partition: {N_iter: 6}":     "N_iter 6 is not a whole number from 0 to 5",
		"partition: {N_sub: 2 ms}":   "N_sub",
		"partition: {N_subs: 2}":     `unknown key "N_subs" (did you mean N_sub?)`,
		"partition: 5":               "partition",
		"partition: {N_iter: [1,2]}": "N_iter",
	} {
		_, err := plantfile.Load("wheel.yaml", []byte(twoParts+text), library.Elements())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
