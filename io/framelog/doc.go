// Package framelog owns the reading of logs of CAN frames that other programs write, and of values over time in MDF4.
//
// It knows frames (package can). It does not know records, plants or signals, and starts no goroutine. It
// holds some frames in memory, independent of the length of a log.
//
// Reading order: log.go (Log, Frame; the format of a file), then a file for each format: candump.go,
// asc.go, trc.go, python.go, blf.go, mdf.go (groups and records), mdf_data.go (their bytes), mdf_values.go (ReadMDFValues).
package framelog
