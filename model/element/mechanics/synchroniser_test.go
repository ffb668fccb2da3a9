package mechanics_test

import (
	"fmt"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

func TestTrySync(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
hub: {type: inertia, J: 5, w_start: 100}
gear: {type: inertia, J: 0.02, w_start: 50}
sleeve: {type: mass, m: 0.5, s_start: 0}
fork: {type: force, flange: sleeve, f: 500}
stop: {type: fixed}
end: {type: clearance, a: stop, b: sleeve, s_min: -1 mm, s_max: 10 mm}
sync: {type: synchroniser, J: 0.0005, a: hub, b: gear, sleeve: sleeve, teeth: 36, radius: 40 mm, backlash: 0.8 deg,
  chamfer: 3 mm, s_ring: 1 mm, s_contact: 5 mm, index: 2.5 deg, mu: 0.1, mu_cone: 0.1, cgeo: 0.4 m,
  detent: [[0 mm, 0 N], [1 mm, -60 N], [3 mm, 0 N]]}`, "w: {w_rel: sync}\ns: {position: sleeve}\nphi: {signal: sync.phi}\nring: {signal: sync.phi_ring}\nv: {speed: sleeve}\nfc: {signal: sync.f_cone}"), 1*time.Millisecond)
	ev := 0
	b.To(0.1, func(at float64) {
		for _, e := range b.Kernel.Events() {
			el, x, y := b.Tables.EventNames(e)
			if ev++; ev < 80 {
			fmt.Println("   ", e.Time, el, x, y)
			}
		}
		fmt.Printf("%.4f w %9.4f s %8.5f v %8.4f phi %8.5f ring %8.5f fc %8.3f ev %g \n", at, b.Get("w"), b.Get("s")*1e3, b.Get("v"), b.Get("phi"), b.Get("ring"), b.Get("fc"), b.Get("events"))
	})
}
