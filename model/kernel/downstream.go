package kernel

import (
	"math"
	"slices"

	"lockstep/model"
)

// A downstream law, such as the loss of a clutch that warms its oil, acts on nothing that another law, an
// event or a friction element reads. The law iteration leaves it out; it follows once from the motion to
// which the iteration has converged.

// splitLaws sets Iterated, Downstream and LoopReadsTau. In a plant that is stepped sparse all laws are
// iterated, since each iteration adds a correction to the motion.
func (t *Tables) splitLaws(sys *model.System) {
	for j := t.M - 1; j >= t.FirstLaw; j-- {
		if t.Sparse == nil && t.isDownstream(sys, j) {
			t.Downstream = append(t.Downstream, j)
		} else {
			t.Iterated = append(t.Iterated, j)
		}
	}
	slices.Reverse(t.Downstream)
	slices.Reverse(t.Iterated)

	readsTau := func(p *model.Program) bool {
		return slices.ContainsFunc(p.Args, func(f model.Functional) bool { return f.Tau != nil })
	}
	for _, j := range t.Iterated {
		t.LoopReadsTau = t.LoopReadsTau || readsTau(sys.Signals[j].Law) || readsLater(sys.Signals[j].Law, j)
	}
	for g := range t.Indicators {
		t.LoopReadsTau = t.LoopReadsTau || readsTau(&t.Indicators[g])
	}
	for i := range t.Samples {
		t.LoopReadsTau = t.LoopReadsTau || readsTau(&sys.Samples[i].Value)
	}
	t.Instant = t.Sparse == nil && t.LoopReadsTau && len(t.Pressed) > 0
}

// readsLater reports whether law j reads itself or a law after it: laws that depend on each other converge as
// those that read torques do.
func readsLater(p *model.Program, j int) bool {
	return slices.ContainsFunc(p.Args, func(f model.Functional) bool {
		return slices.ContainsFunc(f.Signal, func(i int) bool { return i >= j })
	})
}

// isDownstream reports whether law j is downstream; the laws after it must be in Downstream already where
// they are.
func (t *Tables) isDownstream(sys *model.System, j int) bool {
	capacity := func(f model.Friction) bool { return f.Signal == j }
	if slices.ContainsFunc(sys.Frictions, capacity) {
		return false
	}
	moved := t.statesMoved(sys, j)
	for i, m := range moved {
		if m && t.actsBack(sys, i) {
			return false
		}
	}
	reads := func(p *model.Program) bool {
		return slices.ContainsFunc(p.Args, func(f model.Functional) bool {
			return slices.Contains(f.Signal, j) || readsAny(f.Row, moved)
		})
	}
	for g := range t.Indicators {
		if reads(&t.Indicators[g]) {
			return false
		}
	}
	for l := t.FirstLaw; l < t.M; l++ {
		for _, f := range sys.Signals[l].Law.Args {
			if readsAny(f.Row, moved) || slices.Contains(f.Signal, j) && !slices.Contains(t.Downstream, l) {
				return false
			}
		}
	}
	return true
}

// statesMoved returns the states that signal j moves, n, directly or through other states.
func (t *Tables) statesMoved(sys *model.System, j int) []bool {
	moved := make([]bool, t.N)
	for i := range moved {
		moved[i] = sys.B[i*t.M+j] != 0
	}
	for changed := true; changed; {
		changed = false
		for i := range moved {
			if !moved[i] && readsAny(sys.A[i*t.N:(i+1)*t.N], moved) {
				moved[i], changed = true, true
			}
		}
	}
	return moved
}

// actsBack reports whether a friction element or a switch reads state i.
func (t *Tables) actsBack(sys *model.System, i int) bool {
	for f := range sys.Frictions {
		if gap := sys.Frictions[f].Gap; sys.W[f*t.N+i] != 0 || gap != nil && gap.State == i {
			return true
		}
	}
	return slices.ContainsFunc(sys.Switches, func(s model.Switch) bool { return s.Row[i] != 0 })
}

// readsAny reports whether a row, which may be nil, has an entry other than 0 in one of the columns.
func readsAny(row []float64, columns []bool) bool {
	for i, v := range row {
		if v != 0 && columns[i] {
			return true
		}
	}
	return false
}

// evaluateDownstream sets the downstream laws of v for state x from the signals and the capacities of the same
// instant: v, w and capNow.
//
//go:nosplit
func (k *Kernel) evaluateDownstream(v, x []float64) {
	for _, j := range k.t.Downstream {
		k.w[j] = 0 // acts on no torque, but an old NaN would
	}
	if k.t.ReadsTau {
		k.calls.setTorques(k, x)
	}
	for _, j := range k.t.Downstream {
		v[j] = k.evaluateProgram(j-k.t.FirstLaw, x, v)
	}
}

// solveDownstream sets the downstream laws over the substep from the expanded motion. updateLaws has left the
// state and the signals of its end.
//
//go:nosplit
func (k *Kernel) solveDownstream() {
	k.updateDownstream(1, 1)
	k.horner(k.x1, 0.5)
	k.setInstant(0.5)
	k.updateDownstream(0, 0.5)
	for _, j := range k.t.Downstream {
		q := j - k.t.FirstLaw
		k.w1[j], k.w2[j] = parabola(k.w0[j], k.lawValues[2*q], k.lawValues[2*q+1])
	}
}

// updateDownstream sets the downstream laws of point p of solveLaws, at theta of the substep, for the state x1
// and the signals w. With onValues it first sets the sides to those at this point.
//
//go:nosplit
func (k *Kernel) updateDownstream(p int, theta float64) {
	if k.onValues {
		k.setTorquesRead(k.x1, theta)
		k.calls.updateSides(k, k.x1, k.w[:k.t.M])
	}
	k.calls.evaluateDownstream(k, k.w[:k.t.M], k.x1)
	for _, j := range k.t.Downstream {
		q := j - k.t.FirstLaw
		k.lawMax[q] = max(k.lawMax[q], math.Abs(k.w[j]))
		k.lawValues[2*q+p] = k.w[j]
	}
}
