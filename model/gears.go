package model

import "math"

func gearKinds() []kind {
	r, t := rotational, translational
	gear := append(ends(r), flange{"support", r, true})
	return []kind{
		{name: "ideal_gear", flanges: gear, keys: []string{"ratio"}, read: readGear},
		{name: "lossy_gear", flanges: gear, keys: []string{"ratio", "lossTable"}, read: readLossyGear},
		{name: "ideal_planetary", flanges: []flange{{"sun", r, false}, {"carrier", r, false}, {"ring", r, false}},
			keys: []string{"ratio", "planets"}, read: readPlanetary},
		{name: "ravigneaux", flanges: []flange{{"sun_small", r, false}, {"sun_large", r, false}, {"carrier", r, false}, {"ring", r, false}},
			keys: []string{"ratio_small", "ratio_large"}, read: readRavigneaux},
		{name: "differential", flanges: []flange{{"drive", r, false}, {"left", r, false}, {"right", r, false}},
			keys: []string{"ratio"}, read: readDifferential},
		{name: "ideal_rolling_wheel", flanges: []flange{{"a", r, false}, {"b", t, false}, {"support_r", r, true}, {"support_t", t, true}},
			keys: []string{"radius"}, read: readRolling},
		{name: "ideal_gear_r2t", flanges: []flange{{"a", r, false}, {"b", t, false}, {"support_r", r, true}, {"support_t", t, true}},
			keys: []string{"ratio"}, read: readRolling},
	}
}

// tie connects nodes rigidly: Σ coef·w = 0. Flanges left out are ground.
func (e *element) tie(terms ...term) {
	var r row
	for _, t := range terms {
		if t.node != ground && t.coef != 0 {
			r = append(r, t)
		}
	}
	e.plant.ties = append(e.plant.ties, tie{name: e.name, at: e.at, row: r})
}

// readGear is w_a - w_support = ratio·(w_b - w_support).
func readGear(e *element) declared {
	tieGear(e)
	return declared{}
}

func tieGear(e *element) {
	ratio, f := e.number("ratio", "1", "speed of a over speed of b")
	if !(ratio != 0) || math.IsNaN(ratio) {
		e.fail(f.at, "%s: ratio %g is zero; it is the speed of a over the speed of b", e.what(), ratio)
	}
	e.tie(e.term("a", 1), e.term("b", -ratio), e.term("support", ratio-1))
}

// readTeeth reads the ratio of two numbers of teeth, which is positive.
func readTeeth(e *element, key, meaning string) float64 {
	g, f := e.number(key, "1", meaning)
	e.positive(g, f, key, "1")
	return g
}

// readPlanetary is (1 + ratio)·w_carrier = w_sun + ratio·w_ring, and with a pair of
// planets between sun and ring (1 - ratio)·w_carrier = w_sun - ratio·w_ring.
func readPlanetary(e *element) declared {
	g := readTeeth(e, "ratio", "teeth of the ring over those of the sun")
	if f, ok := e.fields["planets"]; ok {
		switch text := e.text(f, e.what()+": planets"); text {
		case "single":
		case "double":
			g = -g
		default:
			e.fail(f.at, "%s: planets: %q is neither single nor double", e.what(), text)
		}
	}
	e.tie(e.term("carrier", 1+g), e.term("sun", -1), e.term("ring", -g))
	return declared{}
}

// readRavigneaux is two planetary sets on one carrier and ring: the large sun with
// single planets, the small sun with double ones.
func readRavigneaux(e *element) declared {
	small := readTeeth(e, "ratio_small", "teeth of the ring over those of the small sun")
	large := readTeeth(e, "ratio_large", "teeth of the ring over those of the large sun")
	c, r := e.node("carrier"), e.node("ring")
	e.tie(termOf(c, 1-small), e.term("sun_small", -1), termOf(r, small))
	e.tie(termOf(c, 1+large), e.term("sun_large", -1), termOf(r, -large))
	return declared{}
}

// readDifferential is w_drive = ratio·(w_left + w_right)/2.
func readDifferential(e *element) declared {
	ratio, f := e.option("ratio", "1", 1)
	if !(ratio != 0) {
		e.fail(f.at, "%s: ratio %g is zero; it is the speed of drive over the mean of left and right", e.what(), ratio)
	}
	e.tie(e.term("drive", 1), e.term("left", -ratio/2), e.term("right", -ratio/2))
	return declared{}
}

// readRolling is w_a·radius = v_b for a wheel, w_a = ratio·v_b for a gear, relative to
// the supports.
func readRolling(e *element) declared {
	var ratio float64
	if e.kind.name == "ideal_rolling_wheel" {
		ratio = 1 / e.need("radius", "m", "rolling radius")
	} else {
		var f field
		ratio, f = e.number("ratio", "rad/m", "angle of a over path of b")
		if !(ratio != 0) {
			e.fail(f.at, "%s: ratio %g rad/m is zero; it is the angle of a over the path of b", e.what(), ratio)
		}
	}
	e.tie(e.term("a", 1), e.term("b", -ratio), e.term("support_r", -1), e.term("support_t", ratio))
	return declared{}
}
