// Package view owns the door of a record: it answers the requests of the live page from the signals of one
// or two finished runs, so that the page shows a record as it shows a run. It changes nothing, and it knows
// neither buses nor frames: a record is repeated by package virtual.
package view
