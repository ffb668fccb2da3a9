package kernel

import (
	"math"
	"slices"
)

// mayHoldEvent reports whether the substep from x to x1 can hold an event, and sets mayPass, mayChange and mayLeave for
// firstEvent.
//
//go:nosplit
func (k *Kernel) mayHoldEvent() bool {
	may := k.indicatorsMayPass()
	k.slips.mul(k.slip1, k.x1)
	switch {
	case k.t.Sparse != nil:
		copy(k.xd, k.startRate)
	case k.t.FirstLaw < k.t.M: // without laws locateEvent has set them
		k.setRates(k.w0)
	}
	if !k.t.Steady {
		k.setInstant(1)
	}
	for i := range k.mode {
		k.mayChange[i] = k.changesMode(i)
		may = may || k.mayChange[i]
	}

	for s := range k.region {
		k.setMayLeave(s)
		may = may || k.mayLeave[2*s] || k.mayLeave[2*s+1]
	}

	return may
}

// changesMode reports whether element i can change its mode in the substep.
//
//go:nosplit
func (k *Kernel) changesMode(i int) bool {
	switch k.mode[i] {
	case Free:
		return k.t.Friction[i].Gap != nil && k.present[i] && k.mayClose(i)
	case Stuck:
		return k.overloadSide(i) != 0
	}
	return k.slipMayReachZero(i)
}

// nearZero is the part of an indicator's largest value below which it may turn at zero within a
// substep.
const nearZero = 0.1

// indicatorsMayPass reports whether an event indicator can change its side in the expanded substep, and sets mayPass of
// those that can.
// It can where it has changed it in the middle or at the end. Where one of these values is near
// zero, the parabola through them and the start must also stay clear of zero.
//
//go:nosplit
func (k *Kernel) indicatorsMayPass() bool {
	if len(k.side) == 0 {
		return false
	}
	k.setIndicatorMargins(k.indicatorEnd, k.x1, 1)
	passes := false
	for g := range k.side {
		k.mayPass[g] = k.indicatorEnd[g] < -k.indicatorNoise(g)
		passes = passes || k.mayPass[g]
	}
	if k.coarse || k.t.FirstLaw == k.t.M { // coarse: the substep is checked again
		return passes
	}

	x := k.lawStates // in the middle, then at the end
	if k.t.Sparse == nil {
		x = k.xd
		k.horner(x, 0.5)
	}
	k.setIndicatorMargins(k.indicatorMiddle, x[:k.t.N], 0.5)
	near := false
	for g := range k.side {
		k.mayPass[g] = k.mayPass[g] || k.indicatorMiddle[g] < -k.indicatorNoise(g)
		passes = passes || k.mayPass[g]
		near = near || k.isNearZero(g)
	}

	return near && k.calls.indicatorTurns(k) || passes
}

// isNearZero reports whether event indicator g, which has not passed zero in the middle or at the end of the expanded
// substep, is near zero there.
//
//go:nosplit
func (k *Kernel) isNearZero(g int) bool {
	return !k.mayPass[g] && min(k.indicatorMiddle[g], k.indicatorEnd[g]) < nearZero*k.indicatorSize(g)
}

// indicatorTurns sets mayPass of the event indicators near zero that can turn beyond zero and back in the substep. It
// reports whether there is one.
//
//go:nosplit
func (k *Kernel) indicatorTurns() bool {
	k.setInstant(0)
	k.setTorquesRead(k.x, 0)
	any := false
	for g := range k.side {
		if k.isNearZero(g) && k.turnsBeyondZero(g) {
			k.mayPass[g], any = true, true
		}
	}

	return any
}

// turnsBeyondZero reports whether event indicator g can turn beyond zero and back in the substep: whether the
// parabola through its values at the start, in the middle and at the end comes as close to zero as a sine of one
// radian deviates from that parabola. The signals and torques of the start must be set.
//
//go:nosplit
func (k *Kernel) turnsBeyondZero(g int) bool {
	start := k.indicatorMargin(g, k.startValue(g))
	c1, c2 := parabola(start, k.indicatorMiddle[g], k.indicatorEnd[g])
	return c1 < -k.indicatorNoise(g) && -c1 < 2*c2 && start-c1*c1/(4*c2) < 0.02*(c2-c1)
}

// startValue returns the value of event indicator g at the start of the substep, whose signals and torques must be set.
//
//go:nosplit
func (k *Kernel) startValue(g int) float64 {
	if k.t.Sparse != nil && k.t.Sparse.Starts[g].Signal >= 0 {
		return k.w[k.t.Sparse.Starts[g].Signal] - k.t.Sparse.Starts[g].Offset
	}
	return k.indicatorValue(g, k.x)
}

// indicatorTol is the part of an indicator's largest value so far, and of one, that counts as zero. A
// torque of rounding has no side.
const indicatorTol = 1e-12

// indicatorSizes returns the sizes of the event indicators that have borders and more than one operation, -1 for others. A
// quotient may have been infinite elsewhere: its largest value is no measure, its outermost borders are.
func (t *Tables) indicatorSizes() []float64 {
	sizes := make([]float64, len(t.Indicators))
	for g := range sizes {
		sizes[g] = -1
		if p := &t.Indicators[g]; len(p.Borders) > 0 && len(p.Ops) > 1 {
			sizes[g] = max(math.Abs(p.Borders[0]), math.Abs(p.Borders[len(p.Borders)-1]))
		}
	}
	return sizes
}

// indicatorSize returns the size of event indicator g: that of its borders, or its largest value so far.
//
//go:nosplit
func (k *Kernel) indicatorSize(g int) float64 {
	if k.fixedSize[g] >= 0 {
		return k.fixedSize[g]
	}
	return k.indicatorMax[g]
}

// indicatorValue returns the value of event indicator g in state x, with w and tau as set.
//
//go:nosplit
func (k *Kernel) indicatorValue(g int, x []float64) float64 {
	v := k.evaluateProgram(k.indicatorProgram(g), x, k.w[:k.t.M])
	k.recordIndicator(g, v)
	return v
}

// recordIndicator updates the largest value of event indicator g, but not from laws that are only extrapolated: these may
// be anything.
//
//go:nosplit
func (k *Kernel) recordIndicator(g int, v float64) {
	if !k.coarse {
		k.indicatorMax[g] = max(k.indicatorMax[g], math.Abs(v))
	}
}

// nearConverged is nearZero where the laws have converged: their parabolas have then the values of the laws themselves at
// the start, in the middle and at the end of the substep.
const nearConverged = 1e-6

// setIndicatorMargins sets dst to the margins of all event indicators in state x at theta, 0.5 or 1, of the expanded
// substep. In a plant stepped sparse, an indicator that shows the start of a capacity has the value of the law's parabola
// where that is far from it.
//
//go:nosplit
func (k *Kernel) setIndicatorMargins(dst, x []float64, theta float64) {
	k.setInstant(theta)
	torques, near := false, nearZero // torques: set
	if !k.coarse {
		near = nearConverged
	}
	for g := range dst {
		if k.t.Sparse != nil && k.t.Sparse.Starts[g].Signal >= 0 {
			at := &k.t.Sparse.Starts[g]
			v := k.w[at.Signal] - at.Offset
			k.recordIndicator(g, v)
			if dst[g] = float64(k.side[g] * v); dst[g] >= near*max(k.indicatorMax[g], math.Abs(at.Offset)) {
				continue
			}
		}
		if !torques {
			k.setTorquesRead(x, theta)
			torques = true
		}
		dst[g] = k.indicatorMargin(g, k.indicatorValue(g, x))
	}
}

// indicatorPassed reports whether event indicator g has changed its side in state x, with w and tau
// as set.
//
//go:nosplit
func (k *Kernel) indicatorPassed(g int, x []float64) bool {
	v := k.indicatorValue(g, x)
	if k.indicatorMargin(g, v) < -k.indicatorNoise(g) {
		k.sidePassed = k.sideBeyond(g, v)
		return true
	}
	return false
}

// indicatorMargin returns how far value v of event indicator g is inside its present side; negative
// outside.
//
//go:nosplit
func (k *Kernel) indicatorMargin(g int, v float64) float64 {
	borders := k.t.Indicators[g].Borders
	if len(borders) == 0 {
		return float64(k.side[g] * v)
	}
	margin, i := math.Inf(1), int(k.side[g])
	if i > 0 {
		margin = v - borders[i-1]
	}
	if i < len(borders) {
		margin = min(margin, borders[i]-v)
	}
	return margin
}

// sideAt returns the side of event indicator g at value v.
//
//go:nosplit
func (k *Kernel) sideAt(g int, v float64) float64 {
	borders := k.t.Indicators[g].Borders
	if len(borders) == 0 {
		if v < 0 {
			return -1
		}
		return 1
	}

	side := 0.0
	for _, b := range borders {
		if v >= b {
			side++
		}
	}
	return side
}

// updateSides sets the side of every event indicator in state x with the signals v. It reports whether
// one has changed.
//
//go:nosplit
func (k *Kernel) updateSides(x, v []float64) bool {
	changed := false
	for g, before := range k.side {
		k.side[g] = k.sideAt(g, k.evaluateProgram(k.indicatorProgram(g), x, v))
		changed = changed || k.side[g] != before
	}
	return changed
}

// sideBeyond returns the side that event indicator g takes at value v, outside of its present side
// or at its end.
//
//go:nosplit
func (k *Kernel) sideBeyond(g int, v float64) float64 {
	borders, side := k.t.Indicators[g].Borders, k.side[g]
	if len(borders) == 0 {
		return -side
	}
	if to := k.sideAt(g, v); to != side {
		return to
	}
	if i := int(side); i == len(borders) || i > 0 && v-borders[i-1] < borders[i]-v {
		return side - 1
	}
	return side + 1
}

// indicatorNoise returns the size below which a value of event indicator g is zero.
//
//go:nosplit
func (k *Kernel) indicatorNoise(g int) float64 {
	return float64(indicatorTol * (1 + k.indicatorSize(g)))
}

// overloadSide returns the side, +1 or -1, on which the lock torque of stuck element i can exceed
// its static capacity, and 0 for none. It checks the end of the substep, and the parabola through
// both ends and the slope in between.
//
//go:nosplit
func (k *Kernel) overloadSide(i int) float64 {
	f := &k.t.Friction[i]
	if k.isIdle(i) {
		return 0
	}
	tau0 := k.tau0[i]
	tau1, slope := k.endLockTorque(i)
	if k.t.Steady {
		k.tau[i] = tau1
	}
	start, static, rises := float64(f.Peak*k.capC[3*i]), float64(f.Peak*k.capNow[i]), float64(f.Peak*k.capC[3*i+1])
	if c := f.Face - 1; c >= 0 && k.carriesLoad(c) {
		end, per := k.endLockTorque(c)
		start, static, rises = -float64(f.Peak*f.Mu*k.tau0[c]), -float64(f.Peak*f.Mu*end), -float64(f.Peak*f.Mu*per)
	}
	if f.OneWay {
		if tau1 > float64(max(static, f.Floor)*(1+overload))+float64(4*k.torqueTolOf(i)) ||
			f.Gap != nil && mayReachZero(-tau0, -tau1, -slope) {
			return 1
		}
		return 0
	}

	if math.Abs(tau1) > float64(static*(1+overload))+float64(4*k.torqueTolOf(i)) {
		return math.Copysign(1, tau1)
	}
	for _, side := range [2]float64{1, -1} {
		if mayReachZero(start-float64(side*tau0), static-float64(side*tau1), rises-float64(side*slope)) {
			return side
		}
	}

	return 0
}

// endLockTorque returns the torque of stuck element i at the end of the substep and its slope at
// the start, N·m.
//
//go:nosplit
func (k *Kernel) endLockTorque(i int) (tau1, slope float64) {
	if k.t.Sparse != nil {
		return k.lockTorqueAt(i, 1), k.tauPoly[k.t.Mc+i]
	}
	m := k.currentMode()
	if k.t.Steady {
		return dotRow(m.T, i, k.x1) + k.held.torque[i], float64(k.length * dotRow(m.T, i, k.xd))
	}
	return dotRow(m.T, i, k.x1) + dotRow(m.U, i, k.w), float64(k.length*dotRow(m.T, i, k.xd)) + dotRow(m.U, i, k.w1)
}

// mayReachZero reports whether a curve that starts at a with slope r and ends at b, both positive,
// can reach zero over the substep. It compares the smallest value of the parabola through them with
// the deviation of a sine of at most one radian from it.
//
//go:nosplit
func mayReachZero(a, b, r float64) bool { return !staysClear(a, b, r) && dipsToZero(a, b, r) }

// staysClear reports whether a curve as of mayReachZero stays clear of zero by its ends and slope alone: it rises, bends
// downwards, or already its line ends above the margin.
//
//go:nosplit
func staysClear(a, b, r float64) bool {
	c := b - a - r
	return !(r < 0 && c > 0) || a+r > 0.05*(c-r) // a+r: the end of the line, below the parabola
}

// dipsToZero reports whether the parabola of a curve as of mayReachZero, which falls and bends upwards, comes as close
// to zero as the margin.
//
//go:nosplit
func dipsToZero(a, b, r float64) bool {
	c := b - a - r
	least := b
	if -r < 2*c { // the vertex lies in the substep; that of a straight line is anywhere, by rounding
		least = a - r*r/(4*c)
	}
	return least <= 0.05*(c-r)
}

// slipMayReachZero reports whether the slip of slipping element i can reach zero: at the end of the
// substep, or in between by the parabola through both ends and the slope. A slip that has just left
// zero can return on any curve.
//
//go:nosplit
func (k *Kernel) slipMayReachZero(i int) bool {
	d := k.direction(i)
	s0, s1 := float64(d*k.slip[i]), float64(d*k.slip1[i])
	return k.leavingZero[i] || s1 <= 0 || mayReachZero(s0, s1, float64(d*k.slips.dot(i, k.xd)*k.length))
}

// firstEvent locates the first event of the expanded substep, in which mayHoldEvent has found that there may be one. It
// returns its place and cause.
//
//go:nosplit
func (k *Kernel) firstEvent() (theta float64, cause int) {
	theta, cause = 1, noEvent
	for i, mode := range k.mode {
		if !k.mayChange[i] {
			continue
		}
		switch mode {
		case Free:
			if k.t.Friction[i].Gap == nil {
				continue // it cannot change, which generated code sees only here
			}
			k.clearancePoly(i)
		case Stuck:
			k.torquePoly(i, k.overloadSide(i))
		default:
			k.slipPoly(i)
		}

		if at, ok := k.calls.firstRoot(k, polynomial); ok && (cause == noEvent || at < theta) {
			theta, cause = at, i
		}
	}

	for s := range k.region {
		for q, side := range [2]float64{1, -1} {
			if !k.mayLeave[2*s+q] {
				continue
			}
			k.levelPoly(s, side)
			if at, ok := k.calls.firstRoot(k, polynomial); ok && (cause == noEvent || at < theta) {
				theta, cause = at, k.t.Mc+s
			}
		}
	}

	selects := k.t.LoopReadsTau && k.t.FirstLaw < k.t.M // a root costs many places, and most indicators are those of contacts apart
	for g := range k.side {
		if selects && !k.mayPass[g] || k.t.Sparse != nil && !k.prepareIndicator(g) {
			continue
		}
		at, ok := k.calls.firstRoot(k, g)
		if ok && k.isOfParabola(g, at) {
			k.onLaws = true
			at, ok = k.calls.firstRoot(k, g)
		}
		if ok && (cause == noEvent || at < theta) {
			theta, cause = at, -2-g
			k.sidePassed = k.sideBeyond(g, k.valueAt(g, at))
		}
		k.onLaws = false
	}

	return theta, cause
}

// isOfParabola reports whether event indicator g, which passes its border at theta close to the start of the expanded
// substep, does not do so where the laws that it reads have their own values there. The parabola of a law that grows as the
// square or the cube of time dips below its start; substeps that end at such a place get nowhere.
//
//go:nosplit
func (k *Kernel) isOfParabola(g int, theta float64) bool {
	if k.t.Sparse == nil || !k.programs[k.indicatorProgram(g)].readsLaw || !(theta <= ahead) {
		return false
	}
	return !(k.indicatorMargin(g, k.calls.valueOnLaws(k, g, theta))+k.indicatorNoise(g) < 0)
}

// valueOnLaws returns the value of event indicator g at theta of the expanded substep, in a sparse plant, with the laws
// that the state has there.
//
//go:nosplit
func (k *Kernel) valueOnLaws(g int, theta float64) float64 {
	k.horner(k.xd, theta)
	k.setInstant(theta)
	k.setTorquesRead(k.xd, theta)
	for _, j := range k.t.Reads[g].Laws {
		k.w[j] = k.evaluateProgram(j-k.t.FirstLaw, k.xd, k.w[:k.t.M])
	}
	return k.evaluateProgram(k.indicatorProgram(g), k.xd, k.w[:k.t.M])
}

// slipPoly sets poly to the slip of element i over the substep, positive in its direction.
//
//go:nosplit
func (k *Kernel) slipPoly(i int) {
	n, d := k.t.N, float64(k.mode[i])
	clear(k.poly)
	for j := range k.degree + 1 {
		k.poly[j] = float64(d * k.slips.dot(i, k.c[j*n:(j+1)*n]))
	}
	if k.leavingZero[i] {
		k.poly[0] += slipZero
	}
}

// torquePoly sets poly to the reserve of stuck element i over the substep, N·m: static capacity
// minus lock torque, on one side.
//
//go:nosplit
func (k *Kernel) torquePoly(i int, side float64) {
	f := &k.t.Friction[i]
	clear(k.poly)
	switch c := f.Face - 1; {
	case f.Peak*k.capNow[i] < f.Floor:
		k.poly[0] = float64(f.Floor * (1 + overload/2))
	case c >= 0 && k.carriesLoad(c):
		k.addTorquePoly(c, -float64(f.Peak*f.Mu*(1+overload/2)))
	default:
		for j := range 3 {
			k.poly[j] = float64(f.Peak * (1 + overload/2) * k.capC[3*i+j])
		}
		for j := 3; j <= k.waveDegree; j++ {
			k.poly[j] = float64(f.Peak * (1 + overload/2) * k.capacityTerm(i, j))
		}
	}

	k.poly[0] += float64(2 * k.torqueTolOf(i))
	k.addTorquePoly(i, -side)
}

// addTorquePoly adds factor times the torque of lock i over the substep to poly, N·m.
//
//go:nosplit
func (k *Kernel) addTorquePoly(i int, factor float64) {
	if k.t.Sparse != nil {
		for j := range k.degree + 1 {
			k.poly[j] += float64(factor * k.tauPoly[j*k.t.Mc+i])
		}
		return
	}

	m, n := k.currentMode(), k.t.N
	for j := range k.degree + 1 {
		k.poly[j] += float64(factor * dotRow(m.T, i, k.c[j*n:(j+1)*n]))
	}
	for j, w := range [3][]float64{k.w0, k.w1, k.w2} {
		k.poly[j] += float64(factor * dotRow(m.U, i, w))
	}
	for j := 3; j <= k.waveDegree; j++ {
		k.poly[j] += float64(factor * dotRow(m.U, i, k.waveTerms(j)))
	}
}

// Reads lists the states and the signals that an event indicator reads, and the laws among these signals with the laws
// that they read, in order.
type Reads struct{ States, Signals, Laws []int }

// indicatorReads lists what each event indicator reads, so that locating its event costs in
// proportion to what it reads and not to the size of the plant.
func (t *Tables) indicatorReads() (list []Reads) {
	for g := range t.Indicators {
		states, signals := make([]bool, t.N), make([]bool, t.M)
		mark := func(row []float64) {
			for i, r := range row {
				states[i] = states[i] || r != 0
			}
		}

		for _, a := range t.Indicators[g].Args {
			mark(a.Row)
			for _, j := range a.Signal {
				signals[j] = true
				if b := t.Signals[j].Affine; b != nil {
					mark(t.Switches[b.Switch].Row)
				}
			}
		}

		list = append(list, Reads{indicesOf(states), indicesOf(signals), t.lawsBehind(signals)})
	}

	return list
}

// lawsBehind returns the laws among the signals, and those that they read through any number of laws.
func (t *Tables) lawsBehind(signals []bool) (laws []int) {
	known := slices.Clone(signals)
	for changed := true; changed; {
		changed = false
		for j := t.FirstLaw; j < t.M; j++ {
			if !known[j] {
				continue
			}
			for _, a := range t.Signals[j].Law.Args {
				for _, i := range a.Signal {
					changed = changed || !known[i]
					known[i] = true
				}
			}
		}
	}
	for j := t.FirstLaw; j < t.M; j++ {
		if known[j] {
			laws = append(laws, j)
		}
	}
	return laws
}

// indicesOf returns the indices of the true entries of a list.
func indicesOf(list []bool) (at []int) {
	for i, m := range list {
		if m {
			at = append(at, i)
		}
	}

	return at
}

// setIndicatorInputs sets the inputs of event indicator g at theta of the expanded substep: states
// in xd, signals in w.
//
//go:nosplit
func (k *Kernel) setIndicatorInputs(g int, theta float64) {
	if k.t.LoopReadsTau {
		k.horner(k.xd, theta)
		k.setInstant(theta)
		k.setTorquesRead(k.xd, theta)
		return
	}

	r, n := &k.t.Reads[g], k.t.N
	for _, i := range r.States {
		s := k.c[k.degree*n+i]
		for j := k.degree - 1; j >= 0; j-- {
			s = float64(s*theta) + k.c[j*n+i]
		}
		k.xd[i] = s
	}

	for _, j := range r.Signals {
		k.w[j] = k.w0[j] + float64(theta*(k.w1[j]+float64(theta*k.w2[j])))
		if q := k.t.Signals[j].Wave; q >= 0 {
			k.w[j] += k.waveAbove(q, theta)
		}
	}
}
