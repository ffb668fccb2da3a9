package main

import (
	"os"

	"lockstep/rt/supervisor"
)

const attachUsage = "attach [BENCH|PROCESS] [-report FILE.json]"

func runAttach(list []string) error {
	a := newArgs("attach", attachUsage)
	o := supervisor.Options{Out: os.Stdout}
	a.StringVar(&o.Report, "report", "", "write the closing report to this file, as JSON")
	if err := a.parse(list, 0, 1, os.Stdout); err != nil {
		return err
	}
	which := ""
	if len(a.names) == 1 {
		which = a.names[0]
	}
	return supervisor.Attach(which, o)
}
