package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

// tight is a free row of bodies on springs with regions, some with hysteresis, and stops on both
// sides. The stops are so close that a tick has more events than it locates.
type tight struct {
	text    string
	mass    []float64
	springs []tightSpring // spring i pulls body i+1 and i
	play    [][2]float64  // of the stops between them; 0, 0: none
	quiet   bool          // no friction
}

type tightSpring struct{ borders, c []float64 }

func tightRow(rnd *rand.Rand) *tight {
	r := &tight{quiet: rnd.IntN(3) > 0}
	var elements, outputs strings.Builder
	for i := range 2 + rnd.IntN(5) {
		r.mass = append(r.mass, math.Exp(3*rnd.Float64()-1.5))
		fmt.Fprintf(&elements, "  m%d: {type: mass, m: %.17g, v_start: %.17g}\n", i, r.mass[i], 4*rnd.Float64()-2)
		fmt.Fprintf(&outputs, "  v%d: {speed: m%d}\n", i, i)
		if i == 0 {
			continue
		}
		s := tightSpring{c: []float64{3e4 * rnd.Float64()}}
		for at := 0.0; len(s.borders) < 1+i%3; {
			at += 1e-4 + 1e-3*rnd.Float64()
			s.borders, s.c = append(s.borders, at), append(s.c, 1e5*rnd.Float64())
		}
		start, rub := 3e-4*(rnd.Float64()-0.5), ""
		if !r.quiet {
			rub = fmt.Sprintf(", hysteresis: %.17g", 4*rnd.Float64())
		}
		fmt.Fprintf(&elements, "  k%d: {type: affine_spring, a: m%d, b: m%d, c: %s, borders: %s, s_rel_start: %.17g%s}\n",
			i, i-1, i, strings.ReplaceAll(fmt.Sprint(s.c), " ", ", "), strings.ReplaceAll(fmt.Sprint(s.borders), " ", ", "), start, rub)
		fmt.Fprintf(&outputs, "  z%d: {s_rel: k%d}\n", i, i)
		play := [2]float64{}
		if rnd.IntN(5) > 0 {
			play = [2]float64{-2e-4 - 2e-3*rnd.Float64(), 2e-4 + 2e-3*rnd.Float64()}
			fmt.Fprintf(&elements, "  s%d: {type: clearance, a: m%d, b: m%d, s_min: %.17g, s_max: %.17g, s_rel_start: %.17g, restitution: %.17g}\n",
				i, i-1, i, play[0], play[1], start, []float64{0, 1, rnd.Float64(), 1 - 0.1*rnd.Float64()}[rnd.IntN(4)])
			fmt.Fprintf(&outputs, "  o%d: {s_rel: s%d}\n", i, i)
		}
		r.springs, r.play = append(r.springs, s), append(r.play, play)
	}
	r.text = "plant: t\nelements:\n" + elements.String() + "outputs:\n" + outputs.String()
	return r
}

// sums returns momentum, its size, energy, and the largest overlap.
func (r *tight) sums(get func(string) float64) (p, size, energy, overlap float64) {
	for i, m := range r.mass {
		v := get(fmt.Sprintf("v%d", i))
		p, size, energy = p+m*v, size+m*math.Abs(v), energy+m*v*v/2
	}
	for i, s := range r.springs {
		z := math.Abs(get(fmt.Sprintf("z%d", i+1)))
		energy += s.c[0] * z * z / 2
		for q, b := range s.borders {
			out := max(0, z-b)
			energy += (s.c[q+1] - s.c[q]) * out * out / 2
		}
		if r.play[i] != [2]float64{} {
			o := get(fmt.Sprintf("o%d", i+1))
			overlap = max(overlap, r.play[i][0]-o, o-r.play[i][1])
		}
	}
	return p, size, energy, overlap
}

// countSteppedOver returns a kernel on text that counts the calls of stepOverEvents.
func countSteppedOver(t *testing.T, text string, opt Options) (k *run, get func(string) float64, leaps *int) {
	t.Helper()
	p, err := plantfile.Load("t.yaml", []byte(text), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	k, leaps = start(t, sys, opt), new(int)
	leap := k.calls.stepOverEvents
	k.calls.stepOverEvents = func(k *Kernel, local, theta float64) {
		*leaps++
		leap(k, local, theta)
	}
	index := map[string]int{}
	for i, o := range k.t.Outputs {
		index[o.Name] = i
	}
	k.Output(k.y)
	return k, func(name string) float64 { return k.y[index[name]] }, leaps
}

func TestBeyondTheBudgetNothingOverlapsAndNoEnergyIsGained(t *testing.T) {
	total, events := 0, 0.0
	for seed := range 144 {
		rnd := rand.New(rand.NewPCG(uint64(seed), 40))
		r := tightRow(rnd)
		opt := Options{Period: []time.Duration{ms(1), ms(5), ms(10)}[seed%3], Scheme: bothSchemes[seed/3%2], EventBudget: []int{0, 1}[seed/6%2], Memory: 1 << 18}
		k, get, leaps := countSteppedOver(t, r.text, opt)
		k.t.EventChecks = []int{80, 8, 2}[seed/12%3]
		p0, size, first, _ := r.sums(get)
		before := first
		for k.tick < int64(time.Second/opt.Period/5) {
			k.step()
			p, _, energy, overlap := r.sums(get)
			if !(overlap <= 1e-12) || !(math.Abs(p-p0) <= 1e-11*size) || !(energy <= first*(1+1e-10)) {
				t.Fatalf("row %d, %v, tick %d: overlap %g m, momentum %.15g of %.15g, energy %.15g of %.15g\n%s", seed, opt, k.tick, overlap, p, p0, energy, first, r.text)
			}
			if k.lagOut() != 0 {
				continue
			}
			if r.quiet && !(energy <= before+1e-10*first) {
				t.Fatalf("row %d, %v, tick %d: energy %.15g, before %.15g\n%s", seed, opt, k.tick, energy, before, r.text)
			}
			before = energy
		}
		total += *leaps
		events += k.y[k.tail()+2]
	}
	if total < 3000 {
		t.Errorf("only %d leaps", total)
	}
	t.Logf("%d leaps, %g events", total, events)
}

// rubbedRow is a row of masses on springs, each with a brake and with friction on the one before.
func rubbedRow(rnd *rand.Rand) string {
	elements, outputs, before := "  wall: {type: fixed}\n", "", "wall"
	for i := range 2 + rnd.IntN(4) {
		elements += fmt.Sprintf("  m%d: {type: mass, m: %.17g, v_start: %.17g}\n", i, math.Exp(2*rnd.Float64()-1), 4*rnd.Float64()-2)
		elements += fmt.Sprintf("  k%d: {type: spring, a: %s, b: m%[1]d, c: %.17[3]g}\n", i, before, 1e4+1e5*rnd.Float64())
		elements += fmt.Sprintf("  r%d: {type: brake, flange: m%[1]d, mu: 1, fn: %.17[2]g, peak: %[3]g}\n", i, 5+40*rnd.Float64(), []float64{1, 1.3}[rnd.IntN(2)])
		elements += fmt.Sprintf("  c%d: {type: support_friction, flange: m%[1]d, support: %s, f_Coulomb: %.17[3]g}\n", i, before, 5+40*rnd.Float64())
		outputs += fmt.Sprintf("  e%[1]d: {energy: m%[1]d}\n  s%[1]d: {energy: k%[1]d}\n  d%[1]d: {dissipated: r%[1]d}\n  f%[1]d: {dissipated: c%[1]d}\n", i)
		before = fmt.Sprintf("m%d", i)
	}
	return "plant: t\nelements:\n" + elements + "outputs:\n" + outputs
}

// The energies of masses and springs and what friction dissipates have a constant sum, also where slips pass zero and
// lock beyond the event budget. The bound is the error of the integral of the loss within the budget.
func TestBeyondTheBudgetDissipatedClosesTheEnergyBalance(t *testing.T) {
	total := 0
	for seed := range 96 {
		text := rubbedRow(rand.New(rand.NewPCG(uint64(seed), 41)))
		opt := Options{Period: []time.Duration{ms(1), ms(5), ms(10)}[seed%3], Scheme: bothSchemes[seed/3%2], EventBudget: []int{0, 1}[seed/6%2], Memory: 1 << 18}
		k, _, leaps := countSteppedOver(t, text, opt)
		k.t.EventChecks = []int{80, 2}[seed/12%2]
		sum := func() (s float64) {
			for _, e := range k.y[:k.tail()-3*k.t.Mc] {
				s += e
			}
			return s
		}
		for first := sum(); k.tick < int64(time.Second/opt.Period/5); {
			k.step()
			if got := sum(); k.lagOut() == 0 && !(math.Abs(got-first) <= 3e-4*first) {
				t.Fatalf("row %d, %v, tick %d: the energies sum up to %.9g J, want %.9g; %d leaps\n%s", seed, opt, k.tick, got, first, *leaps, text)
			}
		}
		total += *leaps
	}
	if total < 200 {
		t.Errorf("only %d leaps", total)
	}
}

// ladder is one mass on four springs of nine regions each, with hysteresis: fifty to seventy events
// in 10 ms.
func ladder() string {
	text := "plant: t\nelements:\n  g: {type: fixed}\n  m: {type: mass, m: 1}\n"
	for i := range 4 {
		borders := make([]string, 8)
		for j := range borders {
			borders[j] = fmt.Sprintf("%.17g", 0.001*float64(1+i)+0.0011*float64(j))
		}
		text += fmt.Sprintf("  k%d: {type: affine_spring, a: g, b: m, c: [10, 2000, 50, 9000, 100, 200, 20000, 3000, 40000], borders: [%s], hysteresis: 0.2, s_rel_start: 0.025}\n", i, strings.Join(borders, ", "))
	}
	return text + "outputs:\n  v: {speed: m}\n"
}

// The outputs of a tick with more events than its budget are exact as well, on the
// grid and while there is lag.
func TestMoreEventsThanTheBudgetAreLocatedInEitherScheme(t *testing.T) {
	fine, truth, _ := countSteppedOver(t, ladder(), Options{Period: period(2.5e-4)})
	type coarse struct {
		*run
		get   func(string) float64
		leaps *int
		paid  int
	}
	var all []*coarse
	for _, h := range []time.Duration{ms(1), ms(5), ms(10)} {
		for _, scheme := range bothSchemes {
			k, get, leaps := countSteppedOver(t, ladder(), Options{Period: h, Scheme: scheme})
			all = append(all, &coarse{k, get, leaps, 0})
		}
	}
	for at := int64(1); at <= 100; at++ {
		for fine.tick < 40*at {
			fine.step()
		}
		for _, c := range all {
			for c.tick*c.t.PeriodNs < at*1e7 {
				c.step()
			}
			if c.lagOut() == 0 {
				c.paid++
			}
			if !(math.Abs(c.get("v")-truth("v")) <= 1e-9) || *c.leaps > 0 {
				t.Fatalf("%v ns, %s: %.12g m/s at %d0 ms, %.12g at 0.25 ms; %d leaps", c.t.PeriodNs, c.t.Scheme, c.get("v"), at, truth("v"), *c.leaps)
			}
		}
	}
	for _, c := range all {
		if c.paid < 10 || !(c.y[c.tail()+2] >= 4000) {
			t.Errorf("%v ns, %s: on the grid %d times of 100, %g events", c.t.PeriodNs, c.t.Scheme, c.paid, c.y[c.tail()+2])
		}
	}
}

// An accumulation of impacts is the same with precomputed and with factorised modes, impact by impact, except for
// rounding that accumulations of elastic impacts amplify.
func TestSqueezedStacksMoveTheSameWithoutPrecomputedModes(t *testing.T) {
	blows := 0
	for seed := range 40 {
		rnd := rand.New(rand.NewPCG(uint64(seed), 5))
		text, n := "plant: t\nelements:\n", 2+rnd.IntN(3)
		for i := range n {
			text += fmt.Sprintf("  m%d: {type: mass, m: %g, s_start: %g, v_start: %.17g}\n", i, math.Pow(10, float64(rnd.IntN(3)-1)), 0.1*float64(i), 2*rnd.Float64()-1)
			if i > 0 {
				text += fmt.Sprintf("  g%d: {type: clearance, a: m%d, b: m%d, s_min: 0.09, s_max: 0.12, restitution: %.17g}\n", i, i-1, i, []float64{0, 0.9 * rnd.Float64()}[rnd.IntN(2)])
			}
		}
		text += fmt.Sprintf("  l: {type: force, flange: m0, f: 50}\n  r: {type: force, flange: m%d, f: -50}\noutputs:\n  v: {speed: m0}\n", n-1)
		table, _, _ := countSteppedOver(t, text, Options{Period: ms(5), Memory: 256 << 20})
		place, _, _ := countSteppedOver(t, text, Options{Period: ms(5), Memory: 1})
		for range 100 {
			table.step()
			place.step()
			a, b := table.Events(), place.Events()
			if len(a) != len(b) {
				t.Fatalf("pile %d, tick %d: %d events from the table, %d in place\n%s", seed, table.tick, len(a), len(b), text)
			}
			for i, e := range a {
				if e.Friction != b[i].Friction || e.To != b[i].To || !(math.Abs(e.Time-b[i].Time) <= 1e-12) {
					t.Fatalf("pile %d: %v from the table, %v in place\n%s", seed, e, b[i], text)
				}
				if e.To == Impact {
					blows++
				}
			}
		}
	}
	if blows < 300 {
		t.Errorf("only %d blows", blows)
	}
}

// A slip that rounding has put on the wrong side of zero, and that the step does not change, is braked by twice the
// capacity over the whole step at most: another lock may hold the element.
func TestUnchangedSlipOfTheWrongSignIsBrakedFinitely(t *testing.T) {
	k, _, _ := countSteppedOver(t, `plant: t
inputs: {p: {unit: Pa, min: 0, max: 10, default: 5}}
elements:
  a: {type: inertia, J: 1}
  b: {type: inertia, J: 1}
  c: {type: clutch, a: a, b: b, mu: 1, cgeo: 1 m, area: 1 m2, pressure: p}
outputs: {w: {speed: a}}
`, Options{Period: time.Millisecond})
	for _, slip := range []float64{-1e-14, -1e-3} {
		k.mode[0], k.length, k.capNow[0] = Forward, 1e-3, 5
		for i, w := range k.slips.Val[:k.slips.End[0]] {
			k.x[k.slips.Col[i]] = slip * w / 2
		}
		k.slip[0] = k.slips.dot(0, k.x)
		if !(math.Abs(k.slip[0]-slip) <= 1e-15*math.Abs(slip)) {
			t.Fatalf("slip %g, want %g", k.slip[0], slip)
		}
		if !k.brakeReversed(1) {
			t.Errorf("slip %g: not braked", slip)
		}
		if k.mode[0] != Stuck || !(math.Abs(k.slips.dot(0, k.x)) <= math.Abs(slip)) {
			t.Errorf("slip %g becomes %g, mode %d; want a lock", slip, k.slips.dot(0, k.x), k.mode[0])
		}
	}
}
