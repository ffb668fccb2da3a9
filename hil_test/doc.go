// Package hiltest owns the overview of the tests that span packages. It holds no code but the guide
// to the labs, LABS.md. There is a folder for each subject of the tests:
//
//	rules      imports, sizes and files of the repository are as declared
//	accuracy   plants agree with independent solutions, and brakes stop a car
//	cost       the tick costs no more than declared, and its code does not allocate
//	interop    other programs read the files of lockstep, and lockstep reads theirs
//	labs       the command on a real CAN stack and on a PREEMPT_RT kernel
//	proof      one realistic network against two independent control units
//	faults     the consequences of each fault of a run
//	install    the package installs, runs and is removed
//	mutants    the tests of a package notice a change of its source
//	study      comparisons with published theses; no tests of the product
//
// Three packages are shared: lab starts programs and labs, rig puts a plant on a grid, truth reads
// independent solutions. The product imports nothing below this folder.
package hiltest
