// Package interop exchanges files and frames with programs of others: canmatrix, python-can,
// can-utils, crccheck, Slurm, Arrow, Kubernetes. It does not run a bench in real time.
package interop
