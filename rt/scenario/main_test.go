package scenario

import (
	"testing"

	"lockstep/hil_test/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }
