package main

import (
	"errors"
	"fmt"
	"os"

	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/rt/supervisor"
)

func defineStop(a *args) func() error {
	all := a.Bool("all", false, "stop every run that this user may stop")
	now := a.Bool("now", false, "kill the targets; their supervisors send the safe state on the buses")

	return func() error {
		if *all == (len(a.operands) == 1) {
			return usageError{"stop: name one run, or use -all; usage: lockstep " + a.usage()}
		}
		clean := true
		out := stdout
		err := control.Stop(a.operand(), *all, *now, func(e *control.Answer) {
			fmt.Fprintln(out, e.EndLine())
			clean = clean && (e.Clean || *now)
		})
		restoreLeft()
		if err == nil && !clean {
			return exit1(errors.New("stop: the run was not clean"))
		}
		return err
	}
}

// restoreLeft restores the settings of this host that killed runs have left changed, and prints what
// it found to standard error.
func restoreLeft() {
	out := host.Fold(os.Stderr)
	for _, l := range host.RestoreLeft() {
		fmt.Fprintf(out, "lockstep: %s\n", l)
	}
}

func defineAttach(a *args) func() error {
	o := supervisor.Options{Out: os.Stdout}
	a.outputVar(&o.Report, "report FILE.json", "write the closing report to this file, as JSON")
	page := a.pageFlag()

	return func() error {
		o.Page, o.KeepPage, o.Examine = pagePort(*page, ""), *page == "", examineHost
		return supervisor.Attach(a.operand(), o)
	}
}

func defineCtl(a *args) func() error {
	o := control.Options{}
	a.BoolVar(&o.JSON, "json", false, "print the answer as lines of JSON")
	a.BoolVar(&o.Delete, "delete", false, "of snapshot: delete it")
	a.StringVar(&o.Every, "every 100ms", "", "interval of watch, or tick (default 100ms)")

	return func() error {
		if o.Out = stdout; o.JSON {
			o.Out = plainOut
		}
		return control.Ask(a.operands[0], a.operands[1:], o)
	}
}

func definePs(a *args) func() error {
	asJSON := a.Bool("json", false, "print the list as JSON")

	return func() error {
		restoreLeft()
		runs := control.List()
		if !*asJSON {
			return control.Table(stdout, runs)
		}
		return printJSON(runs)
	}
}
