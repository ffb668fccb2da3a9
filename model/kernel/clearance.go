package kernel

import (
	"math"
	"math/bits"
)

// A clearance is a friction element that cannot be overloaded in one direction and carries no load in
// the other: a freewheel that exists only while the clearance is closed. It is Free
// while open and Stuck in contact. It closes with an impact.

// Impact is the mode that a clearance takes for an instant when it closes with an impact; it occurs
// in events only.
const Impact int8 = 3

// clearance returns how far clearance i is open in state x, m or rad; negative where the sides
// overlap.
//
//go:nosplit
func (k *Kernel) clearance(i int, x []float64) float64 {
	g := k.t.Friction[i].Gap
	return float64(g.Sign * (x[g.State] - g.Limit))
}

// setClosed sets clearance i to exactly zero, which removes rounding only.
//
//go:nosplit
func (k *Kernel) setClosed(i int) {
	g := k.t.Friction[i].Gap
	k.x[g.State] = g.Limit
}

// mayClose reports whether open clearance i can close in the substep. It can where the clearance is
// closed at either end, or where the cubic through both ends and slopes comes close to zero: its
// control points are compared with the deviation of a sine of at most one radian from that cubic.
//
//go:nosplit
func (k *Kernel) mayClose(i int) bool {
	a, b := k.clearance(i, k.x), k.clearance(i, k.x1)
	if a <= 0 || b <= 0 {
		return true
	}
	r, s := float64(k.length*k.slip[i]), float64(k.length*k.slip1[i])
	bend := float64(k.length * k.length * k.slips.dot(i, k.xd))
	return min(a, a+r/3, b-s/3, b) <= 0.02*(math.Abs(r)+math.Abs(s)+math.Abs(bend))
}

// overlapZero is the overlap of a closed clearance over a substep, and the part of its motion, that
// count as rounding, m or rad.
const overlapZero = 1e-13

// overlapFace is the overlap of faces that end that may be rounding: their openings are computed again from the
// positions of the bodies, which follow their own laws while the faces touch, m.
const overlapFace = 1e-9

// clearancePoly sets poly to clearance i over the substep. Where the clearance is closed at the
// start, the root there is divided out; where it has just separated, without speed, twice.
//
//go:nosplit
func (k *Kernel) clearancePoly(i int) {
	n, g := k.t.N, k.t.Friction[i].Gap
	clear(k.poly)
	for j := range k.degree + 1 {
		k.poly[j] = float64(g.Sign * k.c[j*n+g.State])
	}
	k.poly[0] = max(0, k.clearance(i, k.x))
	if k.poly[0] > 0 {
		return
	}
	roots := 1
	if k.leavingZero[i] {
		roots = 2
	}
	copy(k.poly, k.poly[roots:])
	clear(k.poly[len(k.poly)-roots:])
	size := 0.0
	for _, c := range k.poly {
		size += math.Abs(c)
	}
	if k.poly[0] > -overlapZero*(1+size) { // below this it closes again at once
		k.poly[0] = max(0, k.poly[0])
	}
}

// openSeparated opens the clearances whose contact the torques no longer hold.
//
//go:nosplit
func (k *Kernel) openSeparated() {
	for _, i := range k.t.Clearances {
		if k.mode[i] == Forward {
			k.setMode(i, Free)
			k.setClosed(i)
		}
	}
}

// maxRebounds is the number of impacts of a clearance in a tick that may rebound, whatever the time
// between them. Later ones rebound only if they last a minimum substep.
const maxRebounds = 40

// handleImpact applies the impact of clearance i (Reiter, eq. 107, 108). The impulse passes through
// closed clearances and freewheels, one after the other, except those hit from both sides at once.
// Clutches and springs transmit no impulse, except friction that the contact presses: see
// applyPressedImpacts. A locked clutch may slip afterwards. It reports whether the clearance closed.
//
//go:nosplit
func (k *Kernel) handleImpact(i int, local float64) bool {
	k.setClosed(i)
	k.slips.mul(k.slip, k.x)
	if k.slip[i] > slipZero {
		return false
	}
	copy(k.modesBefore, k.mode)
	for r := k.simultaneousImpacts(i); r != 0; r &= r - 1 {
		if q := k.blocks[k.bitOf[i].block].Elements[bits.TrailingZeros64(r)]; k.slip[q] < -slipZero && k.mode[q] == Free {
			k.logEvent(Event{Time: k.gridTime() + local, Friction: q, From: Free, To: Impact})
			k.impacts[q]++
		}
	}

	next := k.transmitImpacts(i)
	k.setModesAfterImpact()
	for range k.t.Mc { // beyond the bound impacts are plastic
		if next < 0 {
			break
		}
		k.setMode(next, Stuck)
		b := k.bitOf[next].block
		k.stopTogether(b, k.stuckElements(&k.blocks[b]))
		k.projectLocks()
		k.slips.mul(k.slip, k.x)
		next = k.fastestClosing()
	}

	if len(k.t.Pressed) > 0 {
		k.activatePressed()
	}
	k.activateFaces()
	k.updateRegions(local)
	k.calls.resolveModes(k)
	k.projectLocks()
	if k.t.Sparse != nil && k.impacts[i] > separateImpacts && k.closeReturning(k.bitOf[i].block) {
		k.setModesAfterImpact()
		k.calls.resolveModes(k)
		k.projectLocks()
	}
	k.recordTransitions(local)
	k.events++
	return true
}

// Impacts that chatter in a plant stepped sparse: see closeReturning.
const (
	separateImpacts = 1     // impacts of a clearance in a tick that part other contacts, however shortly
	shortReturn     = 0.125 // time, as part of the period, within which a contact that a later impact parts stays closed
)

// closeReturning ends impacts that chatter. A light body between two contacts, such as a differential between two
// engaged gears, closes one and parts the other by turns, infinitely often in a finite time. It closes the
// contacts of block b that an impact has parted where the torques bring them back within shortReturn. All bodies
// in contact then have one speed at once, as at the end of the impacts. It reports whether there is such a contact.
//
//go:nosplit
func (k *Kernel) closeReturning(b int) bool {
	k.slips.mul(k.slip, k.x)
	k.setRates(k.w)
	returns := false
	for _, q := range k.blocks[b].Elements {
		if k.modesBefore[q] == Stuck && k.mode[q] == Free && k.t.Friction[q].Gap != nil && k.present[q] &&
			2*k.slip[q] < -float64(shortReturn*k.h*k.slips.dot(q, k.xd)) {
			k.setMode(q, Stuck)
			returns = true
		}
	}
	if !returns {
		return false
	}
	for range k.t.Mc {
		k.stopTogether(b, k.closedOneWays(&k.blocks[b]))
		next := k.fastestClosing()
		if next < 0 {
			break
		}
		k.setMode(next, Stuck)
		b = k.bitOf[next].block
	}
	return true
}

// closedOneWays returns the set of the closed contacts and freewheels of a block.
//
//go:nosplit
func (k *Kernel) closedOneWays(g *Block) uint64 {
	set := uint64(0)
	for l, i := range g.Elements {
		if k.mode[i] == Stuck && k.t.Friction[i].OneWay {
			set |= 1 << l
		}
	}
	return set
}

// transmitImpacts applies the impact of clearance or freewheel j, and then of those that it closes,
// one after the other. It returns an element that still closes when the bound is reached, -1 for
// none.
//
//go:nosplit
func (k *Kernel) transmitImpacts(j int) int {
	for left := maxRebounds + 4*k.t.Mc; j >= 0 && left > 0; left-- {
		k.applyImpacts(&k.blocks[k.bitOf[j].block], k.simultaneousImpacts(j))
		j = k.fastestClosing()
	}

	return j
}

// simultaneousImpacts returns the set, bits of a block, of elements hit together with clearance or
// freewheel j: those that close at this instant and work against each other, or act on none of the
// set.
//
//go:nosplit
func (k *Kernel) simultaneousImpacts(j int) uint64 {
	at := k.bitOf[j]
	g, set := &k.blocks[at.block], uint64(1)<<at.bit
	for l, i := range g.Elements {
		if set>>l&1 == 0 && k.isClosing(i) && g.opposes(l, set) {
			set |= 1 << l
		}
	}

	return set
}

// applyImpacts applies the impulses of a set of simultaneous impacts: -W·Bc·p = (1 + e)·W·x. The
// matrix has no positive element off its diagonal, so no impulse pulls and no energy is gained.
// With friction that a contact presses, applyPressedImpacts checks that. Momentum is kept.
//
//go:nosplit
func (k *Kernel) applyImpacts(g *Block, set uint64) {
	for r := set; r != 0; r &= r - 1 {
		i := g.Elements[bits.TrailingZeros64(r)]
		k.trialTau[i] = k.restitution(i)
	}

	f := &k.factor
	f.rank = 0
	for r := set; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		i := g.Elements[l]
		if k.t.Friction[i].Gap != nil {
			k.leavingZero[i] = false
			if k.setMode(i, Stuck); k.trialTau[i] > 0 {
				k.setMode(i, Free)
			}
		}

		k.trialTau[i] = float64(-(1 + k.trialTau[i]) * k.slip[i])
		f.taken[f.rank] = l
		f.rank++
	}

	if len(k.t.Pressed) == 0 || !k.applyPressedImpacts(g, set) {
		k.applyImpulses(g)
	}
	k.endImpact(g)
}

// stopTogether stops the slips of a set of elements of block b by one plastic impact.
//
//go:nosplit
func (k *Kernel) stopTogether(b int, set uint64) {
	g, f := &k.blocks[b], &k.factor
	f.rank = 0
	for r := set; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		k.trialTau[g.Elements[l]] = -k.slip[g.Elements[l]]
		f.taken[f.rank] = l
		f.rank++
	}
	k.applyImpulses(g)
	k.endImpact(g)
}

// stopLocks stops the elements that a minimum substep locks while they slip, by plastic impacts of all locks of a block.
//
//go:nosplit
func (k *Kernel) stopLocks() {
	for i := range k.mode {
		if b := k.bitOf[i].block; k.carriesLoad(i) && math.Abs(k.slip[i]) > slipZero {
			k.stopTogether(b, k.kappa[b])
		}
	}
}

// endImpact sets the slips after the impulses in trialTau of the elements in the factorisation, and counts the energy
// that these take: an impulse p takes p·(slip before + slip after)/2.
//
//go:nosplit
func (k *Kernel) endImpact(g *Block) {
	k.countImpacts(g)
	k.slips.mul(k.slip, k.x)
	k.countImpacts(g)
}

// countImpacts adds half of the product of impulse and slip to the energies that impacts take.
//
//go:nosplit
func (k *Kernel) countImpacts(g *Block) {
	for _, l := range k.factor.taken[:k.factor.rank] {
		i := g.Elements[l]
		if at := k.t.Friction[i].Impacts; at > 0 {
			k.x[at-1] += float64(k.trialTau[i] * k.slip[i] / 2)
		}
	}
}

// restitution returns the coefficient of restitution of clearance or freewheel i at this instant, 0
// to 1; 0 where the rebound ends at once.
//
//go:nosplit
func (k *Kernel) restitution(i int) float64 {
	g := k.t.Friction[i].Gap
	if g == nil || g.Restitution == 0 || 2*k.coincident > k.accumulationLimit() ||
		k.reboundEnds(i, float64(-g.Restitution*k.slip[i])) {
		return 0
	}
	return g.Restitution
}

// opposes reports whether element l of a block works against each element of a set, or does not act
// on it.
//
//go:nosplit
func (g *Block) opposes(l int, set uint64) bool {
	for r := set; r != 0; r &= r - 1 {
		if g.Gram[l*len(g.Elements)+bits.TrailingZeros64(r)] < 0 {
			return false
		}
	}

	return true
}

// applyImpulses changes the slips of the elements in the factorisation by trialTau.
//
//go:nosplit
func (k *Kernel) applyImpulses(g *Block) {
	k.solveImpulses(g)
	for _, l := range k.taken[:k.rank] {
		k.bcT.axpy(k.x, k.trialTau[g.Elements[l]], g.Elements[l])
	}
}

// solveImpulses turns the changes of slip in trialTau, of the elements in the factorisation, into the impulses that
// cause them. An element that depends on the others gets none.
//
//go:nosplit
func (k *Kernel) solveImpulses(g *Block) {
	f, mc := &k.factor, len(g.Elements)
	for q, i := range f.taken[:f.rank] {
		for c, j := range f.taken[:f.rank] {
			f.l[q*mc+c] = k.pressedGram(g, i, j)
		}
		for p, j := range f.taken[:q] {
			part := f.l[q*mc+p] / f.l[p*mc+p]
			axpy(f.l[q*mc+p:q*mc+f.rank], -part, f.l[p*mc+p:p*mc+f.rank])
			k.trialTau[g.Elements[i]] -= float64(part * k.trialTau[g.Elements[j]])
		}

		if own := g.Gram[i*mc+i]; math.Abs(f.l[q*mc+q]) < -1e-11*own {
			f.l[q*mc+q] = math.Inf(-1)
		}
	}

	for q := f.rank - 1; q >= 0; q-- {
		i := g.Elements[f.taken[q]]
		for c := q + 1; c < f.rank; c++ {
			k.trialTau[i] -= float64(f.l[q*mc+c] * k.trialTau[g.Elements[f.taken[c]]])
		}
		k.trialTau[i] /= f.l[q*mc+q]
	}
}

// minFlight is the shortest rebound simulated, s; shorter ones count as contact.
const minFlight = 1e-9

// reboundEnds reports whether a rebound of clearance i at speed s ends at once. After many impacts
// in a tick a rebound shorter than a minimum substep counts as ended.
//
//go:nosplit
func (k *Kernel) reboundEnds(i int, s float64) bool {
	shortest := minFlight
	if k.impacts[i] > maxRebounds {
		shortest = max(shortest, k.h/float64(k.t.minSubsteps()))
	}
	return s <= slipZero || 2*s < -shortest*k.slipAcceleration(i)
}

// slipAcceleration returns the slip acceleration of element i under w, rad/s²: setRates for one
// row.
//
//go:nosplit
func (k *Kernel) slipAcceleration(i int) float64 {
	if k.t.Sparse != nil {
		k.calls.derive(k, k.xd, k.x, k.w, k.trialTau)
		return k.slips.dot(i, k.xd)
	}

	m, a := k.currentMode(), 0.0
	for r, c := range k.t.W[i*k.t.N : (i+1)*k.t.N] {
		if c != 0 {
			a += float64(c * (dotRow(m.A, r, k.x) + dotRow(m.B, r, k.w)))
		}
	}

	return a
}

// fastestClosing returns the closed clearance or freewheel that an impulse closes fastest; -1 for
// none.
//
//go:nosplit
func (k *Kernel) fastestClosing() int {
	fastest := -1
	for i, s := range k.slip {
		if k.isClosing(i) && (fastest < 0 || s < k.slip[fastest]) {
			fastest = i
		}
	}

	return fastest
}

// isClosing reports whether clearance or freewheel i is closed and closes. A clearance counts as
// closed if it would close within timeTol.
//
//go:nosplit
func (k *Kernel) isClosing(i int) bool {
	f, s := &k.t.Friction[i], k.slip[i]
	return s < -slipZero && f.OneWay && (f.Gap == nil || k.mode[i] == Stuck ||
		k.present[i] && k.clearance(i, k.x) <= -s*k.timeTol)
}

// setModesAfterImpact makes the modes consistent with the slips after an impact.
//
//go:nosplit
func (k *Kernel) setModesAfterImpact() {
	for i, s := range k.slip {
		switch {
		case k.mode[i] == Free:
		case k.t.Friction[i].Gap == nil:
			k.setMode(i, k.modeAtSlip(i, s))
		case s > slipZero:
			k.setMode(i, Free)
		}
	}
}

// The load of a contact that counts as zero, as part of the largest term in it so far.
const (
	loadRounding = 2e-15 // of a loaded contact: it ends where its load does
	noLoad       = 1e-12 // of a contact without load: bodies that swing with one frequency stay together on every grid
)

// setContactTol sets contactTol of contact i at the start of a substep, from its torque there.
//
//go:nosplit
func (k *Kernel) setContactTol(i int) {
	k.termMax[i] = max(k.termMax[i], k.largestTerm(i))
	k.contactTol[i] = float64(noLoad * k.termMax[i])
	if k.mode[i] == Stuck && k.tau[i] < -k.contactTol[i] {
		k.contactTol[i] = float64(loadRounding * k.termMax[i])
	}
}

// torqueTolOf returns the torque of element i that counts as zero, N·m.
//
//go:nosplit
func (k *Kernel) torqueTolOf(i int) float64 { return max(k.torqueTol, k.contactTol[i]) }

// largestTerm returns the largest term in the torque that would keep contact i closed, N·m.
//
//go:nosplit
func (k *Kernel) largestTerm(i int) float64 {
	largest := 0.0
	if net := k.t.Sparse; net != nil {
		for p := net.WA.rowStart(i); p < net.WA.End[i]; p++ {
			largest = max(largest, math.Abs(float64(net.WA.Val[p]*k.x[net.WA.Col[p]])))
		}
		return largest / -k.mobility(i)
	}

	for j, c := range k.t.WA[i*k.t.N : (i+1)*k.t.N] {
		largest = max(largest, math.Abs(float64(c*k.x[j])))
	}
	return largest / -k.mobility(i)
}
