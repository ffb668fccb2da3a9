package machine_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// The limits are those at the speed and the voltage; the loss is that of the sizes in all four quadrants.
func TestElectricMachineKeepsItsLimitsAndLosses(t *testing.T) {
	for _, c := range []struct {
		keys              string
		w, ref, tau, loss float64
	}{
		{"tau_max: [[0, 200], [400, 200], [800, 100]]", 200, 150, 150, 75 + 300},
		{"tau_max: [[0, 200], [400, 200], [800, 100]]", 600, 180, 150, 225 + 300},
		{"tau_max: [[0, 200], [400, 200], [800, 100]]", 600, -180, -150, 225 + 300},
		{"tau_max: [[-800, 50], [0, 200], [800, 50]], tau_min: [[0, -200], [800, -40]]", 400, -180, -120, 150 + 240},
		{"tau_max: [[-800, 50], [0, 200], [800, 50]], tau_min: [[0, -200], [800, -40]]", -400, 180, 125, 150 + 250},
		{"tau_map: {w: [0, 400, 800], voltage: [200, 400], tau: [[150, 200], [120, 200], [60, 120]]}, voltage: 300 V", -600, -500, -125, 225 + 250},
		{"tau_max: [[0, 200]], factor_T: [[350, 1], [400, 0]], temperature: 390", 100, 100, 40, 37.5 + 80},
	} {
		b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
rotor: {type: inertia, J: 1, w_start: %g}
em: {type: electric_machine, flange: rotor, tau_ref: %g N.m, %s,
     losses: {w: [0, 800], tau: [0, 200], P: [[0, 400], [300, 700]]}}`, c.w, c.ref, c.keys),
			"tau: {torque: em}\nloss: {signal: em.lossPower}\nP: {signal: em.P_el}"), 5*time.Millisecond)
		b.Is("tau", c.tau, 1e-12)
		b.Is("loss", c.loss, 1e-12)
		b.Is("P", c.tau*c.w+c.loss, 1e-12)
	}
}

// Rows of the torque P/w at speeds that grow by a factor of 1.25 limit the power to P, and between the rows to at most
// 1.0125·P, as (w₁ + w₂)·(P/w₁ + P/w₂)/4 is.
func TestRowsOfTorqueLimitThePowerOfAnElectricMachine(t *testing.T) {
	const P, first, factor = 80e3, 400., 1.25
	rows := "[0, 200]"
	for w := first; w < 1000; w *= factor {
		rows += fmt.Sprintf(", [%.17g, %.17g]", w, P/w)
	}
	b := modeltest.New(t, modeltest.PlantOf(`
rotor: {type: inertia, J: 1}
em: {type: electric_machine, flange: rotor, tau_ref: 1000, tau_max: [`+rows+`]}`, "w: {speed: rotor}\nP: {signal: em.P_el}"), 5*time.Millisecond)
	most := 0.0
	b.To(6, func(at float64) {
		w, p := b.Get("w"), b.Get("P")
		if most = max(most, p); w > first && w < 900 && !(p >= P*(1-1e-9) && p <= P*1.01251) {
			t.Fatalf("%g W at %g rad/s", p, w)
		}
	})
	if !(most > 1.012*P) {
		t.Errorf("the largest power is %g W", most)
	}
}

// The torque rises at the rate while more than rate·lag of it is missing, then with the lag.
func TestElectricMachineHasARateAndALag(t *testing.T) {
	const lag, rate, goal = 0.02, 2000., 120.
	b := modeltest.New(t, modeltest.PlantOf(`
rotor: {type: inertia, J: 1e3}
em: {type: electric_machine, flange: rotor, tau_ref: {step: {height: 120, startTime: 12 ms}}, tau_max: [[0, 200]], lag: 20 ms, rate: 2000 N.m/s}`,
		"tau: {torque: em}"), 5*time.Millisecond)
	ramp := (goal - rate*lag) / rate
	b.To(0.3, func(at float64) {
		since, want := at-0.012, 0.0
		switch {
		case since > ramp:
			want = goal - rate*lag*math.Exp(-(since-ramp)/lag)
		case since > 0:
			want = rate * since
		}
		b.Is("tau", want, 1e-9)
	})
}

// A command that an element of the plant gives acts after the dead time; in ticks, a ramp is delayed exactly.
func TestElectricMachineHasADeadTime(t *testing.T) {
	for _, c := range []struct {
		delay string
		late  float64
	}{{"", 0}, {"delay: 20 ms, ", 0.02}, {"delay: 12.5 ms, ", 0.0125}} {
		b := modeltest.New(t, modeltest.PlantOf(`
rotor: {type: inertia, J: 1e3}
wanted: {type: gain, u: {ramp: {height: 300 N.m, duration: 300 ms, startTime: 10 ms}}, k: 1}
em: {type: electric_machine, flange: rotor, tau_ref: wanted, `+c.delay+`tau_max: [[0, 200]]}`,
			"tau: {torque: em}"), 5*time.Millisecond)
		b.To(0.3, func(at float64) {
			want := min(max(0, at-0.01-c.late)*1000, 200)
			b.Is("tau", want, 1e-9)
		})
	}
}

// At a constant speed the loss warms the machine, and its torque limit falls: 400 K - T falls as an exponential. The
// energy that the machine draws is its work and its loss.
func TestElectricMachineDeratesByItsTemperature(t *testing.T) {
	const limit, capacity, perTorque = 200., 500., 10. // N·m, J/K, W/(N·m)
	b := modeltest.New(t, modeltest.PlantOf(`
rotor: {type: inertia, J: 1e9, w_start: 300}
em: {type: electric_machine, flange: rotor, tau_ref: 1000, tau_max: [[0, 200]], factor_T: [[300, 1], [400, 0]], heat_port: winding,
     losses: {w: [0, 1000], tau: [0, 200], P: [[0, 2000], [0, 2000]]}}
winding: {type: heat_capacitor, C: 500, T_start: 300}
drawn: {type: integrator, u: em.P_el}`,
		"tau: {torque: em}\nT: {signal: winding}\nE: {signal: drawn}\nW: {work: em}\nD: {dissipated: em}"), 5*time.Millisecond)
	b.To(40, func(at float64) {
		b.Is("T", 400-100*math.Exp(-perTorque*limit/100/capacity*at), 1e-9)
		b.Is("tau", limit*(400-b.Get("T"))/100, 1e-9)
	})
	b.Is("E", b.Get("W")+b.Get("D"), 1e-9)
	b.Is("D", capacity*(b.Get("T")-300), 1e-9)
}

// A battery whose open-circuit voltage is u = a + b·soc delivers the constant power P in the time
//
//	t = -C/(2·b·P)·(G(u) - G(u0)),  G(u) = (u² + u·sqrt(u² - k²) - k²·ln(u + sqrt(u² - k²)))/2,  k² = 4·R·P
//
// and what it loses of its charge times that voltage is delivered, or lost in R.
func TestBatteryDeliversConstantPowerAsItsClosedForm(t *testing.T) {
	const a, slope, R, capacity = 300., 100., 0.1, 7200.
	for _, P := range []float64{60e3, -60e3} {
		b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
body: {type: inertia, J: 1}
battery: {type: battery, power: %g W, U0: [[0, 300], [1, 400]], R: 0.1 V/A, capacity: 2 A.h, soc_start: 0.5, heat_port: cells}
cells: {type: heat_capacitor, C: 1e3}`, P), "U: {signal: battery}\nI: {signal: battery.I}\nsoc: {state: battery.soc}\nD: {dissipated: battery}\nT: {signal: cells}"),
			100*time.Millisecond)
		G := func(u float64) float64 {
			q := math.Sqrt(u*u - 4*R*P)
			return (u*u + u*q - 4*R*P*math.Log(u+q)) / 2
		}
		b.To(15, func(at float64) {
			u := a + slope*b.Get("soc")
			if got := -capacity / (2 * slope * P) * (G(u) - G(a+slope/2)); !scalar.EqualWithinAbsOrRel(got, at, 1e-9, 1e-9) {
				t.Errorf("at %g s and %g W the state of charge is that of %.12g s", at, P, got)
			}
			b.Is("U", P/b.Get("I"), 1e-12)
			soc := b.Get("soc")
			given := capacity * (a*(0.5-soc) + slope/2*(0.25-soc*soc))
			b.Is("D", given-P*at, 1e-7*math.Abs(given))
			b.Is("T", 293.15+b.Get("D")/1e3, 1e-9)
		})
	}
}

// Beyond U0²/(4·R) the battery delivers that power, and shows what is missing.
func TestBatteryDeliversAtMostItsLargestPower(t *testing.T) {
	b := modeltest.New(t, `plant: t
inputs: {P: {unit: kW, min: -100, max: 500}}
elements:
  body: {type: inertia, J: 1}
  b: {type: battery, power: P, U0: 400 V, R: [[0, 0.2], [1, 0.1]], capacity: 50 A.h, soc_start: 1}
outputs: {U: {signal: b}, I: {signal: b.I}, most: {signal: b.P_max}, short: {signal: b.shortage}}
`, 5*time.Millisecond)
	for _, P := range []float64{0, 390e3, 450e3, 300e3, -80e3} {
		b.Set("P", P)
		b.To(float64(b.Ticks+1)*0.005, nil)
		b.Is("most", 400e3, 1e-3) // the charge sinks a little
		most := b.Get("most")
		b.Is("short", max(0, P-most), 1e-9)
		b.Is("I", min(P, most)/b.Get("U"), 1e-9)
	}
}

// A machine on a battery: the voltage sinks with the power, and the limit of the torque with the voltage. What the
// battery loses of its charge is the work of the machine, its loss, and that of the battery.
func TestMachineOnABatteryClosesItsEnergy(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
rotor: {type: inertia, J: 0.5}
load: {type: quadratic_speed_dependent_torque, flange: rotor, tau_nominal: -60, w_nominal: 400, TorqueDirection: false}
em: {type: electric_machine, flange: rotor, tau_ref: {table: [[0, 0], [0.1, 250], [2, 250], [2.1, -150], [4, -150]]}, voltage: battery,
     tau_map: {w: [0, 200, 600], voltage: [250, 400], tau: [[180, 220], [150, 200], [50, 90]]}, lag: 30 ms, rate: 2000 N.m/s,
     losses: {w: [0, 600], tau: [0, 250], P: [[0, 4000], [500, 5000]]}}
battery: {type: battery, power: {sum: [em.P_el, 500 W]}, U0: 400 V, R: 0.2 V/A, capacity: 5 A.h, soc_start: 0.8}`,
		"U: {signal: battery}\nI: {signal: battery.I}\nsoc: {state: battery.soc}\nw: {speed: rotor}\ntau: {torque: em}\nlimit: {signal: em.tau_limited}\n"+
			"W: {work: em}\nD: {dissipated: em}\nDb: {dissipated: battery}"), 5*time.Millisecond)
	least, charged := 400.0, false
	b.To(4, func(at float64) {
		least = min(least, b.Get("U"))
		charged = charged || b.Get("I") < -10
		given := 400 * 5 * 3600 * (0.8 - b.Get("soc"))
		b.Is("W", given-500*at-b.Get("D")-b.Get("Db"), 1e-5*(1+math.Abs(given)))
	})
	if !(least < 380 && charged && b.Get("Db") > 100) {
		t.Errorf("the voltage sinks to %g V, the battery loses %g J; charged: %v", least, b.Get("Db"), charged)
	}
}

func TestBadElectricMachineIsRefused(t *testing.T) {
	const old = "  drag: {type: damper, a: frame, b: wheel, d: 0.01}"
	const machine, battery = "  drag: {type: electric_machine, flange: wheel, tau_ref: pedal, ", "  drag: {type: battery, "
	modeltest.Refuse(t, modeltest.Train, old, machine+"tau_map: {w: [0, 1], voltage: [100, 400], tau: [[1, 1], [1, 1]]}}",
		`15:3: model: element "drag": electric_machine needs voltage (voltage of the supply, such as a battery, V, or the name of an input)`)
	for _, c := range [][2]string{
		{machine + "tau_max: [[0, «-5»]]", `tau_max -5 N.m is negative ([speed, largest torque])`},
		{machine + "tau_max: [[0, 5]], tau_min: «[[0, 1]]»", `tau_min: 1 N.m is positive; the least torque is 0 or negative`},
		{machine + "tau_max: [[0, 5]], «voltage: 300»", `voltage goes with tau_map`},
		{machine + "tau_max: [[0, 5]], «rate: 300»", `rate goes with lag above 0`},
		{machine + "tau_max: [[0, 5]], losses: «{w: [-1, 1], tau: [0, 1], P: [[0, 1], [0, 1]]}»",
			`losses: w begins at -1; the map is over sizes, from 0 or above`},
		{battery + "power: «500 kW», U0: 400 V, R: 0.1, capacity: 1 A.h", `power is at least 500000 W; U0 and R allow 400000 W at most`},
		{battery + "power: 5 kW, U0: 400 V, R: «0», capacity: 1 A.h", `R 0 V/A is not positive (internal resistance; [state of charge, resistance])`},
		{battery + "power: 5 kW, U0: 400 V, R: 0.1, capacity: 1 A.h, soc_start: «1.2»",
			`soc_start 1.2 is outside 0 to 1 (state of charge at the start)`},
	} {
		modeltest.Refuse(t, modeltest.Train, old, c[0]+"}", `element "drag": `+c[1])
	}
}
