package kernel

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
	"lockstep/model/units"
)

// eachStepping runs a check in both schemes and with every way to step a plant, on a grid of 10 ms.
func eachStepping(t *testing.T, system func() *model.System, fact func(name string, k *run)) {
	t.Helper()
	for _, scheme := range bothSchemes {
		for name, opt := range map[string]Options{"dense": {Stepping: Dense}, "in place": {Memory: 1, Stepping: Dense}, "sparse": {Stepping: Sparse}} {
			opt.Period, opt.Scheme = ms(10), scheme
			fact(fmt.Sprintf("%s, %s", scheme, name), start(t, system(), opt))
		}
	}
}

// showSignal adds an output for signal j.
func showSignal(s *model.System, j int) {
	row := make([]float64, len(s.Signals))
	row[j] = 1
	s.Outputs = append(s.Outputs, units.Port{Name: "signal", Unit: "1"})
	s.C, s.D, s.Dc = append(s.C, make([]float64, len(s.X0))...), append(s.D, row...), append(s.Dc, make([]float64, len(s.Frictions))...)
}

// operations is a program of operations on the arguments x0, x1 and so on: a code, "push" values as
// numbers, and operands as model.Op.
func operations(args int, ops ...any) model.Program {
	p := model.Program{}
	for a := range args {
		row := make([]float64, args)
		row[a] = 1
		p.Args, p.Slopes = append(p.Args, model.Functional{Row: row}), append(p.Slopes, 0)
	}
	for _, op := range ops {
		switch op := op.(type) {
		case string: // "x1": argument 1
			p.Ops = append(p.Ops, model.Op{Code: model.Arg, Index: int(op[1] - '0')})
		case float64:
			p.Ops = append(p.Ops, model.Op{Code: model.Push, Value: op})
		case model.Code:
			p.Ops = append(p.Ops, model.Op{Code: op})
		case model.Op:
			p.Ops = append(p.Ops, op)
		}
	}
	return p
}

func TestEachOperationOfALawHasItsValue(t *testing.T) {
	look := func(i int) model.Op { return model.Op{Code: model.Look, Index: i} }
	tables := []model.Table{
		{X: []float64{-1, 0, 2, 5, 6}, Z: []float64{4, 1, 3, -3, 0}},
		{X: []float64{-1, 0, 2, 5, 6}, Z: []float64{4, 1, 3, -3, 0}, Extend: true},
		{X: []float64{3}, Z: []float64{7}},
		{X: []float64{0, 2}, Y: []float64{0, 1, 4}, Z: []float64{1, 2, 5, 3, 8, 2}},
		{X: []float64{0, 2}, Y: []float64{0, 1, 4}, Z: []float64{1, 2, 5, 3, 8, 2}, Extend: true},
	}
	op := func(c model.Code, i int) model.Op { return model.Op{Code: c, Index: i} }
	for i, c := range []struct {
		x    []float64
		ops  []any
		want float64
	}{
		{[]float64{3, 5}, []any{"x0", "x1", model.Add}, 8}, {[]float64{3, 5}, []any{"x0", "x1", model.Sub}, -2},
		{[]float64{3, 5}, []any{"x0", "x1", model.Mul}, 15}, {[]float64{3, 5}, []any{"x0", "x1", model.Div}, 0.6},
		{[]float64{3, 0}, []any{"x0", "x1", model.Div}, 0}, {[]float64{3, 5}, []any{"x0", "x1", model.Min}, 3}, {[]float64{3, 5}, []any{"x0", "x1", model.Max}, 5},
		{[]float64{3}, []any{"x0", model.Neg}, -3}, {[]float64{-3}, []any{"x0", model.Abs}, 3},
		{[]float64{-3}, []any{"x0", model.Sign}, -1}, {[]float64{0}, []any{"x0", model.Sign}, 0}, {[]float64{2}, []any{"x0", model.Sign}, 1},
		{[]float64{9}, []any{"x0", model.Sqrt}, 3}, {[]float64{-9}, []any{"x0", model.Sqrt}, 0},
		{[]float64{0.5}, []any{"x0", model.Exp}, math.Exp(0.5)}, {[]float64{0.5}, []any{"x0", model.Atan}, math.Atan(0.5)},
		{[]float64{0.5}, []any{"x0", model.Sin}, math.Sin(0.5)}, {[]float64{0.5}, []any{"x0", model.Cos}, math.Cos(0.5)},
		{[]float64{2, 3, 7}, []any{"x0", "x1", "x2", model.Sub, model.Mul, 10.0, model.Add}, 2},
		{[]float64{0, 3, 5}, []any{7.0, "x0", "x1", "x2", model.Choose, model.Add}, 10}, {[]float64{-1, 3, 5}, []any{7.0, "x0", "x1", "x2", model.Choose, model.Add}, 12},
		{[]float64{-4}, []any{"x0", look(0)}, 4}, {[]float64{-0.5}, []any{"x0", look(0)}, 2.5}, {[]float64{0}, []any{"x0", look(0)}, 1},
		{[]float64{1.5}, []any{"x0", look(0)}, 2.5}, {[]float64{3}, []any{"x0", look(0)}, 1}, {[]float64{5.5}, []any{"x0", look(0)}, -1.5}, {[]float64{9}, []any{"x0", look(0)}, 0},
		{[]float64{-4}, []any{"x0", look(1)}, 13}, {[]float64{9}, []any{"x0", look(1)}, 9}, {[]float64{3}, []any{"x0", look(1)}, 1},
		{[]float64{-4}, []any{"x0", look(2)}, 7}, {[]float64{9}, []any{"x0", look(2)}, 7},
		{[]float64{1, 0.5}, []any{"x0", "x1", op(model.Look2, 3)}, 3.5}, {[]float64{2, 3}, []any{"x0", "x1", op(model.Look2, 3)}, 4}, {[]float64{0.5, 2.5}, []any{"x0", "x1", op(model.Look2, 3)}, 0.75*3.5 + 0.25*5},
		{[]float64{-1, 9}, []any{"x0", "x1", op(model.Look2, 3)}, 5}, {[]float64{-1, 0}, []any{"x0", "x1", op(model.Look2, 4)}, 0}, {[]float64{0, 5}, []any{"x0", "x1", op(model.Look2, 4)}, 6}, {[]float64{3, 5}, []any{"x0", "x1", op(model.Look2, 4)}, -3},
		{[]float64{3}, []any{"x0", 1.0, op(model.Line, 0)}, 4}, {[]float64{3}, []any{"x0", 2.0, op(model.Line, 0)}, 1}, {[]float64{0}, []any{"x0", 3.0, op(model.Line, 0)}, -18},
		{[]float64{0.5, 2.5}, []any{"x0", 0.0, "x1", 0.0, op(model.Patch, 3)}, 0.75*3.5 + 0.25*15.5}, {[]float64{0.5, 2.5}, []any{"x0", 0.0, "x1", 1.0, op(model.Patch, 3)}, 0.75*3.5 + 0.25*5},
	} {
		for _, stepping := range []Stepping{Dense, Sparse} {
			r := rig{J: make([]float64, len(c.x)), X0: c.x}
			for b := range r.J {
				r.J[b] = 1
			}
			sys, law := r.system(), operations(len(c.x), c.ops...)
			law.Tables = tables
			addLaw(sys, law, nil)
			showSignal(sys, 0)
			k := start(t, sys, Options{Period: ms(10), Stepping: stepping})
			for range 2 { // at the start and after a step
				if got := k.y[len(c.x)]; !scalar.EqualWithinAbs(got, c.want, 1e-14) {
					t.Errorf("case %d, %s, x = %g: %.15g, want %.15g", i, stepping, c.x, got, c.want)
				}
				k.step()
			}
		}
	}
}

// A law of the speed alone has a closed form: exponential for a proportional one, hyperbolic for a
// square.
func TestLawsOfTheSpeedFollowTheirClosedForms(t *testing.T) {
	const J, w0 = 2.0, 5.0
	for _, c := range []struct {
		name string
		law  model.Program
		want func(t float64) float64
	}{
		{"proportional", proportional(-3, 1), func(t float64) float64 { return w0 * math.Exp(-3/J*t) }},
		{"square", operations(1, "x0", "x0", model.Abs, model.Mul, -0.7, model.Mul), func(t float64) float64 { return w0 / (1 + w0*0.7/J*t) }},
		{"root", operations(1, "x0", model.Sqrt, -1.0, model.Mul), func(t float64) float64 { s := math.Sqrt(w0) - t/(2*J); return s * s }},
		{"constant", operations(1, -1.5), func(t float64) float64 { return w0 - 1.5/J*t }},
	} {
		c.law.Slopes = []float64{8}[:len(c.law.Args)]
		system := func() *model.System {
			sys := rig{J: []float64{J}, X0: []float64{w0}}.system()
			addLaw(sys, c.law, map[int]float64{0: 1 / J})
			return sys
		}
		eachStepping(t, system, func(name string, k *run) {
			follow(t, c.name+", "+name, k, 2, 1e-8, c.want)
			if k.Unconverged() != 0 {
				t.Errorf("%s, %s: %d substeps have not converged", c.name, name, k.Unconverged())
			}
		})
	}
}

// A law reads a ramp, a sine and a command: the speed is the integral of their sum.
func TestLawsReadSourcesAndCommands(t *testing.T) {
	const J = 2.0
	system := func() *model.System {
		sys := rig{J: []float64{J, 1, 1, 1}, X0: []float64{0, 0, 0, 0}, Torques: []torque{{1, table(0, 1, 10, 21)}, {2, sine(3, 1.7, 0.4)}, {3, always(0)}}}.system()
		addLaw(sys, model.Program{
			Args:   []model.Functional{{Row: make([]float64, 4), Signal: []int{0, 1, 2}, Coef: []float64{0.5, 2, -3}, Const: 0.25}},
			Slopes: []float64{0}, Ops: []model.Op{{Code: model.Arg}},
		}, map[int]float64{0: 1 / J})
		return sys
	}
	eachStepping(t, system, func(name string, k *run) {
		k = start(t, system(), Options{Period: ms(10), Scheme: k.t.Scheme, Stepping: map[bool]Stepping{true: Sparse, false: Dense}[k.t.Sparse != nil], Driven: []bool{false, false, true}})
		commands, omega := 0.0, 2*math.Pi*1.7
		for i := range 120 {
			k.u[2] = float64(i % 5)
			commands += k.u[2] * k.h
			k.step()
			now := float64(k.tick) * k.h
			want := (0.5*(now+now*now) + 2*3/omega*(math.Cos(0.4)-math.Cos(omega*now+0.4)) - 3*commands + 0.25*now) / J
			if !scalar.EqualWithinAbs(k.y[0], want, 1e-7) {
				t.Fatalf("%s: w(%g s) = %.15g, want %.15g", name, now, k.y[0], want)
			}
		}
	})
}

// The torque of a law is 4 above 1 rad/s and 1 below: the speed has its kink at an instant off the grid.
func TestLawChangesItsSideAtTheInstantOfItsIndicator(t *testing.T) {
	const J, w0 = 2.0, 3.0
	for _, use := range []string{"side", "if"} {
		system := func() *model.System {
			sys := rig{J: []float64{J}, X0: []float64{w0}}.system()
			above := model.Program{Args: []model.Functional{{Row: []float64{1}, Const: -1.0003}}, Slopes: []float64{1}, Ops: []model.Op{{Code: model.Arg}}}
			sys.Guards = append(sys.Guards, above)
			law := operations(0, -2.5, model.Op{Code: model.Side}, -1.5, model.Mul, model.Add)
			if use == "if" {
				law = operations(0, -4.0, -1.0, model.Op{Code: model.If})
			}
			addLaw(sys, law, map[int]float64{0: 1 / J})
			return sys
		}
		kink := (w0 - 1.0003) * J / 4
		eachStepping(t, system, func(name string, k *run) {
			follow(t, use+", "+name, k, 3, 1e-9, func(t float64) float64 {
				if t < kink {
					return w0 - 4/J*t
				}
				return 1.0003 - (t-kink)/J
			})
		})
	}
}

// An indicator reads a sine of 7 Hz. A substep is shorter than its period. The law acts while the sine is
// above 0.3.
func TestIndicatorFollowsASine(t *testing.T) {
	const J, f, level = 2.0, 7.0, 0.3
	system := func() *model.System {
		sys := rig{J: []float64{J, 1}, X0: []float64{0, 0}, Torques: []torque{{1, sine(1, f, 0)}}}.system()
		sys.Guards = append(sys.Guards, model.Program{
			Args: []model.Functional{{Row: make([]float64, 2), Signal: []int{0}, Coef: []float64{1}, Const: -level}}, Slopes: []float64{0}, Ops: []model.Op{{Code: model.Arg}},
		})
		addLaw(sys, operations(0, 5.0, 0.0, model.Op{Code: model.If}), map[int]float64{0: 1 / J})
		return sys
	}
	rises, falls := math.Asin(level)/(2*math.Pi*f), 0.5/f-math.Asin(level)/(2*math.Pi*f)
	eachStepping(t, system, func(name string, k *run) {
		follow(t, name, k, 2, 1e-8, func(t float64) float64 {
			whole := math.Floor(t * f)
			rest := t - whole/f
			return 5 / J * (whole*(falls-rises) + max(0, min(rest, falls)-rises))
		})
	})
}

// An indicator reads a ramp less a sine, s·(t - t0) - 0.9·s/rate·sin(rate·(t - t0)), which bends upwards
// where it passes zero: the law acts from t0 on, late in a step, and the speed is 5/J·(t - t0).
func TestIndicatorPassesARampWithASineAtItsZero(t *testing.T) {
	const J, f, s, t0 = 2.0, 7.0, 30.0, 0.1594
	rate := 2 * math.Pi * f
	system := func() *model.System {
		wave := total(table(0, -s*t0, 1, s*(1-t0)), sine(-0.9*s/rate, f, -rate*t0))
		sys := rig{J: []float64{J, 1}, X0: []float64{0, 0}, Torques: []torque{{1, wave}}}.system()
		sys.Guards = append(sys.Guards, model.Program{
			Args: []model.Functional{{Row: make([]float64, 2), Signal: []int{0}, Coef: []float64{1}}}, Slopes: []float64{0}, Ops: []model.Op{{Code: model.Arg}},
		})
		addLaw(sys, operations(0, 5.0, 0.0, model.Op{Code: model.If}), map[int]float64{0: 1 / J})
		return sys
	}
	eachStepping(t, system, func(name string, k *run) {
		follow(t, name, k, 0.3, 1e-9, func(t float64) float64 { return 5 / J * max(0, t-t0) })
	})
}

// The capacity of a brake is a law of the speed of a second body, which rises through 0 at 0.1013 s:
// the brake engages there, and stops the first body where its impulse is J·w0.
func TestCapacityOfALawBeginsAtItsZero(t *testing.T) {
	const J, w0, rise, t0 = 2.0, 3.0, 40.0, 0.1013
	stop := t0 + math.Sqrt(2*J*w0/rise)
	system := func() *model.System {
		r := rig{
			J: []float64{J, 0.5}, X0: []float64{w0, -rise * t0}, Frictions: []contact{{W: []float64{1, 0}, K: always(0)}},
			Torques: []torque{{1, always(0.5 * rise)}},
		}
		sys := r.system()
		addLaw(sys, proportional(1, 0, 1), nil)
		sys.Frictions[0].Signal = 2
		return sys
	}
	eachStepping(t, system, func(name string, k *run) {
		follow(t, name, k, 1, 1e-8, func(t float64) float64 {
			s := max(0, min(t, stop)-t0)
			return w0 - rise*s*s/(2*J)
		})
		if k.modeOf(0) != Stuck || k.transOut() != 2 {
			t.Errorf("%s: mode %d after %g transitions, want locked after 2", name, k.modeOf(0), k.transOut())
		}
	})
	eachStepping(t, system, func(name string, k *run) {
		expect(t, name, k, 1, 1e-7, transition{t0, 0, Free, Forward}, transition{stop, 0, Forward, Stuck})
	})
}

// A law reads the torque of a brake and gives a tenth of it to another body: its speed is a tenth of the
// impulse of the brake, which is that of the load once the brake has locked.
func TestLawReadsTheTorqueOfABrake(t *testing.T) {
	const J, w0, K, load = 2.0, 3.0, 8.0, 2.0
	stop := J * w0 / (K - load)
	system := func() *model.System {
		sys := rig{
			J: []float64{J, 1}, X0: []float64{w0, 0}, Frictions: []contact{{W: []float64{1, 0}, K: always(K)}}, Torques: []torque{{0, always(load)}},
		}.system()
		addLaw(sys, model.Program{
			Args: []model.Functional{{Row: []float64{0, 0}, Tau: []float64{0.1}}}, Slopes: []float64{0}, Ops: []model.Op{{Code: model.Arg}},
		}, map[int]float64{1: 1})
		return sys
	}
	eachStepping(t, system, func(name string, k *run) {
		for range 200 {
			k.step()
			now := float64(k.tick) * k.h
			want := 0.1 * (K*min(now, stop) + load*max(0, now-stop))
			if !scalar.EqualWithinAbs(k.y[1], want, 1e-9) || !scalar.EqualWithinAbs(k.y[0], w0-(K-load)/J*min(now, stop), 1e-9) {
				t.Fatalf("%s: at %g s %.15g and %.15g rad/s, want %.15g of the second", name, now, k.y[0], k.y[1], want)
			}
		}
	})
}

// bilinear is a body on a spring of one stiffness for positive deflections and another for negative.
func bilinear(J, up, down, v0 float64) *model.System {
	sys := rig{J: []float64{J}, X0: []float64{v0, 0}, Springs: []spring{{-1, 0, 0, 0}}}.system()
	sys.Switches = []model.Switch{{Name: "k", Row: []float64{0, 1}, Borders: []float64{0}}}
	sys.Signals = append(sys.Signals, model.Signal{Name: "k", Affine: &model.Affine{Slope: []float64{down, up}, Offset: []float64{0, 0}}})
	sys.B, sys.D = []float64{-1 / J, 0}, make([]float64, 2)
	return sys
}

// Each half swing is half a sine of the stiffness of its side.
func TestSpringWithTwoStiffnessesSwingsInHalfSines(t *testing.T) {
	const J, up, down, v0 = 2.0, 900.0, 150.0, 3.0
	w1, w2 := math.Sqrt(up/J), math.Sqrt(down/J)
	half1, half2 := math.Pi/w1, math.Pi/w2
	eachStepping(t, func() *model.System { return bilinear(J, up, down, v0) }, func(name string, k *run) {
		for range 300 {
			k.step()
			now := float64(k.tick) * k.h
			rest := math.Mod(now, half1+half2)
			v, q, region := v0*math.Cos(w1*rest), v0/w1*math.Sin(w1*rest), 1.0
			if rest > half1 {
				rest -= half1
				v, q, region = -v0*math.Cos(w2*rest), -v0/w2*math.Sin(w2*rest), 0
			}
			if !scalar.EqualWithinAbs(k.y[0], v, 1e-8) || !scalar.EqualWithinAbs(k.y[1], q, 1e-9) {
				t.Fatalf("%s: at %g s %.15g rad/s, %.15g rad; want %.15g, %.15g", name, now, k.y[0], k.y[1], v, q)
			}
			if got := k.y[2]; !(math.Abs(q) <= 1e-6 || got == region) {
				t.Fatalf("%s: at %g s, %g rad the spring is in region %g, want %g", name, now, q, got, region)
			}
		}
	})
}

// A body falls on a stop with restitution e: the speed after each impact is e times that before it, and
// the time to the next one 2·v/g.
func TestBodyReboundsFromAStopAtTheInstantsOfItsFlights(t *testing.T) {
	const J, g, height, e = 2.0, 9.0, 0.5, 0.8
	for _, sign := range []float64{1, -1} {
		system := func() *model.System {
			r := rig{
				J: []float64{J}, X0: []float64{0, sign * (height + 0.2)}, Springs: []spring{{-1, 0, 0, 0}},
				Frictions: []contact{{W: []float64{sign}, K: always(0)}}, Torques: []torque{{0, always(-sign * g * J)}},
			}
			sys := r.system()
			sys.Frictions[0].OneWay = true
			sys.Frictions[0].Gap = &model.Gap{State: 1, Sign: sign, Limit: sign * 0.2, Restitution: e}
			return sys
		}
		fall := math.Sqrt(2 * height / g)
		eachStepping(t, system, func(name string, k *run) {
			for range 160 {
				k.step()
				now := float64(k.tick) * k.h
				v, above := -g*now, height-g*now*now/2
				if now > fall {
					at, speed := now-fall, e*g*fall
					for at > 2*speed/g {
						at, speed = at-2*speed/g, e*speed
					}
					v, above = speed-g*at, speed*at-g*at*at/2
				}
				if !scalar.EqualWithinAbs(k.y[0], sign*v, 1e-8) || !scalar.EqualWithinAbs(k.y[1], sign*(above+0.2), 1e-9) {
					t.Fatalf("%s, sign %g: at %g s %.12g rad/s, %.12g rad; want %.12g, %.12g", name, sign, now, k.y[0], k.y[1], sign*v, sign*(above+0.2))
				}
			}
		})
	}
}

// A body that is pushed against a stop without restitution stays on it until the push turns, at 1.0037 s.
func TestBodyOnAStopLeavesItWhenThePushTurns(t *testing.T) {
	const J, v0, turn = 2.0, -3.0, 1.0037
	fall := 0.2003 // s, from 0.6009 rad at 3 rad/s
	system := func() *model.System {
		r := rig{
			J: []float64{J}, X0: []float64{v0, 0.6009}, Springs: []spring{{-1, 0, 0, 0}},
			Frictions: []contact{{W: []float64{1}, K: always(0)}}, Torques: []torque{{0, table(0.3, 0, 0.3, -4*(turn-0.3), 0.3+2*(turn-0.3), 4*(turn-0.3))}},
		}
		sys := r.system()
		sys.Frictions[0].OneWay = true
		sys.Frictions[0].Gap = &model.Gap{State: 1, Sign: 1}
		return sys
	}
	eachStepping(t, system, func(name string, k *run) {
		for range 150 {
			k.step()
			now := float64(k.tick) * k.h
			v, q, tau := v0, 0.6009+v0*now, 0.0
			if now > fall {
				v, q = 0, 0
				if now > 0.3-1e-9 && now < turn {
					tau = 4 * (turn - now)
				}
			}
			if now > turn {
				s := now - turn
				v, q = s*s, s*s*s/3
			}
			if !scalar.EqualWithinAbs(k.y[0], v, 1e-8) || !scalar.EqualWithinAbs(k.y[1], q, 1e-9) || !scalar.EqualWithinAbs(math.Abs(k.tauOf(0)), tau, 1e-8) {
				t.Fatalf("%s: at %g s %.12g rad/s, %.12g rad, %.12g N·m; want %.12g, %.12g, %.12g", name, now, k.y[0], k.y[1], k.tauOf(0), v, q, tau)
			}
		}
	})
}

// A plant of finite but huge commands and inertias moves; a command that is not finite stops it.
func TestLargestFiniteCommandIsTaken(t *testing.T) {
	for _, u := range []float64{math.MaxFloat64, -math.MaxFloat64} {
		k := start(t, rig{J: []float64{1e300}, Torques: []torque{{0, always(0)}}}.system(), Options{Period: ms(10), Driven: []bool{true}})
		k.u[0] = u
		k.step()
		if want := u / 1e300 * 0.01; k.faultOut() != 0 || !scalar.EqualWithinRel(k.y[0], want, 1e-12) {
			t.Errorf("a command of %g N·m: %g rad/s, fault %g; want %g", u, k.y[0], k.faultOut(), want)
		}
		k.u[0] = 2 * u
		if k.step(); k.faultOut() != 1 {
			t.Errorf("a command of %g N·m: fault %g, want 1", k.u[0], k.faultOut())
		}
	}
}

// A brake and the drag of a square law stop a body: J·w' = -K - c·w² reaches zero inside a step.
func TestBrakeBesideALawLocksAtItsInstant(t *testing.T) {
	const J, w0, K, c = 2.0, 40.0, 30.0, 0.9
	stop := J / math.Sqrt(K*c) * math.Atan(w0*math.Sqrt(c/K))
	law := operations(1, "x0", "x0", model.Abs, model.Mul, -c, model.Mul)
	law.Slopes = []float64{2 * c * w0}
	system := func() *model.System {
		sys := rig{J: []float64{J}, X0: []float64{w0}, Frictions: []contact{{W: []float64{1}, K: always(K)}}}.system()
		addLaw(sys, law, map[int]float64{0: 1 / J})
		return sys
	}
	eachStepping(t, system, func(name string, k *run) {
		expect(t, name, k, 1, 1e-6, transition{stop, 0, Forward, Stuck})
		if !scalar.EqualWithinAbs(k.y[0], 0, 1e-15) {
			t.Errorf("%s: locked, and w = %g rad/s", name, k.y[0])
		}
	})
}

// A brake and a drag of the size of the speed stop a body: J·w' = -K - c·w until w = 0, where the drag
// has its corner. It is not evaluated beyond.
func TestBrakeBesideALawWithACornerAtRestLocksAtItsInstant(t *testing.T) {
	const J, w0, K, c = 2.0, 4.0, 30.0, 6.0
	stop := J / c * math.Log1p(c*w0/K)
	law := operations(1, "x0", model.Abs, -c, model.Mul)
	law.Slopes = []float64{c}
	system := func() *model.System {
		sys := rig{J: []float64{J}, X0: []float64{w0}, Frictions: []contact{{W: []float64{1}, K: always(K)}}}.system()
		addLaw(sys, law, map[int]float64{0: 1 / J})
		return sys
	}
	eachStepping(t, system, func(name string, k *run) {
		expect(t, name, k, 0.5, 1e-6, transition{stop, 0, Forward, Stuck})
	})
}

// Below rest, where the brake never lets the body go, the drag would be 1e5 times as steep as declared. An
// event early in a step of a plant stepped sparse is located before the laws are solved beyond it.
func TestLawThatIsSteepBeyondAnEventIsNotSolvedThere(t *testing.T) {
	const J, K, c, stop = 2.0, 30.0, 6.0, 0.2015
	law := operations(1, "x0", 0.0, model.Max, -c, model.Mul, "x0", 0.0, model.Min, -1e6, model.Mul, model.Add)
	law.Slopes = []float64{c}
	system := func() *model.System {
		r := rig{J: []float64{J}, X0: []float64{K / c * math.Expm1(c*stop/J)}, Frictions: []contact{{W: []float64{1}, K: always(K)}}}
		sys := r.system()
		addLaw(sys, law, map[int]float64{0: 1 / J})
		return sys
	}
	eachStepping(t, system, func(name string, k *run) {
		expect(t, name, k, 0.5, 1e-6, transition{stop, 0, Forward, Stuck})
		if n := k.Unconverged(); k.t.Sparse != nil && n != 0 {
			t.Errorf("%s: %d substeps have not converged", name, n)
		}
	})
}

// A capacity that is a law begins at the zero of the law: inside of a tick, at its end, and at the start.
func TestCapacityOfALawOfASpeedBeginsAtItsZero(t *testing.T) {
	for _, zero := range []float64{0.5003, 0.5, 0} {
		system := func() *model.System {
			sys := pressedByASpeed()
			sys.X0[1] = -zero
			return sys
		}
		eachStepping(t, system, func(name string, k *run) {
			for range 100 {
				k.step()
				on := max(0, float64(k.tick)*k.h-zero)
				if want := 5 - 6./2*on*on/2; !scalar.EqualWithinAbs(k.y[0], want, 1e-9) {
					t.Fatalf("%s, zero at %g s: at tick %d %.15g rad/s, want %.15g", name, zero, k.tick, k.y[0], want)
				}
			}
		})
	}
}

// An event indicator with several borders goes to the side of its value, and from the end of a side to the
// one beyond the nearer border.
func TestIndicatorLeavesItsSideAtTheNearerBorder(t *testing.T) {
	k := &Kernel{t: &Tables{Indicators: []model.Program{{Borders: []float64{1, 2, 4}}, {}}}}
	for _, c := range []struct{ side, v, want float64 }{
		{0, 0.9, 1}, {0, 1.5, 1}, {0, 9, 3}, {1, 1.1, 0}, {1, 1.9, 2}, {1, 0.5, 0}, {1, 5, 3}, {2, 2.5, 1}, {2, 3.5, 3}, {3, 4.1, 2}, {3, 1.5, 1},
	} {
		k.plantState.side = []float64{c.side, 0}
		if got := k.sideBeyond(0, c.v); got != c.want {
			t.Errorf("from side %g at %g to side %g, want %g", c.side, c.v, got, c.want)
		}
	}
	for _, side := range []float64{-1, 1} {
		k.plantState.side = []float64{0, side}
		if got := k.sideBeyond(1, 0); got != -side {
			t.Errorf("from side %g to side %g, want the other", side, got)
		}
	}
}

// A spring that changes its stiffness at a deflection of 0 is pushed there, and pulled back, in less than a
// substep. A step of the whole swing gives the motion of many short steps.
func TestRegionThatIsEnteredAndLeftInOneStepActs(t *testing.T) {
	const J, c = 2.0, 800.0
	for _, side := range []float64{1, -1} {
		swing := func(h float64) float64 {
			sys := rig{J: []float64{J}, X0: []float64{-0.25 * side, 0.002 * side}, Springs: []spring{{-1, 0, 0, 0}},
				Torques: []torque{{0, always(10 * J * side)}}}.system()
			stiff := []float64{c, 0}
			if side < 0 {
				stiff = []float64{0, c}
			}
			sys.Switches = []model.Switch{{Name: "k", Row: []float64{0, 1}, Borders: []float64{0}}}
			sys.Signals = append(sys.Signals, model.Signal{Name: "k", Affine: &model.Affine{Slope: stiff, Offset: []float64{0, 0}}})
			sys.B, sys.D = []float64{1 / J, -1 / J, 0, 0}, make([]float64, 4)
			k := start(t, sys, Options{Period: period(h), Driven: []bool{false}})
			for range int(math.Round(0.05 / h)) {
				k.step()
			}
			return k.y[0]
		}
		want := swing(0.05 / 64)
		if got := swing(0.05); !scalar.EqualWithinAbs(got, want, 1e-6) || scalar.EqualWithinAbs(want, 0.25*side, 1e-3) {
			t.Errorf("side %g: %.9g rad/s after one step, want %.9g", side, got, want)
		}
	}
}
