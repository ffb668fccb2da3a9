package target

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"

	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/sched"
)

// Handover is what every target process needs, as plain data. It is the first value of
// a gob stream; what a target needs beyond it, and what is for supervisors, follows.
type Handover struct {
	Mark   string        // of the executable that is meant, see Mark; "" for one that says nothing of itself
	Maps   []*sigmap.Map // one per bus
	Loop   rt.Config
	Timer  Timer
	Thread sched.Thread

	rest *gob.Decoder
}

// Timer is how the loop waits for its grid points.
type Timer struct {
	Sleep  string // sched.Timerfd or sched.Nanosleep
	SpinNs int64  // ns
}

// Open reads a hand-over from its beginning.
func Open(f *os.File) (*Handover, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("target: hand-over: %w", err)
	}
	h, rest := &Handover{}, gob.NewDecoder(f)
	if err := rest.Decode(h); err != nil {
		return nil, fmt.Errorf("target: hand-over: %w", err)
	}
	h.rest = rest
	return h, nil
}

// Next reads the next value that follows the hand-over.
func (h *Handover) Next(v any) error {
	if err := h.rest.Decode(v); err != nil {
		return fmt.Errorf("target: hand-over: %w", err)
	}
	return nil
}
