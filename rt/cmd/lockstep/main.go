// Command lockstep is the target side of a hardware-in-the-loop bench: it
// simulates a drivetrain in step with a CAN bus.
//
// This package owns the command line: names, flags, exit codes. What the commands do is in
// rt/supervisor, rt/virtual, rt/control, rt/check, rt/soak, rt/gen, rt/sweep, deploy and
// rt/ecu.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"lockstep/rt/host"
	"lockstep/rt/supervisor"
	"lockstep/rt/target"
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and returns its exit code.
func run(list []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "lockstep: internal error: %v\n", r)
			code = 1
		}
	}()
	if len(list) == 0 {
		help(os.Stderr)
		return 2
	}
	switch list[0] {
	case target.Command:
		return printError(supervisor.Target())
	case completeCommand:
		return printError(runComplete(list[1:]))
	}
	c, err := find(list[0])
	if err == nil {
		err = c.run(list[1:])
	}
	return printError(err)
}

// printError prints an error, one line each, and returns the exit code it means.
func printError(err error) int {
	if err == nil || helped(err) {
		return 0
	}
	for _, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintf(os.Stderr, "lockstep: %s\n", line)
	}
	var e *host.Exit
	if errors.As(err, &e) {
		return e.Code
	}
	return 2
}
