// Package mutants measures whether the tests would notice a fault: it changes one operator, constant
// or statement of a package at a time, runs the tests of the package on the changed source, and
// counts the changes that some test notices. The sample is uniform over the package and repeatable.
//
// equivalent.tsv lists the changes that no test can notice, with the reason.
package mutants
