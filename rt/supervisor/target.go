package supervisor

import (
	"errors"

	"lockstep/model/kernel"
	"lockstep/rt/host"
	"lockstep/rt/target"
)

// Target is the process that ticks with the table kernel: this binary, executed again.
// An *Exit carries exit code 1 when the end was not a clean one.
func Target() error {
	reason, err := target.Run("", tabular)
	if err == nil && !reason.Clean() {
		err = errors.New(reason.String())
	}
	if err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// tabular makes the kernel of the tables that follow the hand-over.
func tabular(h *target.Handover) (target.Parts, error) {
	t := &kernel.Tables{}
	if err := h.Next(t); err != nil {
		return target.Parts{}, err
	}
	return target.Parts{Plant: kernel.New(t)}, nil
}
