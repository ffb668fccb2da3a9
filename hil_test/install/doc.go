// Package install owns the tests of the packages that users install. It builds them and checks that
// they install, run and leave no trace, on this host and on separate machines, amd64 and arm64. It
// does not test a running bench.
package install
