package kernel

import "math"

// macro takes the plant over one period in two parts. The latent part goes first, under
// external forces held at their start, then the active one by micro steps on which it
// acts as a straight line between its ends. Every additional iteration does both again,
// with forces and sources straight between their start and the end that was found before
// (Gyebroszki, section 7.2).
//
// Friction follows the rules of the kernel at the micro steps: what sticks there and what
// slips is the same complementarity problem, and a slip that has changed its sign is put
// to zero, momentum kept. No event is located.
//
//go:nosplit
func (k *Kernel) macro() {
	p, t := &k.parts, k.t.Partition
	k.eta = 1
	k.span()
	k.calls.touch(k, 0, coupling)
	k.present.take(k)
	for q, i := range t.Latent {
		p.start[q] = k.x[i]
	}
	k.press(p.f0)
	copy(p.f1, p.f0)
	k.length = k.h
	k.depart(t.Bodies)
	for pass := range t.Iter + 1 {
		if pass > 0 {
			k.foresee()
			k.present.restore(k)
			k.calls.touch(k, 0, 1)
		}
		mul(p.end, t.Phi, p.start)
		mulAdd(p.end, t.Omega0, p.f0)
		if pass > 0 {
			axpy(p.f1, -1, p.f0)
			mulAdd(p.end, t.Omega1, p.f1)
		}
		for s := range t.Sub {
			k.calls.micro(k, s)
			if k.failed() {
				return
			}
		}
	}
	k.length = k.h
	k.arrive(t.Bodies, 0)
	k.land()
	k.relocate(k.h)
}

// span sets what the sources are at the start of the period. Commands are held.
//
//go:nosplit
func (k *Kernel) span() {
	p := &k.parts
	clear(p.dv)
	for j := range k.t.Signals[:k.t.FirstAffine] {
		if i := k.input[j]; i >= 0 {
			p.v[j] = k.command(i, k.h/2)
		} else {
			p.v[j] = sourceAt(&k.t.Signals[j].Source, k.grid(), k.grid()+k.gap)
		}
	}
}

// foresee lets the sources go straight to their value at the end of the period, on the
// part of them that holds in its middle, and sets f1 to the forces at the end that a
// pass has found.
//
//go:nosplit
func (k *Kernel) foresee() {
	p := &k.parts
	for j := range k.t.Signals[:k.t.FirstAffine] {
		if k.input[j] < 0 {
			p.dv[j] = sourceAt(&k.t.Signals[j].Source, k.grid()+k.h, k.grid()+k.h/2) - p.v[j]
		}
	}
	k.locate(k.x)
	k.weigh(1, coupling)
	k.press(p.f1)
}

// micro takes the active part over micro step s, and at its end puts slips to zero that
// have changed their sign. The pulses that it counts are taken back with a further pass.
//
//go:nosplit
func (k *Kernel) micro(s int) {
	t := k.t.Partition
	d := 1 / float64(t.Sub)
	theta := float64(s) * d
	if s > 0 {
		k.calls.touch(k, theta, 1)
	}
	k.length = d * k.h
	k.depart(t.Wheels)
	k.march(theta, d)
	k.arrive(t.Wheels, theta*k.h)
	copy(k.before, k.mode)
	k.slips.mul(k.slip, k.x)
	passed := false
	for i, slip := range k.slip {
		passed = passed || k.direction(i)*slip < 0
	}
	if !passed {
		return
	}
	k.weigh(theta+d, 1)
	for i, slip := range k.slip {
		if k.direction(i)*slip < 0 {
			k.set(i, Stuck)
		}
	}
	k.land()
	k.calls.resolve(k)
	k.land()
	if k.count((theta + d) * k.h) {
		k.events++
	}
}

// march is a step of Runge and Kutta of order four from theta over the part d of the
// period; w and tau are those of its start.
//
//go:nosplit
func (k *Kernel) march(theta, d float64) {
	p, active := &k.parts, k.t.Partition.Active
	for q, i := range active {
		p.x0[q], p.sum[q] = k.x[i], k.x[i]
	}
	k.ahead(theta, d, 1./6, 1./2)
	k.weigh(theta+d/2, 1)
	k.ahead(theta, d, 1./3, 1./2)
	k.weigh(theta+d/2, 1)
	k.ahead(theta, d, 1./3, 1)
	k.weigh(theta+d, 1)
	k.ahead(theta, d, 1./6, 1)
	for q, i := range active {
		k.x[i] = p.sum[q]
	}
}

// ahead adds the rates of the active part to what march sums up, by weight, and puts the
// state where they lead after the part place of its step.
//
//go:nosplit
func (k *Kernel) ahead(theta, d, weight, place float64) {
	p := &k.parts
	p.active.rates(p.rate, k.x, k.w[:k.t.M], k.tau)
	axpy(p.sum, weight*d*k.h, p.rate)
	for q, i := range k.t.Partition.Active {
		k.x[i] = p.x0[q] + place*d*k.h*p.rate[q]
	}
	k.between(theta + place*d)
}

// between puts the latent part on the straight line from its start to its end.
//
//go:nosplit
func (k *Kernel) between(theta float64) {
	p := &k.parts
	for q, i := range k.t.Partition.Latent {
		k.x[i] = p.start[q] + theta*(p.end[q]-p.start[q])
	}
}

// touch settles at theta which friction elements are free, stick and slip, as the kernel
// does where a piece begins; w and tau are then those of theta.
//
//go:nosplit
func (k *Kernel) touch(theta float64, rounds int) {
	for _, g := range k.t.Partition.Sided {
		k.side[g] = 1
		if k.run(k.guard(g), k.x, k.w[:k.t.M]) < 0 {
			k.side[g] = -1
		}
	}
	k.weigh(theta, rounds)
	copy(k.w0, k.w)
	clear(k.w1)
	clear(k.w2)
	for i := range k.mode {
		k.capacity(i)
	}
	k.length = k.h / float64(k.t.Partition.Sub)
	k.calls.begin(k, theta*k.h)
}

// weigh sets signals, capacities and torques at theta, for state x. Laws that read
// torques, and torques that follow laws, settle in at most so many rounds.
//
//go:nosplit
func (k *Kernel) weigh(theta float64, rounds int) {
	p := &k.parts
	for j := range k.t.FirstAffine {
		k.w[j] = p.v[j] + theta*p.dv[j]
	}
	k.bends(k.w)
	if !k.t.ReadsTau {
		rounds = 1
	}
	for range rounds {
		if k.t.ReadsTau {
			k.exert()
			k.torques(k.x)
		}
		k.laws(k.w[:k.t.M], k.x)
		k.exert()
		k.torques(k.x)
		off, size := 0.0, 0.0
		for i, tau := range k.tau {
			off, size = max(off, math.Abs(tau-p.settled[i])), max(size, math.Abs(tau))
			p.settled[i] = tau
		}
		if off <= torqueNoise*size {
			return
		}
	}
}

// press sets f to the external forces on the latent part under w and tau: of springs and
// dampers with regions what Phi does not hold.
//
//go:nosplit
func (k *Kernel) press(f []float64) {
	p := &k.parts
	copy(p.force, k.w[:k.t.M])
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		a := k.t.Signals[j].Affine
		z := k.level(a.Switch, k.x)
		p.force[j] += a.Slope[k.region[a.Switch]]*z - k.t.Partition.Inner[j-k.t.FirstAffine]*(z-k.t.Switches[a.Switch].Const)
	}
	p.latent.rates(f, k.x, p.force, k.tau)
}
