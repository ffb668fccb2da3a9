package mechanics

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// dragKind is the type of the oil between the plates of an open clutch.
func dragKind() element.Kind {
	return element.Kind{Name: "clutch_drag", Flanges: element.Ends(turns), Read: readDrag,
		Adds: adds{element.LossQuantity, {Key: "filled", Unit: "1", Meaning: "share of the gaps that oil fills"}},
		Parameters: parameters{
			number("surfaces", "1", "", element.AtLeastOne, "number of gaps").Within(0, 1000),
			number("r_inner", "m", "", positive, "inner radius of the gaps"),
			number("r_outer", "m", "", positive, "outer radius of the gaps"),
			number("gap", "m", "", positive, "height of one gap").Within(1e-6, 0.1),
			element.NumberRows.Of("viscosity", "K, Pa.s", "", positive, "dynamic viscosity; [temperature, viscosity]").Within(1e-6, 1e3),
			over("temperature", "K", "heat_port", notNegative, "temperature of the oil, with rows of viscosity"),
			number("rho", "kg/m3", "850", positive, "density of the oil"),
			over("oil_flow", "m3/s", "", notNegative, "flow of oil into all gaps"),
			element.HeatParameter(),
		}}
}

// readDrag reads the drag torque of an open wet clutch with n gaps of height h between the radii r and R. Full gaps
// have the torque of a Newtonian film,
//
//	tau = n·π·mu·(R⁴ - r⁴)/(2·h)·w
//
// The centrifugal force drives oil outwards: where one side of a gap turns, the speed of the oil is linear over the
// height, and full gaps discharge
//
//	Q_full = n·π·h³·rho·w²·(R² - r²)/(40·mu·ln(R/r))
//
// by lubrication theory with that force. With less oil, air enters from outside. The film then has the outer radius
// R*² = r² + s·(R² - r²) with s = Q/Q_full, from the balance of the flows (Kitabayashi, Li, Hiraki, SAE 2003-01-1973;
// Yuan et al., An Improved Hydrodynamic Model for Open Wet Transmission Clutches, J. Fluids Eng. 129, 2007).
func readDrag(e *element.Element) element.Declared {
	n, inner, outer, gap := e.Number("surfaces"), e.Number("r_inner"), e.Number("r_outer"), e.Number("gap")
	if n != math.Trunc(n) {
		e.Refuse(e.Place("surfaces"), "surfaces %g is not a whole number", n)
	}
	if !(outer > inner) {
		e.Refuse(e.Place("r_outer"), "r_outer %s is not above r_inner %s", units.Format(outer, "m"), units.Format(inner, "m"))
	}
	viscosity, T := readViscosity(e)
	flow := network.SignalOf(e.Waveform("oil_flow"))
	w := e.Between.Speeds(1)
	ring := outer*outer - inner*inner
	names := law.Names{"mu": law.Number(viscosity.Z[0]), "flow": flow, "w": w, "ring": ring, "hole": 2 * inner * inner,
		"stiffness": n * math.Pi / (2 * gap),
		"drain":     40 * math.Log(outer/inner) / (n * math.Pi * gap * gap * gap * e.Number("rho") * ring)}
	if T != nil {
		names["mu"] = law.Lookup(viscosity, law.Of(T))
	}
	names["full"] = law.Formula("drain*mu*max(0, flow)", names) // square of the slip up to which the gaps are full
	names["s"] = law.Formula("full/max(w*w, full)", names)
	most := network.Largest(viscosity.Z)
	steepest := n * math.Pi / (2 * gap) * most * ring * (2*inner*inner + 3*ring) // just beyond the largest torque
	tau := law.Formula("stiffness*mu*ring*w*s*(hole + s*ring)", names).WithSlope(w, steepest)
	for _, slow := range []network.Form{flow, T} { // the oil changes slowly, and the torque does not act on it at once
		if slow != nil {
			tau = tau.WithCombinedSlope(slow, 0)
		}
	}
	e.NameLaw("filled", law.Formula("s", names).WithoutSlopes())
	return declareLoss(e, e.Resist(e.AddLaw("tau", "N.m", tau)))
}

// readViscosity reads the viscosity of the oil, and the temperature that rows of it need; nil for a number.
func readViscosity(e *element.Element) (viscosity model.Table, temperature network.Form) {
	viscosity = e.NumberOrTable("viscosity")
	if e.IsScalar("viscosity") {
		e.Forbid("goes with rows of viscosity", "temperature")
		return viscosity, nil
	}
	return viscosity, network.SignalOf(e.Temperature("viscosity"))
}
