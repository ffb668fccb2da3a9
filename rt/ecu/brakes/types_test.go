package brakes

import (
	"io"
	"testing"

	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// newUnit returns the unit called name.
func newUnit(t *testing.T, name string, line, log io.Writer, settings ...unit.Setting) *unittest.Unit {
	t.Helper()
	return unittest.New(t, Types(), name, line, log, settings...)
}
