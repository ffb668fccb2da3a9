package accuracy

import (
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/rt/virtual"
)

// The whole WLTC, 30 minutes, in virtual time: driver, car, automatic gearbox and its control unit on a bus
// with E2E protection. The log has the factor over real time.
func TestAutomaticBenchDrivesTheWholeWLTC(t *testing.T) {
	lab.RequireLong(t, "drives 30 minutes in virtual time")
	begun := time.Now()
	r, err := virtual.Simulation{Plant: "automatic-bench", Cycle: "wltc-3b", Every: 1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean || r.Ticks != 360000 || r.RxUnknown+r.RxShort+r.RxRange+r.RxBad != 0 {
		t.Errorf("%d ticks, clean %t, ended %q; frames unknown %d, short %d, out of range %d, badly protected %d",
			r.Ticks, r.Clean, r.Ended, r.RxUnknown, r.RxShort, r.RxRange, r.RxBad)
	}
	if r.Scenario == nil || !r.Scenario.Pass || len(r.Scenario.Findings) != 5 {
		t.Fatalf("%+v; want four phases and the whole cycle driven within the tolerance", r.Scenario)
	}
	for _, f := range r.Scenario.Findings {
		t.Logf("%s: %s", f.What, f.Seen)
	}
	t.Logf("%s; %.0f times real time", r.Unit, 1800/time.Since(begun).Seconds())
}
