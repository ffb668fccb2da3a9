package mechanics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// dogs is a plant of a dog clutch between a hub and a gear, with a sleeve under a fork force.
type dogs struct {
	teeth, radius, backlash, flat, chamfer, taper, tip, end float64
	mu, restitution                                         float64
	hub, gear, sleeve                                       float64 // kg·m², kg·m², kg
	force, torque                                           float64 // of the fork, N; on the gear, N·m
	slip                                                    float64 // largest slip of the starts, rad/s
}

func (d *dogs) text() string {
	return modeltest.PlantOf(fmt.Sprintf(`
hub: {type: inertia, J: %.17g}
gear: {type: inertia, J: %.17g}
sleeve: {type: mass, m: %.17g}
fork: {type: force, flange: sleeve, f: %.17g}
drag: {type: torque, flange: gear, tau: %.17g}
stop: {type: fixed}
end: {type: clearance, a: stop, b: sleeve, s_max: %.17g}
dogs: {type: dog_clutch, a: hub, b: gear, sleeve: sleeve, teeth: %g, radius: %.17g, backlash: %.17g, flat: %.17g,
  chamfer: %.17g, taper: %.17g, s_contact: %.17g, mu: %.17g, restitution: %g, heat_port: oil}
oil: {type: heat_capacitor, C: 1 J/K, T_start: 300 K}`, d.hub, d.gear, d.sleeve, d.force, d.torque, d.end, d.teeth, d.radius,
		d.backlash, d.flat, d.chamfer, d.taper, d.tip, d.mu, d.restitution),
		"w1: {speed: hub}\nw2: {speed: gear}\ns: {position: sleeve}\nphi: {signal: dogs.phi}\nturn: {angle: gear}\nv: {speed: sleeve}\nT: {signal: oil}\nplay: {s_rel: end}")
}

// reference returns the independent solution of the same plant, which starts at angle phi of the gear
// against the hub, with slip w of the gear and stroke 0.
func (d *dogs) reference(phi, w float64) *referenceTeeth {
	inverse := d.radius * d.radius * (1/d.hub + 1/d.gear)
	r := &referenceTeeth{mass: [2]float64{1 / inverse, d.sleeve}, mu: d.mu, restitution: d.restitution, on: -1,
		force: [2]float64{d.radius * d.torque / d.gear / inverse, d.force}, first: math.NaN(),
		p: [2]float64{d.radius * phi, 0}, v: [2]float64{d.radius * w, 0}}
	r.addTeeth(40, 2*math.Pi/d.teeth*d.radius, d.radius*d.backlash/2, d.radius*d.flat/2, d.chamfer, d.tip, d.end, d.taper)
	return r
}

// run is a plant that starts in states of its own on tables that are prepared once.
type run struct {
	tables kernel.Tables
	at     map[string]int
}

func (d *dogs) prepare(t *testing.T, period time.Duration) *run {
	b := modeltest.New(t, d.text(), period)
	r := &run{tables: *b.Tables, at: map[string]int{}}
	for i, name := range b.Tables.StateName {
		r.at[name] = i
	}
	r.tables.X0 = slices.Clone(r.tables.X0)
	return r
}

// start returns a kernel that starts with the gear at phi and slip w.
func (r *run) start(d *dogs, phi, w float64) *kernel.Kernel {
	r.tables.X0[r.at["gear.w"]] = w
	r.tables.X0[r.at["dogs.u"]] = d.radius * phi
	return kernel.New(&r.tables)
}

// dogCases are dog clutches with pointed and flat teeth, back-taper, friction, rebound and a torque on the gear.
func dogCases() []dogs {
	base := dogs{teeth: 36, radius: 0.04, backlash: 0.014, flat: 0.035, chamfer: 1e-3, tip: 3e-3, end: 8e-3,
		hub: 0.5, gear: 0.02, sleeve: 0.5, force: 100, slip: 60}
	list := []dogs{base, base, base, base, base, base}
	list[1].mu, list[1].torque = 0.1, 1
	list[2].mu, list[2].taper, list[2].torque = 0.15, 0.06, -2
	list[3].mu, list[3].flat, list[3].chamfer = 0.12, 0, 3e-3
	list[4].mu, list[4].restitution, list[4].torque = 0.08, 0.4, 3
	list[5].mu, list[5].flat, list[5].torque, list[5].slip = 0.2, 0.08, 0.3, 6
	return list
}

// TestDogClutchFollowsAnIndependentSolution compares engagements at random angles and slips with referenceTeeth:
// the first contact in time and angle, then the motion and the friction up to the end of the stroke or rest. Work
// and energy balance with the impacts, and no tooth enters another.
func TestDogClutchFollowsAnIndependentSolution(t *testing.T) {
	const runs, ticks = 170, 50
	rnd := rand.New(rand.NewPCG(29, 1))
	engaged, blocked, most := 0, 0, 0
	for q, d := range dogCases() {
		r := d.prepare(t, time.Millisecond)
		out := outputsOf(&r.tables)
		y, pitch := make([]float64, len(r.tables.Outputs)), 2*math.Pi/d.teeth
		for range runs {
			phi, w := pitch*(rnd.Float64()-0.5), 2*d.slip*(rnd.Float64()-0.5)
			k, ref := r.start(&d, phi, w), d.reference(phi, w)
			at, slip, first := phi, w, math.NaN()
			for tick := range ticks {
				before := [2]float64{at, slip}
				k.Step(y, nil)
				for _, e := range k.Events() {
					if math.IsNaN(first) && e.To == kernel.Impact {
						first = e.Time
						ref.to(first + 1e-9)
						since := first - float64(tick)*1e-3
						angle := before[0] + before[1]*since + d.torque/d.gear*since*since/2
						if off := math.Remainder(angle-ref.firstAt[0]/d.radius, pitch); !(math.Abs(first-ref.first) < 1e-9 && math.Abs(off) < 1e-9) {
							t.Fatalf("case %d, start at %g rad, %g rad/s: first contact at %.12g s, off by %g s and %g rad", q, phi, w, first, first-ref.first, off)
						}
					}
				}
				at, slip = y[out["phi"]], y[out["w2"]]-y[out["w1"]]
				ref.to(float64(tick+1) * 1e-3)
				if ref.ended {
					engaged++
					break
				}
				du, ds := math.Remainder(at-ref.p[0]/d.radius, pitch), y[out["s"]]-ref.p[1]
				if !(math.Abs(du) < 1e-8 && math.Abs(ds) < 1e-9) {
					t.Fatalf("case %d, start at %g rad, %g rad/s: off by %g rad and %g m at %g s after %d contacts", q, phi, w, du, ds, float64(tick+1)*1e-3, ref.contacts)
				}
				if depth := d.overlap(at, y[out["s"]]); !(depth < 1e-12) {
					t.Fatalf("case %d: the teeth overlap by %g m", q, depth)
				}
				energy := func(w1, w2, v float64) float64 { return (d.hub*w1*w1 + d.gear*w2*w2 + d.sleeve*v*v) / 2 }
				heat := y[out["T"]] - 300
				left := energy(0, w, 0) + d.force*y[out["s"]] + d.torque*y[out["turn"]] - heat - ref.impacts -
					energy(y[out["w1"]], y[out["w2"]], y[out["v"]])
				if !(math.Abs(heat-ref.frictions) < 1e-9*(1+energy(0, w, 0)) && math.Abs(left) < 1e-9*(1+energy(0, w, 0))) {
					t.Fatalf("case %d, start at %g rad, %g rad/s: friction %g J, want %g; %g J too much of %g at %g s", q, phi, w, heat, ref.frictions, left, energy(0, w, 0), float64(tick+1)*1e-3)
				}
			}
			if ref.stuck {
				blocked++
			}
			most = max(most, ref.contacts)
		}
	}
	if engaged < 500 || blocked < 10 || most < 8 {
		t.Errorf("%d engaged, %d blocked, at most %d contacts: the starts test too little", engaged, blocked, most)
	}
	t.Logf("%d engaged, %d blocked, at most %d contacts", engaged, blocked, most)
}

// Friction that jams on a face ends the slip by an impulse: hub and gear then turn together with the momentum that they
// had, and the sleeve stands. Friction takes energy and gives none, and the energies balance. Without the impulse a
// back-tapered flank with a coefficient of friction of 2 pulled the sleeve in and lost up to 0.3 J.
func TestFrictionThatJamsEndsTheSlipByAnImpulse(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 1))
	jams := 0
	for q, d := range dogCases() {
		d.mu, d.torque = 2, 10*d.torque
		for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
			b := modeltest.New(t, strings.Replace(d.text(), "  play:", "  loss: {dissipated: dogs}\n  hit: {dissipated: end}\n  play:", 1), period)
			r := &run{tables: *b.Tables, at: map[string]int{}}
			for i, name := range b.Tables.StateName {
				r.at[name] = i
			}
			r.tables.X0 = slices.Clone(r.tables.X0)
			out, y := outputsOf(&r.tables), make([]float64, len(r.tables.Outputs))
			for range 100 {
				phi, w := 2*math.Pi/d.teeth*(rnd.Float64()-0.5), 2*d.slip*(rnd.Float64()-0.5)
				k, first, before, jammed := r.start(&d, phi, w), d.gear*w*w/2, 0.0, math.NaN()
				for tick := range int(60 * time.Millisecond / period) {
					k.Step(y, nil)
					for _, e := range k.Events() {
						if strings.HasSuffix(b.Tables.Friction[e.Friction].Name, "_friction") && e.From == kernel.Free && e.To == kernel.Stuck {
							jammed = e.Time
							jams++
						}
					}
					w1, w2, v, loss := y[out["w1"]], y[out["w2"]], y[out["v"]], y[out["loss"]]
					left := first + d.force*y[out["s"]] + d.torque*y[out["turn"]] - loss - y[out["hit"]] - (d.hub*w1*w1+d.gear*w2*w2+d.sleeve*v*v)/2
					if !(math.Abs(left) < 1e-10) || !(loss >= before-1e-10) {
						t.Fatalf("case %d, %v, start at %g rad, %g rad/s, tick %d: %g J missing, dissipated %g J after %g J", q, period, phi, w, tick, left, loss, before)
					}
					at := float64(tick+1) * period.Seconds()
					if momentum := d.gear*w + d.torque*at; at-jammed < period.Seconds() &&
						!(math.Abs(w1-w2) < 1e-10 && math.Abs(v) < 1e-12 && math.Abs(d.hub*w1+d.gear*w2-momentum) < 1e-9) {
						t.Fatalf("case %d, %v, start at %g rad, %g rad/s: after the jam at %g s %g and %g rad/s, %g m/s", q, period, phi, w, jammed, w1, w2, v)
					}
					before = loss
				}
			}
		}
	}
	if jams < 50 {
		t.Errorf("only %d jams", jams)
	}
	t.Logf("%d jams", jams)
}

// overlap returns how deep the teeth are in each other, m; negative: not.
func (d *dogs) overlap(phi, s float64) float64 {
	half := math.Pi / d.teeth
	u, edge := d.radius*math.Abs(math.Remainder(phi, 2*half)), d.radius*(half-d.flat/2)
	play, flank := d.radius*d.backlash/2, d.tip+d.chamfer
	if s >= flank {
		return u - play - (s-flank)*math.Tan(d.taper)
	}
	if u >= edge {
		return s - d.tip
	}
	return min(s-d.tip-d.chamfer*(edge-u)/(edge-play), u-play)
}

// outputsOf returns the index of each output by its name.
func outputsOf(t *kernel.Tables) map[string]int {
	out := map[string]int{}
	for i, p := range t.Outputs {
		out[p.Name] = i
	}
	return out
}

// TestDogClutchMapsRatchetBlockAndEngage sweeps the angle and the slip at the start: each start engages, blocks
// on the flats or still ratchets after 60 ms, as in the independent solution. It steps by 5 ms.
func TestDogClutchMapsRatchetBlockAndEngage(t *testing.T) {
	d := dogCases()[5]
	r := d.prepare(t, 5*time.Millisecond)
	out := outputsOf(&r.tables)
	y, found := make([]float64, len(r.tables.Outputs)), map[byte]int{}
	for _, w := range []float64{0.5, 2, 4, 8, 16, 32, 64, 128} {
		line := ""
		for n := range 20 {
			phi := 2 * math.Pi / d.teeth * (float64(n) + 0.3) / 20
			k, ref := r.start(&d, phi, w), d.reference(phi, w)
			for range 12 {
				k.Step(y, nil)
			}
			ref.to(0.06)
			got, want := byte('R'), byte('R')
			switch {
			case y[out["s"]] > d.end-1e-9:
				got = 'E'
			case y[out["dogs.flat.mode"]] == 0 && math.Abs(y[out["w2"]]-y[out["w1"]]) < 1e-9:
				got = 'B'
			}
			switch {
			case ref.ended:
				want = 'E'
			case ref.stuck:
				want = 'B'
			}
			found[got]++
			if line += string(got); got != want {
				t.Errorf("start at %g rad, %g rad/s: %c, want %c", phi, w, got, want)
			}
		}
		t.Logf("%5g rad/s  %s", w, line)
	}
	if found['R'] < 10 || found['B'] < 10 || found['E'] < 10 {
		t.Errorf("%d ratchet, %d block, %d engage: the sweep shows too little", found['R'], found['B'], found['E'])
	}
}

// At slips of thousands of teeth per second events fill the tick: it stays bounded, does not allocate, and no tooth
// enters another by more than a minimum substep moves it.
func TestFastRatchetStaysBounded(t *testing.T) {
	d := dogCases()[2]
	r := d.prepare(t, 5*time.Millisecond)
	out := outputsOf(&r.tables)
	y := make([]float64, len(r.tables.Outputs))
	k := r.start(&d, 0.02, 700)
	deepest, lag := 0.0, 0.0
	allocs := testing.AllocsPerRun(200, func() {
		k.Step(y, nil)
		deepest, lag = max(deepest, d.overlap(y[out["phi"]], y[out["s"]])), max(lag, y[out["lag"]])
	})
	if allocs != 0 || !(deepest < 1e-3) || !(lag <= 0.015) || y[out["fault"]] != 0 || math.IsNaN(y[out["s"]]) {
		t.Errorf("%g allocations, overlap %g m, lag %g s, fault %g", allocs, deepest, lag, y[out["fault"]])
	}
	t.Logf("overlap %g m, %g events, slip %g rad/s, stroke %g m", deepest, y[out["events"]], y[out["w2"]]-y[out["w1"]], y[out["s"]])
}

func TestTeethThatCannotEngageAreRefused(t *testing.T) {
	base := dogCases()[0].text()
	sync := synchroniserPlant(0.4, 5e-4)
	for _, c := range []struct{ text, from, to, want string }{
		{base, "teeth: 36", "teeth: 36.5", "teeth 36.5 is not a whole number"},
		{base, "backlash: 0.014", "backlash: 0.18", "is not below the pitch of 36 teeth"},
		{base, "flat: 0.035", "flat: 0.17", "leave nothing of the pitch"},
		{base, "sleeve: {type: mass,", "sleeve: {type: mass, s_start: 3.5 mm,", "at the start it overlaps by"},
		{sync, "index: 2.5 deg", "index: 0.3 deg", "there the ring does not block"},
		{sync, "index: 2.5 deg", "index: 6 deg", "there the ring does not block"},
	} {
		text := strings.Replace(c.text, c.from, c.to, 1)
		if c.want == "at the start it overlaps by" { // the gear stands in the middle of a flat
			text = strings.Replace(text, "gear: {type: inertia,", "gear: {type: inertia, phi_start: 5 deg,", 1)
		}
		if err := modeltest.Check(text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}

// Engaged teeth with back-taper t hold a torque T. To pull the sleeve out takes T/radius·tan(t + arctan(mu)), against
// the wedge and the friction of the loaded flank. Dense and sparse stepping agree in it.
func TestForceThatDisengagesUnderTorqueMatchesClosedForm(t *testing.T) {
	for _, d := range []dogs{
		{taper: 0, mu: 0.1, torque: 40}, {taper: 0.06, mu: 0, torque: 40}, {taper: 0.06, mu: 0.1, torque: 40},
		{taper: 0.1, mu: 0.15, torque: -25},
	} {
		force := math.Abs(d.torque) / 0.04 * math.Tan(d.taper+math.Atan(d.mu))
		for i, share := range []float64{0.5, 1 - 1e-6, 1 + 1e-6, 1.5, 1 - 1e-6, 1 + 1e-6} {
			stepping := kernel.Dense
			if i > 3 {
				stepping = kernel.Sparse
			}
			b := modeltest.NewWith(t, modeltest.PlantOf(fmt.Sprintf(`
hub: {type: inertia, J: 0.5}
gear: {type: inertia, J: 0.02}
drive: {type: torque, flange: hub, tau: %.17g}
load: {type: torque, flange: gear, tau: %.17g}
sleeve: {type: mass, m: 0.5, s_start: 6 mm}
fork: {type: force, flange: sleeve, f: {table: [[0, 0], [0.1, 0], [0.1, %.17g]]}}
stop: {type: fixed}
end: {type: clearance, a: stop, b: sleeve, s_max: 8 mm}
dogs: {type: dog_clutch, a: hub, b: gear, sleeve: sleeve, teeth: 36, radius: 40 mm, backlash: 0.014,
  chamfer: 1 mm, taper: %.17g, s_contact: 3 mm, mu: %.17g}`, -d.torque, d.torque, -share*force, d.taper, d.mu),
				"s: {position: sleeve}"), kernel.Options{Period: time.Millisecond, Stepping: stepping})
			b.To(0.1, nil)
			at := b.Get("s")
			b.To(0.4, nil)
			if out := b.Get("s") < at-1e-8; out != (share > 1) {
				t.Errorf("%s, taper %g, mu %g: with %g times the force the sleeve moves by %g m", stepping, d.taper, d.mu, share, b.Get("s")-at)
			}
		}
	}
}

// A sleeve in a detent swings with the stiffness of its flanks over the mass, and leaves above its largest force.
func TestDetentHoldsTheSleeveOfADogClutch(t *testing.T) {
	const m, c, v = 0.5, 80e3, 0.1 // kg, N/m, m/s
	plant := func(fork float64) *modeltest.Bench {
		return modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
hub: {type: inertia, J: 0.5}
gear: {type: inertia, J: 0.02}
sleeve: {type: mass, m: %g, v_start: %g}
fork: {type: force, flange: sleeve, f: %.17g}
dogs: {type: dog_clutch, a: hub, b: gear, sleeve: sleeve, teeth: 36, radius: 40 mm, backlash: 0.014,
  chamfer: 1 mm, s_contact: 3 mm, detent: [[-2 mm, 0 N], [-1 mm, 80 N], [1 mm, -80 N], [2 mm, 0 N]]}`, m, map[bool]float64{true: v}[fork == 0], fork),
			"s: {position: sleeve}"), time.Millisecond)
	}
	rate := math.Sqrt(c / m)
	b := plant(0)
	b.To(0.1, func(at float64) { b.Is("s", v/rate*math.Sin(rate*at), 1e-12) })
	for _, fork := range []float64{39.99, 40.01} { // from rest the sleeve swings to 2·fork/c
		b := plant(fork)
		most := 0.0
		b.To(0.1, func(float64) { most = max(most, b.Get("s")) })
		if fork < 40 {
			if want := 2 * fork / c; !(math.Abs(most-want) < 1e-3*want) {
				t.Errorf("fork force %g N: the sleeve swings to %g m, want %g", fork, most, want)
			}
		}
	}
	for _, fork := range []float64{-79.99, 79.99, 80.01} { // raised slowly
		b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
hub: {type: inertia, J: 0.5}
gear: {type: inertia, J: 0.02}
sleeve: {type: mass, m: %g}
fork: {type: force, flange: sleeve, f: {table: [[0, 0], [1, %g], [2, %g]]}}
case: {type: fixed}
rail: {type: damper, a: case, b: sleeve, d: 400}
dogs: {type: dog_clutch, a: hub, b: gear, sleeve: sleeve, teeth: 36, radius: 40 mm, backlash: 0.014,
  chamfer: 1 mm, s_contact: 3 mm, detent: [[-2 mm, 0 N], [-1 mm, 80 N], [1 mm, -80 N], [2 mm, 0 N]]}`, m, fork, fork),
			"s: {position: sleeve}"), 5*time.Millisecond)
		if b.To(2, nil); fork < 80 {
			b.Is("s", fork/c, 1e-6)
		} else if !(b.Get("s") > 1.5e-3) {
			t.Errorf("fork force %g N: the sleeve stays at %g m", fork, b.Get("s"))
		}
	}
}

// An engagement with an elastic shaft and a damped sleeve does not depend on the step: from steps of 5 ms to 0.25 ms the
// end of the stroke and the speeds agree, and so does the time of the first contact.
func TestEngagementConvergesWithTheStep(t *testing.T) {
	text := modeltest.PlantOf(`
hub: {type: inertia, J: 0.5}
shaft: {type: spring_damper, a: hub, b: car, c: 8000, d: 20}
car: {type: inertia, J: 8}
gear: {type: inertia, J: 0.02, w_start: 6}
sleeve: {type: mass, m: 0.8}
fork: {type: force, flange: sleeve, f: 150}
case: {type: fixed}
rail: {type: damper, a: case, b: sleeve, d: 300}
drag: {type: quadratic_speed_dependent_torque, flange: gear, tau_nominal: -2, w_nominal: 10, TorqueDirection: false}
end: {type: clearance, a: case, b: sleeve, s_max: 8 mm}
dogs: {type: dog_clutch, a: hub, b: gear, sleeve: sleeve, teeth: 36, radius: 40 mm, backlash: 0.014,
  flat: 0.035, chamfer: 1 mm, taper: 0.05, s_contact: 3 mm, mu: 0.1}`,
		"s: {position: sleeve}\nhub: {speed: hub}\ngear: {speed: gear}\ncar: {speed: car}")
	type result struct{ first, s, hub, gear, car float64 }
	at := func(period time.Duration) (r result) {
		b := modeltest.New(t, text, period)
		r.first = math.NaN()
		b.To(0.1, func(float64) {
			for _, e := range b.Kernel.Events() {
				if math.IsNaN(r.first) && e.To == kernel.Impact {
					r.first = e.Time
				}
			}
		})
		r.s, r.hub, r.gear, r.car = b.Get("s"), b.Get("hub"), b.Get("gear"), b.Get("car")
		return r
	}
	finest := at(250 * time.Microsecond)
	before := math.Inf(1)
	for _, period := range []time.Duration{5 * time.Millisecond, 2500 * time.Microsecond, time.Millisecond} {
		r := at(period)
		off := max(math.Abs(r.first-finest.first), math.Abs(r.s-finest.s), math.Abs(r.hub-finest.hub), math.Abs(r.gear-finest.gear),
			math.Abs(r.car-finest.car))
		t.Logf("steps of %v: off by %g", period, off)
		if !(off < 1e-7) || !(off <= max(before, 1e-9)) || !(finest.s > 7.999e-3) {
			t.Errorf("steps of %v: off by %g, stroke %g m", period, off, finest.s)
		}
		before = off
	}
}
