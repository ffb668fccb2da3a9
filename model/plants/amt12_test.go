package plants_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// amt12 returns the plant amt12 at the start of a drive in a gear with the input shaft at a speed, rad/s. Its
// outputs have the speed of every member, and those that the test adds.
func amt12(t *testing.T, gear string, ratio, input float64, outputs string) *car {
	t.Helper()
	text, err := plants.Read("amt12")
	if err != nil {
		t.Fatal(err)
	}
	draft, err := plantfile.Parse("amt12", []byte(strings.Replace(string(text), "\noutputs:\n", "\noutputs:\n  \"*.w\": all\n"+outputs, 1)), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	if gear != "" {
		v := input / ratio / 2.71 * 0.5 * 3.6
		draft.Start([]plantfile.Assignment{{Name: "v", Value: fmt.Sprintf("%g km/h", v)}, {Name: "gear", Value: gear}})
	}
	plant, err := draft.Load()
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(plant)
	if err != nil {
		t.Fatal(err)
	}
	return driven(t, sys, 5*time.Millisecond)
}

// amt12Gears lists the gears and their groups: splitter, main group, range. Reverse is main group 0.
var amt12Gears = []struct {
	name             string
	split, main, rng int
}{
	{"1", 0, 1, 0}, {"2", 1, 1, 0}, {"3", 0, 2, 0}, {"4", 1, 2, 0}, {"5", 0, 3, 0}, {"6", 1, 3, 0},
	{"7", 0, 1, 1}, {"8", 1, 1, 1}, {"9", 0, 2, 1}, {"10", 1, 2, 1}, {"11", 0, 3, 1}, {"12", 1, 3, 1},
	{"R1", 0, 0, 0}, {"R2", 1, 0, 0},
}

// While the teeth of a gear carry torque, every member turns as the numbers of teeth say.
func TestMembersOfAmt12TurnAsTheirTeethSay(t *testing.T) {
	for _, g := range amt12Gears {
		split := []float64{39. / 31, 36. / 37}[g.split]
		main := []float64{-62. / 23, 64. / 22, 45. / 26, 37. / 36}[g.main]
		ratio := split * main * []float64{128. / 28, 1}[g.rng]
		dog := []string{"dog_r", "dog_1", "dog_2", "dog_3"}[g.main]
		stop := []string{"cylinder_1r.stops.min", "cylinder_1r.stops.max", "cylinder_23.stops.min", "cylinder_23.stops.max"}[g.main]
		c := amt12(t, g.name, ratio, 120, "")
		c.set("throttle", 0.2)
		synchroniser, band := []string{"split_k1", "split_k2"}[g.split], []string{"range_l", "range_h"}[g.rng]
		holds := func(element string) bool { return c.get(element+".mode") == 0 }
		carried := 0
		for c.seconds() < 2 {
			c.step()
			if !slices.ContainsFunc([]string{dog + ".flank_max", dog + ".flank_min"}, holds) {
				continue // play between the teeth
			}
			if !holds(stop) || !holds("clutch") || !holds(synchroniser) || !holds(band) {
				continue // the back-taper draws the sleeve in, or an impact of the teeth has let friction slip
			}
			carried++
			out := c.get("out.w")
			counter, sun := ratio/split*out, ratio/split/main*out
			ring := (128*out - 28*sun) / 100
			for name, want := range map[string]float64{
				"crank.w": ratio * out, "input.w": ratio * out, "counter.w": counter, "main.w": sun, "ring.w": ring,
				"wheel_k1.w": counter * 39 / 31, "wheel_k2.w": counter * 36 / 37, "wheel_1.w": counter * 22 / 64,
				"wheel_2.w": counter * 26 / 45, "wheel_r.w": -counter * 23 / 62, "pinion.w": out / 2.71,
			} {
				if got := c.get(name); !(math.Abs(got-want) <= 1e-12*math.Abs(ratio*out)) {
					t.Fatalf("gear %s: %s is %.15g rad/s at %g s, want %.15g", g.name, name, got, c.seconds(), want)
				}
			}
		}
		if carried < 300 {
			t.Errorf("gear %s: the teeth carry in %d of 400 ticks", g.name, carried)
		}
	}
}

// neutralAmt12 returns the plant amt12 in neutral with an open clutch, whose countershaft turns with the wheel of gear 1 at a
// slip and at an angle in pitches of the dogs, while the truck stands.
func neutralAmt12(t *testing.T, slip, pitches float64) *car {
	t.Helper()
	c := amt12(t, "", 0, 0, "")
	c.set("brake", 1)
	c.set("clutch.position", 0)
	c.set("clutch_brake", 0)
	c.set("gate_1r.target", 0)
	c.tables.X0 = slices.Clone(c.tables.X0)
	for name, x := range map[string]float64{"counter.w": slip * 64 / 22, "input.w": slip * 64 / 22 * 39 / 31,
		"dog_1.u": pitches * 2 * math.Pi / 30 * 0.06, "brake_force.y": 0} {
		i := slices.Index(c.tables.StateName, name)
		if i < 0 {
			t.Fatalf("no state %s of %v", name, c.tables.StateName)
		}
		c.tables.X0[i] = x
	}
	c.k = kernel.New(c.tables)
	return c
}

// Drag alone slows the countershaft and the clutch disc down, which turns 39/31 times as fast.
func TestCountershaftOfAmt12SlowsDownByItsDrag(t *testing.T) {
	c := neutralAmt12(t, 30, 0)
	for c.seconds() < 1 {
		c.step()
	}
	want := 30. * 64 / 22 * math.Exp(-0.06/(0.35+0.12*39/31*39/31)*c.seconds())
	if got := c.get("counter.w"); !(math.Abs(got-want) < 1e-9*want) {
		t.Errorf("after %g s the countershaft turns at %.12g rad/s, want %.12g", c.seconds(), got, want)
	}
}

// engageFirst pushes the sleeve of gear 1 while the countershaft turns and the truck stands, from an angle of the
// wheel in pitches of the dogs. It returns the tick in which the sleeve is at its stop, 0 if it is not within the
// ticks, the impacts of the teeth, and the stroke at the end, m.
func engageFirst(t *testing.T, slip, pitches float64, ticks int) (engaged, impacts int, stroke float64) {
	t.Helper()
	c := neutralAmt12(t, slip, pitches)
	c.set("gate_1r.target", 12e-3)
	for tick := range ticks {
		c.step()
		for _, e := range c.k.Events() {
			if name, _, _ := c.tables.EventNames(e); e.To == kernel.Impact && strings.HasPrefix(name, "dog_1.") {
				impacts++
			}
		}
		if engaged == 0 && c.get("s_1r") > 9.9e-3 {
			engaged = tick + 1
		}
	}
	return engaged, impacts, c.get("s_1r")
}

// Dogs engage at a small speed difference. At a large one they ratchet until impacts have taken it away, and at none
// they may stand tooth on tooth.
func TestDogsOfAmt12EngageRatchetAndBlock(t *testing.T) {
	for _, phase := range []float64{-0.4, -0.2, 0, 0.2, 0.4} {
		slow, few, s := engageFirst(t, 2, phase, 30)
		if slow == 0 || few > 5 {
			t.Errorf("at 2 rad/s and %g of a pitch: tick %d, %d impacts, stroke %g m", phase, slow, few, s)
		}
		if at, many, _ := engageFirst(t, 100, phase, 30); at != 0 && at <= slow || many < 10 {
			t.Errorf("at 100 rad/s and %g of a pitch: tick %d after %d impacts, at 2 rad/s tick %d", phase, at, many, slow)
		}
	}
	if at, _, s := engageFirst(t, 0, 0, 30); at == 0 {
		t.Errorf("tooth on gap: the sleeve stays at %g m", s)
	}
	if at, _, s := engageFirst(t, 0, 0.5, 30); at != 0 || !(math.Abs(s-4e-3) < 1e-9) {
		t.Errorf("tooth on tooth: tick %d, stroke %g m, want 4 mm", at, s)
	}
}

// The energy of the plant is what the engine and the forks have put in, less what is dissipated: with friction on the
// teeth, and with their impacts. The fork draws the sleeve at 4.5 s: the loaded teeth hold it. Drawn with an open clutch it
// leaves, and goes back into the teeth while they turn.
func TestEnergyOfAmt12BalancesWithTheFrictionOfItsTeeth(t *testing.T) {
	text, err := plants.Read("amt12")
	if err != nil {
		t.Fatal(err)
	}
	free := strings.NewReplacer("A: 9.5 m2, Cd: 0.55, Cr: 0.006", "Cr: 0", ", v_max: 40 m/s", "",
		"[1, 12], [21, 12]", "[1, 12], [4.5, 12], [4.5, 0], [5.5, 0], [5.5, 12], [9.35, 12], [9.35, 0], [9.5, 0], [9.5, 12], [21, 12]", "\noutputs:\n", `
  rubbed: {type: integrator, u: dog_1.lossPower}
outputs:
  rubbed: {signal: rubbed}
  "E.*": {energy: "*"}
  "D.*": {dissipated: "*"}
  W.engine: {work: engine}
  "W.*.fork": {work: "*.fork"}
`).Replace(string(text))
	b := modeltest.NewUndriven(t, free, kernel.Options{Period: 5 * time.Millisecond})
	balance := func() (rest float64) {
		for i, p := range b.Tables.Outputs {
			switch p.Name[:min(2, len(p.Name))] {
			case "E.", "D.":
				rest += b.Y[i]
			case "W.":
				rest -= b.Y[i]
			}
		}
		return rest
	}
	start, worst, impacts := balance(), 0., 0
	held, least := math.Inf(1), math.Inf(1) // least strokes while the clutch is closed, and open
	b.To(14, func(at float64) {
		if slices.ContainsFunc(b.Kernel.Events(), func(e kernel.Event) bool { return e.To == kernel.Impact }) {
			impacts++
		}
		worst = max(worst, math.Abs(balance()-start))
		switch {
		case at > 4.5 && at < 9.3:
			held = min(held, b.Get("s_1r"))
		case at > 9.3:
			least = min(least, b.Get("s_1r"))
		}
	})
	if !(held > 8.5e-3 && least < 1e-3 && b.Get("s_1r") > 9e-3) || impacts < 10 {
		t.Errorf("the sleeve is held at %g m, leaves to %g m and ends at %g m, after %d ticks with impacts", held, least, b.Get("s_1r"), impacts)
	}
	tolerance := 1e-8 * b.Get("W.engine")
	if lost := b.Get("D.dog_1"); !(worst < tolerance && b.Get("rubbed") > 100*tolerance && lost > b.Get("rubbed")) {
		t.Errorf("%g J are missing, of %g J; the teeth lose %g J, %g J of it by sliding", worst, b.Get("W.engine"), lost, b.Get("rubbed"))
	}
}
