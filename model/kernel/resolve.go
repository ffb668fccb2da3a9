package kernel

import (
	"math"
	"math/bits"
)

// resolveModes determines the modes of all elements at rest from the state, the inputs and the
// capacities of this instant: which stick, and which slip in which direction (Morselli, eq. 18). No
// element breaks away while some split of the lock torques is within the capacities. An element
// that breaks away drops from its static to its kinetic torque, and the modes are determined again.
// An element that the others then carry back returns to rest.
//
//go:nosplit
func (k *Kernel) resolveModes() {
	clear(k.brokeAway)
	if k.t.Sparse != nil {
		k.setFreeAccel(k.x)
	}
	for b := range k.blocks {
		k.calls.resolveBlock(k, b)
		for range maxJams {
			if !k.stopJam(b) {
				break
			}
			if k.t.Sparse != nil {
				k.setFreeAccel(k.x)
			}
			k.calls.resolveBlock(k, b)
		}
	}
}

// resolveBlock is resolveModes for the elements of block b; other blocks do not affect them.
//
//go:nosplit
func (k *Kernel) resolveBlock(b int) {
	g := &k.blocks[b]
	atRest, returned := k.stuckElements(g), uint64(0) // elements returned to rest; each returns at most once
	for range len(g.Elements) + 1 {
		if !k.t.Steady { // otherwise they are those of the substep
			k.setLimits(g.Elements)
		}
		if len(k.t.Pressed) > 0 {
			k.setUnpressed(g, atRest)
		}
		k.solveComplementarity(b, atRest)
		if len(k.t.Pressed) > 0 {
			k.clearPressing(g)
		}
		k.clearTrialFaces(g)
		repeat := k.assignModes(b, atRest)
		k.setApplied(g, atRest)
		k.setLoad(b)
		for bit := k.reversedBreakaway(g, returned); bit >= 0; bit = k.reversedBreakaway(g, returned) {
			i := g.Elements[bit]
			k.setMode(i, Stuck)
			returned |= 1 << bit
			k.brokeAway[i], k.leavingZero[i], repeat = false, false, true
		}

		if !repeat {
			return
		}
		atRest = k.stuckElements(g)
	}
}

// decidesAlone reports whether nothing reads the torques of the locks between a lock decision and the start of the next
// substep, as in a dense plant without contacts.
func (t *Tables) decidesAlone() bool {
	return t.Sparse == nil && t.Partition == nil && len(t.Clearances) == 0 && len(t.Pressed) == 0 && !t.ReadsTau
}

// stuckElements returns the set of all stuck elements of a block: those in kappa, and the idle
// ones, which depend on them.
//
//go:nosplit
func (k *Kernel) stuckElements(g *Block) uint64 {
	set := uint64(0)
	for bit, i := range g.Elements {
		if k.mode[i] == Stuck {
			set |= 1 << bit
		}
	}

	return set
}

// isIdle reports whether element i is stuck outside kappa. The locks in kappa hold it at rest, and
// it transmits idleTorque.
//
//go:nosplit
func (k *Kernel) isIdle(i int) bool { return k.mode[i] == Stuck && !k.carriesLoad(i) }

// carriesLoad reports whether element i is in kappa.
//
//go:nosplit
func (k *Kernel) carriesLoad(i int) bool {
	at := k.bitOf[i]
	return k.kappa[at.block]>>at.bit&1 == 1
}

// idleTorque returns the torque of element i while it idles: the part idleShare[i] of its capacity.
// A freewheel has no lower bound: its negative idleShare[i] is a torque in N·m.
//
//go:nosplit
func (k *Kernel) idleTorque(i int) float64 {
	if k.idleShare[i] < 0 && k.t.Friction[i].OneWay {
		return k.idleShare[i]
	}
	return float64(k.idleShare[i] * k.capNow[i])
}

// setLimits sets the torques of some elements at this instant: limit while stuck, kinetic while
// slipping, applied where they slip or idle.
//
//go:nosplit
func (k *Kernel) setLimits(of []int) {
	for _, i := range of {
		k.limit[i], k.kinetic[i] = k.lockLimit(i), k.capNow[i]
		k.applied[i] = k.appliedTorque(i)
	}
}

// setApplied sets applied of the elements of a block that were at rest before assignModes, and the limits of friction that
// contacts press.
//
//go:nosplit
func (k *Kernel) setApplied(g *Block, atRest uint64) {
	if len(k.t.Pressed) > 0 || len(k.t.Faces) > 0 {
		k.setLimits(g.Elements)
		return
	}
	for r := atRest; r != 0; r &= r - 1 {
		i := g.Elements[bits.TrailingZeros64(r)]
		k.applied[i] = k.appliedTorque(i)
	}
}

// lockLimit returns the largest torque of element i while stuck, at this instant, N·m.
//
//go:nosplit
func (k *Kernel) lockLimit(i int) float64 {
	f := &k.t.Friction[i]
	limit := float64(f.Peak * k.capNow[i])
	if f.Floor > 0 { // a capacity is not negative
		limit = max(limit, f.Floor)
	}
	return limit
}

// minTorque returns the smallest torque of stuck element i: minus its limit, or -Inf for a
// freewheel.
//
//go:nosplit
func (k *Kernel) minTorque(i int) float64 {
	if k.t.Friction[i].OneWay {
		return math.Inf(-1)
	}
	return -k.limit[i]
}

// assignModes sets the modes of the elements at rest from solveComplementarity. Of the interior
// elements, independent ones with the largest reserve form kappa and the others idle. Of those at a
// bound, the ones that the locks hold at rest idle and the others slip. It reports whether a
// slipping element drops to a smaller torque.
//
//go:nosplit
func (k *Kernel) assignModes(b int, atRest uint64) bool {
	g := &k.blocks[b]
	k.kappa[b], k.rank = 0, 0
	for r := atRest; r != 0; r &= r - 1 {
		k.mode[g.Elements[bits.TrailingZeros64(r)]] = Stuck
	}
	left := atRest
	if inside := k.interior(g, atRest); k.t.Modes != nil && !k.t.Modes[k.base|int(inside)].Redundant { // all are independent
		k.kappa[b], left = inside, 0
	}
	for left != 0 {
		best, largest := -1, math.Inf(-1)
		for r := left; r != 0; r &= r - 1 {
			l := bits.TrailingZeros64(r)
			i := g.Elements[l]
			if reserve := min(k.limit[i]-k.trialTau[i], k.trialTau[i]-k.minTorque(i)); k.atBound[i] == 0 && reserve > largest {
				best, largest = l, reserve
			}
		}

		if best < 0 {
			break
		}
		left &^= 1 << best
		if k.addLock(g.Gram, len(g.Elements), best) {
			k.kappa[b] |= 1 << best
		}
	}

	drops := false
	for r := atRest; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		i := g.Elements[l]
		if k.kappa[b]>>l&1 == 1 {
			continue
		}
		if k.atBound[i] != 0 && k.canSlip(b, l) {
			k.mode[i] = k.atBound[i]
			k.brokeAway[i], k.leavingZero[i] = true, true
			drops = drops || k.kinetic[i] < k.limit[i]
			continue
		}

		k.setIdle(i, k.trialTau[i])
	}

	return drops
}

// interior returns the set of the elements at rest of a block that are at no bound.
//
//go:nosplit
func (k *Kernel) interior(g *Block, atRest uint64) uint64 {
	set := uint64(0)
	for r := atRest; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		if k.atBound[g.Elements[l]] == 0 {
			set |= 1 << l
		}
	}
	return set
}

// setIdle lets element i idle with torque tau, N·m.
//
//go:nosplit
func (k *Kernel) setIdle(i int, tau float64) {
	switch {
	case tau < 0 && k.t.Friction[i].OneWay:
		k.idleShare[i] = tau
	case k.capNow[i] > 0:
		k.idleShare[i] = tau / k.capNow[i]
	default:
		k.idleShare[i] = 0
	}
}

// setLoad sets the torques of the elements of block b outside kappa in w, and then tau of all
// elements.
//
//go:nosplit
func (k *Kernel) setLoad(b int) {
	if k.t.Sparse != nil {
		for _, i := range k.blocks[b].Elements {
			k.w[k.t.M+i], k.tau[i] = k.applied[i], k.applied[i]
		}
		k.setBlockLocks(b)
	} else {
		copy(k.w[k.t.M:], k.applied)
		if !k.t.DecidesAlone {
			k.setLoadTorques()
		}
	}
	k.setFaceLimits(b, k.tau)
}

// setLoadTorques sets tau of all elements of a dense plant for the present state: applied, and those of the locks.
//
//go:nosplit
func (k *Kernel) setLoadTorques() {
	m := k.currentMode()
	copy(k.tau, k.applied)
	for i := range k.tau {
		if k.carriesLoad(i) || k.followsLock(i) {
			k.held.torque[i] = dotRow(m.U, i, k.w)
			k.tau[i] = dotRow(m.T, i, k.x) + k.held.torque[i]
		}
	}
}

// direction returns the sign of the torque of a slipping element, 0 for the others.
//
//go:nosplit
func (k *Kernel) direction(i int) float64 {
	if k.mode[i] == Free {
		return 0
	}
	return float64(k.mode[i]) // Stuck is 0
}

// expandTorque sets the part of w that belongs to element i over the substep.
//
//go:nosplit
func (k *Kernel) expandTorque(i int) {
	d, at := k.direction(i), k.t.M+i
	if k.mode[i] == Free {
		k.w0[at], k.w1[at], k.w2[at] = 0, 0, 0
		return
	}
	if k.t.Friction[i].Face > 0 {
		k.w0[at], k.w1[at], k.w2[at] = k.appliedTorque(i), 0, 0
		return
	}
	if k.isIdle(i) {
		d = k.idleShare[i]
		if d < 0 && k.t.Friction[i].OneWay {
			k.w0[at], k.w1[at], k.w2[at] = d, 0, 0
			return
		}
	}

	k.w0[at] = float64(d * k.capC[3*i])
	if k.capC[3*i+1] == 0 && k.capC[3*i+2] == 0 {
		k.w1[at], k.w2[at] = 0, 0
		return
	}
	k.w1[at], k.w2[at] = float64(d*k.capC[3*i+1]), float64(d*k.capC[3*i+2])
}

// anyOverloaded reports whether the torque of any lock exceeds its limit.
//
//go:nosplit
func (k *Kernel) anyOverloaded() bool {
	for i, tau := range k.tau {
		excess := max(tau-k.limit[i], k.minTorque(i)-tau)
		if k.mode[i] == Stuck && excess > float64(overload*k.limit[i])+float64(4*k.torqueTolOf(i)) {
			return true
		}
	}

	return false
}

// reversedBreakaway returns the first element that broke away at this instant but that the others
// now accelerate in the other direction, after the drop to the kinetic torque; -1 for none.
// Elements in returned are skipped. In either form the acceleration of this instant decides, as in
// solveComplementarity.
//
//go:nosplit
func (k *Kernel) reversedBreakaway(g *Block, returned uint64) int {
	if k.t.Sparse == nil && anyTrue(k.brokeAway) {
		m := k.currentMode()
		mul(k.xd, m.A, k.x)
		mulAdd(k.xd, m.B, k.w)
	}

	for l, i := range g.Elements {
		if !k.brokeAway[i] || returned>>l&1 == 1 {
			continue
		}
		a := 0.0
		if k.t.Sparse == nil {
			a = k.slips.dot(i, k.xd)
		} else {
			a = k.freeAccel[i] + g.addedAcceleration(l, k.tau)
		}

		if k.direction(i)*a < -(float64(1e-9*k.limit[i])+float64(10*k.torqueTolOf(i)))*math.Abs(k.mobility(i)) {
			return l
		}
	}

	return -1
}

// projectLocks projects the state on the constraint of the lock set. It removes the slip left by
// rounding and keeps momentum. Clearances that have separated are open from here on.
//
//go:nosplit
func (k *Kernel) projectLocks() {
	k.openSeparated()
	k.projectState()
}

// projectState projects the state on the constraint of the lock set.
//
//go:nosplit
func (k *Kernel) projectState() {
	if k.t.Sparse != nil {
		k.projectSparse(k.x)
		return
	}

	if k.kappa[0] == 0 {
		return
	}
	mul(k.x1, k.currentMode().P, k.x)
	copy(k.x, k.x1)
}
