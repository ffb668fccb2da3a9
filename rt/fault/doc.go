// Package fault owns the faults, waveforms and live values that change inputs and frames between
// the buses and the plant, exact to the tick and repeatable. It knows no file and no name, reads no
// clock and sends nothing. The loop and a replay use the same Set, so they compute the same.
//
// Reading order: fault.go (Fault, Command), set.go (Set: start and end of faults), value.go
// (values), frame.go (frames), received.go (frames received), check.go (what is refused).
//
// Every fault has a slot. It is Armed until its Trigger holds, Active for its duration, then Over;
// Clear makes the slot Free. A trigger is evaluated at the start of tick k on the inputs and
// outputs of tick k-1. A fault that starts at tick k acts on the frames read at k, the step that
// ends at k and the frames sent at k. Missed ticks that are made up for count like any other.
// Several faults on one target act in the order of their slots, each on the result of the one
// before.
//
// A value fault on an input acts last before the step. Meanwhile received frames, and substitutes
// for missing ones, still update the value underneath; after the fault the input has this value. An
// input that nothing drives is sampled at each tick while a fault is on it. A value fault on a
// signal acts on the physical value before encoding, so a frame sent on change sees it. The value
// is limited to what the signal's bits can carry, not to its declared range. While the bus carries
// the safe values, value faults on signals do not act, but frame faults do. After the end of the
// run, and for grid points that the plant has not reached, no fault acts.
//
// A frame received is changed before it is decoded: first the signals that faults replace, then its
// counters, then the rest, as for a frame sent. The checksum of a frame with changed signals or
// counters is as right or wrong as that of the frame received. A changed frame reaches the plant in
// place of the one received, which is withheld.
//
// The cost per tick is linear in the number of slots in use, at most Max, and in the frames
// released, at most MaxHeld per fault. Measured on a plant with one state that receives one frame
// and sends one: Max faults make its tick 1.1 times as long while they are armed, and 1.3 to 2
// times as long, 1 to 5 us, while all of them act (BenchmarkFaults in package rt).
package fault
