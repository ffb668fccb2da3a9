package rt

import (
	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/fault"
)

// calls are the indirect calls of a tick, by phase, besides those of the interfaces Plant, Signals
// and sched.Ticker. The linker adds up the stack along each chain of direct calls and starts again
// at an indirect call: model/kernel/calls.go. Each field keeps a chain below Loop.loop short; 200
// bytes are free at stepAndSend and 380 at send.
type calls struct {
	// The start of a grid point: commands and faults.
	beginPoint   func(l *Loop, k int64) // checks commands, 330 bytes deep
	beginNetwork func(l *Loop, k int64) // below beginPoint; opens and closes messages, enters the ring

	// Receive.
	receiveLong    func(l *Loop, k int64)
	actsFrom       func(l *Loop, b, at int) int64 // below decodeFrame; reads clocks, 590 bytes deep
	decodeCopies   func(l *Loop, b, at int, k, n int64)
	decodeFrame    func(l *Loop, b, at int, k int64, late, withheld bool)              // converts stamps, enters the ring, 490 bytes deep
	filterReceived func(s *fault.Set, b int, f *can.Frame, at can.Stamp) (int64, bool) // changes signals and checksums
	superviseMap   func(m *sigmap.Map, u []float64, k int64) sigmap.Request            // checks protection, 260 bytes deep

	// Step.
	advanceInputs  func(s *Inputs, k int64, u []float64, set *fault.Set) []float64 // announces changes to the plant
	disturbInputs  func(s *fault.Set, k int64, u []float64) []float64              // evaluates the plant's own input waveforms
	disturbSignals func(s *fault.Set, k int64, y []float64)                        // evaluates waveforms

	// Send: all of these are called below send.
	sendHeld        func(l *Loop, b int, k int64)                                      // transmits, 280 bytes deep
	encodeAndSend   func(l *Loop, b, i int, k int64, y []float64, faultsAct bool) bool // transmits, 310 bytes deep
	prepareCounters func(s *fault.Set, b, i int)                                       // below encodeAndSend

	flush func(b *can.Bus, tick, age int64) bool // below send; encodes the image of a bus by wire

	// below encodeAndSend; changes checksums, 310 bytes deep
	disturbFrame func(s *fault.Set, f *can.Frame, b, i int, k int64) (int64, bool)
}

func newCalls() calls {
	return calls{
		beginPoint:     (*Loop).beginPoint,
		beginNetwork:   (*Loop).beginNetwork,
		receiveLong:    (*Loop).receiveLong,
		actsFrom:       (*Loop).actsFrom,
		decodeCopies:   (*Loop).decodeCopies,
		decodeFrame:    (*Loop).decodeFrame,
		filterReceived: (*fault.Set).FilterReceived, superviseMap: (*sigmap.Map).Tick,
		advanceInputs: (*Inputs).Advance,
		disturbInputs: (*fault.Set).DisturbInputs, disturbSignals: (*fault.Set).DisturbSignals,
		sendHeld: (*Loop).sendHeld, encodeAndSend: (*Loop).encodeAndSend, flush: (*can.Bus).Flush, prepareCounters: (*fault.Set).PrepareCounters, disturbFrame: (*fault.Set).DisturbFrame,
	}
}
