// Package host owns what a run takes from its host: processes, reservations of CPUs and interfaces,
// affinities, the kernel timers of a CPU, and the files and folders of a run.
//
// The package knows no bench, plant or bus traffic. Scheduling of the loop's own thread is in
// package sched.
//
// Reading order: process.go (Process, Exit, Repeat), reservation.go (Reservations), timers.go
// (priority of kernel timers, affinity of all other threads), undo.go (what killed runs left), dirs.go (folders, names of files,
// files that only one run writes), version.go (the build of this program), terminal.go (lines folded
// to the width of a terminal).
//
// # Several runs on one host
//
// Several benches run on one host, each with a CPU and interfaces of its own. A run reserves them
// by names in the kernel as long as the run or its orphaned target lives. A second run that needs
// the same is refused, with the name of the holder. Reservations reach as far as a network
// namespace: containers with separate networks do not see each other's CPUs. Two runs may have the
// same name; their process ids tell them apart.
package host
