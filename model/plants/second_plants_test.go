package plants_test

import (
	"math"
	"slices"
)

// affine is a force that is affine in regions, and odd.
type affine struct{ c, at, offset []float64 }

// bends is the continuous one of slopes c between the borders at of |z|.
func bends(c, at []float64) (f affine) {
	offset := 0.0
	f.c, f.offset = []float64{c[0]}, []float64{0}
	for i, b := range at {
		offset += (c[i] - c[i+1]) * b
		f.c = append(append([]float64{c[i+1]}, f.c...), c[i+1])
		f.at = append(append([]float64{-b}, f.at...), b)
		f.offset = append(append([]float64{-offset}, f.offset...), offset)
	}
	return f
}

func (f affine) force(z float64, b border) float64 { return f.c[b.region]*z + f.offset[b.region] }

// swing is the oscillator of Reiter, ch. 3: 1 kg let go at x on a spring beside a damper.
type swing struct {
	x              float64
	spring, damper affine
	also           func(t, v, x float64) float64 // force on the body
	friction       []float64                     // N, by the region of |x|
	lock, slip     string                        // its events
	kink           bool                          // also has one at x = 0
}

func (w swing) solve() *second {
	s := &second{names: []string{"v", "x"}, inertia: [][]float64{{1}}, x: []float64{0, w.x}, step: 1e-3}
	s.borders = []border{
		{name: "region", value: func(x []float64) float64 { return x[1] }, at: w.spring.at},
		{name: "damper region", value: func(x []float64) float64 { return x[0] }, at: w.damper.at},
	}
	if w.kink {
		s.borders = append(s.borders, border{value: func(x []float64) float64 { return x[1] }, at: []float64{0}})
	}
	s.motion = func(t float64, x, d []float64) {
		d[0], d[1] = -w.spring.force(x[1], s.borders[0])-w.damper.force(x[0], s.borders[1]), x[0]
		if w.also != nil {
			d[0] += w.also(t, x[0], x[1])
		}
	}
	if w.friction != nil {
		s.rubs = []rub{{lock: w.lock, slip: w.slip, row: []float64{1}, capacity: func(float64, []float64) float64 {
			outside := s.borders[0].region - len(w.spring.at)/2
			return w.friction[min(max(outside, -outside), len(w.friction)-1)]
		}}}
	}
	return s.ready()
}

// crash is the plant of Reiter, ch. 4.2, with tables 13 and 14; both springs rest at 0. Its
// gap x2 - x1 is a state, where its digits matter.
type crash struct{ c1, c2, d1, d2, m1, m2, ks, cr, x1, v1 float64 }

func (p crash) solve() *second {
	s := &second{names: []string{"v1", "v2", "x1", "s"}, inertia: [][]float64{{p.m1, 0}, {0, p.m2}},
		x: []float64{p.v1, 0, p.x1, -p.x1}, step: 1e-3}
	s.motion = func(_ float64, x, d []float64) {
		d[0], d[1] = -p.c1*x[2]-p.d1*x[0], -p.c2*(x[2]+x[3])-p.d2*x[1]
		d[2], d[3] = x[0], x[1]-x[0]
	}
	s.borders = []border{{value: func(x []float64) float64 { return x[0] }, at: []float64{0}}}
	s.stops = []stop{{name: "N", gap: func(x []float64) float64 { return x[3] }, row: []float64{-1, 1}, e: p.cr, ks: p.ks}}
	return s.ready()
}

// The states of the hybrid drivetrain (Reiter, eq. 104), speeds first. The gears leave of the
// Ravigneaux set w_cR = 2.5·w_F - 1.5·w_R3 (its carrier, the sun of set 3),
// w_s2 = 3·w_cR - 2·w_M and w_s1 = 2.8·w_M - 1.8·w_cR.
const (
	wE = iota
	wR3
	wM
	wF
	wz
	ww
	wv
	shaft1
	dphiz
	slipState // of a tyre with a relaxation length
)

// hybrid is that drivetrain as in chapters 3.3, 4.5 and 5.2: C1 closed, C0 and C3 open.
type hybrid struct {
	motor, c1, c2 [][2]float64 // N·m over s
	spring        affine       // N·m/rad, from z to wheel
	d             float64      // beside it
	stop          float64      // rad; 0: none
	e             float64      // its restitution
	tyre          tyre
	start         map[int]float64
}

// rows over w_E, w_R3, w_M, w_F, w_z, w_w, w_v.
var (
	slipC1 = []float64{0, 1, 0, 0, 0, 0, 0}
	slipC2 = []float64{0, -4.5, -2, 7.5, 0, 0, 0}
	slipCw = []float64{0, 0, 0, 0, 0, 1, -1}
	speedV = []float64{0, 0, 0, 0, 0, 0, 1}
)

func (h hybrid) solve() *second {
	s := &second{names: []string{"w_E", "w_R3", "w_M", "w_F", "w_z", "w_w", "w_v", "shaft1", "dphi_z"}, step: 5e-4}
	for range 7 {
		s.inertia = append(s.inertia, make([]float64, 7))
	}
	for _, p := range []struct {
		J   float64
		row []float64
	}{
		{0.18, []float64{1, 0, 0, 0, 0, 0, 0}}, {0.012, slipC1}, {0.06, []float64{0, 0, 1, 0, 0, 0, 0}},
		{0.02, []float64{0, 0, 0, 1, 0, 0, 0}}, {0.004, []float64{0, -1.5, 0, 2.5, 0, 0, 0}},
		{0.001, []float64{0, 2.7, 2.8, -4.5, 0, 0, 0}}, {0.002, slipC2},
		{3.4093, []float64{0, 0, 0, 0, 1, 0, 0}}, {1.5, []float64{0, 0, 0, 0, 0, 1, 0}}, {135, speedV},
	} {
		for i, a := range p.row {
			for j, b := range p.row {
				s.inertia[i][j] += p.J * a * b
			}
		}
	}
	s.x = make([]float64, slipState+1)
	for i, v := range h.start {
		s.x[i] = v
	}
	s.borders = []border{{name: "region", value: func(x []float64) float64 { return x[dphiz] }, at: h.spring.at}}
	s.motion = func(t float64, x, d []float64) {
		d[wE], d[wR3], d[wM], d[wF] = -0.01*x[wE], -0.001*x[wR3], along(h.motor, t)-0.002*x[wM], -0.01*x[wF]
		one := 8000*x[shaft1] + 20*(x[wF]-x[wz])
		two := h.spring.force(x[dphiz], s.borders[0]) + h.d*(x[wz]-x[ww])
		d[wF] -= one
		d[wz], d[ww], d[wv] = one-two, two, 0
		d[shaft1], d[dphiz], d[slipState] = x[wF]-x[wz], x[wz]-x[ww], 0
		if h.tyre.law != nil {
			h.tyre.law(x, d)
		}
		d[wv] -= h.tyre.air * x[wv] * math.Abs(x[wv])
	}
	s.rubs = []rub{clutch("C1", slipC1, h.c1), clutch("C2", slipC2, h.c2)}
	if h.tyre.law == nil {
		s.rubs = append(s.rubs, clutch("Cw", slipCw, [][2]float64{{0, 800}}))
	}
	if h.tyre.air != 0 {
		s.rubs = append(s.rubs, clutch("rolling", speedV, [][2]float64{{0, 15}}))
	}
	s.borders = append(s.borders, h.tyre.borders...)
	if h.stop != 0 {
		s.stops = []stop{{name: "contact_torque", gap: func(x []float64) float64 { return h.stop - x[dphiz] }, row: []float64{0, 0, 0, 0, -1, 1, 0}, e: h.e, ks: 1}}
	}
	for _, table := range [][][2]float64{h.motor, h.c1, h.c2} {
		for _, p := range table {
			s.corners = append(s.corners, p[0])
		}
	}
	slices.Sort(s.corners)
	return s.ready()
}

func clutch(name string, row []float64, capacity [][2]float64) rub {
	return rub{lock: "lock_" + name, slip: "slip_" + name, row: row, capacity: func(t float64, _ []float64) float64 { return along(capacity, t) }}
}

// along is the table [time, value] at time t, constant outside.
func along(table [][2]float64, t float64) float64 {
	for i, p := range table {
		if t < p[0] {
			if i == 0 {
				return p[1]
			}
			q := table[i-1]
			return q[1] + (p[1]-q[1])*(t-q[0])/(p[0]-q[0])
		}
	}
	return table[len(table)-1][1]
}

// tyre is what lies between wheel and vehicle; without a law it is the clutch Cw.
type tyre struct {
	air     float64 // N·m·s², with 15 N·m of rolling friction; 0: neither
	law     func(x, d []float64)
	borders []border // where it has corners
}

// grip is Reiter, eq. 138 with the parameters of ch. 5.2.
func grip(kappa float64) float64 {
	const B, C, D, E = 10, 1.9, 800, 0.97
	z := B * kappa
	return D * math.Sin(C*math.Atan(z-E*(z-math.Atan(z))))
}

// magic is the formula over v_s/max(|v|, low).
func magic(low float64) tyre {
	return tyre{air: 0.4, borders: []border{{value: func(x []float64) float64 { return math.Abs(x[wv]) }, at: []float64{low}}},
		law: func(x, d []float64) {
			f := grip((x[ww] - x[wv]) / max(math.Abs(x[wv]), low))
			d[ww] -= f
			d[wv] += f
		}}
}

// relaxed is the formula behind a relaxation length of length rad, with a damper of lag s,
// up to a path of fast rad/s:
//
//	k' = r·(g - k),  r = min(p, fast)/length,  p = max(|v|, |v_s|)·kappa/g
//	f = B·C·(k + lead·(g - k)),  lead = min(1, max(lag·r, 1 - fast/p))
func relaxed(length, lag, fast float64) tyre {
	const stiff = 10 * 1.9 * 800 // N.m, grip at 1 as it begins
	path := func(x []float64) (p, g float64) {
		vs := x[ww] - x[wv]
		p = max(math.Abs(x[wv]), math.Abs(vs))
		if vs == 0 {
			return p, 0
		}
		g = grip(vs/p) / stiff
		return math.Abs(vs / g), g
	}
	return tyre{air: 0.4, borders: []border{
		{value: func(x []float64) float64 { return math.Abs(x[ww]-x[wv]) - math.Abs(x[wv]) }, at: []float64{0}},
		{value: func(x []float64) float64 { p, _ := path(x); return p }, at: []float64{length / lag, fast}},
	}, law: func(x, d []float64) {
		p, g := path(x)
		r := min(p, fast) / length
		d[slipState] = r * (g - x[slipState])
		f := stiff * (x[slipState] + min(1, max(lag*r, 1-fast/p))*(g-x[slipState]))
		d[ww] -= f
		d[wv] += f
	}}
}
