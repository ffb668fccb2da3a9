package kernel

import "math"

// stepOverEvents advances over part theta of the expanded substep as one, whatever events it
// contains. A clearance that would close is held, a slip that passes zero is braked, and a spring
// that passes a boundary is corrected by an impulse. Event indicators take their new side. Sides
// never overlap and momentum is kept; METHOD.md states the error in energy.
//
//go:nosplit
func (k *Kernel) stepOverEvents(local, theta float64) {
	copy(k.modesBefore, k.mode)
	k.holdClosing(local, theta)
	if len(k.pulse) > 0 {
		k.calls.countPulses(k, local, theta, true)
	}
	copy(k.x, k.x1)
	local += float64(theta * k.length)
	k.setInstant(theta)
	k.setTorquesRead(k.x, theta)
	for g := range k.side {
		if k.indicatorPassed(g, k.x) {
			k.side[g] = k.sidePassed
		}
	}

	for s := range k.region {
		k.correctSpringWork(s)
	}
	for g := range k.t.Groups {
		k.correctContact(g, theta)
	}
	resolve := k.brakeReversed(theta)
	for _, i := range k.t.Clearances {
		switch {
		case !k.heldClosed[i]:
		case k.clearance(i, k.x) > 0:
			k.setMode(i, Free)
		default:
			resolve = true
		}
	}

	if k.updateRegions(local) || resolve {
		k.slips.mul(k.slip, k.x)
		k.stopLocks()
		k.projectLocks()
		for b := range k.blocks {
			k.setLimits(k.blocks[b].Elements)
		}
		k.calls.resolveModes(k)
		k.projectLocks()
	}

	if k.recordTransitions(local) {
		k.events++
	}
}

// maxHoldTries is how often holdClosing checks the clearances; the last time it holds all of them.
const maxHoldTries = 8

// holdClosing sets x1 to the end of the step and holds the clearances that would close in it. Both
// sides of such a clearance move together from the start, as after a plastic impact. heldClosed
// marks them.
//
//go:nosplit
func (k *Kernel) holdClosing(local, theta float64) {
	clear(k.heldClosed)
	k.horner(k.x1, theta)
	for try := range maxHoldTries {
		found := false
		for _, i := range k.t.Clearances {
			if k.mode[i] == Free && k.present[i] && (k.clearance(i, k.x1) < 0 || found && try == maxHoldTries-1) {
				if k.slip[i] < -slipZero {
					k.logEvent(Event{Time: k.gridTime() + local, Friction: i, From: Free, To: Impact})
					k.events++
				}

				k.setMode(i, Stuck)
				k.heldClosed[i] = true
				found = true
			}
		}

		if !found {
			break
		}
		k.stopLocks()
		k.projectState()
		k.calls.expand(k, k.x)
		k.horner(k.x1, theta)
		k.slips.mul(k.slip, k.x)
	}
}

// brakeReversed brakes the slips that passed zero in the step. Friction reversed there, so up to
// twice the capacity acts for the time after it. It counts the energy of that impulse, and reports whether a slip
// passed zero.
//
//go:nosplit
func (k *Kernel) brakeReversed(theta float64) bool {
	reversed := false
	for i := range k.mode {
		s, d, gram := k.slips.dot(i, k.x), k.direction(i), k.mobility(i)
		if !(d*s < 0) {
			continue
		}
		reversed = true
		after := float64(theta * k.length)
		if float64(s*k.slip[i]) < 0 { // otherwise rounding has the slip of a locked element on the wrong side from the start
			after = float64(after * (s / (s - k.slip[i])))
		}
		impulse := float64(2 * k.capNow[i] * after)
		if k.t.Friction[i].OneWay || math.Abs(s) <= -gram*impulse {
			k.setMode(i, Stuck)
			continue
		}

		k.setMode(i, -k.mode[i])
		k.bcT.axpy(k.x, -(float64(d * impulse)), i)
		if at := k.t.Friction[i].Impacts; at > 0 {
			k.x[at-1] -= float64(d * impulse * (s + k.slips.dot(i, k.x)) / 2)
		}
	}

	return reversed
}

// correctSpringWork corrects the energy of switch s where it passed region boundaries in the step.
// The error in work is an integral over the deflection; the impulse for it acts where the spring
// does.
//
//go:nosplit
func (k *Kernel) correctSpringWork(s int) {
	sw, z := &k.t.Switches[s], k.level(s, k.x)
	from, to := k.region[s], sw.regionOf(z)
	if from == to {
		return
	}
	for _, j := range sw.Signals {
		if len(k.t.Signals[j].Affine.Gates) > 0 { // correctContact
			continue
		}
		slope, work := k.t.Signals[j].Affine.Slope, 0.0
		for r := from; r < to; r++ {
			work += float64((slope[r+1] - slope[r]) * (z - sw.Borders[r]) * (z - sw.Borders[r]) / 2)
		}
		for r := from; r > to; r-- {
			work += float64((slope[r-1] - slope[r]) * (z - sw.Borders[r-1]) * (z - sw.Borders[r-1]) / 2)
		}
		k.setSignalEffect(j)
		direct := k.levels.dot(s, k.x1)
		mobility := -k.levelRate(s, k.x1)
		if direct != 0 || !(mobility > 0) { // a damper, or a spring that moves no mass
			continue
		}
		rate := k.levelRate(s, k.x)
		p := (rate - math.Copysign(math.Sqrt(max(0, float64(rate*rate)-float64(2*mobility*work))), rate)) / mobility
		axpy(k.x, p, k.x1)
	}
}

// contactParts is the number of equal parts of a step in which correctContact follows a contact.
const contactParts = 16

// contactLevel is the level of one switch of a contact in correctContact.
type contactLevel struct {
	z      float64 // level
	direct float64 // change of the level per unit of the impulse of the contact
	flow   float64 // rate of the level per unit of the impulse of the contact
}

// correctContact corrects the motion along group g where it is a contact that changes regions in the
// step. The contact acts on its own levels in small parts of the step; everything else moves as with
// the regions of the start.
//
//go:nosplit
func (k *Kernel) correctContact(g int, theta float64) {
	on := &k.t.Groups[g]
	if len(on.Switches) == 1 {
		return // without gates: correctSpringWork
	}
	changed, acting := false, 0
	for _, s := range on.Switches {
		changed = changed || k.t.Switches[s].regionOf(k.level(s, k.x)) != k.region[s]
		if len(k.t.Switches[s].Signals) > 0 {
			acting = k.t.Switches[s].Signals[0]
		}
	}
	if !changed {
		return
	}
	k.setSignalEffect(acting)
	k.setFlow(k.x1)
	for q, s := range on.Switches {
		k.contact[q].direct, k.contact[q].flow = k.levels.dot(s, k.x1), k.levels.dot(s, k.xd)
		for j := range k.degree + 1 {
			k.contactC[q*(k.t.Degree+1)+j] = k.levels.dot(s, k.c[j*k.t.N:(j+1)*k.t.N])
		}
	}

	part := float64(theta * k.length / contactParts)
	impulse, shift := 0.0, 0.0 // integrals over time of the missing force and of the impulse
	for i := range contactParts {
		at := float64(theta / contactParts * float64(i))
		f := k.missingForce(on, at, impulse, shift)
		f = k.missingForce(on, at+float64(theta/(2*contactParts)), impulse+float64(f*part/2), shift+float64(impulse*part/2))
		shift += float64(impulse*part) + float64(f*part*part/2)
		impulse += float64(f * part)
	}

	axpy(k.x, impulse, k.x1)
	if len(k.t.Clearances) == 0 { // the shift could make one overlap
		axpy(k.x, shift, k.xd)
	}
}

// missingForce returns the force of contact g at part at of the substep beyond that of the regions of
// the start, after the impulse and the shift of the missing force so far.
//
//go:nosplit
func (k *Kernel) missingForce(g *Group, at, impulse, shift float64) (f float64) {
	for q, s := range g.Switches {
		z, c := 0.0, k.contactC[q*(k.t.Degree+1):]
		for j := k.degree; j >= 0; j-- {
			z = float64(z*at) + c[j]
		}
		v := &k.contact[q]
		v.z = z + k.t.Switches[s].Const + float64(v.direct*impulse) + float64(v.flow*shift)
		k.contactRegion[s] = k.t.Switches[s].regionOf(v.z)
	}

	for q, s := range g.Switches {
		for _, j := range k.t.Switches[s].Signals {
			i := j - k.t.FirstAffine
			slope, offset := k.affineIn(i, k.contactRegion)
			f += float64((slope-k.slope[i])*k.contact[q].z) + offset - k.offset[i]
		}
	}
	return f
}

// setSignalEffect sets x1 to the state derivative per unit of signal j under the present locks.
//
//go:nosplit
func (k *Kernel) setSignalEffect(j int) {
	if k.t.Sparse != nil {
		clear(k.dw1)
		k.dw1[j] = 1
		k.calls.derive(k, k.x1, nil, k.dw1, k.dtau)
		return
	}

	m, mw := k.currentMode(), k.t.M+k.t.Mc
	for i := range k.x1 {
		k.x1[i] = m.B[i*mw+j]
	}
}

// levelRate returns the rate of the level of switch s in state x under the present locks, without constants. It may use xd.
//
//go:nosplit
func (k *Kernel) levelRate(s int, x []float64) float64 {
	if k.t.Sparse == nil || !k.t.Sparse.FollowsA[s] {
		k.setFlow(x)
		return k.levels.dot(s, k.xd)
	}
	rate := 0.0
	for p := k.levels.rowStart(s); p < k.levels.End[s]; p++ {
		rate += float64(k.levels.Val[p] * k.t.Sparse.A.dot(k.levels.Col[p], x))
	}
	return rate
}

// setFlow sets xd to A·x under the present locks.
//
//go:nosplit
func (k *Kernel) setFlow(x []float64) {
	if k.t.Sparse != nil {
		k.calls.derive(k, k.xd, x, nil, k.dtau)
		return
	}

	mul(k.xd, k.currentMode().A, x)
}
