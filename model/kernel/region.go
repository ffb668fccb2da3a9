package kernel

import (
	"math"
	"slices"

	"lockstep/model"
)

// Switch is a switch of the plant and what its region selects: the slopes of the
// affine signals on it become part of A, their offsets are their values over a piece
// (000 eq. 32, 36). Regions with the same slopes share their matrices: the two sides
// of a symmetric spring, and a class is such a group.
type Switch struct {
	model.Switch
	Signals []int // affine in z
	Class   []int // of each region
	Stride  int   // what a class counts in the number of a combination
}

// bindSwitches lists the switches, their classes and the combinations of these.
func bindSwitches(t *Tables, sys *model.System) {
	t.Combinations = 1
	for s := range sys.Switches {
		sw := Switch{Switch: sys.Switches[s], Stride: t.Combinations}
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
			t.Combinations = uncounted
		} else {
			t.Combinations *= sw.classes()
		}
	}
}

// uncounted is the number of combinations where there are more than can be counted.
const uncounted = math.MaxInt

func (t *Tables) sameSlopes(sw *Switch, q, r int) bool {
	for _, j := range sw.Signals {
		if s := t.Signals[j].Affine.Slope; s[q] != s[r] {
			return false
		}
	}
	return true
}

// bent is a, n×n, with the slopes of a combination of classes in it.
func (t *Tables) bent(a []float64, combination int) []float64 {
	out := append([]float64(nil), a...)
	for s := range t.Switches {
		sw := &t.Switches[s]
		class := combination / sw.Stride % sw.classes()
		for r, c := range sw.Class {
			if c == class {
				t.bend(out, t.Open.B, t.N, sw, r)
				break
			}
		}
	}
	return out
}

// looked is how many combinations Prepare looks at for the fastest.
const looked = 4096

// fastCombinations are those that may be the fastest: all, or where they are too
// many that with the largest slope of every switch, since a stiffer spring never
// makes a plant slower.
func (t *Tables) fastCombinations() []int {
	if t.Combinations > looked {
		return []int{t.steepest()}
	}
	all := make([]int, t.Combinations)
	for c := range all {
		all[c] = c
	}
	return all
}

// culprit is what makes a plant as fast as it is: the element that would be fastest
// alone, unless that is far slower: of a law the fastest is told twice as fast.
func culprit(paces []model.Pace, fastest float64) (c model.Pace) {
	for _, p := range paces {
		if p.Rate > c.Rate && p.Rate >= fastest/4 {
			c = p
		}
	}
	return c
}

// classes is how many there are.
func (sw *Switch) classes() int { return 1 + slices.Max(sw.Class) }

// steepest is the combination with the largest slopes.
func (t *Tables) steepest() int {
	combination := 0
	for s := range t.Switches {
		sw := &t.Switches[s]
		combination += sw.Class[t.steepestRegion(sw)] * sw.Stride
	}
	return combination
}

// steepestRegion is the region of a switch with the largest slopes.
func (t *Tables) steepestRegion(sw *Switch) int {
	region, most := 0, -1.0
	for r := range sw.Class {
		size := 0.0
		for _, j := range sw.Signals {
			size += math.Abs(t.Signals[j].Affine.Slope[r])
		}
		if size > most {
			region, most = r, size
		}
	}
	return region
}

// stored is the diagonal of the energy e, n×n, with springs at their steepest: the size
// of the states.
func (t *Tables) stored(e []float64) []float64 {
	out := make([]float64, t.N)
	for i := range out {
		out[i] = e[i*t.N+i]
	}
	for s := range t.Switches {
		for i, r := range t.Switches[s].Row {
			most := 0.0
			for _, j := range t.Switches[s].Signals {
				for _, c := range t.Signals[j].Affine.Slope {
					most = max(most, math.Abs(c))
				}
			}
			if out[i] == 0 { // no mass of its own
				out[i] = most * r * r
			}
		}
	}
	return out
}

// bend adds the slopes of region r to out, rows×n, on which the signals act by in,
// rows×(m+mc).
//
//go:nosplit
func (t *Tables) bend(out, in []float64, rows int, sw *Switch, r int) {
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

// open is the plant with the slopes of the present regions and no lock.
//
//go:nosplit
func (k *Kernel) open() *Mode {
	if k.t.Modes != nil {
		return &k.t.Modes[k.base]
	}
	if k.bentFor != k.base {
		k.calls.rebend(k)
	}
	return &k.bent
}

// rebend fills bent and bentWA for the present regions. The cost is bounded by the
// affine signals times n·(n+mc).
//
//go:nosplit
func (k *Kernel) rebend() {
	copy(k.bent.A, k.t.Open.A)
	copy(k.bentWA, k.t.WA)
	for s := range k.t.Switches {
		sw := &k.t.Switches[s]
		k.t.bend(k.bent.A, k.t.Open.B, k.t.N, sw, k.region[s])
		k.t.bend(k.bentWA, k.t.WB, k.t.Mc, sw, k.region[s])
	}
	k.bentFor = k.base
}

// level is z of switch s in state x.
//
//go:nosplit
//go:norace
func (k *Kernel) level(s int, x []float64) float64 { return k.t.Switches[s].Const + k.levels.dot(s, x) }

// locate puts every switch in the region of state x.
//
//go:nosplit
func (k *Kernel) locate(x []float64) {
	for s := range k.region {
		k.region[s] = k.t.Switches[s].regionOf(k.level(s, x))
	}
	k.combine()
}

// relocate does so after a jump of the speeds, or a piece in which nobody looked, and
// tells w the offsets that hold now.
//
//go:nosplit
func (k *Kernel) relocate(local float64) {
	for s, from := range k.region {
		if to := k.t.Switches[s].regionOf(k.level(s, k.x)); to != from {
			k.record(Event{Time: k.grid() + local, Friction: k.t.Mc + s, From: int8(from), To: int8(to)})
			k.region[s] = to
			k.events++
		}
	}
	k.combine()
	k.bends(k.w)
}

// regionOf is the region of level z.
//
//go:nosplit
func (sw *Switch) regionOf(z float64) int {
	r := 0
	for r < len(sw.Borders) && z >= sw.Borders[r] {
		r++
	}
	return r
}

// combine makes the matrices of the present regions current.
//
//go:nosplit
func (k *Kernel) combine() {
	combination := 0
	for s, r := range k.region {
		combination += k.t.Switches[s].Class[r] * k.t.Switches[s].Stride
	}
	if k.base = combination; k.t.Modes != nil {
		k.base <<= k.t.Mc
	}
}

// bends sets the offsets of the affine signals in v.
//
//go:nosplit
func (k *Kernel) bends(v []float64) {
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		a := k.t.Signals[j].Affine
		v[j] = a.Offset[k.region[a.Switch]]
	}
}

// sloped is what affine signals add to functional f in state x beyond their offsets.
//
//go:nosplit
//go:norace
func (k *Kernel) sloped(f *model.Functional, x []float64) float64 {
	sum := 0.0
	for i, j := range f.Signal {
		if j >= k.t.FirstAffine && j < k.t.FirstLaw {
			a := k.t.Signals[j].Affine
			sum += f.Coef[i] * a.Slope[k.region[a.Switch]] * k.level(a.Switch, x)
		}
	}
	return sum
}

// showSlopes adds to y what affine signals are beyond their offsets.
//
//go:nosplit
func (k *Kernel) showSlopes(y []float64) {
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		a := k.t.Signals[j].Affine
		f := a.Slope[k.region[a.Switch]] * k.level(a.Switch, k.x)
		for i := range y {
			for p := k.outV.begin(i); p < k.outV.End[i]; p++ {
				if k.outV.Col[p] == j {
					y[i] += k.outV.Val[p] * f
				}
			}
		}
	}
}

// leaves reports whether switch s can leave its region upwards (side 1) or downwards
// (-1) in the piece: at its end, or in between.
//
//go:nosplit
func (k *Kernel) leaves(s int, side float64) bool {
	border, ok := k.border(s, side)
	if !ok {
		return false
	}
	a, b := side*(border-k.level(s, k.x)), side*(border-k.level(s, k.x1))
	return b < 0 || sags(a, b, -side*k.length*k.levels.dot(s, k.xd))
}

// border is the end of the present region of switch s on a side.
//
//go:nosplit
func (k *Kernel) border(s int, side float64) (float64, bool) {
	borders, r := k.t.Switches[s].Borders, k.region[s]
	if side < 0 {
		r--
	}
	if r < 0 || r >= len(borders) {
		return 0, false
	}
	return borders[r], true
}

// levelPoly sets poly to the way of switch s to its border over the piece. One that
// was just passed is not left by rounding.
//
//go:nosplit
func (k *Kernel) levelPoly(s int, side float64) {
	n, sw := k.t.N, &k.t.Switches[s]
	border, _ := k.border(s, side)
	clear(k.poly)
	for j := range k.degree + 1 {
		k.poly[j] = -side * k.levels.dot(s, k.c[j*n:(j+1)*n])
	}
	k.poly[0] = max(0, k.poly[0]+side*(border-sw.Const))
}

// pass takes switch s over the nearer border of its region.
//
//go:nosplit
func (k *Kernel) pass(s int, local float64) {
	z := k.level(s, k.x)
	up, isUp := k.border(s, 1)
	down, isDown := k.border(s, -1)
	to := k.region[s] + 1
	if !isUp || isDown && math.Abs(z-down) < math.Abs(up-z) {
		to -= 2
	}
	k.record(Event{Time: k.grid() + local, Friction: k.t.Mc + s, From: int8(k.region[s]), To: int8(to)})
	k.region[s] = to
	k.combine()
	k.events++
}

// record adds an event to the log while there is room.
//
//go:nosplit
func (k *Kernel) record(e Event) {
	if n := k.logged; n < len(k.log) {
		k.log[n] = e
		k.logged++
	}
}
