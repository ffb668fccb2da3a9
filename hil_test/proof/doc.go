// Package proof owns the tests of one realistic network of a gearbox: in virtual time, and in both
// labs against two control units of package unit. It compares every frame with the record, the
// ledger and both units. It does not test single parts of the product.
package proof
