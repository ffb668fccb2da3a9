package mechanics

import (
	"fmt"
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

func gapKinds() []element.Kind {
	ends := element.Ends(either)
	play := parameters{elastic, viscous, number("backlash", angle, "0", notNegative, "total play"), relaxed, begin,
		element.HeatParameter()}
	lossy := append(adds{element.LossQuantity}, twist...)
	return []element.Kind{
		{Name: "elasto_backlash", Flanges: ends, Parameters: play, Adds: lossy, Read: readBacklash},
		{Name: "elasto_backlash2", Flanges: ends, Parameters: play, Adds: lossy, Read: readBacklash},
		{Name: "clearance", Flanges: ends, Read: readClearance,
			Parameters: parameters{
				number("phi_min|s_min", angle, "no stop", unbounded, "lower end of the play"),
				number("phi_max|s_max", angle, "no stop", unbounded, "upper end of the play"),
				begin,
				number("restitution", "1", "0", element.Share, "0: plastic impact, 1: elastic"),
				number("k_s", "1", "1", element.AtLeastOne, "force on the pushing body over that on the other").Within(0, 1e3),
			},
			Adds: adds{{Key: "play", Unit: angle, Meaning: "deflection from the lower stop, or from the only one"}}},
		{Name: "elasto_gap", Flanges: element.Ends(moves), Read: readGap, Adds: lossy,
			Parameters: parameters{elastic, viscous, relaxed, begin,
				number("n", "1", "1", element.AtLeastOne, "exponent of the spring force").Within(0, 10),
				number("s_ref", "m", "1", positive, "compression at which the spring force is f_ref; with n above 1"),
				number("f_ref", "N", "c times s_ref", notNegative, "spring force at s_ref; with n above 1"),
				number("s_range", "m", "s_ref", positive, "largest compression expected; with n above 1"),
				element.HeatParameter()}},
		{Name: "mass_with_stop_and_friction", Owns: true, Itself: moves, MakeNodes: addEnds, Read: readStopped, Hint: endsHint,
			Parameters: slices.Concat(parameters{mass, length,
				number("smin", "m", "", unbounded, "stop of the left end"),
				number("smax", "m", "", unbounded, "stop of the right end"),
				number("F_prop", "N.s/m", "0", notNegative, "viscous friction"),
				number("F_Coulomb", "N", "0", notNegative, "Coulomb friction"),
				number("F_Stribeck", "N", "0", notNegative, "Stribeck friction at zero speed"),
				number("fexp", "s/m", "with Stribeck", positive, "decay of the Stribeck friction"),
				element.HeatParameter()}, initial),
			Adds: adds{element.LossQuantity, {Key: "play", Unit: "m", Meaning: "position from the left stop"}}},
	}
}

// contact is an elastic contact of stiffness c and damping d with regions of its twist x.
type contact struct {
	*element.Element
	element.Declared
	c, d float64
	at   int // switch of the twist
}

// begin makes the twist and its switch, whose regions lie between the borders.
func (t *contact) begin(borders ...float64) {
	t.Declared = t.AddTwist(0, 0)
	t.at = t.addSwitch(network.StateOf(t.Twist), model.Switch{Borders: borders})
	t.Tau = nil
}

// addSwitch makes a switch of the element with level z and returns its index.
func (t *contact) addSwitch(z network.Form, s model.Switch) int {
	s.Name = t.Name
	return network.Add(&t.Network.Switches, network.Region{At: t.At, Form: z, Switch: s})
}

// addSide adds one side of a contact, which is closed in a region of the twist. The depth is
// e = side·x - gap, with x = phi_rel - phi_rel0; the torque on that side is >= 0:
//
//	tau_c = c·e, tau_d = d·side·w_rel
//	tau   = max(0, tau_c + min(tau_c, tau_d)), or with jump
//	tau   = max(0, tau_c + tau_d)
//
// It is tau_c + tau_d while that lies between 0 and 2·tau_c, so the sides of e + d/c·side·w_rel and
// of e - d/c·side·w_rel select its slopes.
func (t *contact) addSide(side, gap float64, region int, jump bool) {
	if t.d == 0 {
		t.addTorque("elastic", t.at, region, side, gap, t.c)
		return
	}

	closed := model.Gate{Switch: t.at, Region: region}
	depth, rate := network.StateOf(t.Twist).Scaled(side), t.Between.Speeds(side*t.d/t.c)
	inner := model.Switch{Borders: []float64{gap}, Inner: true}
	pushing := t.addSwitch(depth.Plus(rate), inner)
	if jump {
		t.addTorque("damped", pushing, 1, side, gap, t.c, closed)
		return
	}
	limited := t.addSwitch(depth.Plus(rate.Scaled(-1)), inner)
	t.addTorque("damped", pushing, 1, side, gap, t.c, closed, model.Gate{Switch: limited, Region: 1})
	t.addTorque("elastic", t.at, region, side, gap, 2*t.c, model.Gate{Switch: limited, Region: 0})
}

// addTorque adds side·c·(e - gap) in one region of a switch while the gates are open, where e is the
// level of the switch or, of the twist, side times its level.
func (t *contact) addTorque(name string, on, region int, side, gap, c float64, gates ...model.Gate) {
	n := len(t.Network.Switches[on].Borders) + 1
	a := model.Affine{Switch: on, Slope: make([]float64, n), Offset: make([]float64, n), Gates: gates}
	a.Slope[region], a.Offset[region] = side*c, -side*c*gap
	if on == t.at {
		a.Slope[region] = c
	}
	s := network.Signal{Unit: units.Want(t.Unit).Unit, Affine: &a}
	t.Tau = t.Tau.Plus(network.SignalOf(t.AddSignal(fmt.Sprintf("%s%d", name, region), s)))
}

// readBacklash reads a spring-damper with the total play backlash (b in the Modelica Standard
// Library); with play 0 it is a plain spring-damper.
func readBacklash(e *element.Element) element.Declared {
	t := contact{Element: e, c: e.Number("c"), d: e.Number("d")}
	b := e.Number("backlash")
	if b <= 1e-10 {
		return readLink(e)
	}
	t.begin(-b/2, b/2)
	jump := e.Kind.Name == "elasto_backlash2"
	t.addSide(1, b/2, 2, jump)
	t.addSide(-1, b/2, 0, jump)
	return t.exert(model.Table{X: []float64{-b/2 - 1, -b / 2, b / 2, b/2 + 1}, Z: []float64{-1, 0, 0, 1}, Extend: true})
}

// readGap reads a contact that pushes while s_rel < s_rel0.
func readGap(e *element.Element) element.Declared {
	if n := e.Number("n"); n > 1 {
		return readCurvedGap(e, n)
	}
	e.Forbid("goes with n above 1", "s_ref", "f_ref", "s_range")
	t := contact{Element: e, c: e.Number("c"), d: e.Number("d")}
	t.begin(0)
	t.addSide(-1, 0, 0, false)
	return t.exert(model.Table{X: []float64{-1, 0, 1}, Z: []float64{-1, 0, 0}, Extend: true})
}

// readCurvedGap reads an elasto_gap with an exponent. With the compression e = s_rel0 - s_rel,
//
//	f_c = f_ref·(e/s_ref)^n, f = -(f_c + max(-f_c, min(f_c, -d·v_rel))) while e > 0
func readCurvedGap(e *element.Element, n float64) element.Declared {
	c, damping, unit := e.Number("c"), e.Number("d"), e.Number("s_ref")
	force := e.NumberOr("f_ref", c*unit)
	most := e.NumberOr("s_range", unit)
	t := contact{Element: e, c: c, d: damping}
	t.begin(0) // its switch ends a substep at the contact
	x, v := network.StateOf(t.Twist), e.Between.Speeds(1)
	names := law.Names{"x": law.Of(x).Within(-most, most), "d": damping, "v": v, "f_ref": force, "s_ref": unit}
	names["r"] = law.Formula("max(0, -x)/s_ref", names)
	names["power"] = power(names["r"].(*law.Expr), n)
	names["fc"] = law.Formula("f_ref*power", names)
	names["fd"] = law.Formula("min(fc, max(-fc, -d*v))", names)
	steep := force * n / unit * math.Pow(most/unit, n-1)
	t.Tau = e.AddLaw("f", "N", law.Formula("-(fc + fd)", names).WithSlope(x, 2*steep).WithSlope(v, damping))
	t.Resist(t.Tau)
	names["whole"] = force * unit / (n + 1)
	t.Energy = law.Formula("whole*power*r", names).WithCombinedSlope(x, 0)
	e.AddLoss(law.Formula("-fd*v", names).WithCombinedSlope(x, 0).WithCombinedSlope(v, 0))
	return t.Declared
}

// power returns x^n for x >= 0 and n >= 1: the whole part of n by products, the rest by the bits of n, as
// x^(b1/2 + b2/4 + ...) = sqrt(x^b1·sqrt(x^b2·...)). 40 bits leave a relative error below 1e-12·|ln(x)|.
func power(x *law.Expr, n float64) *law.Expr {
	whole, part := math.Modf(n)
	var bits []bool
	for range 40 {
		if part == 0 {
			break
		}
		part *= 2
		bits = append(bits, part >= 1)
		part -= math.Floor(part)
	}
	y := law.Number(1)
	names := law.Names{"x": x}
	for _, bit := range slices.Backward(bits) {
		if names["y"] = y; bit {
			names["y"] = law.Formula("y*x", names)
		}
		y = law.Formula("sqrt(y)", names)
	}
	for range int(whole) {
		names["y"] = y
		y = law.Formula("y*x", names)
	}
	return y
}

// exert makes the element exert the torques of its sides. depth is the part of the twist beyond the play, with its sign:
// the spring stores c/2·depth², and what the damper adds to c·depth is lost.
func (t *contact) exert(depth model.Table) element.Declared {
	t.Resist(t.Tau)
	x, w := network.StateOf(t.Twist), t.Between.Speeds(1)
	names := law.Names{"c": t.c, "tau": t.Tau, "w": w, "e": law.Lookup(depth, law.Of(x)).Plain()}
	t.Energy = law.Formula("c/2*e*e", names).WithCombinedSlope(x, 0)
	t.AddLoss(law.Formula("(tau - c*e)*w", names).
		WithCombinedSlope(x, 0).WithCombinedSlope(t.Tau, 0).WithCombinedSlope(w, 0))
	return t.Declared
}

// readClearance is phi_min <= phi_rel <= phi_max: two rigid stops, or one. A stop that
// is hit throws back with the coefficient of restitution (Reiter, ch. 4), and pushes only.
func readClearance(e *element.Element) element.Declared {
	unit, lowest, highest := e.UnitOf("phi_min"), e.Per("phi_min", "s_min"), e.Per("phi_max", "s_max")
	low, high := e.NumberOr("phi_min", math.Inf(-1)), e.NumberOr("phi_max", math.Inf(1))
	rest, ks := e.Number("restitution"), e.Number("k_s")
	switch {
	case !e.Has("phi_min") && !e.Has("phi_max"):
		e.Refuse(e.At, "%s needs %s or %s (the ends of its play, %s)", e.Kind.Name, lowest, highest, unit)
	case !(low < high):
		e.Refuse(e.Place("phi_max"), "%s %s is not above %s %s; there is no play",
			highest, units.Format(high, unit), lowest, units.Format(low, unit))
	}

	zero := low // the state is the distance from a stop, so that it is exact there
	if math.IsInf(low, 0) {
		zero = high
	}
	i := e.AddDeflection(network.State{Name: "play", Start: -zero})
	d := element.Declared{Rel: e.Between, Unit: e.Per("N.m", "N"), Friction: true, Angle: unit, Twist: i, Rest: zero}
	stop := func(name string, g model.Gap) {
		d.Tau = d.Tau.Plus(addStop(e, name, e.Between, g))
		if ks != 1 {
			loss := addContactLoss(e, name, ks-1, g.Sign)
			if d.Loss != nil {
				loss = law.Formula("other + loss", law.Names{"other": d.Loss, "loss": loss})
			}
			d.Loss = loss.WithoutSlopes()
		}
	}
	if e.Has("phi_min") {
		stop("min", model.Gap{State: i, Sign: 1, Limit: low - zero, Restitution: rest})
	}
	if e.Has("phi_max") {
		stop("max", model.Gap{State: i, Sign: -1, Limit: high - zero, Restitution: rest})
	}
	return d
}

// readStopped reads a mass with friction on the ground and two rigid stops, which its ends hit without a rebound:
// smin + L/2 <= s <= smax - L/2. Its friction is F_Coulomb + F_Stribeck·exp(-fexp·|v|) + F_prop·|v|, and at rest
// up to staticPeak times that.
func readStopped(e *element.Element) element.Declared {
	readMass(e)
	e.Between = network.RowOf(e.OwnNode)
	low, high := e.Number("smin")+e.Number("L")/2, e.Number("smax")-e.Number("L")/2
	if !(low < high) {
		e.Refuse(e.Place("smax"), "smax %s is not above smin %s by more than L %s; there is no play",
			units.Format(e.Number("smax"), "m"), units.Format(e.Number("smin"), "m"), units.Format(e.Number("L"), "m"))
	}
	i := e.AddState(network.State{Name: "play", Start: -low, Der: e.Between.Speeds(1), Along: e.Between})
	d := element.Declared{Rel: e.Between, Unit: "N", Angle: "m", Twist: i, Rest: low,
		Energy: squared(e.Number("J")/2, e.Between.Speeds(1))}

	coulomb, extra, prop := e.Number("F_Coulomb"), e.Number("F_Stribeck"), e.Number("F_prop")
	if !(extra > 0) {
		e.Forbid("goes with F_Stribeck", "fexp")
	}
	switch {
	case extra > 0:
		d.Tau = e.AddFriction(model.Friction{Gain: 1, Peak: staticPeak, Signal: e.AddLaw("f", "N",
			law.Formula("F_Coulomb + F_Stribeck*exp(-fexp*v)", law.Names{"F_Coulomb": coulomb, "F_Stribeck": extra,
				"fexp": e.Number("fexp"), "v": slipOf(e)})).Index()}).Tau
	case coulomb > 0:
		d.Tau = e.AddFriction(model.Friction{Gain: 1, Peak: staticPeak, Signal: e.AddConstant("f", coulomb)}).Tau
	}
	d.Friction = d.Tau != nil
	if prop > 0 {
		d.Tau = d.Tau.Plus(e.Resist(e.Between.Speeds(prop)).Tau)
	}
	addStop(e, "min", e.Between, model.Gap{State: i, Sign: 1})
	addStop(e, "max", e.Between, model.Gap{State: i, Sign: -1, Limit: high - low})
	return declareLoss(e, d)
}

// addStop adds one end of a clearance along between, a friction element along sign·w_rel, and returns its
// torque along w_rel.
func addStop(e *element.Element, name string, between network.Row, g model.Gap) network.Form {
	k := model.Friction{Name: e.Name + "." + name, Gain: 1, Peak: 1, OneWay: true, Gap: &g,
		Signal: e.AddConstant(name, 0), Translational: e.Domain == network.Translational}
	rel := between.Scaled(g.Sign)
	contact := network.Add(&e.Network.Frictions, network.Friction{Friction: k, At: e.At, Rel: rel})
	e.Contacts = append(e.Contacts, contact)
	tau := network.FrictionOf(contact)
	e.Exert(rel, tau.Scaled(-1))
	return tau.Scaled(g.Sign)
}

// addContactLoss takes extra·N from the body that pushes the other at the stop added last, in the direction in which
// both move (Reiter, eq. 128; extra is k_s - 1). It returns the power of that loss.
func addContactLoss(e *element.Element, name string, extra, sign float64) *law.Expr {
	contact, power := e.Contacts[len(e.Contacts)-1], law.Number(0)
	c := network.ContactLoss{Name: e.Name + "." + name, At: e.At, Rel: e.Between.Scaled(sign), Contact: contact, K: extra}
	for _, way := range []struct {
		name    string
		forward float64
	}{{"forward", 1}, {"backward", -1}} {
		node := e.Node("a")
		if way.forward*sign < 0 {
			node = e.Node("b")
		}
		if node == network.Ground || e.Network.Nodes[node].Owner == "fixed" {
			continue // it does not move
		}
		c.Own = len(e.Network.Signals)
		e.Network.ContactLosses = append(e.Network.ContactLosses, c)
		body := network.Difference(node, network.Ground)

		// Limited to 0 and the force of the contact: 0 without contact, and continuous at its end.
		own := network.ContactLossOf(len(e.Network.ContactLosses) - 1)
		n := network.FrictionOf(c.Contact).Scaled(-1e9)
		names := law.Names{"loss": own, "n": n, "forward": body.Speeds(way.forward)}
		names["above"], names["below"] = law.Formula("max(n, 0)", names).Plain(), law.Formula("min(n, 0)", names).Plain()
		names["loss"] = law.Formula("min(loss, above)", names).Plain()
		names["loss"] = law.Formula("max(loss, below)", names).Plain()
		l := law.Formula("where(forward, loss, 0)", names)
		loss := e.AddLaw(name+".loss_"+way.name, e.Per("N.m", "N"), l.WithCombinedSlope(n, 0))
		e.Exert(body, loss.Scaled(-way.forward))
		power = law.Formula("power + loss*v", law.Names{"power": power, "loss": loss, "v": body.Speeds(way.forward)})
	}
	return power
}
