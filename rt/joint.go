package rt

import (
	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/fault"
)

// joint holds the parts of a tick that are called through a value, most of them in
// package sigmap, so that the linker begins anew to add up the stack; see model/kernel/joint.go.
type joint struct {
	decode func(m *sigmap.Map, u []float64, f *can.Frame) (int, sigmap.Result)
	tick   func(m *sigmap.Map, u []float64, k int64) sigmap.Demand
	due    func(m *sigmap.Map, i int, k int64, y []float64) bool
	encode func(m *sigmap.Map, f *can.Frame, i int, y []float64) bool
	emit   func(l *Loop, b, i int, k int64, y []float64) bool

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
		(*sigmap.Map).Decode, (*sigmap.Map).Tick, (*sigmap.Map).Due, (*sigmap.Map).Encode, (*Loop).emit,
		(*Loop).begin, (*fault.Set).Arrived, (*fault.Set).Inputs, (*fault.Set).Signals, (*Loop).give, (*fault.Set).Before, (*fault.Set).Sent,
	}
}
