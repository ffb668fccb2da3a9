package signal_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// h is the step of the tests, s.
var h = period.Seconds()

// Sampled blocks that read each other act at the same tick, in any order of the file; the output at a tick shows the
// sample of the tick before.
func TestAChainOfSampledBlocksActsAtOneTick(t *testing.T) {
	lines := []string{
		"first: {type: sampler, u: ramp}", "half: {type: gain, k: 0.5, u: first}",
		"capped: {type: limiter, u: half, uMax: 0.1 m/s}", "second: {type: zero_order_hold, u: capped}",
		"third: {type: sampler, u: {sum: [second, first]}, samplePeriod: 10 ms}", "last: {type: unit_delay, u: third}",
		"ramp: {type: integrator, u: u, k: 1 1/s}",
	}
	for order := range 2 {
		if order == 1 {
			for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
				lines[i], lines[j] = lines[j], lines[i]
			}
		}
		b := step(t, strings.Join(lines, "\n"), "first: {signal: first}\nsecond: {signal: second}\nthird: {signal: third}\nlast: {signal: last}")
		b.To(0.5, func(s float64) {
			k := math.Round(s/h) - 1 // tick of the last sample
			value := func(k float64) float64 { return 2*k*h + min(k*h, 0.1) }
			even := func(k float64) float64 { return 2 * math.Floor(k/2) }
			b.Is("first", 2*k*h, 1e-12)
			b.Is("second", min(k*h, 0.1), 1e-12)
			b.Is("third", value(even(k)), 1e-12)
			b.Is("last", value(even(max(k-1, 0))), 1e-12)
		})
	}
}

// A sample takes the input of its own tick, through a limiter whose side changes with that input.
func TestASampleReadsTheInputsOfItsTick(t *testing.T) {
	b := modeltest.New(t, plant(`
cut: {type: limiter, u: u, uMax: 3 m/s}
cut_again: {type: limiter, u: {product: [2, cut]}, uMax: 5 m/s}
seen: {type: sampler, u: cut_again}
fast: {type: greater, u1: u, u2: 1 m/s}
was_fast: {type: sampler, u: fast}
`, "seen: {signal: seen}\nwas_fast: {signal: was_fast}"), period)
	for i, u := range []float64{0, 9, -9, 1, 2, -2, 4} {
		b.Set("u", u)
		b.To(float64(i+1)*h, nil).Is("seen", max(-5, min(5, 2*max(-3, min(3, u)))), 1e-12)
		b.Is("was_fast", map[bool]float64{true: 1}[u > 1], 0)
	}
}

// A discrete PI controller with a sampled measurement and a mass: between samples the force is constant, so the
// motion is the recurrence v[k+1] = v[k] + Ts/m·f[k], f[k] = f[k-1] + b0·e[k] + b1·e[k-1].
func TestADiscretePILoopIsItsRecurrence(t *testing.T) {
	for _, opt := range []kernel.Options{{}, {Stepping: kernel.Sparse}, {Form: kernel.Held}, {Scheme: kernel.Papers}} {
		opt.Period = period
		compareDiscretePI(t, opt)
	}
}

func compareDiscretePI(t *testing.T, opt kernel.Options) {
	t.Helper()
	b := modeltest.NewWith(t, "inputs: {v_ref: {unit: m/s, min: 0, max: 100}}\n"+modeltest.PlantOf(`
car: {type: mass, m: 500 kg}
v: {type: speed_sensor, flange: car}
missing: {type: sum, u: [v_ref, v], k: [1, -1]}
control: {type: discrete_transfer_function, u: missing, b: [3.15, -3], a: [1, -1], samplePeriod: 50 ms}
drive: {type: force, flange: car, f: {product: [400 N.s/m, control]}}
`, "v: {speed: car}\nf: {signal: control}"), opt)
	b.Set("v_ref", 10)
	v, f, before, k := 0.0, 0.0, 0.0, -1
	b.To(2, func(s float64) {
		for ; float64(k+1)*0.05 < s-h/2; k++ {
			if k >= 0 {
				v += 0.05 / 500 * 400 * f
			}
			f += 3.15*(10-v) - 3*before
			before = 10 - v
		}
		b.Is("f", f, 1e-11)
		b.Is("v", v+(s-float64(k)*0.05)/500*400*f, 1e-11)
	})
}

// A transfer function of order 2 with a short numerator is its difference equation.
func TestADiscreteTransferFunctionIsItsDifferenceEquation(t *testing.T) {
	b := modeltest.New(t, plant(
		"filter: {type: discrete_transfer_function, u: u, b: [0.3, -0.1], a: [2, -2.4, 0.9]}", "y: {signal: filter}"), period)
	var u, y [3]float64
	for k := range 60 {
		copy(u[1:], u[:2])
		copy(y[1:], y[:2])
		u[0] = math.Sin(float64(k))
		y[0] = (0.3*u[1] - 0.1*u[2] + 2.4*y[1] - 0.9*y[2]) / 2
		b.Set("u", u[0])
		b.To(float64(k+1)*h, nil).Is("y", y[0], 1e-12)
	}
}

// A delay is exact for an input that is straight between ticks, whether it is a multiple of the step or not; for a
// sine the line between ticks errs by at most h²·ω²/8 of the amplitude.
func TestADelayIsExactForALineAndCloseForACurve(t *testing.T) {
	b := modeltest.New(t, plant(`
ramp: {type: integrator, u: 2 m/s, k: 1 1/s, y_start: 1 m/s}
swing: {type: second_order, u: 0 m/s, w: 20 rad/s, D: 0, yd_start: 20}
late5: {type: fixed_delay, u: ramp, delayTime: 5 ms}
late30: {type: fixed_delay, u: ramp, delayTime: 30 ms}
late33: {type: fixed_delay, u: ramp, delayTime: 33 ms}
late2: {type: fixed_delay, u: late33, delayTime: 7 ms}
swung: {type: fixed_delay, u: swing, delayTime: 41 ms}
`, "late5: {signal: late5}\nlate30: {signal: late30}\nlate33: {signal: late33}\nlate2: {signal: late2}\nswung: {signal: swung}"), period)
	b.To(0.5, func(s float64) {
		late := func(T float64) float64 { return 1 + 2*max(0, s-T) }
		b.Is("late5", late(0.005), 1e-12)
		b.Is("late30", late(0.030), 1e-12)
		if s < 0.031 || s > 0.039 { // the corner at 33 ms is not at a tick
			b.Is("late33", late(0.033), 1e-12)
		}
		if s > 0.05 {
			b.Is("late2", late(0.040), 1e-12)
		}
		if s > 0.05 {
			b.Is("swung", math.Sin(20*(s-0.041)), h*h*20*20/8)
		}
	})
}

// A loop of an integrator and a delay, y' = -5·y(t - T), follows the method of steps: a line, a parabola, a cubic. The
// delay keeps lines of the parabola.
func TestALoopThroughADelayMatchesTheMethodOfSteps(t *testing.T) {
	b := modeltest.New(t, plant(`
y: {type: integrator, u: back, k: 1 1/s, y_start: 1 m/s}
late: {type: fixed_delay, u: y, delayTime: 100 ms}
back: {type: gain, k: -5, u: late}
`, "y: {signal: y}"), period)
	b.To(0.3, func(s float64) { // steps of 0.1 s: 1 - 5·s; then + 25·(s-0.1)²/2; then - 125·(s-0.2)³/6
		want := 1 - 5*s
		if s > 0.1 {
			want += 25 * (s - 0.1) * (s - 0.1) / 2
		}
		tol := 1e-12
		if s > 0.2 { // the curve between 0.1 s and 0.2 s is kept as lines: h²/12·y''·5 over 0.1 s
			want -= 125 * (s - 0.2) * (s - 0.2) * (s - 0.2) / 6
			tol = h * h / 12 * 25 * 5 * 0.1 * 1.01
		}
		b.Is("y", want, tol)
	})
}

// The output of an integrator becomes set at the tick of a rising edge, and the integral goes on from it.
func TestAnIntegratorIsResetAtARisingEdge(t *testing.T) {
	b := modeltest.New(t, plant(`
way: {type: integrator, u: 3 m/s, y_start: 1 m, reset: on}
back: {type: integrator, u: 3 m/s, reset: on, set: {product: [2 s, u]}}
saw: {type: integrator, u: 1 m/s, reset: full}
full: {type: greater_equal, u1: saw, u2: 0.0475 m}
`, "way: {signal: way}\nback: {signal: back}\nsaw: {signal: saw}"), period)
	b.Set("u", 4)
	b.To(0.1, nil).Is("way", 1.3, 1e-12)
	b.Set("on", 1)
	b.To(0.2, func(s float64) {
		b.Is("way", 1+3*(s-0.1), 1e-12)
		b.Is("back", 8+3*(s-0.1), 1e-12)
		b.Is("saw", math.Mod(s-h/2, 0.05)+h/2, 1e-12) // full is true at the tick after 0.0475 s: every 50 ms
	})
	b.Set("on", 0)
	b.To(0.3, nil).Is("way", 1.6, 1e-12)
	b.Set("on", 1)
	b.Set("u", -1)
	b.To(0.3+h, nil).Is("way", 1+3*h, 1e-12)
	b.Is("back", -2+3*h, 1e-12)
}

func TestSampledBlocksAllocateNothing(t *testing.T) {
	b := step(t, `
seen: {type: sampler, u: lag}
lag: {type: first_order, u: late, T: 0.1 s}
late: {type: fixed_delay, u: u, delayTime: 33 ms}
way: {type: integrator, u: u, reset: on}
`, "seen: {signal: seen}\nway: {signal: way}")
	other := modeltest.New(t, plant("w: {type: sampler, u: u}", ""), period)
	if n := testing.AllocsPerRun(100, func() {
		b.Kernel.Step(b.Y, b.U)
		b.U[1] = 1 - b.U[1]
		other.Kernel.Step(other.Y, other.U)
	}); n != 0 {
		t.Errorf("%g allocations in a tick", n)
	}
}

// Other tables take over the values that delays keep and the states of sampled blocks; a delay of another number of
// steps needs another form of the tables.
func TestSampledBlocksContinueWithOtherTables(t *testing.T) {
	const text = "late: {type: fixed_delay, u: u, delayTime: 33 ms}\nseen: {type: sampler, u: late, samplePeriod: 20 ms}\n" +
		"grow: {type: gain, k: %g, u: seen}\nbrake: {type: torque, flange: idle, tau: %g}"
	const outputs = "late: {signal: late}\nseen: {signal: seen}\ngrow: {signal: grow}"
	a := modeltest.New(t, plant(fmt.Sprintf(text, 1., 1.), outputs), period)
	b := modeltest.New(t, plant(fmt.Sprintf(text, 2., 1.), outputs), period)
	same := modeltest.New(t, plant(fmt.Sprintf(text, 2., 1.), outputs), period)
	input := func(k int) float64 { return math.Sin(0.3 * float64(k)) }
	for k := range 13 {
		a.Set("u", input(k))
		same.Set("u", input(k))
		a.To(float64(k+1)*h, nil)
		same.To(float64(k+1)*h, nil)
	}
	if err := b.Tables.Follows(a.Tables); err != nil {
		t.Fatal(err)
	}
	b.Set("u", input(13))
	if !b.Kernel.TakeOver(a.Kernel, b.U) {
		t.Fatal("refused")
	}
	b.Ticks = a.Ticks
	for k := 13; k < 40; k++ {
		b.Set("u", input(k))
		same.Set("u", input(k))
		b.To(float64(k+1)*h, nil)
		same.To(float64(k+1)*h, nil)
		for _, name := range []string{"late", "seen", "grow"} {
			b.Is(name, same.Get(name), 0)
		}
	}
	longer := modeltest.New(t, plant(strings.Replace(fmt.Sprintf(text, 2., 1.), "33 ms", "38 ms", 1), outputs), period)
	if err := longer.Tables.Follows(a.Tables); err == nil {
		t.Error("a delay of another number of steps is taken over")
	}
}

func TestSampledBlocksRefuseWhatTheyCannotDo(t *testing.T) {
	for _, c := range []struct{ elements, want string }{
		{"a: {type: sampler, u: b}\nb: {type: zero_order_hold, u: {sum: [u, a]}}",
			"a, b sample each other at the same tick; put a unit_delay between them"},
		{"a: {type: sampler, u: {sum: [u, a]}}", `element "a": it depends on itself at the same tick; put a unit_delay in the loop`},
		{"a: {type: discrete_transfer_function, u: {sum: [u, a]}, b: [1, 1], a: [1, 0]}", `element "a": it depends on itself`},
		{"a: {type: discrete_transfer_function, u: u, b: [1, 1, 1], a: [1, 0]}", "b has 3 numbers; 1 to 2 are wanted"},
		{"a: {type: discrete_transfer_function, u: u, b: [1], a: [0, 1]}", "a has 2 numbers; 2 to 21 are wanted, the first not 0"},
		{"a: {type: integrator, u: u, set: 1 m}", "set goes with reset"},
		{"a: {type: sampler, u: u, samplePeriod: 12 ms}", `element "a": samplePeriod 0.012 s is not a multiple of the step 0.005 s`},
		{"a: {type: fixed_delay, u: u, delayTime: 2 ms}", `element "a": a delay of 0.002 s is shorter than the step 0.005 s`},
		{"a: {type: fixed_delay, u: u, delayTime: 1000 s}", `element "a": a delay of 1000 s: all delays together keep more than 65536 values`},
	} {
		text := plant(c.elements, "a_now: {signal: a}")
		err := modeltest.Check(text)
		if err == nil {
			_, err = kernel.Prepare(modeltest.System(t, text), kernel.Options{Period: 5 * time.Millisecond})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got  %v\nwant %s", c.elements, err, c.want)
		}
	}
	loop := "a: {type: sampler, u: b}\nb: {type: zero_order_hold, u: {sum: [u, c]}}\nc: {type: unit_delay, u: a}"
	if err := modeltest.Check(plant(loop, "a_now: {signal: a}")); err != nil {
		t.Error(err)
	}
}

// One signal resets several integrators at the same tick, also where it follows from one of them. A set value that
// follows from another integrator is that before the reset.
func TestIntegratorsAreResetAtTheSameTickByOneOfThem(t *testing.T) {
	lines := []string{
		"lap: {type: integrator, u: 2 m/s, reset: full}", "full: {type: greater_equal, u1: lap, u2: 0.095 m}",
		"since: {type: integrator, u: 1 m/s, reset: full}",
		"total: {type: integrator, u: 0 m/s, reset: full, set: {sum: [total, lap]}}",
	}
	for range 2 {
		b := step(t, strings.Join(lines, "\n"), "lap: {signal: lap}\nsince: {signal: since}\ntotal: {signal: total}")
		b.To(0.5, func(s float64) { // full is true at 0.05 s, 0.1 s, ...: the output at a tick is that before its reset
			laps := math.Ceil(math.Round(s/h)/10) - 1
			b.Is("lap", 2*(s-0.05*laps), 1e-12)
			b.Is("since", s-0.05*laps, 1e-12)
			b.Is("total", 0.1*laps, 1e-12)
		})
		slices.Reverse(lines)
	}
}

// Integrators whose resets read each other exchange their values: each takes that of the other before the tick.
func TestIntegratorsResetEachOther(t *testing.T) {
	b := step(t, `
full: {type: greater_equal, u1: {sum: [a, b]}, u2: 0.0373 m}
a: {type: integrator, u: 1 m/s, y_start: 0.01 m, reset: full, set: {product: [0.5, b]}}
b: {type: integrator, u: 0 m/s, y_start: 0.02 m, reset: full, set: {product: [0.1, a]}}
`, "a: {signal: a}\nb: {signal: b}")
	want, other, wasFull := 0.01, 0.02, false
	b.To(0.5, func(s float64) { // outputs at a tick are those before its resets
		want += h
		b.Is("a", want, 1e-12)
		b.Is("b", other, 1e-12)
		full := want+other >= 0.0373
		if full && !wasFull {
			want, other = 0.5*other, 0.1*want
			full = want+other >= 0.0373
		}
		wasFull = full
	})
}

// Delays that keep as many values together, but not one by one, are not taken over: their values lie elsewhere.
func TestDelaysOfOtherLengthsAreNotTakenOver(t *testing.T) {
	text := func(a, b int) string {
		return plant(fmt.Sprintf("a: {type: fixed_delay, u: u, delayTime: %d ms}\nb: {type: fixed_delay, u: on, delayTime: %d ms}", a, b),
			"a_now: {signal: a}\nb_now: {signal: b}")
	}
	from := modeltest.New(t, text(10, 20), period)
	if err := modeltest.New(t, text(20, 10), period).Tables.Follows(from.Tables); err == nil || !strings.Contains(err.Error(), "delayTime") {
		t.Errorf("the lengths of two delays are exchanged: %v", err)
	}
	if err := modeltest.New(t, text(9, 18), period).Tables.Follows(from.Tables); err != nil {
		t.Error(err)
	}
}
