package codegen

import "errors"

// Go writes the Go package of a plant's kernel.
func Go(j Job) (Files, Report, error) {
	if err := j.check(); err != nil {
		return nil, Report{}, err
	}
	return nil, Report{}, errors.New("codegen: the specialiser is not in this build")
}
