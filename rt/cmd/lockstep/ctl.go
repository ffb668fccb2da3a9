package main

import (
	"encoding/json"
	"os"

	"lockstep/rt/control"
)

const ctlUsage = "ctl BENCH|PROCESS status | faults | fault KEY=VALUE... | clear NAME...|all | set PORT=VALUE... | release PORT...|all | stop [-json]"

func runCtl(list []string) error {
	a := newArgs("ctl", ctlUsage)
	asJSON := a.Bool("json", false, "print the answer as one line of JSON")
	if err := a.parse(list, 2, 1000, os.Stdout); err != nil {
		return err
	}
	answer, err := control.Ask(a.names[0], a.names[1:])
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(os.Stdout).Encode(answer)
	}
	return answer.Text(os.Stdout, a.names[1])
}
