// Package sweep owns sweeps: simulations of one plant or bench with many combinations of
// parameters. The cases run on all cores and on many machines, and give a table of results.
// SWEEP.md describes the language.
//
// The package does not simulate (rt/virtual). It does not know the keys of plants, benches and
// scenarios: it changes values at their addresses.
//
// Reading order: file.go (Sweep: reads the file), axis.go (its mappings, values of a parameter),
// result.go (results), run.go (Run: a shard), worker.go (a case, the addresses of its parameters),
// table.go and merge.go (tables), shard.go (Shard, the journal of finished cases).
package sweep
