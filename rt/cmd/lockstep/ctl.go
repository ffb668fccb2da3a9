package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"lockstep/rt/control"
	"lockstep/rt/supervisor"
)

func defineStop(a *args) func() error {
	all := a.Bool("all", false, "every run that this user may end")
	now := a.Bool("now", false, "kill the targets: the supervisors put the safe state on the buses")

	return func() error {
		if *all == (len(a.names) == 1) {
			return usageError{"stop: name one run, or all of them with -all; usage: lockstep " + a.usage()}
		}
		clean := true
		err := control.Stop(a.name(), *all, *now, func(e *control.Answer) {
			fmt.Println(e.EndLine())
			clean = clean && (e.Clean || *now)
		})
		if err == nil && !clean {
			return exit1(errors.New("stop: the run was not clean"))
		}
		return err
	}
}

func defineAttach(a *args) func() error {
	o := supervisor.Options{Out: os.Stdout}
	a.StringVar(&o.Report, "report FILE.json", "", "write the closing report to this file, as JSON")

	return func() error {
		return supervisor.Attach(a.name(), o)
	}
}

func defineCtl(a *args) func() error {
	asJSON := a.Bool("json", false, "print the answer as one line of JSON")

	return func() error {
		answer, err := control.Ask(a.names[0], a.names[1:])
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(os.Stdout).Encode(answer)
		}
		return answer.Print(os.Stdout, a.names[1])
	}
}

func definePs(a *args) func() error {
	asJSON := a.Bool("json", false, "print the list as JSON")

	return func() error {
		runs := control.List()
		if !*asJSON {
			return control.Table(os.Stdout, runs)
		}
		return printJSON(runs)
	}
}
