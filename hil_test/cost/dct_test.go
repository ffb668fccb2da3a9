package cost

import (
	"slices"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// lightRing is a synchroniser with a ring of 1e-4 kg·m², whose cone holds 1.2 times the index torque.
const lightRing = `
plant: light-ring
elements:
  hub: {type: inertia, J: 5, w_start: 100}
  gear: {type: inertia, J: 0.02, w_start: 50}
  sleeve: {type: mass, m: 1.6 kg}
  fork: {type: force, flange: sleeve, f: 400 N}
  case: {type: fixed}
  rail: {type: damper, a: case, b: sleeve, d: 280 N.s/m}
  stops: {type: clearance, a: case, b: sleeve, s_min: -12 mm, s_max: 12 mm}
  sync: {type: synchroniser, J: 1e-4 kg.m2, a: hub, b: gear, sleeve: sleeve, teeth: 36, radius: 40 mm, backlash: 0.8 deg, chamfer: 3 mm,
         s_ring: 0 mm, s_contact: 6 mm, index: 2.4 deg, mu: 0.08, mu_cone: 0.1, cgeo: 0.4 m,
         detent: [[0 mm, 0 N], [1.5 mm, -45 N], [9 mm, -45 N], [12 mm, 45 N]]}
outputs: {s: {position: sleeve}}
`

// The worst ticks of a synchroniser with a light ring, and of a double-clutch gearbox with eight synchronisers, whose
// engaged gears rattle, are at most three times that of automatic4. All follow their own waveforms.
func TestWorstTicksOfSynchronisersAreBounded(t *testing.T) {
	names := []string{"automatic4", "dct7", "light ring"}
	ticks := map[string]int{"automatic4": 3400, "dct7": 1600, "light ring": 60}
	least, prepared := map[string][]float64{}, map[string]*rig.Plant{}
	for _, name := range names {
		text := []byte(lightRing)
		if name != "light ring" {
			var err error
			if text, err = plants.Read(name); err != nil {
				t.Fatal(err)
			}
		}
		prepared[name] = rig.Prepare(t, string(text), kernel.Options{Period: 5 * time.Millisecond}, false)
	}
	worst := func(name string) float64 {
		start := time.Now()
		now, _ := prepared[name].LeastTicks(ticks[name], 1, nil, func() float64 { return float64(time.Since(start).Nanoseconds()) })
		if least[name] == nil {
			least[name] = now
		}
		for k, ns := range now {
			least[name][k] = min(least[name][k], ns)
		}
		return slices.Max(least[name])
	}
	// Each round lowers what other processes of the machine added to a tick; ratios that hold end the rounds.
	const rounds, most = 40, 3
	var ratio [2]float64
	for round := range rounds {
		four := worst("automatic4")
		for i, name := range names[1:] {
			w := worst(name)
			ratio[i] = w / four
			t.Logf("%s: worst tick %.0f us, median %.0f us; of automatic4 %.0f and %.0f us: %.2f times", name, w/1e3, middle(least[name])/1e3, four/1e3, middle(least["automatic4"])/1e3, ratio[i])
		}
		if round >= 3 && ratio[0] <= most && ratio[1] <= most {
			return
		}
	}
	t.Errorf("the worst ticks of dct7 and of the light ring are %.2f and %.2f times that of automatic4; most are %d",
		ratio[0], ratio[1], most)
}

// middle returns the median of a list.
func middle(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
