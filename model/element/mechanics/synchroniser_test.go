package mechanics_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// synchroniserPlant is a gear that a synchroniser brings to the speed of a hub, with the size of its cone.
func synchroniserPlant(cgeo float64) string {
	return modeltest.PlantOf(fmt.Sprintf(`
hub: {type: inertia, J: 5, w_start: 100}
gear: {type: inertia, J: 0.02, w_start: 50}
sleeve: {type: mass, m: 0.5, s_start: 0}
fork: {type: force, flange: sleeve, f: 500}
case: {type: fixed}
rail: {type: damper, a: case, b: sleeve, d: 2000}
end: {type: clearance, a: case, b: sleeve, s_min: -1 mm, s_max: 10 mm}
oil: {type: heat_capacitor, C: 1 J/K, T_start: 300 K}
sync: {type: synchroniser, J: 0.0005, a: hub, b: gear, sleeve: sleeve, teeth: 36, radius: 40 mm, backlash: 0.014,
  chamfer: 3 mm, s_ring: 1 mm, s_contact: 5 mm, index: 2.5 deg, mu: 0.1, mu_cone: 0.1, cgeo: %.17g,
  detent: [[0 mm, 0 N], [1 mm, -60 N], [3 mm, 0 N]], heat_port: oil}`, cgeo),
		"w: {w_rel: sync}\ns: {position: sleeve}\nv: {speed: sleeve}\nT: {signal: oil}\nf_cone: {signal: sync.f_cone}\nring: {signal: sync.phi_ring}")
}

// While the ring blocks, the sleeve rests: the whole fork force presses the cone, and the slip falls with
// cone torque·(1/J_gear + 1/(J_hub + J_ring)). The work is that of the slip on these inertias.
func TestSynchronisingTimeAndWorkMatchClosedForms(t *testing.T) {
	const cgeo = 0.4
	b := modeltest.New(t, synchroniserPlant(cgeo), time.Millisecond)
	mobility := 1/0.02 + 1/5.0005
	b.To(0.02, nil)
	b.Is("f_cone", 500, 1e-10)
	b.Is("v", 0, 1e-13)
	begin, slip, heat := 0.02, b.Get("w"), b.Get("T")
	synchronised := math.NaN()
	for math.IsNaN(synchronised) && b.Ticks < 200 {
		before := b.Get("T")
		b.To(float64(b.Ticks+1)*1e-3, nil)
		for _, e := range b.Kernel.Events() {
			if name, _, _ := b.Tables.EventNames(e); name == "sync.cone" && e.To == kernel.Stuck {
				synchronised = e.Time
				left := slip + 0.1*cgeo*500*mobility*(float64(b.Ticks-1)*1e-3-begin)
				if work, want := before-heat, (slip*slip-left*left)/2/mobility; !(math.Abs(work-want) < 1e-9*want) {
					t.Errorf("work %.12g J, want %.12g", work, want)
				}
			}
		}
	}
	if want := begin + math.Abs(slip)/(0.1*cgeo*500*mobility); !(math.Abs(synchronised-want) < 1e-9) {
		t.Errorf("synchronised at %.12g s, want %.12g", synchronised, want)
	}
	b.To(0.2, nil)
	b.Is("s", 0.01, 1e-12)
	b.Is("w", 0, 1e-9)
}

// The ring blocks where the torque of the cone is above the index torque of its chamfers:
// F·radius·(chamfer - mu·width)/(width + mu·chamfer). Otherwise the sleeve passes while the gear slips.
func TestRingBlocksAboveItsIndexTorque(t *testing.T) {
	const radius, chamfer, mu = 0.04, 3e-3, 0.1
	width := radius * (math.Pi/36 - 0.007)
	index := radius * (chamfer - mu*width) / (width + mu*chamfer) // per N
	for _, c := range []struct {
		share  float64 // cone torque over index torque
		blocks bool
	}{{0.8, false}, {0.93, false}, {1.07, true}, {1.3, true}} {
		b := modeltest.New(t, synchroniserPlant(c.share*index/0.1), time.Millisecond)
		slip := math.NaN() // when the sleeve meets the teeth of the gear
		b.To(0.2, func(at float64) {
			if math.IsNaN(slip) && b.Get("s") > 5e-3 {
				slip = math.Abs(b.Get("w"))
			}
		})
		if blocks := slip < 6; blocks != c.blocks || !(slip < 50) {
			t.Errorf("cone torque %g times the index torque: slip %g rad/s at the teeth of the gear; blocks %v", c.share, slip, blocks)
		}
	}
}
