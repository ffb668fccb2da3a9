package kernel_test

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockstep/model"
	"lockstep/model/kernel"
)

// change is a new value of one command from a tick on.
type change struct {
	Tick, Input int
	Value       float64 // N·m
}

// scenario is a plant and the commands of its run.
type scenario struct {
	text    string
	peaked  bool
	period  time.Duration
	ticks   int
	changes []change
	options kernel.Options
}

// draw makes numbers without ties. Ties between independent parameters are undecided cases, on
// which two solvers may differ.
type draw struct {
	*rapid.T
	count int
	large bool // a plant of 8 to 13 bodies and up to 20 friction elements
}

func (d *draw) number(name string, lo, hi float64) float64 {
	d.count++
	_, golden := math.Modf(float64(d.count) * math.Phi)
	at := (float64(rapid.IntRange(0, 999).Draw(d.T, name)) + golden) / 1000
	return lo * math.Pow(hi/lo, at)
}

func (d *draw) below(name string, n int) int { return rapid.IntRange(0, n-1).Draw(d.T, name) }

func (d *draw) sign(name string) float64 { return float64(1 - 2*d.below(name, 2)) }

// builder writes the elements of a plant file.
type builder struct {
	*draw
	peaked, oneWay            bool
	elements                  []string
	inputs, frictions, others int
}

func (b *builder) add(format string, a ...any) {
	b.elements = append(b.elements, fmt.Sprintf(format, a...))
}

// grip adds a clutch or brake, with a command or with a capacity over time.
func (b *builder) grip(kind, ends string) {
	b.frictions++
	peak := 1.0
	fn := fmt.Sprintf("c%d", b.inputs+1)
	if b.below("capacity", 4) == 0 {
		t0, dt := b.number("t0", 0.01, 0.3), b.number("t1", 0.02, 0.3)
		fn = fmt.Sprintf("{table: [[%.17g, %.17g], [%.17g, %.17g]]}",
			t0, b.sign("fn0")*b.number("fn0", 0.5, 30), t0+dt, b.number("fn1", 0.5, 30))
	} else {
		b.inputs++
	}
	if b.peaked {
		peak = b.number("peak", 1.02, 1.6)
	}
	b.add("f%d: {type: %s, %s, mu: 1, cgeo: 1, peak: %.17g, fn: %s}", b.frictions, kind, ends, peak, fn)
}

// body adds inertia i and an element that joins it to an earlier inertia.
func (b *builder) body(i int) {
	start, kind := "", 2
	if i > 0 {
		kind = b.below("link", 6)
	}
	if kind != 0 && !b.oneWay && b.below("moving", 2) == 0 {
		start = fmt.Sprintf(", w_start: %.17g", b.sign("way")*b.number("w", 0.5, 20))
	}
	b.add("J%d: {type: inertia, J: %.17g%s}", i, b.number("J", 0.05, 3), start)
	if i == 0 {
		return
	}
	switch ends := fmt.Sprintf("a: J%d, b: J%d", b.below("to", i), i); {
	case kind == 0:
		b.add("l%d: {type: ideal_gear, %s, ratio: %.17g}", i, ends, b.sign("turns")*b.number("ratio", 0.4, 3))
	case kind == 1:
		b.add("l%d: {type: spring_damper, %s, c: %.17g, d: %.17g}", i, ends, b.number("c", 20, 3000), b.number("d", 0.01, 1))
	case kind == 2 && b.oneWay:
		b.frictions++
		b.add("f%d: {type: freewheel, %s}", b.frictions, ends)
	default:
		b.grip("clutch", ends)
	}
}

// across adds a brake, a clutch or a damper in parallel to the tree.
func (b *builder) across(bodies int) {
	switch at := b.below("at", bodies); b.below("kind", 3) {
	case 0:
		b.grip("brake", fmt.Sprintf("flange: J%d", at))
	case 1:
		b.grip("clutch", fmt.Sprintf("a: J%d, b: J%d", at, (at+1)%bodies))
	case 2:
		b.others++
		b.add("d%d: {type: damper, a: ground, b: J%d, d: %.17g}", b.others, at, b.number("drag", 0.01, 1))
	}
}

// plantText writes a tree of inertias joined by gears, springs and friction
// elements, more friction elements across it, and torques on it.
func plantText(d *draw, peaked bool) (text string, inputs int) {
	bodies, more, most := 2+d.below("bodies", 5), d.below("more", 4), 6
	if d.large {
		bodies, more, most = 8+d.below("bodies", 6), 6+d.below("more", 12), 20
	}
	b := builder{draw: d, peaked: peaked, oneWay: d.below("freewheels", 3) == 0}
	for i := range bodies {
		b.body(i)
	}
	for range more {
		if b.frictions < most {
			b.across(bodies)
		}
	}
	if b.frictions == 0 {
		b.grip("brake", "flange: J0")
	}
	for i := range bodies {
		if d.below("torque", 3) > 0 {
			b.add("t%d: {type: torque, flange: J%d, tau: {table: %s}}", i, i, torqueTable(d))
		}
	}
	text = "plant: random\n"
	for i := range b.inputs {
		if i == 0 {
			text += "inputs:\n"
		}
		text += fmt.Sprintf("  c%d: {unit: N, min: -100, max: 100}\n", i+1)
	}
	return text + "elements:\n  ground: {type: fixed}\n  " + strings.Join(b.elements, "\n  ") + "\n", b.inputs
}

// torqueTable is a piecewise linear torque with jumps, which the kernel integrates exactly. (It
// approximates a sine by a parabola over a substep; the work-precision test covers that.)
func torqueTable(d *draw) string {
	var rows []string
	at := 0.0
	for range 1 + d.below("rows", 6) {
		if d.below("jump", 3) > 0 {
			at += d.number("dt", 0.005, 0.4)
		}
		rows = append(rows, fmt.Sprintf("[%.17g, %.17g]", at, d.sign("way")*d.number("torque", 0.1, 30)))
	}
	return "[" + strings.Join(rows, ", ") + "]"
}

func drawScenario(rt *rapid.T) scenario { return (&draw{T: rt}).scenario() }

func (d *draw) scenario() scenario {
	s := scenario{peaked: !d.large && d.below("peaked", 3) == 0}
	var inputs int
	s.text, inputs = plantText(d, s.peaked)
	s.period = time.Duration(1+d.below("period", 10)) * time.Millisecond
	s.ticks = int(700 * time.Millisecond / s.period)
	for i := range inputs {
		for c := range d.below("changes", 6) {
			at := 0
			if c > 0 {
				at = d.below("tick", s.ticks)
			}
			v := 0.0
			if d.below("closed", 4) > 0 {
				v = d.number("command", 0.2, 40)
			}
			s.changes = append(s.changes, change{at, i, v})
		}
	}
	s.options.Memory = d.below("in place", 2)
	if d.below("papers", 4) == 0 {
		s.options.Scheme = kernel.Papers
	}
	return s
}

// command sets the commands that change at a tick.
func (s *scenario) command(u []float64, tick int) {
	for _, c := range s.changes {
		if c.Tick == tick {
			u[c.Input] = c.Value
		}
	}
}

// tally counts the events of a test over all scenarios.
type tally struct {
	runs, cut, ticks, events int
	worst, energy, lag       float64
	lagged                   int
}

// play runs a scenario in kernel and reference and checks every tick.
func (s *scenario) play(t rapid.TB, all *tally) *watch {
	sys := assembledText(t, "random", []byte(s.text))
	w := newWatch(t, sys, s)
	defer func() {
		if t.Failed() {
			t.Logf("%s\nperiod %v, changes %v, options %+v", s.text, s.period, s.changes, s.options)
		}
	}()
	for k := range s.ticks {
		s.command(w.u, k)
		w.tick(k)
		if t.Failed() {
			return w
		}
	}
	w.finish()
	all.runs++
	if !math.IsInf(w.ref.knife, 1) {
		all.cut++
	}
	all.ticks += s.ticks
	all.events += len(w.ref.events)
	all.worst, all.energy, all.lag = max(all.worst, w.worst), max(all.energy, w.lost), max(all.lag, w.lag)
	all.lagged = max(all.lagged, w.longest)
	return w
}

// steady makes rapid draw the same plants in every run and write no files; -rapid.seed draws
// others.
func steady(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.nofailfile": "true"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestRandomPlantsAgreeWithTheReference(t *testing.T) {
	steady(t)
	var all tally
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScenario(rt)
		s.play(rt, &all)
	})
	t.Log(all)
	if all.cut*4 > all.runs {
		t.Errorf("%d of %d runs were cut at a knife's edge; at most a quarter tests enough", all.cut, all.runs)
	}
}

// Plants with up to 20 friction elements, for which the reference uses Lemke's method. Static
// friction equals kinetic friction, so the motion is unique and no run is cut. With other seeds the
// reference may find events without end, and the test fails.
func TestLargeRandomPlantsAgreeWithTheReference(t *testing.T) {
	steady(t)
	var all tally
	rapid.Check(t, func(rt *rapid.T) {
		s := (&draw{T: rt, large: true}).scenario()
		s.play(rt, &all)
	})
	t.Log(all)
	if all.cut > 0 {
		t.Errorf("%d runs were cut", all.cut)
	}
}

func (a tally) String() string {
	return fmt.Sprintf("%d plants (%d cut at a knife's edge), %d ticks, %d transitions; largest error %.2g of the largest speed, energy %.2g, lag %.2g steps for %d ticks",
		a.runs, a.cut, a.ticks, a.events, a.worst, a.energy, a.lag, a.lagged)
}

// driven returns true for every input of a System.
func driven(sys *model.System) []bool { return slices.Repeat([]bool{true}, len(sys.Inputs)) }
