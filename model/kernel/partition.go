package kernel

import (
	"fmt"
	"slices"

	"lockstep/model"
)

// Partition is a plant in two parts (Gyebroszki, Efficient numerical time-domain simulation of rail
// vehicles with coupled simulator systems, ch. 6 and 7). The active part is the states that only
// laws and friction drive, such as wheel speeds, and the states that integrate them. The latent
// part is the linear rest, on which laws, friction and the active part act as external forces.
type Partition struct {
	Sub, Iter      int       // N_sub micro steps, N_iter additional iterations
	Active, Latent []int     // indices of the states
	Phi            []float64 // latent×latent, over the period
	Omega0         []float64 // latent×latent, effect of a force that is constant over the period
	Omega1         []float64 // latent×latent, effect of a force that grows from 0 to 1 over the period
	InnerSlope     []float64 // affine signals: the slope in Phi, their largest
	Wheels, Bodies []int     // pulses of the active part and of the latent part
	Decay          float64   // how fast laws and dampers make the active part decay, 1/s
}

// StabilityLimit is the longest stable micro step of Runge and Kutta's method of order four, in
// time constants of the decay.
const StabilityLimit = 2.785

// buildPartition sets Partition; the modes must be projected.
func (t *Tables) buildPartition(sys *model.System) {
	defer func() {
		r := recover()
		if why, ok := r.(refusal); ok {
			r = refusal{sys.Partition.Place, fmt.Errorf("partition: %w", why.err)}
		}
		if r != nil {
			panic(r)
		}
	}()

	p := &Partition{Sub: sys.Partition.Sub, Iter: sys.Partition.Iter}
	active := t.activeStates()
	for i, is := range active {
		if is {
			p.Active = append(p.Active, i)
		} else {
			p.Latent = append(p.Latent, i)
		}
	}

	t.checkSeparable(p)
	p.discretise(t, sys)
	p.Decay = t.decay(p.Active)
	for i := range t.Pulses {
		if active[t.Pulses[i].State] {
			p.Wheels = append(p.Wheels, i)
		} else {
			p.Bodies = append(p.Bodies, i)
		}
	}

	t.Partition = p
}

// checkSeparable refuses a plant that cannot be stepped in two parts.
func (t *Tables) checkSeparable(p *Partition) {
	switch {
	case t.Form == Held:
		refuse("form %q cannot step a plant in two parts; use form %q", Held, Projected)
	case len(t.Clearances) > 0:
		refuse("element %q hits its stop between two micro steps, and no event is located; "+
			"remove the section", t.Frictions[t.Clearances[0]])
	case len(p.Active) == 0:
		refuse("no state is driven by laws and friction alone: " +
			"springs, dampers or gears couple them all; remove the section")
	case len(p.Latent) == 0:
		refuse("laws and friction alone drive every state: there is no linear part; remove the section")
	}
}

// activeStates marks the states that laws or friction elements drive and no linear term does. It
// then repeatedly marks the states that only integrate marked ones.
func (t *Tables) activeStates() []bool {
	active, mw := make([]bool, t.N), t.M+t.Mc
	for i := range active {
		driven := !isZero(t.Open.B[i*mw+t.FirstLaw : (i+1)*mw])
		active[i] = driven && t.actedOnBy(i, make([]bool, t.N))
	}

	for changed := true; changed; {
		changed = false
		for i := range active {
			if !active[i] && t.integrates(i, active) && t.actedOnBy(i, active) {
				active[i], changed = true, true
			}
		}
	}

	return active
}

// integrates reports whether an active state acts on state i.
func (t *Tables) integrates(i int, active []bool) bool {
	for j, is := range active {
		if is && t.Open.A[i*t.N+j] != 0 {
			return true
		}
	}

	return false
}

// actedOnBy reports whether only active states and state i itself act on state i linearly.
func (t *Tables) actedOnBy(i int, active []bool) bool {
	for j, a := range t.Open.A[i*t.N : (i+1)*t.N] {
		if a != 0 && j != i && !active[j] {
			return false
		}
	}

	at := i * (t.M + t.Mc)
	return isZero(t.Open.B[at+t.FirstAffine : at+t.FirstLaw])
}

// discretise sets Phi, Omega0 and Omega1 by the exponential of the augmented matrix. Springs and
// dampers with regions enter with their largest slopes: with a softer slope inside, an external
// force would gain energy. A contact with gates stays outside: no single slope is right in its regions.
func (p *Partition) discretise(t *Tables, sys *model.System) {
	l := len(p.Latent)
	p.InnerSlope = make([]float64, t.FirstLaw-t.FirstAffine)
	bent, stored := slices.Clone(t.Open.A), t.storedEnergy(sys.E)
	for j := t.FirstAffine; j < t.FirstLaw; j++ {
		if len(t.Signals[j].Affine.Gates) > 0 {
			continue
		}
		p.InnerSlope[j-t.FirstAffine] = t.steepestSlope(j)
		t.addSlope(bent, t.Open.B, t.N, j, t.steepestSlope(j))
	}

	a, e := make([]float64, l*l), make([]float64, l)
	for q, i := range p.Latent {
		e[q] = stored[i]
		for c, j := range p.Latent {
			a[q*l+c] = bent[i*t.N+j]
		}
	}

	full := exponential(a, e, l, t.Delta)
	p.Phi, p.Omega0, p.Omega1 = full[0], scale(full[1], t.Delta), scale(full[2], t.Delta)
}

// forces holds the rows of one part of the plant: how x, v and tau act on it.
type forces struct{ x, v, tau SparseMatrix }

// partitionWork is the working memory of a step in two parts.
type partitionWork struct {
	active, latent forces

	v, dv      []float64 // m, sources at the start of the period, and their change over it
	start, end []float64 // latent states at both ends of the period
	f0, f1     []float64 // external forces on the latent part at both ends of the period
	force      []float64 // m, signals with the slope parts of affine ones
	x0, rate   []float64 // active states at the start of a micro step, and their rates
	sum        []float64 // weighted sum of the Runge-Kutta stages
	lastTau    []float64 // mc, friction torques of the previous iteration, N·m
}

// newPartitionWork returns the working memory; zero without a Partition.
func newPartitionWork(t *Tables) (p partitionWork) {
	if t.Partition == nil {
		return p
	}
	vec := func(n int) []float64 { return make([]float64, n) }
	a, l := t.Partition.Active, t.Partition.Latent
	p = partitionWork{
		v: vec(t.M), dv: vec(t.M), start: vec(len(l)), end: vec(len(l)), f0: vec(len(l)), f1: vec(len(l)),
		force: vec(t.M), x0: vec(len(a)), rate: vec(len(a)), sum: vec(len(a)), lastTau: vec(t.Mc),
	}
	p.active, p.latent = t.forcesOn(a, nil), t.forcesOn(l, l)
	return p
}

// forcesOn returns the rows of some states; the columns of x in without are 0.
func (t *Tables) forcesOn(states, without []int) (f forces) {
	mw := t.M + t.Mc
	for _, i := range states {
		x := slices.Clone(t.Open.A[i*t.N : (i+1)*t.N])
		for _, j := range without {
			x[j] = 0
		}
		f.x.addRow(x)
		f.v.addRow(t.Open.B[i*mw : i*mw+t.M])
		f.tau.addRow(t.Open.B[i*mw+t.M : (i+1)*mw])
	}

	return f
}

// addUp sets dst to the rates of a part.
//
//go:nosplit
func (f *forces) addUp(dst, x, v, tau []float64) {
	f.x.mul(dst, x)
	f.v.mulAdd(dst, v)
	f.tau.mulAdd(dst, tau)
}
