package mechanics_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// Oil that thins: J·w' = -d·factor(T)·w with T = 20 degC + s·10 K, and the loss of the damper heats its own capacity.
func TestDampingFollowsTheTemperature(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
rotor: {type: inertia, J: 2 kg.m2, w_start: 100 rad/s}
ground: {type: fixed}
warm: {type: integrator, u: 10 K/s, y_start: 293.15 K}
oil: {type: damper, a: ground, b: rotor, d: 3 N.m.s/rad, factor_T: [[20 degC, 1], [40 degC, 0.2]], temperature: warm, heat_port: sump}
sump: {type: heat_capacitor, C: 500 J/K, T_start: 300 K}
`, "w: {speed: rotor}\nT: {signal: sump}\nloss: {signal: oil.lossPower}"), 5*time.Millisecond)
	b.To(4, func(s float64) {
		factor, area := 1-0.4*s, s-0.2*s*s // factor and its integral
		if s > 2 {
			factor, area = 0.2, 1.2+0.2*(s-2)
		}
		w := 100 * math.Exp(-3./2*area)
		b.Is("w", w, 1e-9)
		b.Is("loss", 3*factor*w*w, 1e-8)
		b.Is("T", 300+(100*100-w*w)/500, 1e-9) // J/2·(w0² - w²)/C
	})
}

// The damper of a spring_damper alike: at one temperature it is the damper with the factored d.
func TestTheDamperOfASpringFollowsTheTemperature(t *testing.T) {
	text := func(damper string) string {
		return modeltest.PlantOf(`
body: {type: mass, m: 2 kg}
ground: {type: fixed}
mount: {type: spring_damper, a: ground, b: body, c: 800 N/m, `+damper+`, s_rel_start: 0.1 m}
`, "s: {s_rel: mount}\nloss: {signal: mount.lossPower}")
	}
	a := modeltest.New(t, text("d: 8 N.s/m"), 5*time.Millisecond)
	b := modeltest.New(t, text("d: 10 N.s/m, factor_T: [[0 degC, 1], [50 degC, 0.5]], temperature: 20 degC"), 5*time.Millisecond)
	a.To(1, func(s float64) {
		b.To(s, nil).Is("s", a.Get("s"), 1e-7) // the factored damping is a law: a parabola over a substep
		b.Is("loss", a.Get("loss"), 5e-6)
	})
}
