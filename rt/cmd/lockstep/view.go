package main

import (
	"fmt"
	"path/filepath"

	"lockstep/rt/live"
	"lockstep/rt/supervisor"
	"lockstep/rt/view"
)

func defineView(a *args) func() error {
	page := a.pageFlag()
	window := a.window()

	return func() error {
		if len(a.operands) > 2 {
			return usageError{"view: name one record, or two to compare; usage: lockstep " + a.usage()}
		}
		door, err := view.Open(a.operands, window())
		if err != nil {
			return err
		}
		port := *page
		if port == "" || port == "off" {
			port = "0"
		}
		s, err := live.Open(port, filepath.Base(a.operands[0]), live.NewToken(), door)
		if err != nil {
			return err
		}
		defer s.Close()
		if _, err := fmt.Fprintf(plainOut, "record: %s\nCtrl-C ends it\n", s.URL()); err != nil {
			return err
		}
		<-supervisor.Signals()
		return nil
	}
}
