// Package sweep owns sweeps: one plant or bench, simulated in as many cases as its parameters have
// combinations. The cases run on all cores and over many machines, and end in a table of results.
// The language is described in SWEEP.md.
//
// The package does not simulate (rt/virtual). It does not know the keys of plants, benches and
// scenarios: it changes values at their addresses.
//
// Reading order: file.go (Sweep: reads the file), axis.go (a mapping of it, values of a parameter),
// result.go (results), run.go (Run: a shard), worker.go (a case, the addresses of its parameters),
// table.go and merge.go (tables), shard.go (Shard, the journal of cases done).
package sweep
