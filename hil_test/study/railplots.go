package main

import (
	"fmt"
	"time"
)

// railColours are of N_iter, then of the kernel's own step.
var railColours = []string{"#000000", "#1f77b4", "#2ca02c", "#d6a10b", "#d62728", "#9467bd", "#7f7f7f"}

// plots are the maps of the rail car by file name: over N_sub at each step, and over the
// step for the four classes of simulator.
func (r *railResult) plots() map[string][]byte {
	out := map[string][]byte{}
	subs := make([]float64, len(r.subs))
	for i, sub := range r.subs {
		subs[i] = float64(sub)
	}
	for _, h := range r.steps {
		place := chart{title: fmt.Sprintf("Places at %v", h), across: "N_sub", up: "error, m", x: axis{1, 20, true}, y: axis{1e-6, 10, true}}
		speed := chart{title: fmt.Sprintf("Speeds at %v", h), across: "N_sub", up: "error, m/s", x: axis{1, 20, true}, y: axis{1e-6, 10, true}}
		work := chart{title: fmt.Sprintf("Computing time at %v", h), across: "N_sub", up: "time over that of N_sub 1 and N_iter 0", x: axis{1, 20, true}, y: axis{0.5, 300, true}}
		for i, iter := range r.iters {
			var e, v, c []float64
			for _, sub := range r.subs {
				f := r.at(h, sub, iter)
				e, v, c = append(e, f.place), append(v, f.speed), append(c, f.cost/r.unit)
			}
			name := fmt.Sprintf("N_iter %d", iter)
			place.curves = append(place.curves, curve{name, railColours[i], 1.6, subs, e})
			speed.curves = append(speed.curves, curve{name, railColours[i], 1.6, subs, v})
			work.curves = append(work.curves, curve{name, railColours[i], 1.6, subs, c})
		}
		own := r.at(h, 0, 0)
		level := func(v float64) curve {
			return curve{"own step", railColours[6], 2.5, []float64{1, 20}, []float64{v, v}}
		}
		place.curves, speed.curves = append(place.curves, level(own.place)), append(speed.curves, level(own.speed))
		work.curves = append(work.curves, level(own.cost/r.unit))
		out[fmt.Sprintf("rail-places-%v.svg", h)] = place.svg()
		out[fmt.Sprintf("rail-speeds-%v.svg", h)] = speed.svg()
		out[fmt.Sprintf("rail-time-%v.svg", h)] = work.svg()
	}
	classes := r.classes()
	out["rail-classes.svg"] = classes.svg()
	r.motions(out)
	return out
}

// motions are the speed of the car over T_sgn (figures 20 to 25) and those of the wheels at
// 20 ms as micro steps and iterations still them (28 to 31).
func (r *railResult) motions(out map[string][]byte) {
	speed := func(title string) chart {
		return chart{title: title, across: "t, s", up: "m/s", x: axis{high: r.until.Seconds()}, y: axis{low: -0.5, high: 4}}
	}
	over := func(one *ride, row int, name string, i int) curve {
		c := curve{name: name, colour: append(railColours[:7:7], "#17becf")[i], width: 1.2}
		for k, v := range one.rows {
			c.x, c.y = append(c.x, float64(k+1)*one.h.Seconds()), append(c.y, v[row])
		}
		return c
	}
	car := speed("Figures 20 to 25: the car by T_sgn")
	for i, one := range r.signed {
		if one.sign >= leastOwn {
			car.curves = append(car.curves, over(one, 1, fmt.Sprintf("%g m/s", one.sign), i))
		}
	}
	out["rail-signs.svg"] = car.svg()
	for _, c := range [][2]int{{1, 0}, {20, 0}, {20, 1}, {5, 3}} {
		f := r.at(20*time.Millisecond, c[0], c[1])
		if f == nil {
			continue
		}
		wheels := speed(fmt.Sprintf("Figures 28 to 31: wheels at %s", f.text()))
		for w := range 4 {
			wheels.curves = append(wheels.curves, over(f.ride, 6+w, fmt.Sprintf("wheel %d", w+1), w))
		}
		out[fmt.Sprintf("rail-wheels-%d-%d.svg", c[0], c[1])] = wheels.svg()
	}
}

// classes are the errors of the speeds over the step.
func (r *railResult) classes() chart {
	c := chart{title: "Four classes of simulator, and the kernel's own step", across: "step, s", up: "error of the speeds, m/s", x: axis{1e-3, 0.1, true}, y: axis{1e-9, 10, true}}
	sub, iter := r.subs[len(r.subs)-1], r.iters[1]
	for i, k := range []struct {
		name      string
		sub, iter int
	}{{"NI+NM", r.subs[0], r.iters[0]}, {"I+NM", r.subs[0], iter}, {"NI+M", sub, r.iters[0]}, {"I+M", sub, iter}, {"own step", 0, 0}} {
		var h, e []float64
		for _, step := range r.steps {
			h, e = append(h, step.Seconds()), append(e, r.at(step, k.sub, k.iter).speed)
		}
		c.curves = append(c.curves, curve{k.name, railColours[i], 1.6, h, e})
	}
	return c
}
