package kernel

import (
	"math"
	"slices"

	"lockstep/model"
)

// Switch is a switch of the plant and what its region selects. The slopes of the affine signals on
// the switch become part of A; their offsets are their values over a substep (Reiter, eq. 32, 36).
// Regions with the same slopes form a class and share their matrices, such as the two sides of a
// symmetric spring.
type Switch struct {
	model.Switch
	Signals []int // signals that are affine in the level z
	Class   []int // class of each region
	Weight  int   // weight of a class in the number of a combination
}

// bindSwitches lists the switches, their classes and the number of combinations of the classes.
func bindSwitches(t *Tables, sys *model.System) {
	t.Combinations = 1
	for s := range sys.Switches {
		sw := Switch{Switch: sys.Switches[s], Weight: t.Combinations}
		for j := range t.Signals {
			if a := t.Signals[j].Affine; a != nil && a.Switch == s {
				sw.Signals = append(sw.Signals, j)
			}
		}

		sw.Class = []int{0}
		for r := 1; r <= len(sw.Borders); r++ {
			class := sw.classes()
			for q, c := range sw.Class {
				if t.sameSlopes(&sw, q, r) {
					class = c
				}
			}

			sw.Class = append(sw.Class, class)
		}

		t.Switches = append(t.Switches, sw)
		if t.Combinations > math.MaxInt/sw.classes() {
			t.Combinations = tooMany
		} else {
			t.Combinations *= sw.classes()
		}
	}
}

// tooMany is the number of combinations where there are too many to count.
const tooMany = math.MaxInt

// sameSlopes reports whether regions q and r of a switch have the same slopes.
func (t *Tables) sameSlopes(sw *Switch, q, r int) bool {
	for _, j := range sw.Signals {
		if s := t.Signals[j].Affine.Slope; s[q] != s[r] {
			return false
		}
	}

	return true
}

// withSlopes returns a, n×n, plus the slopes of a combination of classes.
func (t *Tables) withSlopes(a []float64, combination int) []float64 {
	out := append([]float64(nil), a...)
	for s := range t.Switches {
		sw := &t.Switches[s]
		class := combination / sw.Weight % sw.classes()
		for r, c := range sw.Class {
			if c == class {
				t.addSlopes(out, t.Open.B, t.N, sw, r)
				break
			}
		}
	}

	return out
}

// fastestElement returns the element that makes a plant as fast as it is: the element that would be
// fastest alone. An element below a quarter of the rate does not count: the rate of a law counts
// twice.
func fastestElement(paces []model.Pace, fastest float64) (c model.Pace) {
	for _, p := range paces {
		if p.Rate > c.Rate && p.Rate >= fastest/4 {
			c = p
		}
	}

	return c
}

// classes returns the number of classes.
func (sw *Switch) classes() int { return 1 + slices.Max(sw.Class) }

// steepestCombination returns the combination with the largest slopes.
func (t *Tables) steepestCombination() int {
	combination := 0
	for s := range t.Switches {
		sw := &t.Switches[s]
		combination += sw.Class[t.steepestRegion(sw)] * sw.Weight
	}

	return combination
}

// steepestRegion returns the region of a switch with the largest slopes.
func (t *Tables) steepestRegion(sw *Switch) int {
	region, largest := 0, -1.0
	for r := range sw.Class {
		size := 0.0
		for _, j := range sw.Signals {
			size += math.Abs(t.Signals[j].Affine.Slope[r])
		}
		if size > largest {
			region, largest = r, size
		}
	}

	return region
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

// addSlopes adds the slopes of region r to out, rows×n, on which the signals act by in,
// rows×(m+mc).
//
//go:nosplit
func (t *Tables) addSlopes(out, in []float64, rows int, sw *Switch, r int) {
	n, mw := t.N, t.M+t.Mc
	for _, j := range sw.Signals {
		slope := t.Signals[j].Affine.Slope[r]
		for i := range rows {
			if g := slope * in[i*mw+j]; g != 0 {
				axpy(out[i*n:(i+1)*n], g, sw.Row)
			}
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
	for s := range k.t.Switches {
		sw := &k.t.Switches[s]
		k.t.addSlopes(k.unlockedMode.A, k.t.Open.B, k.t.N, sw, k.region[s])
		k.t.addSlopes(k.unlockedWA, k.t.WB, k.t.Mc, sw, k.region[s])
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
	k.selectCombination()
}

// updateRegions sets the regions after a jump of the speeds, or a substep without event checks. It
// logs the changes and sets the new offsets in w.
//
//go:nosplit
func (k *Kernel) updateRegions(local float64) {
	for s, from := range k.region {
		if to := k.t.Switches[s].regionOf(k.level(s, k.x)); to != from {
			k.logEvent(Event{Time: k.gridTime() + local, Friction: k.t.Mc + s, From: int8(from), To: int8(to)})
			k.region[s] = to
			k.events++
		}
	}

	k.selectCombination()
	k.setOffsets(k.w)
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

// selectCombination selects the matrices of the present regions.
//
//go:nosplit
func (k *Kernel) selectCombination() {
	combination := 0
	for s, r := range k.region {
		combination += k.t.Switches[s].Class[r] * k.t.Switches[s].Weight
	}
	if k.base = combination; k.t.Modes != nil {
		k.base <<= k.t.Mc
	}
}

// setOffsets sets the affine signals in v to their offsets.
//
//go:nosplit
func (k *Kernel) setOffsets(v []float64) {
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		a := k.t.Signals[j].Affine
		v[j] = a.Offset[k.region[a.Switch]]
	}
}

// slopePart returns what affine signals add to functional f in state x beyond their offsets.
//
//go:nosplit
//go:norace
func (k *Kernel) slopePart(f *model.Functional, x []float64) float64 {
	sum := 0.0
	for i, j := range f.Signal {
		if j >= k.t.FirstAffine && j < k.t.FirstLaw {
			a := k.t.Signals[j].Affine
			sum += f.Coef[i] * a.Slope[k.region[a.Switch]] * k.level(a.Switch, x)
		}
	}

	return sum
}

// addSlopeOutputs adds to y the part of the affine signals beyond their offsets.
//
//go:nosplit
func (k *Kernel) addSlopeOutputs(y []float64) {
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		a := k.t.Signals[j].Affine
		f := a.Slope[k.region[a.Switch]] * k.level(a.Switch, k.x)
		for i := range y {
			for p := k.outV.rowStart(i); p < k.outV.End[i]; p++ {
				if k.outV.Col[p] == j {
					y[i] += k.outV.Val[p] * f
				}
			}
		}
	}
}

// mayLeaveRegion reports whether switch s can leave its region upwards (side 1) or downwards (-1)
// in the substep, at its end or in between.
//
//go:nosplit
func (k *Kernel) mayLeaveRegion(s int, side float64) bool {
	border, ok := k.boundary(s, side)
	if !ok {
		return false
	}
	a, b := side*(border-k.level(s, k.x)), side*(border-k.level(s, k.x1))
	return b < 0 || mayReachZero(a, b, -side*k.length*k.levels.dot(s, k.xd))
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
		k.poly[j] = -side * k.levels.dot(s, k.c[j*n:(j+1)*n])
	}
	k.poly[0] = max(0, k.poly[0]+side*(border-sw.Const))
}

// crossBoundary moves switch s across the nearer boundary of its region.
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
	k.logEvent(Event{Time: k.gridTime() + local, Friction: k.t.Mc + s, From: int8(k.region[s]), To: int8(to)})
	k.region[s] = to
	k.selectCombination()
	k.events++
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
