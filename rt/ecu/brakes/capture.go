package brakes

import (
	"math"

	"lockstep/rt/ecu/unit"
)

// Bits of the data word of a sensor of the AK protocol.
const (
	wordWeakField = 1 << 0 // the reserve of the air gap is used up
	wordDirection = 1 << 3 // the direction is valid
	wordBackward  = 1 << 4
)

// Limits for the search of edges that are missing.
const (
	longestInterval = 0.008 // interval between edges up to which a missing one is found, s: no wheel locks within two of them
	mostMissingRow  = 3     // missing edges in a row that are found
	intervalShare   = 0.35  // deviation from a multiple of the interval, share of the interval
	sameToothTurns  = 3     // turns with the same tooth missing that tell a damaged tone wheel
	scatteredEdges  = 8     // missing edges at various teeth that tell a wide air gap
)

// capture is the input of a wheel-speed sensor by wire. It counts edges and keeps the time of the last one, as the
// capture unit of a microcontroller does. An interval that is a multiple of the one before has missing edges: they
// are counted, so that the speed stays right.
type capture struct {
	line      unit.Line
	n         uint8   // edges, modulo 256, with the missing ones
	at        float64 // time of the last edge, s
	begun     bool    // at is known
	interval  float64 // time between the last two teeth, s; 0: not known
	word      uint16  // data word of the last edge
	since     int     // teeth since an edge was missing
	turns     int     // turns in a row with the same tooth missing
	scattered int     // missing edges at various teeth, without a pause of two turns
}

// take takes an edge of a wheel of teeth teeth.
func (c *capture) take(at float64, word uint16, teeth int) {
	gap, missing := at-c.at, 0
	if ratio := gap / c.interval; c.begun && c.interval > 0 && gap < longestInterval {
		if r := math.Round(ratio); r >= 2 && r <= 1+mostMissingRow && math.Abs(ratio-r) < intervalShare {
			missing = int(r) - 1
		}
	}
	c.n += uint8(1 + missing)
	c.interval = 0
	if c.begun {
		c.interval = gap / float64(1+missing)
	}
	c.at, c.begun, c.word = at, true, word
	c.countMissing(missing, teeth)
}

// countMissing tells a missing tooth from edges that are missing here and there.
func (c *capture) countMissing(missing, teeth int) {
	c.since += 1 + missing
	switch {
	case missing == 0:
		if c.since > 2*teeth {
			c.turns, c.scattered = 0, 0
		}
		return
	case c.since == teeth:
		c.turns++
	case c.since < teeth:
		c.turns = 0
		c.scattered = min(c.scattered+missing, 2*scatteredEdges)
	}
	c.since = 0
}

// direction returns the direction of rotation that the sensor tells, +1 or -1; 0: none.
func (c *capture) direction() int {
	switch {
	case !c.begun || c.word&wordDirection == 0:
		return 0
	case c.word&wordBackward != 0:
		return -1
	}
	return 1
}

// age returns the age of the last edge at now, s, at most maxEdgeAge.
func (c *capture) age(now float64) float64 {
	if !c.begun {
		return maxEdgeAge
	}
	return min(now-c.at, maxEdgeAge)
}
