package kernel

import "math"

// resolve settles the modes of all elements at rest, given the state, the inputs
// and the capacities of this instant: starting from all of them locked, the one
// most overloaded breaks away, until what is locked holds (004 eq. 18, steps 3
// to 5). One that breaks and would be carried back by the others locks again.
// force names an element that the caller saw reach its capacity, or -1.
func (k *Kernel) resolve(force int) {
	clear(k.broken)
	clear(k.returned)
	clear(k.split)
	for range 2*k.t.Mc + 1 {
		k.load()
		i := k.overloaded(force)
		force = -1
		if i >= 0 && k.t.Modes[k.kappa].Redundant {
			i = k.share(i)
		}
		if i >= 0 {
			k.breakAway(i)
			continue
		}
		if i = k.wrongWay(); i < 0 {
			return
		}
		k.set(i, Stuck)
		k.broken[i], k.returned[i], k.fresh[i] = false, true, false
	}
}

// load sets the torque of the slipping elements in w and tau of the stuck ones.
func (k *Kernel) load() {
	for i := range k.mode {
		k.w[k.t.M+i] = k.direction(i) * k.capNow[i]
	}
	k.torques(k.x)
}

// direction is the sign of the torque of a slipping element, 0 for the others.
func (k *Kernel) direction(i int) float64 {
	if k.mode[i] == Forward || k.mode[i] == Backward {
		return float64(k.mode[i])
	}
	return 0
}

// slide sets the part of w that belongs to element i over the piece.
func (k *Kernel) slide(i int) {
	d, at := k.direction(i), k.t.M+i
	k.w0[at], k.w1[at], k.w2[at] = d*k.capC[3*i], d*k.capC[3*i+1], d*k.capC[3*i+2]
}

// overloaded is the stuck element whose torque exceeds its static capacity by
// the largest ratio, or -1.
func (k *Kernel) overloaded(force int) int {
	worst, ratio := -1, 1+overload
	for i, tau := range k.tau {
		if k.mode[i] != Stuck {
			continue
		}
		static := k.t.Friction[i].Peak * k.capNow[i]
		r := math.Abs(tau) / static
		if tau == 0 {
			r = 0
		}
		if i == force && r >= 1-overload {
			r = max(r, 1+2*overload)
		}
		if r > ratio {
			worst, ratio = i, r
		}
	}
	return worst
}

// breakAway lets stuck element i slip in the direction of its torque.
func (k *Kernel) breakAway(i int) {
	to := Forward
	if k.tau[i] < 0 {
		to = Backward
	}
	k.set(i, to)
	k.broken[i], k.fresh[i] = true, true
}

// wrongWay is an element that broke away in this instant although the others
// carry its slip the other way, or -1. Each may return once.
func (k *Kernel) wrongWay() int {
	m := &k.t.Modes[k.kappa]
	mul(k.xd, m.A, k.x)
	mulAdd(k.xd, m.B, k.w)
	for i, b := range k.broken {
		if !b || k.returned[i] {
			continue
		}
		a := k.direction(i) * dotRow(k.t.W, i, k.xd)
		if a < -1e-9*k.capNow[i]*math.Abs(k.t.Gram[i*k.t.Mc+i]) {
			return i
		}
	}
	return -1
}

// Bounds of the search for a split of redundant lock torques.
const shareSweeps = 200

// shares are the parts of the capacities that are tried, so that the split found
// keeps a reserve where there is one.
var shares = [4]float64{0.5, 0.8, 0.95, 1}

// share looks for lock torques within the capacities that hold all stuck
// elements, where there are more locks than directions and the split is not
// unique: projected Gauss-Seidel on G·tau = -a, |tau| <= K. If there is one,
// nothing breaks: it shifts the split and returns -1. Otherwise it returns the
// element to break first.
func (k *Kernel) share(worst int) int {
	open, mc := &k.t.Modes[0], k.t.Mc
	mul(k.xd, open.A, k.x)
	mulAdd(k.xd, open.B, k.w) // entries of w of stuck elements are 0
	mul(k.rate, k.t.W, k.xd)
	size := 0.0
	for i, r := range k.rate {
		k.slip1[i] = k.tau[i] // start from the split of smallest norm
		if k.mode[i] == Stuck {
			size = max(size, math.Abs(r))
		}
	}
	for _, part := range shares {
		for range shareSweeps {
			if k.sweep(part) <= 1e-10*size {
				for i := range mc {
					if k.mode[i] == Stuck {
						k.split[i] += k.slip1[i] - k.tau[i]
					}
				}
				k.torques(k.x)
				return -1
			}
		}
	}
	most := 0.0
	for i := range mc {
		if k.mode[i] != Stuck {
			continue
		}
		a := math.Abs(k.residual(i)) / math.Abs(k.t.Gram[i*mc+i])
		if a > most {
			worst, most = i, a
			k.tau[i] = k.slip1[i]
		}
	}
	return worst
}

// sweep is one pass of projected Gauss-Seidel over the stuck elements with the
// given part of their capacities. It returns the largest acceleration left
// before the pass, rad/s².
func (k *Kernel) sweep(part float64) float64 {
	mc, left := k.t.Mc, 0.0
	for i := range mc {
		if k.mode[i] != Stuck {
			continue
		}
		limit := part * k.t.Friction[i].Peak * k.capNow[i]
		a := k.residual(i)
		k.slip1[i] = min(max(k.slip1[i]-a/k.t.Gram[i*mc+i], -limit), limit)
	}
	for i := range mc {
		if k.mode[i] == Stuck {
			left = max(left, math.Abs(k.residual(i)))
		}
	}
	return left
}

// residual is the slip acceleration of element i under the torques being tried.
func (k *Kernel) residual(i int) float64 {
	mc, a := k.t.Mc, k.rate[i]
	for j := range mc {
		if k.mode[j] == Stuck {
			a += k.t.Gram[i*mc+j] * k.slip1[j]
		}
	}
	return a
}

// land puts the state on the constraint of the lock set: the slip left by
// rounding is taken out, momentum kept.
func (k *Kernel) land() {
	if k.kappa == 0 {
		return
	}
	mul(k.x1, k.t.Modes[k.kappa].P, k.x)
	copy(k.x, k.x1)
}
