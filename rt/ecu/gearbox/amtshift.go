package gearbox

import (
	"math"
	"time"
)

// Phases of a shift, in their order. A shift of the splitter alone leaves out neutral, speed and engagement.
const (
	amtDrive   = iota // no shift is under way
	amtUnload         // the torque goes, the clutch opens
	amtNeutral        // the sleeve of the main group leaves its gear, or goes back from an engagement
	amtGroups         // splitter and range change, cones first
	amtSync           // the countershaft gets the speed of the new gear: by its brake, or by the engine and the clutch
	amtEngage         // the sleeve enters the teeth
	amtClose          // the engine gets the speed of the new gear by TSC1, the clutch closes
	amtRestore        // the torque returns
)

const (
	amtUnloadTime  = 0.2  // s
	amtOpenTime    = 0.1  // time in which the clutch opens, s
	amtRestoreTime = 0.4  // s
	amtDwell       = 0.8  // shortest time between two shifts, s
	amtCone        = 0.23 // stroke at which a cone of splitter or range acts
	amtSlip        = 2.0  // slip at which dogs engage, rad/s
	amtWindow      = 1.5  // error of it, rad/s
	amtLead        = 0.04 // time after which clutch and brake have followed a command, s
	amtNear        = 2.0  // slip of a synchronised clutch or cone, rad/s
	amtEngageTime  = 0.25 // time after which a sleeve that does not engage goes back, s
	amtLeaveTime   = 0.3  // time after which a sleeve has not left its gear, s
	amtFreeTorque  = 60.0 // largest torque that relieves the teeth of a sleeve, N.m
	amtRepeats     = 3    // failed attempts of a sleeve after which the unit gives the shift up
)

// amtBlind is the age of ShiftSensors from which on a shift waits for them.
const amtBlind = 50 * time.Millisecond

// amtShift is the state of a shift and the commands of the unit.
type amtShift struct {
	gear, from      int // gear and previous gear; they differ during a shift
	phase           int
	began, since    float64 // start of the shift and of its phase, s
	ended           float64 // end of the last shift, s
	ready           int     // consecutive readings that the phase waits for
	left            bool    // the sleeve has left its gear in this shift
	attempts        int     // failed attempts of the sleeve in this shift
	refused         bool    // the unit has given a shift up
	shifts, repeats int
	torque          float64 // torque at the start of a phase, %
	layBefore       float64 // speed of the countershaft in the previous cycle, rad/s
	layRate         float64 // rate of it, rad/s2

	mode           uint64 // of TSC1
	speed, percent float64
	brakeForce     float64    // of the countershaft, 0 to 1
	split, rng     float64    // strokes, -1 to 1
	targets        [2]float64 // of the sleeves R/1 and 2/3, mm
}

// find reads the gear in which the unit wakes up from the sleeves and the speeds. Strokes of splitter and range are
// not measured: a standing truck gets the lowest gear of its sleeve.
func (a *amt) find(t float64) {
	a.found, a.split, a.rng = true, -1, -1
	in, out := a.shaft[0], a.shaft[1]
	least := math.Inf(1)
	for gear := -1; gear <= amtTop; gear++ {
		if gear == 0 {
			continue
		}
		if off := math.Abs(in - math.Abs(amtRatio(gear))*out); a.at(gear) && off < least-1 {
			least, a.gear = off, gear
		}
	}
	if a.gear != 0 {
		g := groupsOf(a.gear)
		a.split, a.rng, a.targets = side(g.split), side(g.rng), targetsOf(a.gear)
	}
	a.from, a.speed = a.gear, math.NaN()
	if a.moving() {
		a.enter(amtClose, t)
	}
	a.Logf("%.2f s: gear %s", t, gearName(a.gear))
}

// side returns the stroke of a group at its position 0 or 1.
func side(position int) float64 { return float64(2*position - 1) }

// targetsOf returns the targets of the sleeves in a gear, mm.
func targetsOf(gear int) (targets [2]float64) {
	if gear == 0 {
		return
	}
	switch groupsOf(gear).main {
	case 0:
		targets[0] = -amtFork
	case 1:
		targets[0] = amtFork
	case 2:
		targets[1] = -amtFork
	default:
		targets[1] = amtFork
	}
	return
}

// at reports whether the sleeves are engaged as in a gear; in neutral, whether both are out.
func (a *amt) at(gear int) bool {
	for i, target := range targetsOf(gear) {
		s := a.gates[i]
		if target == 0 && math.Abs(s) > 3 || target != 0 && s*math.Copysign(1, target) < 8.5 {
			return false
		}
	}
	return true
}

// output returns the magnitude of the speed of the output shaft, rad/s. Its sensor reads 0 backwards, where the
// input shaft tells the speed.
func (a *amt) output() float64 {
	if a.gear < 0 && a.phase == amtDrive {
		return a.shaft[0] / -amtRatio(a.gear)
	}
	return a.shaft[1]
}

// inputAt returns the speed of the input shaft in a gear, rad/s.
func (a *amt) inputAt(gear int) float64 { return math.Abs(amtRatio(gear)) * a.output() }

// moving reports whether the clutch can close in the gear without stalling the engine.
func (a *amt) moving() bool { return a.gear != 0 && a.inputAt(a.gear) > 1.1*amtIdle }

// failed reports whether the sleeves have refused a shift, or have left their gear.
func (a *amt) failed() bool { return a.refused || a.phase == amtDrive && !a.at(a.gear) }

// repeat begins the next attempt of a sleeve. After amtRepeats failed ones it gives the shift up: the gearbox stays in the
// gear that the sleeve has not left, otherwise in neutral, until the next operation cycle, or until the trouble code is
// cleared.
func (a *amt) repeat(t float64) {
	a.attempts, a.repeats = a.attempts+1, a.repeats+1
	if a.attempts < amtRepeats {
		a.enter(amtNeutral, t)
		return
	}
	a.Logf("%.2f s: gear %s given up", t, gearName(a.gear))
	if a.left {
		a.from = 0
	}
	a.refused, a.gear, a.targets, a.clutch = true, a.from, targetsOf(a.from), 0
	a.enter(amtClose, t)
}

// decide starts the next shift when it is due.
func (a *amt) decide(t float64) {
	if a.phase != amtDrive || t < a.ended+amtDwell || a.Memory.LimpHome() {
		return
	}
	a.refused = false // its code has been cleared
	if to := a.wanted(); to != a.gear {
		a.Logf("%.2f s: shift %s -> %s", t, gearName(a.gear), gearName(to))
		a.from, a.gear, a.began, a.torque, a.attempts, a.left = a.gear, to, t, 100*a.load, 0, false
		a.shifts++
		a.enter(amtUnload, t)
	}
}

// wanted returns the gear that request, speed and pedals ask for.
func (a *amt) wanted() int {
	standing := a.output() < amtStanding
	switch {
	case a.requested == 0:
		return 0
	case a.requested < 0:
		if a.gear < 0 || standing {
			return a.requested
		}
		return a.gear
	case a.gear < 0 && !standing:
		return a.gear
	case a.manual >= 0.5:
		if n := a.inputAt(a.requested); standing || n > 0.95*amtIdle && n < amtGoverned {
			return a.requested
		}
		return a.gear
	case standing || a.gear <= 0 && a.output() < amtIdle/amtRatio(int(a.startGear)):
		return min(int(a.startGear), a.requested)
	}
	return min(a.automatic(), a.requested)
}

// automatic returns the gear for the speed of a moving truck.
func (a *amt) automatic() int {
	n := a.inputAt(a.gear)
	switch {
	case a.gear <= 0 || n < a.down*rpm && a.gear > int(a.startGear):
		return max(a.highest(amtTop, a.downTo), int(a.startGear))
	case a.closed && a.accelerator > 0 && a.brake == 0 && n > (a.up+a.upLoad*a.accelerator/100)*rpm:
		return max(a.highest(a.gear+3, a.after), a.gear)
	}
	return a.gear
}

// highest returns the highest gear up to most in which the input shaft turns at least at a speed in rpm; 0 if there
// is no such gear.
func (a *amt) highest(most int, least float64) int {
	for gear := min(most, amtTop); gear > 0; gear-- {
		if a.inputAt(gear) >= least*rpm {
			return gear
		}
	}
	return 0
}

// enter begins a phase.
func (a *amt) enter(phase int, t float64) { a.phase, a.since, a.ready = phase, t, 0 }

// ready3 counts readings that satisfy a condition and reports whether three have done so in a row.
func (a *amt) ready3(ok bool) bool {
	if a.ready++; !ok {
		a.ready = 0
	}
	return a.ready >= 3
}

// advance computes the commands of a cycle.
func (a *amt) advance(t, dt float64) {
	a.brakeForce, a.percent = 0, noLimit
	a.layRate, a.layBefore = (a.lay-a.layBefore)/dt, a.lay
	if amtNeutral <= a.phase && a.phase <= amtEngage && a.Base.LastCycle.Sub(a.sensed) > amtBlind {
		a.clutch, a.since = 0, a.since+dt // sleeves and countershaft are not known: the phase waits
		return
	}
	past := t - a.since
	switch a.phase {
	case amtDrive:
		a.drive(t, dt)
	case amtUnload:
		a.mode, a.percent = overrideTorque, max(a.torque, 0)*max(0, 1-past/amtUnloadTime)
		if past > amtUnloadTime || !a.closed {
			a.clutch = 0
		}
		if past > amtUnloadTime+amtOpenTime {
			a.closed = false
			a.enter(a.afterUnload(), t)
		}
	case amtNeutral:
		a.leave(t)
	case amtGroups:
		a.request(a.inputAt(a.gear))
		a.changeGroups(t)
	case amtSync:
		a.synchronise(t)
	case amtEngage:
		a.engage(t)
	case amtClose:
		a.closeClutch(t, dt)
	case amtRestore:
		a.clutch = 1
		a.mode, a.percent = overrideLimit, a.torque+(100-a.torque)*past/amtRestoreTime
		if a.percent = min(a.percent, a.mostTorque()); past > amtRestoreTime {
			a.finish(t)
		}
	}
}

// afterUnload returns the phase after amtUnload: the main group stays where only the splitter changes.
func (a *amt) afterUnload() int {
	if a.gear != 0 && a.from != 0 && (a.gear > 0) == (a.from > 0) {
		if to, from := groupsOf(a.gear), groupsOf(a.from); to.main == from.main && to.rng == from.rng {
			return amtGroups
		}
	}
	return amtNeutral
}

// request asks the engine for a speed within its range, rad/s.
func (a *amt) request(speed float64) {
	a.mode, a.speed = overrideSpeed, min(max(speed, amtIdle), amtGoverned)
}

// finish ends a shift.
func (a *amt) finish(t float64) {
	a.Logf("%.2f s: gear %s engaged after %.2f s", t, gearName(a.gear), t-a.began)
	a.from, a.ended, a.attempts = a.gear, t, 0
	a.enter(amtDrive, t)
}

// position returns the command of the clutch for a torque, N.m.
func (a *amt) position(torque float64) float64 {
	return a.kiss + (1-a.kiss)*min(max(torque/amtClutch, 0), 1)
}

// mostTorque returns the limit of the engine torque in the gear that protects the driveline, %.
func (a *amt) mostTorque() float64 {
	return min(100, a.maxTorque*1000/math.Abs(amtRatio(a.gear))/amtReference*100)
}

// drive holds a gear: it starts the truck on its clutch, and opens the clutch before the engine stalls.
func (a *amt) drive(t, dt float64) {
	a.mode, a.speed = overrideOff, math.NaN()
	in := a.shaft[0]
	if a.gear == 0 || a.requested == 0 { // limp-home may keep a gear that the driver does not ask for
		a.closed, a.clutch = false, 0
		return
	}
	a.mode, a.percent = overrideLimit, a.mostTorque()
	stops := a.accelerator <= 0 && in < 1.05*amtIdle
	switch {
	case a.closed && (a.engine < 0.75*amtIdle || stops):
		a.closed, a.clutch = false, 0
	case a.closed:
		a.clutch = min(1, a.clutch+4*dt)
	case a.accelerator > 0:
		a.start(dt)
	case a.moving():
		a.from = a.gear
		a.enter(amtClose, t)
	default:
		a.clutch, a.grip, a.ready = 0, 0, 0
	}
}

// start starts the truck: TSC1 holds the engine at a speed, and the torque of the clutch grows to the demand. It
// grows slowly, so that the half shafts do not swing, and it falls before the engine stalls.
func (a *amt) start(dt float64) {
	demand := a.accelerator / 100 * a.mostTorque() / 100 * amtReference
	a.grip = min(a.grip+a.launch*dt, demand, amtClutch*max(0, a.engine/amtIdle-0.8))
	a.clutch = a.position(a.grip)
	a.request(amtIdle + a.accelerator/100*400*rpm)
	if in := a.shaft[0]; a.ready3(math.Abs(a.engine-in) < amtNear && in > 0.9*amtIdle) {
		a.closed, a.grip = true, 0
	}
}

// leave draws the sleeve out of its gear. The friction of its teeth holds a sleeve under torque: the second attempt drives
// the countershaft by a touch of the clutch, the third one brakes it, so that the torque goes through zero in one of them.
func (a *amt) leave(t float64) {
	a.request(a.inputAt(a.gear))
	a.targets, a.clutch = [2]float64{}, 0
	past := t - a.since
	relief := amtFreeTorque * past / amtLeaveTime
	switch {
	case a.at(0) && a.gear == 0:
		a.finish(t)
	case a.at(0):
		a.left = true
		a.enter(amtGroups, t)
	case past > amtLeaveTime:
		a.Logf("%.2f s: the sleeve does not reach neutral", t)
		a.repeat(t)
	case a.left: // it goes back from an engagement
	case a.attempts == 1:
		if a.request(a.shaft[0] + 50*rpm); a.engine > a.shaft[0] {
			a.clutch = a.position(relief)
		}
	case a.attempts == 2:
		a.brakeForce = relief / amtBrake
	}
}

// changeGroups moves splitter and range to the positions of the gear. A cone that acts makes both sides equally
// fast before the teeth behind it engage.
func (a *amt) changeGroups(t float64) {
	g := groupsOf(a.gear)
	split, rng, past := side(g.split), side(g.rng), t-a.since
	equal := math.Abs(a.shaft[0]-amtSplit[g.split]*a.lay) < amtNear
	splitter := a.split == split || a.ready3(equal) || past > 0.6
	if !splitter {
		a.split = amtCone * split
	}
	ring := a.rng == rng || past > 0.25
	if !ring {
		a.rng = amtCone * rng
	}
	switch {
	case !splitter || !ring:
	case a.split != split || a.rng != rng:
		a.split, a.rng, a.since = split, rng, t
	case past < 0.06 && a.attempts == 0: // the strokes end
	case a.at(a.gear):
		a.enter(amtClose, t)
	default:
		a.enter(amtSync, t)
	}
}

// match drives the countershaft towards a speed at which the dogs turn slowly past each other: dogs without slip may stand
// tooth on tooth (Boka et al., Face Dog Clutch Engagement at Low Mismatch Speed, Periodica Polytechnica Transp. Eng. 38(1),
// 2010). It reports whether their slip will be right when a command acts.
func (a *amt) match() bool {
	g := groupsOf(a.gear)
	ratio, output := math.Abs(amtMain[g.main]), amtRange[g.rng]*a.shaft[1]
	slip := a.lay/ratio - output // of the dogs, rad/s
	switch {
	case a.shaft[1] < amtStanding: // engage turns the countershaft
	case a.gear > a.from && a.from != 0:
		slip -= amtSlip
	default:
		slip += amtSlip
	}
	ahead := slip + amtLead*a.layRate/ratio
	a.request(amtSplit[g.split]*ratio*output + 30*rpm)
	a.clutch = 0
	switch {
	case min(slip, ahead) > 0.5:
		a.brakeForce = min(ahead*ratio/20, 1)
	case slip < -0.5 && a.engine > a.shaft[0]:
		a.clutch = a.position(min(10-20*ahead*ratio, 400))
	}
	return max(math.Abs(slip), math.Abs(ahead)) < amtWindow
}

// synchronise brings the countershaft to the speed of the new gear.
func (a *amt) synchronise(t float64) {
	if a.ready++; !a.match() {
		a.ready = 0
	}
	if a.ready >= 2 || t-a.since > 3 {
		a.enter(amtEngage, t)
	}
}

// engage pushes the sleeve into its teeth while the countershaft keeps its speed. A sleeve that stands on flats of a standing
// gearbox gets a touch of the clutch; one that does not enter goes back and tries again, at most amtRepeats times.
func (a *amt) engage(t float64) {
	a.request(a.inputAt(a.gear))
	a.targets, a.clutch = targetsOf(a.gear), 0
	past := t - a.since
	standing := a.shaft[1] < amtStanding
	switch {
	case a.at(a.gear):
	case !standing:
		a.match()
	case past > amtEngageTime/2:
		a.clutch = a.position(25)
	}
	switch {
	case a.at(a.gear):
		a.enter(amtClose, t)
	case past > amtEngageTime && !standing || past > 2*amtEngageTime:
		a.Logf("%.2f s: gear %s does not engage", t, gearName(a.gear))
		a.repeat(t)
	}
}

// closeClutch gives the engine the speed of the input shaft and closes the clutch. In a standing truck the clutch
// stays open.
func (a *amt) closeClutch(t, dt float64) {
	in := a.shaft[0]
	if !a.moving() {
		a.clutch, a.closed = 0, false
		a.finish(t)
		return
	}
	a.request(in)
	slip := math.Abs(a.engine - in)
	if slip < 3*amtNear || t-a.since > 0.6 {
		a.clutch = min(1, max(a.clutch, a.kiss)+3*dt)
	}
	if a.ready3(slip < amtNear && a.clutch > a.kiss+0.1) {
		a.closed, a.torque = true, max(100*a.load, 0)
		a.enter(amtRestore, t)
	}
}
