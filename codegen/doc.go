// Package codegen writes the kernel of one plant as source: Go, C, or C in an FMU.
//
// There is one text of the tick, the source of package kernel, which the binary carries.
// A generated kernel is this text specialised to one plant: all that the tables and
// kernel.New fix is folded in, what the plant lacks vanishes, slices become arrays, loops
// over elements straight lines. So the generated kernel does the operations of the table
// kernel on the same numbers in the same order, and both give the same bits. C is that Go,
// statement by statement.
//
// # How the tick is specialised
//
// The source is followed as it would run (frame), with what is known at hand: numbers, and
// for the rest expressions of the generated code (value). A condition that is known takes
// one way; of another both are written, and what they agree on stays known. A loop is
// written out where its index says which element is meant and the result is short enough;
// a call of a helper of arrays or of a brief method is followed in place, others become
// functions for what is known of their arguments. What lies in the tables or the kernel is
// a place: a field of the generated Kernel where the tick assigns to it, else a number, or a
// table where the tick computes the index.
//
// What the tick assigns is not known before it has been followed. So it is followed in
// rounds (spec): the first takes it that every number of the kernel stays what New made it,
// the following that those do that no round before saw assigned another. The last finds
// nothing new, and leaves out what is assigned and never read.
//
// # Bits
//
// A sum is folded only where its bits stay: 0·x is left out of a sum that is not -0, 1·x is
// x. Where x is not finite this is not so: in the tick in which a plant leaves the range of
// float64, and from then on, modes, torques and the state that "fault" names may be others
// than those of the table kernel. Both stop in the same tick.
//
// An executable is compared by HashOf and, with all else that a target is built of, by its
// mark (package gen): both cover the tables, the source of the tick and the text of this
// generator. So what another version wrote is refused, though most changes of a generator
// leave the bits: that they do is known of the version whose tests compared them, of no other.
// What the Go compiler makes of it counts as well: with another GOAMD64 it may fuse products
// and sums, and the target is refused.
//
// # Signals
//
// Of a bench the decoding and encoding of frames become code (signals.go), with their
// checksums. What a message has besides stays in the tables of package sigmap, which
// a target is built with: the state machine of end-to-end protection, timeouts, and when a
// message is due, on change too. Their numbers are a handful per message that one text compares with
// counters; written out for each message it would be a second text of what decides whether a
// value counts.
//
// # Stack and bounds
//
// Every function is marked nosplit like those of the tick (package kernel). Functions that
// may take much of the stack are called through the variable jump, behind which the linker
// counts anew (stack.go). An index that is not that of a loop is masked, its array as long
// as a power of two, so that the compiler leaves no check of bounds; of a slice that begins
// where the tick says the beginning is masked, once for all elements.
//
// # Speed
//
// The compiler stores what is assigned to the kernel where it is assigned, and loads it again:
// so the sums of a row, with a sparse matrix as straight lines, grow in a variable (gather.go).
// Where it is the tick that says which rows are meant, they do so in functions with the directive
// //lockstep:noalias (directive.go). Nor does the compiler take anything out of a loop: the masks of
// what a loop does not change stand before it (hoist.go).
// Its min and max are chains of a dozen instructions: comparisons that the processor foresees
// stand in their place. Lanes (simd/archsimd of Go 1.26) were tried where states stand side
// by side: the polynomial of 32 states takes 0.6 µs by Float64x4, as plain Go does, and such
// loops were 6 (automatic4) to 20 percent (rail17) of a tick; sparse rows have no lanes.
package codegen
