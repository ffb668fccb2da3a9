// Package host owns what a run takes from its host: processes, reservations of CPUs and
// interfaces, affinities, the kernel timers of a CPU, and the files and folders of a run.
//
// The package knows no bench, plant or bus traffic. Scheduling of the loop's own thread is in
// package sched.
//
// Reading order: process.go (Process, Exit), reservation.go (Reservations), affinity.go
// (threads that stay off the CPUs of loops), timers.go (priority of kernel timers), files.go
// (files that one run writes alone), dirs.go (folders, names of files), version.go (what this
// program was built from).
//
// # Several runs on one host
//
// Several benches run on one host, each with a CPU and with interfaces of its own. A run reserves
// them by names in the kernel as long as it or its orphaned target lives. Who wants the same is
// refused, and told the name of the holder. Reservations reach as far as a network namespace:
// containers with networks of their own do not see each other's CPUs. Two runs may have one
// name; their process ids tell them apart.
package host
