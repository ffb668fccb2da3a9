package target

import (
	"encoding/gob"
	"fmt"
	"io"

	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/sched"
)

// Handover is the plain data that every target process needs. It is the first value of a gob stream.
// Further values for the target, and those for supervisors, follow.
type Handover struct {
	Mark   string        // mark of the generated executable for this run; "": the table kernel
	Maps   []*sigmap.Map // one per bus
	Loop   rt.Config
	Timer  Timer
	Thread sched.Thread

	// descriptor of the memory for tables that change during the run (package tableset); 0: they cannot
	TableSetFD int

	// descriptor of the memory for a copy of the loop's state (package checkpoint); 0: it makes none
	StateFD int

	rest *gob.Decoder
}

// Timer is the method by which the loop waits for its grid points.
type Timer struct {
	Sleep  string // sched.Timerfd or sched.Nanosleep
	SpinNs int64  // busy wait before a grid point, ns
}

// Open reads a hand-over from its beginning.
func Open(f io.ReadSeeker) (*Handover, error) {
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
