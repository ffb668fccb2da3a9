package signal_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model/element/signal"
	"lockstep/model/element/thermal"
	"lockstep/model/modeltest"
)

// plant returns a plant with an input u, 0 to 10 m/s, an input flag on, and blocks.
func plant(elements, outputs string) string {
	return "inputs: {u: {unit: m/s, min: -100, max: 100}, on: {unit: 1, flag: true}}\n" +
		modeltest.PlantOf("idle: {type: inertia, J: 1}\n"+elements, outputs+"\nu_now: {signal: u}\non_now: {signal: on}")
}

const period = 5 * time.Millisecond

// step returns the bench with u at 2 m/s from time 0 on.
func step(t *testing.T, elements, outputs string) *modeltest.Bench {
	b := modeltest.New(t, plant(elements, outputs), period)
	b.Set("u", 2)
	return b
}

func TestStepResponsesOfLinearBlocksMatchTheClosedForms(t *testing.T) {
	b := step(t, `
twice: {type: gain, k: 2 s/m, u: u}
lag: {type: first_order, u: u, k: 3, T: 0.2 s, y_start: 1 m/s}
chain: {type: first_order, u: lag, T: 0.1 s}
way: {type: integrator, u: u, k: 0.5, y_start: 3 m}
damped: {type: second_order, u: u, w: 10 rad/s, D: 0.3}
slow: {type: second_order, u: u, w: 10 rad/s, D: 2, y_start: 1, yd_start: -3}
slope: {type: derivative, u: lag, k: 0.7, T: 0.05 s, x_start: 1 m/s}
control: {type: pi, u: u, k: 4 N.s/m, T: 0.25 s, x_start: 0.1}
all: {type: sum, u: [u, lag, {product: [0.5 1/s, way]}], k: [1, -2, 3]}
`, `
twice: {signal: twice}
lagging: {signal: lag}
chain: {signal: chain}
way: {signal: way}
damped: {signal: damped}
slow: {signal: slow}
slope: {signal: slope}
control: {signal: control}
all: {signal: all}
`)
	const D, w = 0.3, 10.0
	wd := w * math.Sqrt(1-D*D)
	fast, late := -w*(2+math.Sqrt(3)), -w*(2-math.Sqrt(3))
	b.To(1, func(s float64) {
		e := math.Exp
		lag := 6 - 5*e(-s/0.2)
		way := 3 + s
		b.Is("twice", 4, 1e-13)
		b.Is("lagging", lag, 1e-12)
		b.Is("chain", 6-10*e(-s/0.2)+4*e(-s/0.1), 1e-12) // y' = (lag - y)/0.1
		b.Is("way", way, 1e-12)
		b.Is("damped", 2-2*e(-D*w*s)*(math.Cos(wd*s)+D*w/wd*math.Sin(wd*s)), 1e-12)
		c := (-3 - late*(-1)) / (fast - late) // y = 2 + c·e^(fast·s) + (-1 - c)·e^(late·s)
		b.Is("slow", 2+c*e(fast*s)+(-1-c)*e(late*s), 1e-12)
		b.Is("control", 4*(2+0.1+2*s/0.25), 1e-12)
		// x' = (lag - x)/0.05 with x(0) = 1: x = 6 - 20/3·e^(-5s) + 5/3·e^(-20s)
		x := 6 - 20./3*e(-5*s) + 5./3*e(-20*s)
		b.Is("slope", 0.7*(lag-x)/0.05, 1e-11)
		b.Is("all", 2-2*lag+3*0.5*way, 1e-12)
	})
}

// A PI controller in a closed loop with a mass: m·v' = k·(e + x), T·x' = e, e = v_ref - v. With k = 4·m/T
// both roots are -k/(2·m).
func TestPILoopHasItsKnownRoots(t *testing.T) {
	b := modeltest.New(t, "inputs: {v_ref: {unit: km/h, min: 0, max: 100}}\n"+modeltest.PlantOf(`
car: {type: mass, m: 500 kg}
v: {type: speed_sensor, flange: car}
missing: {type: sum, u: [v_ref, v], k: [1, -1]}
control: {type: pi, u: missing, k: 2000 N.s/m, T: 1 s}
drive: {type: force, flange: car, f: control}
`, "v: {speed: car}\nf: {force: drive}"), period)
	b.Set("v_ref", 10)
	b.To(3, func(s float64) {
		// v' = 4·(e + x), e' = -v', double root r = -2: e = 10·(1 + c·s)·e^(-2s), e'(0) = -40
		b.Is("v", 10-10*(1-2*s)*math.Exp(-2*s), 1e-11)
		b.Is("f", 500*(40-40*s)*math.Exp(-2*s), 1e-9)
	})
}

func TestALinearLoopCostsNoLaw(t *testing.T) {
	b := modeltest.New(t, "inputs: {v_ref: {unit: km/h, min: 0, max: 100}}\n"+modeltest.PlantOf(`
car: {type: mass, m: 500 kg}
v: {type: speed_sensor, flange: car}
missing: {type: sum, u: [v_ref, v], k: [1, -1]}
control: {type: pi, u: missing, k: 2000 N.s/m, T: 1 s}
drive: {type: force, flange: car, f: control}
`, "v: {speed: car}\nf: {signal: control}"), period)
	if laws := b.Tables.M - b.Tables.FirstLaw; laws != 0 {
		t.Errorf("%d laws; a linear loop belongs to the matrices", laws)
	}
}

// A limiter, a dead zone and maps have their values to rounding on both sides of their breakpoints, and
// what follows them behind an integrator has its breakpoint at the instant of the ramp.
func TestNonlinearBlocksChangeAtTheirBreakpoints(t *testing.T) {
	b := modeltest.New(t, plant(`
ramp: {type: integrator, u: u, k: 1 1/s}
limited: {type: limiter, u: ramp, uMax: 1 m/s, uMin: -0.5}
beyond: {type: dead_zone, u: ramp, uMax: 1 m/s}
map: {type: combi_table_1ds, u: ramp, table: [[-1, 3 N], [0, 1], [1, 2], [2, -4]]}
squared: {type: product, u: [ramp, ramp]}
area: {type: integrator, u: limited}
surface: {type: combi_table_2ds, u1: ramp, u2: limited, table: {u1: [0, 1, 2], u2: [0, 1], y: [[0, 1], [2, 5 W], [4, 4]]}}
ratio: {type: division, u1: ramp, u2: {sum: [limited, 2 m/s]}}
`, `
limited: {signal: limited}
beyond: {signal: beyond}
map: {signal: map}
squared: {signal: squared}
area: {signal: area}
surface: {signal: surface}
`), period)
	b.Set("u", 1)
	b.To(3, func(s float64) {
		limited := math.Min(s, 1)
		b.Is("limited", limited, 1e-12)
		b.Is("beyond", math.Max(0, s-1), 1e-12)
		want := 1 + s
		switch {
		case s > 2:
			want = -4
		case s > 1:
			want = 2 - 6*(s-1)
		}
		b.Is("map", want, 1e-11)
		b.Is("squared", s*s, 1e-12)
		area := s * s / 2
		if s > 1 {
			area = s - 0.5
		}
		b.Is("area", area, 1e-12)
		switch {
		case s <= 1: // bilinear at (s, s)
			b.Is("surface", 2*s*(1-s)+s*(1-s)+5*s*s, 1e-11)
		case s <= 2:
			b.Is("surface", 5-(s-1), 1e-11)
		default:
			b.Is("surface", 4, 1e-11)
		}
	})
}

// A switch behind a hysteresis behind a filter: the output of the plant follows the closed form, whose
// instants of switching do not lie on the grid.
func TestHysteresisSwitchesAtItsThresholds(t *testing.T) {
	b := modeltest.New(t, plant(`
hot: {type: hysteresis, u: lag, uLow: 1 m/s, uHigh: 3 m/s}
drive: {type: switch, u1: 0 m/s, u2: hot, u3: 4 m/s}
lag: {type: first_order, u: drive, T: 0.3 s}
run: {type: integrator, u: hot}
`, "lagging: {signal: lag}\nhot: {signal: hot}\nrun: {signal: run}"), period)
	up, down := 0.3*math.Log(4/1.), 0.3*math.Log(3/1.)
	again := 0.3 * math.Log(3/1.) // from 1 to 3 towards 4: (4-1)/(4-3)
	b.To(5, func(s float64) {
		want, hot, run := 4*(1-math.Exp(-s/0.3)), 0.0, 0.0
		if s > up {
			rest := math.Mod(s-up, down+again)
			full := math.Floor((s - up) / (down + again))
			want, hot, run = 3*math.Exp(-rest/0.3), 1, full*down+rest
			if rest > down {
				want, hot, run = 4-3*math.Exp(-(rest-down)/0.3), 0, (full+1)*down
			}
		}
		b.Is("lagging", want, 1e-9)
		b.Is("hot", hot, 1e-12)
		b.Is("run", run, 1e-9)
	})
}

func TestPreYStartDecidesBetweenTheThresholds(t *testing.T) {
	b := modeltest.New(t, plant(`
off: {type: hysteresis, u: u, uLow: -1 m/s, uHigh: 1 m/s}
on_: {type: hysteresis, u: u, uLow: -1 m/s, uHigh: 1 m/s, pre_y_start: true}
`, "off: {signal: off}\non_: {signal: on_}"), period)
	b.Is("off", 0, 0)
	b.Is("on_", 1, 0)
	b.Set("u", 2)
	b.To(0.02, nil).Is("off", 1, 0)
	b.Set("u", 0)
	b.To(0.04, nil).Is("off", 1, 0)
	b.Set("u", -2)
	b.To(0.06, nil).Is("off", 0, 0)
	b.Is("on_", 0, 0)
}

func TestLogicHasTheTablesOfTruth(t *testing.T) {
	b := modeltest.New(t, plant(`
fast: {type: greater, u1: u, u2: 1 m/s}
at_least: {type: greater_equal, u1: u, u2: 1 m/s}
slow: {type: less, u1: u, u2: 1 m/s}
at_most: {type: less_equal, u1: u, u2: 1 m/s}
both: {type: and, u1: fast, u2: on}
one: {type: or, u1: fast, u2: on}
either: {type: xor, u1: fast, u2: on}
neither: {type: not, u: one}
`, `
fast: {signal: fast}
at_least: {signal: at_least}
slow: {signal: slow}
at_most: {signal: at_most}
both: {signal: both}
one: {signal: one}
either: {signal: either}
neither: {signal: neither}
`), period)
	is := func(name string, want bool) {
		t.Helper()
		b.Is(name, map[bool]float64{true: 1}[want], 0)
	}
	at := 0.0
	for _, u := range []float64{0, 2, 1, 0.5, 1.5} {
		for _, on := range []bool{false, true} {
			b.Set("u", u)
			b.Set("on", map[bool]float64{true: 1}[on])
			at += 0.01
			b.To(at, nil)
			is("fast", u > 1)
			is("at_least", u >= 1)
			is("slow", u < 1)
			is("at_most", u <= 1)
			is("both", u > 1 && on)
			is("one", u > 1 || on)
			is("either", u > 1 != on)
			is("neither", !(u > 1 || on))
		}
	}
}

// Within its slopes a slew rate limiter is a first order with Td; beyond them a ramp.
func TestSlewRateLimiterRisesAndFallsAtItsSlopes(t *testing.T) {
	b := step(t, "slew: {type: slew_rate_limiter, u: u, Rising: 4 m/s2, Falling: -8 m/s2, Td: 0.02 s}", "slew: {signal: slew}")
	y := func(s, slope, to, from float64) float64 { // from a value to another one
		ramp := (to-from)/slope - 0.02
		if s <= ramp {
			return from + slope*s
		}
		return to - slope*0.02*math.Exp(-(s-ramp)/0.02)
	}
	b.To(1, func(s float64) { b.Is("slew", y(s, 4, 2, 0), 1e-9) })
	b.Set("u", -1)
	b.To(2, func(s float64) { b.Is("slew", y(s-1, -8, -1, 2), 1e-9) })
}

// In its limits a PID follows the linear closed loop; an integral without anti-windup would need as long
// to come back as it was in saturation.
func TestLimPIDHoldsItsIntegralInSaturation(t *testing.T) {
	b := modeltest.New(t, "inputs: {v_ref: {unit: m/s, min: 0, max: 100}}\n"+modeltest.PlantOf(`
car: {type: mass, m: 1 kg}
v: {type: speed_sensor, flange: car}
control: {type: lim_pid, u_s: v_ref, u_m: v, k: 4 N.s/m, Ti: 1 s, yMax: 5 N, Ni: 0.5}
drive: {type: force, flange: car, f: control}
`, "v: {speed: car}\nf: {signal: control}\nxi: {state: control.xi}"), period)
	b.Set("v_ref", 10)
	// Saturated at 5 N: v = 5·s, e = 10 - 5·s, xi' = e + (5 - 4·(e + xi))/(4·0.5) = -e - 2·xi + 2.5
	// = -7.5 + 5·s - 2·xi, so xi = a + 2.5·s + c·exp(-2s) with a = -5, c = 5.
	xi := func(s float64) float64 { return -5 + 2.5*s + 5*math.Exp(-2*s) }
	raw := func(s float64) float64 { return 4 * (10 - 5*s + xi(s)) }
	end := 0.0
	for lo, hi := 0.0, 3.0; hi-lo > 1e-14; end = (lo + hi) / 2 {
		if mid := (lo + hi) / 2; raw(mid) > 5 {
			lo = mid
		} else if hi = mid; lo == hi {
			break
		}
		if (lo+hi)/2 == lo || (lo+hi)/2 == hi {
			break
		}
	}
	// Then e'' + 4·e' + 4·e = 0: e = (p + q·s)·exp(-2s).
	e0 := 10 - 5*end
	p, q := e0, -5+2*e0
	b.To(6, func(s float64) {
		if s <= end {
			b.Is("v", 5*s, 1e-11)
			b.Is("f", 5, 1e-12)
			b.Is("xi", xi(s), 1e-10)
			return
		}
		d := s - end
		b.Is("v", 10-(p+q*d)*math.Exp(-2*d), 1e-9)
	})
}

// The derivative of a PID is that of a filter with Td/Nd; it has no effect on a constant.
func TestLimPIDDifferentiatesTheMeasuredValue(t *testing.T) {
	b := modeltest.New(t, plant(`
ramp: {type: integrator, u: u, k: 1 1/s}
control: {type: lim_pid, u_s: 0 m/s, u_m: ramp, k: 1, Td: 0.5 s, Nd: 5, yMax: 1000}
`, "y: {signal: control}"), period)
	b.Set("u", 2)
	b.To(1, func(s float64) { // v = -2·s, D = Td·v'·(1 - exp(-s/(Td/Nd)))
		b.Is("y", -2*s-0.5*2*(1-math.Exp(-s/0.1)), 1e-11)
	})
}

// The unit of a product and of a quotient waits for that of each input.
func TestUnitsDoNotDependOnTheOrderOfElements(t *testing.T) {
	lines := []string{
		"p: {type: product, u: [a, u]}", "a: {type: gain, k: 3 N.s/m, u: u}", "q: {type: division, u1: u, u2: b}",
		"b: {type: limiter, u: a, uMax: 3 N, uMin: 1 N}", "n: {type: limiter, u: {product: [a, u]}, uMax: 9, uMin: 0}",
		"s: {type: sum, u: [{product: [c, u]}, 1]}", "c: {type: first_order, u: a, T: 1 s}",
	}
	for range 2 {
		slices.Reverse(lines)
		err := modeltest.Check(plant(strings.Join(lines, "\n"), `
p: {signal: p, unit: W}
q: {signal: q, unit: s/kg}
n: {signal: n, unit: W}
s: {signal: s, unit: W}`))
		if err != nil {
			t.Errorf("%v\n%s", err, strings.Join(lines, "\n"))
		}
	}
	for _, loop := range []string{"p: {type: product, u: [a, u]}\na: {type: gain, k: 3, u: p}",
		"a: {type: gain, k: 3, u: p}\np: {type: product, u: [a, u]}"} {
		err := modeltest.Check(plant(loop, ""))
		if want := `the units in a loop of signals contradict each other`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestADefaultGainHasNoUnit(t *testing.T) {
	for block, want := range map[string]string{
		"{type: first_order, u: u, T: 1, y_start: 1 N}":            "k is missing; the units of its input and output want k in N.s/m",
		"{type: second_order, u: u, w: 1, D: 1, y_start: 1 N}":     "k is missing; the units of its input and output want k in N.s/m",
		"{type: lim_pid, u_s: u, u_m: u, yMax: 1 N}":               "k is missing; the units of its input and output want k in N.s/m",
		"{type: integrator, u: u, y_start: 1 m/s}":                 "k is missing; the units of its input and output want k in rad/s",
		"{type: integrator, u: u, y_start: 1 m}":                   "",
		"{type: integrator, u: u, k: 1 1/s, y_start: 1 m/s}":       "",
		"{type: first_order, u: u, k: 2 kg/s, T: 1, y_start: 1 N}": "",
		"{type: first_order, u: u, T: 1, y_start: 1 km/h}":         "",
	} {
		checkBlock(t, "", block, want)
	}
}

// checkBlock reads a plant with a block behind other elements. The error must contain want; "": there is none.
func checkBlock(t *testing.T, others, block, want string) {
	t.Helper()
	err := modeltest.Check(plant(others+"it: "+block, ""))
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s\ngot  %v\nwant %s", block, err, want)
	}
}

func TestTemperaturesInDegCAreNotScaled(t *testing.T) {
	const refused = "a difference of temperatures cannot be in degC; write it in K"
	for block, want := range map[string]string{
		"{type: sum, u: [T, 5 degC]}":                           refused,
		"{type: sum, u: [5 degC, T]}":                           refused,
		"{type: sum, u: [T, 5 K]}":                              "",
		"{type: sum, u: [T, 20 degC], k: [0.5, 0.5]}":           "",
		"{type: sum, u: [90 degC, T], k: [1, -1]}":              "",
		"{type: sum, u: [T, 20 degC], k: [1, 2]}":               refused,
		"{type: gain, k: 20 degC, u: on}":                       refused,
		"{type: gain, k: 20 K, u: on}":                          "",
		"{type: product, u: [20 degC, on]}":                     refused,
		"{type: product, u: [T, on]}":                           "",
		"{type: division, u1: 20 degC, u2: 2}":                  refused,
		"{type: limiter, u: {product: [20 degC, on]}, uMax: 9}": refused,
		"{type: limiter, u: {product: [20 K, on]}, uMax: 9 K}":  "",
		"{type: limiter, u: {sum: [T, 5 degC]}, uMax: 9}":       refused,
		"{type: limiter, u: {sum: [5 degC, T]}, uMax: 20 degC}": "",
		"{type: sum, u: []}":                                    "u is empty",
		"{type: first_order, u: T, T: 1 s, y_start: 20 degC}":   "",
	} {
		checkBlock(t, "T: {type: heat_capacitor, C: 1}\n", block, want)
	}
}

// The tolerance of a comparison follows from the known ranges.
func TestComparisonsTellSmallValuesApart(t *testing.T) {
	b := modeltest.New(t, "inputs: {area: {unit: m2, min: 0, max: 1e-6}}\n"+modeltest.PlantOf(`
idle: {type: inertia, J: 1}
open: {type: greater, u1: area, u2: 5e-10 m2}
`, "open: {signal: open}"), period)
	b.To(0.01, nil).Is("open", 0, 0)
	b.Set("area", 8e-10)
	b.To(0.02, nil).Is("open", 1, 0)
}

func TestATableHasTheUnitOfItsLastColumn(t *testing.T) {
	for table, want := range map[string]string{
		"[[0 m/s, 0 N], [10 m/s, 5]]": "",
		"[[0 m/s, 0], [10, 5 N]]":     "",
		"[[0 N, 0], [10, 5 N]]":       `element "map": table: "0 N": unit N does not fit, m/s is wanted`,
		"[[0 m/s, 0], [10, 5]]":       `output "map": unit "kN" (kg.m/s2) does not fit "1" (1)`,
		"[[0 m/s, 0 N], [10, 5 W]]":   `element "map": table: "5 W": unit W does not fit, N is wanted`,
	} {
		err := modeltest.Check(plant("map: {type: combi_table_1ds, u: u, table: "+table+"}", "map: {signal: map, unit: kN}"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", table, err, want)
		}
	}
}

func TestUnitsAreCheckedThroughBlocks(t *testing.T) {
	base := plant(`
lag: {type: first_order, u: u, T: 1 s}
force: {type: gain, k: 3 N.s/m, u: lag}
loop: {type: integrator, u: {sum: [u, {product: [-1 1/s, loop]}]}}
share: {type: limiter, u: {product: [0.5 s/m, {sum: [u, {product: [-1, lag]}]}]}, uMax: 1}
push: {type: force, flange: sled, f: force}
sled: {type: mass, m: 1 kg}
both: {type: sum, u: [u, lag]}
more: {type: switch, u1: u, u2: on, u3: lag}
steep: {type: division, u1: u, u2: {sum: [share, 2]}}
`, `
way: {signal: loop, unit: km}
share: {signal: share}
both: {signal: both, unit: km/h}
more: {signal: more, unit: km/h}
steep: {signal: steep, unit: km/h}
`)
	if err := modeltest.Check(base); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"k: 3 N.s/m", "k: 3", `element "push": f: signal "force" is in m/s; N is wanted`},
		{"uMax: 1", "uMax: «1 m/s»", `element "share": uMax: "1 m/s": unit m/s does not fit, 1 is wanted`},
		{"[u, lag]", "[u, «force»]", `element "both": u2: signal "force" is in N; m/s is wanted`},
		{"T: 1 s}", "T: «1 m»}", `element "lag": T: "1 m": unit m does not fit, s is wanted`},
		{"T: 1 s}", "T: «0»}", `element "lag": T 0 s is not positive (time constant)`},
		{"u3: lag", "u3: «force»", `element "more": u3: signal "force" is in N; m/s is wanted`},
		{"{sum: [share, 2]}", "«share»", `element "steep": u2 may be 0; divide by an input whose min and max exclude 0, or by a limiter`},
		{"{sum: [share, 2]}", "«0»", `element "steep": u2 may be 0`},
		{"{sum: [share, 2]}", "«{constant: 0}»", `element "steep": u2 may be 0`},
		{"{sum: [share, 2]}", "«{product: [0, share]}»", `element "steep": u2 may be 0`},
		{"u1: u, u2: {sum: [share, 2]}", "u1: 0 m/s, u2: «share»", `element "steep": u2 may be 0`},
		{"[u, lag]", "«[u, lag], k: [1]»", `element "both": 1 factors k for 2 inputs u; one for each is wanted`},
	} {
		t.Run(c.new, func(t *testing.T) {
			text := strings.Replace(base, c.old, c.new, 1)
			plain, _ := modeltest.CutMarks(text)
			if err := modeltest.Check(plain); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// required holds an element of each type with its required keys, separated by semicolons.
var required = map[string]string{
	"gain": "k: 1; u: u", "sum": "u: [u, u]", "integrator": "u: u", "first_order": "u: u; T: 1",
	"second_order": "u: u; w: 1; D: 1", "derivative": "u: u; T: 1", "pi": "u: u; T: 1", "product": "u: [u, u]",
	"division": "u1: u; u2: 1", "limiter": "u: u; uMax: 1", "dead_zone": "u: u; uMax: 1",
	"slew_rate_limiter": "u: u; Rising: 1; Td: 1", "combi_table_1ds": "u: u; table: [[0, 0], [1, 1]]",
	"combi_table_2ds": "u1: u; u2: u; table: {u1: [0, 1], u2: [0, 1], y: [[0, 0], [0, 1]]}",
	"lim_pid":         "u_s: u; u_m: u; yMax: 1 m/s", "switch": "u1: u; u2: on; u3: u", "hysteresis": "u: u; uLow: -1; uHigh: 1",
	"not": "u: on", "and": "u1: on; u2: on", "or": "u1: on; u2: on", "xor": "u1: on; u2: on", "greater": "u1: u; u2: 1",
	"greater_equal": "u1: u; u2: 1", "less": "u1: u; u2: 1", "less_equal": "u1: u; u2: 1",
	"sampler": "u: u", "zero_order_hold": "u: u", "unit_delay": "u: u", "discrete_transfer_function": "u: u; b: [1]; a: [1, 0.5]",
	"fixed_delay": "u: u; delayTime: 20 ms", "heat_capacitor": "C: 1", "thermal_conductor": "port_a: cup; port_b: 300 K; G: 1",
	"thermal_resistor": "port_a: cup; port_b: 300 K; R: 1", "convection": "solid: cup; fluid: 300 K; Gc: 1",
	"body_radiation": "port_a: cup; port_b: 300 K; Gr: 1", "prescribed_heat_flow": "port: cup; Q_flow: 1",
}

func TestEachRequiredKeyIsRequired(t *testing.T) {
	for _, k := range slices.Concat(signal.Kinds(), thermal.Kinds()) {
		keys := strings.Split(required[k.Name], "; ")
		check := func(keys []string) error {
			return modeltest.Check(plant("cup: {type: heat_capacitor, C: 1}\nit: {type: "+k.Name+", "+strings.Join(keys, ", ")+"}", ""))
		}
		if err := check(keys); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		for _, p := range k.Parameters {
			i := slices.IndexFunc(keys, func(entry string) bool { return strings.HasPrefix(entry, p.Key+": ") })
			if need := p.Default == ""; need != (i >= 0) {
				t.Errorf("%s: the test gives %s: %v, the type requires it: %v", k.Name, p.Key, i >= 0, need)
			} else if need {
				err := check(slices.Delete(slices.Clone(keys), i, i+1))
				if want := k.Name + " needs " + p.Key; err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s without %s: got %v, want %s", k.Name, p.Key, err, want)
				}
			}
		}
	}
}
