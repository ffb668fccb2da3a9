// Package install builds the packages of the product and holds that they install, run and
// leave no trace, on this host and on machines of their own, amd64 and arm64.
package install
