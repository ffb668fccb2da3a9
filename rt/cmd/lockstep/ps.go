package main

import (
	"os"

	"lockstep/rt/control"
)

const psUsage = "ps [-json]"

func runPs(list []string) error {
	a := newArgs("ps", psUsage)
	asJSON := a.Bool("json", false, "print the list as JSON")
	if err := a.parse(list, 0, 0, os.Stdout); err != nil {
		return err
	}
	runs := control.List()
	if !*asJSON {
		return control.Table(os.Stdout, runs)
	}
	return printJSON(runs)
}
