package kernel

import (
	"math"
	"testing"

	"lockstep/model"
)

// A contact holds body 0, and the friction on its face brakes body 1, on which the contact does not act: it
// decelerates by mu·N/J until it stands, and is then held.
func TestFrictionOnAFaceActsOnABodyThatItsContactDoesNotMove(t *testing.T) {
	const press, mu, inertia, speed, push = 10.0, 0.5, 2.0, 3.0, 1.0
	system := func() *model.System {
		sys := rig{
			J: []float64{1, inertia}, X0: []float64{0, speed, 0}, Springs: []spring{{-1, 0, 0, 0}},
			Frictions: []contact{{W: []float64{1, 0}, K: always(0)}, {W: []float64{0, 1}, K: always(0)}},
			Torques:   []torque{{0, always(-press)}, {1, always(push)}},
		}.system()
		sys.Frictions[0].OneWay, sys.Frictions[0].Gap = true, &model.Gap{State: 2, Sign: 1}
		sys.Frictions[1].Face, sys.Frictions[1].Mu = 1, mu
		return sys
	}
	eachStepping(t, system, func(name string, k *run) {
		for range 400 {
			k.step()
			now := float64(k.tick) * k.h
			if want := max(0, speed-(mu*press-push)/inertia*now); !(math.Abs(k.y[1]-want) <= 1e-12) {
				t.Fatalf("%s: %.17g rad/s at %g s, want %.17g", name, k.y[1], now, want)
			}
		}
		if k.modeOf(1) != Stuck || !(math.Abs(k.tauOf(1)-push) <= 1e-12) {
			t.Errorf("%s: mode %d with %g N·m, want a lock that holds %g", name, k.modeOf(1), k.tauOf(1), push)
		}
	})
}
