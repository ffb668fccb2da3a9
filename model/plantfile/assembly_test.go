package plantfile_test

import (
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// A parameter of the assembly around a sensor or an accumulator is known to all that is
// read of them, whoever reads it first.
func TestElementsOfAnAssemblyAreReadWithItsParameters(t *testing.T) {
	sys := modeltest.System(t, `
plant: nested
inputs: {pedal: {unit: bar, min: 0, max: 200}}
assemblies:
  wheel_end:
    parameters: {size: 50 rad/s, oil: 0.2 cm3}
    signals: [master]
    elements:
      rim: {type: inertia, J: 1}
      w: {type: speed_sensor, flange: rim, range: size}
      front: {type: wheel_brake_circuit, master: master, drain: store, A_inlet: 0.2 mm2, A_outlet: 0.3 mm2, stiffness: 70 bar/cm3}
      store: {type: low_pressure_accumulator, p_V: [[0, 0], [3 cm3, 6 bar]], V_start: oil}
      disc: {type: brake, flange: rim, mu: 0.4, cgeo: 0.3 m, area: 20 cm2, pressure: front}
elements:
  left: {type: wheel_end, master: pedal, oil: 0.5 cm3}
outputs:
  v: {state: left.store.V}
  w: {signal: left.w}
`)
	for i, s := range sys.States {
		if s.Name == "left.store.V" {
			if got, want := sys.X0[i], 0.5e-6; !scalar.EqualWithinRel(got, want, 1e-15) {
				t.Errorf("the accumulator starts with %g m3, want %g", got, want)
			}
			return
		}
	}
	t.Error("the accumulator has no volume")
}
