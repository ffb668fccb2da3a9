package main

import (
	"errors"
	"os"

	"lockstep/rt/bench"
)

func runCheck(list []string) error {
	a := newArgs("check", "check FILE...")
	if err := a.parse(list, 1, 1000, os.Stdout); err != nil {
		return err
	}
	var all error
	for _, name := range a.names {
		all = errors.Join(all, bench.Check(os.Stdout, name))
	}
	return all
}
