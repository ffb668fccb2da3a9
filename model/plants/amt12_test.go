package plants_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/library"
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
