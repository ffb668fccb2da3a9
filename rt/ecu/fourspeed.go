package ecu

import (
	"fmt"
	"math"
)

// Gears of the gearbox with a planetary and a Ravigneaux set, as in automatic4.yaml and truck.yaml:
// neutral, four forward gears, reverse.
const (
	neutral = 0
	reverse = 5
)

var (
	gearNames = [6]string{"N", "1", "2", "3", "4", "R"}
	gearRatio = [6]float64{1: 2.86, 2: 1.62, 3: 1, 4: 0.72, reverse: -2} // input over output speed

	// pressures of C1, C2, C3, C4, C5, RC, bar
	gearPressures = [6][6]float64{
		{}, {8, 0, 0, 0, 18, 0}, {8, 0, 0, 9, 18, 0}, {8, 0, 9, 9, 0, 0}, {0, 6, 9, 9, 0, 0}, {8, 0, 10, 0, 0, 20},
	}
)

// Times of a shift, from its start.
const (
	riseTime    = 0.5 // time at which the on-coming clutch has its pressure, s
	holdTime    = 0.1 // time at which the pressure of the off-going clutch starts to fall, s
	openTime    = 0.3 // time at which the off-going clutch is open, s
	restoreTime = 0.2 // time from the end of the slip to the end of the shift, s
	dwell       = 1.0 // longest wait until the slip vanishes, and shortest time between two shifts, s
	shiftSlip   = 2.0 // slip below which the new gear is engaged, rad/s
)

// fourSpeed is the part of a transmission control unit that carries out shifts: it holds a gear or is in a
// shift from one to another.
type fourSpeed struct {
	*session
	in, out float64 // speeds of input and output shaft, rad/s

	gear, from int     // gear and previous gear; they differ during a shift
	began      float64 // start of the shift, s
	engaged    float64 // time at which the slip had vanished, s; NaN before
	readings   int     // consecutive readings without slip
	shifts     int     // number of shifts
}

// hold holds a gear from the wake-up of the unit on.
func (g *fourSpeed) hold(gear int) { g.gear, g.from, g.began, g.engaged = gear, gear, 0, 0 }

// summary is the end of the unit's last line.
func (g *fourSpeed) summary() string {
	return fmt.Sprintf("; %d shifts, gear %s", g.shifts, gearNames[g.gear])
}

// busy reports whether a shift is under way.
func (g *fourSpeed) busy() bool { return g.gear != g.from }

// settled reports whether the next shift may start.
func (g *fourSpeed) settled(t float64) bool { return !g.busy() && t >= g.began+dwell }

// shift starts a shift to a gear.
func (g *fourSpeed) shift(t float64, to int) {
	fmt.Fprintf(g.log, "%s: %.2f s: shift %s -> %s\n", g.name, t, gearNames[g.gear], gearNames[to])
	g.from, g.gear, g.began, g.engaged, g.readings = g.gear, to, t, math.NaN(), 0
	g.shifts++
}

// watch ends a shift when the slip has vanished for three readings or dwell is over, and the pressures
// have their values.
func (g *fourSpeed) watch(t float64) {
	if !g.busy() {
		return
	}
	if math.IsNaN(g.engaged) {
		if g.readings++; math.Abs(g.slip()) > shiftSlip {
			g.readings = 0
		}
		if g.readings >= 3 || t >= g.began+dwell {
			g.engaged = t
		}
	}

	if t >= g.began+riseTime && t >= g.engaged+restoreTime {
		fmt.Fprintf(g.log, "%s: %.2f s: gear %s engaged, ratio %.2f\n", g.name, t, gearNames[g.gear], g.ratio())
		g.from = g.gear
	}
}

// slip returns the speed of the input shaft above that of the gear, rad/s; 0 in neutral.
func (g *fourSpeed) slip() float64 {
	if g.gear == neutral {
		return 0
	}
	return g.in - gearRatio[g.gear]*g.out
}

// ratio returns the measured ratio of the shafts; at rest, that of the gear.
func (g *fourSpeed) ratio() float64 {
	if math.Abs(g.out) < 1 {
		return gearRatio[g.gear]
	}
	return g.in / g.out
}

// pressures returns the pressures of C1 to C5 and RC, bar.
func (g *fourSpeed) pressures(t float64) (bar [6]float64) {
	since := t - g.began
	for i := range bar {
		off, on := gearPressures[g.from][i], gearPressures[g.gear][i]
		switch {
		case !g.busy() || off == on:
			bar[i] = on
		case on > off:
			bar[i] = off + (on-off)*min(1, since/riseTime)
		default:
			bar[i] = off + (on-off)*min(max((since-holdTime)/(openTime-holdTime), 0), 1)
		}
	}

	return bar
}
