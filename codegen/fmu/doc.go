// Package fmu owns what an FMU has around the C of a plant's kernel: the interfaces of FMI 2.0.4 and
// 3.0.2 for co-simulation (csource), the description of its variables, its shared object and its
// zip file.
//
// It makes no C of a plant: package codegen brings that. fmu.go puts the files together, describe.go
// writes their XML, build.go compiles and packs.
package fmu
