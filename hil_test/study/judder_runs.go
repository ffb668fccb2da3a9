package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// edit replaces a part of a plant's text that is there once.
type edit struct{ from, to string }

// Edits of the embedded plants.
var (
	noReaction = []edit{{"T_e: {type: torque, flange: engine, support: housing", "T_e: {type: torque, flange: engine"}, {"  mounts:", "#"}}
	harmonics  = edit{"T_e: {type: torque, flange: engine, support: housing, tau: engine.torque}",
		"T_e: {type: harmonic_torque, flange: engine, support: housing, tau: engine.torque, orders: [[2, 1.8], [4, 0.7]], phi_rel_start: 0, w_max: 200}"}
	loads100 = []edit{{"T_S: 400 N.m", "T_S: 100 N.m"}, {"T_C: 320 N.m", "T_C: 80 N.m"}}
	// straight is the plant without its terms of second order; rigid is it without the
	// moment of the loads on legs that lean as well.
	straight = []edit{{"      brace:", "#"}, {"      lever:", "#"}, {"  wind_up:", "#"}}
	rigid    = append([]edit{{"  legs:", "#"}}, straight...)
)

func rolling(delta float64) []edit {
	return []edit{{"delta: 5 mm", fmt.Sprintf("delta: %g m", delta)}}
}

// stribeck lets the clutch follow 001's law of case 2, a table over the slip that is dense
// where the exponent 0.6 makes it steep.
func stribeck(c *juddering) edit {
	var rows []string
	for slip := 0.0; slip < 1000; slip = max(0.02, slip*1.5) {
		rows = append(rows, fmt.Sprintf("[%.6g, %.9g]", slip, c.sliding(slip)/c.slides))
	}
	return edit{"mu: 1, cgeo: 1 m, fn: clutch.force, peak: T_S/T_C", "mu_pos: [" + strings.Join(rows, ", ") + "], cgeo: 1 m, fn: clutch.force"}
}

// drive is an embedded plant on the kernel, with a constant torque of the engine.
type drive struct {
	tables *kernel.Tables
	k      *kernel.Kernel
	y, u   []float64
	column map[string]int
	named  map[string]int // friction elements
}

// newDrive panics where a plant is not as the study takes it to be: the plants are ours.
func newDrive(plant string, period time.Duration, edits ...edit) *drive {
	text, err := plants.Read(plant)
	check(err)
	for _, e := range edits {
		if n := strings.Count(string(text), e.from); n != 1 {
			panic(fmt.Sprintf("study: plant %s has %q %d times", plant, e.from, n))
		}
		text = []byte(strings.Replace(string(text), e.from, e.to, 1))
	}
	p, err := plantfile.Load(plant+".yaml", text, library.Elements())
	check(err)
	sys, err := assemble.System(p)
	check(err)
	tables, err := kernel.Prepare(sys, kernel.Options{Period: period, Driven: []bool{true, true}})
	check(err)
	d := &drive{tables: tables, k: kernel.New(tables), y: make([]float64, len(tables.Outputs)), column: map[string]int{}, named: map[string]int{}}
	d.u = append(d.u, tables.Start...)
	for i, o := range tables.Outputs {
		d.column[o.Name] = i
	}
	for i, name := range tables.Frictions {
		d.named[name] = i
	}
	return d
}

func check(err error) {
	if err != nil {
		panic("study: " + err.Error())
	}
}

func (d *drive) get(name string) float64 { return d.y[d.column[name]] }

// reset goes back to the start, with a torque of the engine, N·m.
func (d *drive) reset(torque float64) {
	d.k.Reset()
	d.u[0] = torque
	d.k.Output(d.y)
}

// End of a stick-slip motion.
type outcome int

const (
	holds outcome = iota // the contact sticks for good
	lasts                // it still sticks and slips
	slips                // it slips for good
)

func (o outcome) String() string { return [...]string{"sticks for good", "lasts", "slips for good"}[o] }

// quiet is for how long a contact that has come to its end does nothing, s: twenty
// periods of stick and slip.
const quiet = 0.5

// life runs until a contact has come to its end, at most until, s, and returns the last
// time at which it changed.
func (d *drive) life(contact string, torque, until float64) (last float64, end outcome) {
	d.reset(torque)
	h, mode := float64(d.tables.PeriodNs)*1e-9, kernel.Stuck
	for tick := 1; float64(tick)*h <= until; tick++ {
		d.k.Step(d.y, d.u)
		for _, e := range d.k.Events() {
			if e.Friction == d.named[contact] {
				last, mode = e.Time, e.To
			}
		}
		if float64(tick)*h > last+quiet {
			if mode == kernel.Stuck {
				return last, holds
			}
			return last, slips
		}
	}
	return last, lasts
}

// window are the torques, N·m, between which stick and slip lasts until the time until, s,
// found by halving between a torque that holds and one that slips, down to fine.
func (d *drive) window(contact string, hold, slip, until, fine float64) (low, high float64) {
	edge := func(past outcome) float64 {
		a, b := hold, slip
		for math.Abs(b-a) > fine {
			mid := a + (b-a)/2
			if _, end := d.life(contact, mid, until); end >= past {
				b = mid
			} else {
				a = mid
			}
		}
		return a + (b-a)/2
	}
	return edge(lasts), edge(slips)
}

// cycle is a lasting stick-slip motion over its last second.
type cycle struct {
	period    float64 // s, mean
	sticks    float64 // part of the time in which the contact sticks
	slip      float64 // largest less smallest slip speed, rad/s or m/s
	jerk      float64 // the same of the body's forward acceleration, m/s²
	pitch     float64 // and of its angular acceleration, rad/s²
	otherSlip float64 // largest slip of the other two contacts over all the time
}

// measure runs for some time and looks at the last second of it.
func (d *drive) measure(contact string, torque, until float64) (c cycle) {
	d.reset(torque)
	h := float64(d.tables.PeriodNs) * 1e-9
	names := []string{"slip_clutch", "v_r1", "v_r2"}
	own := map[string]int{"clutch": 0, "front.contact": 1}[contact]
	low, high := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}, [3]float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)}
	var first, last, stuck, since float64
	count := 0
	for tick := 1; float64(tick)*h <= until; tick++ {
		d.k.Step(d.y, d.u)
		for _, e := range d.k.Events() {
			switch {
			case e.Friction != d.named[contact] || e.Time < until-1:
			case e.To == kernel.Stuck:
				if count++; count == 1 {
					first = e.Time
				}
				last, since = e.Time, e.Time
			case count > 0:
				stuck += e.Time - since
			}
		}
		for i, name := range names {
			if i != own {
				c.otherSlip = max(c.otherSlip, math.Abs(d.get(name)))
			}
		}
		if float64(tick)*h >= until-1 {
			for i, v := range []float64{d.get(names[own]), d.get("a_x"), d.get("a_pitch")} {
				low[i], high[i] = min(low[i], v), max(high[i], v)
			}
		}
	}
	if count > 1 {
		c.period, c.sticks = (last-first)/float64(count-1), stuck/(until-first)
	}
	c.slip, c.jerk, c.pitch = high[0]-low[0], high[1]-low[1], high[2]-low[2]
	return c
}
