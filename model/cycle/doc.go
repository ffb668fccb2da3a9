// Package cycle owns drive cycles: target speeds over time with the phases and tolerances of their
// regulations, and the judgement of a driven speed against them.
//
// The cycles wltc-3b, ftp-75, nedc and hwfet are embedded; a CSV file is read as a cycle of one phase. The
// package drives no vehicle: model/driver does. Speeds are in m/s, times in ns since the start of the cycle.
//
// Reading order: cycle.go (Cycle, Phase and their figures), trace.go (speed over time), tables.go (the
// embedded cycles and their sources), read.go (cycles from CSV), judge.go (the tolerance band), rating.go
// (the figures of SAE J2951), following.go (a part of a cycle while it is driven).
package cycle
