// Package mutants owns the measure of the tests: it changes one operator, constant or statement of a
// package at a time, runs the tests of the package on the changed source, and counts the changes that
// they notice. The sample is uniform over the package and repeatable. It does not change a file of the
// repository, nor a call that names a process.
//
// equivalent.tsv lists the changes that no test can notice, with the reason.
package mutants
