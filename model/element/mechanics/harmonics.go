package mechanics

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
)

// readHarmonics is a torque with the orders of an engine over its angle (Modeling and
// simulation of longitudinal dynamics coupled with clutch judder, section 4, where the
// angle is misprinted as speed times time):
//
//	tau·(1 + sum of amplitude·sin(order·phi_rel))
func readHarmonics(e *element.Element) element.Declared {
	mean := e.NeedWaveform("tau", "N.m", "mean torque")
	f, ok := e.Fields["orders"]
	if !ok {
		e.Fail(e.At, "%s: harmonic_torque needs orders (rows of order and amplitude, such as [[2, 1.8], [4, 0.7]])", e.What())
	}
	rows := e.Columns(f, "1", "1")
	if e.Err != nil {
		return element.Declared{}
	}
	if !(rows[0][0] > 0) {
		e.Fail(f.At, "%s: orders: order %g is not positive; it counts periods per turn", e.What(), rows[0][0])
	}
	size, steep := 1.0, 0.0
	for i, order := range rows[0] {
		a := math.Abs(rows[1][i])
		size, steep = size+a, steep+a*order
	}
	start, _ := e.Option("phi_rel_start", "rad", 0)
	s := network.State{Name: "phi_rel", Unit: "rad", Der: e.Between.Speeds(1), Start: start}
	if !e.Has("phi_rel_start") {
		s.Along = e.Between
	}
	turn := e.AddState(s)
	most := e.Network.MaxAbs(mean)
	if mean < len(e.Network.Inputs) {
		if in := e.Network.Inputs[mean]; !math.IsInf(in.Max-in.Min, 0) {
			most = max(-in.Min, in.Max)
		}
	}
	fast := e.AboveZero("w_max", "rad/s", 650)
	var l network.Law
	angle, rate := l.Arg(network.StateOf(turn), most*steep), l.Arg(e.Between.Speeds(1), 0)
	l.Stiff = []network.Stiffness{{Rate: rate, Own: rows[0][len(rows[0])-1] * fast}}
	l.Ops = nil
	l.Push(1)
	for i, order := range rows[0] {
		l.Again(angle).Times(order).Do(model.Sin).Times(rows[1][i]).Do(model.Add)
	}
	l.Arg(network.SignalOf(mean), size)
	d := exertLoad(e, "tau", l.Do(model.Mul))
	d.Twist, d.Angle = turn, "rad"
	return d
}
