package ecu

import (
	"fmt"
	"strings"
)

// Counts is what a control unit has sent and heard. Its last line begins with them.
type Counts struct {
	Cycles    int64 // sent
	Missed    int64 // cycles that should have been sent while the unit was awake
	Dropped   int64 // frames that the bus did not take
	Heard     int64 // frames that concern the unit
	Malformed int64 // packets that are no frame, and frames of the wrong length
	Lost      int64 // frames that are missing by their counters, modulo 16
}

const countsForm = "%d cycles sent, %d missed, %d frames dropped, %d frames heard, %d malformed, %d lost by their counters"

func (c Counts) String() string {
	return fmt.Sprintf(countsForm, c.Cycles, c.Missed, c.Dropped, c.Heard, c.Malformed, c.Lost)
}

// ParseCounts reads the counts from the last line of a control unit, "NAME: ...".
func ParseCounts(line string) (c Counts, err error) {
	_, text, _ := strings.Cut(line, ": ")
	if _, err := fmt.Sscanf(text, countsForm, &c.Cycles, &c.Missed, &c.Dropped, &c.Heard, &c.Malformed, &c.Lost); err != nil {
		return Counts{}, fmt.Errorf("ecu: %q is not the last line of a control unit: %w", line, err)
	}
	return c, nil
}

// lastLine sums up what a unit of this kind has done; malformed packets never reached it.
func (k *kind) lastLine(unit law, malformed uint64) string {
	c := *unit.counted()
	c.Malformed += int64(malformed)
	return fmt.Sprintf("%s: %v%s", k.name, c, unit.result())
}
