package kernel_test

import (
	"math"
	"math/bits"
	"slices"
)

// Tolerances of the friction decision, relative.
const (
	overShare  = 1e-10 // of its own capacity: above it a stuck element is overloaded
	overScale  = 1e-11 // of the largest capacity among the stuck elements
	slipShare  = 1e-12 // slip acceleration that counts as 0
	knifeShare = 1e-6  // a decision that changes with this change of capacity is undecided
	enumerated = 6     // elements at rest up to which all assignments are tried
)

// holds reports whether torques exist within scale times the static capacities
// that keep all stuck elements stuck, at the time and state of the last open.
func (p *refPlant) holds(t float64, x []float64, scale float64) bool {
	if len(p.locks) == 0 {
		return true
	}
	if p.redundant {
		var set []int
		for i, m := range p.mode {
			if m == stuck {
				set = append(set, i)
			}
		}
		_, slip := p.share(t, x, set, func(i int) float64 { return scale * p.static(i) })
		return !slices.ContainsFunc(slip, func(s float64) bool { return !(math.Abs(s) <= overScale) })
	}
	p.rate(t, x)
	size := 0.0
	for _, i := range p.locks {
		size = max(size, p.static(i))
	}
	for _, i := range p.locks {
		tau := math.Abs(p.tau[i])
		if p.sys.Frictions[i].OneWay && p.tau[i] < 0 {
			continue
		}
		if tau > p.static(i)*scale*(1+overShare)+overScale*size {
			return false
		}
	}
	return true
}

// share solves the mixed complementarity problem of the elements of set with the given bounds. All
// elements of set must be locked; the other elements act by their modes.
func (p *refPlant) share(t float64, x []float64, set []int, bound func(int) float64) (tau, slip []float64) {
	p.open(t, x)
	k := len(set)
	s, a, high, one := make([][]float64, k), make([]float64, k), make([]float64, k), make([]bool, k)
	for r, i := range set {
		a[r], high[r], one[r] = p.along(i, p.f), bound(i), p.sys.Frictions[i].OneWay
		for _, j := range set {
			s[r] = append(s[r], -p.gram(i, j))
		}
	}
	tau, slip, ok := boxFriction(s, a, high, one)
	if !ok {
		panic("reference: Lemke's method found no solution")
	}
	return tau, slip
}

// decide sets the modes of the elements at rest at time t and state x: all locked if that holds;
// else the assignment with the fewest slipping elements. A slipping element transmits its kinetic
// torque in the direction in which it begins to slip.
//
// sure is false if the decision is undecided or several motions fit. Both need a static friction
// above the kinetic one.
func (p *refPlant) decide(t float64, x []float64, rest []int, arrived bool) (sure bool) {
	peaked := p.peaked(rest)
	for _, i := range rest {
		p.mode[i] = stuck
	}
	p.lock()
	p.open(t, x)
	if p.holds(t, x, 1) {
		return !peaked || p.holds(t, x, 1/(1+knifeShare))
	}
	if arrived && peaked && p.holds(t, x, 1+knifeShare) {
		sure = false
	} else {
		sure = true
	}
	if len(rest) > enumerated {
		p.pivot(t, x, rest)
		return sure && !peaked
	}
	return p.enumerate(t, x, rest) && sure
}

// peaked reports whether an element of set has a static capacity above its kinetic one.
func (p *refPlant) peaked(set []int) bool {
	return slices.ContainsFunc(set, func(i int) bool { return p.static(i) > p.kinetic(i)*(1+1e-9) })
}

// enumerate tries every assignment of locked, forward and backward.
func (p *refPlant) enumerate(t float64, x []float64, rest []int) (unique bool) {
	type answer struct {
		mode []int8
		f    []float64
	}
	var found []answer
	count := 1 << len(rest)
	subsets := make([]uint, 0, count)
	for s := range uint(count) {
		subsets = append(subsets, s)
	}
	slices.SortStableFunc(subsets, func(a, b uint) int { return bits.OnesCount(a) - bits.OnesCount(b) })
	for _, slips := range subsets[1:] {
		if len(found) > 0 && !p.peaked(rest) {
			break // with static friction equal to kinetic the motion is unique
		}
		for way := range uint(count) {
			if way&^slips == 0 && p.try(t, x, rest, slips, way) {
				found = append(found, answer{slices.Clone(p.mode), slices.Clone(p.f)})
			}
		}
	}
	if len(found) == 0 {
		p.pivot(t, x, rest)
		return false
	}
	copy(p.mode, found[0].mode)
	p.lock()
	for _, a := range found[1:] {
		for i, v := range a.f {
			if !(math.Abs(v-found[0].f[i]) <= 1e-6*(norm(a.f)+norm(found[0].f))) {
				return false
			}
		}
	}
	return true
}

// try reports whether one assignment is consistent: way has the bits of those
// that slip backward.
func (p *refPlant) try(t float64, x []float64, rest []int, slips, way uint) bool {
	for r, i := range rest {
		switch bit := uint(1) << r; {
		case slips&bit == 0:
			p.mode[i] = stuck
		case way&bit == 0:
			p.mode[i] = forward
		case p.sys.Frictions[i].OneWay:
			return false
		default:
			p.mode[i] = backward
		}
	}
	p.lock()
	p.rate(t, x)
	size := 0.0
	for _, i := range rest {
		size = max(size, p.static(i), math.Abs(p.tau[i]))
	}
	for _, i := range rest {
		if p.mode[i] != stuck && float64(p.mode[i])*p.along(i, p.f) < slipShare*size*p.gram(i, i) {
			return false
		}
	}
	ok := p.holds(t, x, 1)
	p.rate(t, x)
	return ok
}

// pivot decides by Lemke's method: those that slip under the static capacities
// get their kinetic torque, until the others hold.
func (p *refPlant) pivot(t float64, x []float64, rest []int) {
	bound := p.static
	if !p.peaked(rest) {
		bound = p.kinetic
	}
	set := slices.Clone(rest)
	for _, i := range set {
		p.mode[i] = stuck
	}
	for len(set) > 0 {
		_, slip := p.share(t, x, set, bound)
		var left []int
		for r, i := range set {
			if math.Abs(slip[r]) <= slipShare {
				left = append(left, i)
			} else {
				p.mode[i] = sign(slip[r])
			}
		}
		if len(left) == len(set) {
			break
		}
		set = left
	}
	p.lock()
}
