package main

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// The cases of the judder paper, section 4.
var (
	case1 = juddering{
		name: "case 1", muStatic: 0.8, mu: 0.75, static: 400, slides: 320, engine: 200, v: 5,
	}
	case2  = with(case1, func(c *juddering) { c.name, c.engine = "case 2", 323.47 })
	case2b = with(case1, func(c *juddering) { c.name, c.engine, c.static, c.slides = "Coulomb", 100, 100, 80 })
	case3  = with(case1, func(c *juddering) {
		c.name, c.muStatic, c.mu, c.engine, c.v = "case 3", 0.1, 0.07, -168.48, -5
	})
)

func with(c juddering, change func(*juddering)) juddering {
	change(&c)
	return c
}

// judderExtent are the parameters of the study of judder.
type judderExtent struct {
	until    float64 // time for which stick-slip must last, s
	fine     float64 // resolution of the edges of windows, N·m
	variants int     // variants of every case
	lives    int     // torques at which the duration of stick-slip is measured
	longest  float64 // longest such duration, s
}

var wholeJudder = judderExtent{until: 20, fine: 0.01, variants: 4, lives: 17, longest: 40}

// stickSlip is a case of stick-slip: the plant, the contact, a torque at which the contact finally
// locks (hold) and one at which it finally slips (slip), N·m.
type stickSlip struct {
	*juddering
	plant, contact string
	element        int // the contact in the nonlinear vehicle
	hold, slip     float64
}

var stickSlips = []stickSlip{
	{&case2, "judder", "clutch", clutch, 300, 350},
	{&case3, "judder-ice", "front.contact", front, -100, -250},
}

// judderVariants are the variants of the plants for which the windows are searched.
var judderVariants = []struct {
	name  string
	edits []edit
}{
	{"as in the judder paper", nil},
	{"no reaction of the engine on the body", noReaction},
	{"no rolling resistance", rolling(0)},
	{"rolling resistance of 10 mm", rolling(0.01)},
}

// judderResult is the result of the study.
type judderResult struct {
	judderExtent
	angles   []angleError
	cases    []*caseFound
	stribeck []stribeckRun
	engine   harmonicRun
}

// caseFound is the result for a case.
type caseFound struct {
	*stickSlip
	windows []windowOf // per variant
	lives   []lifeAt
	second  [2]float64 // window of the nonlinear vehicle, N·m
	printed lifeAt     // result at the torque of the judder paper
}

// windowOf is the window of torques of a variant, and the motion in its middle.
type windowOf struct {
	low, high float64 // N·m
	cycle
}

// lifeAt is the duration of stick-slip at a torque.
type lifeAt struct {
	torque, last float64
	end          outcome
}

func doJudder(e judderExtent) *judderResult {
	r := &judderResult{judderExtent: e}
	var all sync.WaitGroup
	for i := range stickSlips {
		c := &caseFound{stickSlip: &stickSlips[i], windows: make([]windowOf, e.variants)}
		r.cases = append(r.cases, c)
		for j := range c.windows {
			all.Go(func() {
				w := c.window(judderVariants[j].edits, e)
				if c.windows[j] = w; j == 0 {
					c.lives, c.second = livesOf(c.stickSlip, w, e), nonlinearWindow(c.stickSlip, w, e)
				}
			})
		}

		all.Go(func() { c.printed = newDrive(c.plant, 5*time.Millisecond).life(c.contact, c.engine, e.longest) })
	}

	all.Go(func() { r.angles = largeAngles(e.until) })
	all.Wait()
	for _, c := range []juddering{case2b, with(case2b, func(c *juddering) { c.name, c.stribeck = "Stribeck", 10 })} {
		r.stribeck = append(r.stribeck, runStribeck(&c, min(e.until, 10)))
	}
	r.engine = runHarmonics(min(e.until, 6))
	return r
}

// window searches the window of a variant and measures the motion in its middle.
func (s *stickSlip) window(edits []edit, e judderExtent) (w windowOf) {
	d := newDrive(s.plant, 5*time.Millisecond, edits...)
	end := func(torque float64) outcome { return d.life(s.contact, torque, e.until).end }
	w.low, w.high = edge(s.hold, s.slip, e.fine, lasts, end), edge(s.hold, s.slip, e.fine, slips, end)
	w.cycle = newDrive(s.plant, time.Millisecond, edits...).measure(s.contact, (w.low+w.high)/2, e.until)
	return w
}

// livesOf measures the duration at torques over twice the width of a window.
func livesOf(s *stickSlip, w windowOf, e judderExtent) (list []lifeAt) {
	d := newDrive(s.plant, 5*time.Millisecond)
	for i := range e.lives {
		torque := w.low + (w.high-w.low)*(2*float64(i)/float64(e.lives-1)-0.5)
		list = append(list, d.life(s.contact, torque, e.longest))
	}

	return list
}

// nonlinearWindow searches the window of the nonlinear vehicle around that of the kernel.
func nonlinearWindow(s *stickSlip, w windowOf, e judderExtent) [2]float64 {
	c := *s.juddering
	away := math.Copysign(0.3, s.slip-s.hold)
	end := func(torque float64) outcome {
		c.engine = torque
		return newJudder(&c).end(s.element, e.until)
	}

	low := edge(w.low-away, w.low+away, e.fine, lasts, end)
	return [2]float64{low, edge(w.high-away, w.high+away, e.fine, slips, end)}
}

// end returns the outcome for a contact after until, s.
func (m *judderModel) end(element int, until float64) outcome {
	const interval = 0.1 // time between two checks, s
	for m.changed[element] < until {
		m.advance(m.t+interval, fineStep)
		if m.t > m.changed[element]+quiet {
			return endOf(m.mode[element] == 0)
		}
	}

	return lasts
}

// Edits of the embedded plants.
var (
	noReaction = []edit{
		{"T_e: {type: torque, flange: engine, support: housing", "T_e: {type: torque, flange: engine"}, {"  mounts:", "#"},
	}
	harmonics = edit{"T_e: {type: torque, flange: engine, support: housing, tau: engine.torque}",
		"T_e: {type: harmonic_torque, flange: engine, support: housing, tau: engine.torque, orders: [[2, 1.8], [4, 0.7]], phi_rel_start: 0, w_max: 200}"}
	loads100 = []edit{{"T_S: 400 N.m", "T_S: 100 N.m"}, {"T_C: 320 N.m", "T_C: 80 N.m"}}
	// straight removes the terms of second order; rigid also removes the moment of the loads on
	// leaning struts.
	straight = []edit{{"      brace:", "#"}, {"      lever:", "#"}, {"  wind_up:", "#"}}
	rigid    = append([]edit{{"  legs:", "#"}}, straight...)
)

func rolling(delta float64) []edit {
	return []edit{{"delta: 5 mm", fmt.Sprintf("delta: %g m", delta)}}
}

// stribeck gives the clutch the law of case 2 of the judder paper, as a table over the slip that is dense where
// the exponent 0.6 makes the law steep.
func stribeck(c *juddering) edit {
	var rows []string
	for slip := 0.0; slip < 1000; slip = max(0.02, slip*1.5) {
		rows = append(rows, fmt.Sprintf("[%.6g, %.9g]", slip, c.sliding(slip)/c.slides))
	}
	const coulomb, force = "mu: 1, cgeo: 1 m, fn: clutch.force, peak: T_S/T_C", "cgeo: 1 m, fn: clutch.force"
	return edit{coulomb, "mu_pos: [" + strings.Join(rows, ", ") + "], " + force}
}

// drive is an embedded plant on the kernel, with a constant torque of the engine.
type drive struct{ *rig.Plant }

func newDrive(plant string, period time.Duration, edits ...edit) *drive {
	return &drive{must(rig.New(must(system(plant, edits...)), kernel.Options{Period: period}, true))}
}

func (d *drive) get(name string) float64 { return d.Y[d.Port(name)] }

// reset returns to the start, with a torque of the engine, N·m.
func (d *drive) reset(torque float64) {
	d.Reset()
	d.U[0] = torque
	d.Output(d.Y)
}

// steps steps the drive until a time, s, and yields the time after every step, s.
func (d *drive) steps(until float64) iter.Seq[float64] {
	h := float64(d.Tables.PeriodNs) * 1e-9
	return func(yield func(at float64) bool) {
		for tick := 1; float64(tick)*h <= until+1e-9*h; tick++ {
			if d.Step(d.Y, d.U); !yield(float64(tick) * h) {
				return
			}
		}
	}
}

// changes yields the events of a friction element in the last step.
func (d *drive) changes(element string) iter.Seq[kernel.Event] {
	index := slices.Index(d.Tables.Frictions, element)
	return func(yield func(e kernel.Event) bool) {
		for _, e := range d.Events() {
			if e.Friction == index && !yield(e) {
				return
			}
		}
	}
}

// outcome is the end of a stick-slip motion.
type outcome int

const (
	holds outcome = iota // the contact stays locked
	lasts                // stick-slip continues
	slips                // the contact keeps slipping
)

func (o outcome) String() string { return [...]string{"sticks for good", "lasts", "slips for good"}[o] }

// quiet is the time without an event after which stick-slip counts as ended, s: twenty periods.
const quiet = 0.5

// endOf returns the outcome for a contact without further events.
func endOf(sticks bool) outcome {
	if sticks {
		return holds
	}
	return slips
}

// life runs until stick-slip has ended, or has lasted until, s.
func (d *drive) life(contact string, torque, until float64) lifeAt {
	d.reset(torque)
	last, mode := 0.0, kernel.Stuck
	for at := range d.steps(until + 2*quiet) {
		for e := range d.changes(contact) {
			last, mode = e.Time, e.To
		}
		if last >= until {
			break
		}
		if at > last+quiet {
			return lifeAt{torque, last, endOf(mode == kernel.Stuck)}
		}
	}

	return lifeAt{torque, last, lasts}
}

// edge returns the torque between from and to, N·m, from which on the outcome is at least least,
// with a resolution of fine.
func edge(from, to, fine float64, least outcome, end func(torque float64) outcome) float64 {
	low, high := bisect(from, to, fine, func(torque float64) bool { return end(torque) >= least })
	return low + (high-low)/2
}

// cycle is a lasting stick-slip motion over its last second.
type cycle struct {
	period    float64 // mean period, s
	sticks    float64 // part of the time in which the contact is locked
	slip      float64 // range of the slip speed, rad/s or m/s
	jerk      float64 // range of the forward acceleration of the body, m/s²
	pitch     float64 // range of the angular acceleration of the body, rad/s²
	otherSlip float64 // largest slip of the other two contacts over the whole run
}

// measure runs until a time, s, and measures the motion of the last second.
func (d *drive) measure(contact string, torque, until float64) (c cycle) {
	d.reset(torque)
	names := []string{"slip_clutch", "v_r1", "v_r2"}
	own := map[string]int{"clutch": 0, "front.contact": 1}[contact]
	slip, jerk, pitch := newSpan(), newSpan(), newSpan()
	var first, last, locked, since float64
	count := 0
	for at := range d.steps(until) {
		for e := range d.changes(contact) {
			switch {
			case e.Time < until-1:
			case e.To == kernel.Stuck:
				if count++; count == 1 {
					first = e.Time
				}
				last, since = e.Time, e.Time
			case count > 0:
				locked += e.Time - since
			}
		}

		for i, name := range names {
			if i != own {
				c.otherSlip = max(c.otherSlip, math.Abs(d.get(name)))
			}
		}

		if at >= until-1 {
			slip.add(d.get(names[own]))
			jerk.add(d.get("a_x"))
			pitch.add(d.get("a_pitch"))
		}
	}

	if count > 1 {
		c.period, c.sticks = (last-first)/float64(count-1), locked/(until-first)
	}
	c.slip, c.jerk, c.pitch = slip.width(), jerk.width(), pitch.width()
	return c
}
