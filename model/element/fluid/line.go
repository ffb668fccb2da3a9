package fluid

import (
	"math"

	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// readBrakeLine reads the line of a brake circuit between master cylinder and inlet valves, as in a unit of twelve
// valves that builds pressure without the driver: an isolation valve, open without current, with a check valve and
// a pressure limit, and a suction valve, closed without current, through which the pump draws from the master
// cylinder:
//
//	V' = Q_master + Q_suction + flow of a return pump - sum of Q_in of the wheel circuits
//	Q_master = (1 - isolation)·Q(A_isolation, dp) + Q(A_check, max(0, dp - p_check))
//	           + isolation·Q(A_isolation, min(0, dp + p_relief))              dp = master - p
//	Q_suction = flow·pump·suction
//
// with p = p(V) and Q(A, dp) as for wheel_brake_circuit. What the line takes does not change the pressure of the
// master cylinder.
func readBrakeLine(e *element.Element) element.Declared {
	c := circuit{Element: e}
	master := e.Waveform("master")
	p := makeChamber(e, readPressureOverVolume(e))
	c.most = 2 * max(e.Own().MaxAbs, e.Network.MaxAbs(master))
	fall := network.SignalOf(master).Plus(p.Scaled(-1))
	slope := func(area string) float64 { // of Q at dp = 0, the largest
		return c.Number("C_d") * math.Sqrt(2/c.Number("rho")/c.Number("p_transition")) * c.Number(area)
	}
	names := law.Names{"closed": readOpening(e, "isolation"), "open": c.orifice("A_isolation", fall), "check": 0., "relief": 0.}
	var opens, limits network.Form
	if crack := e.Number("p_check"); e.Number("A_check") > 0 {
		opens = fall.Plus(network.One(-crack))
		names["check"] = c.oneWay("A_check", opens, 1)
	} else {
		e.Forbid("goes with A_check", "p_check")
	}
	if e.Has("p_relief") {
		limits = fall.Plus(network.One(e.Number("p_relief")))
		names["relief"] = c.oneWay("A_isolation", limits, -1)
	}
	// The valve is either open or limits the pressure: one has the slope that the other has not.
	flow := law.Formula("(1 - closed)*open + check + closed*relief", names).WithCombinedSlope(fall, slope("A_isolation"))
	if opens != nil {
		flow = flow.WithSlope(opens, slope("A_check"))
	}
	if limits != nil {
		flow = flow.WithCombinedSlope(limits, 0)
	}
	fill(e, e.NameLaw("Q_master", flow))
	if e.Has("suction") {
		fill(e, e.NameLaw("Q_suction", law.Formula("flow*pump*suction", law.Names{"flow": e.Number("flow"),
			"pump": readOpening(e, "pump"), "suction": readOpening(e, "suction")})))
	} else {
		e.Forbid("goes with suction", "pump", "flow")
	}
	return element.Declared{}
}

// oneWay returns the flow through an opening at a pressure difference of one sign; otherwise 0.
func (c *circuit) oneWay(area string, dp network.Form, sign float64) *law.Expr {
	way := law.Of(dp.Scaled(sign)).Within(-c.most, c.most)
	return law.Formula("where(way, Q, 0)", law.Names{"way": way, "Q": c.orifice(area, dp)})
}
