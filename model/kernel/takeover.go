package kernel

import (
	"fmt"
	"math"
	"slices"

	"lockstep/model/units"
)

// Follows returns an error if a kernel with tables t cannot continue the motion of a kernel with
// tables from, because their states, ports or elements differ.
func (t *Tables) Follows(from *Tables) error {
	counts := func(t *Tables) []int {
		return append([]int{t.Places, t.M, t.FirstAffine, t.FirstLaw, t.History, len(t.Indicators), len(t.Pulses), len(t.Blocks())},
			t.InputSignal...)
	}
	ports := func(a, b units.Port) bool { return a == b }
	rings := func(a, b Sample) bool { // whether neither keeps values, or both the same ones
		return a.Back+b.Back == 0 || a.State == b.State && a.Ring == b.Ring && a.Back == b.Back
	}
	switch {
	case t.Partition != nil || from.Partition != nil:
		return fmt.Errorf("kernel: a plant with a partition keeps its parameters during a run")
	case !slices.Equal(t.StateName, from.StateName):
		return fmt.Errorf("kernel: the plant would have other states: %d, now %d", t.N, from.N)
	case !slices.Equal(t.Frictions, from.Frictions) || len(t.Switches) != len(from.Switches):
		return fmt.Errorf("kernel: the plant would have other friction elements or regions")
	case !slices.EqualFunc(t.Inputs, from.Inputs, ports) || !slices.EqualFunc(t.Outputs, from.Outputs, ports):
		return fmt.Errorf("kernel: the plant would have other inputs or outputs")
	case !slices.EqualFunc(t.Samples, from.Samples, rings):
		return fmt.Errorf("kernel: the plant would have other sampled blocks, or a delayTime of another number of steps")
	case t.PeriodNs != from.PeriodNs || t.Scheme != from.Scheme || t.Form != from.Form ||
		(t.Sparse == nil) != (from.Sparse == nil) || !slices.Equal(counts(t), counts(from)) || !slices.Equal(t.Delay, from.Delay) ||
		!slices.Equal(t.Ramped, from.Ramped):
		return fmt.Errorf("kernel: the plant would need another form of its tables")
	}
	return nil
}

// TakeOver continues the motion of from in k, whose tables follow those of from, before the step with
// the inputs u. Every state keeps its value, so speeds and positions are continuous. The energy may
// change: a mass that grows at the same speed gains energy. Modes, regions and capacities are those of
// the new tables under the inputs of the step: an overloaded lock slips, and a locked element whose
// speeds now differ slips until it locks again. These transitions are events of the step.
//
// Where nothing changes at once, the laws and the torques that they follow begin the step as they would in from: its
// iteration starts at the same values, and tables without a change continue the motion to the bit.
//
// It returns false and changes nothing while from owes time (lag > 0), and where a clearance would be
// overlapped.
//
//go:nosplit
func (k *Kernel) TakeOver(from *Kernel, u []float64) bool {
	if k.obstacle(from) != NoObstacle {
		return false
	}

	k.copyMotion(from)
	k.timeTol = minTimeTol + float64(1e-15*k.gridTime())
	k.publishedAt, k.lockedBase = -1, -1
	k.held.isSet = false
	copy(k.modesBefore, k.mode)
	changed, freed := k.takeOverRegions(from), k.freeMoving()
	k.nextBreakpoint, k.logged = 0, 0
	if changed || freed || k.calls.mustSettle(k) {
		if !k.acceptInputs(u) {
			k.fault = 0 // the step reports it
			k.commands.set(&from.commands)
		}
		if freed && k.recordTransitions(0) {
			k.events++
		}
		k.calls.settle(k)
		if freed {
			k.calls.resolveModes(k)
			k.projectLocks()
		}
	} else {
		k.copyMotion(from)
		k.nextBreakpoint, k.logged = 0, 0
	}
	k.commands.set(&from.commands)
	k.keepsLog = true
	return true
}

// copyMotion copies the motion of from, whose tables k follows.
//
//go:nosplit
func (k *Kernel) copyMotion(from *Kernel) {
	k.plantState.set(&from.plantState)
	k.tick, k.lag, k.unconverged = from.tick, from.lag, from.unconverged
	copy(k.input, from.input)
	k.commands.set(&from.commands)
	copy(k.publishedCount, from.publishedCount)
	copy(k.delayed, from.delayed)
	k.torqueTol = from.torqueTol
	copy(k.lawValues, from.lawValues)
	copy(k.lawStart, from.lawStart)
	copy(k.lawMax, from.lawMax)
	copy(k.indicatorMax, from.indicatorMax)
	copy(k.w1, from.w1)
	copy(k.w2, from.w2)
	copy(k.tau0, from.tau0)
	copy(k.w, from.w)
	copy(k.tau, from.tau)
	copy(k.capNow, from.capNow)
	copy(k.termMax, from.termMax)
	copy(k.contactTol, from.contactTol)
}

// takeOverRegions gives each switch whose level or borders differ from those of from the region of its level, and each
// clearance whose faces differ its opening. It reports whether there is one. The others keep theirs: where a level is at
// a border, the motion has decided, and rounding would decide anew.
//
//go:nosplit
func (k *Kernel) takeOverRegions(from *Kernel) (changed bool) {
	for s := range k.region {
		sw, z := &k.t.Switches[s], k.level(s, k.x)
		if z != from.level(s, k.x) || !sameValues(sw.Borders, from.t.Switches[s].Borders) {
			k.region[s], k.followed[s], changed = sw.regionOf(z), false, true
		}
	}
	for _, i := range k.t.Clearances {
		g, before := k.t.Friction[i].Gap, from.t.Friction[i].Gap
		if g.Limit != before.Limit || g.Const != before.Const || !sameValues(g.Row, before.Row) {
			k.present[i], changed = false, true
		}
	}
	if changed {
		k.updateExtents()
	}
	k.selectCombination()
	return changed
}

// sameValues reports whether two lists have the same values.
//
//go:nosplit
func sameValues(a, b []float64) bool {
	same := len(a) == len(b)
	for i := range a {
		same = same && a[i] == b[i]
	}
	return same
}

// Obstacle is what keeps a kernel from taking over.
type Obstacle int

// The obstacles. A value of OverlappedClearance + i is friction element i, a clearance that would be
// overlapped.
const (
	NoObstacle          Obstacle = iota
	OwedTime                     // the plant owes time (lag > 0)
	BrokenState                  // a state of the plant is no longer finite
	NoSnapshot                   // there is no state in the slot of Sequence.Restore
	OverlappedClearance          // the first clearance
)

// obstacle returns what keeps k from taking over the motion of from.
//
//go:nosplit
func (k *Kernel) obstacle(from *Kernel) Obstacle {
	switch {
	case from.lag > 0:
		return OwedTime
	case from.fault != 0:
		return BrokenState
	}
	for _, i := range k.t.Clearances {
		if len(k.t.Friction[i].Gap.While) == 0 && k.clearance(i, from.x) < -overlapZero {
			return OverlappedClearance + Obstacle(i)
		}
	}
	if k.t.Confined {
		if i := k.overlappedFace(from.x); i >= 0 {
			return OverlappedClearance + Obstacle(i)
		}
	}
	return NoObstacle
}

// Describe returns what kept a kernel with tables t from taking over, as the end of a sentence.
func (t *Tables) Describe(o Obstacle) string {
	switch {
	case o == OwedTime:
		return "the plant owed time: events were too dense"
	case o == BrokenState:
		return "a state of the plant is no longer a number"
	case o == NoSnapshot:
		return "there is no such snapshot"
	}
	return "clearance " + t.Frictions[o-OverlappedClearance] + " would be overlapped"
}

// freeMoving ends the locks whose elements move against each other in the present state, and the
// contacts that are apart. It reports whether there was one.
//
//go:nosplit
func (k *Kernel) freeMoving() bool {
	freed := false
	k.slips.mul(k.slip, k.x)
	for i, s := range k.slip {
		switch gap := k.t.Friction[i].Gap != nil; {
		case k.mode[i] != Stuck:
		case gap && k.clearance(i, k.x) > overlapZero:
			k.setMode(i, Free)
			freed = true
		case !gap && math.Abs(s) > 10*slipZero:
			k.setMode(i, k.modeAtSlip(i, s))
			freed = true
		}
	}
	return freed
}

// mustSettle reports whether an event indicator is beyond its side or an element closes in the state and under the
// signals and torques to which steps with other tables have led. What a command or a source changes from here on is left
// to the step.
//
//go:nosplit
func (k *Kernel) mustSettle() bool {
	k.setOffsets(k.w)
	k.evaluateIterated(k.w[:k.t.M], k.x)
	for g := range k.side {
		v := k.evaluateProgram(k.indicatorProgram(g), k.x, k.w[:k.t.M])
		if k.indicatorMargin(g, v) < -k.indicatorNoise(g) {
			return true
		}
	}
	k.slips.mul(k.slip, k.x)
	return k.fastestClosing() >= 0
}

// settle makes signals, sides, regions and modes consistent with the state at the start of a tick,
// where no substep has led.
//
//go:nosplit
func (k *Kernel) settle() {
	k.calls.setSignals(k, k.x, 0, min(k.t.Delta, k.nextChange(0)))
	k.endAtZero(0)
	for range k.side { // a side may follow from a law that depends on another side
		if !k.calls.updateSides(k, k.x, k.w0[:k.t.M]) {
			break
		}
		k.calls.setSignals(k, k.x, 0, min(k.t.Delta, k.nextChange(0)))
	}

	k.calls.setSignals(k, k.x, 0, k.length)
	k.slips.mul(k.slip, k.x)
	k.calls.transmitFastest(k)
	k.updateRegions(0)
	k.calls.startSubstep(k, 0)
}

// transmitFastest applies the impacts of elements that close in the state: a freewheel may start
// against its direction.
//
//go:nosplit
func (k *Kernel) transmitFastest() { k.transmitImpacts(k.fastestClosing()) }
