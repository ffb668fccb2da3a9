// Command study compares ways to step a mass on a spring with regions, those of 000
// chapter 3 and the kernel's, and ways to step a rail car, those of 003 chapter 9 and the
// kernel's, and leaves tables and plots:
//
//	go run ./hil_test/study -o DIR
//
// README.md says what to conclude.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
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
	rail := doRail(wholeRail)
	if err := rail.write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}
	os.Stdout.Write(rail.markdown())
}
