// Package fmu owns the parts of an FMU other than the C of the plant's kernel: the interfaces of
// FMI 2.0.4 and 3.0.2 for co-simulation (csource), the XML descriptions, the shared object and the
// zip file.
//
// It does not generate the C of the plant: package codegen passes it. Reading order: fmu.go
// collects the files, describe.go writes the XML files, build.go compiles and packs.
package fmu
