// Package diagnosis owns the diagnosis of the unit of a bench: the diagnosis file, which names trouble codes,
// identifiers, routines and sessions; the commands of `lockstep uds`; and the Station, which runs them on a bus.
// DIAGNOSIS.md describes the file and the commands.
//
// A Station has no goroutine, no clock and no bus: the port of a bus (rt/port) gives it frames and instants, in
// real and in virtual time. Alone drives one on an interface of the host without a bench. The protocols are in
// io/isotp, io/uds and io/j1939.
//
// Reading order: file.go (Spec, the diagnosis file), value.go (values of identifiers), odx.go (ODX and PDX), group.go
// (a unit on SAE J1939), command.go (Job, from words), station.go (Station), claim.go (the address of a tester on SAE J1939), key.go (keys by the user's program),
// alone.go (Alone).
package diagnosis
