// Package view owns the door of a finished run: it answers the requests of the live page from the signals of one
// or two records, CSV files or MDF4 files of export, so that the page shows them as it shows a run. It changes
// nothing, and it knows neither buses nor frames: a record is repeated by package virtual.
package view
