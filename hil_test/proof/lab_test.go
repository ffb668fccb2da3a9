package proof

import (
	"os"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// The whole network runs on vcan, classic and CAN FD, against a unit on python-can and one on
// brutella/can. A boot is slow, so subtests share one.
func TestLabProofOnVcan(t *testing.T) {
	d := proofFor(t, 20*time.Second)
	machine := lab.VCAN
	machine.Limit = 2*d + 20*time.Minute
	if !lab.Inside(t, machine, "python3-can", "python3-crccheck", "cansend") {
		return
	}
	t.Run("EveryFrameIsRightOrInTheLedger", func(t *testing.T) { everyFrame(t, d) })
	t.Run("WrongFramesAreCountedByMessage", wrongFrames)
	t.Run("MissingInterfaceIsRefused", func(t *testing.T) {
		lab.CheckRefused(t, []string{"can9", "vcan0"}, "run", "fd.yaml", "-bus", "can9", "-besteffort", "-for", "1s")
	})
}

// Faults that the scenario injects, and a pulled cable, on vcan.
func TestLabProofOfFaultsOnVcan(t *testing.T) {
	machine := lab.VCAN
	machine.Limit = 20 * time.Minute
	if !lab.Inside(t, machine, "python3-can", "python3-crccheck") {
		return
	}
	t.Run("EveryKindOfFaultAppearsAsOftenAsRequested", everyFault)
	t.Run("CablePulledIsReportedAndTheRunContinues", cablePulled)
}

func TestLabProofFloodOnVcanChangesNeitherOutputsNorWork(t *testing.T) {
	if !lab.Inside(t, lab.VCANSerial) { // the flood needs the CPU
		return
	}
	flooded(&proofRun{T: t, name: "fd", bus: "vcan0", units: "vcan0", args: []string{"-besteffort"}, flood: "10000"})
}

// The network runs on two cards with their driver, at 500 kbit/s, on PREEMPT_RT: the bench at one
// card, the units at the other. The emulated cards support classic frames only.
func TestLabProofOnTwoCards(t *testing.T) {
	d := proofFor(t, 20*time.Second)
	machine := lab.PreemptRT
	machine.Limit = 4*d + 20*time.Minute
	if !lab.Inside(t, machine, "python3-can", "python3-crccheck") {
		return
	}
	t.Run("EveryFrameIsRightOrInTheLedger", func(t *testing.T) { everyFrameOnCards(t, d) })
	if os.Getenv(proofVar) != "" { // only in long runs
		t.Run("EveryKindOfFaultAppearsAsOftenAsRequested", everyFaultOnCards)
	}
	t.Run("FloodChangesNeitherOutputsNorWork", func(t *testing.T) {
		flooded(&proofRun{T: t, name: "classic", bus: "can0", units: "can1", flood: "2000"})
	})
}

// everyFrame checks that both units find every frame of the bench right, and the bench every frame
// of the units. Missing and late frames must be in the ledger.
func everyFrame(t *testing.T, d time.Duration) {
	r := &proofRun{T: t, name: "fd", bus: "vcan0", units: "vcan0", d: d, args: []string{"-besteffort"}}
	e := r.run()
	e.checkLedger(t)
	e.checkLate(t)
	classic := []string{"Wheels", "Shafts", "Torque", "Gears", "Service", "Engine", "Ignition", "Ambient"}
	e.checkSent(t, "python-can", e.python.Frames, append(classic, "Motion", "Chassis"))
	e.checkSent(t, "brutella/can", e.brutella.Frames, classic)
	e.checkReceived(t)
	e.checkProbe(t)
}

// everyFrameOnCards is everyFrame on cards, without a check of late frames. While the emulator
// stalls, a card may lose received frames, which it counts, and delay frames.
func everyFrameOnCards(t *testing.T, d time.Duration) {
	before := lab.CardCounters(t)
	r := &proofRun{T: t, name: "classic", bus: "can0", units: "can1", d: d}
	e := r.run()
	now := lab.CardCounters(t)
	overruns := func(card string) int { return now[card+" rx_over_errors"] - before[card+" rx_over_errors"] }
	e.here, e.there = overruns("can0"), overruns("can1")
	t.Logf("the bench's card had %d overruns, that of the units %d", e.here, e.there)
	e.checkLedger(t)
	names := order(false)
	e.checkSent(t, "python-can", e.python.Frames, names)
	e.checkSent(t, "brutella/can", e.brutella.Frames, names)
	e.checkReceived(t)
	e.checkProbe(t)
	if e.report.BestEffort {
		t.Error("best effort, although the lab grants all rights")
	}
}
