package kernel

import (
	"math"
	"math/bits"
)

// A contact may press a friction element, as the teeth of a blocker ring press its cone. The friction follows the
// force of the contact at once, so the two are solved together: in the lock decision and in an impact.

// bindPressed sets Pressed, PressesOn and PressesPer.
func (t *Tables) bindPressed() {
	for f := range t.Friction {
		if len(t.Friction[f].Presses) == 0 || t.Friction[f].Signal < t.FirstLaw {
			continue
		}
		if t.PressesOn == nil {
			t.PressesOn, t.PressesPer = make([]int, t.Mc), make([]float64, t.Mc)
			for i := range t.PressesOn {
				t.PressesOn[i] = -1
			}
		}
		t.Pressed = append(t.Pressed, f)
		for _, p := range t.Friction[f].Presses {
			t.PressesOn[p.Contact], t.PressesPer[p.Contact] = f, p.Per
		}
	}
}

// pressedGram returns the slip acceleration of element l of block g per torque of its element c, with the friction
// of the element that c presses, which slips with the sign pressing, and with trialPer of the friction on its face.
//
//go:nosplit
func (k *Kernel) pressedGram(g *Block, l, c int) float64 {
	i, a := g.Elements[c], g.Gram[l*len(g.Elements)+c]
	if k.t.PressesOn != nil && k.t.PressesOn[i] >= 0 {
		f := k.t.PressesOn[i]
		a -= float64(k.pressing[f] * k.t.PressesPer[i] * g.Gram[l*len(g.Elements)+k.bitOf[f].bit])
	}
	if k.trialPer[i] != 0 {
		a += float64(k.trialPer[i] * g.Gram[l*len(g.Elements)+k.bitOf[k.t.FaceOn[i]].bit])
	}
	return a
}

// setUnpressed prepares the lock decision of block g: it sets the capacities that pressed elements in it have without
// the contacts, and their torques where they slip.
//
//go:nosplit
func (k *Kernel) setUnpressed(g *Block, atRest uint64) {
	for _, f := range k.t.Pressed {
		at, fr := k.bitOf[f], &k.t.Friction[f]
		k.pressing[f] = 0
		if at.block != k.bitOf[g.Elements[0]].block || k.mode[f] == Free {
			continue
		}
		for q := range fr.Presses {
			k.tau[fr.Presses[q].Contact] = 0
		}
		k.unpressed[f] = float64(fr.Gain * (k.evaluateProgram(fr.Signal-k.t.FirstLaw, k.x, k.w[:k.t.M]) - fr.Offset))
		if atRest>>at.bit&1 == 0 {
			k.pressing[f] = k.direction(f)
			k.applied[f] = float64(k.pressing[f] * k.unpressed[f])
		}
	}
}

// setPressed sets the capacities of the pressed elements in block g from trialTau of the contacts at rest, and the limits
// of those that are at rest themselves.
//
//go:nosplit
func (k *Kernel) setPressed(g *Block, atRest uint64) {
	for _, f := range k.t.Pressed {
		fr := &k.t.Friction[f]
		if k.bitOf[f].block != k.bitOf[g.Elements[0]].block || k.mode[f] == Free {
			continue
		}
		capacity := k.unpressed[f]
		for q := range fr.Presses {
			p := &fr.Presses[q]
			if atRest>>k.bitOf[p.Contact].bit&1 == 1 {
				capacity -= float64(p.Per * k.trialTau[p.Contact])
			}
		}
		k.capNow[f] = max(0, capacity)
		k.limit[f] = max(float64(fr.Peak*k.capNow[f]), fr.Floor)
	}
}

// clearPressing ends the lock decision of block g that setUnpressed began.
//
//go:nosplit
func (k *Kernel) clearPressing(g *Block) {
	for _, f := range k.t.Pressed {
		if k.bitOf[f].block == k.bitOf[g.Elements[0]].block {
			k.pressing[f] = 0
		}
	}
}

// activatePressed gives the pressed elements without a mode, whose contacts have closed, that of their slip.
//
//go:nosplit
func (k *Kernel) activatePressed() {
	for _, f := range k.t.Pressed {
		for q := range k.t.Friction[f].Presses {
			if k.mode[f] == Free && k.mode[k.t.Friction[f].Presses[q].Contact] == Stuck {
				k.setMode(f, k.modeAtSlip(f, k.slip[f]))
			}
		}
	}
}

// maxImpactPartners is the number of closed contacts of a pressed element that an impact solves for together.
const maxImpactPartners = 3

// applyPressedImpacts is applyImpacts for a set with a contact that presses a friction element: the friction of
// that element takes part. Its impulse is that of a sliding or of a sticking friction element under the impulse of the
// contacts; closed contacts of the pressed part hold or separate. It tries each of these cases and takes the first that
// is consistent. It reports whether there is one. trialTau holds the slips that the impulses of the set add; afterwards the
// factorisation has the elements that took part, and trialTau their impulses.
//
//go:nosplit
func (k *Kernel) applyPressedImpacts(g *Block, set uint64) bool {
	f := -1
	for l, i := range g.Elements {
		if set>>l&1 == 1 && k.t.PressesOn[i] >= 0 {
			f = k.t.PressesOn[i]
		}
	}
	if f < 0 {
		return false
	}
	partners := 0
	bit := k.bitOf[f].bit
	for l, i := range g.Elements {
		if set>>l&1 == 0 && k.isClosed(i) && k.slip[i] <= slipZero && g.Gram[l*len(g.Elements)+bit] != 0 && partners < maxImpactPartners {
			k.partner[partners] = l
			partners++
		}
	}
	for _, i := range g.Elements {
		k.impactSlip[i] = k.trialTau[i]
	}

	d := 0.0
	if math.Abs(k.slip[f]) > slipZero {
		d = math.Copysign(1, k.slip[f])
	}
	for sticks := range 2 {
		if sticks == 0 && d == 0 {
			continue
		}
		for held := range 1 << partners {
			k.pressing[f] = 0
			if sticks == 0 {
				k.pressing[f] = d
			}
			taken := set
			for q := range partners {
				if held>>q&1 == 1 {
					taken |= 1 << k.partner[q]
					k.impactSlip[g.Elements[k.partner[q]]] = -k.slip[g.Elements[k.partner[q]]]
				}
			}
			if sticks == 1 {
				taken |= 1 << bit
				k.impactSlip[f] = -k.slip[f]
			}
			k.take(g, taken)
			k.solveImpulses(g)
			if k.isImpact(g, taken, f, partners) {
				for r := taken; r != 0; r &= r - 1 {
					i := g.Elements[bits.TrailingZeros64(r)]
					k.bcT.axpy(k.x, k.trialTau[i], i)
					if set>>k.bitOf[i].bit&1 == 0 && i != f {
						k.setMode(i, Stuck)
					}
				}
				if sticks == 0 {
					k.trialTau[f] = float64(d * k.pressedImpulse(g, taken, f))
					k.bcT.axpy(k.x, k.trialTau[f], f)
					k.taken[k.rank] = bit
					k.rank++
				}
				k.pressing[f] = 0
				return true
			}
		}
	}
	k.pressing[f] = 0
	k.take(g, set)
	return false
}

// take puts elements into the factorisation with the changes of slip in impactSlip.
//
//go:nosplit
func (k *Kernel) take(g *Block, taken uint64) {
	k.rank = 0
	for r := taken; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		k.trialTau[g.Elements[l]] = k.impactSlip[g.Elements[l]]
		k.taken[k.rank] = l
		k.rank++
	}
}

// pressedImpulse returns the largest friction impulse of element f under the impulses of the contacts taken.
//
//go:nosplit
func (k *Kernel) pressedImpulse(g *Block, taken uint64, f int) float64 {
	sum := 0.0
	for r := taken; r != 0; r &= r - 1 {
		if i := g.Elements[bits.TrailingZeros64(r)]; k.t.PressesOn[i] == f {
			sum -= float64(k.t.PressesPer[i] * k.trialTau[i])
		}
	}
	return sum
}

// isImpact reports whether the impulses in trialTau of the elements taken are those of an impact: no contact pulls, the
// partners of element f that are not taken do not close, and f neither turns its slip nor exceeds its impulse.
//
//go:nosplit
func (k *Kernel) isImpact(g *Block, taken uint64, f, partners int) bool {
	size := 0.0
	for r := taken; r != 0; r &= r - 1 {
		size = max(size, math.Abs(k.trialTau[g.Elements[bits.TrailingZeros64(r)]]))
	}
	tol := float64(overload * size)
	for r := taken; r != 0; r &= r - 1 {
		if i := g.Elements[bits.TrailingZeros64(r)]; k.t.Friction[i].Gap != nil && !(k.trialTau[i] <= tol) {
			return false
		}
	}
	for _, l := range k.partner[:partners] {
		if taken>>l&1 == 0 && k.slipAfter(g, taken, l) < -slipZero {
			return false
		}
	}
	if k.pressing[f] != 0 {
		return float64(k.pressing[f]*k.slipAfter(g, taken, k.bitOf[f].bit)) >= -slipZero
	}
	return math.Abs(k.trialTau[f]) <= k.pressedImpulse(g, taken, f)+tol
}

// slipAfter returns the slip of element l after the impulses in trialTau of the elements taken.
//
//go:nosplit
func (k *Kernel) slipAfter(g *Block, taken uint64, l int) float64 {
	s := k.slip[g.Elements[l]]
	for r := taken; r != 0; r &= r - 1 {
		c := bits.TrailingZeros64(r)
		s += float64(k.pressedGram(g, l, c) * k.trialTau[g.Elements[c]])
	}
	return s
}

// presses reports whether a friction element in block g slips under contacts that press it or on whose faces it is.
//
//go:nosplit
func (k *Kernel) presses(g *Block) bool {
	for _, f := range k.t.Pressed {
		if k.pressing[f] != 0 && k.bitOf[f].block == k.bitOf[g.Elements[0]].block {
			return true
		}
	}
	for _, f := range k.t.Faces {
		if k.trialPer[k.t.Friction[f].Face-1] != 0 && k.bitOf[f].block == k.bitOf[g.Elements[0]].block {
			return true
		}
	}
	return false
}

// eliminateInterior sets trialTau of the elements taken, as solveInterior does, where friction follows the force of
// contacts: the matrix is then not symmetric.
//
//go:nosplit
func (k *Kernel) eliminateInterior(g *Block, atRest uint64) {
	f, mc := &k.factor, len(g.Elements)
	for q, l := range f.taken[:f.rank] {
		for c, j := range f.taken[:f.rank] {
			f.l[q*mc+c] = -k.pressedGram(g, l, j)
		}
		own := -g.Gram[l*mc+l]
		f.l[q*mc+q] += float64(own * lockCompliance)
		s := k.unlockedAccel[g.Elements[l]]
		for r := atRest; r != 0; r &= r - 1 {
			j := bits.TrailingZeros64(r)
			if k.atBound[g.Elements[j]] != 0 {
				s += float64(k.pressedGram(g, l, j) * k.trialTau[g.Elements[j]])
			}
		}
		for p := range q {
			part := f.l[q*mc+p] / f.l[p*mc+p]
			axpy(f.l[q*mc+p:q*mc+f.rank], -part, f.l[p*mc+p:p*mc+f.rank])
			s -= float64(part * f.rhs[p])
		}
		if math.Abs(f.l[q*mc+q]) < own*lockCompliance/2 {
			f.l[q*mc+q] = float64(own * lockCompliance / 2)
		}
		f.rhs[q] = s
	}

	for q := f.rank - 1; q >= 0; q-- {
		s := f.rhs[q]
		for c := q + 1; c < f.rank; c++ {
			s -= float64(f.l[q*mc+c] * k.trialTau[g.Elements[f.taken[c]]])
		}
		k.trialTau[g.Elements[f.taken[q]]] = s / f.l[q*mc+q]
	}
}

// isClosed reports whether element i is a contact that touches.
//
//go:nosplit
func (k *Kernel) isClosed(i int) bool {
	return k.t.Friction[i].Gap != nil && (k.mode[i] == Stuck || k.present[i] && k.clearance(i, k.x) <= overlapZero)
}
