package kernel

// Accuracy to which the laws of a substep are solved.
const (
	converge        = iota // converged to the tolerance
	convergeOrHalve        // converged; the substep is halved until they are
	convergeCoarse         // converged to the coarse tolerance
	extrapolate            // continued from the previous substep
)

// locateEvent advances the state over the whole substep, to x1, and locates the first event in it.
// The laws are solved to accuracy; resume continues the iteration of a previous call. Before the
// laws have converged, the event found serves only to shorten the substep. expanded is whether the
// Taylor coefficients are set.
//
//go:nosplit
func (k *Kernel) locateEvent(
	local float64, locate bool, accuracy int, resume bool,
) (theta float64, cause int, expanded bool) {
	expanded = true
	switch {
	case k.t.FirstLaw < k.t.M:
		if !resume {
			k.coarse = accuracy == convergeCoarse || accuracy == extrapolate
			copy(k.lawMaxKept, k.lawMax)
			k.calls.solveLaws(k)
		}

		if k.t.Sparse != nil && accuracy != extrapolate {
			k.calls.iterateLaws(k, accuracy == convergeCoarse)
		}
		switch accuracy {
		case converge:
			k.repeatUntilConverged(local, 0)
		case convergeOrHalve:
			k.repeatUntilConverged(local, maxHalvings)
		}
		k.horner(k.x1, 1)
	case k.t.Sparse != nil:
		k.calls.expand(k, k.x)
		k.horner(k.x1, 1)
	case k.length != k.t.Delta || k.t.Modes == nil || k.waveDegree > 2:
		k.setRates(k.w0)
		k.expandOnRates()
		k.horner(k.x1, 1)
	default:
		if k.held.starts {
			k.moveHeld()
		} else {
			k.setRates(k.w0)
			k.fullSubstep(k.x1, k.x)
		}
		expanded = false
	}

	if k.t.Sparse != nil {
		k.projectSparse(k.x1)
	}
	if !k.calls.mayHoldEvent(k) {
		return 1, noEvent, expanded
	}
	if !expanded {
		k.expandOnRates()
	}
	if k.t.Sparse != nil && !locate {
		return 0, 0, true // the caller needs no place
	}
	theta, cause = k.firstEvent()
	return theta, cause, true
}

// nearEvent is the part of a substep within which an event is located without a law iteration. The
// error of the extrapolated laws grows with its square. A substep whose laws may have a corner at the event is kept longer
// by the same part.
const nearEvent = 1. / 4

// overrun is the part by which other substeps are kept longer. The parabola of a law is most exact at the end of its
// substep: an overrun of 1/16 makes the error of train3 ten times as large. An event further away is not found.
const overrun = 1. / 64

// locateEventSparse is locateEvent for a plant stepped sparse. Each event starts a new substep,
// which ends at the next event, so the laws beyond the event need not converge.
//
//go:nosplit
func (k *Kernel) locateEventSparse(local float64) (theta float64, cause int) {
	theta, cause, _ = k.calls.locateEvent(k, local, true, extrapolate, false)
	if cause == noEvent { // mostly the converged laws have none either
		theta, cause, _ = k.calls.locateEvent(k, local, true, convergeOrHalve, true)
		return theta, cause
	}

	if k.isAtStart(theta) {
		return theta, cause
	}
	accuracy, near, longer := convergeCoarse, nearEvent, nearEvent
	if lawsPass(cause) {
		accuracy, near, longer = convergeOrHalve, 1, overrun
	}
	part := float64(theta * k.length * (1 + longer))
	shortened := theta < near && k.canShorten(part)
	if shortened {
		k.restartSubstep(local, part)
	}
	theta, cause, _ = k.calls.locateEvent(k, local, true, accuracy, !shortened)
	if accuracy == convergeOrHalve || cause != noEvent && k.isAtStart(theta) {
		return theta, cause
	}
	if !(cause != noEvent && theta >= k.minSubstep(true) && k.canShorten(k.lengthTo(theta))) {
		theta, cause, _ = k.calls.locateEvent(k, local, true, convergeOrHalve, true)
	}
	return theta, cause
}

// lawsPass reports whether laws have no corner at an event with this cause: each but an event indicator, as elements and
// regions keep their modes beyond the event. The substep then need not end there.
//
//go:nosplit
func lawsPass(cause int) bool { return cause > noEvent }

// startPart is the part of a substep in which the laws need no iteration: they change by no more than this part of
// their change over the substep, and the motion by its square, 1e-10, of what it changes.
const startPart = 1e-5

// isAtStart reports whether an event at theta is at the start of the substep, where laws and motion have hardly
// changed.
//
//go:nosplit
func (k *Kernel) isAtStart(theta float64) bool {
	return (theta <= startPart || theta*k.length <= k.timeTol) && theta >= k.minSubstep(true)
}

// isLocated reports whether an event found in a plant stepped sparse needs no substep that ends there.
//
//go:nosplit
func (k *Kernel) isLocated(theta float64, cause int) bool {
	return k.t.Sparse != nil && lawsPass(cause) && (k.isAtStart(theta) || !k.coarse)
}

// lengthTo returns the length, s, of a substep that ends just after an event at theta. The margin
// is larger for an event located on coarse laws.
//
//go:nosplit
func (k *Kernel) lengthTo(theta float64) float64 {
	margin := 1e-6
	if k.t.Sparse != nil {
		margin = 1e-5
	}
	return float64(theta * k.length * (1 + margin))
}

// canShorten reports whether the substep can be shortened to length, s.
//
//go:nosplit
func (k *Kernel) canShorten(length float64) bool { return length > k.timeTol && length < k.length }

// locateEventShortened repeats a substep up to just after the event found at theta. The laws are
// then not evaluated beyond the event, where they may have a breakpoint.
//
//go:nosplit
func (k *Kernel) locateEventShortened(local, theta float64, cause int) (float64, int) {
	length := k.lengthTo(theta)
	if !k.canShorten(length) {
		return theta, cause
	}
	k.restartSubstep(local, length)
	theta, cause, _ = k.calls.locateEvent(k, local, true, converge, false)
	return theta, cause
}

// restartSubstep restarts the substep with another length, s.
//
//go:nosplit
func (k *Kernel) restartSubstep(local, length float64) {
	k.saveLawTrend(0)
	x := k.x
	if k.t.Sparse != nil {
		x = nil
		k.keepExpansion(length / k.length)
	}
	k.calls.setSignals(k, x, local, length)
}
