// Package diagnosis owns the diagnosis server of the virtual control units: ISO-TP after ISO 15765-2, UDS
// after ISO 14229-1, emission-related services after ISO 15031-5, and the fault memory, with the diagnostic
// messages of SAE J1939-73. It is a second, independent implementation: it does not import any other package
// of lockstep. It has no clock; the unit gives it the instants.
//
// Reading order: server.go (a request and its answer; sessions, timing), transport.go (ISO-TP), memory.go
// (trouble codes: debounce, status bits, aging), trouble.go (services on them), data.go (identifiers, routines),
// access.go (seed and key, download), obd.go (emission-related services), j1939.go (DM1, DM2, DM4, BAM).
package diagnosis
