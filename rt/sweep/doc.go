// Package sweep owns sweeps: one plant or bench, simulated in virtual time in as many cases
// as its parameters have combinations, on every core and over many machines, with a table
// of results. It does not simulate (rt/virtual).
//
// A sweep file; what is given in brackets is what holds where it says nothing:
//
//	sweep: ramps
//	about: one line
//	plant: automatic4           # or bench: abs-bench; a file beside this one, or embedded
//	scenario: FILE              # [none]
//	step: 5 ms                  # period of a plant alone [5 ms]
//	for: 8 s                    # length of a case [the scenario's; otherwise 10 s]
//	parameters:
//	  C4.mu: {from: 0.08, to: 0.14, steps: 7}              # the first and the last included
//	  car.m: [1500 kg, 1800 kg]                            # these
//	  p_fill: {of: C4.pressure.default.table[1][1], values: [8 bar, 9 bar]}
//	  road: {of: [scenario.road.fl, scenario.road.fr], from: 0.1, to: 1, steps: 10}
//	  m: {of: car.m, random: uniform, from: 1.4 t, to: 1.6 t, seed: 1, n: 50}
//	  J: {of: turbine.J, random: normal, mean: 0.022 kg.m2, deviation: 0.001 kg.m2, seed: 1, n: 50}
//	  c: {of: flex.c, random: log, from: 1e3, to: 1e5, seed: 1, n: 50}
//	cases: grid                 # [grid] all combinations, the last parameter the fastest;
//	                            # zip: the first values, the second ones, ...; or
//	                            # {latin_hypercube: 200, seed: 1}, of parameters without steps and n
//	results:
//	  v_end: {final: v, unit: km/h}                        # unit [that of the plant, SI]
//	  a_min: {min: a, from: 4 s, to: 6 s}                  # also max, mean, rms
//	  heat: {integral: C4.tau*C4.w_rel, unit: kJ}          # of an output, or of two multiplied
//	  t_stop: {first: v < 0.1 m/s}                         # s, when conditions hold first
//	  t_idle: {settles: w_engine, within: 20 rpm, of: 750 rpm}    # s, from when on it stays there
//	  shifts: {count: transitions}                         # by how much a count grows, or how
//	                                                       # often conditions begin to hold
//
// A parameter is named by where it stands in the file of the plant: keys joined by ".", and
// [i] for the i-th of a list, from 0 on. The sections parameters, elements and inputs may be
// left out, and an input alone means its default. With scenario. or bench. before it, it
// stands in those files; the section stimuli may be left out. What a virtual control unit is
// tuned by stands in its bench, whether the bench says so or not: bench.unit.slip (lockstep
// ecu -h lists the names). A value stands there as if it
// were written there, so a bare number is in the unit that the file gives to it.
//
// What results judge are the values at grid points, from: and to: included, the start too.
// Means and integrals are over time by the trapezoidal rule, times are those of grid points.
// A result that has no value (a time that does not come) is null, and so are all of a case
// that failed: the plant refused the values, or did not stay finite; the column failed says
// why. Where every case of a table failed, the command that made all of it ends with exit
// code 1; some that did are what a sweep is to find. With a scenario that expects something, held says whether all held, and broken names
// those that did not.
//
// The values of a case are a function of the file and of its number, and its results one of
// the values: workers and shards make no difference to any bit, on one architecture and
// with one version of the command. The hash in the names of files is of all three; the
// level of the architecture (GOAMD64) and the compiler count, and of a command that was
// built of sources without a commit the executable itself.
//
// Of each N cases in a row every one of N shards has one. While it runs, its rows are in a
// journal, and what was done is not done again after a kill. When it is whole it becomes a
// Parquet file, at once; a shard whose file is there and whole is not run again.
package sweep
