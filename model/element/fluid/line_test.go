package fluid_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

const lined = `plant: t
inputs:
  master: {unit: bar, min: 0, max: 200}
  valve: {unit: 1, min: 0, max: 1}
elements:
  line: {type: brake_line, master: master, isolation: valve, suction: valve, pump: 1, flow: 8 cm3/s, A_isolation: 0.5 mm2,
    A_check: 0.2 mm2, p_relief: 150 bar, p_V: [[0, 0], [1 cm3, 100 bar]]}
  caliper: {type: wheel_brake_circuit, master: line, outlet: valve, drain: store, A_inlet: 0.2 mm2, A_outlet: 0.1 mm2, stiffness: 40 bar/cm3}
  store: {type: low_pressure_accumulator, p_V: [[0, 0], [0.3 cm3, 2 bar], [4 cm3, 5 bar]], pump: 1, flow: 3 cm3/s, line: line}
  wheel: {type: inertia, J: 1}
  through: {type: integrator, u: line.Q_master}
outputs:
  V_line: {signal: line.V}
  V_caliper: {signal: caliper.V}
  V_store: {signal: store.V}
  p_line: {signal: line}
  p_caliper: {signal: caliper}
  Q_suction: {signal: line.Q_suction}
  through: {signal: through}
`

// What enters the line through isolation valve and pump is in line, caliper and accumulator: no fluid is lost.
func TestBrakeLineKeepsTheFluid(t *testing.T) {
	b := modeltest.New(t, lined, time.Millisecond)
	b.Set("master", 40e5)
	b.To(0.5, nil)
	b.Is("p_caliper", 40e5, 1e-3)
	b.Is("p_line", 40e5, 1e-3)
	b.Set("valve", 1)
	most := 0.0
	pumped := 0.0
	b.To(1.5, func(float64) {
		pumped += b.Get("Q_suction") * 1e-3
		most = max(most, b.Get("p_line"))
	})
	if !(most > 60e5 && most < 200e5) {
		t.Errorf("the pump builds %g Pa", most)
	}
	if got, want := b.Get("V_line")+b.Get("V_caliper")+b.Get("V_store"), b.Get("through")+pumped; !(math.Abs(got-want) <= 1e-3*want) {
		t.Errorf("%g m3 in the circuit, %g have entered", got, want)
	}
}

func TestErrorsOfBrakeLinesHaveAPosition(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"pump without a suction valve", "suction: valve, pump: 1, flow: 8 cm3/s", "«pump»: 1", `element "line": pump goes with suction`},
		{"accumulator into no line", "line: line}", "line: «caliper»}", `element "store": line: name a brake_line`},
		{"quantity that is not there", "u: line.Q_master", "u: «store.Q»", `element "through": u: "store.Q": "store.Q" is not a known parameter (did you mean store?)`},
	} {
		t.Run(c.name, func(t *testing.T) { modeltest.Refuse(t, lined, c.old, c.new, c.want) })
	}
}
