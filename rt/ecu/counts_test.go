package ecu

import (
	"bytes"
	"testing"

	"lockstep/rt/ecu/unit/unittest"
)

func TestLastLineSummarisesTheUnit(t *testing.T) {
	want := Counts{Cycles: 1, Missed: 2, Dropped: 3, Received: 4, Malformed: 6, Lost: 7}
	for name, rest := range map[string]string{
		"powershift": "",
		"truck":      "; 0 shifts, gear N",
		"amt12":      "; 0 shifts, 0 repeated, gear N",
		"hp8":        "; 0 shifts, gear N",
		"abs":        "; 0 stops, cycles in control of [FL FR RL RR]: [0 0 0 0]",
		"wsp":        "; 0 stops, axles 1 to 4 released [0 0 0 0] times",
	} {
		u := unittest.New(t, types(), name, &bytes.Buffer{}, &bytes.Buffer{})
		u.Counts = want
		line := u.Close()
		if text := name + ": 1 cycles sent, 2 missed, 3 frames dropped, 4 frames received, 6 malformed, 7 lost by their counters" + rest; line != text {
			t.Errorf("%q, want %q", line, text)
		}
		if got, err := ParseCounts(line); err != nil || got != want {
			t.Errorf("%q is read as %v, %v", line, got, err)
		}
	}
	for _, line := range []string{"", "powershift", "powershift: waiting for Speeds (0x200)", "abs: 1 cycles sent, 2 missed"} {
		if got, err := ParseCounts(line); err == nil || got != (Counts{}) {
			t.Errorf("%q is read as %v", line, got)
		}
	}
}
