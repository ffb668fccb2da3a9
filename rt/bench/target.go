package bench

import (
	"encoding/gob"
	"errors"
	"fmt"

	"lockstep/model/kernel"
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
		return &Exit{1, err}
	}
	return nil
}

// tabular makes the kernel of the tables that follow the hand-over.
func tabular(_ *target.Handover, rest *gob.Decoder) (target.Parts, error) {
	t := &kernel.Tables{}
	if err := rest.Decode(t); err != nil {
		return target.Parts{}, fmt.Errorf("bench: hand-over: %w", err)
	}
	return target.Parts{Plant: kernel.New(t)}, nil
}
