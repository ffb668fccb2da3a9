package plants_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
	"lockstep/model/plants"
)

// dctGears are the gears of dct7: the sleeve and its direction, the clutch, and the speed of the input shaft over that
// of the differential, from the teeth.
var dctGears = []struct {
	name, sleeve, side, clutch string
	push, ratio                float64
}{
	{"1", "S13", "p", "K1", 1, 49. / 13 * 71 / 16}, {"2", "S24", "p", "K2", 1, 50. / 22 * 71 / 16},
	{"3", "S13", "n", "K1", -1, 49. / 32 * 71 / 16}, {"4", "S24", "n", "K2", -1, 46. / 41 * 71 / 16},
	{"5", "S57", "p", "K1", 1, 40. / 34 * 71 / 22}, {"6", "S6R", "p", "K2", 1, 39. / 41 * 71 / 22},
	{"7", "S57", "n", "K1", -1, 35. / 44 * 71 / 22}, {"R", "S6R", "n", "K2", -1, -50. / 12 * 71 / 22},
}

// dct7With returns the text of dct7 with further outputs.
func dct7With(t *testing.T, outputs string) string {
	text, err := plants.Read("dct7")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), "\noutputs:\n", "\noutputs:\n"+outputs, 1)
}

// In each gear all members turn as the teeth say, once the clutch has locked and a flank carries.
func TestSpeedsOfTheDoubleClutchGearboxFollowFromTheTeeth(t *testing.T) {
	var outputs strings.Builder
	for _, node := range []string{"crank", "in1", "in2", "diff", "outA", "outB", "gear1", "gear2", "gear3", "gear4", "gear5", "gear6", "gear7", "gearR"} {
		fmt.Fprintf(&outputs, "  n.%s: {speed: %s}\n", node, node)
	}
	text := dct7With(t, outputs.String())
	for _, g := range dctGears {
		b := modeltest.New(t, text, 5*time.Millisecond)
		b.Set("S13.fork", 0) // its own waveform engages first gear
		b.Set(g.sleeve+".fork", 400*g.push)
		b.Set("throttle", 0)
		b.To(0.5, nil)
		b.Set(g.sleeve+".fork", 0)
		b.Set("grade", -math.Copysign(0.3, g.ratio)) // the car rolls down
		b.To(3, nil)
		b.Set(g.clutch+".pressure", 10e5)
		checked := false
		b.To(4, func(float64) {
			if checked || b.Get(g.clutch+".mode") != 0 ||
				min(b.Get(g.sleeve+"."+g.side+".flank_max.mode"), b.Get(g.sleeve+"."+g.side+".flank_min.mode")) != 0 || !(math.Abs(b.Get("n.diff")) > 1) {
				return
			}
			checked = true
			out := b.Get("n.diff")
			want := map[string]float64{"crank": g.ratio * out, "outA": -71. / 16 * out, "outB": -71. / 22 * out}
			for _, o := range dctGears {
				final, in := -71./16, "in1"
				if o.name >= "5" {
					final = -71. / 22
				}
				if o.clutch == "K2" {
					in = "in2"
				}
				if o.clutch == g.clutch { // its input shaft turns with the engine
					want[in] = g.ratio * out
					want["gear"+o.name] = g.ratio * out / o.ratio * final
				} else {
					want["gear"+o.name] = b.Get("n."+in) / o.ratio * final
				}
			}
			for node, w := range want {
				if got := b.Get("n." + node); !(math.Abs(got-w) <= 1e-12*math.Abs(w)) {
					t.Errorf("gear %s: %s turns with %.15g rad/s, want %.15g", g.name, node, got, w)
				}
			}
		})
		if !checked {
			t.Errorf("gear %s: the clutch does not lock; engine %g rad/s, input shafts %g and %g, sleeve at %g m", g.name,
				b.Get("n.crank"), b.Get("n.in1"), b.Get("n.in2"), b.Get("s_"+g.sleeve))
		}
	}
}

// While a clutch slips and no tooth strikes, the work of the engine is in the bodies, the shafts and the heat, but
// for the tolerance of the laws.
func TestEnergyOfTheDoubleClutchGearboxCloses(t *testing.T) {
	text := dct7With(t, `  E: {sum: [{energy: crank}, {energy: in1}, {energy: in2}, {energy: diff}, {energy: car}, {energy: shafts}]}
  W: {work: engine}
  Q: {sum: [{dissipated: K1}, {dissipated: K2}, {dissipated: churn1}, {dissipated: churn2}, {dissipated: drag1}, {dissipated: drag2}, {dissipated: shafts}]}
`)
	text = strings.NewReplacer("Cd: 0.31", "Cd: 0", "Cr: 0.011", "Cr: 0", "churn1: {type: damper, a: case", "churn1: {type: damper, heat_port: sump, a: case",
		"churn2: {type: damper, a: case", "churn2: {type: damper, heat_port: sump, a: case").Replace(text)
	b := modeltest.NewUndriven(t, text, kernel.Options{Period: time.Millisecond})
	b.To(1.5, nil)
	slips := math.Abs(b.Get("w_engine") - b.Get("w_in1"))
	start, work := b.Get("E")+b.Get("Q")-b.Get("W"), b.Get("W")
	struck := 0
	b.To(1.7, func(float64) {
		for _, e := range b.Kernel.Events() {
			if e.To == kernel.Impact {
				struck++
			}
		}
	})
	work = b.Get("W") - work
	if off := b.Get("E") + b.Get("Q") - b.Get("W") - start; !(math.Abs(off) < 1e-8*math.Abs(work)) || struck > 0 || !(slips > 20) || !(math.Abs(work) > 100) {
		t.Errorf("%g J of %g are missing; %d impacts, slip %g rad/s", off, work, struck, slips)
	}
}

// While two engaged gears rattle, a plant stepped sparse ends the impacts that chatter; the dense kernel locates each of
// them. The heat of the clutches and the torque of the shafts agree within the error that METHOD.md states.
func TestChatteringGearsOfTheDoubleClutchGearboxKeepTheHeat(t *testing.T) {
	text := dct7With(t, "")
	exact := modeltest.NewUndriven(t, text, kernel.Options{Period: 5 * time.Millisecond, Stepping: kernel.Dense})
	b := modeltest.NewUndriven(t, text, kernel.Options{Period: 5 * time.Millisecond, Stepping: kernel.Sparse})
	limits := map[string]float64{"W_K1": 0.2, "W_K2": 0.2, "T_shaft": 6}
	worst, most := map[string]float64{}, 0.0
	for at := 0.005; at < 4.6; at += 0.005 {
		before := exact.Get("events")
		exact.To(at, nil)
		b.To(at, nil)
		most = max(most, exact.Get("events")-before)
		for name := range limits {
			worst[name] = max(worst[name], math.Abs(b.Get(name)-exact.Get(name)))
		}
	}
	for name, limit := range limits {
		t.Logf("%s differs by %g", name, worst[name])
		if !(worst[name] <= limit) {
			t.Errorf("%s differs by %g from that of all impacts, want at most %g", name, worst[name], limit)
		}
	}
	if !(most > 50) {
		t.Errorf("at most %g events in a tick, want impacts that chatter", most)
	}
}
