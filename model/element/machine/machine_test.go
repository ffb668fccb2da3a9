package machine_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// The torque on a stalled turbine is ratio(0)·lambda(0)·w². A turbine faster than the pump drives
// the pump.
func TestConverterStallsAndCoasts(t *testing.T) {
	for _, table := range []string{
		"lambda: [[0, 0.004], [0.8, 0.003], [1, 0]]",
		"K: [[0, 15.811388300841896], [0.8, 18.257418583505537]]", // 1/sqrt(lambda), mirrored at 1
	} {
		b := modeltest.New(t, `
plant: t
inputs: {w: {unit: N.m}}
elements:
  pump: {type: inertia, J: 0.2, w_start: 100}
  turbine: {type: inertia, J: 0.1, w_start: 0}
  holds: {type: brake, flange: turbine, mu: 1, cgeo: 1, fn: {table: [[0, 1e4], [1, 1e4], [1, 0]]}}
  c: {type: torque_converter, impeller: pump, turbine: turbine, `+table+`, ratio: [[0, 2], [0.8, 1]]}
  push: {type: torque, flange: turbine, tau: {product: [w, {step: {height: 1, startTime: 1}}]}}
outputs:
  P: {signal: c.tau_pump}
  T: {signal: c.tau_turbine}
  wp: {speed: pump}
  wt: {speed: turbine}
`, 5*time.Millisecond)
		b.To(0.5, nil)
		w := b.Get("wp")
		b.Is("wp", 100/(1+0.004*100*0.5/0.2), 1e-8) // J·w' = -lambda·w²
		b.Is("P", 0.004*w*w, 1e-9)
		b.Is("T", 2*b.Get("P"), 1e-12)
		b.Set("w", 30)
		b.To(6, nil)
		if !(b.Get("wt") > b.Get("wp") && b.Get("P") < 0) {
			t.Errorf("coasting: turbine %g, pump %g rad/s, pump torque %g N·m", b.Get("wt"), b.Get("wp"), b.Get("P"))
		}
		if got := b.Get("T"); !scalar.EqualWithinRel(got, b.Get("P"), 1e-9) {
			t.Errorf("coasting multiplies the torque: %g and %g N·m", got, b.Get("P"))
		}
	}
}

// A lock may leave a rounding of the impeller's speed. The torque then is that of an impeller at rest.
func TestConverterBearsAnImpellerThatHardlyTurns(t *testing.T) {
	for _, w := range []string{"5e-324", "1e-200", "1e-120", "-5e-324", "0"} {
		b := modeltest.New(t, `
plant: t
elements:
  pump: {type: inertia, J: 0.2, w_start: `+w+`}
  turbine: {type: inertia, J: 0.1, w_start: -1}
  holds: {type: brake, flange: pump, mu: 1, cgeo: 1, fn: 1e4}
  c: {type: torque_converter, impeller: pump, turbine: turbine, K: [[0, 12], [0.8, 18]], ratio: [[0, 2], [0.8, 1]]}
outputs: {P: {signal: c.tau_pump}, T: {signal: c.tau_turbine}, wt: {speed: turbine}}
`, 5*time.Millisecond)
		b.To(0.1, nil)
		b.Is("P", 0, 1e-12)
		b.Is("T", 0, 1e-12)
		b.Is("wt", -1, 1e-12)
	}
}

// The idle controller is proportional: it balances the load at idle_speed - load/gain. The limiter
// balances full load within its fade.
func TestEngineIdlesAndIsLimited(t *testing.T) {
	b := modeltest.New(t, `
plant: t
inputs: {pedal: {unit: 1, min: 0, max: 1}}
elements:
  crank: {type: inertia, J: 0.2, w_start: 90}
  engine: {type: engine, flange: crank, throttle: pedal, full_load: [[0, 100], [1000, 200]], drag: [[0, -10], [1000, -10]],
    idle_speed: 80 rad/s, idle_gain: 5, idle_torque: 60, limit_speed: 600, limit_range: 20, lag: 50 ms}
outputs:
  w: {speed: crank}
  tau: {torque: engine}
`[1:], 5*time.Millisecond)
	b.To(10, nil)
	b.Is("w", 80-10./5, 1e-6) // 5·(80 - w) = 10
	b.Is("tau", 0, 1e-6)
	b.Set("pedal", 1)
	b.To(40, nil)
	// (full + 10)·f - 10 = 0 with f = (620 - w)/20, full = 100 + 0.1·w
	w := 610.0
	for range 50 {
		w = 620 - 20*10/(110+0.1*w)
	}
	b.Is("w", w, 1e-5)
}

// A first-order lag follows a step of the throttle as 1 - exp(-t/T).
func TestTorqueOfAnEngineMapHasItsLag(t *testing.T) {
	b := modeltest.New(t, `
plant: t
elements:
  crank: {type: inertia, J: 1e6, w_start: 150}
  engine: {type: engine, flange: crank, throttle: {step: {height: 0.5, startTime: 0.1}}, lag: 0.2,
    map: {w: [100, 200], throttle: [0, 1], tau: [[0, 100], [-20, 60]]}}
outputs: {tau: {torque: engine}}
`[1:], 5*time.Millisecond).To(0.5, nil)
	from, to := -10., 35.
	b.Is("tau", to+(from*(1-math.Exp(-0.5))-to)*math.Exp(-2), 1e-5)
}

// A vehicle holds on a slope below its rolling resistance and accelerates with g·(sin - Cr·cos) on
// a steeper slope.
func TestVehicleStandsAndRolls(t *testing.T) {
	b := modeltest.New(t, `
plant: t
inputs: {grade: {unit: "%", default: 1.9}}
elements:
  axle: {type: inertia, J: 1e-6}
  car: {type: vehicle, flange: axle, m: 1000 kg, R: 0.3, Cr: 0.02, inclination: grade, g: 10}
outputs: {v: {speed: car}, s: {position: car}}
`[1:], 10*time.Millisecond)
	b.To(2, nil)
	b.Is("v", 0, 1e-12)
	b.Is("car.mode", 0, 0)
	b.Set("grade", 0.03)
	b.To(4, nil)
	a := math.Atan(0.03)
	b.Is("v", -2*10*(math.Sin(a)-0.02*math.Cos(a)), 1e-7)
}

// The air drag is ½·rho·Cd·A·v², with v relative to a head wind.
func TestAirDragFollowsTheWind(t *testing.T) {
	b := modeltest.New(t, `
plant: t
inputs: {wind: {unit: m/s, default: -10}}
elements:
  axle: {type: inertia, J: 1}
  car: {type: vehicle, flange: axle, m: 1000 kg, R: 0.5, A: 2, Cd: 0.3, rho: 1.2, Cr: 0, wind: wind, v_start: 20}
outputs: {f: {signal: car.f_air}, F: {force: car, onto: car}}
`[1:], 10*time.Millisecond)
	b.Is("f", -0.36*900, 1e-12)
	b.Is("F", -0.36*900, 1e-12)
}

// A vehicle without driven wheels coasts under air and rolling resistance: v' = -(a + b·v²). With
// wheels, their inertia J counts as J/R².
func TestVehicleCoastsWithoutDrivenWheels(t *testing.T) {
	b := modeltest.New(t, `
plant: t
elements:
  trailer: {type: vehicle, m: 1000 kg, A: 2, Cd: 0.5, rho: 1.2, v_start: 20}
  axle: {type: inertia, J: 3}
  engine: {type: torque, flange: axle, tau: 500}
  car: {type: vehicle, flange: axle, m: 1000 kg, R: 0.5, J: 47, Cr: 0}
outputs: {v: {speed: trailer}, w: {speed: axle}}
`[1:], 10*time.Millisecond).To(5, nil)
	a, k := 0.015*9.80665, 0.6e-3
	b.Is("v", math.Sqrt(a/k)*math.Tan(math.Atan(20*math.Sqrt(k/a))-5*math.Sqrt(a*k)), 1e-6)
	b.Is("w", 5*500/(3+47+1000*0.25), 1e-9)
	for _, entry := range []string{"R: 0.3", "J: 1"} {
		want := strings.Split(entry, ":")[0] + " goes with flange"
		if err := modeltest.Check("plant: t\nelements:\n  car: {type: vehicle, m: 1000 kg, " + entry + "}\n"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", entry, err, want)
		}
	}
}

// The pressure follows the current through the map and the lag. The dead time is the delay of the
// input.
func TestActuatorHasLagAndDeadTime(t *testing.T) {
	b := modeltest.New(t, `
plant: t
inputs: {i: {unit: mA, min: 0, max: 1000, delay: 12 ms}}
elements:
  body: {type: inertia, J: 1, w_start: 1}
  valve: {type: hydraulic_actuator, current: i, lag: 20 ms, pressure_map: [[100 mA, 0], [900 mA, 16 bar]]}
  b: {type: brake, flange: body, mu: 0.1, cgeo: 1, area: 10 cm2, pressure: valve}
outputs: {p: {signal: valve}, cap: {state: valve.p_valve}}
`[1:], 5*time.Millisecond)
	b.Set("i", 0.5) // set at 0 s, effective from 12 ms
	b.To(0.01, nil)
	b.Is("p", 0, 1e-9)
	b.To(0.05, nil)
	b.Is("p", 8e5*(1-math.Exp(-38./20)), 1e-9)
}

// The pressure difference determines the flow of oil that fills the piston. Afterwards the piston
// has the pressure of the valve.
func TestActuatorFillsToTheKissPoint(t *testing.T) {
	b := modeltest.New(t, `
plant: t
elements:
  body: {type: inertia, J: 1, w_start: 1}
  valve: {type: hydraulic_actuator, current: 0.5, pressure_map: [[0, 0], [1, 20 bar]], fill_volume: 100 cm3,
    fill_pressure: 1 bar, kiss_pressure: 1 bar, stiffness: 1e11 Pa/m3, flow: 0.0002 m3/s, flow_range: 1 mbar}
  b: {type: brake, flange: body, mu: 0.1, cgeo: 1, area: 10 cm2, pressure: valve, p0: 1 bar}
outputs: {p: {signal: valve}, V: {state: valve.V}}
`[1:], time.Millisecond)
	fill := 1e-4 / (2e-4 * 9 / math.Sqrt(9.001)) // V/(flow·dp/sqrt(dp + range)), at 9 bar
	kiss := 0.0
	b.To(0.5, func(at float64) {
		if kiss == 0 && b.Get("V") > 1e-4 {
			kiss = at
		}
	})
	if !(kiss >= fill-1e-6 && kiss < fill+0.0011) {
		t.Errorf("kiss point at %g s, want %g", kiss, fill)
	}
	b.Is("p", 10e5, 1e-6)
}

// setGear sets the pressures of C1 to C5 and RC, bar.
func setGear(b *modeltest.Bench, pressures ...float64) {
	for i, name := range []string{"C1", "C2", "C3", "C4", "C5", "RC"} {
		b.Set(name+".pressure", pressures[i]*1e5)
	}
}

// The scenarios are reverse gear, standstill on a slope with the engine stopped and restarted,
// first gear uphill, and engine braking downhill. There is no fault and no chatter.
func TestAutomatic4RunsItsScenarios(t *testing.T) {
	data, err := os.ReadFile("../../plants/automatic4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, period := range []time.Duration{1, 5, 10} {
		b := modeltest.New(t, string(data), period*time.Millisecond)
		setGear(b, 8, 0, 10, 0, 0, 20) // reverse
		b.Set("throttle", 0.3)
		b.To(3, nil)
		if v := b.Get("v"); !(v < -1) {
			t.Errorf("%d ms: reverse gives %g m/s", period, v)
		}
		r := b.Get("w_turbine") / b.Get("w_out")
		if !scalar.EqualWithinRel(r, -2, 1e-6) {
			t.Errorf("%d ms: reverse has ratio %g, want -2", period, r)
		}
		b.Set("throttle", 0)
		b.Set("brake.pressure", 30e5)
		b.Set("grade", 0.15)
		b.To(8, nil)
		b.Is("v", 0, 1e-9)
		b.Is("car.mode", 0, 0)
		b.Set("ignition", 0)
		b.To(16, nil)
		if w := b.Get("w_engine"); !(math.Abs(w) < 1) {
			t.Errorf("%d ms: the engine turns with %g rad/s 8 s after it was switched off", period, w)
		}
		b.Is("v", 0, 1e-9)
		b.Set("ignition", 1)
		b.Set("starter.torque", 60)
		b.To(16.4, nil)
		b.Set("starter.torque", 0)
		b.To(18, nil)
		if w := b.Get("w_engine"); !(w > 60 && w < 90) {
			t.Errorf("%d ms: the engine idles with %g rad/s after the start", period, w)
		}
		setGear(b, 8, 0, 10, 0, 15, 0) // first, with engine braking through C3
		b.Set("brake.pressure", 0)
		b.Set("throttle", 1)
		b.To(22, nil)
		first := b.Get("v")
		if !(first > 3) {
			t.Errorf("%d ms: first gear climbs 15 %% with %g m/s", period, first)
		}
		b.Set("throttle", 0)
		b.Set("grade", -0.2)
		b.To(30, nil)
		if e, w := b.Get("w_engine"), b.Get("w_turbine"); !(w > e) {
			t.Errorf("%d ms: downhill in first the turbine turns with %g, the engine with %g rad/s", period, w, e)
		}
		if n := b.Get("transitions"); !(n <= 60) {
			t.Errorf("%d ms: %g transitions", period, n)
		}
		b.Is("fault", 0, 0)
	}
}

// A clutch parallel to the converter locks pump and turbine together. Then the oil transmits no
// torque.
func TestLockUpClutchBridgesTheConverter(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
pump: {type: inertia, J: 0.2, w_start: 100}
turbine: {type: inertia, J: 0.1, w_start: 80}
c: {type: torque_converter, impeller: pump, turbine: turbine, lambda: [[0, 0.004], [0.8, 0.003], [1, 0]], ratio: [[0, 2], [0.8, 1]]}
lockup: {type: clutch, a: turbine, b: pump, mu: 1, cgeo: 1, fn: {ramp: {height: 50, duration: 0.2, startTime: 0.1}}}
push: {type: torque, flange: pump, tau: 3}`, "P: {signal: c.tau_pump}\nwp: {speed: pump}\nwt: {speed: turbine}\ntau: {torque: lockup}\na: {acceleration: turbine}"), 5*time.Millisecond).To(1, nil)
	b.Is("lockup.mode", 0, 0)
	b.Is("wt", b.Get("wp"), 1e-9)
	b.Is("P", 0, 1e-6)
	b.Is("a", 10, 1e-6)
	b.Is("tau", 1, 1e-6)
}

// The gearbox shifts up and down under load, with engine braking in each gear. Every gear reaches
// its ratio, and a clutch that has locked does not slip again without a command.
func TestAutomatic4ShiftsUpAndDown(t *testing.T) {
	data, err := os.ReadFile("../../plants/automatic4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	gears := map[int][]float64{1: {8, 0, 8, 0, 18, 0}, 2: {8, 0, 0, 9, 18, 0}, 3: {8, 0, 9, 9, 0, 0}, 4: {0, 6, 9, 9, 0, 0}}
	ratio := map[int]float64{1: 2.86, 2: 1.62, 3: 1, 4: 0.71999424}
	for _, period := range []time.Duration{1, 5, 10} {
		b := modeltest.New(t, string(data), period*time.Millisecond)
		at := 0.0
		for _, g := range []int{1, 2, 3, 4, 3, 2, 1} {
			setGear(b, gears[g]...)
			b.Set("throttle", 0.8)
			b.To(at+3, nil)
			if got := b.Get("w_turbine") / b.Get("w_out"); !scalar.EqualWithinRel(got, ratio[g], 1e-6) {
				t.Errorf("%d ms: gear %d has ratio %g under load, want %g", period, g, got, ratio[g])
			}
			b.Set("throttle", 0)
			b.To(at+5, nil)
			if got := b.Get("w_turbine") / b.Get("w_out"); !scalar.EqualWithinRel(got, ratio[g], 1e-6) || !(b.Get("T_engine") < 0) || !(b.Get("a") < 0) {
				t.Errorf("%d ms: gear %d brakes with ratio %g, engine torque %g N·m, %g m/s2", period, g, got, b.Get("T_engine"), b.Get("a"))
			}
			at += 5
		}
		t.Logf("%d ms: %g transitions in %g s", period, b.Get("transitions"), at)
		if n := b.Get("transitions"); !(n <= 80) {
			t.Errorf("%d ms: %g transitions", period, n)
		}
		b.Is("fault", 0, 0)
	}
}

// A temperature without unit is in the unit of the assembly's default.
func TestAssemblyAcceptsDegreesCelsius(t *testing.T) {
	b := modeltest.New(t, `plant: t
assemblies:
  retarder:
    parameters: {T: 20 degC}
    flanges: [shaft]
    elements: {rotor: {type: eddy_current_torque, flange: shaft, tau_nominal: 1, w_nominal: 1, C: 1, T_start: T, TRef: 20 degC}}
elements:
  a: {type: inertia, J: 1}
  one: {type: retarder, shaft: a}
  two: {type: retarder, shaft: a, T: 30}
  three: {type: retarder, shaft: a, T: 300 K}
outputs: {T1: {state: one.rotor.T}, T2: {state: two.rotor.T}, T3: {state: three.rotor.T}}
`, time.Millisecond)
	b.Is("T1", 293.15, 1e-12)
	b.Is("T2", 303.15, 1e-12)
	b.Is("T3", 300, 1e-12)
}

// The override modes of SAE J1939-71, SPN 695, limit or replace the driver's demand.
func TestEngineIsOverridden(t *testing.T) {
	b := modeltest.New(t, `
plant: t
inputs:
  pedal: {unit: 1}
  request: {unit: "%", min: -125, max: 125}
  mode: {unit: 1, min: 0, max: 3}
elements:
  crank: {type: inertia, J: 1e9, w_start: 100}
  engine: {type: engine, flange: crank, throttle: pedal, override: request, override_mode: mode,
    full_load: [[0, 1000]], drag: [[0, -100]]}
outputs:
  tau: {torque: engine}
  share: {torque: engine, per: 2 kN.m}
`[1:], 10*time.Millisecond)
	for _, c := range []struct{ pedal, request, mode, want float64 }{
		{0.6, 0.2, 0, 0.6}, {0.6, -1.25, 0, 0.6}, // mode 0: off
		{0.6, 0.2, 1, 0.6},                     // mode 1: a speed, which the model does not control
		{0.6, 0.2, 2, 0.2}, {0.1, 0.9, 2, 0.9}, // mode 2: replaces the pedal
		{0.6, 0.2, 3, 0.2}, {0.1, 0.9, 3, 0.1}, // mode 3: upper limit
		{0.6, -0.3, 3, 0}, {0.6, 1.25, 2, 1}, {1, 1.25, 3, 1},
	} {
		b.Set("pedal", c.pedal)
		b.Set("request", c.request)
		b.Set("mode", c.mode)
		b.To(float64(b.Ticks+2)*0.01, nil)
		b.Is("tau", 1100*c.want-100, 1e-9)
		b.Is("share", (1100*c.want-100)/2000, 1e-12)
	}
}

// Another element may read the torque of an engine, which is a law and no state.
func TestTorqueOfAnEngineIsAValueOverTime(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
crank: {type: inertia, J: 0.2, w_start: 100 rad/s}
motor: {type: engine, flange: crank, throttle: 0.5, full_load: [[0 rad/s, 100], [500 rad/s, 100]], drag: [[0 rad/s, 0], [500 rad/s, -20]]}
twice: {type: gain, u: motor.tau, k: 2}
`, "tau: {signal: motor.tau}\ntwice: {signal: twice}"), 5*time.Millisecond)
	b.To(1, func(float64) {
		if tau := b.Get("tau"); !(tau > 1 && math.Abs(b.Get("twice")-2*tau) < 1e-9) {
			t.Fatalf("tau %v, twice %v", tau, b.Get("twice"))
		}
	})
}
