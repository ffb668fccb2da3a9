//go:build long

package labs

import (
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

func TestLabWholeDayOnVcan(t *testing.T) {
	machine := lab.VCAN
	machine.Limit = 20 * time.Minute
	if !lab.Inside(t, machine) {
		return
	}
	liveDay(t, 10*time.Minute, 0)
}
