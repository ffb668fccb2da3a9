package mechanics_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// synchroniserPlant is a gear that a synchroniser brings to the speed of a hub, with the size of its cone and the
// inertia of its ring.
func synchroniserPlant(cgeo, ring float64) string {
	return modeltest.PlantOf(fmt.Sprintf(`
hub: {type: inertia, J: 5, w_start: 100}
gear: {type: inertia, J: 0.02, w_start: 50}
sleeve: {type: mass, m: 0.5, s_start: 0}
fork: {type: force, flange: sleeve, f: 500}
case: {type: fixed}
rail: {type: damper, a: case, b: sleeve, d: 2000}
end: {type: clearance, a: case, b: sleeve, s_min: -1 mm, s_max: 10 mm}
oil: {type: heat_capacitor, C: 1 J/K, T_start: 300 K}
sync: {type: synchroniser, J: %.17g, a: hub, b: gear, sleeve: sleeve, teeth: 36, radius: 40 mm, backlash: 0.014,
  chamfer: 3 mm, s_ring: 1 mm, s_contact: 5 mm, index: 2.5 deg, mu: 0.1, mu_cone: 0.1, cgeo: %.17g,
  detent: [[0 mm, 0 N], [1 mm, -60 N], [3 mm, 0 N]], heat_port: oil}`, ring, cgeo),
		"w: {w_rel: sync}\ns: {position: sleeve}\nv: {speed: sleeve}\nT: {signal: oil}\nf_cone: {signal: sync.f_cone}\nring: {signal: sync.phi_ring}")
}

// While the ring blocks, the sleeve rests: the whole fork force presses the cone, and the slip falls with
// cone torque·(1/J_gear + 1/(J_hub + J_ring)). The work is that of the slip on these inertias.
func TestSynchronisingTimeAndWorkMatchClosedForms(t *testing.T) {
	const cgeo = 0.4
	for _, ring := range []float64{0, 1e-4, 5e-4, 2e-3} {
		b := modeltest.New(t, synchroniserPlant(cgeo, ring), time.Millisecond)
		mobility := 1/0.02 + 1/(5+ring)
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
						t.Errorf("ring of %g kg·m²: work %.12g J, want %.12g", ring, work, want)
					}
				}
			}
		}
		if want := begin + math.Abs(slip)/(0.1*cgeo*500*mobility); !(math.Abs(synchronised-want) < 1e-9) {
			t.Errorf("ring of %g kg·m²: synchronised at %.12g s, want %.12g", ring, synchronised, want)
		}
		b.To(0.2, nil)
		b.Is("s", 0.01, 1e-12)
		b.Is("w", 0, 1e-9)
		if n := b.Kernel.Unconverged(); n != 0 {
			t.Errorf("ring of %g kg·m²: the laws did not converge in %d substeps", ring, n)
		}
	}
}

// The ring blocks where the torque of the cone is above the index torque of its chamfers:
// F·radius·(chamfer - mu·width)/(width + mu·chamfer). Otherwise the sleeve passes while the gear slips. The inertia of
// the ring does not matter: the torque of the cone and the force of the chamfers are solved together.
func TestRingBlocksAboveItsIndexTorque(t *testing.T) {
	const radius, chamfer, mu = 0.04, 3e-3, 0.1
	width := radius * (math.Pi/36 - 0.007)
	index := radius * (chamfer - mu*width) / (width + mu*chamfer) // per N
	for _, ring := range []float64{1e-4, 5e-4} {
		for _, c := range []struct {
			share  float64 // cone torque over index torque
			blocks bool
		}{{0.8, false}, {0.95, false}, {1.01, true}, {1.07, true}, {1.6, true}} {
			b := modeltest.New(t, synchroniserPlant(c.share*index/0.1, ring), 5*time.Millisecond)
			slip := math.NaN() // when the sleeve meets the teeth of the gear
			b.To(0.2, func(at float64) {
				if math.IsNaN(slip) && b.Get("s") > 5e-3 {
					slip = math.Abs(b.Get("w"))
				}
			})
			if blocks := slip < 6; blocks != c.blocks || !(slip < 50) || b.Kernel.Unconverged() != 0 {
				t.Errorf("ring of %g kg·m², cone torque %g times the index torque: slip %g rad/s at the teeth of the gear; blocks %v, %d substeps unconverged",
					ring, c.share, slip, blocks, b.Kernel.Unconverged())
			}
		}
	}
}

// A sleeve strikes the ring, which lies at its stop. Where the cone holds more than the index torque, the sleeve stops
// and the cone brakes the gear by mu·cgeo times its momentum. Otherwise sleeve and ring go on together: with the normal
// n of the chamfer their speed follows from the masses along n and the friction of the cone. What they lose, the
// impulse of the cone times its slip included, is dissipated.
func TestConeFrictionActsInTheImpactOfTheSleeve(t *testing.T) {
	const radius, mass, hub, gear, ring, muCone, speed = 0.04, 0.5, 5., 0.02, 2e-4, 0.1, 0.2
	width, chamfer := radius*(math.Pi/36-0.007), 3e-3
	nu, ns := chamfer/math.Hypot(chamfer, width), width/math.Hypot(chamfer, width)
	for _, share := range []float64{0.3, 0.8, 1.2, 2} { // cone torque over index torque
		cgeo := share * radius * nu / ns / muCone
		b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
hub: {type: inertia, J: %g, w_start: 100}
gear: {type: inertia, J: %g, w_start: 50}
sleeve: {type: mass, m: %g, s_start: 2.45 mm, v_start: %g}
sync: {type: synchroniser, J: %g, a: hub, b: gear, sleeve: sleeve, teeth: 36, radius: 40 mm, backlash: 0.014,
  chamfer: 3 mm, s_ring: 1 mm, s_contact: 5 mm, index: 2.5 deg, mu_cone: %g, cgeo: %.17g}`, hub, gear, mass, speed, ring, muCone, cgeo),
			"v: {speed: sleeve}\nring: {speed: sync}\nhub: {speed: hub}\ngear: {speed: gear}\n"+
				"all: {sum: [{energy: hub}, {energy: gear}, {energy: sleeve}, {energy: sync}, {dissipated: sync}]}"), time.Millisecond)
		for i, name := range b.Tables.StateName {
			switch name {
			case "sync.ring_u":
				b.Tables.X0[i] = -radius * 2.5 * math.Pi / 180
			case "sync.w":
				b.Tables.X0[i] = 100
			}
		}
		b.Kernel = kernel.New(b.Tables)
		b.To(2e-3, nil)
		b.Is("all", (hub*100*100+gear*50*50+mass*speed*speed+ring*100*100)/2, 1e-12)
		if share > 1 {
			b.Is("v", 0, 1e-12)
			b.Is("gear", 50+muCone*cgeo*mass*speed/gear, 1e-9)
			continue
		}
		p := ns * speed / (ns*ns/mass + nu*radius*(nu*radius/hub+(nu*radius-muCone*cgeo*ns)/ring))
		b.Is("v", speed-ns*p/mass, 1e-9)
		b.Is("gear", 50+muCone*cgeo*ns*p/gear, 1e-9)
		b.Is("ring", 100+(nu*radius-muCone*cgeo*ns)*p/ring, 1e-9)
	}
}
