package main

import (
	"os"

	"golang.org/x/term"

	"lockstep/rt/progress"
)

// progressLine returns the progress line of a command that handles signals; results are the files that it
// writes. Results on a terminal leave no place for the line: then it is nil.
func progressLine(command string, results ...string) *progress.Line {
	for _, name := range results {
		if name == "-" && term.IsTerminal(int(os.Stdout.Fd())) {
			return nil
		}
	}
	return progress.New(os.Stderr, command)
}

// interruptible returns the progress line of a command that a signal ends.
func interruptible(command string, results ...string) *progress.Line {
	line := progressLine(command, results...)
	line.ClearOnSignal()
	return line
}
