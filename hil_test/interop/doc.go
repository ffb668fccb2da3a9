// Package interop owns the tests that exchange files and frames with other programs: canmatrix,
// python-can, can-utils, crccheck, Slurm, Arrow, Kubernetes. It does not run a bench in real time.
package interop
