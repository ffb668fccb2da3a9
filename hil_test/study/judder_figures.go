package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// figure is one of 001 section 4: columns of a plant over a span of time.
type figure struct {
	number  string
	up      string
	columns []string
}

// figures are those of a case at the torque that 001 prints, from and to in s: all of the
// launch, or a steady state as its zooms show it.
type figures struct {
	*juddering
	plant    string
	from, to float64
	list     []figure
}

var judderFigures = []figures{
	{&case1, "judder", 0, 10, []figure{
		{"3", "rad", []string{"pitch"}}, {"4", "N", []string{"F_f1"}}, {"5", "N", []string{"F_f2"}},
		{"6", "N", []string{"F_N1", "F_N2"}}, {"7", "N·m", []string{"T_f"}}}},
	{&case2, "judder", 9.8, 10, []figure{
		{"8", "rad/s", []string{"slip_clutch"}}, {"8b", "N·m", []string{"T_f"}}, {"9", "rad/s²", []string{"a_pitch"}},
		{"10", "m/s²", []string{"a_x"}}, {"11", "N", []string{"F_f1"}}, {"12", "N", []string{"F_f2"}}}},
	{&case3, "judder-ice", 19.7, 20, []figure{
		{"14", "N·m", []string{"T_f"}}, {"15", "m/s", []string{"v_r1"}}, {"15b", "N", []string{"F_f1"}},
		{"16", "rad/s²", []string{"a_pitch"}}, {"17", "N", []string{"F_N1", "F_N2"}}}},
}

// draw runs a case and draws its figures, by file name; parts of its span that lie behind
// until, s, are drawn before it.
func (f *figures) draw(until float64) map[string][]byte {
	to := min(f.to, until)
	from := max(0, to-(f.to-f.from))
	d := newDrive(f.plant, time.Millisecond)
	d.reset(f.engine)
	columns := map[string][]float64{}
	var t []float64
	for tick := range int(math.Round(to * 1e3)) {
		d.k.Step(d.y, d.u)
		if at := float64(tick+1) * 1e-3; at >= from {
			t = append(t, at)
			for _, one := range f.list {
				for _, name := range one.columns {
					columns[name] = append(columns[name], d.get(name))
				}
			}
		}
	}
	out := map[string][]byte{}
	for _, one := range f.list {
		c := chart{title: fmt.Sprintf("Figure %s: %s, %s", one.number, f.name, strings.Join(one.columns, " and ")), across: "t, s", up: one.up, x: axis{low: from, high: to}}
		c.y.low, c.y.high = math.Inf(1), math.Inf(-1)
		for i, name := range one.columns {
			for _, v := range columns[name] {
				c.y.low, c.y.high = min(c.y.low, v), max(c.y.high, v)
			}
			c.curves = append(c.curves, curve{name, []string{"#1f77b4", "#d62728"}[i], 1.2, t, columns[name]})
		}
		room := 0.05*(c.y.high-c.y.low) + 1e-6*(1+math.Abs(c.y.high))
		c.y.low, c.y.high = c.y.low-room, c.y.high+room
		out["judder-figure"+one.number+".svg"] = c.svg()
	}
	return out
}
