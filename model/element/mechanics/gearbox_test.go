package mechanics_test

import (
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// A gearbox is a lossy_gear and an elasto_backlash in series, and its loss is that of both.
func TestGearboxIsALossyGearAndABacklash(t *testing.T) {
	for _, play := range []string{"0", "0.03"} {
		b := modeltest.New(t, modeltest.PlantOf(`
motor: {type: inertia, J: 0.2, w_start: 10}
load: {type: inertia, J: 2}
drive: {type: torque, flange: motor, tau: {sine: {amplitude: 30, f: 1.1 Hz}}}
box: {type: gearbox, a: motor, b: load, ratio: 3, lossTable: [[0, 0.95, 0.93, 0.4, 0.5], [100, 0.9, 0.9, 0.8, 1]], c: 800, d: 3, backlash: `+play+`, heat_port: sump}
sump: {type: heat_capacitor, C: 100 J/K, T_start: 300 K}
motor2: {type: inertia, J: 0.2, w_start: 10}
load2: {type: inertia, J: 2}
drive2: {type: torque, flange: motor2, tau: {sine: {amplitude: 30, f: 1.1 Hz}}}
gear2: {type: lossy_gear, a: motor2, b: mid, ratio: 3, lossTable: [[0, 0.95, 0.93, 0.4, 0.5], [100, 0.9, 0.9, 0.8, 1]], heat_port: sump2}
play2: {type: elasto_backlash, a: mid, b: load2, c: 800, d: 3, backlash: `+play+`, heat_port: sump2}
sump2: {type: heat_capacitor, C: 100 J/K, T_start: 300 K}
`, `w: {speed: load}
w2: {speed: load2}
phi: {phi_rel: box}
phi2: {phi_rel: play2}
loss: {signal: box.lossPower}
gear_loss: {signal: gear2.lossPower}
play_loss: {signal: play2.lossPower}
tau: {torque: box, onto: load}
tau2: {torque: play2, onto: load2}
T: {signal: sump}
T2: {signal: sump2}
D: {dissipated: box}`), time.Millisecond)
		b.To(2, func(float64) {
			b.Is("w", b.Get("w2"), 1e-9)
			b.Is("phi", b.Get("phi2"), 1e-9)
			b.Is("tau", b.Get("tau2"), 1e-7)
			b.Is("loss", b.Get("gear_loss")+b.Get("play_loss"), 1e-7)
			b.Is("box.lossy_gear.tau", b.Get("gear2.tau"), 1e-7)
			b.Is("T", b.Get("T2"), 1e-9)
		})
		if lost := b.Get("D"); !(lost > 1) {
			t.Errorf("%g J are lost", lost)
		}
		b.Is("T", 300+b.Get("D")/100, 1e-9)
	}
}
