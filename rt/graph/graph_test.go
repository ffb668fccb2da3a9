package graph

import (
	"math"
	"slices"
	"testing"

	"lockstep/model/kernel"
	"lockstep/rt/bench"
)

// plantOf returns the network of a bench's plant, and its outputs after some ticks.
func plantOf(t *testing.T, name string, ticks int) (*Plant, func(terms []Term) float64) {
	t.Helper()
	b, err := bench.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Of(h)
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(h.Tables)
	u, y := make([]float64, len(h.Tables.Inputs)), make([]float64, len(h.Tables.Outputs))
	for i := range u {
		u[i] = 12e5 // 12 bar: all clutches work against each other
	}
	for range ticks {
		k.Step(y, u)
	}
	return p, func(terms []Term) (sum float64) {
		for _, term := range terms {
			i := bench.PortIndex(h.Tables.Outputs, term.Signal)
			sum += term.Factor * h.Tables.Outputs[i].DeclaredUnit().FromSI(y[i])
			if term.Rate {
				t.Fatalf("%v is a rate", term)
			}
		}
		return sum
	}
}

// The signals determine all speeds and torques of the gearbox: a gear gives the power that it takes, and
// the plates of a clutch turn as its slip says.
func TestPictureOfThePlantConservesPowerInGears(t *testing.T) {
	p, value := plantOf(t, "powershift-bench", 40)
	gears, clutches, most := 0, 0, 0.0
	for _, e := range p.Elements {
		sum, torque := 0.0, 0.0
		for _, f := range e.Flanges {
			if f.Torque == nil || p.Nodes[f.Node].Speed == nil {
				continue
			}
			torque = max(torque, math.Abs(value(f.Torque)))
			sum += value(f.Torque) * value(p.Nodes[f.Node].Speed)
		}
		switch {
		case e.Type == "ideal_gear":
			gears++
			if most = max(most, torque); !(math.Abs(sum) < 1e-6) {
				t.Errorf("%s loses %g W", e.Name, sum)
			}
		case e.Friction:
			clutches++
			a, b := value(p.Nodes[e.Flanges[0].Node].Speed), value(p.Nodes[e.Flanges[1].Node].Speed)
			slip := value([]Term{{Signal: e.Name + ".w_rel", Factor: 1}})
			if !(math.Abs(b-a-slip) < 1e-9) {
				t.Errorf("%s slips with %g rad/s, its plates turn with %g and %g", e.Name, slip, a, b)
			}
			if !(sum < 1e-6) {
				t.Errorf("%s gives %g W", e.Name, sum)
			}
		}
	}
	if gears != 8 || clutches != 8 || !(most > 10) {
		t.Errorf("%d gears, %d clutches, at most %g N.m", gears, clutches, most)
	}
}

// Gears of a planetary set follow from the slip of the brakes.
func TestPictureOfThePlantKnowsShaftsWithoutOutput(t *testing.T) {
	p, value := plantOf(t, "truck-bench", 20)
	speed := func(name string) float64 {
		i := slices.IndexFunc(p.Nodes, func(n PlantNode) bool { return n.Name == name })
		if p.Nodes[i].Speed == nil {
			t.Fatalf("the speed of %s is not known", name)
		}
		return value(p.Nodes[i].Speed)
	}
	const k0 = 2.5713551041398817
	sun, ring, carrier := speed("sun0"), speed("ring0"), speed("turbine")
	if !(math.Abs(sun+k0*ring-(1+k0)*carrier) < 1e-9) {
		t.Errorf("sun %g, ring %g, carrier %g rad/s", sun, ring, carrier)
	}
}

// The lever of the automatic is an input that an output carries to the bus.
func TestInputThatAnOutputCarriesIsFound(t *testing.T) {
	p, _ := plantOf(t, "automatic-bench", 0)
	if p.Carried["lever_position"] != "lever" {
		t.Errorf("carried: %v", p.Carried)
	}
}
