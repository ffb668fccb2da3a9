package rt

import (
	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/fault"
)

// joint holds the parts of a tick that are called through a value, so that the linker
// begins anew to add up the stack, as it does behind Signals; see model/kernel/joint.go.
type joint struct {
	tick func(m *sigmap.Map, u []float64, k int64) sigmap.Demand
	emit func(l *Loop, b, i int, k int64, y []float64) bool

	begin   func(l *Loop, k int64)
	arrived func(s *fault.Set, b int, f *can.Frame, at can.Stamp) bool
	inputs  func(s *fault.Set, k int64, u []float64) []float64
	signals func(s *fault.Set, k int64, y []float64)
	give    func(l *Loop, b int, k int64)
	before  func(s *fault.Set, b, i int)
	sent    func(s *fault.Set, f *can.Frame, b, i int, k int64) (int64, bool)
}

func joints() joint {
	return joint{
		(*sigmap.Map).Tick, (*Loop).emit,
		(*Loop).begin, (*fault.Set).Arrived, (*fault.Set).Inputs, (*fault.Set).Signals, (*Loop).give, (*fault.Set).Before, (*fault.Set).Sent,
	}
}
