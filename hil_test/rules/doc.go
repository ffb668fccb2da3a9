// Package rules checks the repository itself: which package imports which, sizes, package
// clauses, the licence, and the program that counts results. It runs nothing of the product.
package rules
