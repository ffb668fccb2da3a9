//go:build long

package virtual

import "testing"

// The scenarios of esc-bench have the same verdict by wire.
func TestEscUnitIsJudgedByWireAsOnCAN(t *testing.T) {
	for _, name := range []string{"esc-turn", "esc-split", "esc-ice", "esc-hill", "esc-lane-change"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r, err := (Simulation{Plant: "esc-wire-bench", Scenario: name, Every: 1}).Run(); err != nil || !r.Clean {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}
