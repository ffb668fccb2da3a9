package virtual

import "testing"

// The car by wire is as stable with the virtual unit as over CAN, and the run can be repeated from its record.
func TestEscUnitKeepsTheCarStableByWire(t *testing.T) {
	record := t.TempDir() + "/wire.rec"
	r, err := Simulation{Plant: "esc-wire-bench", Scenario: "esc-dwell", Every: 1, Record: record}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.Scenario == nil || !r.Clean || r.TxFrames != 6000 || r.RxFrames != 4999 {
		t.Errorf("%+v", r)
	}
	if same, err := (Replay{Record: record}).Run(); err != nil || same.Ticks != 1000 {
		t.Errorf("replay: %+v, %v", same, err)
	}
}
