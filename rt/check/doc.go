// Package check owns the output of lockstep check for a plant, a bench, a scenario or a database:
// what the program read from the file, warnings, and the worst tick measured on this host.
//
// The package starts no run and opens no bus. It reads no file format itself: model, rt/bench,
// rt/scenario and io/dbc read the files.
//
// Reading order: check.go (Check), check_plant.go (a plant), check_details.go (redundant locks,
// partitioned plants, the matrices), check_bus.go (a bus and its messages), check_database.go (a
// database), worst_tick.go and worst_tick_locks.go (the worst tick, measured).
package check
