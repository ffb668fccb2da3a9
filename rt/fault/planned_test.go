package fault

import (
	"errors"
	"testing"
)

// restorer is a plant that stores no state; a test does not call it.
type restorer struct{ Restorer }

// The plant of a generated target stores its states elsewhere, which is known after New.
func TestPlannedStatesNeedAPlantThatStoresThem(t *testing.T) {
	plan := Plan{States: []PlannedState{{Tick: 3, Op: TakeSnapshot, Slot: 0}, {Tick: 5, Op: Restore, Slot: -1}}}
	r := newRig(t, plan)
	r.Restorer = nil
	if err := r.CheckStates(); !errors.Is(err, errNoRestorer) {
		t.Errorf("%v, want %v", err, errNoRestorer)
	}
	r.Restorer = restorer{}
	if err := r.CheckStates(); err != nil {
		t.Error(err)
	}
	plan.States[1].Slot = MaxSnapshots
	r = newRig(t, plan)
	r.Restorer = restorer{}
	if err := r.CheckStates(); !errors.Is(err, errSlot) {
		t.Errorf("%v, want %v", err, errSlot)
	}
	if err := newRig(t, Plan{}).CheckStates(); err != nil {
		t.Error(err)
	}
}
