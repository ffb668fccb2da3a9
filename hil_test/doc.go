// Package hiltest owns the map of the tests that span packages. It holds no code but the guide to the
// labs; LABS.md describes the scripts, the labs and what they prove. The folders are named by
// the property that their tests prove:
//
//	rules      imports, sizes and files of the repository are as declared
//	accuracy   plants agree with independent solutions, and brakes stop a car
//	cost       the tick costs no more than declared, and its code does not allocate
//	interop    lockstep exchanges files and frames with other programs, in both directions
//	labs       the command on a real CAN stack and on a PREEMPT_RT kernel
//	proof      one realistic network against two independent control units
//	faults     the reaction of a run to each fault
//	install    the package installs, runs and is removed
//	study      comparisons of methods; not tests of the product
//
// Their common parts are in packages of one purpose: lab starts programs and labs, rig puts a plant on a
// grid, truth reads independent solutions. The product imports nothing below this folder.
package hiltest
