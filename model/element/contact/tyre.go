// Package contact owns the element types of a wheel on a road or rail: tyre and rail_contact. The
// wheel and the vehicle are not here: they are elements of other families.
//
// Reading order: tyre.go, rail.go.
package contact

import (
	"fmt"
	"maps"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
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
				number("radius", "m", "if b moves", positive, "effective radius of the wheel"),
				over("fn", "N", "", positive, "normal force"),
				over("friction", "1", "1", positive, "friction of the road over that of the data"),
				number("mu", "1", "or B, C, D, E", positive, "coefficient of Coulomb friction"),
				number("peak", "1", "1", element.AtLeastOne, "static over sliding friction, with mu"),
				formula("B", "N, 1", "or mu", positive, "stiffness factor; [fn, B]"),
				formula("C", "N, 1", "or mu", unbounded, "shape factor; [fn, C]"),
				formula("D", "N, 1", "or mu", positive, "peak factor, largest force over fn; [fn, D]"),
				formula("E", "N, 1", "or mu", unbounded, "curvature factor; [fn, E]"),
				number("S_h", "1", "0", unbounded, "horizontal shift of the slip"),
				number("S_v", "N.m|N", "0", unbounded, "vertical shift of the force"),
				number("v_low", "rad/s|m/s", "1", positive, "least speed in the slip, without relaxation"),
				number("relaxation", "rad|m", "0", notNegative, "relaxation length; 0: none"),
				number("damping", "s", "0.02", notNegative, "damping of the tread, with relaxation"),
				number("v_range", "rad/s|m/s", "50", positive, "speed up to which the tread relaxes faster"),
			}},
		{Name: "rail_contact", Flanges: wheel(network.AnyDomain, network.Translational), Read: readRail,
			Adds: []element.Quantity{{Key: "fn", Unit: "N", Meaning: "normal force"}},
			Parameters: []element.Parameter{
				number("radius", "m", "if a turns", positive, "rolling radius of the wheel"),
				over("fn", "N", "", positive, "normal force"),
				over("friction", "1", "1", positive, "condition of the track over time"),
				element.AsRows.Of("way", "m, 1", "1", notNegative, "[position, condition of the track]"),
				element.Word("law", "", "law of adhesion", slices.Sorted(maps.Keys(adhesions))...),
				number("mu0", "1", "by law", element.Fraction, "friction at zero slip"),
				number("A", "1", "by law", element.Fraction, "friction at high slip over mu0"),
				number("v_star", "m/s", "by law", positive, "slip over which friction falls"),
				number("T_sgn", "m/s", "0", notNegative, "slip up to which the force is a slope; 0: friction element"),
				number("peak", "1", "1", element.AtLeastOne, "static over sliding friction, without T_sgn"),
				number("B", "s/m", "0", notNegative, "decay of friction over slip"),
				number("C", "N/m3", "by law", positive, "stiffness of the contact"),
				number("a_ellipse", "m", "by law", positive, "half axis of the contact along the rail"),
				number("b_ellipse", "m", "by law", positive, "half axis of the contact across the rail"),
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
	shape    map[string]model.Table // B, C, D and E: numbers or tables over fn
	steepest float64                // largest slope of the force over the slip, N
	length   float64                // relaxation length; 0: none
	low      float64                // v_low
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
	if t.road >= 0 || !e.Has("mu") { // the capacity of Coulomb friction alone needs no event indicator
		t.addZeroBreakpoint(t.load)
	}
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
		t.addZeroBreakpoint(t.road)
	}
}

// pushRoad multiplies the top by the friction of the road or rail.
func (t *tyre) pushRoad(l *network.Law) {
	if t.road >= 0 {
		l.Arg(network.SignalOf(t.road), 0).Push(0).Do(model.Max, model.Mul)
	}
}

// addZeroBreakpoint makes a breakpoint where a signal passes 0; below it the signal counts as 0.
func (t *tyre) addZeroBreakpoint(signal int) {
	if low, _ := t.Network.Range(signal); low < 0 {
		t.AddBreakpoints(network.SignalOf(signal), []float64{0})
	}
}

// coulomb makes a friction element: |force| <= mu·fn·friction.
func (t *tyre) coulomb() element.Declared {
	mu := t.Number("mu")
	k := model.Friction{Gain: mu, Signal: t.load, Peak: t.Number("peak")}
	if t.road < 0 {
		return t.AddFriction(k)
	}
	l := network.LawOf(network.SignalOf(t.load), 0).Push(0).Do(model.Max)
	k.Signal = t.AddProgram("grip", "N", l.Arg(network.SignalOf(t.road), 0).Do(model.Mul)).Index()
	return t.PressedBy(t.AddFriction(k), t.load, mu*k.Peak*t.Network.MaxAbs(t.road))
}

// slip makes the signal of the slip:
//
//	kappa = v_s/max(|v|, v_low) + S_h, or with a relaxation length v_s/max(|v|, |v_s|) + S_h
func (t *tyre) slip() network.Form {
	shift := t.Number("S_h")
	var l *network.Law
	if t.length == 0 {
		l = network.LawOf(t.vs, 1/t.low).Arg(t.v, 0).Do(model.Abs).Push(t.low)
	} else {
		l = network.LawOf(t.vs, 1/t.length).Arg(t.v, 0).Do(model.Abs).Again(0).Do(model.Abs)
	}

	return t.NameProgram("slip", l.Do(model.Max, model.Div).Push(shift).Do(model.Add))
}

// readRelaxation reads the relaxation length and v_low, and makes an event indicator for the
// breakpoint of the slip.
func (t *tyre) readRelaxation() {
	if t.Has("relaxation") {
		t.Forbid("goes without relaxation", "v_low")
	} else {
		t.Forbid("goes with relaxation", "damping", "v_range")
	}

	t.length, t.low = t.Number("relaxation"), t.Number("v_low")
	g := network.LawOf(t.v, 0).Do(model.Abs) // |v|, and v_low or |v_s|
	if t.length == 0 {
		g.Push(t.low)
	} else {
		g.Arg(t.vs, 0).Do(model.Abs)
	}

	t.AddIndicator(g.Do(model.Sub))
}

// readFormula reads the coefficients of the magic formula: numbers, or rows of load and number.
func (t *tyre) readFormula() {
	t.shape, t.steepest = map[string]model.Table{}, 1
	for _, key := range []string{"B", "C", "D", "E"} {
		if !t.Has(key) {
			t.Refuse(t.At, "tyre needs %s (of the magic formula), or mu", key)
		}
		var table model.Table
		if t.IsScalar(key) {
			table = element.Constant(t.Number(key))
		} else {
			table = t.Table(key)
		}

		t.AddBreakpoints(network.SignalOf(t.load), table.Breakpoints())
		if key != "E" {
			t.steepest *= network.Largest(table.Z)
		}
		t.shape[key] = table
	}

	t.steepest *= t.Network.MaxAbs(t.load)
	if t.road >= 0 {
		t.steepest *= t.Network.MaxAbs(t.road)
	}
}

// push pushes a coefficient for the normal force, which is argument fn.
func (t *tyre) push(l *network.Law, key string, fn int) *network.Law {
	if table := t.shape[key]; len(table.X) > 1 {
		return l.Again(fn).Look(table)
	}
	return l.Push(t.shape[key].Z[0])
}

// sine pushes sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))).
func (t *tyre) sine(l *network.Law, kappa, fn int) {
	stretched := func() *network.Law { // B·kappa
		return t.push(l, "B", fn).Again(kappa).Do(model.Mul)
	}
	stretched()
	t.push(l, "E", fn)
	stretched()
	stretched().Do(model.Atan, model.Sub, model.Mul, model.Sub, model.Atan)
	t.push(l, "C", fn).Do(model.Mul, model.Sin)
}

// magic makes the signal of the force:
//
//	friction·fn·D·sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))) + S_v
func (t *tyre) magic() network.Form {
	t.readRelaxation()
	t.readFormula()
	shift := t.Number("S_v")
	slip := t.slip()
	var l network.Law
	fn := 1
	if t.length > 0 {
		fn = t.tread(&l, slip)
	} else {
		kappa := l.Read(slip, t.steepest)
		fn = l.Read(network.SignalOf(t.load), 0)
		t.Network.SizeSlope(&l, kappa, fn, t.load)
		t.sine(&l, kappa, fn)
	}

	t.push(&l, "D", fn).Do(model.Mul).Again(fn).Push(0).Do(model.Max, model.Mul)
	t.pushRoad(&l)
	return t.AddProgram(t.Per("tau", "f"), t.force, l.Push(shift).Do(model.Add))
}

// mostShort is the largest factor by which slip shortens the relaxation length.
const mostShort = 100

// tread pushes the force of a tread with a relaxation length and returns the argument that is the
// load. g is the value of the formula divided by its slope at slip 0; the deflection k of the tread
// follows g:
//
//	k' = r·(g - k),  r = min(p, v_range)/relaxation,  p = max(|v|, |v_s|)·kappa/g
//	force = friction·fn·B·C·D·(k + lead·(g - k)) + S_v,  lead = min(1, max(damping·r, 1 - v_range/p))
//
// At standstill the tread is a spring with deflection k over the relaxation length, and damping is
// its damper; at speed the force is that of the formula. The deflection under a locked wheel is
// limited by the force of the formula, also beyond its peak, so the tread does not push the car
// back. At no speed does the tread return more energy than it took.
func (t *tyre) tread(l *network.Law, slip network.Form) (load int) {
	fast, lag := t.Number("v_range"), t.Number("damping")
	state := t.AddState(network.State{Name: "k"})
	stretch := network.StateOf(state)

	var sine network.Law
	kappa, fn := sine.Read(slip, 1), sine.Read(network.SignalOf(t.load), 0)
	t.sine(&sine, kappa, fn)
	t.push(&sine, "B", fn)
	g := t.AddProgram("stretch", "1", t.push(&sine, "C", fn).Do(model.Mul, model.Div))

	path := network.LawOf(slip, 0).Do(model.Abs).Arg(g, 0).Do(model.Abs, model.Div)
	path.Push(1).Do(model.Max).Push(mostShort).Do(model.Min)
	path.Arg(t.v, 0).Do(model.Abs).Arg(t.vs, 0).Do(model.Abs, model.Max, model.Mul)
	p := t.AddProgram("path", t.Per("rad/s", "m/s"), path)

	rate := network.LawOf(g, 1).Arg(stretch, fast/t.length).Do(model.Sub)
	rate.Arg(p, 0).Push(fast).Do(model.Min, model.Mul).Times(1 / t.length)
	t.Network.States[state].Der = t.AddProgram("slip_rate", "1/s", rate)

	k, to, way := l.Read(stretch, t.steepest), l.Read(g, t.steepest*lag), l.Read(p, 0)
	load = l.Read(network.SignalOf(t.load), 0)
	t.Network.SizeSlope(l, k, load, t.load)
	t.Network.SizeSlope(l, to, load, t.load)
	l.Again(k).Again(to).Again(k).Do(model.Sub)
	l.Again(way).Push(fast).Do(model.Min).Times(lag / t.length)
	l.Push(1).Push(fast).Again(way).Do(model.Div, model.Sub, model.Max).Push(1).Do(model.Min, model.Mul, model.Add)
	t.push(l, "B", load)
	t.push(l, "C", load).Do(model.Mul, model.Mul)

	breakpoint := fast // of the lead
	if lag*fast >= t.length {
		breakpoint = t.length / lag
	}
	t.AddIndicator(network.LawOf(p, 0).Push(breakpoint).Do(model.Sub))
	return load
}
