package hiltest

import (
	"testing"
	"time"
)

// The whole network on vcan, classic and CAN FD: both units find every frame of the bench
// right, the bench every one of theirs, and what is missing or late is in the ledger.
func TestLabProofOnVcanEveryFrameIsRightOrInTheLedger(t *testing.T) {
	d := proofFor(t, 20*time.Second)
	lab := vcanLab
	lab.limit = 2*d + 3*time.Minute
	if !inside(t, lab, "python3-can", "python3-crccheck") {
		return
	}
	r := &proofRun{T: t, name: "fd", bus: "vcan0", units: "vcan0", d: d, args: []string{"-besteffort"}}
	e := r.run()
	e.checkLedger(t)
	e.checkLate(t)
	classic := []string{"Wheels", "Shafts", "Torque", "Gears", "Service", "Engine", "Ignition", "Ambient"}
	e.checkSent(t, "python-can", e.python.Frames, append(classic, "Motion", "Chassis"))
	e.checkSent(t, "brutella/can", e.brutella.Frames, classic)
	e.checkTaken(t)
	e.checkProbe(t)
}

// The same on two cards behind their driver, at 500 kbit/s: the bench at one, the units at
// the other, all frames classic ones. When the emulator stands still a card may lose what
// it receives, and counts it.
func TestLabProofOnTwoCardsEveryFrameIsRightOrInTheLedger(t *testing.T) {
	d := proofFor(t, 20*time.Second)
	lab := rtLab
	lab.limit = 3*d + 4*time.Minute
	if !inside(t, lab, "python3-can", "python3-crccheck") {
		return
	}
	before := cards(t)
	r := &proofRun{T: t, name: "classic", bus: "can0", units: "can1", d: d}
	e := r.run()
	now := cards(t)
	for _, card := range []string{"can0", "can1"} {
		n := now[card+" rx_over_errors"] - before[card+" rx_over_errors"]
		t.Logf("%s: %d overruns", card, n)
		e.overruns += n
	}
	e.checkLedger(t)
	names := []string{"Wheels", "Shafts", "Torque", "Gears", "Service", "Engine", "MotionC", "ChassisC", "Ignition", "Ambient"}
	e.checkSent(t, "python-can", e.python.Frames, names)
	e.checkSent(t, "brutella/can", e.brutella.Frames, names)
	e.checkTaken(t)
	e.checkProbe(t)
	if e.report.BestEffort {
		t.Error("best effort, on a machine that grants everything")
	}
}
