// Package network owns the ignition of a bench: which frames it sends in which state, when they start, how
// it wakes up, and how it takes part in the network management of a bus.
//
// All names are resolved before the run: a Plan holds tables by state and message. A Machine advances at
// each grid point, without allocation, and gives the same results for the same calls, so a replay repeats
// it. The package opens no bus and has no clock.
//
// Reading order: state.go (State), plan.go (Plan), machine.go (Machine), nm.go (Node, the state machine of
// AUTOSAR's CanNm); off the loop: power.go (the supply of the unit under test) with scpi.go and gpio.go.
package network
