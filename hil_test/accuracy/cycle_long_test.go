//go:build long

package accuracy

import "testing"

// The whole WLTC, 30 minutes in virtual time: what the engine gives is found to the tolerance of the laws, and
// the losses of the gearbox are in the oil and its cooler.
func TestEnergyOfTheWholeWLTCCloses(t *testing.T) {
	rows := driveWithEnergies(t, "wltc-3b")
	if len(rows) != 1801 {
		t.Errorf("%d rows, want one a second", len(rows))
	}
	checkEnergies(t, rows)
}
