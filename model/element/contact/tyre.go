// Package contact owns the element types of a wheel on a road or rail: tyre and rail_contact. The
// wheel and the vehicle are not here: they are elements of other families.
//
// Reading order: tyre.go, rail.go.
package contact

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// Kinds returns the element types of the family.
func Kinds() []element.Kind {
	number, over, formula := element.AsNumber.Of, element.OverTime.Of, element.NumberRows.Of
	unbounded, positive, notNegative := element.Any, element.Positive, element.NotNegative
	wheel := func(a, b network.Domain) []element.Flange {
		return append(element.Flanges(a, "a"), element.Flanges(b, "b")...)
	}
	return []element.Kind{
		{Name: "tyre", Flanges: wheel(network.Rotational, network.AnyDomain), Read: readTyre,
			Adds: []element.Quantity{{Key: "slip", Unit: "1", Meaning: "slip kappa of the magic formula"},
				{Key: "k", Unit: "1", Meaning: "deflection of the tread, with relaxation"}},
			Parameters: []element.Parameter{
				number("radius", "m", "if b moves", positive, "effective radius of the wheel").Within(1e-6, 1e6),
				over("fn", "N", "", positive, "normal force"),
				over("friction", "1", "1", positive, "friction of the road over that of the data").Within(0, 1e3),
				number("mu", "1", "or B, C, D, E", positive, "coefficient of Coulomb friction").Within(1e-6, 10),
				number("peak", "1", "1", element.AtLeastOne, "static over sliding friction, with mu").Within(0, 1e3),
				formula("B", "N, 1", "or mu", positive, "stiffness factor; [fn, B]").Within(1e-6, 1e6),
				formula("C", "N, 1", "or mu", element.Nonzero, "shape factor; [fn, C]").Within(1e-6, 1e3),
				formula("D", "N, 1", "or mu", positive, "peak factor, largest force over fn; [fn, D]").Within(1e-6, 1e3),
				formula("E", "N, 1", "or mu", unbounded, "curvature factor; [fn, E]").Within(0, 1e3),
				number("S_h", "1", "0", unbounded, "horizontal shift of the slip").Within(0, 1e3),
				number("S_v", "N.m|N", "0", unbounded, "vertical shift of the force"),
				number("v_low", "rad/s|m/s", "1", positive, "least speed in the slip, without relaxation"),
				number("relaxation", "rad|m", "0", notNegative, "relaxation length; 0: none").Within(1e-9, 0),
				number("damping", "s", "0.02", notNegative, "damping of the tread, with relaxation"),
				number("v_range", "rad/s|m/s", "50", positive, "speed up to which the tread relaxes faster"),
			}},
		{Name: "rail_contact", Flanges: wheel(network.AnyDomain, network.Translational), Read: readRail,
			Adds: []element.Quantity{{Key: "fn", Unit: "N", Meaning: "normal force"}},
			Parameters: []element.Parameter{
				number("radius", "m", "if a turns", positive, "rolling radius of the wheel").Within(1e-6, 1e6),
				over("fn", "N", "", positive, "normal force"),
				over("friction", "1", "1", positive, "condition of the track over time").Within(0, 1e3),
				element.AsRows.Of("way", "m, 1", "1", notNegative, "[position, condition of the track]").Within(0, 1e3),
				element.Word("law", "", "law of adhesion", slices.Sorted(maps.Keys(adhesions))...),
				number("mu0", "1", "by law", element.Fraction, "friction at zero slip"),
				number("A", "1", "by law", element.Fraction, "friction at high slip over mu0"),
				number("v_star", "m/s", "by law", positive, "slip over which friction falls"),
				number("T_sgn", "m/s", "0", notNegative, "slip up to which the force is a slope; 0: friction element").
					Within(1e-9, 0),
				number("peak", "1", "1", element.AtLeastOne, "static over sliding friction, without T_sgn").Within(0, 1e3),
				number("B", "s/m", "0", notNegative, "decay of friction over slip"),
				number("C", "N/m3", "by law", positive, "stiffness of the contact"),
				number("a_ellipse", "m", "by law", positive, "half axis of the contact along the rail").Within(1e-9, 1e3),
				number("b_ellipse", "m", "by law", positive, "half axis of the contact across the rail").Within(1e-9, 1e3),
				number("k_A", "1", "1", element.Fraction, "reduction of adhesion"),
				number("k_S", "1", "0.4", element.Fraction, "reduction of slip; at most k_A"),
				number("v_low", "m/s", "3", positive, "least speed in the slip"),
			}},
	}
}

// tyre is the contact of a wheel (flange a) with the road under a vehicle (flange b) during reading;
// the slip speed is v_s = radius·w_a - v_b.
type tyre struct {
	*element.Element
	load, road int // signals of normal force and friction of the road; road -1: the friction is 1
	vs, v      network.Form
	force      string // unit

	// Of the magic formula:
	shape    law.Names // B, C, D and E: numbers or tables over fn
	steepest float64   // largest slope of the force over the slip, N
	flattest float64   // least B·C
	length   float64   // relaxation length; 0: none
}

// readTyre reads a tyre: Coulomb friction (mu), or the magic formula (Reiter, eq. 135 to
// 138).
func readTyre(e *element.Element) element.Declared {
	t := tyre{Element: e, road: -1, force: e.Per("N.m", "N")}
	if e.Domain == network.Translational {
		t.roll(e.Number("radius"))
	} else {
		name := e.Network.Nodes[e.Node("b")].Name
		e.Forbid(fmt.Sprintf("goes with a vehicle that moves; %q turns with the wheel", name), "radius")
		t.roll(1)
	}

	t.load = e.Waveform("fn")
	t.readRoad()
	const or = "and mu: a tyre is Coulomb friction (mu, peak) or the magic formula (B, C, D, E)"
	if e.Has("mu") {
		e.Forbid(or, "B", "C", "D", "E", "S_h", "S_v", "relaxation", "damping", "v_low", "v_range")
		return t.coulomb()
	}

	e.Forbid(or, "peak")
	return e.Resist(t.magic())
}

// roll sets the speeds of a wheel with a radius, m.
func (t *tyre) roll(radius float64) {
	t.Between = network.Row{t.Term("b", -1), t.Term("a", radius)}
	t.vs, t.v = t.Between.Speeds(1), network.RowOf(t.Node("b")).Speeds(1)
}

// readRoad reads the friction of the road or rail.
func (t *tyre) readRoad() {
	if t.Has("friction") {
		t.road = t.Waveform("friction")
	}
}

// pressed returns the normal force times the friction of the road or rail.
func (t *tyre) pressed() *law.Expr {
	fn := network.SignalOf(t.load)
	if t.road < 0 {
		return law.Formula("max(0, fn)", law.Names{"fn": fn})
	}
	return law.Formula("max(0, fn)*max(0, friction)", law.Names{"fn": fn, "friction": network.SignalOf(t.road)})
}

// coulomb makes a friction element: |force| <= mu·fn·friction.
func (t *tyre) coulomb() element.Declared {
	mu := t.Number("mu")
	k := model.Friction{Gain: mu, Signal: t.load, Peak: t.Number("peak")}
	if t.road < 0 {
		return t.AddFriction(k)
	}
	k.Signal = t.AddLaw("grip", "N", t.pressed()).Index()
	return t.PressedBy(t.AddFriction(k), t.load, mu*k.Peak*t.Network.MaxAbs(t.road))
}

// slip makes the signal of the slip:
//
//	kappa = v_s/max(|v|, v_low) + S_h, or with a relaxation length v_s/max(|v|, |v_s|) + S_h
//
// Its slopes are those of a slip below 1, and with a relaxation length those of a speed of that length
// per second or more; below, the tread is a spring. Along v the slope is that of the force, which is
// flat where the slip is large.
func (t *tyre) slip() network.Form {
	low := t.Number("v_low")
	least := law.Formula("max(abs(v), v_low)", law.Names{"v": t.v, "v_low": low})
	if t.length > 0 {
		low = t.length
		least = law.Formula("max(abs(v), abs(v_s))", law.Names{"v": t.v, "v_s": t.vs}).Within(t.length, math.Inf(1))
	}
	kappa := law.Formula("v_s/least", law.Names{"v_s": t.vs, "least": least}).Within(-1, 1)
	return t.NameLaw("slip", law.Formula("kappa + S_h", law.Names{"kappa": kappa, "S_h": t.Number("S_h")}).
		WithCombinedSlope(t.v, 1/(t.flattest*low)))
}

// readRelaxation reads the relaxation length.
func (t *tyre) readRelaxation() {
	if t.Has("relaxation") {
		t.Forbid("goes without relaxation", "v_low")
	} else {
		t.Forbid("goes with relaxation", "damping", "v_range")
	}
	t.length = t.Number("relaxation")
}

// readFormula reads the coefficients of the magic formula: numbers, or rows of load and number.
func (t *tyre) readFormula() {
	fn := law.Of(network.SignalOf(t.load))
	t.shape, t.steepest, t.flattest = law.Names{"fn": fn}, 1, 1
	for _, key := range []string{"B", "C", "D", "E"} {
		if !t.Has(key) {
			t.Refuse(t.At, "tyre needs %s (of the magic formula), or mu", key)
		}
		var table model.Table
		if t.IsScalar(key) {
			table = element.Constant(t.Number(key))
			t.shape[key] = table.Z[0]
		} else {
			table = t.Table(key)
			t.shape[key] = law.Lookup(table, fn)
		}

		if key != "E" {
			t.steepest *= network.Largest(table.Z)
		}
		if key == "B" || key == "C" {
			least := math.Inf(1)
			for _, z := range table.Z {
				least = min(least, math.Abs(z))
			}
			t.flattest *= least
		}
	}

	t.steepest *= t.Network.MaxAbs(t.load)
	if t.road >= 0 {
		t.steepest *= t.Network.MaxAbs(t.road)
	}
}

// formula returns the expression of a text with the coefficients and further names.
func (t *tyre) formula(text string, further law.Names) *law.Expr {
	names := maps.Clone(t.shape)
	maps.Copy(names, further)
	return law.Formula(text, names)
}

// sine returns sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))).
func (t *tyre) sine(kappa network.Form) *law.Expr {
	return t.formula("sin(C*atan(x - E*(x - atan(x))))", law.Names{"x": t.formula("B*kappa", law.Names{"kappa": kappa})})
}

// magic makes the signal of the force:
//
//	friction·fn·D·sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))) + S_v
func (t *tyre) magic() network.Form {
	t.readRelaxation()
	t.readFormula()
	names := law.Names{"pressed": t.pressed(), "S_v": t.Number("S_v")}
	name := t.Per("tau", "f")
	if slip := t.slip(); t.length > 0 {
		return t.AddLaw(name, t.force, t.tread(slip, names))
	} else {
		names["sine"] = t.sine(slip)
	}
	return t.AddLaw(name, t.force, t.formula("pressed*D*sine + S_v", names))
}

// mostShort is the largest factor by which slip shortens the relaxation length.
const mostShort = 100.

// tread returns the force of a tread with a relaxation length. g is the value of the formula divided
// by its slope at slip 0; the deflection k of the tread follows g:
//
//	k' = r·(g - k),  r = min(p, v_range)/relaxation,  p = max(|v|, |v_s|)·kappa/g
//	force = friction·fn·B·C·D·(k + lead·(g - k)) + S_v,  lead = min(1, max(damping·r, 1 - v_range/p))
//
// At standstill the tread is a spring with deflection k over the relaxation length, and damping is
// its damper; at speed the force is that of the formula. The deflection under a locked wheel is
// limited by the force of the formula, also beyond its peak, so the tread does not push the car
// back. At no speed does the tread return more energy than it took.
//
// kappa/g is 1 at slip 0, where rounding moves it. The slip is steep at a low speed, where lead and r are small: the slopes along g and p are those of
// the laws together.
func (t *tyre) tread(slip network.Form, names law.Names) *law.Expr {
	fast, lag := t.Number("v_range"), t.Number("damping")
	state := t.AddState(network.State{Name: "k"})
	most := 1 / t.flattest
	k := network.StateOf(state)
	g := t.AddLaw("stretch", "1", t.formula("sine/(B*C)", law.Names{"sine": t.sine(slip)}))

	short := law.Formula("clamp(slip/g, 1, most)", law.Names{"slip": slip, "g": g, "most": mostShort}).Plain()
	path := law.Formula("short*max(abs(v), abs(v_s))", law.Names{"short": short, "v": t.v, "v_s": t.vs})
	for _, along := range []network.Form{slip, g, t.v, t.vs} {
		path = path.WithCombinedSlope(along, 0)
	}
	p := t.AddLaw("path", t.Per("rad/s", "m/s"), path)

	names["g"], names["k"] = law.Of(g).Within(-most, most), law.Of(k).Within(-most, most)
	names["p"] = law.Of(p).Within(0, math.Inf(1))
	names["v_range"], names["relaxation"], names["damping"] = fast, t.length, lag
	rate := law.Formula("(g - k)/relaxation*min(p, v_range)", names).WithCombinedSlope(p, 0).WithCombinedSlope(g, 1)
	t.Network.States[state].Der = t.AddLaw("slip_rate", "1/s", rate)

	names["lead"] = law.Formula("where(p - v_range, max(min(1, damping*v_range/relaxation), 1 - v_range/p), "+
		"min(1, damping/relaxation*p))", names)
	return t.formula("pressed*B*C*D*(k + lead*(g - k)) + S_v", names).
		WithCombinedSlope(g, t.steepest*lag).WithCombinedSlope(p, 0)
}
