package mechanics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// randomContact is a contact between masses a and b of a randomContacts, or -1 for the ground.
type randomContact struct {
	a, b       int
	c, d, rest float64
	play       float64 // total, of a backlash
	kind       int     // 0: spring and damper, 1: elasto_gap, 2: elasto_backlash, 3: elasto_backlash2
}

// force returns the force on b for the distance x = s_b - s_a and its rate v.
func (k *randomContact) force(x, v float64) float64 {
	x -= k.rest
	side := func(e, v float64) float64 { // >= 0
		switch {
		case e <= 0:
			return 0
		case k.kind == 3:
			return max(0, k.c*e+k.d*v)
		default:
			return max(0, k.c*e+min(k.c*e, k.d*v))
		}
	}
	switch k.kind {
	case 0:
		return -k.c*x - k.d*v
	case 1:
		return side(-x, -v)
	default:
		return side(-x-k.play/2, -v) - side(x-k.play/2, v)
	}
}

// randomContacts is a row of masses with contacts of very different stiffness and damping. Some contacts
// start closed, some exactly at their border.
type randomContacts struct {
	mass, s, v []float64
	contacts   []randomContact
	push       []float64 // constant forces
}

func newRandomContacts(rnd *rand.Rand) (r *randomContacts, text string) {
	r = &randomContacts{}
	var elements, outputs strings.Builder
	elements.WriteString("wall: {type: fixed}\n")
	n := 2 + rnd.IntN(3)
	for i := range n {
		r.mass, r.v = append(r.mass, math.Exp(2*rnd.Float64()-1)), append(r.v, 4*rnd.Float64()-2)
		r.s, r.push = append(r.s, 0.1*float64(i+1)+0.01*rnd.Float64()), append(r.push, 40*rnd.NormFloat64())
		fmt.Fprintf(&elements, "m%d: {type: mass, m: %.17g, s_start: %.17g, v_start: %.17g}\nf%d: {type: force, flange: m%d, f: %.17g}\n",
			i, r.mass[i], r.s[i], r.v[i], i, i, r.push[i])
		fmt.Fprintf(&outputs, "s%d: {position: m%d}\nv%d: {speed: m%d}\n", i, i, i, i)
	}
	add := func(a, b int) {
		at, end := 0.0, "wall"
		if a >= 0 {
			at, end = r.s[a], fmt.Sprintf("m%d", a)
		}
		k := randomContact{a: a, b: b, kind: rnd.IntN(4), c: 100 * math.Exp(6*rnd.Float64()), play: 0.002 + 0.02*rnd.Float64()}
		k.rest = r.s[b] - at + []float64{0, 0.01 * rnd.NormFloat64()}[rnd.IntN(2)]
		k.d = []float64{0, math.Exp(7 * rnd.Float64()), 2 * math.Sqrt(k.c)}[rnd.IntN(3)]
		kind := []string{"spring_damper", "elasto_gap", "elasto_backlash", "elasto_backlash2"}[k.kind]
		if k.kind > 1 {
			kind += fmt.Sprintf(", backlash: %.17g", k.play)
		}
		name := fmt.Sprintf("k%d", len(r.contacts))
		fmt.Fprintf(&elements, "%s: {type: %s, a: %s, b: m%d, c: %.17g, d: %.17g, s_rel0: %.17g}\n", name, kind, end, b, k.c, k.d, k.rest)
		r.contacts = append(r.contacts, k)
	}
	for i := range n {
		add(i-1, i)
		if rnd.IntN(2) == 0 {
			add(-1, i)
		}
	}
	return r, modeltest.PlantOf(elements.String(), outputs.String())
}

// rates sets d to the derivative of x, positions then speeds.
func (r *randomContacts) rates(d, x []float64) {
	n := len(r.mass)
	copy(d, x[n:])
	for i := range n {
		d[n+i] = r.push[i] / r.mass[i]
	}
	for i := range r.contacts {
		k, s, v := &r.contacts[i], 0.0, 0.0
		if k.a >= 0 {
			s, v = x[k.a], x[n+k.a]
		}
		f := k.force(x[k.b]-s, x[n+k.b]-v)
		d[n+k.b] += f / r.mass[k.b]
		if k.a >= 0 {
			d[n+k.a] -= f / r.mass[k.a]
		}
	}
}

// Random contacts follow small explicit steps of their equations, in each scheme and stepping. Every
// event is in the list of events once.
func TestRandomContactsFollowTheirEquations(t *testing.T) {
	const h, end = 1e-6, 0.15
	listed := 0
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		r, text := newRandomContacts(rnd)
		n := len(r.mass)
		x := append(append([]float64{}, r.s...), r.v...)
		k1, k2, k3, k4, at := make([]float64, 2*n), make([]float64, 2*n), make([]float64, 2*n), make([]float64, 2*n), make([]float64, 2*n)
		along := func(d []float64, h float64) []float64 {
			for i := range at {
				at[i] = x[i] + h*d[i]
			}
			return at
		}
		var want [][]float64 // each 5 ms
		for i := range int(end/h) + 1 {
			if i%5000 == 0 {
				want = append(want, append([]float64{}, x...))
			}
			r.rates(k1, x)
			r.rates(k2, along(k1, h/2))
			r.rates(k3, along(k2, h/2))
			r.rates(k4, along(k3, h))
			for j := range x {
				x[j] += h / 6 * (k1[j] + 2*k2[j] + 2*k3[j] + k4[j])
			}
		}

		tol := 1e-6 // of the explicit steps: they are late by up to h where a force jumps
		for _, k := range r.contacts {
			if k.kind == 3 {
				tol = max(tol, 20*h*k.d/slices.Min(r.mass))
			}
		}
		for _, opt := range []kernel.Options{
			{Period: 5 * time.Millisecond},
			{Period: time.Millisecond, Scheme: kernel.Papers},
			{Period: 5 * time.Millisecond, Stepping: kernel.Sparse, EventBudget: 80},
			{Period: 5 * time.Millisecond, Memory: 1},
		} {
			events := 0
			b := modeltest.NewWith(t, text, opt)
			b.To(end, func(at float64) {
				events += len(b.Kernel.Events())
				if i := int(math.Round(at / 5e-3)); math.Abs(at-float64(i)*5e-3) < 1e-9 && b.Get("lag") == 0 {
					for j := range n {
						for q, name := range []string{"s", "v"} {
							got := b.Get(fmt.Sprintf("%s%d", name, j))
							if !scalar.EqualWithinAbs(got, want[i][q*n+j], tol) {
								t.Errorf("seed %d, %v: %s%d is %.12g at %g s, want %.12g", seed, opt, name, j, got, at, want[i][q*n+j])
							}
						}
					}
				}
			})
			if got := b.Get("events"); got != float64(events) {
				t.Errorf("seed %d, %v: %g events, %d in the list", seed, opt, got, events)
			}
			listed += events
		}
		if t.Failed() {
			t.Fatalf("%s", text)
		}
	}
	if listed < 250 {
		t.Errorf("only %d events", listed)
	}
}
