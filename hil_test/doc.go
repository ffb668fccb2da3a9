// Package hiltest is the map of the tests that span packages. It holds no code, and the
// product imports nothing below it. There is a folder for what the tests prove:
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
// What these share is in packages of one purpose: lab starts programs and labs, rig puts
// a plant on a grid, truth reads independent solutions.
//
// The scripts are the entrances. all runs everything, long what takes hours. vcan is
// user-mode Linux, whose kernel has SocketCAN; preempt_rt is QEMU with a PREEMPT_RT
// kernel and two emulated CAN cards; install_lab is that with a Debian of its own; soak
// soaks the demo bench in a lab.
package hiltest
