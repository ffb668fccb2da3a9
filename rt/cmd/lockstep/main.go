// Command lockstep is the target side of a hardware-in-the-loop bench: it simulates a drivetrain
// in step with a CAN bus.
//
// This package owns the command line: commands, flags, exit codes. It does not do the work of the
// commands: rt/supervisor, rt/virtual, rt/control, rt/check, rt/soak, rt/gen, rt/sweep, rt/ecu and
// the packages below deploy do.
//
// Reading order: main.go (main, exit codes), commands.go (the table of commands), flags.go (flags,
// usage, help), then the commands: run.go (run, soak), sim.go (sim, replay, export), ctl.go
// (attach, ctl, ps, stop), check.go (check, plants), and one file for each other command. shell.go
// writes the manual page and the shell completion of that table.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"lockstep/deploy/latency"
	"lockstep/rt/host"
	"lockstep/rt/plot"
	"lockstep/rt/supervisor"
	"lockstep/rt/target"
	"lockstep/rt/unitprogram"
)

// The standard output: stdout folds lines for a terminal, plainOut does not.
var stdout, plainOut = host.NewOutput(os.Stdout)

func main() {
	if len(os.Args) < 2 || os.Args[1] != target.Command {
		// A panic or a fatal error of the Go runtime ends the process by SIGABRT. The default, exit
		// code 2, is that of a wrong file: a service would not start again.
		debug.SetTraceback("crash")
	}
	os.Exit(run(os.Args[1:]))
}

// run executes one command line and returns its exit code.
func run(list []string) int {
	if len(list) == 0 {
		help(os.Stderr)
		return 2
	}

	switch list[0] {
	case target.Command:
		return printError(supervisor.Target(append(plot.Fonts(), guideTexts()...)))
	case supervisor.GuardCommand:
		return printError(supervisor.Guard(list[1:]))
	case unitprogram.RelayCommand:
		return printError(unitprogram.Relay(list[1:]))
	case completeCommand:
		printCompletions(list[1:])
		return 0
	case "latency":
		isChild, err := latency.Child(list[1:])
		if err != nil {
			return printError(exit1(err))
		}
		if isChild {
			return 0
		}
	}

	c, err := find(list[0])
	if err == nil {
		err = c.args().execute(list[1:])
	}
	if failed := stdout.Err(); failed != nil && (err == nil || errors.Is(err, errors.Unwrap(failed))) {
		err = exit1(fmt.Errorf("%s: %w", c.name, failed))
	}
	return printError(err)
}

// exit1 returns err with exit code 1; nil stays nil.
func exit1(err error) error {
	if err == nil {
		return nil
	}
	return &host.Exit{Code: 1, Err: err}
}

// printError prints each line of an error and returns its exit code, 2 where it has none. The lines
// of code 3 are not folded: they hold commands to copy.
func printError(err error) int {
	if err == nil {
		return 0
	}
	code, out := 2, host.Fold(os.Stderr)
	var e *host.Exit
	if errors.As(err, &e) {
		code = e.Code
	}
	if code == 3 {
		out = os.Stderr
	}
	for _, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintf(out, "lockstep: %s\n", line)
	}
	return code
}
