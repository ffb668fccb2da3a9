// Package rules owns the checks of the repository itself: imports, sizes, package clauses and
// comments, the paths in the README, the licence, the count of results. It runs no code of the
// product.
package rules
