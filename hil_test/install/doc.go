// Package install owns the tests of the packages that users install. It builds them, and holds
// that they install, run and leave no trace, on this host and on machines of their own, amd64 and
// arm64. It does not test what a bench does once it runs.
package install
