// Package check owns what lockstep check says of a file: what was understood of a plant, a bench,
// a scenario or a database, which of it is unwise, and what the worst tick costs on this host.
//
// The package starts no run and opens no bus. It reads no file format itself: model, rt/bench,
// rt/scenario and io/dbc do.
//
// Reading order: check.go (Check), check_plant.go, check_partition.go and check_redundant.go (a
// plant), matrices.go (its matrices), check_bus.go (a bus and its messages), check_database.go (a
// database), dearest.go and dearest_locks.go (the worst tick, measured).
package check
