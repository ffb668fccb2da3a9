package kernel

import "math"

// macroStep advances the plant by one period in two parts. The latent part goes first, under
// external forces held at their start. The active part follows in micro steps; for it the latent
// part moves on a straight line between its ends. Every additional iteration repeats both, with
// forces and sources straight between their start and the end found before (Gyebroszki, section
// 7.2).
//
// Friction follows the rules of the kernel at the micro steps: the same complementarity problem
// determines the locks. A slip that has changed its sign is set to zero, momentum kept. No event is
// located.
//
//go:nosplit
func (k *Kernel) macroStep() {
	p, t := &k.partition, k.t.Partition
	k.eta = 1
	k.setSources()
	k.calls.updateModes(k, 0, maxLawIterations)
	k.savedState.set(&k.plantState)
	for q, i := range t.Latent {
		p.start[q] = k.x[i]
	}
	k.setLatentForces(p.f0)
	copy(p.f1, p.f0)
	k.length = k.h
	k.startPath(t.Bodies)
	for pass := range t.Iter + 1 {
		if pass > 0 {
			k.predictSources()
			k.restoreState()
			k.calls.updateModes(k, 0, 1)
		}

		mul(p.end, t.Phi, p.start)
		mulAdd(p.end, t.Omega0, p.f0)
		if pass > 0 {
			axpy(p.f1, -1, p.f0)
			mulAdd(p.end, t.Omega1, p.f1)
		}

		for s := range t.Sub {
			k.calls.microStep(k, s)
			if k.stopIfNotFinite() {
				return
			}
		}
	}

	k.length = k.h
	k.countPath(t.Bodies, 0)
	k.projectLocks()
	k.updateRegions(k.h)
}

// setSources sets the sources at the start of the period. Commands are held.
//
//go:nosplit
func (k *Kernel) setSources() {
	p := &k.partition
	clear(p.dv)
	for j := range k.t.Signals[:k.t.FirstAffine] {
		if i := k.input[j]; i >= 0 {
			p.v[j] = k.commandAt(i, 0, float64(k.h/2))
		} else {
			p.v[j] = sourceAt(&k.t.Signals[j].Source, k.gridTime(), k.gridTime()+k.timeTol)
		}
	}
}

// predictSources sets the change of the sources over the period, on the smooth part that holds in
// its middle. It also sets f1 to the forces at the end that the last pass has found.
//
//go:nosplit
func (k *Kernel) predictSources() {
	p := &k.partition
	for j := range k.t.Signals[:k.t.FirstAffine] {
		if k.input[j] < 0 {
			p.dv[j] = sourceAt(&k.t.Signals[j].Source, k.gridTime()+k.h, k.gridTime()+float64(k.h/2)) - p.v[j]
		}
	}

	k.setRegions(k.x)
	k.updateForces(1, maxLawIterations)
	k.setLatentForces(p.f1)
}

// microStep advances the active part over micro step s. At its end it sets slips to zero that have
// changed their sign. A further pass discards the pulses counted here.
//
//go:nosplit
func (k *Kernel) microStep(s int) {
	t := k.t.Partition
	d := 1 / float64(t.Sub)
	theta := float64(float64(s) * d)
	if s > 0 {
		k.calls.updateModes(k, theta, 1)
	}
	k.length = float64(d * k.h)
	k.startPath(t.Wheels)
	k.rungeKutta(theta, d)
	k.countPath(t.Wheels, float64(theta*k.h))
	copy(k.modesBefore, k.mode)
	k.slips.mul(k.slip, k.x)
	passed := false
	for i, slip := range k.slip {
		passed = passed || k.direction(i)*slip < 0
	}
	if !passed {
		return
	}
	k.updateForces(theta+d, 1)
	for i, slip := range k.slip {
		if k.direction(i)*slip < 0 {
			k.setMode(i, Stuck)
		}
	}

	k.projectLocks()
	k.calls.resolveModes(k)
	k.projectLocks()
	if k.recordTransitions(float64((theta + d) * k.h)) {
		k.events++
	}
}

// rungeKutta is a step of Runge and Kutta of order four from theta over the part d of the period; w
// and tau must be those of its start.
//
//go:nosplit
func (k *Kernel) rungeKutta(theta, d float64) {
	p, active := &k.partition, k.t.Partition.Active
	for q, i := range active {
		p.x0[q], p.sum[q] = k.x[i], k.x[i]
	}
	k.rungeKuttaStage(theta, d, 1./6, 1./2)
	k.updateForces(theta+float64(d/2), 1)
	k.rungeKuttaStage(theta, d, 1./3, 1./2)
	k.updateForces(theta+float64(d/2), 1)
	k.rungeKuttaStage(theta, d, 1./3, 1)
	k.updateForces(theta+d, 1)
	k.rungeKuttaStage(theta, d, 1./6, 1)
	for q, i := range active {
		k.x[i] = p.sum[q]
	}
}

// rungeKuttaStage adds the rates of the active part, times weight, to the sum of rungeKutta. It
// then sets the state to where these rates lead after the given part of the step.
//
//go:nosplit
func (k *Kernel) rungeKuttaStage(theta, d, weight, part float64) {
	p := &k.partition
	p.active.addUp(p.rate, k.x, k.w[:k.t.M], k.tau)
	axpy(p.sum, float64(weight*d*k.h), p.rate)
	for q, i := range k.t.Partition.Active {
		k.x[i] = p.x0[q] + float64(part*d*k.h*p.rate[q])
	}
	k.interpolateLatent(theta + float64(part*d))
}

// interpolateLatent sets the latent states on the straight line from their start to their end.
//
//go:nosplit
func (k *Kernel) interpolateLatent(theta float64) {
	p := &k.partition
	for q, i := range k.t.Partition.Latent {
		k.x[i] = p.start[q] + float64(theta*(p.end[q]-p.start[q]))
	}
}

// updateModes determines at theta which friction elements are free, stick and slip, as at the start
// of a substep; w and tau are then those of theta.
//
//go:nosplit
func (k *Kernel) updateModes(theta float64, iterations int) {
	k.updateForces(theta, iterations)
	copy(k.w0, k.w)
	clear(k.w1)
	clear(k.w2)
	for i := range k.mode {
		k.expandCapacity(i)
	}
	k.length = k.h / float64(k.t.Partition.Sub)
	k.calls.startSubstep(k, float64(theta*k.h))
}

// updateForces sets signals, capacities and torques at theta, for state x. Laws that read torques,
// and torques that follow laws, get at most the given number of iterations.
//
//go:nosplit
func (k *Kernel) updateForces(theta float64, iterations int) {
	p := &k.partition
	for j := range k.t.FirstAffine {
		k.w[j] = p.v[j] + float64(theta*p.dv[j])
	}
	k.setOffsets(k.w)
	if !k.t.ReadsTau {
		iterations = 1
	}
	for range iterations {
		if k.t.ReadsTau {
			k.setCapacities()
			k.setTorques(k.x)
		}

		k.calls.evaluateOnSides(k, k.w[:k.t.M], k.x)
		k.setCapacities()
		k.setTorques(k.x)
		change, size := 0.0, 0.0
		for i, tau := range k.tau {
			change, size = max(change, math.Abs(tau-p.lastTau[i])), max(size, math.Abs(tau))
			p.lastTau[i] = tau
		}

		if change <= torqueNoise*size {
			return
		}
	}
}

// maxSidePasses is how often the laws are repeated because the side of an event indicator has changed
// with them.
const maxSidePasses = 2

// evaluateOnSides is evaluateLaws on the present sides of the event indicators: a step in two parts
// locates no event.
//
//go:nosplit
func (k *Kernel) evaluateOnSides(v, x []float64) {
	k.evaluateLaws(v, x)
	for range maxSidePasses {
		if !k.updateSides(x, v) {
			return
		}
		k.evaluateLaws(v, x)
	}
}

// setLatentForces sets f to the external forces on the latent part under w and tau. Of springs and
// dampers with regions it is the part that Phi does not hold.
//
//go:nosplit
func (k *Kernel) setLatentForces(f []float64) {
	p := &k.partition
	copy(p.force, k.w[:k.t.M])
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		a := k.t.Signals[j].Affine
		z := k.level(a.Switch, k.x)
		p.force[j] += float64(k.slope[j-k.t.FirstAffine]*z) -
			float64(k.t.Partition.InnerSlope[j-k.t.FirstAffine]*(z-k.t.Switches[a.Switch].Const))
	}

	p.latent.addUp(f, k.x, p.force, k.tau)
}

// cubic is the degree of the path on which a step in two parts counts pulses. The path runs through
// the angle and its rate at both ends of the step that moves it: a micro step for the active part,
// the period for the latent part.
const cubic = 3

// startPath stores the angle and the rate at which the path of some pulses starts.
//
//go:nosplit
func (k *Kernel) startPath(pulses []int) {
	n := k.t.N
	for _, i := range pulses {
		state := k.t.Pulses[i].State
		k.c[state], k.c[n+state] = k.x[state], k.angleRate(state)
	}
}

// countPath counts the pulses along the path up to the present state; local is the time of its
// start, s.
//
//go:nosplit
func (k *Kernel) countPath(pulses []int, local float64) {
	n := k.t.N
	for _, i := range pulses {
		state := k.t.Pulses[i].State
		distance, r, s := k.x[state]-k.c[state], k.c[n+state], k.angleRate(state)
		k.c[2*n+state], k.c[3*n+state] = float64(3*distance)-float64(2*r)-s, r+s-float64(2*distance)
		if math.Abs(k.c[state]) < maxAngle && math.Abs(k.x[state]) < maxAngle {
			k.calls.countEdges(k, i, local, 1)
		}
	}
}

// angleRate returns the rate of an angle over length, from the state and the signals.
//
//go:nosplit
func (k *Kernel) angleRate(state int) float64 {
	return float64(k.length * (dotRow(k.t.Open.A, state, k.x) + dotRow(k.t.Open.B, state, k.w)))
}
