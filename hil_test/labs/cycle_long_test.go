//go:build long

package labs

import (
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

func TestLabDriverFollowsTheWholeWLTCOnVcan(t *testing.T) {
	machine := lab.VCAN
	machine.Limit = 40 * time.Minute
	if !lab.Inside(t, machine) {
		return
	}
	driveOnVcan(t, "wltc-3b", 30*time.Minute)
}
