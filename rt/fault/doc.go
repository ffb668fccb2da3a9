// Package fault owns what disturbs values and frames between the buses and the plant,
// tick by tick, exactly and repeatably: faults on purpose, the courses that inputs
// follow and what is set live. It knows no file and no name, reads no clock and sends
// nothing; the loop and a replay use the same Set, and so do the same.
//
// Reading order: fault.go (Fault, Command), set.go (Set: begin and end of faults), value.go (values),
// frame.go (frames), check.go (what is refused).
//
// A fault is in a slot. It is Armed until its Trigger holds, Active for as long as it
// says, then Over; Clear makes the slot Free. A trigger is judged at the start of tick
// k on the inputs and outputs of tick k-1; a fault that starts at tick k works on the
// frames read at k, the step that ends at k and the frames sent at k. Ticks that are
// made up for later count like any other. Where several faults have one target, each
// works on what the one in the slot before it has made.
//
// A value fault on an input has the last word before the step: the frames received,
// and what stands for missing ones, go on beneath it, and the input is theirs again
// when it is over. An input that nothing drives is sampled at each tick while a fault
// is on it. A value fault on a signal is on the value before it is made raw, so that a
// frame sent on change sees it, and is held within what the signal's bits can carry,
// not within its declared range. While the bus carries the safe values it does not
// apply, and frame faults go on; after the end of the run, and for a grid point that
// the plant has not reached, nothing is disturbed.
//
// What a tick does for faults is linear in the number of slots in use, Max at most, and
// in the frames that are given back at it, MaxHeld per fault at most. Max faults make the
// tick of a plant with one state, which receives a frame and sends one, 1.1 times as long
// while they are armed and 1.3 to 2 times, 1 to 5 us, while all of them disturb
// (BenchmarkFaults in package rt); without any it is as long as ever.
package fault
