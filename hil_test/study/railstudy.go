package main

import (
	"math"
	"time"
)

// railResult is what the study of the rail car finds.
type railResult struct {
	railExtent
	truth  *ride
	maps   map[setting]*finding // per setting of chapter 9; the kernel's own steps with sub 0
	laws   []growth             // 003 eq. 8.3.1 per N_iter, with the largest N_sub
	cost   [4]float64           // 003 eq. 9.4.1: a, b, c and d, of a step, over that of N_sub 1 and N_iter 0
	unit   float64              // ns of that step
	scans  []signRow
	signed []*ride // of the scans
}

// finding is a ride against the truth.
type finding struct {
	*ride
	place, speed float64 // 003 eq. 9.3.1, m and m/s
	shake        float64 // m/s
}

// growth is Err = a·dt^b, dt in s.
type growth struct {
	iter                           int
	placeA, placeB, speedA, speedB float64
}

// signRow is a threshold of section 9.1.
type signRow struct {
	sign        float64 // T_sgn, m/s
	end         float64 // m/s, of the car at the end
	own, rolled float64 // error of the speeds, m/s, against the same law by the kernel's own step, and against a contact that rolls
	shake       float64 // m/s
	err         error   // why there is no own
}

const paperSign = 0.05 // m/s, what 003 takes

func doRail(e railExtent) *railResult {
	r := &railResult{railExtent: e, maps: map[setting]*finding{}}
	list := []setting{{h: railGrid, sign: paperSign}}
	for _, h := range e.steps {
		list = append(list, setting{h: h, sign: paperSign})
		for _, iter := range e.iters {
			for _, sub := range e.subs {
				list = append(list, setting{h, sub, iter, paperSign})
			}
		}
	}
	rides := takeAll(list, e.until)
	r.truth = rides[0]
	measure(rides[1:], e.rounds)
	for _, one := range rides[1:] {
		f := &finding{ride: one, shake: one.shakes()}
		f.place, f.speed = one.off(r.truth)
		r.maps[one.setting] = f
	}
	for _, iter := range e.iters {
		r.laws = append(r.laws, r.growth(iter))
	}
	r.fit()
	r.scan()
	return r
}

// at is a ride of the maps.
func (r *railResult) at(h time.Duration, sub, iter int) *finding {
	return r.maps[setting{h, sub, iter, paperSign}]
}

// growth fits 003 eq. 8.3.1 to the errors with the largest N_sub.
func (r *railResult) growth(iter int) growth {
	var h, place, speed []float64
	for _, step := range r.steps {
		f := r.at(step, r.subs[len(r.subs)-1], iter)
		h, place, speed = append(h, step.Seconds()), append(place, f.place), append(speed, f.speed)
	}
	g := growth{iter: iter}
	g.placeA, g.placeB = powerLaw(h, place)
	g.speedA, g.speedB = powerLaw(h, speed)
	return g
}

// powerLaw fits e = a·h^b by least squares of the logarithms.
func powerLaw(h, e []float64) (a, b float64) {
	var n, sx, sy, sxx, sxy float64
	for i := range h {
		x, y := math.Log(h[i]), math.Log(e[i])
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	b = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return math.Exp((sy - b*sx) / n), b
}

// fit sets cost by least squares over all settings in two parts, relative errors alike.
func (r *railResult) fit() {
	r.unit = math.Inf(1)
	for _, h := range r.steps {
		r.unit = min(r.unit, r.at(h, r.subs[0], r.iters[0]).cost)
	}
	var normal [4][5]float64
	for s, f := range r.maps {
		if s.sub == 0 {
			continue
		}
		want := f.cost / r.unit
		row := [5]float64{float64(s.iter) / want, float64(s.sub) / want, float64(s.iter*s.sub) / want, 1 / want, 1}
		for i := range 4 {
			for j := range row {
				normal[i][j] += row[i] * row[j]
			}
		}
	}
	for i := range normal { // Gauss and Jordan; normal is positive definite
		for j := range normal {
			if part := normal[j][i] / normal[i][i]; j != i {
				for c := range normal[j] {
					normal[j][c] -= part * normal[i][c]
				}
			}
		}
	}
	for i := range r.cost {
		r.cost[i] = normal[i][4] / normal[i][i]
	}
}

// step and parts of section 9.1.
const (
	signStep         = 5 * time.Millisecond
	signSub          = 5
	signIter         = 1
	leastOwn float64 = 0.005 // m/s: with less the kernel's own step takes too many pieces for a study
)

// scan varies T_sgn as section 9.1 does.
func (r *railResult) scan() {
	list := []setting{{h: signStep}}
	for _, sign := range r.signs {
		list = append(list, setting{signStep, signSub, signIter, sign})
	}
	for _, sign := range r.signs {
		if sign >= leastOwn {
			list = append(list, setting{h: signStep, sign: sign})
		}
	}
	rides := takeAll(list, r.until)
	own := map[float64]*ride{}
	for _, o := range rides[1+len(r.signs):] {
		own[o.sign] = o
	}
	r.signed = rides[1 : 1+len(r.signs)]
	for _, one := range r.signed {
		row := signRow{sign: one.sign, own: math.NaN(), shake: one.shakes(), err: one.err}
		if one.err == nil {
			row.end = one.rows[len(one.rows)-1][1]
			_, row.rolled = one.off(rides[0])
			if o := own[one.sign]; o != nil && o.err == nil {
				_, row.own = one.off(o)
			}
		}
		r.scans = append(r.scans, row)
	}
}
