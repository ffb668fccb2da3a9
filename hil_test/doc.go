// Package hiltest owns the map of the tests that span packages. It holds no code but the guide to the
// labs; LABS.md describes the scripts, the labs and what they prove. There is a folder for what the
// tests prove:
//
//	rules      imports, sizes and files of the repository are as declared
//	accuracy   plants move as independent solutions say, and brakes stop a car
//	cost       the tick costs no more than declared, and its code does not allocate
//	interop    other programs read what lockstep writes, and the other way round
//	labs       the command on a real CAN stack and on a PREEMPT_RT kernel
//	proof      one realistic network against two independent control units
//	faults     what follows from each fault of a run
//	install    the package installs, runs and is removed
//	study      figures for a reader, no tests of the product
//
// What these share is in packages of one purpose: lab starts programs and labs, rig puts a plant on a
// grid, truth reads independent solutions. The product imports nothing below this folder.
package hiltest
