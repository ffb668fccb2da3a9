package fault

import (
	"testing"

	"lockstep/io/sigmap"
	"lockstep/rt/checkpoint"
)

// A loop copies its state in a tick: what never changes must not make the copy longer.
func TestCopyOfTheStateLeavesOutWhatNeverChanges(t *testing.T) {
	sizeWith := func(points int) int {
		w := sigmap.Waveform{}
		for i := range points {
			w.At, w.Value = append(w.At, int64(i)), append(w.Value, float64(i))
		}
		r := newRig(t, Plan{Stimuli: []Stimulus{{Input: source, Waveform: w}}})
		return checkpoint.New(r.Set, r.Maps[0]).Size()
	}
	few, many := sizeWith(2), sizeWith(10_000)
	if few != many || few < 1000 {
		t.Errorf("a copy has %d bytes with 2 points of a stimulus, %d with 10,000; want the same", few, many)
	}
	r := newRig(t, Plan{})
	m := r.Maps[0]
	without := checkpoint.New(r.Set, m).Size()
	m.Tx[0].Protect = append(m.Tx[0].Protect, sigmap.Protection{})
	if with := checkpoint.New(r.Set, m).Size(); with-without <= 0 || with-without > 512 {
		t.Errorf("a protection adds %d bytes to a copy; want its counters, not its table of 2048 bytes", with-without)
	}
}
