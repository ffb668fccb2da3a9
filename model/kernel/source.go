package kernel

import (
	"math"
	"slices"
	"time"

	"lockstep/model"
)

// tableRow returns the row of table T that holds at time t: T[i] <= t < T[i+1]; -1 before the first
// row.
//
//go:nosplit
func tableRow(T []float64, t float64) int {
	lo, hi := 0, len(T) // lo becomes the number of rows with T <= t
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if T[mid] <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}

	return lo - 1
}

// splitAtOffset returns s with an added row wherever its table passes through v between two rows.
// Then max(0, s - v) is straight between rows as well. Other sources are returned unchanged.
func splitAtOffset(s model.Source, v float64) model.Source {
	if s.Held || !isStraight(&s) || len(s.Sum) > 0 {
		return s
	}
	out := s
	out.T, out.V = nil, nil
	for i := range s.T {
		if i > 0 && (s.V[i-1]-v)*(s.V[i]-v) < 0 && s.T[i] > s.T[i-1] {
			part := (v - s.V[i-1]) / (s.V[i] - s.V[i-1])
			out.T, out.V = append(out.T, s.T[i-1]+part*(s.T[i]-s.T[i-1])), append(out.V, v)
		}

		out.T, out.V = append(out.T, s.T[i]), append(out.V, s.V[i])
	}

	return out
}

// delayed returns s delayed by a dead time d, s.
func delayed(s model.Source, d float64) model.Source {
	if d == 0 {
		return s
	}
	s.Start += d
	s.T = slices.Clone(s.T)
	if s.Period == 0 {
		for i := range s.T {
			s.T[i] += d
		}
	}

	sum := make([][]model.Source, len(s.Sum))
	for i, factors := range s.Sum {
		for _, f := range factors {
			sum[i] = append(sum[i], delayed(f, d))
		}
	}

	s.Sum = sum
	return s
}

// checkSourcePeriods refuses a source that repeats more than MaxSplit times within a period of the grid.
func (t *Tables) checkSourcePeriods(sys *model.System) {
	h := float64(t.PeriodNs) * 1e-9
	for j := range t.Signals {
		for _, leaf := range t.Signals[j].Source.Leaves() {
			if leaf.Period > 0 && !(leaf.Period*MaxSplit >= h) {
				refuse("%q repeats every %.9g s, more than %d times in a step of %v; take a step of at most %v",
					sys.Signals[j].Name, leaf.Period, MaxSplit, time.Duration(t.PeriodNs),
					time.Duration(leaf.Period*MaxSplit*1e9))
			}
		}
	}
}

// maxBreakpoints returns the largest number of breakpoints of sources, and of changes of commands
// inside of a tick, within the time that one tick can span.
func (t *Tables) maxBreakpoints() int {
	span := float64(t.maxPeriods()) * float64(t.PeriodNs) * 1e-9
	count := 0
	var once []float64
	for _, d := range t.Delay {
		if d > 0 {
			count += t.maxPeriods()
		}
	}

	count += t.maxPeriods() * t.Places * len(slices.Compact(slices.Sorted(slices.Values(t.Delay))))
	count += t.maxPeriods() * (t.Places + 1) * len(t.RampPressed)

	for i := range t.Signals {
		s := &t.Signals[i]
		if s.Input >= 0 && len(s.Source.Sum) == 0 {
			continue
		}
		for _, leaf := range s.Source.Leaves() {
			if leaf.Period > 0 {
				count += (len(leaf.T) + 1) * (int(span/leaf.Period) + 2)
			} else {
				once = append(once, leaf.T...)
			}

			if leaf.Amplitude != 0 || leaf.Period > 0 {
				once = append(once, leaf.Start)
			}
		}
	}

	slices.Sort(once)
	cluster, first := 0, 0
	for i := range once {
		for once[i]-once[first] > span {
			first++
		}
		cluster = max(cluster, i-first+1)
	}

	return count + cluster
}

// sourceAt returns the value of s at time t, on the smooth part of s that holds at time mid.
//
//go:nosplit
func sourceAt(s *model.Source, t, mid float64) float64 {
	if len(s.Sum) == 0 {
		return leafAt(s, t, mid)
	}
	total := 0.0
	for _, factors := range s.Sum {
		p := 1.0
		for i := range factors {
			p = float64(p * leafAt(&factors[i], t, mid))
		}
		total += p
	}

	return total
}

// leafAt is sourceAt for a source without products.
//
//go:nosplit
func leafAt(s *model.Source, t, mid float64) float64 {
	v := tableAt(s, t, mid)
	if s.Amplitude != 0 && mid >= s.Start {
		v += float64(amplitudeAt(s, t) * sin(float64(2*math.Pi*s.Frequency*(t-s.Start))+s.Phase))
	}
	return v
}

// amplitudeAt returns the amplitude of the sine of s at time t.
//
//go:nosplit
func amplitudeAt(s *model.Source, t float64) float64 {
	if s.Damping == 0 {
		return s.Amplitude
	}
	return float64(s.Amplitude * exp(float64(-s.Damping*(t-s.Start))))
}

// tableAt returns the table part of leafAt.
//
//go:nosplit
func tableAt(s *model.Source, t, mid float64) float64 {
	if len(s.T) == 0 {
		return 0
	}
	if s.Period > 0 {
		if mid < s.Start {
			return s.V[0]
		}
		shift := s.Start + float64(s.Period*floor((mid-s.Start)/s.Period))
		t, mid = t-shift, mid-shift
	}

	i := tableRow(s.T, mid)
	switch {
	case i < 0:
		return s.V[0]
	case i >= len(s.T)-1:
		return s.V[len(s.V)-1]
	case s.Held:
		return s.V[i]
	}

	return s.V[i] + float64((s.V[i+1]-s.V[i])*((t-s.T[i])/(s.T[i+1]-s.T[i])))
}

// breakpointAfter returns the first breakpoint of s after time t, +Inf where there is none.
//
//go:nosplit
func breakpointAfter(s *model.Source, t float64) float64 {
	if len(s.Sum) == 0 {
		return leafBreakpoint(s, t)
	}
	next := math.Inf(1)
	for _, factors := range s.Sum {
		for i := range factors {
			next = min(next, leafBreakpoint(&factors[i], t))
		}
	}

	return next
}

// leafBreakpoint is breakpointAfter for a source without products.
//
//go:nosplit
func leafBreakpoint(s *model.Source, t float64) float64 {
	next := math.Inf(1)
	if (s.Amplitude != 0 || s.Period > 0) && t < s.Start {
		next = s.Start
	}
	if len(s.T) == 0 || s.Period > 0 && t < s.Start {
		return next
	}
	shift := 0.0
	if s.Period > 0 {
		shift = s.Start + float64(s.Period*floor((t-s.Start)/s.Period))
		next = min(next, shift+s.Period)
	}

	if i := tableRow(s.T, t-shift) + 1; i < len(s.T) {
		next = min(next, shift+s.T[i])
	}
	return next
}

// nextChange returns the first breakpoint of any source, or change of a command, after the local
// time of this tick, as a local time.
//
//go:nosplit
func (k *Kernel) nextChange(local float64) float64 {
	k.passBreakpoints(local)
	return min(k.nextBreakpoint-k.gridTime(), k.nextCommandChange(local))
}

// passBreakpoints sets nextBreakpoint to the first breakpoint of any source after the local time of this tick.
//
//go:nosplit
func (k *Kernel) passBreakpoints(local float64) {
	now := k.gridTime() + local
	if now+k.timeTol >= k.nextBreakpoint {
		k.nextBreakpoint = math.Inf(1)
		for j := range k.t.Signals[:k.t.FirstAffine] {
			if sig := &k.t.Signals[j]; k.input[j] < 0 {
				k.nextBreakpoint = min(k.nextBreakpoint, breakpointAfter(&sig.Source, now+k.timeTol))
			}
		}
	}
}

// gridTime returns the grid time at the start of this tick, s.
//
//go:nosplit
func (k *Kernel) gridTime() float64 { return float64(float64(k.tick) * k.h) }

// floorTicks returns the largest whole number that is not above x; |x| must be below History.
//
//go:nosplit
func floorTicks(x float64) int64 {
	n := int64(x)
	if float64(n) > x {
		n--
	}
	return n
}

// Drive makes input i follow u from the next step on, or its own source again. Until the dead time
// of the first u is over, the input keeps its present value. Drive ignores an input that the tables
// already command through u.
//
//go:nosplit
func (k *Kernel) Drive(i int, on bool) {
	for _, own := range k.t.Drivable { // the other entries of input are constants in generated code
		if own == i {
			k.setDriven(own, on)
		}
	}
}

// setDriven is Drive for an input that the tables do not command.
//
//go:nosplit
func (k *Kernel) setDriven(i int, on bool) {
	j := k.t.InputSignal[i]
	k.publishedAt, k.nextBreakpoint, k.held.isSet = -1, 0, false
	if !on {
		k.input[j] = -1
		return
	}

	k.input[j] = i
	k.setCommand(i, sourceAt(&k.t.Signals[j].Source, k.gridTime(), k.gridTime()+k.timeTol))
}

// Driven reports whether input i follows u.
//
//go:nosplit
func (k *Kernel) Driven(i int) bool { return k.input[k.t.InputSignal[i]] >= 0 }

// Own returns the value of input i's own source in the middle of the next step.
//
//go:nosplit
func (k *Kernel) Own(i int) float64 {
	at := k.gridTime() + float64(k.h/2) + k.t.Delay[i] // the source in the tables is delayed by the dead time
	return sourceAt(&k.t.Signals[k.t.InputSignal[i]].Source, at, at)
}

// setSignals sets w over the substep that starts at a local time and lasts length, s. Commands are
// held or straight. Tables are straight, since substeps end at breakpoints, and waves are their Taylor
// polynomials; in the held form a wave is the parabola through its values at the start, the middle
// and the end. Laws hold their value at the start until
// solveLaws refines them. The torque of slipping elements follows the clipped capacity. With x nil
// the substep starts as the previous one did, and solveLaws does the rest.
//
//go:nosplit
func (k *Kernel) setSignals(x []float64, local, length float64) {
	k.length = length
	mid := local + float64(length/2)
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		k.w1[j], k.w2[j] = 0, 0
	}
	k.setOffsets(k.w0)
	k.waveDegree = 0
	for c, j := range k.t.Constants {
		k.w0[j], k.w1[j], k.w2[j] = k.t.ConstantValues[c], 0, 0
	}
	for _, j := range k.t.Varying {
		sig := &k.t.Signals[j]
		if i := k.input[j]; i >= 0 {
			k.w0[j], k.w1[j], k.w2[j] = k.commandAt(i, local, mid), 0, 0
			if k.t.Ramped[i] {
				k.w1[j] = float64(k.commandSlope(i, mid) * length)
			}
			if sig.Wave >= 0 {
				clear(k.waveRow(sig.Wave))
			}
			continue
		}

		t, tm := k.gridTime()+local, k.gridTime()+mid
		if q := sig.Wave; q >= 0 {
			k.setWave(q, t, tm)
			k.w0[j], k.w1[j], k.w2[j] = k.waveTerm(q, 0), k.waveTerm(q, 1), k.waveTerm(q, 2)
			continue
		}

		if local == 0 && k.publishedAt == k.tick && length > 0 {
			k.w0[j] = k.published[j]
		} else {
			k.w0[j] = sourceAt(&sig.Source, t, tm)
		}

		if isStraight(&sig.Source) {
			k.w1[j], k.w2[j] = sourceAt(&sig.Source, t+length, tm)-k.w0[j], 0
			continue
		}

		k.w1[j], k.w2[j] = parabola(k.w0[j], sourceAt(&sig.Source, tm, tm), sourceAt(&sig.Source, t+length, tm))
	}

	if x != nil {
		k.startLaws(x)
	}
}

// startLaws sets the laws and capacities at the start of the substep, for state x. Laws that read
// torques and torques that follow laws converge in a bounded number of iterations, as each
// iteration loses the part that a gear loses of its torque.
//
//go:nosplit
func (k *Kernel) startLaws(x []float64) {
	rounds := 1
	if k.t.LoopReadsTau {
		rounds = maxLawIterations
		k.setTorquesOfLaws(0, true)
	}

	for j := k.t.FirstLaw; j < k.t.M; j++ {
		k.w1[j], k.w2[j] = 0, 0
	}
	for _, j := range k.t.Downstream {
		k.w0[j] = 0 // of the substep before
	}
	if k.t.Instant {
		rounds = 1
	}
	k.expandFrictions(k.t.Clearances)
	for round := range rounds {
		if k.t.Sparse == nil || k.t.Sparse.LawLoops || round == 0 {
			k.evaluateIterated(k.w0[:k.t.M], x)
		} else {
			k.evaluateMoved(k.w0[:k.t.M], x)
		}
		moved := k.lawsMoved()
		k.expandFrictions(k.t.Capacities)
		if !k.t.LoopReadsTau || !moved && round > 0 {
			break
		}
		k.setInstant(0)
		k.calls.setTorques(k, x)
		if k.t.Sparse != nil && !moved && !k.torquesMoved() {
			break
		}
		k.setTorquesOfLaws(0, false)
	}

	if k.t.Instant {
		k.setInstant(0)
		k.calls.solveInstant(k, x)
		copy(k.w0[k.t.FirstLaw:k.t.M], k.w[k.t.FirstLaw:k.t.M])
		k.expandFrictions(k.t.Capacities)
	}
	if len(k.t.Downstream) > 0 {
		k.setInstant(0)
		k.calls.evaluateDownstream(k, k.w0[:k.t.M], x)
	}
}

// setSignalsNow sets w and capNow to their values at the grid time, for state x.
//
//go:nosplit
func (k *Kernel) setSignalsNow(x []float64) {
	if k.t.LoopReadsTau {
		k.calls.setSignals(k, x, 0, 0)
		k.setInstant(0)
		return
	}

	m := k.t.M
	k.publishedAt = k.tick
	k.setOffsets(k.w)
	for j := range k.t.Signals[:k.t.FirstAffine] {
		if i := k.input[j]; i >= 0 {
			k.w[j] = k.commandAt(i, 0, 0)
		} else {
			k.published[j] = sourceAt(&k.t.Signals[j].Source, k.gridTime(), k.gridTime()+k.timeTol) // after a jump
			k.w[j] = k.published[j]
		}
	}

	k.evaluateIterated(k.w[:m], x)
	k.setCapacities()
	if len(k.t.Downstream) > 0 {
		k.calls.evaluateDownstream(k, k.w[:m], x)
	}
}

// setCapacities sets the capacities of this instant, and the torques in w that follow from them.
//
//go:nosplit
func (k *Kernel) setCapacities() {
	for i := range k.capNow {
		f, at := &k.t.Friction[i], k.t.M+i
		k.capNow[i] = float64(f.Gain * max(0, k.w[f.Signal]-f.Offset))
		k.w[at] = float64(k.direction(i) * k.capNow[i])
		if k.isIdle(i) {
			k.w[at] = k.idleTorque(i)
		}
	}
}
