// Package cost owns the tests of the time that a tick takes. The tests bound its ratio to C
// programs that are built in the same run, and its growth with the size of a plant. They also check
// that the machine code of a tick neither allocates nor locks nor grows the stack. They bound no
// absolute time.
package cost
