package car

import (
	"math"
	"reflect"
	"slices"

	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// formula makes the forces of a tyre after the Magic Formula, versions 5.2 and 6.1 (Pacejka, Tyre and Vehicle
// Dynamics, 3rd ed., eq. 4.E1 to 4.E78, without camber and turn slip).
type formula struct {
	*element.Element
	names        law.Names    // the coefficients, and fz: normal force >= 0, dfz, friction
	kappa, alpha network.Form // slips
	fn           network.Form // normal force
	road         network.Form // friction; nil: 1
	slopes       []slope      // of the force in work
}

// of returns the expression of a text.
func (f *formula) of(text string) *law.Expr { return law.Formula(text, f.names) }

// set gives an expression a name in later texts.
func (f *formula) set(name, text string) { f.names[name] = f.of(text) }

// most returns the largest absolute value of an expression.
func (f *formula) most(text string) float64 {
	low, high := f.of(text).Bounds()
	return max(math.Abs(low), math.Abs(high))
}

// slope is the largest slope of a part of a force along a quantity.
type slope struct {
	along network.Form
	bound float64
}

// curve is the text of C·atan(x - E·(x - atan(x))), the argument of every sine and cosine of the formula.
const curve = "(C*atan(x - E*(x - atan(x))))"

// curvature sets E, which is at most 1.
func (f *formula) curvature(text string) {
	f.names["E"] = law.Formula("min(1, E)", law.Names{"E": f.of(text)}).Plain()
}

// pure makes the force of one slip alone, as the expression "pure", and its slopes. K in the texts is the stiffness,
// skew the name of the coefficient of curvature for the sign of the slip.
func (f *formula) pure(axis string, slip network.Form, x, E, skew, shift string) {
	f.slopes = []slope{{slip, f.most("K")}, {f.fn, 2 * f.most("mu")}, {f.road, f.most("mu*fz")}}
	f.set("x", x)
	if f.names[skew] != 0. {
		f.names["side"], f.names["sense"] = f.of("sign(x)").Plain(), f.sense(axis) // x = B·slip has the sign of the stiffness
		E += "*(1 - " + skew + "*sense*side)"
	}
	f.curvature(E)
	f.set("pure", "mu*fz*sin"+curve+" + "+shift)
}

// sense returns the sign of the slip stiffness at the nominal load: that of data for the signs of ISO is negative across.
func (f *formula) sense(axis string) float64 {
	text := "PKX1*LKX"
	if axis == "y" {
		text = "PKY1*sin(PKY4*atan(1/PKY2))*LKY"
	}
	K, _ := f.of(text).Bounds()
	return math.Copysign(1, K)
}

// weigh makes the force under the other slip, whose argument in the formula is x, and x0 where it is 0. B is the
// largest slope of x along other; more is added to the force. The slope along the own slip is that of the pure force:
// B falls where that slip is large, and there the pure force is flat.
func (f *formula) weigh(axis string, other network.Form, x, x0, E, more string, B float64, further ...slope) network.Form {
	f.slopes = append(f.slopes, slope{other, f.most("mu*fz") * f.most("C") * B})
	f.set("x", x)
	f.curvature(E)
	f.set("cosine", "cos"+curve)
	f.set("x", x0)
	f.set("cosine0", "cos"+curve)
	f.names["side"] = 1.
	if axis == "y" {
		f.names["side"] = f.names["mirror"]
	}
	f.set("more", more)
	total := f.of("side*(pure*cosine/cosine0 + more)")
	for _, along := range []network.Form{f.kappa, f.alpha, f.fn, f.road} {
		bound := 0.0
		for _, s := range slices.Concat(f.slopes, further) {
			if reflect.DeepEqual(s.along, along) {
				bound += s.bound
			}
		}
		if along != nil {
			total = total.WithCombinedSlope(along, bound)
		}
	}
	return f.NameLaw("f_"+axis, total)
}

// longitudinal returns F_x: eq. 4.E9 to 4.E18 and 4.E50 to 4.E57.
func (f *formula) longitudinal() network.Form {
	f.set("C", "PCX1*LCX")
	f.set("mu", "(PDX1 + PDX2*dfz)*(1 + PPX3*dpi + PPX4*dpi*dpi)*LMUX*friction")
	f.set("k", "(PKX1 + PKX2*dfz)*exp(PKX3*dfz)*(1 + PPX1*dpi + PPX2*dpi*dpi)*LKX")
	f.set("K", "k*fz")
	f.pure("x", f.kappa, "k/(C*mu)*(kappa + (PHX1 + PHX2*dfz)*LHX)", "(PEX1 + PEX2*dfz + PEX3*dfz*dfz)*LEX", "PEX4",
		"fz*(PVX1 + PVX2*dfz)*LVX*LMUX*friction")
	f.set("B", "RBX1*LXAL/sqrt(1 + RBX2*RBX2*kappa*kappa)") // cos(atan(x)) = 1/sqrt(1 + x^2)
	f.set("C", "RCX1")
	return f.weigh("x", f.alpha, "B*(alpha + RHX1)", "B*RHX1", "REX1 + REX2*dfz", "0", f.most("RBX1*LXAL"))
}

// lateral returns F_y: eq. 4.E19 to 4.E30 and 4.E58 to 4.E67.
func (f *formula) lateral() network.Form {
	f.set("C", "PCY1*LCY")
	f.set("mu", "(PDY1 + PDY2*dfz)*(1 + PPY3*dpi + PPY4*dpi*dpi)*LMUY*friction")
	f.set("K", "PKY1*FNOMIN*LFZO*(1 + PPY1*dpi)*sin(PKY4*atan(fz/(PKY2*FNOMIN*LFZO*(1 + PPY2*dpi))))*LKY")
	f.pure("y", f.alpha, "K/(C*mu*fz)*(alpha + (PHY1 + PHY2*dfz)*LHY)", "(PEY1 + PEY2*dfz)*LEY", "PEY3",
		"fz*(PVY1 + PVY2*dfz)*LVY*LMUY*friction")
	f.names["moved"] = f.of("abs(alpha - RBY3)").Plain() // the bounds of its square are not negative
	f.set("B", "RBY1*LYKA/sqrt(1 + RBY2*RBY2*(moved*moved))")
	f.set("S", "RHY1 + RHY2*dfz")
	f.set("C", "RCY1")
	steer := "mu*fz*(RVY1 + RVY2*dfz)"
	return f.weigh("y", f.kappa, "B*(kappa + S)", "B*S", "REY1 + REY2*dfz",
		steer+"/sqrt(1 + RVY4*RVY4*alpha*alpha)*sin(RVY5*atan(RVY6*kappa))*LVYKA", f.most("RBY1*LYKA"),
		slope{f.kappa, f.most(steer + "*RVY5*RVY6*LVYKA")}, slope{f.alpha, f.most(steer+"*RVY4*LVYKA") / 2})
}

// named returns a quantity as an expression between bounds.
func named(f network.Form, low, high float64) *law.Expr { return law.Of(f).Within(low, high) }
