package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"lockstep/rt/bench"
	"lockstep/rt/live"
	"lockstep/rt/supervisor"
	"lockstep/rt/view"
)

func defineView(a *args) func() error {
	port := "0"
	a.Func("page PORT", "TCP port of the page on 127.0.0.1, 0 for any free one (default 0)", func(s string) (err error) {
		if port, err = bench.ParsePage(s); err == nil && port == "off" {
			err = errors.New("view has nothing but its page: leave -page out, or give a port")
		}
		return err
	})
	window := a.window()

	return func() error {
		if len(a.operands) > 2 {
			return usageError{"view: name one file, or two to compare; usage: lockstep " + a.usage()}
		}
		door, err := view.Open(a.operands, window())
		if err != nil {
			return err
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
