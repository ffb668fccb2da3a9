package kernel_test

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"

	"lockstep/model"
)

const (
	refTol  = 1e-11 // relative tolerance of a step
	refRest = 1e-9  // largest slip that counts as zero, rad/s
	refEps  = 1e-10 // slip against the direction of the mode that is an event, rad/s
)

// refEvent is a transition of a friction element.
type refEvent struct {
	t        float64
	friction int
	from, to int8
}

// reference solves a System from event to event with Dormand-Prince 5(4). It restarts at breakpoints
// of sources and at changes of commands, locates events by bisection of the step length, and decides
// friction by enumeration or Lemke's method.
type reference struct {
	*refPlant
	t, h    float64
	x, size []float64
	events  []refEvent
	steps   int
	near    bool    // a locked element is within knifeShare of its capacity
	knife   float64 // first instant at which both decisions are right, s; +Inf: none
	corners []float64
	k       [7][]float64
	y       []float64
	start   bool
}

func newReference(sys *model.System, driven []bool, end float64) *reference {
	r := &reference{refPlant: newRefPlant(sys, driven), x: slices.Clone(sys.X0), knife: math.Inf(1), start: true}
	for j, s := range sys.Signals {
		if r.input[j] < 0 && s.Law == nil {
			r.corners = append(r.corners, refCorners(s.Source, end)...)
		}
	}
	slices.Sort(r.corners)
	for i := range r.k {
		r.k[i] = make([]float64, r.n)
	}
	r.y, r.size = make([]float64, r.n), make([]float64, r.n)
	return r
}

// begin sets the modes at time 0.
func (r *reference) begin() {
	r.start = false
	for i := range r.mode {
		r.mode[i] = free
	}
	for g := range r.side {
		r.side[g] = 1
	}
	r.signals(r.t, r.x)
	for range len(r.side) + 1 { // a side may follow from a law that depends on another side
		for g := range r.side {
			r.side[g] = r.sideAt(g, r.x)
		}
		r.signals(r.t, r.x)
	}
}

// advance solves up to time end, s, with commands u.
func (r *reference) advance(t rapid.TB, end float64, u []float64) {
	t.Helper()
	copy(r.u, u)
	for r.t < end {
		to := end
		for _, c := range r.corners {
			if c > r.t+1e-13 {
				to = min(to, c)
				break
			}
		}
		r.segment = (r.t + to) / 2
		if r.start {
			r.begin()
		}
		r.lock()
		r.settleEvents(t, r.x)
		r.h = min(1e-3, to-r.t)
		for r.t < to {
			r.stepTo(t, to)
		}
	}
}

// stepTo tries one step towards time to, s. If the step contains an event, it ends there.
func (r *reference) stepTo(t rapid.TB, to float64) {
	if r.steps++; r.steps > 2e5 {
		t.Fatal("reference: too many steps")
	}
	last := r.h >= to-r.t-1e-13
	h := r.h
	if last {
		h = to - r.t
	}
	r.rate(r.t, r.x)
	copy(r.k[0], r.f)
	x1, err := r.dormandPrince(h)
	if !(err <= 1) && h > 1e-12 {
		r.h = h * max(0.2, 0.9*math.Pow(err, -0.2))
		return
	}
	r.h = min(1e-3, h*min(4, 0.9*math.Pow(err+1e-10, -0.2)))
	x1 = slices.Clone(x1)
	if bad, found := r.probe(h, x1); found {
		r.locate(t, h, bad)
		return
	}
	r.t += h
	if last {
		r.t = to
	}
	copy(r.x, x1)
	for i, v := range r.x {
		r.size[i] = max(r.size[i], math.Abs(v))
	}
	if near := !r.holds(r.t, r.x, 1/(1+knifeShare)); near != r.near {
		if r.near && r.peaked(r.locks) {
			r.knife = min(r.knife, r.t)
		}
		r.near = near
	}
}

// probe reports whether an event is due in the step of length h to x1, and returns a share of h at
// which it is due.
func (r *reference) probe(h float64, x1 []float64) (float64, bool) {
	k0 := slices.Clone(r.k[0])
	r.rate(r.t+h, x1)
	k1 := slices.Clone(r.f)
	copy(r.k[0], k0)
	for i, m := range r.mode {
		if d := float64(m); (m == forward || m == backward) && d*r.along(i, k0) < 0 && d*r.along(i, k1) > 0 {
			at := r.lowest(h, i)
			s := d * r.along(i, r.partial(at*h))
			if s < -refEps {
				return at, true
			}
			if s < knifeShare && r.peaked([]int{i}) {
				r.knife = min(r.knife, r.t)
			}
		}
	}
	mid := r.partial(h / 2)
	if r.due(r.t+h/2, mid) {
		return 0.5, true
	}
	return 1, r.due(r.t+h, x1)
}

// lowest returns the share of h at which the slip of element i is smallest.
func (r *reference) lowest(h float64, i int) float64 {
	a, b := 0.0, 1.0
	for range 40 {
		c := (a + b) / 2
		r.rate(r.t+c*h, r.partial(c*h))
		if float64(r.mode[i])*r.along(i, r.f) < 0 {
			a = c
		} else {
			b = c
		}
	}
	return b
}

// partial returns the state after one step of length h from the present state, whose rate is k[0].
func (r *reference) partial(h float64) []float64 {
	k0 := slices.Clone(r.k[0])
	x, _ := r.dormandPrince(h)
	copy(r.k[0], k0)
	return slices.Clone(x)
}

// locate steps to the first instant at which an event is due, at most at share bad of h, and applies
// the event.
func (r *reference) locate(t rapid.TB, h, bad float64) {
	a, b := 0.0, bad
	for range 60 {
		if c := (a + b) / 2; r.due(r.t+c*h, r.partial(c*h)) {
			b = c
		} else {
			a = c
		}
	}
	copy(r.x, r.partial(b*h))
	r.t += b * h
	r.settleEvents(t, r.x)
	r.h = min(r.h, 1e-5)
}

// due reports whether an event is due at time t, s, and state x.
func (r *reference) due(t float64, x []float64) bool {
	r.signals(t, x)
	for i, m := range r.mode {
		if (m == free) == r.active(i) || (m == forward || m == backward) && float64(m)*r.along(i, x) < -refEps {
			return true
		}
	}
	for g := range r.side {
		if r.side[g] != r.sideAt(g, x) {
			return true
		}
	}
	return !r.holds(t, x, 1)
}

// settleEvents changes modes until nothing is due at the present instant.
func (r *reference) settleEvents(t rapid.TB, x []float64) {
	before := slices.Clone(r.mode)
	for iteration := 0; r.due(r.t, x); iteration++ {
		if iteration > 20 {
			t.Fatalf("reference: no end of events at %.12g s, modes %v", r.t, r.mode)
		}
		r.switchModes(x)
	}
	for i, from := range before {
		if to := r.mode[i]; to != from {
			r.events = append(r.events, refEvent{r.t, i, from, to})
		}
	}
	r.near = false
}

// switchModes applies one iteration of transitions.
func (r *reference) switchModes(x []float64) {
	r.signals(r.t, x)
	for g := range r.side {
		r.side[g] = r.sideAt(g, x)
	}
	var rest []int
	arrived := false
	for i, m := range r.mode {
		s := r.along(i, x)
		switch {
		case !r.active(i):
			r.mode[i] = free
		case math.Abs(s) <= refRest || r.sys.Frictions[i].OneWay && s < 0:
			rest = append(rest, i)
			arrived = arrived || m != stuck
		case m == free:
			r.mode[i] = sign(s)
		}
	}
	if len(rest) == 0 {
		r.lock()
		return
	}
	for _, i := range rest {
		r.mode[i] = stuck
	}
	r.lock()
	r.settle(x)
	if !r.decide(r.t, x, rest, arrived) {
		r.knife = min(r.knife, r.t)
	}
}

// Dormand and Prince, A family of embedded Runge-Kutta formulae, 1980, table 2.
var (
	dpC = [7]float64{0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1}
	dpA = [7][6]float64{
		{},
		{1. / 5},
		{3. / 40, 9. / 40},
		{44. / 45, -56. / 15, 32. / 9},
		{19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
		{9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
		{35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
	}
	dpE = [7]float64{71. / 57600, 0, -71. / 16695, 71. / 1920, -17253. / 339200, 22. / 525, -1. / 40}
)

// dormandPrince takes one step of length h from x with rate k[0]. It returns the new state, valid
// until the next call, and the ratio of error to tolerance.
func (r *reference) dormandPrince(h float64) ([]float64, float64) {
	for s := 1; s < 7; s++ {
		for i := range r.y {
			sum := 0.0
			for j := range s {
				sum += dpA[s][j] * r.k[j][i]
			}
			r.y[i] = r.x[i] + h*sum
		}
		r.rate(r.t+dpC[s]*h, r.y)
		copy(r.k[s], r.f)
	}
	worst := 0.0
	for i := range r.y {
		e := 0.0
		for j, c := range dpE {
			e += c * r.k[j][i]
		}
		worst = max(worst, math.Abs(h*e)/(refTol*max(r.size[i], math.Abs(r.x[i]), 1e-3)))
	}
	if math.IsNaN(worst) {
		panic(fmt.Sprintf("reference: not a number at %g s", r.t))
	}
	return r.y, worst
}
