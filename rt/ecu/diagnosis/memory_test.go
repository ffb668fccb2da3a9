package diagnosis

import (
	"testing"
	"time"
)

// status compares the status of a code.
func (g *tester) status(code uint32, want byte) {
	g.t.Helper()
	if got := g.m.Status(code); got != want {
		g.t.Errorf("status %08b, want %08b", got, want)
	}
}

func TestFaultMustPersistBeforeItIsStored(t *testing.T) {
	g := newTester(t)
	g.m.BeginCycle()
	g.report(codeA, true, 490*time.Millisecond)
	g.status(codeA, untested)
	g.expect("19 06 07 30 00 03", "59 06 07 30 00 50 03 7C") // 127·490/500
	g.report(codeA, false, 490*time.Millisecond)
	g.report(codeA, true, 490*time.Millisecond)
	g.status(codeA, untested)
	g.report(codeA, true, 10*time.Millisecond)
	g.status(codeA, TestFailed|FailedThisCycle|Pending|Confirmed|FailedSinceClear|WarningLamp)
	if !g.m.LimpHome() {
		t.Error("no limp-home")
	}
	g.report(codeA, false, 1490*time.Millisecond)
	g.status(codeA, TestFailed|FailedThisCycle|Pending|Confirmed|FailedSinceClear|WarningLamp)
	g.report(codeA, false, 10*time.Millisecond)
	g.status(codeA, FailedThisCycle|Pending|Confirmed|FailedSinceClear|WarningLamp)
	g.expect("19 06 07 30 00 03", "59 06 07 30 00 AE 03 80")
	if !g.m.LimpHome() {
		t.Error("limp-home ends in the operation cycle of the fault")
	}
	g.m.BeginCycle()
	if g.m.LimpHome() {
		t.Error("limp-home lasts into the next operation cycle")
	}
	g.status(codeA, Pending|Confirmed|FailedSinceClear|NotCompletedThisCycle|WarningLamp)
	g.m.Report(0x123456, true, time.Hour) // not a code of the unit
}

// A fault that stays fails again in the next cycle, and is a second occurrence.
func TestPersistentFaultFailsInEveryCycle(t *testing.T) {
	g := newTester(t)
	for range 2 {
		g.m.BeginCycle()
		g.report(codeA, true, time.Second)
	}
	if n := g.m.Occurrences(codeA); n != 2 || !g.m.LimpHome() {
		t.Errorf("%d occurrences, limp-home %v", n, g.m.LimpHome())
	}
}

func TestConfirmationNeedsTwoTrips(t *testing.T) {
	fail := byte(TestFailed | FailedThisCycle | Pending | FailedSinceClear)
	g := newTester(t)
	g.m.BeginCycle()
	g.report(codeB, true, time.Second)
	g.report(codeB, false, 2*time.Second)
	g.report(codeB, true, time.Second)
	g.status(codeB, fail) // twice in a cycle is one trip
	g.m.BeginCycle()
	g.report(codeB, true, time.Second)
	g.status(codeB, fail|Confirmed|WarningLamp)

	g = newTester(t)
	g.m.BeginCycle()
	g.report(codeB, true, time.Second)
	g.m.BeginCycle()
	g.report(codeB, false, time.Second)
	g.status(codeB, Pending|FailedSinceClear)
	g.m.BeginCycle()
	g.status(codeB, FailedSinceClear|NotCompletedThisCycle) // a good cycle between
	g.report(codeB, true, time.Second)
	g.status(codeB, fail)
}

func TestCodeHealsAndAges(t *testing.T) {
	g := newTester(t)
	g.m.BeginCycle()
	g.report(codeA, true, time.Second)
	for cycle := 0; cycle <= 41; cycle++ {
		g.m.BeginCycle()
		g.report(codeA, false, time.Second)
		switch status := g.m.Status(codeA); {
		case cycle < 3 && status&WarningLamp == 0, cycle >= 3 && status&WarningLamp != 0:
			t.Errorf("after %d good cycles: status %08b", cycle, status)
		case cycle < 40 && status&(Confirmed|FailedSinceClear) != Confirmed|FailedSinceClear, cycle >= 40 && status != 0:
			t.Errorf("after %d good cycles: status %08b", cycle, status)
		}
		if cycle == 39 {
			g.expect("19 06 07 30 00 FF", "59 06 07 30 00 28 01 01 02 27 03 80")
		}
	}
	g.expect("19 04 07 30 00 FF", "59 04 07 30 00 00")
	g.expect("19 06 07 30 00 01", "59 06 07 30 00 00 01 00")
}

// A cycle in which the test does not run ages the code, and does not heal it.
func TestUntestedCyclesDoNotSwitchTheLampOff(t *testing.T) {
	g := newTester(t)
	g.m.BeginCycle()
	g.report(codeA, true, time.Second)
	g.report(codeA, false, 2*time.Second)
	for range 40 {
		g.m.BeginCycle()
	}
	g.status(codeA, Pending|Confirmed|FailedSinceClear|NotCompletedThisCycle|WarningLamp)
	g.m.BeginCycle()
	g.status(codeA, NotCompletedThisCycle)
}

func TestSnapshotsAreOfTheFirstAndTheLastFailure(t *testing.T) {
	g := newTester(t)
	for value := range byte(3) {
		g.value = value + 1
		g.m.BeginCycle()
		g.report(codeA, true, time.Second)
	}
	g.expect("19 04 07 30 00 FF", "59 04 07 30 00 AF 01 02 20 01 01 20 02 12 34 02 02 20 01 03 20 02 12 34")
	g.expect("19 04 07 30 00 01", "59 04 07 30 00 AF 01 02 20 01 01 20 02 12 34")
	g.expect("19 06 07 30 00 01", "59 06 07 30 00 AF 01 03")
	g.expect("14 07 30 00", "54")
	g.status(codeA, untested)
	g.expect("19 04 07 30 00 FF", "59 04 07 30 00 50")
}

func TestControlSettingStopsTheMemory(t *testing.T) {
	g := newTester(t)
	g.m.BeginCycle()
	g.ask("10 03")
	g.expect("85 02", "C5 02")
	g.report(codeA, true, 5*time.Second)
	g.status(codeA, untested)
	g.expect("85 01", "C5 01")
	g.report(codeA, true, time.Second)
	if g.m.Status(codeA)&TestFailed == 0 {
		t.Error("the memory does not store after 85 01")
	}
}
