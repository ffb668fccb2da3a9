package rt

import (
	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// joint holds the parts of a tick that are called through a value, most of them in
// package sigmap, so that the linker begins anew to add up the stack; see model/kernel/joint.go.
type joint struct {
	decode func(m *sigmap.Map, u []float64, f *can.Frame) (int, sigmap.Result)
	tick   func(m *sigmap.Map, u []float64, k int64) sigmap.Demand
	due    func(m *sigmap.Map, i int, k int64, y []float64) bool
	encode func(m *sigmap.Map, f *can.Frame, i int, y []float64) bool
	emit   func(l *Loop, b, i int, k int64, y []float64) bool
}

func joints() joint {
	return joint{(*sigmap.Map).Decode, (*sigmap.Map).Tick, (*sigmap.Map).Due, (*sigmap.Map).Encode, (*Loop).emit}
}
