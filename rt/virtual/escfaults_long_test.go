//go:build long

package virtual

import "testing"

func TestEscUnitReactsToFaultsOfItsSensors(t *testing.T) {
	heldScenarios(t, "esc-bench", "esc-yaw-bias", "esc-yaw-noise", "esc-yaw-delay", "esc-lateral-bias", "esc-lateral-noise",
		"esc-lateral-delay", "esc-steer-bias", "esc-steer-noise", "esc-steer-delay")
}

// The scenarios of esc-bench have the same verdict by wire.
func TestEscUnitJudgesByWireAsOnCAN(t *testing.T) {
	heldScenarios(t, "esc-wire-bench", "esc-turn", "esc-split", "esc-ice", "esc-hill", "esc-lane-change")
}
