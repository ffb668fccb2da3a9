package mechanics

import (
	"math"

	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
)

func gearKinds() []element.Kind {
	r, t := network.Rotational, network.Translational
	gear := append(element.Ends(r), element.Flange{Key: "support", Domain: r, Optional: true})
	rolling := append(element.Flanges(r, "a"), element.Flanges(t, "b")...)
	rolling = append(rolling, element.Flange{Key: "support_r", Domain: r, Optional: true},
		element.Flange{Key: "support_t", Domain: t, Optional: true})
	return []element.Kind{
		{Name: "ideal_gear", Flanges: gear, Keys: []string{"ratio"}, Read: readGear},
		{Name: "lossy_gear", Flanges: gear, Keys: []string{"ratio", "lossTable"}, Read: readLossyGear},
		{Name: "ideal_planetary", Flanges: element.Flanges(r, "sun", "carrier", "ring"),
			Keys: []string{"ratio", "planets"}, Read: readPlanetary},
		{Name: "ravigneaux", Flanges: element.Flanges(r, "sun_small", "sun_large", "carrier", "ring"),
			Keys: []string{"ratio_small", "ratio_large"}, Read: readRavigneaux},
		{Name: "differential", Flanges: element.Flanges(r, "drive", "left", "right"),
			Keys: []string{"ratio"}, Read: readDifferential},
		{Name: "ideal_rolling_wheel", Flanges: rolling,
			Keys: []string{"radius"}, Read: readRolling},
		{Name: "ideal_gear_r2t", Flanges: rolling,
			Keys: []string{"ratio"}, Read: readRolling},
	}
}

// readGear is w_a - w_support = ratio·(w_b - w_support).
func readGear(e *element.Element) element.Declared {
	tieGear(e)
	return element.Declared{}
}

func tieGear(e *element.Element) {
	ratio, f := e.Number("ratio", "1", "speed of a over speed of b")
	if !(ratio != 0) || math.IsNaN(ratio) {
		e.Fail(f.At, "%s: ratio %g is zero; it is the speed of a over the speed of b", e.What(), ratio)
	}
	e.Tie(e.Term("a", 1), e.Term("b", -ratio), e.Term("support", ratio-1))
}

// readTeeth reads the ratio of two numbers of teeth, which is positive.
func readTeeth(e *element.Element, key, meaning string) float64 {
	g, f := e.Number(key, "1", meaning)
	e.Positive(g, f, key, "1")
	return g
}

// readPlanetary is (1 + ratio)·w_carrier = w_sun + ratio·w_ring, and with a pair of
// planets between sun and ring (1 - ratio)·w_carrier = w_sun - ratio·w_ring.
func readPlanetary(e *element.Element) element.Declared {
	g := readTeeth(e, "ratio", "teeth of the ring over those of the sun")
	if f, ok := e.Fields["planets"]; ok {
		switch text := e.Text(f, e.What()+": planets"); text {
		case "single":
		case "double":
			g = -g
		default:
			e.Fail(f.At, "%s: planets: %q is neither single nor double", e.What(), text)
		}
	}
	e.Tie(e.Term("carrier", 1+g), e.Term("sun", -1), e.Term("ring", -g))
	return element.Declared{}
}

// readRavigneaux is two planetary sets on one carrier and ring: the large sun with
// single planets, the small sun with double ones.
func readRavigneaux(e *element.Element) element.Declared {
	small := readTeeth(e, "ratio_small", "teeth of the ring over those of the small sun")
	large := readTeeth(e, "ratio_large", "teeth of the ring over those of the large sun")
	c, r := e.Node("carrier"), e.Node("ring")
	e.Tie(network.TermOf(c, 1-small), e.Term("sun_small", -1), network.TermOf(r, small))
	e.Tie(network.TermOf(c, 1+large), e.Term("sun_large", -1), network.TermOf(r, -large))
	return element.Declared{}
}

// readDifferential is w_drive = ratio·(w_left + w_right)/2.
func readDifferential(e *element.Element) element.Declared {
	ratio, f := e.Option("ratio", "1", 1)
	if !(ratio != 0) {
		e.Fail(f.At, "%s: ratio %g is zero; it is the speed of drive over the mean of left and right", e.What(), ratio)
	}
	e.Tie(e.Term("drive", 1), e.Term("left", -ratio/2), e.Term("right", -ratio/2))
	return element.Declared{}
}

// readRolling is w_a·radius = v_b for a wheel, w_a = ratio·v_b for a gear, relative to
// the supports.
func readRolling(e *element.Element) element.Declared {
	var ratio float64
	if e.Kind.Name == "ideal_rolling_wheel" {
		ratio = 1 / e.Need("radius", "m", "rolling radius")
	} else {
		var f syntax.Field
		ratio, f = e.Number("ratio", "rad/m", "angle of a over path of b")
		if !(ratio != 0) {
			e.Fail(f.At, "%s: ratio %g rad/m is zero; it is the angle of a over the path of b", e.What(), ratio)
		}
	}
	e.Tie(e.Term("a", 1), e.Term("b", -ratio), e.Term("support_r", -1), e.Term("support_t", ratio))
	return element.Declared{}
}
