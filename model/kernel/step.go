package kernel

import (
	"math"
	"slices"

	"lockstep/model"
)

// overload is the relative excess over a capacity that breaks a lock: above the rounding of a lock
// torque.
const overload = 1e-9

// torqueNoise is the rounding of a friction torque as part of the largest one: even an unloaded
// freewheel carries that much.
const torqueNoise = 1e-13

// minTimeTol is the time difference below which two instants near time 0 are one, s.
const minTimeTol = 1e-12

// maxSubsteps returns the largest number of substeps of a tick: those of the period and the longest
// lag, and one more for each instant at which a substep may end early.
//
//go:nosplit
func (t *Tables) maxSubsteps() int {
	return t.maxPeriods()*(t.Split+1+2*t.EventChecks+t.minSubsteps()) + t.Breakpoints
}

// maxPeriods returns the largest number of periods that a tick can span.
//
//go:nosplit
func (t *Tables) maxPeriods() int { return 2 + int(t.LagBound/(float64(t.PeriodNs)*1e-9)) }

// minSubsteps returns the number of minimum substeps in a period. In a sparse plant each is a full
// substep, because each moves all of the plant; with teeth a quarter of one, because teeth that rattle use
// up the budget of events, and a clutch may overshoot in the rest of the tick.
//
//go:nosplit
func (t *Tables) minSubsteps() int {
	switch {
	case t.Sparse != nil && t.Confined:
		return 4 * t.Split
	case t.Sparse != nil:
		return t.Split
	}
	return max(minSubstepsPerPeriod, 4*t.Split)
}

// minSubstepsPerPeriod is the number of minimum substeps in a period of few substeps.
const minSubstepsPerPeriod = 64

// advanceTick advances the plant to the grid time of this tick: over the period and the lag. The
// time that it does not reach stays in the lag. A tick after which the lag could exceed its bound
// goes all the way.
//
//go:nosplit
func (k *Kernel) advanceTick() {
	if k.t.Partition != nil {
		k.calls.macroStep(k)
		return
	}

	k.eta = 1
	stops := k.h+k.lag <= k.t.LagBound+k.timeTol && (k.t.Sparse == nil || k.t.Scheme == Papers)
	reached := k.advanceTo(-k.lag, k.h, stops)
	if k.lag = k.h - reached; k.lag <= k.timeTol {
		k.lag = 0
	}
}

// limitGrowth is the factor by which a substep of a plant stepped sparse may be longer than the one before where that was
// shortened for an event which is not in it. The parabola of a law that begins to grow dips below its start, and less so
// over a shorter substep: the whole substep would find the same event again.
const limitGrowth = 8

// advanceTo advances the plant between two local times, counted from the grid time at the start of
// the tick, s. Where stops is true it may end at the event at which the scheme ends a tick. It
// returns the local time reached.
//
//go:nosplit
func (k *Kernel) advanceTo(from, to float64, stops bool) float64 {
	local, found, limit, checksLeft := from, 0, k.t.Delta, k.t.EventChecks*-int(floorTicks((from-to+k.timeTol)/k.h))
	clear(k.impacts)
	steady := k.t.SteadyTick && from >= 0 // signals keep their values from the first substep on
	for range k.t.maxSubsteps() {
		left := to - local
		if left <= k.timeTol || stops && checksLeft <= 0 && local-from > k.timeTol {
			break
		}
		length, limited, transitions := k.t.Delta, false, k.transitions
		if k.held.starts {
			if !k.t.SteadyTick {
				k.passBreakpoints(local)
			}
			k.startHeld()
		} else {
			length = left
			if !steady {
				length = min(left, max(k.nextChange(local)-local, k.timeTol))
			}
			limited = limit < min(length, k.t.Delta) && checksLeft > 0
			if limited {
				length = limit
			}
			if length > k.t.Delta-k.timeTol {
				length = k.t.Delta
			}
			if k.length = length; !steady || local == from {
				k.calls.setSignals(k, k.x, local, length)
			}
			if checksLeft > 0 && k.endAtZero(local) {
				checksLeft--
				length = k.length
			}
			k.calls.startSubstep(k, local)
		}
		if k.transitions != transitions && local-from > k.timeTol {
			if found == 0 { // later ones need no part of the budget: the rows of tables are counted
				k.eta, found = (local-from)/(to-from), 1
			}
			if stops && k.t.Scheme == Papers {
				return local
			}
		}

		theta, cause := k.calls.advanceSubstep(k, local, checksLeft > 0)
		k.saveLawTrend(theta)
		if k.t.Sparse != nil && k.t.ReadsTau { // the torques that laws read also continue
			k.setInstant(theta)
			k.setTorquesAt(theta)
		}
		if k.stopIfNotFinite() {
			k.held.ends = false
			return local
		}
		local += float64(theta * k.length)
		if cause == noEvent {
			switch {
			case k.length < length: // the event it was shortened for is not in it
				checksLeft--
				if k.t.Sparse != nil {
					limit = float64(limitGrowth * k.length)
				}
			case limited:
				checksLeft--
				limit = float64(limitGrowth * limit)
			}
			continue
		}

		checksLeft--
		limit = k.t.Delta
		if k.calls.handleEvent(k, local, theta, cause) && to-local > k.timeTol {
			if found++; found == 1 {
				k.eta = (local - from) / (to - from)
			}
			if stops && k.tickEnds(found, local-from) {
				break
			}
		}
	}

	if to-local <= k.timeTol && k.changesAt(local) {
		k.calls.setSignals(k, k.x, local, min(k.t.Delta, max(k.nextChange(local)-local, k.timeTol)))
		k.endAtZero(local)
		k.calls.startSubstep(k, local)
		k.held.ends = false
	}
	return local
}

// endAtZero shortens the substep from a local time on, whose signals are set, to the first instant
// at which a wave crosses the offset of a capacity. It reports whether there is one.
//
//go:nosplit
func (k *Kernel) endAtZero(local float64) bool {
	if len(k.t.WavePressed) == 0 {
		return false
	}
	part := float64(k.firstZero() * k.length)
	if part >= k.length-k.timeTol {
		return false
	}
	k.calls.setSignals(k, k.x, local, max(part, k.timeTol))
	return true
}

// changesAt reports whether a source, a law or a delayed command may change a mode at a local time,
// at which the last substep ended. A mode that changes at a grid time then belongs to this tick.
//
//go:nosplit
func (k *Kernel) changesAt(local float64) bool {
	if k.t.SteadyTick {
		return false
	}
	if k.nextBreakpoint-k.gridTime() <= local+k.timeTol || k.endsAtZero() || k.lawAtZero(1) {
		return true
	}
	for i, d := range k.t.Delay {
		if d > 0 && k.input[k.t.InputSignal[i]] >= 0 &&
			k.commandAt(i, local, local-float64(2*k.timeTol)) != k.commandAt(i, local, local+float64(2*k.timeTol)) {
			return true
		}
	}

	return false
}

// tickEnds reports whether a tick ends at its event number found, when it has advanced by done, s.
//
//go:nosplit
func (k *Kernel) tickEnds(found int, done float64) bool {
	if k.t.Scheme == Papers {
		return done > k.timeTol
	}
	return found >= k.t.EventBudget
}

// startSubstep makes the modes consistent with the capacities at the start of a substep. Elements
// without capacity become free and others active; a lock that is overloaded, as after a falling
// command, breaks away.
//
//go:nosplit
func (k *Kernel) startSubstep(local float64) {
	if k.lawAtZero(0) {
		k.setRising()
	}
	k.slips.mul(k.slip, k.x)
	copy(k.modesBefore, k.mode)
	resolve := false
	for i, s := range k.slip {
		active := k.hasCapacity(i)
		switch {
		case !active && k.mode[i] != Free:
			resolve = resolve || k.mode[i] == Stuck
			k.setMode(i, Free)
		case active && k.mode[i] == Free:
			k.setMode(i, k.modeAtSlip(i, s))
			resolve = resolve || k.mode[i] == Stuck
		}

		if math.Abs(s) > 10*slipZero {
			k.leavingZero[i] = false
		}
	}

	for _, i := range k.t.Clearances {
		if k.mode[i] == Stuck {
			k.setClosed(i)
		}
	}

	k.setInstant(0)
	k.setLoads()
	if resolve || k.anyOverloaded() {
		k.calls.resolveModes(k)
		if k.t.DecidesAlone {
			k.setLoadTorques()
		}
		k.projectLocks()
		k.slips.mul(k.slip, k.x)
	}

	if k.recordTransitions(local) {
		k.events++
		if k.t.ReadsTau { // the laws started with the torques of the previous modes
			k.startLaws(k.x)
		}
	}

	k.startTorques()
	for _, i := range k.t.Clearances {
		if k.present[i] {
			k.setContactTol(i)
		}
	}

	if k.t.Steady {
		copy(k.w0[k.t.M:], k.applied)
		return
	}
	for i := range k.mode {
		k.expandTorque(i)
	}
}

// startTorques sets the torques at the start of a substep to tau, and torqueTol.
//
//go:nosplit
func (k *Kernel) startTorques() {
	largest := 0.0
	for i, tau := range k.tau {
		k.tau0[i] = tau
		if v := math.Abs(tau); v > largest {
			largest = v
		}
		if v := k.limit[i]; v > largest {
			largest = v
		}
	}
	k.torqueTol = float64(torqueNoise * largest)
}

// setMode sets the mode of element i and its bit in kappa.
//
//go:nosplit
func (k *Kernel) setMode(i int, to int8) {
	k.mode[i] = to
	at := k.bitOf[i]
	if to == Stuck {
		k.kappa[at.block] |= 1 << at.bit
	} else {
		k.kappa[at.block] &^= 1 << at.bit
	}
	if to != Stuck && k.t.FaceOn != nil {
		k.freeFace(i)
	}
}

// recordTransitions logs the transitions since modesBefore was taken. It reports whether there were
// any.
//
//go:nosplit
func (k *Kernel) recordTransitions(local float64) bool {
	any := false
	for i, to := range k.mode {
		if from := k.modesBefore[i]; from != to {
			any = true
			k.transitions++
			k.logEvent(Event{Time: k.gridTime() + local, Friction: i, From: from, To: to})
		}
	}

	return any
}

// noEvent is the cause where there is no event. Other causes are: friction element i as i, switch s
// as mc+s, event indicator g as -2-g.
const noEvent = -1

// advanceSubstep advances the state to the end of the substep or to the first event in it. An event
// less than a minimum substep away is handled together with those after it. It returns the place of
// the event, 0 to 1, and its cause.
//
//go:nosplit
func (k *Kernel) advanceSubstep(local float64, locate bool) (theta float64, cause int) {
	expanded := true
	k.held.ends = false
	if locate && k.t.Sparse != nil && k.t.FirstLaw < k.t.M {
		theta, cause = k.locateEventSparse(local)
	} else {
		theta, cause, expanded = k.calls.locateEvent(k, local, locate, convergeOrHalve, false)
	}

	separate := theta >= k.minSubstep(locate)
	if cause != noEvent && separate && k.t.FirstLaw < k.t.M && !k.isLocated(theta, cause) {
		theta, cause = k.locateEventShortened(local, theta, cause)
		separate = theta >= k.minSubstep(locate) // the first event of the shorter substep may differ
	}

	if cause == noEvent {
		theta = 1
	}
	if len(k.pulse) > 0 && (cause == noEvent || separate) {
		k.calls.countPulses(k, local, theta, expanded)
	}
	switch {
	case cause == noEvent:
		copy(k.x, k.x1)
		if k.t.SteadyTick {
			copy(k.slip, k.slip1)
			k.held.ends = true
		}
	case separate:
		k.horner(k.x, theta)
		return theta, cause
	default:
		theta = k.minSubstep(locate)
		k.calls.stepOverEvents(k, local, theta)
	}

	if k.coincident++; theta*k.length > slipZero {
		k.coincident = 0
	}
	return theta, noEvent
}

// minSubstep returns the part of the substep within which events are not separated: 0 while the
// tick locates events, a small part where events accumulate at one instant.
//
//go:nosplit
func (k *Kernel) minSubstep(locate bool) float64 {
	if !locate {
		return min(1, k.h/(float64(k.t.minSubsteps())*k.length))
	}
	if k.eventsAccumulate() {
		return 1. / 4096
	}
	return 0
}

// eventsAccumulate reports whether events accumulate at one instant.
//
//go:nosplit
func (k *Kernel) eventsAccumulate() bool { return k.coincident > k.accumulationLimit() }

// accumulationLimit returns the number of events at one instant beyond which they count as an
// accumulation. From half of it on impacts are plastic, which ends most accumulations.
//
//go:nosplit
func (k *Kernel) accumulationLimit() int { return 2 * (k.t.Mc + len(k.side) + len(k.region) + 1) }

// handleEvent gives the cause of an event, and the elements at rest with it, their one transition.
// It reports whether a friction element or a switch changed.
//
//go:nosplit
func (k *Kernel) handleEvent(local, theta float64, cause int) bool {
	if theta*k.length > slipZero {
		k.coincident = 0
	}
	k.coincident++
	if cause < noEvent {
		k.side[-2-cause] = k.sidePassed
		k.events++
		return false
	}

	if cause >= k.t.Mc {
		copy(k.modesBefore, k.mode)
		k.crossBoundary(cause-k.t.Mc, local)
		if k.t.Confined && k.updateExtents() {
			k.setInstant(theta)
			k.slips.mul(k.slip, k.x)
			k.calls.resolveModes(k)
			k.projectLocks()
			k.recordTransitions(local)
		}
		return true
	}

	if !k.t.Steady {
		k.setInstant(theta)
	}
	if k.t.Friction[cause].Gap != nil && k.mode[cause] == Free {
		return k.calls.handleImpact(k, cause, local)
	}
	copy(k.modesBefore, k.mode)
	k.slips.mul(k.slip, k.x)
	leaving := false // another element at rest may be leaving zero slip
	for i, s := range k.slip {
		leaving = leaving || k.leavingZero[i] && i != cause && math.Abs(s) <= 2*slipZero
	}
	if leaving {
		k.setRates(k.w)
	}
	for i, s := range k.slip {
		d := k.direction(i)
		leaves := k.leavingZero[i] && d*k.slips.dot(i, k.xd) >= 0
		if d != 0 && (i == cause || math.Abs(s) <= 2*slipZero && !leaves) {
			k.setMode(i, Stuck)
		}
	}

	k.calls.resolveModes(k)
	k.projectLocks()
	changed := k.recordTransitions(local)
	if changed {
		k.events++
	}
	return changed
}

// Bounds lists the bounds of the loops in a tick.
type Bounds struct {
	Substeps    int // substeps of a tick with the largest lag
	Events      int // events located in a period; the rest of it separates events by a minimum substep
	MinSubsteps int // minimum substeps in a period
	Breakpoints int // breakpoints of sources and delayed commands in a tick
	Iterations  int // law iterations in a substep; 0 without laws
	Pivots      int // pivots among the friction elements at rest, per event
}

// Bounds returns the bounds of a tick.
func (t *Tables) Bounds() Bounds {
	b := Bounds{Substeps: t.maxSubsteps(), Events: t.EventChecks, MinSubsteps: t.minSubsteps(), Breakpoints: t.Breakpoints}
	if t.FirstLaw < t.M {
		b.Iterations = maxLawIterations
	}
	for _, g := range t.Blocks() {
		decisions := 1
		if slices.ContainsFunc(g.Elements, func(i int) bool { return t.Friction[i].Face > 0 }) {
			decisions += maxJams
		}
		b.Pivots += decisions * maxPivots * len(g.Elements) * (len(g.Elements) + 1)
	}
	return b
}

// Workspace returns the memory, bytes, in which slopes are added and a lock set is factorised. For
// a plant stepped sparse it is the memory of its matrices and blocks.
func (t *Tables) Workspace() int {
	if t.Sparse != nil {
		return t.Sparse.bytes()
	}
	n, mc, mw := t.N, t.Mc, t.M+t.Mc
	slopes := 0
	if len(t.Switches) > 0 {
		slopes = n*n + mc*n
	}
	return 8 * (2*n*n + n*mw + mc*(n+mw) + mc*mc + mc*(2*n+mw) + slopes)
}

// Fastest returns the largest rate that a substep must follow, rad/s: over all lock sets where they
// are precomputed, and that of the laws.
func (t *Tables) Fastest() float64 { return max(t.Radius, t.LawRate()) }

// sparseLawError is the error of the laws of a plant stepped sparse, as part of the largest change of
// a law. A law that follows its own motion at rate s has an error of (s·delta)^4/720 in the time 1/s:
// collocation at the three Lobatto points is the Padé approximation (2,2) of the exponential (Hairer
// and Wanner, Solving ordinary differential equations II, IV.3).
const sparseLawError = 2e-5

// LawRate returns the rate of the laws that a substep must follow, rad/s; 0 without laws.
func (t *Tables) LawRate() float64 {
	if t.Sparse != nil {
		return t.Steepness / math.Sqrt(math.Sqrt(720*sparseLawError))
	}
	return 2 * t.Steepness
}

// SourceAt returns the value of s at time t, s; at a jump, the value after it.
func SourceAt(s *model.Source, t float64) float64 { return sourceAt(s, t, t) }
