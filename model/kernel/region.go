package kernel

import (
	"math"
	"slices"

	"lockstep/model"
)

// Switch is a switch of the plant with the affine signals on its level z. The slopes of the signals
// become part of A; their offsets are their values over a substep (Reiter, eq. 32, 36).
type Switch struct {
	model.Switch
	Signals []int // signals that are affine in the level z
}

// Group is the switches whose regions select slopes together, joined by the gates of signals.
// Joint regions of a group with the same slopes form a class and share their matrices, such as the
// two sides of a symmetric spring.
type Group struct {
	Switches, Stride []int   // a joint region is the sum of stride·region
	Class            []int   // class of each joint region
	First            [][]int // regions of the first joint region of each class, by switch of the group
	Weight           int     // weight of a class in the number of a combination
}

// bindSwitches lists the switches, their groups and the number of combinations of the classes.
func bindSwitches(t *Tables, sys *model.System) {
	leader := make([]int, len(sys.Switches)) // least switch of the group
	for s := range sys.Switches {
		t.Switches, leader[s] = append(t.Switches, Switch{Switch: sys.Switches[s]}), s
	}

	for j := t.FirstAffine; j < t.FirstLaw; j++ {
		a := t.Signals[j].Affine
		t.Switches[a.Switch].Signals = append(t.Switches[a.Switch].Signals, j)
		for _, g := range a.Gates {
			from, to := max(leader[a.Switch], leader[g.Switch]), min(leader[a.Switch], leader[g.Switch])
			for s := range leader {
				if leader[s] == from {
					leader[s] = to
				}
			}
		}
	}

	t.Combinations = 1
	for s := range leader {
		if leader[s] != s {
			continue
		}
		g := t.groupOf(leader, s)
		g.Weight = t.Combinations
		t.Groups = append(t.Groups, g)
		if t.Combinations > math.MaxInt/len(g.First) {
			t.Combinations = tooMany
		} else {
			t.Combinations *= len(g.First)
		}
	}
}

// groupOf returns the group of a leader with its classes.
func (t *Tables) groupOf(leader []int, of int) (g Group) {
	joints := 1
	for s := range leader {
		if leader[s] == of {
			g.Switches, g.Stride = append(g.Switches, s), append(g.Stride, joints)
			joints *= len(t.Switches[s].Borders) + 1
		}
	}

	var known [][]float64 // slopes of each class
	region := make([]int, len(leader))
	for joint := range joints {
		var regions []int
		for i, s := range g.Switches {
			region[s] = joint / g.Stride[i] % (len(t.Switches[s].Borders) + 1)
			regions = append(regions, region[s])
		}
		var slopes []float64
		for _, s := range g.Switches {
			for _, j := range t.Switches[s].Signals {
				slope, _ := t.Signals[j].Affine.In(region)
				slopes = append(slopes, slope)
			}
		}
		class := slices.IndexFunc(known, func(have []float64) bool { return slices.Equal(have, slopes) })
		if class < 0 {
			class = len(known)
			known, g.First = append(known, slopes), append(g.First, regions)
		}
		g.Class = append(g.Class, class)
	}

	return g
}

// tooMany is the number of combinations where there are too many to count.
const tooMany = math.MaxInt

// withSlopes returns a, n×n, plus the slopes of a combination of classes.
func (t *Tables) withSlopes(a []float64, combination int) []float64 {
	return t.withClasses(a, func(g *Group) int { return combination / g.Weight % len(g.First) })
}

// withClasses returns a, n×n, plus the slopes of the class that classOf returns for each group.
func (t *Tables) withClasses(a []float64, classOf func(*Group) int) []float64 {
	out, region := append([]float64(nil), a...), make([]int, len(t.Switches))
	for i := range t.Groups {
		g := &t.Groups[i]
		for q, r := range g.First[classOf(g)] {
			region[g.Switches[q]] = r
		}
	}
	for j := t.FirstAffine; j < t.FirstLaw; j++ {
		slope, _ := t.Signals[j].Affine.In(region)
		t.addSlope(out, t.Open.B, t.N, j, slope)
	}
	return out
}

// fastestElement returns the element that makes a plant as fast as it is: the element that would be
// fastest alone. An element below a quarter of the rate does not count: the rate of a law counts
// up to three times.
func fastestElement(paces []model.Pace, fastest float64) (c model.Pace) {
	for _, p := range paces {
		if p.Rate > c.Rate && p.Rate >= fastest/4 {
			c = p
		}
	}

	return c
}

// steepest returns the class of a group with the largest slopes.
func (t *Tables) steepest(g *Group) (class int) {
	largest, region := -1.0, make([]int, len(t.Switches))
	for c, regions := range g.First {
		for q, r := range regions {
			region[g.Switches[q]] = r
		}
		size := 0.0
		for _, s := range g.Switches {
			for _, j := range t.Switches[s].Signals {
				slope, _ := t.Signals[j].Affine.In(region)
				size += math.Abs(slope)
			}
		}
		if size > largest {
			class, largest = c, size
		}
	}

	return class
}

// steepestSlope returns the slope of affine signal j of the largest size, whatever its gates.
func (t *Tables) steepestSlope(j int) (slope float64) {
	for _, s := range t.Signals[j].Affine.Slope {
		if math.Abs(s) > math.Abs(slope) {
			slope = s
		}
	}
	return slope
}

// storedEnergy returns the diagonal of the energy e, n×n, with springs at their steepest; it gives
// the size of the states.
func (t *Tables) storedEnergy(e []float64) []float64 {
	out := make([]float64, t.N)
	for i := range out {
		out[i] = e[i*t.N+i]
	}
	for s := range t.Switches {
		for i, r := range t.Switches[s].Row {
			largest := 0.0
			for _, j := range t.Switches[s].Signals {
				for _, c := range t.Signals[j].Affine.Slope {
					largest = max(largest, math.Abs(c))
				}
			}

			if out[i] == 0 { // a state without mass
				out[i] = largest * r * r
			}
		}
	}

	return out
}

// addSlope adds the slope of affine signal j to out, rows×n, on which the signals act by in,
// rows×(m+mc).
//
//go:nosplit
func (t *Tables) addSlope(out, in []float64, rows, j int, slope float64) {
	n, mw := t.N, t.M+t.Mc
	for i := range rows {
		if g := float64(slope * in[i*mw+j]); g != 0 {
			axpy(out[i*n:(i+1)*n], g, t.Switches[t.Signals[j].Affine.Switch].Row)
		}
	}
}

// currentUnlocked returns the matrices of the present regions without locks.
//
//go:nosplit
func (k *Kernel) currentUnlocked() *Mode {
	if k.t.Modes != nil {
		return &k.t.Modes[k.base]
	}
	if k.unlockedBase != k.base {
		k.calls.buildUnlocked(k)
	}
	return &k.unlockedMode
}

// buildUnlocked sets unlockedMode and unlockedWA for the present regions. The cost is bounded by
// the number of affine signals times n·(n+mc).
//
//go:nosplit
func (k *Kernel) buildUnlocked() {
	copy(k.unlockedMode.A, k.t.Open.A)
	copy(k.unlockedWA, k.t.WA)
	for i, slope := range k.slope {
		k.t.addSlope(k.unlockedMode.A, k.t.Open.B, k.t.N, k.t.FirstAffine+i, slope)
		k.t.addSlope(k.unlockedWA, k.t.WB, k.t.Mc, k.t.FirstAffine+i, slope)
	}

	k.unlockedBase = k.base
}

// level returns z of switch s in state x.
//
//go:nosplit
//go:norace
func (k *Kernel) level(s int, x []float64) float64 { return k.t.Switches[s].Const + k.levels.dot(s, x) }

// setRegions sets the region of every switch from state x.
//
//go:nosplit
func (k *Kernel) setRegions(x []float64) {
	for s := range k.region {
		k.region[s] = k.t.Switches[s].regionOf(k.level(s, x))
	}
	clear(k.followed)
	clear(k.present)
	k.updateExtents()
	k.selectCombination()
}

// updateRegions sets the regions after a jump of the speeds, or a substep without event checks. It
// logs the changes and sets the new offsets in w. It reports whether a contact ended at the end of a face.
//
//go:nosplit
func (k *Kernel) updateRegions(local float64) (released bool) {
	for s, from := range k.region {
		if !k.followed[s] {
			continue
		}
		k.wrap(s, k.x)
		if to := k.t.Switches[s].regionOf(k.level(s, k.x)); to != from {
			k.enterRegion(s, to, local)
		}
	}

	released = k.t.Confined && k.updateExtents()
	k.selectCombination()
	k.setOffsets(k.w)
	return released
}

// regionOf returns the region of level z.
//
//go:nosplit
func (sw *Switch) regionOf(z float64) int {
	r := 0
	for r < len(sw.Borders) && z >= sw.Borders[r] {
		r++
	}
	return r
}

// selectCombination selects the matrices, slopes and offsets of the present regions.
//
//go:nosplit
func (k *Kernel) selectCombination() {
	for i := range k.slope {
		k.slope[i], k.offset[i] = k.affineIn(i, k.region)
	}
	combination := 0
	for g := range k.t.Groups {
		on := &k.t.Groups[g]
		joint := 0
		for i, s := range on.Switches {
			joint += k.region[s] * on.Stride[i]
		}
		combination += on.Class[joint] * on.Weight
	}
	if k.base = combination; k.t.Modes != nil {
		k.base <<= k.t.Mc
	}
}

// affineIn returns the slope and the offset of affine signal i in the regions of the switches.
//
//go:nosplit
func (k *Kernel) affineIn(i int, region []int) (slope, offset float64) {
	a := k.t.Signals[k.t.FirstAffine+i].Affine
	for g := range a.Gates {
		if region[a.Gates[g].Switch] != a.Gates[g].Region {
			return 0, 0
		}
	}
	return a.Slope[region[a.Switch]], a.Offset[region[a.Switch]]
}

// setOffsets sets the affine signals in v to their offsets.
//
//go:nosplit
func (k *Kernel) setOffsets(v []float64) {
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		v[j] = k.offset[j-k.t.FirstAffine]
	}
}

// slopePart returns what affine signals add to functional f in state x beyond their offsets.
//
//go:nosplit
//go:norace
func (k *Kernel) slopePart(f *model.Functional, x []float64) float64 {
	sum := 0.0
	for i, j := range f.Signal {
		if a := j - k.t.FirstAffine; a >= 0 && a < len(k.slope) && k.slope[a] != 0 {
			sum += float64(f.Coef[i] * k.slope[a] * k.level(k.t.Signals[j].Affine.Switch, x))
		}
	}

	return sum
}

// addSlopeOutputs adds to y the part of the affine signals beyond their offsets.
//
//go:nosplit
func (k *Kernel) addSlopeOutputs(y []float64) {
	if k.t.FirstAffine == k.t.FirstLaw {
		return
	}
	for i := range y {
		for p := k.outV.rowStart(i); p < k.outV.End[i]; p++ {
			if j := k.outV.Col[p]; j >= k.t.FirstAffine && j < k.t.FirstLaw {
				f := float64(k.slope[j-k.t.FirstAffine] * k.level(k.t.Signals[j].Affine.Switch, k.x))
				y[i] += float64(k.outV.Val[p] * f)
			}
		}
	}
}

// setMayLeave sets mayLeave of switch s: whether it can leave its region upwards and downwards in the substep, at its end
// or in between.
//
//go:nosplit
func (k *Kernel) setMayLeave(s int) {
	k.mayLeave[2*s], k.mayLeave[2*s+1] = false, false
	if !k.followed[s] {
		return
	}
	start, end, rise := k.level(s, k.x), k.level(s, k.x1), float64(k.length*k.levels.dot(s, k.xd))
	for q, side := range [2]float64{1, -1} {
		if border, ok := k.boundary(s, side); ok {
			a, b := float64(side*(border-start)), float64(side*(border-end))
			k.mayLeave[2*s+q] = b < 0 || mayReachZero(a, b, float64(-side*rise))
		}
	}
}

// boundary returns the end of the present region of switch s on a side.
//
//go:nosplit
func (k *Kernel) boundary(s int, side float64) (float64, bool) {
	borders, r := k.t.Switches[s].Borders, k.region[s]
	if side < 0 {
		r--
	}
	if r < 0 || r >= len(borders) {
		return 0, false
	}
	return borders[r], true
}

// levelPoly sets poly to the distance of switch s from its boundary over the substep. A boundary
// that was just crossed is not crossed back by rounding.
//
//go:nosplit
func (k *Kernel) levelPoly(s int, side float64) {
	n, sw := k.t.N, &k.t.Switches[s]
	border, _ := k.boundary(s, side)
	clear(k.poly)
	for j := range k.degree + 1 {
		k.poly[j] = float64(-side * k.levels.dot(s, k.c[j*n:(j+1)*n]))
	}
	k.poly[0] = max(0, k.poly[0]+float64(side*(border-sw.Const)))
}

// crossBoundary moves switch s across the nearer boundary of its region. At an end of its period the level
// returns by the period.
//
//go:nosplit
func (k *Kernel) crossBoundary(s int, local float64) {
	z := k.level(s, k.x)
	up, isUp := k.boundary(s, 1)
	down, isDown := k.boundary(s, -1)
	to := k.region[s] + 1
	if !isUp || isDown && math.Abs(z-down) < math.Abs(up-z) {
		to -= 2
	}
	if w := k.t.Switches[s].Wrap; w != nil && to == 0 {
		k.x[w.State] += w.Period
		to = len(k.t.Switches[s].Borders) - 1
	} else if w != nil && to == len(k.t.Switches[s].Borders) {
		k.x[w.State] -= w.Period
		to = 1
	}
	k.enterRegion(s, to, local)
	k.selectCombination()
}

// enterRegion sets the region of switch s, and logs and counts the event unless the switch is an
// inner one.
//
//go:nosplit
func (k *Kernel) enterRegion(s, to int, local float64) {
	if !k.t.Switches[s].Inner {
		k.logEvent(Event{Time: k.gridTime() + local, Friction: k.t.Mc + s, From: int8(k.region[s]), To: int8(to)})
		k.events++
	}
	k.region[s] = to
}

// logEvent adds an event to the log while there is room.
//
//go:nosplit
func (k *Kernel) logEvent(e Event) {
	if n := k.logged; n < len(k.log) {
		k.log[n] = e
		k.logged++
	}
}
