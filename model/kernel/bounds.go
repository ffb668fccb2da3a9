package kernel

import "lockstep/model"

// Bounds are what the loops of a tick are bounded by.
type Bounds struct {
	Pieces   int // of a tick that owes the largest lag
	Events   int // a period looks for; in the rest of it those less than a stride apart are one
	Strides  int // of a period
	Corners  int // of sources and delayed commands in a tick
	Coupling int // iterations that bring the laws of a piece in line with the motion
	Pivots   int // of the friction elements at rest, per event
}

// Bounds returns them.
func (t *Tables) Bounds() Bounds {
	b := Bounds{Pieces: t.pieces(), Events: t.Looks, Strides: t.strides(), Corners: t.Corners}
	if t.FirstLaw < t.M {
		b.Coupling = coupling
	}
	for _, g := range t.Blocks() {
		b.Pivots += balanceTries * len(g.Of) * (len(g.Of) + 1)
	}
	return b
}

// Workspace is the memory, bytes, in which slopes are added and a lock set is
// factorised in place; of a plant stepped sparse that of its matrices and blocks.
func (t *Tables) Workspace() int {
	if t.Net != nil {
		return t.Net.bytes()
	}
	n, mc, mw := t.N, t.Mc, t.M+t.Mc
	bent := 0
	if len(t.Switches) > 0 {
		bent = n*n + mc*n
	}
	return 8 * (2*n*n + n*mw + mc*(n+mw) + mc*mc + mc*(2*n+mw) + bent)
}

// OpenAt is A, n×n, of the plant without locks and laws, with the slopes of the
// regions in which state x lies.
func (t *Tables) OpenAt(x []float64) []float64 {
	if t.Net != nil {
		return t.Net.openAt(t, x)
	}
	a := append([]float64(nil), t.Open.A...)
	for s := range t.Switches {
		sw := &t.Switches[s]
		t.bend(a, t.Open.B, t.N, sw, sw.regionOf(sw.Const+dotRow(sw.Row, 0, x)))
	}
	return a
}

// Fastest is the largest frequency that a piece must follow, rad/s: over all
// lock sets where they are precomputed, and twice the steepness of the laws.
func (t *Tables) Fastest() float64 { return max(t.Radius, 2*t.Steepness) }

// MaxSplit is the largest number of pieces that Prepare accepts for a period.
const MaxSplit = maxSplit

// SourceAt is the value of s at time t, s; where it jumps, after the jump.
func SourceAt(s *model.Source, t float64) float64 { return sourceAt(s, t, t) }
