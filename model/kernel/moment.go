package kernel

// moment is what the motion from a plant time on depends on.
type moment struct {
	x, split, side []float64
	mode           []int8
	fresh          []bool
	region         []int
	pulse          []pulse
	kappa          []uint64
	trend          []float64
	nextSource     float64
	stalled, fault int
	logged         int

	eta                 float64 // of the step, not of the way ahead
	events, transitions uint64
}

//go:nosplit
func (m *moment) take(k *Kernel) {
	copy(m.x, k.x)
	copy(m.split, k.split)
	copy(m.side, k.side)
	copy(m.mode, k.mode)
	copy(m.fresh, k.fresh)
	copy(m.region, k.region)
	copy(m.pulse, k.pulse)
	copy(m.kappa, k.kappa)
	copy(m.trend, k.trend)
	m.nextSource, m.stalled, m.fault, m.logged = k.nextSource, k.stalled, k.fault, k.logged
	m.eta, m.events, m.transitions = k.eta, k.events, k.transitions
}

//go:nosplit
func (m *moment) restore(k *Kernel) {
	copy(k.x, m.x)
	copy(k.split, m.split)
	copy(k.side, m.side)
	copy(k.mode, m.mode)
	copy(k.fresh, m.fresh)
	copy(k.region, m.region)
	copy(k.pulse, m.pulse)
	k.combine()
	copy(k.kappa, m.kappa)
	copy(k.trend, m.trend)
	k.nextSource, k.stalled, k.fault = m.nextSource, m.stalled, m.fault
	k.eta, k.events, k.transitions = m.eta, m.events, m.transitions
	k.logged = m.logged
}
