package thermal_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

const period = 5 * time.Millisecond

// idle is an inertia that nothing moves: every plant has one.
const idle = "idle: {type: inertia, J: 1}\n"

func TestTwoCapacitiesShareTheirHeat(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(idle+`
oil: {type: heat_capacitor, C: 8 J/K, T_start: 90 degC}
housing: {type: heat_capacitor, C: 24 J/K, T_start: 20 degC}
wall: {type: thermal_conductor, port_a: oil, port_b: housing, G: 12 W/K}
`, "T_oil: {signal: oil, unit: degC}\nT_housing: {state: housing.T}\nQ: {signal: wall.Q_flow}"), period)
	mean, rate := (8*90+24*20)/32.+273.15, 12*(1/8.+1/24.)
	b.To(3, func(s float64) {
		fall := 70 * math.Exp(-rate*s)
		b.Is("T_oil", mean+fall*24/32, 1e-12)
		b.Is("T_housing", mean-fall*8/32, 1e-12)
		b.Is("Q", 12*fall, 1e-10)
	})
	if laws := b.Tables.M - b.Tables.FirstLaw; laws != 0 {
		t.Errorf("%d laws; conduction is linear", laws)
	}
}

// A heater, a resistor to the surroundings, and convection with a conductance over time.
func TestHeatFlowsToTheSurroundings(t *testing.T) {
	b := modeltest.New(t, "inputs: {fan: {unit: W/K, min: 0, max: 10}, air: {unit: degC, min: -40, max: 60, default: 20}}\n"+
		modeltest.PlantOf(idle+`
block: {type: heat_capacitor, C: 10 J/K, T_start: 20 degC}
heater: {type: prescribed_heat_flow, port: block, Q_flow: 100 W}
gap: {type: thermal_resistor, port_a: block, port_b: air, R: 0.5 K/W}
blown: {type: convection, solid: block, fluid: air, Gc: fan}
fixed: {type: convection, solid: block, fluid: 20 degC, Gc: 1 W/K}
`, "T: {signal: block}"), period)
	b.Set("fan", 2)
	b.To(4, func(s float64) { b.Is("T", 293.15+20*(1-math.Exp(-0.5*s)), 1e-10) })
	at := b.Get("T") - 293.15
	b.Set("fan", 7)
	b.To(6, func(s float64) { b.Is("T", 293.15+10+(at-10)*math.Exp(-(s-4)), 1e-10) })
}

// A conductance of unknown range is 0 while it is negative; one whose range is known must not be negative.
func TestAConductanceIsNotNegative(t *testing.T) {
	text := func(gc string) string {
		return "inputs: {fan: {unit: W/K, min: -5, max: 10}, calm: {unit: W/K, min: 0, max: 10}}\n" + modeltest.PlantOf(idle+`
block: {type: heat_capacitor, C: 10 J/K, T_start: 50 degC}
slope: {type: integrator, u: -1 W/(K.s), y_start: 1 W/K}
cooling: {type: convection, solid: block, fluid: 20 degC, Gc: `+gc+`}
later: {type: limiter, u: slope, uMax: 1 W/K}
`, "T: {signal: block}\nfan_now: {signal: fan}\ncalm_now: {signal: calm}")
	}
	for gc, want := range map[string]string{
		"0": "", "calm": "", "slope": "", "0 W/K": "",
		"-1 W/K":                "Gc can be -1 W/K; it must not be negative (convective conductance)",
		"fan":                   "Gc can be -5 W/K; it must not be negative",
		"{product: [-1, calm]}": "Gc can be -10 W/K; it must not be negative",
		"later":                 "Gc can be -1 W/K; it must not be negative",
	} {
		if err := modeltest.Check(text(gc)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", gc, err, want)
		}
	}
	b := modeltest.New(t, text("slope"), period)
	b.To(3, func(s float64) { // T' = -Gc·(T - 20 degC)/C with Gc = 1 - s, until 1 s
		s = math.Min(s, 1)
		b.Is("T", 293.15+30*math.Exp(-(s-s*s/2)/10), 1e-9)
	})
}

// C·T' = -Gr·sigma·T⁴ has the solution T = (T0⁻³ + 3·Gr·sigma·t/C)^(-1/3).
func TestABodyRadiatesIntoSpace(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(idle+`
disc: {type: heat_capacitor, C: 50 J/K, T_start: 900 K}
glow: {type: body_radiation, port_a: disc, port_b: 0 K, Gr: 0.3 m2}
`, "T: {signal: disc}"), period)
	b.To(10, func(s float64) {
		b.Is("T", math.Pow(math.Pow(900, -3)+3*0.3*5.670374419e-8*s/50, -1./3), 1e-10)
	})
}

// launch is a motor that a clutch joins with a car; its heat goes into the plates.
func launch(extra, fn string) string {
	return modeltest.PlantOf(`
motor: {type: inertia, J: 0.3 kg.m2, w_start: 200 rad/s}
car: {type: inertia, J: 2 kg.m2}
plates: {type: heat_capacitor, C: 400 J/K, T_start: 300 K}
clutch: {type: clutch, a: motor, b: car, mu: 0.2, cgeo: 0.5 m, fn: `+fn+`, heat_port: plates`+extra+`}
`, "T: {signal: plates}\nw_motor: {speed: motor}\nw_car: {speed: car}\nloss: {signal: clutch.lossPower}")
}

// A loss takes part in the law iteration where its heat acts on a torque or on another law, and only there.
func TestLossIsIteratedWhereItsHeatActsBack(t *testing.T) {
	radiates := "glow: {type: body_radiation, port_a: plates, port_b: 300 K, Gr: 0.1 m2}"
	for _, c := range []struct {
		extra, elements string
		downstream      int
	}{
		{"", "", 1},
		{"", "wall: {type: thermal_conductor, port_a: plates, port_b: 300 K, G: 10 W/K}", 1},
		{", factor_T: [[300 K, 1], [400 K, 0.6]]", "", 0}, // the capacity of the clutch is a law, too
		{"", radiates, 0},
	} {
		text := launch(c.extra, "300 N")
		text = strings.Replace(text, "plates: {", c.elements+"\n  plates: {", 1)
		b := modeltest.New(t, text, period)
		if got := len(b.Tables.Downstream); got != c.downstream {
			t.Errorf("%s%s: %d laws follow from the iteration, want %d", c.extra, c.elements, got, c.downstream)
		}
	}
}

// The heat of a launch is the kinetic energy that is lost, whatever the force on the plates.
func TestHeatOfALaunchIsTheLossOfKineticEnergy(t *testing.T) {
	for _, c := range []struct {
		fn  string
		tol float64 // the power is a parabola over a substep: exact up to a cubic
	}{{"300 N", 1e-12}, {"{ramp: {height: 500 N, duration: 1 s}}", 1e-12}, {"{sine: {amplitude: 200 N, f: 3 Hz, offset: 250 N}}", 1e-9}} {
		fn := c.fn
		b := modeltest.New(t, launch("", fn), period).To(3, nil)
		if !(math.Abs(b.Get("w_motor")-b.Get("w_car")) < 1e-9) {
			t.Fatalf("fn %s: it still slips", fn)
		}
		lost := (0.3*200*200 - (0.3+2)*b.Get("w_car")*b.Get("w_car")) / 2
		b.Is("w_car", 0.3*200/2.3, 1e-12)
		b.Is("T", 300+lost/400, c.tol)
		b.Is("loss", 0, 1e-9)
	}
}

// With a constant torque the power falls in a line: the temperature is a parabola, to the instant of the
// lock.
func TestTemperatureOfALaunchIsAParabola(t *testing.T) {
	b := modeltest.New(t, launch("", "300 N"), period)
	slope := 30 * (1/0.3 + 1/2.)
	b.To(2, func(s float64) {
		s = math.Min(s, 200/slope)
		b.Is("T", 300+30*(200*s-slope*s*s/2)/400, 1e-12)
	})
}

// The friction falls with the temperature: f = 1 - (T - 300 K)/100 K. With the slip s and the torque 30·f,
// T' = 30·f·s/400 and s' = -30·f·q, so T - 300 = (200² - s²)/(2·400·q): a trajectory without time.
func TestFrictionFollowsTheTemperature(t *testing.T) {
	b := modeltest.New(t, launch(", factor_T: [[300, 1], [400, 0]]", "300 N"), time.Millisecond)
	q := 1/0.3 + 1/2.
	a := 1 - 200*200/(2*400*q*100)
	c := 1 / (2 * 400 * q * 100) // f = a + c·s², s' = -30·q·f: s = root·tan(...)
	root := math.Sqrt(a / c)
	b.To(1, func(s float64) {
		slip := root * math.Tan(math.Atan(200/root)-30*q*math.Sqrt(a*c)*s)
		if slip < 1 {
			return
		}
		b.Is("T", 300+(200*200-slip*slip)/(2*400*q), 1e-9)
		if got := b.Get("w_motor") - b.Get("w_car"); !(math.Abs(got-slip) <= 1e-7) {
			t.Errorf("slip is %.12g at %g s, want %.12g", got, s, slip)
		}
	})
}

// All losses of a drivetrain heat one capacity: its heat is the energy that the rest loses.
func TestLossesOfADrivetrainBecomeHeat(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
motor: {type: inertia, J: 0.3, w_start: 150 rad/s}
oil: {type: heat_capacitor, C: 100 J/K, T_start: 300 K}
cup: {type: inertia, J: 0.1, w_start: 20 rad/s}
converter: {type: torque_converter, impeller: motor, turbine: turbine, K: [[0, 12], [0.8, 16], [1, 80]],
            ratio: [[0, 2], [0.85, 1]], heat_port: oil}
turbine: {type: inertia, J: 0.1}
gear: {type: lossy_gear, a: turbine, b: out, ratio: 3, lossTable: [[0, 0.95, 0.9, 0.5, 0.6]], heat_port: oil}
out: {type: inertia, J: 1}
shaft: {type: spring_damper, a: out, b: load, c: 300, d: 4, heat_port: oil}
load: {type: inertia, J: 2}
bearing: {type: bearing_friction, flange: load, tau_Coulomb: 1, tau_Stribeck: 0.5, fexp: 1, tau_prop: 0.1, heat_port: oil}
drag: {type: damper, a: cup, b: load, d: 0.2, heat_port: oil}
hold: {type: brake, flange: cup, mu_pos: [[0, 0.3], [20, 0.2]], cgeo: 1, fn: 3, heat_port: oil}
`, `
T: {signal: oil}
w1: {speed: motor}
w2: {speed: turbine}
w3: {speed: out}
w4: {speed: load}
w5: {speed: cup}
twist: {phi_rel: shaft}
`), time.Millisecond)
	energy := func() float64 {
		sum := 300 * b.Get("twist") * b.Get("twist")
		for name, J := range map[string]float64{"w1": 0.3, "w2": 0.1, "w3": 1, "w4": 2, "w5": 0.1} {
			sum += J * b.Get(name) * b.Get(name)
		}
		return sum / 2
	}
	all := energy()
	b.To(2, func(s float64) {
		heat := 100 * (b.Get("T") - 300)
		if !(math.Abs(all-energy()-heat) <= 2e-7*all) {
			t.Fatalf("at %g s the heat is %.9g J, the loss of energy %.9g J", s, heat, all-energy())
		}
	})
	if heat := 100 * (b.Get("T") - 300); !(heat > all/3) {
		t.Errorf("%g J of %g J became heat", heat, all)
	}
}

func TestErrorsOfHeatNameTheElement(t *testing.T) {
	base := launch("", "300 N")
	for _, c := range []struct{ old, new, want string }{
		{"heat_port: plates", "heat_port: 300 K", `element "clutch": heat_port: the heat needs a heat capacity; name a heat_capacitor`},
		{"heat_port: plates", "heat_port: plate", `element "clutch": heat_port: "plate" is not a temperature; name a heat_capacitor (did you mean plates?)`},
		{"heat_port: plates", "heat_port: car", `element "clutch": heat_port: "car" is not a temperature; name a heat_capacitor, such as plates`},
		{"  clutch: ", "  heater: {type: prescribed_heat_flow, port: car, Q_flow: 1 W}\n  clutch: ",
			`element "heater": port: "car" is not a temperature; name a heat_capacitor, such as plates`},
		{"  clutch: ", "  gap: {type: thermal_conductor, port_a: plates, port_b: -400 degC, G: 1}\n  clutch: ",
			`element "gap": port_b can be -126.85 K; it must not be negative (second temperature)`},
		{"  clutch: ", "  gap: {type: convection, solid: plates, fluid: {sum: [1 K, {product: [-2, {constant: 1 K}]}]}, Gc: 1}\n  clutch: ",
			`element "gap": fluid can be -1 K; it must not be negative (temperature of the fluid)`},
		{"heat_port: plates", "factor_T: [[300, 1]], temperature: -400 degC",
			`element "clutch": temperature can be -126.85 K; it must not be negative (temperature of factor_T)`},
		{"heat_port: plates", "factor_T: [[300, 1]], heat_port: plate",
			`element "clutch": heat_port: "plate" is not a temperature; name a heat_capacitor (did you mean plates?)`},
		{"heat_port: plates", "temperature: plates", `element "clutch": temperature goes with factor_T`},
		{"heat_port: plates", "factor_T: [[300, 1]]", `element "clutch": factor_T needs temperature (a temperature over time, K) or heat_port`},
		{"heat_port: plates", "heat_port: plates, factor_T: [[300, -1]]", `element "clutch": factor_T -1 is negative ([temperature, factor of the friction])`},
		{"C: 400 J/K", "C: 0", `element "plates": C 0 J/K is not positive (heat capacity)`},
		{"C: 400 J/K", "C: 400 W/K", `element "plates": C: "400 W/K": unit W/K does not fit, J/K is wanted`},
		{"plates: {type: heat_capacitor, C: 400 J/K, T_start: 300 K}", "plates: {type: heat_capacitor, C: 1}\n  gap: {type: thermal_conductor, port_a: 20 degC, port_b: 300 K, G: 1}",
			`element "gap": port_a: the heat needs a heat capacity; name a heat_capacitor`},
		{"plates: {type: heat_capacitor, C: 400 J/K, T_start: 300 K}", "plates: {type: heat_capacitor, C: 1}\n  gap: {type: thermal_conductor, port_a: plates, port_b: plates, G: 1}",
			`element "gap": port_a and port_b are the same temperature; no heat flows`},
	} {
		t.Run(c.new, func(t *testing.T) {
			err := modeltest.Check(strings.Replace(base, c.old, c.new, 1))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
