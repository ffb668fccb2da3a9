package model

import "math"

// readHarmonics is a torque with the orders of an engine over its angle (Modeling and
// simulation of longitudinal dynamics coupled with clutch judder, section 4, where the
// angle is misprinted as speed times time):
//
//	tau·(1 + sum of amplitude·sin(order·phi_rel))
func readHarmonics(e *element) declared {
	mean := e.command("tau", "N.m", "mean torque")
	f, ok := e.fields["orders"]
	if !ok {
		e.fail(e.at, "%s: harmonic_torque needs orders (rows of order and amplitude, such as [[2, 1.8], [4, 0.7]])", e.what())
	}
	rows := e.columns(f, "1", "1")
	if e.err != nil {
		return declared{}
	}
	if !(rows[0][0] > 0) {
		e.fail(f.at, "%s: orders: order %g is not positive; it counts periods per turn", e.what(), rows[0][0])
	}
	size, steep := 1.0, 0.0
	for i, order := range rows[0] {
		a := math.Abs(rows[1][i])
		size, steep = size+a, steep+a*order
	}
	start, _ := e.option("phi_rel_start", "rad", 0)
	s := state{name: "phi_rel", unit: "rad", der: e.between.speeds(1), start: start}
	if !e.has("phi_rel_start") {
		s.along = e.between
	}
	turn := e.addState(s)
	most := e.plant.largest(mean)
	if mean < len(e.plant.inputs) {
		if in := e.plant.inputs[mean]; !math.IsInf(in.Max-in.Min, 0) {
			most = max(-in.Min, in.Max)
		}
	}
	fast := e.above0("w_max", "rad/s", 650)
	var l law
	angle, rate := l.arg(stateOf(turn), most*steep), l.arg(e.between.speeds(1), 0)
	l.stiff = []stiffness{{rate: rate, own: rows[0][len(rows[0])-1] * fast}}
	l.ops = nil
	l.push(1)
	for i, order := range rows[0] {
		l.again(angle).times(order).do(Sin).times(rows[1][i]).do(Add)
	}
	l.arg(signalOf(mean), size)
	d := exertLoad(e, "tau", l.do(Mul))
	d.twist, d.angle = turn, "rad"
	return d
}
