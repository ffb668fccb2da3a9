package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"sync"
	"time"
)

// The cases of 001 section 4.
var (
	case1  = juddering{name: "case 1", muStatic: 0.8, mu: 0.75, delta: 0.005, static: 400, slides: 320, engine: 200, reaction: 1, v: 5}
	case2  = with(case1, func(c *juddering) { c.name, c.engine = "case 2", 323.47 })
	case2b = with(case1, func(c *juddering) { c.name, c.engine, c.static, c.slides = "case 2, 100 N·m", 100, 100, 80 })
	case3  = with(case1, func(c *juddering) {
		c.name, c.muStatic, c.mu, c.engine, c.v = "case 3", 0.1, 0.07, -168.48, -5
	})
)

func with(c juddering, change func(*juddering)) juddering {
	change(&c)
	return c
}

// judderExtent is how much of the study of judder is done.
type judderExtent struct {
	until    float64 // s: that long stick and slip must last
	fine     float64 // N·m: to which edges of windows are found
	variants int     // of every case
	lives    int     // torques at which the length of the motion is looked at
	longest  float64 // s, of these
}

var (
	wholeJudder = judderExtent{until: 20, fine: 0.01, variants: 4, lives: 17, longest: 40}
	shortJudder = judderExtent{until: 3, fine: 0.1, variants: 2, lives: 3, longest: 2}
)

// stickSlip is one case of stick and slip: the plant, the contact, and torques of which
// one lets it stick for good and the other slip for good, N·m.
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

// judderVariants are what the windows are found for.
var judderVariants = []struct {
	name  string
	edits []edit
}{
	{"as in 001", nil},
	{"no reaction of the engine on the body", noReaction},
	{"no rolling resistance", rolling(0)},
	{"rolling resistance of 10 mm", rolling(0.01)},
}

// judderResult is what the study finds.
type judderResult struct {
	judderExtent
	angles   []angleError
	windows  [][]windowOf // per case, per variant
	lives    [][]lifeAt   // per case
	second   [][2]float64 // windows of the nonlinear vehicle, N·m
	printed  []lifeAt     // at the torques of 001
	stribeck []stribeckRun
	engine   harmonicRun
}

// windowOf is a window of a variant with the motion in its middle.
type windowOf struct {
	low, high float64 // N·m
	cycle
}

// lifeAt is for how long the contact sticks and slips at a torque.
type lifeAt struct {
	torque, last float64
	end          outcome
}

func doJudder(e judderExtent) *judderResult {
	n := len(stickSlips)
	r := &judderResult{judderExtent: e, windows: make([][]windowOf, n), lives: make([][]lifeAt, n), second: make([][2]float64, n), printed: make([]lifeAt, n)}
	var all sync.WaitGroup
	for i := range stickSlips {
		s := &stickSlips[i]
		r.windows[i] = make([]windowOf, e.variants)
		for j := range r.windows[i] {
			all.Go(func() {
				r.windows[i][j] = s.window(judderVariants[j].edits, e)
				if j == 0 {
					w := r.windows[i][0]
					r.lives[i], r.second[i] = livesOf(s, w, e), secondOpinion(s, w, e)
				}
			})
		}
		all.Go(func() {
			last, end := newDrive(s.plant, 5*time.Millisecond).life(s.contact, s.engine, e.longest)
			r.printed[i] = lifeAt{s.engine, last, end}
		})
	}
	all.Go(func() { r.angles = largeAngles(e.until) })
	all.Wait()
	for _, c := range []juddering{case2b, with(case2b, func(c *juddering) { c.name, c.stribeck = "Stribeck", 10 })} {
		r.stribeck = append(r.stribeck, runStribeck(&c, min(e.until, 10)))
	}
	r.engine = runHarmonics(min(e.until, 6))
	return r
}

// window finds that of a variant and what it is like in its middle.
func (s *stickSlip) window(edits []edit, e judderExtent) (w windowOf) {
	w.low, w.high = newDrive(s.plant, 5*time.Millisecond, edits...).window(s.contact, s.hold, s.slip, e.until, e.fine)
	w.cycle = newDrive(s.plant, time.Millisecond, edits...).measure(s.contact, (w.low+w.high)/2, e.until)
	return w
}

// livesOf looks at torques around a window, twice as wide.
func livesOf(s *stickSlip, w windowOf, e judderExtent) (list []lifeAt) {
	d := newDrive(s.plant, 5*time.Millisecond)
	for i := range e.lives {
		torque := w.low + (w.high-w.low)*(2*float64(i)/float64(e.lives-1)-0.5)
		last, end := d.life(s.contact, torque, e.longest)
		list = append(list, lifeAt{torque, last, end})
	}
	return list
}

// secondOpinion is the window of the nonlinear vehicle, looked for around that of the
// kernel.
func secondOpinion(s *stickSlip, w windowOf, e judderExtent) [2]float64 {
	c := *s.juddering
	edge := func(at float64, past outcome) float64 {
		away := math.Copysign(0.3, s.slip-s.hold)
		a, b := at-away, at+away
		for math.Abs(b-a) > e.fine {
			c.engine = a + (b-a)/2
			if _, end := newJudder(&c, anyAngle).life(s.element, e.until); end >= past {
				b = c.engine
			} else {
				a = c.engine
			}
		}
		return a + (b-a)/2
	}
	return [2]float64{edge(w.low, lasts), edge(w.high, slips)}
}

// life is as that of a drive.
func (m *judderModel) life(element int, until float64) (last float64, end outcome) {
	const look = 0.1 // s
	for m.t < until-look/2 {
		m.walk(m.t+look, fineStep)
		if n := len(m.log); n > 0 {
			last = 0
			for _, e := range m.log {
				if e.element == element {
					last = e.t
				}
			}
		}
		if m.t > last+quiet {
			if m.mode[element] == 0 {
				return last, holds
			}
			return last, slips
		}
	}
	return last, lasts
}

// judderMain is the command.
func judderMain(args []string) {
	flags := flag.NewFlagSet("study judder", flag.ExitOnError)
	dir := flags.String("o", "", "folder for the tables and plots")
	flags.Parse(args)
	if *dir == "" || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "study: usage: study judder -o DIR")
		os.Exit(2)
	}
	r := doJudder(wholeJudder)
	if err := r.write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}
	os.Stdout.Write(r.markdown())
}
