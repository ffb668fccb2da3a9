// Command study compares ways to step a mass on a spring with regions, those of 000
// chapter 3 and the kernel's, and leaves tables and plots:
//
//	go run ./hil_test/study -o DIR
//
// and, with judder, looks for the torques at which the vehicle of 001 sticks and slips:
//
//	go run ./hil_test/study judder -o DIR
//
// and, with rail, compares ways to step a rail car, those of 003 chapter 9 and the
// kernel's:
//
//	go run ./hil_test/study rail -o DIR
//
// and, with trains, measures what ticks cost over the length of a train:
//
//	go run ./hil_test/study trains -o DIR
//
// It is no part of the product and no test. README.md says what to conclude.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "judder" {
		judderMain(os.Args[2:])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "rail" {
		railMain(os.Args[2:])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "trains" {
		trainsMain(os.Args[2:])
		return
	}
	dir := flag.String("o", "", "folder for the tables and plots")
	flag.Parse()
	if *dir == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "study: usage: study -o DIR")
		os.Exit(2)
	}
	r := do(whole)
	if err := r.write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}
	os.Stdout.Write(r.markdown())
}
