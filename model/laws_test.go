package model_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/network"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// lawVariants are elements of the worked plant of all types with other parameters, for the laws that it
// does not have.
var lawVariants = []string{
	"m: {type: mass, m: 10}\n  w: {type: inertia, J: 1}\n  x: {type: tyre, a: w, b: m, radius: 0.3, fn: 3000, friction: 0.5, B: 10, C: 1.9, D: 1, E: 0.97, S_h: 0.01, S_v: 5}",
	"m: {type: mass, m: 10}\n  w: {type: inertia, J: 1}\n  x: {type: tyre, a: w, b: m, radius: 0.3, fn: 3000, B: 10, C: 1.2, D: 1, E: -8, relaxation: 0.5}",
	"m: {type: mass, m: 10}\n  w: {type: inertia, J: 1}\n  x: {type: tyre, a: w, b: m, radius: 0.3, fn: {sum: [600, {sine: {amplitude: 500, f: 1 Hz}}]}, B: [[0, 8], [900, 12]], C: 1.2, D: [[0, 1.2], [900, 0.8]], E: 0}",
	"m: {type: mass, m: 10}\n  w: {type: inertia, J: 1}\n  x: {type: rail_contact, a: w, b: m, radius: 0.3, fn: 3000, law: polach, mu0: 0.3, A: 0.4, B: 0.6, C: 1e12, a_ellipse: 6 mm, b_ellipse: 4 mm}",
	"m: {type: mass, m: 10}\n  w: {type: inertia, J: 1}\n  x: {type: rail_contact, a: w, b: m, radius: 0.3, fn: 3000, law: curtius_kniffler, T_sgn: 0.02, way: [[0, 1], [10, 0.2], [12, 0.9]]}",
	"m: {type: mass, m: 10}\n  w: {type: inertia, J: 1}\n  x: {type: rail_contact, a: w, b: m, radius: 0.3, fn: 3000, law: gyebroszki, mu0: 0.3, A: 0.4, v_star: 2, T_sgn: 0.02}",
	"w: {type: inertia, J: 1}\n  x: {type: engine, flange: w, map: {w: [0, 100, 300], throttle: [0, 0.5, 1], tau: [[0, 50, 90], [-10, 80, 200], [-40, 60, 150]]}, throttle: 0.5, on: 1, idle_speed: 80, idle_gain: 3, idle_torque: 50, limit_speed: 250}",
	"w: {type: inertia, J: 1}\n  v: {type: inertia, J: 1}\n  x: {type: torque_converter, impeller: w, turbine: v, K: [[0, 12], [0.6, 15], [0.95, 40]], ratio: [[0, 2.1], [0.85, 1]]}",
	"w: {type: inertia, J: 1}\n  x: {type: bearing_friction, flange: w, tau_Coulomb: 5, tau_Stribeck: 3, fexp: 0.7}",
	"w: {type: inertia, J: 1}\n  x: {type: brake, flange: w, mu_pos: [[0, 0.4], [10, 0.2], [30, 0.3]], cgeo: 1, fn: 100}",
	"w: {type: inertia, J: 1}\n  x: {type: electric_machine, flange: w, tau_ref: 30, tau_max: [[0, 50], [100, 50], [300, 10]], tau_min: [[0, -40], [200, -5]], lag: 0.01, rate: 900}",
	"w: {type: inertia, J: 1}\n  x: {type: dual_mass_flywheel, a: w, b: body, J_primary: 1, J_secondary: 1, c: [10, 40], borders: [0.1], hysteresis: 1, hysteresis_w2: 1e-3}",
	"w: {type: inertia, J: 1}\n  x: {type: clutch_drag, a: w, b: body, surfaces: 6, r_inner: 60 mm, r_outer: 80 mm, gap: 0.1 mm, viscosity: 0.02, oil_flow: 3e-6}",
	"w: {type: inertia, J: 1}\n  x: {type: eddy_current_torque, flange: w, tau_nominal: 50, w_nominal: 30, alpha20: 4e-3, C: 1000, G: 2}",
	"w: {type: inertia, J: 1}\n  v: {type: inertia, J: 1}\n  x: {type: affine_spring, a: w, b: v, c: [10, 40], borders: [0.1], d: [1, 3]}",
	"m: {type: mass, m: 10}\n  n: {type: mass, m: 1}\n  x: {type: clearance, a: m, b: n, s_min: -1 mm, k_s: 1.3}",
	"x: {type: hydraulic_actuator, current: {sine: {amplitude: 1, f: 1 Hz}}, pressure_map: [[0, 0], [0.3, 0], [1, 8 bar]], fill_volume: 4e-5, kiss_pressure: 2 bar, stiffness: 2e11, flow: 1e-4}",
	"x: {type: hydraulic_actuator, current: {sine: {amplitude: 1, f: 1 Hz}}, line_pressure: 6 bar, lag: 0.02, hysteresis: 0.3 bar, pressure_map: [[0, 0], [0.3, 0], [1, 8 bar]]}",
	"x: {type: wheel_brake_circuit, master: {sine: {amplitude: 80 bar, f: 1 Hz}}, A_inlet: 1e-7, A_outlet: 2e-7, A_check: 3e-7, outlet: 0.3, inlet: 0.5, p_V: [[0, 0], [1e-6, 10 bar], [2e-6, 60 bar]], drain: 1 bar}",
	"x: {type: brake_cylinder, demand: {sine: {amplitude: 3 bar, f: 1 Hz}}, T_fill: 0.2, T_release: 0.1, T_vent: 0.05, hold: 0.2, vent: 0.1}",
}

// Between any two values of a quantity in its range a law rises by no more than its slope allows: the
// slopes decide the length of a substep. Slopes that an element declares for all of its laws together
// are listed here, and only those.
func TestNoLawIsSteeperThanItsBound(t *testing.T) {
	texts := []string{worked(t, "every-element")}
	for _, v := range lawVariants {
		texts = append(texts, "plant: t\nelements:\n  body: {type: inertia, J: 1}\n  "+v+"\noutputs: {}\n")
	}
	for _, name := range []string{"automatic4", "truck", "car-abs", "rail17", "wsp-car", "judder", "hybrid-tyre", "powershift", "car-esc", "amt12"} {
		text, err := plants.Read(name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}

	random := rand.New(rand.NewPCG(1, 2))
	combined, laws := map[string]bool{}, 0
	for _, text := range texts {
		p, err := plantfile.Load("t.yaml", []byte(text), library.Elements())
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, s := range p.Signals {
			if s.Law == nil {
				continue
			}
			laws++
			for i := range s.Law.Args {
				if s.Law.Combined[i] {
					combined[s.Name[strings.LastIndexByte(s.Name, '.')+1:]] = true
				} else if steep := steepest(s.Law, i, random); !(steep <= s.Law.Slopes[i]*(1+1e-6)) {
					t.Errorf("%s has the slope %g along argument %d, more than %g", s.Name, steep, i, s.Law.Slopes[i])
				}
			}
		}
	}

	want := strings.Fields("I P_el P_max Q_master alpha cells f f_x f_y filled kappa lossPower loss_backward loss_forward path power " +
		"share shortage slip slip_rate still tau tau_max u_back v_back")
	have := slices.Sorted(maps.Keys(combined))
	if fmt.Sprint(have) != fmt.Sprint(want) || laws < 100 {
		t.Errorf("%d laws; slopes of all laws together are declared by %v, want %v", laws, have, want)
	}
}

// steepest returns the largest slope of a law along argument i between two near points, at random
// arguments in their ranges. A jump, which is the steeper the nearer the points are, has no slope.
func steepest(l *network.Law, i int, random *rand.Rand) (most float64) {
	rise := func(args []float64, by float64) float64 {
		a, holds := l.At(args)
		moved := slices.Clone(args)
		moved[i] += by
		b, also := l.At(moved)
		by = moved[i] - args[i]
		if r := l.Ranges[i]; !holds || !also || moved[i] > r.High {
			return 0
		}
		rounding := 1e-14 * (math.Abs(a) + math.Abs(b))
		return max(0, math.Abs(b-a)-rounding) / by
	}
	for range 2000 {
		args := make([]float64, len(l.Args))
		for k, r := range l.Ranges {
			args[k] = sample(r, random)
		}
		by := 1e-3 * max(math.Abs(args[i]), 1e-3*size(l.Ranges[i]))
		if s := rise(args, by); s > most {
			nearer := 0.0
			for range 4 {
				nearer = max(nearer, rise(args, by/4))
				args[i] += by / 4
			}
			if !(nearer > 2*s) {
				most = s
			}
		}
	}
	return most
}

// size returns the largest absolute value of a range, 1 of an infinite one.
func size(r network.Range) float64 {
	if s := max(math.Abs(r.Low), math.Abs(r.High)); !math.IsInf(s, 0) && s > 0 {
		return s
	}
	return 1
}

// sample returns a value in a range: evenly, or near 0 by its size.
func sample(r network.Range, random *rand.Rand) float64 {
	low, high := max(r.Low, -1e4*size(r)), min(r.High, 1e4*size(r))
	v := low + (high-low)*random.Float64()
	if random.IntN(2) == 0 {
		v *= math.Pow(10, -10*random.Float64())
	}
	return min(max(v, r.Low), r.High)
}

func TestParameterThatWouldMakeALawInfinitelySteepIsNamed(t *testing.T) {
	const old = "  drag: {type: damper, a: frame, b: wheel, d: 0.01}"
	for _, c := range [][2]string{
		{"type: quadratic_speed_dependent_torque, flange: wheel, tau_nominal: -1, w_nominal: «1e-200 rad/s»", "w_nominal 1e-200 rad/s is outside 1e-9 to 1e7 rad/s (nominal speed)"},
		{"type: eddy_current_torque, flange: wheel, tau_nominal: 1, w_nominal: «1e-300»", "w_nominal 1e-300 rad/s is outside 1e-9 to 1e7 rad/s (slip of the largest torque at TRef)"},
		{"type: bearing_friction, flange: wheel, tau_Coulomb: 1, tau_Stribeck: 1, fexp: «1e200»", "fexp 1e+200 s/rad is outside 1e-9 to 1e9 s/rad (decay of the Stribeck friction)"},
	} {
		modeltest.Refuse(t, modeltest.Train, old, "  drag: {"+c[0]+"}", `element "drag": `+c[1])
	}
}
