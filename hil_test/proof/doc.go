// Package proof runs one realistic network of a gearbox: in virtual time, and in both labs
// against two control units of package unit. It holds every frame against the record, the
// ledger and both units.
package proof
