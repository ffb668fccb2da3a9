package plants_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lockstep/model/kernel"
)

// car17 is rail17 written by hand and stepped by RK4. q and v are positions and speeds of the car,
// the bogies (x, y, phi of each) and the axles; u are the speeds of the rims. A standing wheel is
// locked; the brakes of the other wheels act against dir.
type car17 struct {
	q, v, u []float64 // 13, 13, 4
	locked  [4]bool
	dir     [4]float64
	loco    float64
	block   [4]float64 // brake forces at the rims, N
	wet     float64
}

func newCar17() *car17 {
	return &car17{q: make([]float64, 13), v: make([]float64, 13), u: make([]float64, 4), locked: [4]bool{true, true, true, true}}
}

// capacity returns the capacity of brake i at the rim, N.
func (c *car17) capacity(i int) float64 { return c.block[i] + 100 }

// rates returns the accelerations at q, v, u, and the adhesion of each wheel.
func (c *car17) rates(q, v, u []float64) (a, du []float64, adhesion [4]float64) {
	a, du = make([]float64, 13), make([]float64, 4)
	a[0], a[2] = c.loco, 0.8*c.loco
	for b := range 2 {
		sx, k := float64(2*b-1), 3+3*b
		spring := func(cx, dx, x, v float64) float64 { return cx*x + dx*v }
		fx := spring(4e6, 40e3, q[k]-0.35*q[k+2]-q[0]-q[2], v[k]-0.35*v[k+2]-v[0]-v[2])
		fy := spring(0.6e6, 30e3, q[k+1]-q[1]-sx*9.5*q[2], v[k+1]-v[1]-sx*9.5*v[2])
		a[0] += fx
		a[1] += fy
		a[2] += fx + sx*9.5*fy
		a[k] -= fx
		a[k+1] -= fy
		a[k+2] += 0.35 * fx
		for w := range 2 {
			i, sw := 2*b+w, float64(2*w-1)
			wx := spring(15e6, 60e3, q[9+i]-q[k]-0.25*q[k+2], v[9+i]-v[k]-0.25*v[k+2])
			wy := -spring(1.4e6, 12e3, q[k+1]+sw*1.28*q[k+2], v[k+1]+sw*1.28*v[k+2])
			slip := v[9+i] - u[i]
			mu := c.wet * 0.1 * (0.8*math.Exp(-math.Abs(slip)/5) + 0.2) * min(max(slip/0.05, -1), 1)
			share := c.dir[i]
			f := mu * (107910 + wy - sw*c.block[i]*share)
			if c.locked[i] { // f = mu·(N - sw·block·f/capacity)
				f = mu * (107910 + wy) / (1 + mu*sw*c.block[i]/c.capacity(i))
				share = f / c.capacity(i)
			} else {
				du[i] = (f - c.dir[i]*c.capacity(i)) * 0.46 * 0.46 / 100
			}
			adhesion[i] = f
			a[9+i] = (-f - wx) / 1500
			a[k] += wx
			a[k+1] += wy - sw*c.block[i]*share
			a[k+2] += 0.25*wx + sw*1.28*wy - 1.74*c.block[i]*share
		}
	}
	for i, m := range []float64{32000, 32000, 1.6e6, 3000, 3000, 2500, 3000, 3000, 2500} {
		a[i] /= m
	}
	return a, du, adhesion
}

// step is one of RK4.
func (c *car17) step(h float64) (q, v, u []float64) {
	along := func(x, d []float64, h float64) []float64 {
		out := slices.Clone(x)
		for i := range out {
			out[i] += h * d[i]
		}
		return out
	}
	q, v, u = c.q, c.v, c.u
	at, vt, ut := c.q, c.v, c.u
	for i, weight := range []float64{1. / 6, 1. / 3, 1. / 3, 1. / 6} {
		a, du, _ := c.rates(at, vt, ut)
		q, v, u = along(q, vt, weight*h), along(v, a, weight*h), along(u, du, weight*h)
		if next := []float64{0.5, 0.5, 1, 0}[i]; next > 0 {
			at, vt, ut = along(c.q, vt, next*h), along(c.v, a, next*h), along(c.u, du, next*h)
		}
	}
	return q, v, u
}

// to solves for a length of time, s. A step ends at the instant at which a wheel locks.
func (c *car17) to(length float64) {
	for length > 1e-12 {
		_, _, f := c.rates(c.q, c.v, c.u)
		for i := range 4 {
			if c.locked[i] && !(math.Abs(f[i]) <= c.capacity(i)) {
				c.locked[i], c.dir[i] = false, math.Copysign(1, f[i])
			}
		}
		h := min(length, 2e-5)
		q, v, u := c.step(h)
		stops := -1
		for i := range 4 {
			if !c.locked[i] && c.dir[i]*u[i] < 0 {
				stops = i
			}
		}
		if stops >= 0 {
			low, high := 0.0, h
			for range 40 {
				h = (low + high) / 2
				if q, v, u = c.step(h); c.dir[stops]*u[stops] < 0 {
					high = h
				} else {
					low = h
				}
			}
			u[stops] = 0
			c.locked[stops] = true
		}
		c.q, c.v, c.u = q, v, u
		length -= h
	}
}

// The commands are unrealistic: random pull, push and braking in both directions on dry or wet rail.
// The bound is the error of RK4 at the breakpoints of the adhesion.
func TestRailCarUnderRandomCommandsFollowsItsEquations(t *testing.T) {
	sys := load(t, "rail17")
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond, Driven: slices.Repeat([]bool{true}, len(sys.Inputs))})
	if err != nil {
		t.Fatal(err)
	}
	k, want := kernel.New(tables), newCar17()
	y, command := make([]float64, len(tables.Outputs)), slices.Clone(tables.Start)
	column := map[string]int{}
	for j, o := range tables.Outputs {
		column[o.Name] = j
	}
	rnd := rand.New(rand.NewPCG(17, 4))
	worst, fastest, locks := 0.0, [2]float64{}, 0
	for range 60 {
		command[0] = 80e3 * rnd.NormFloat64()
		for i := range 4 {
			command[1+i] = max(0, 30e3*(rnd.Float64()-0.4))
			want.block[i] = command[1+i]
		}
		command[5] = 0.3 + 0.7*rnd.Float64()
		want.loco, want.wet = command[0], command[5]
		for range 10 {
			k.Step(y, command)
			for _, e := range k.Events() {
				if e.To == kernel.Stuck {
					locks++
				}
			}
			want.to(5e-3)
			for name, v := range map[string]float64{"xc": want.q[0], "v_xc": want.v[0], "v_phib2": want.v[8],
				"u1": want.u[0], "u2": want.u[1], "u3": want.u[2], "u4": want.u[3], "v_xw3": want.v[11]} {
				got := y[column[name]]
				if !(math.Abs(got-v) <= 1e-6) {
					t.Fatalf("%s is %.9g, want %.9g", name, got, v)
				}
				worst = max(worst, math.Abs(got-v))
			}
			fastest = [2]float64{min(fastest[0], want.u[0]), max(fastest[1], want.u[0])}
		}
	}
	if locks < 10 || !(fastest[0] < -0.1 && fastest[1] > 0.1) {
		t.Errorf("%d locks, rims from %g to %g m/s: too little is tried", locks, fastest[0], fastest[1])
	}
	t.Logf("within %.1e m/s, m and rad/s over 3 s; %d locks, rims from %.2g to %.2g m/s", worst, locks, fastest[0], fastest[1])
}
