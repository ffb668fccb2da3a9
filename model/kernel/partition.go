package kernel

import (
	"errors"
	"fmt"

	"lockstep/model"
)

// Partition is a plant in two parts (Gyebroszki, Efficient numerical time-domain
// simulation of rail vehicles with coupled simulator systems, ch. 6 and 7). The active
// part are the states that laws and friction alone move, such as the speeds of wheels,
// with what integrates them; the latent part is the linear rest, on which laws, friction
// and the active part act as external forces.
type Partition struct {
	Sub, Iter      int       // N_sub micro steps, N_iter additional iterations
	Active, Latent []int     // states
	Phi            []float64 // latent×latent, over the period
	Omega0         []float64 // effect of a force that is constant over it
	Omega1         []float64 // of one that grows from 0 to 1 over it
	Inner          []float64 // affine signals: the slope that is part of Phi, their largest
	Sided          []int     // guards that a law asks for its side
	Wheels, Bodies []int     // pulses of the active part and of the latent one
	Decay          float64   // how fast laws and dampers let the active part decay, 1/s
}

// Bears is how many times a micro step of Runge and Kutta may be as long as the time
// constant of a decay.
const Bears = 2.785

// split fills Partition; the modes are projected.
func (t *Tables) split(sys *model.System) error {
	p := &Partition{Sub: sys.Partition.Sub, Iter: sys.Partition.Iter}
	active := t.activeStates()
	for i, is := range active {
		if is {
			p.Active = append(p.Active, i)
		} else {
			p.Latent = append(p.Latent, i)
		}
	}
	err := t.separable(p)
	if err == nil {
		err = p.discretise(t, sys)
	}
	if err == nil {
		p.Decay, err = t.decay(p.Active)
	}
	if err != nil {
		return &PlaceError{sys.Partition.Place, t.failed(fmt.Errorf("partition: %w", err))}
	}
	for g := range t.Guards {
		for _, law := range t.Signals[t.FirstLaw:] {
			if asks(law.Law, g) {
				p.Sided = append(p.Sided, g)
				break
			}
		}
	}
	for i := range t.Pulses {
		if active[t.Pulses[i].State] {
			p.Wheels = append(p.Wheels, i)
		} else {
			p.Bodies = append(p.Bodies, i)
		}
	}
	t.Partition = p
	return nil
}

// separable says why a plant cannot be stepped in two parts.
func (t *Tables) separable(p *Partition) error {
	switch {
	case t.Form == Held:
		return fmt.Errorf("form %q is another way to step; take form %q", Held, Projected)
	case len(t.Gapped) > 0:
		return fmt.Errorf("element %q hits its stop between two micro steps, and no event is located; take the section out", t.Frictions[t.Gapped[0]])
	case len(p.Active) == 0:
		return errors.New("no state is moved by laws and friction alone: springs, dampers or gears couple them all; take the section out")
	case len(p.Latent) == 0:
		return errors.New("laws and friction alone move every state: there is no linear part; take the section out")
	}
	return nil
}

// activeStates marks the states that a law or a friction element drives and nothing
// linear, and then, time and again, those that only integrate such.
func (t *Tables) activeStates() []bool {
	active := make([]bool, t.N)
	for i := range active {
		active[i] = t.driven(i) && t.alone(i, nil)
	}
	for again := true; again; {
		again = false
		for i := range active {
			if !active[i] && t.integrates(i, active) && t.alone(i, active) {
				active[i], again = true, true
			}
		}
	}
	return active
}

// driven reports whether a law or a friction element acts on state i.
func (t *Tables) driven(i int) bool {
	mw := t.M + t.Mc
	return !zero(t.Open.B[i*mw+t.FirstLaw : (i+1)*mw])
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

// alone reports whether nothing linear but itself and active states acts on state i.
func (t *Tables) alone(i int, active []bool) bool {
	for j, a := range t.Open.A[i*t.N : (i+1)*t.N] {
		if a != 0 && j != i && (active == nil || !active[j]) {
			return false
		}
	}
	at := i * (t.M + t.Mc)
	return zero(t.Open.B[at+t.FirstAffine : at+t.FirstLaw])
}

// asks reports whether a law depends on the side of guard g.
func asks(law *model.Program, g int) bool {
	for _, op := range law.Ops {
		if (op.Code == model.Side || op.Code == model.If) && op.Index == g {
			return true
		}
	}
	return false
}

// discretise fills Phi, Omega0 and Omega1 by the exponential of the augmented matrix.
// Springs and dampers with regions are in it with their largest slopes: a softer inner
// one lets an external force gain energy.
func (p *Partition) discretise(t *Tables, sys *model.System) error {
	l := len(p.Latent)
	p.Inner = make([]float64, t.FirstLaw-t.FirstAffine)
	for s := range t.Switches {
		sw := &t.Switches[s]
		for _, j := range sw.Signals {
			p.Inner[j-t.FirstAffine] = t.Signals[j].Affine.Slope[t.steepestRegion(sw)]
		}
	}
	bent, stored := t.bent(t.Open.A, t.steepest()), t.stored(sys.E)
	a, e := make([]float64, l*l), make([]float64, l)
	for q, i := range p.Latent {
		e[q] = stored[i]
		for c, j := range p.Latent {
			a[q*l+c] = bent[i*t.N+j]
		}
	}
	full, err := exponential(a, e, l, t.Delta)
	p.Phi, p.Omega0, p.Omega1 = full[0], scale(full[1], t.Delta), scale(full[2], t.Delta)
	return err
}

// forces are the rows of the plant by part: how x, v and tau act on it.
type forces struct{ x, v, tau Sparse }

// parts is the room for a step in two parts.
type parts struct {
	active, latent forces

	v, dv      []float64 // m, sources at the start of the period and their change over it
	start, end []float64 // latent states at both ends
	f0, f1     []float64 // external forces on the latent part at both ends
	force      []float64 // active signals, slopes and all: m
	x0, rate   []float64 // active states at the start of a micro step, their rates
	sum        []float64 // what Runge and Kutta add up
	settled    []float64 // mc, friction torques of the round before
}

// newParts makes the room; nothing without a Partition.
func newParts(t *Tables) (p parts) {
	if t.Partition == nil {
		return p
	}
	vec := func(n int) []float64 { return make([]float64, n) }
	a, l := t.Partition.Active, t.Partition.Latent
	p = parts{
		v: vec(t.M), dv: vec(t.M), start: vec(len(l)), end: vec(len(l)), f0: vec(len(l)), f1: vec(len(l)),
		force: vec(t.M), x0: vec(len(a)), rate: vec(len(a)), sum: vec(len(a)), settled: vec(t.Mc),
	}
	everywhere := make([]bool, t.N)
	for i := range everywhere {
		everywhere[i] = true
	}
	byActive := make([]bool, t.N)
	for _, i := range a {
		byActive[i] = true
	}
	p.active, p.latent = t.forcesOn(a, everywhere), t.forcesOn(l, byActive)
	return p
}

// forcesOn takes the rows of some states, of x only the columns marked.
func (t *Tables) forcesOn(states []int, marked []bool) forces {
	var x, v, tau []float64
	for _, i := range states {
		for j, a := range t.Open.A[i*t.N : (i+1)*t.N] {
			if !marked[j] {
				a = 0
			}
			x = append(x, a)
		}
		mw := t.M + t.Mc
		v = append(v, t.Open.B[i*mw:i*mw+t.M]...)
		tau = append(tau, t.Open.B[i*mw+t.M:(i+1)*mw]...)
	}
	return forces{sparseOf(x, len(states), t.N), sparseOf(v, len(states), t.M), sparseOf(tau, len(states), t.Mc)}
}

// rates sets dst to what acts on a part.
//
//go:nosplit
func (f *forces) rates(dst, x, v, tau []float64) {
	f.x.mul(dst, x)
	f.v.mulAdd(dst, v)
	f.tau.mulAdd(dst, tau)
}
