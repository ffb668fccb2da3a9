package virtual

import (
	"testing"
	"time"
)

// heldScenarios runs scenarios of a bench with the virtual ESC unit. All expectations must hold.
func heldScenarios(t *testing.T, bench string, names ...string) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			r, err := Simulation{Plant: bench, Scenario: name, Every: 1}.Run()
			if err != nil {
				t.Fatal(err)
			}
			if r.Scenario == nil || !r.Clean {
				t.Errorf("%+v", r)
			}
			t.Log(time.Since(begun))
		})
	}
}

func TestEscUnitReactsToFaultsByWire(t *testing.T) {
	heldScenarios(t, "esc-wire-bench", "esc-wire-open", "esc-wire-short", "esc-wire-tooth", "esc-wire-swapped",
		"esc-wire-gap", "esc-wire-direction", "esc-wire-valve", "esc-wire-pump")
}
