package gearbox

import (
	"cmp"
	"fmt"
	"math"

	"lockstep/rt/ecu/unit"
)

// neutral is the first gear of every table.
const neutral = 0

// gearTable holds the gears of a transmission: neutral, the forward gears from 1 on, reverse at the end.
type gearTable struct {
	names  []string
	ratios []float64    // input over output speed
	held   [][6]float64 // pressures of the shift elements in the gear, bar

	freewheel int     // gear that drives by a freewheel; 0: none
	downShare float64 // speed of a downshift over that of the upshift between the same gears
	skips     bool    // shifts may skip gears: those in which one element opens and one closes
}

// fourSpeedGears are those of the planetary and the Ravigneaux set, as in automatic4.yaml and truck.yaml.
// Pressures of C1, C2, C3, C4, C5, RC.
var fourSpeedGears = gearTable{
	names:  []string{"N", "1", "2", "3", "4", "R"},
	ratios: []float64{1: 2.86, 2: 1.62, 3: 1, 4: 0.72, 5: -2},
	held: [][6]float64{
		{}, {8, 0, 0, 0, 18, 0}, {8, 0, 0, 9, 18, 0}, {8, 0, 9, 9, 0, 0}, {0, 6, 9, 9, 0, 0}, {8, 0, 10, 0, 0, 20},
	},
	freewheel: 1, downShare: 0.6,
}

// top returns the highest forward gear.
func (g *gearTable) top() int { return len(g.names) - 2 }

// reverse returns the reverse gear.
func (g *gearTable) reverse() int { return len(g.names) - 1 }

// isForward reports whether a gear is a forward gear.
func (g *gearTable) isForward(gear int) bool { return gear >= 1 && gear <= g.top() }

// swap returns the elements that close and open between two gears; ok is false unless there is one of each.
func (g *gearTable) swap(from, to int) (on, off int, ok bool) {
	on, off = -1, -1
	changes := 0
	for i, p := range g.held[to] {
		switch q := g.held[from][i]; {
		case p > 0 && q == 0:
			on = i
			changes++
		case p == 0 && q > 0:
			off = i
			changes++
		}
	}
	return on, off, changes == 2 && on >= 0 && off >= 0
}

// toward returns the gear of the next shift on the way to a forward gear: the farthest that one swap reaches, or the
// neighbour.
func (g *gearTable) toward(from, to int) int {
	step := cmp.Compare(to, from)
	for next := to; g.skips && next != from; next -= step {
		if _, _, ok := g.swap(from, next); ok {
			return next
		}
	}
	return from + step
}

// Times of a shift, from its start.
const (
	riseTime    = 0.5 // time at which the on-coming clutch has its pressure, s
	holdTime    = 0.1 // time at which the pressure of the off-going clutch starts to fall, s
	openTime    = 0.3 // time at which the off-going clutch is open, s
	restoreTime = 0.2 // time from the end of the slip to the end of the shift, s
	dwell       = 1.0 // usual longest wait until the slip vanishes, and shortest time between two shifts, s
	shiftSlip   = 2.0 // slip below which the new gear is engaged, rad/s
)

// transmission is the part of a transmission control unit that carries out shifts: it holds a gear or is in a
// shift from one to another.
type transmission struct {
	*unit.Base
	*gearTable
	in, out float64 // speeds of input and output shaft, rad/s

	gear, from int     // gear and previous gear; they differ during a shift
	began      float64 // start of the shift, s
	longest    float64 // longest wait until the slip vanishes, s
	engaged    float64 // time at which the slip had vanished, s; NaN before
	readings   int     // consecutive readings without slip
	shifts     int     // number of shifts
}

// hold holds a gear from the wake-up of the unit on.
func (g *transmission) hold(gear int) { g.gear, g.from, g.began, g.engaged = gear, gear, 0, 0 }

// summary is the end of the unit's last line.
func (g *transmission) Summary() string {
	return fmt.Sprintf("; %d shifts, gear %s", g.shifts, g.names[g.gear])
}

// busy reports whether a shift is under way.
func (g *transmission) busy() bool { return g.gear != g.from }

// settled reports whether the next shift may start.
func (g *transmission) settled(t float64) bool { return !g.busy() && t >= g.began+dwell }

// shift starts a shift to a gear.
func (g *transmission) shift(t float64, to int) {
	g.Logf("%.2f s: shift %s -> %s", t, g.names[g.gear], g.names[to])
	g.from, g.gear, g.began, g.longest, g.engaged, g.readings = g.gear, to, t, dwell, math.NaN(), 0
	g.shifts++
}

// watch ends a shift when the slip has vanished for three readings or its longest time is over, and the pressures
// have their values.
func (g *transmission) watch(t float64) {
	if !g.busy() {
		return
	}
	if math.IsNaN(g.engaged) {
		if g.readings++; math.Abs(g.slip()) > shiftSlip {
			g.readings = 0
		}
		if g.readings >= 3 || t >= g.began+g.longest {
			g.engaged = t
		}
	}

	if t >= g.began+riseTime && t >= g.engaged+restoreTime {
		g.Logf("%.2f s: gear %s engaged, ratio %.2f", t, g.names[g.gear], g.ratio())
		g.from = g.gear
	}
}

// slip returns the speed of the input shaft above that of the gear, rad/s; 0 in neutral.
func (g *transmission) slip() float64 {
	if g.gear == neutral {
		return 0
	}
	return g.in - g.ratios[g.gear]*g.out
}

// ratio returns the measured ratio of the shafts; at rest, that of the gear.
func (g *transmission) ratio() float64 {
	if math.Abs(g.out) < 1 {
		return g.ratios[g.gear]
	}
	return g.in / g.out
}

// pressures returns the pressures of the shift elements, bar: ramps during a shift.
func (g *transmission) pressures(t float64) (bar [6]float64) {
	since := t - g.began
	for i := range bar {
		off, on := g.held[g.from][i], g.held[g.gear][i]
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
