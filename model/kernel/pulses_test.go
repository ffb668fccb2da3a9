package kernel

import (
	"math"
	"sort"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
	"lockstep/model/units"
)

// sensed is a rig with a sensor on the angle of each body: the deflection of a spring of zero
// stiffness to ground. These states come last, and so do their outputs.
func (r rig) sensed(sensors ...model.Pulses) *model.System {
	nb, springs := len(r.J), len(r.Springs)
	for i := range nb {
		r.Springs = append(r.Springs, spring{-1, i, 0, 0})
	}
	s := r.system()
	n, m, mc := len(s.X0), len(s.Signals), len(s.Frictions)
	for i, d := range sensors {
		d.Output, d.State = len(s.Outputs), nb+springs+i
		s.Pulses = append(s.Pulses, d)
		for range 3 {
			s.Outputs = append(s.Outputs, units.Port{Name: "p", Unit: "1"})
			s.C, s.D, s.Dc = append(s.C, make([]float64, n)...), append(s.D, make([]float64, m)...), append(s.Dc, make([]float64, mc)...)
		}
	}
	return s
}

// gives returns the three outputs of sensor i.
func (r *run) gives(i int) (count, age, period float64) {
	at := r.t.Pulses[i].Output
	return r.y[at], r.y[at+1], r.y[at+2]
}

// edgeTimes returns the instants up to until at which phi passes an edge of d, by bisection of the
// closed form. phi reverses at the given times only.
func edgeTimes(d model.Pulses, phi func(t float64) float64, until float64, turns ...float64) (list []float64) {
	angle := func(i float64) float64 {
		return 2 * math.Pi / float64(d.Teeth) * (i + 0.5 + d.Runout*math.Sin(2*math.Pi*i/float64(d.Teeth)))
	}
	from := 0.0
	for _, to := range append(turns, until) {
		if to = min(to, until); to <= from {
			continue
		}
		lo, hi := min(phi(from), phi(to)), max(phi(from), phi(to))
		pitches := float64(d.Teeth) / (2 * math.Pi)
		for i := math.Floor(lo*pitches) - 2; i <= math.Ceil(hi*pitches)+2; i++ {
			if e := angle(i); lo < e && e <= hi {
				a, b := from, to
				for range 200 {
					if mid := a + (b-a)/2; (phi(mid) < e) == (phi(from) < e) {
						a = mid
					} else {
						b = mid
					}
				}
				list = append(list, b)
			}
		}
		from = to
	}
	sort.Float64s(list)
	return list
}

// follows compares sensor i of a run with the expected edges at every grid point, and returns the
// largest error of a time, s.
func follows(t *testing.T, what string, k *run, i int, edges []float64, until float64) (worst float64) {
	t.Helper()
	seen := 0
	for float64(k.tick)*k.h < until-k.h/2 {
		k.step()
		now := float64(k.tick) * k.h
		n := sort.SearchFloat64s(edges, now)
		if n > 0 && now-edges[n-1] < 1e-11 || n < len(edges) && edges[n]-now < 1e-11 {
			continue // on the grid point, to rounding
		}
		age, period := now, 0.0
		if n > 0 {
			age = now - edges[n-1]
		}
		if n > 1 {
			period = edges[n-1] - edges[n-2]
		}
		count, gotAge, gotPeriod := k.gives(i)
		if count != float64(n) || !scalar.EqualWithinAbs(gotAge, age, 1e-9) || !scalar.EqualWithinAbs(gotPeriod, period, 1e-9) {
			t.Fatalf("%s: at %.9g s %g edges, the last %.12g s ago, %.12g s after the one before; want %d, %.12g and %.12g",
				what, now, count, gotAge, gotPeriod, n, age, period)
		}
		worst, seen = max(worst, math.Abs(gotAge-age), math.Abs(gotPeriod-period)), seen+1
	}
	if seen < 20 {
		t.Errorf("%s: only %d rows compared", what, seen)
	}
	return worst
}

var gridPeriods = []int{1, 5, 10} // ms

// For a body under a constant torque the edges are the roots of a quadratic. The cases are forward,
// backward, a reversal inside a tick, a start from rest, and 1600 edges in a tick.
func TestPulsesOfAConstantAccelerationAreAtTheRoots(t *testing.T) {
	worst := 0.0
	for _, c := range []struct {
		name            string
		phi0, w0, alpha float64
		sensor          model.Pulses
	}{
		{"forward", 0.3, 55, 7, model.Pulses{Teeth: 48}},
		{"backward", -2, -55, -7, model.Pulses{Teeth: 48}},
		{"turning back", 1, 3.7, -9.1, model.Pulses{Teeth: 48}},
		{"turning forward", 1, -3.7, 9.1, model.Pulses{Teeth: 100, Runout: 0.3}},
		{"from rest", 0, 0, 0.5, model.Pulses{Teeth: 60}},
		{"at rest", 0, 0, 0, model.Pulses{Teeth: 48}},
		{"with runout", 0.1, 30, 5, model.Pulses{Teeth: 29, Runout: 0.5}},
		{"one tooth", 0.1, 30, 5, model.Pulses{Teeth: 1, Runout: 0.5}},
		{"after an hour", 2.5e5, 70, -5, model.Pulses{Teeth: 48, Runout: 0.1}},
		{"fast", 0, 1000, 30, model.Pulses{Teeth: 1000}},
	} {
		phi := func(t float64) float64 { return c.phi0 + t*(c.w0+t*c.alpha/2) }
		turn := -c.w0 / c.alpha
		if c.alpha == 0 {
			turn = 0
		}
		until := 2.02
		edges := edgeTimes(c.sensor, phi, until, turn)
		way := math.Abs(phi(until) - phi(0))
		if 0 < turn && turn < until {
			way = math.Abs(phi(turn)-phi(0)) + math.Abs(phi(until)-phi(turn))
		}
		if n := way * float64(c.sensor.Teeth) / (2 * math.Pi); !scalar.EqualWithinAbs(float64(len(edges)), n, 2) {
			t.Errorf("%s: %d edges on %g pitches", c.name, len(edges), n)
		}
		for _, p := range gridPeriods {
			for _, scheme := range bothSchemes {
				r := rig{J: []float64{2}, Torques: []torque{{0, always(2 * c.alpha)}}, X0: []float64{c.w0, c.phi0}}
				k := start(t, r.sensed(c.sensor), Options{Period: ms(p), Scheme: scheme})
				worst = max(worst, follows(t, c.name, k, 0, edges, until))
			}
		}
	}
	t.Logf("largest error of a time %.2g s", worst)
}

// The angle is the deflection of a spring: a cosine that turns less or more than a radian in a
// tick. It reverses many times, within a pitch and over many pitches.
func TestPulsesOfAnOscillationAreAtItsAngles(t *testing.T) {
	worst := 0.0
	for _, omega := range []float64{3, 70, 900} {
		for _, amplitude := range []float64{0.02, 1, 12} {
			sensor := model.Pulses{Teeth: 48, Runout: 0.2}
			phi := func(t float64) float64 { return 0.013 + amplitude*math.Cos(omega*t) }
			until := math.Round(100*max(25/omega, 0.31)) / 100 // on every grid
			var turns []float64
			for i := 1; float64(i)*math.Pi/omega < until; i++ {
				turns = append(turns, float64(i)*math.Pi/omega)
			}
			edges := edgeTimes(sensor, phi, until, turns...)
			for _, p := range gridPeriods {
				r := oscillator(omega, amplitude, 0)
				sys := r.sensed(sensor)
				sys.X0[2] = 0.013 + amplitude
				k := start(t, sys, Options{Period: ms(p)})
				worst = max(worst, follows(t, "oscillator", k, 0, edges, until))
			}
		}
	}
	t.Logf("largest error of a time %.2g s", worst)
}

// A brake stops a wheel inside a tick with constant deceleration; then the wheel passes no edges.
// In the papers' scheme the lag lasts for some ticks after the stop, and the outputs are the
// prediction.
func TestPulsesEndWhereABrakeStopsTheWheel(t *testing.T) {
	for _, w0 := range []float64{20, -20} {
		const decel = 31.7
		stop := math.Abs(w0) / decel
		phi := func(t float64) float64 {
			t = min(t, stop)
			return 0.2 + w0*t - math.Copysign(decel, w0)*t*t/2
		}
		sensor := model.Pulses{Teeth: 48}
		edges := edgeTimes(sensor, phi, stop)
		for _, p := range gridPeriods {
			for _, opt := range []Options{{Scheme: Complete}, {Scheme: Papers}, {Scheme: Papers, Memory: 1}} {
				opt.Period = ms(p)
				r := rig{J: []float64{2}, Frictions: []contact{{W: []float64{1}, K: always(2 * decel)}}, X0: []float64{w0, 0.2}}
				k := start(t, r.sensed(sensor), opt)
				follows(t, "braked", k, 0, edges, stop+0.3)
				if k.modeOf(0) != Stuck || len(edges) < 40 {
					t.Errorf("mode %d after %d edges", k.modeOf(0), len(edges))
				}
			}
		}
	}
}

// During lag the count is the count at the grid time, not at the plant time.
func TestPulsesArePredictedWhileThereIsLag(t *testing.T) {
	// The brake of body 0 stops it at 0.1012 s; body 1 turns on.
	r := rig{J: []float64{1, 1}, Frictions: []contact{{W: []float64{1, 0}, K: always(10)}}, X0: []float64{1.012, 500, 0, 0}}
	sensors := []model.Pulses{{Teeth: 48}, {Teeth: 480}}
	k := start(t, r.sensed(sensors...), Options{Period: ms(5), Scheme: Papers})
	edges := edgeTimes(sensors[1], func(t float64) float64 { return 500 * t }, 0.2)
	owed := 0
	for range 38 {
		k.step()
		now := float64(k.tick) * k.h
		n := sort.SearchFloat64s(edges, now)
		count, age, _ := k.gives(1)
		if count != float64(n) || !scalar.EqualWithinAbs(age, now-edges[n-1], 1e-9) {
			t.Fatalf("at %g s, lag %g s: %g edges, the last %g s ago; want %d and %g", now, k.lagOut(), count, age, n, now-edges[n-1])
		}
		if k.lagOut() > 1e-3 {
			owed++
		}
	}
	if owed == 0 {
		t.Error("no time was owed")
	}
}

// A wheel at rest exactly on an edge, or with an oscillation below the resolution of a sensor,
// gives no edge after the first.
func TestAWheelAtRestOnAnEdgeGivesNoPulses(t *testing.T) {
	d := model.Pulses{Teeth: 48}
	for _, c := range []struct{ angle, tremble float64 }{
		{edgeAt(&d, 7), 0}, {edgeAt(&d, -3), 0}, {edgeAt(&d, 7), 1e-12}, {edgeAt(&d, -1), 3e-14}, {edgeAt(&d, 1000), 1e-12},
	} {
		r := oscillator(200, c.tremble, 0)
		sys := r.sensed(d)
		sys.X0[2] = c.angle
		k := start(t, sys, Options{Period: ms(5)})
		for range 2000 {
			k.step()
		}
		if count, _, _ := k.gives(0); !(count <= 1) {
			t.Errorf("at %g rad, trembling by %g rad: %g edges", c.angle, c.tremble, count)
		}
	}
}

// The start of a plant may be any finite angle. Only its conversion to a whole number has a limit.
func TestEdgesOfHugeAnglesAreThoseOfTheLargestAngleCounted(t *testing.T) {
	d := model.Pulses{Teeth: 100000, Runout: 0.5}
	last := edgeBelow(&d, maxAngle)
	if at := edgeAt(&d, last); !(math.Abs(at-maxAngle) <= 2*2*math.Pi/float64(d.Teeth)+2e-16*maxAngle) {
		t.Errorf("edge %d at %v rad, want one at %v", last, at, maxAngle)
	}
	first := edgeBelow(&d, -maxAngle)
	for _, angle := range []float64{maxAngle * (1 + 1e-15), 1e16, 1e23, math.MaxFloat64, math.Inf(1)} {
		if got := edgeBelow(&d, angle); got != last {
			t.Errorf("edge %d at %g rad, want %d", got, angle, last)
		}
		if got := edgeBelow(&d, -angle); got != first {
			t.Errorf("edge %d at %g rad, want %d", got, -angle, first)
		}
	}
	if got := edgeBelow(&d, math.NaN()); got != first {
		t.Errorf("edge %d at NaN, want %d", got, first)
	}
}

// All other outputs have the same bits with and without a sensor.
func TestSensorsDoNotChangeTheMotion(t *testing.T) {
	for name, b := range busy() {
		for _, scheme := range bothSchemes {
			for _, opt := range []Options{{}, {Form: Held}, {Memory: 1}} {
				opt.Period, opt.Scheme = ms(5), scheme
				with := *b.sys
				n, m, mc := len(with.X0), len(with.Signals), len(with.Frictions)
				p := len(with.Outputs)
				with.Outputs = append([]units.Port(nil), with.Outputs...)
				for state := range 3 { // in this test a speed can replace an angle
					with.Pulses = append(with.Pulses, model.Pulses{Output: p + 3*state, State: state, Teeth: 7 + state, Runout: 0.1})
					for range 3 {
						with.Outputs = append(with.Outputs, units.Port{Name: "p", Unit: "1"})
						with.C, with.D, with.Dc = append(with.C[:len(with.C):len(with.C)], make([]float64, n)...), append(with.D[:len(with.D):len(with.D)], make([]float64, m)...), append(with.Dc[:len(with.Dc):len(with.Dc)], make([]float64, mc)...)
					}
				}
				k, ref := start(t, &with, opt), start(t, b.sys, opt)
				counted := 0.0
				for tick := range b.ticks {
					k.step()
					ref.step()
					rest := append(append([]float64(nil), k.y[:p]...), k.y[p+9:]...)
					for i, v := range ref.y {
						if math.Float64bits(rest[i]) != math.Float64bits(v) {
							t.Fatalf("%s, %s, %s: tick %d: output %d is %g with sensors and %g without", name, scheme, opt.Form, tick, i, rest[i], v)
						}
					}
					counted += k.y[p]
				}
				if counted == 0 {
					t.Errorf("%s, %s, %s: no edge was counted", name, scheme, opt.Form)
				}
			}
		}
	}
}

// The outputs of a sensor depend only on the calls since Reset, and it does not allocate.
func TestPulsesAreRepeatableAndDoNotAllocate(t *testing.T) {
	r := oscillator(70, 12, 0)
	r.Frictions = []contact{{W: []float64{1}, K: always(4900)}}
	for _, scheme := range bothSchemes {
		k := start(t, r.sensed(model.Pulses{Teeth: 48, Runout: 0.3}), Options{Period: ms(5), Scheme: scheme})
		first := record(k, 200)
		equal(t, string(scheme), first, record(k, 200))
		if n := leastAllocations(func() {
			k.Reset()
			for range 200 {
				k.step()
			}
		}); n != 0 {
			t.Errorf("%s: %g allocations", scheme, n)
		}
		if count, _, _ := k.gives(0); !(count >= 100) {
			t.Errorf("%s: %g edges", scheme, count)
		}
	}
}

// A plant that stops because of a NaN keeps the count of the previous tick.
func TestPulsesStopWithThePlant(t *testing.T) {
	r := rig{J: []float64{1e-300}, Torques: []torque{{0, table(0, 0, 0.02, 0, 0.021, 1e300)}}, X0: []float64{50, 0}}
	k := start(t, r.sensed(model.Pulses{Teeth: 48}), Options{Period: ms(5)})
	var before float64
	for k.faultOut() == 0 && k.tick < 100 {
		before, _, _ = k.gives(0)
		k.step()
	}
	count, age, period := k.gives(0)
	if k.faultOut() == 0 || before == 0 || count != before || !(age >= 0 && age < 1) || !(period > 0 && period < 1) {
		t.Errorf("fault %g at tick %d: %g edges after %g, age %g, period %g", k.faultOut(), k.tick, count, before, age, period)
	}
}

// BenchmarkPulses measures what four sensors of 48 teeth add to a step of 5 ms at 30 rad/s, on a
// plant of four wheels on springs.
func BenchmarkPulses(b *testing.B) {
	r := rig{J: []float64{1, 1, 1, 1}, X0: []float64{30, 31, 32, 33}}
	for i := range 3 {
		r.Springs = append(r.Springs, spring{i, i + 1, 3000, 1})
	}
	r.X0 = append(r.X0, make([]float64, 7)...)
	for _, c := range []struct {
		name    string
		sensors []model.Pulses
	}{{"without", nil}, {"with", []model.Pulses{{Teeth: 48}, {Teeth: 48}, {Teeth: 48}, {Teeth: 48, Runout: 0.1}}}} {
		b.Run(c.name, func(b *testing.B) {
			k := start(b, r.sensed(c.sensors...), Options{Period: ms(5)})
			for b.Loop() {
				k.step()
			}
		})
	}
}
