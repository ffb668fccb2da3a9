package rt

import (
	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/fault"
)

// calls are the indirect calls of a tick, by its phases, beside those of the interfaces Plant,
// Signals and sched.Ticker. The linker adds up the stack along each chain of direct calls, and
// begins anew at an indirect one: model/kernel/calls.go. Each field keeps a chain below Loop.loop
// short, which has 200 bytes at serve and 380 at send.
type calls struct {
	// The start of a grid point: commands and faults.
	begin func(l *Loop, k int64) // commands are checked 330 bytes deep

	// What comes in.
	arrived func(s *fault.Set, b int, f *can.Frame, at can.Stamp) bool // below receive, whose system call needs its room
	tick    func(m *sigmap.Map, u []float64, k int64) sigmap.Demand    // protection is 260 bytes deep

	// The step.
	inputs  func(s *fault.Set, k int64, u []float64) []float64 // calls the plant's own sources
	signals func(s *fault.Set, k int64, y []float64)           // evaluates waveforms

	// What goes out, all of it below send.
	give   func(l *Loop, b int, k int64)                                     // transmits, 280 bytes deep
	emit   func(l *Loop, b, i int, k int64, y []float64, acts bool) bool     // transmits, 310 bytes deep
	before func(s *fault.Set, b, i int)                                      // below emit
	sent   func(s *fault.Set, f *can.Frame, b, i int, k int64) (int64, bool) // below emit; falsifies a frame, 310 bytes deep
}

func newCalls() calls {
	return calls{
		begin:   (*Loop).begin,
		arrived: (*fault.Set).Arrived, tick: (*sigmap.Map).Tick,
		inputs: (*fault.Set).Inputs, signals: (*fault.Set).Signals,
		give: (*Loop).give, emit: (*Loop).emit, before: (*fault.Set).Before, sent: (*fault.Set).Sent,
	}
}
