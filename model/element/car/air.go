package car

import (
	"math"

	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// blow makes the air act on the car. With the speed v of the body in the air, of size |v|,
//
//	F_x = -rho/2·A_drag·|v|·v_x        F_y = -rho/2·A_side·|v|·v_y
//
// where F_y acts x_side in front of the centre of gravity.
func (c *car) blow(e *element.Element, names law.Names) {
	drag, side, rho, lever := e.Number("A_drag"), e.Number("A_side"), e.Number("rho"), e.Number("x_side")
	if drag == 0 && side == 0 {
		e.Forbid("goes with A_drag or A_side", "x_side", "rho", "wind_X", "wind_Y")
		return
	}
	along, across := network.RowOf(c.x).Speeds(1), network.RowOf(c.y).Speeds(1)
	if e.Has("wind_X") || e.Has("wind_Y") {
		wind := law.Names{"sin": names["sin"], "cos": names["cos"], "u": names["u"], "v": names["v"], "X": 0., "Y": 0.}
		for _, axis := range []string{"X", "Y"} {
			if key := "wind_" + axis; e.Has(key) {
				wind[axis] = named(network.SignalOf(e.Waveform(key)), -storm, storm)
			}
		}
		along = e.AddLaw("air_x", "m/s", law.Formula("u - X*cos - Y*sin", wind))
		across = e.AddLaw("air_y", "m/s", law.Formula("v + X*sin - Y*cos", wind))
	}
	air := law.Names{"x": named(along, -fastest-storm, fastest+storm), "y": named(across, -sideways-storm, sideways+storm)}
	for _, f := range []struct {
		name, text string
		area       float64
		row        network.Row
	}{
		{"drag", "-k*sqrt(x*x + y*y)*x", drag, network.RowOf(c.x)},
		{"side", "-k*sqrt(x*x + y*y)*y", side, network.Row{network.TermOf(c.y, 1), network.TermOf(c.yaw, lever)}},
	} {
		if f.area == 0 {
			continue
		}
		air["k"] = rho / 2 * f.area
		most := rho * f.area * math.Hypot(fastest+storm, sideways+storm) // the slope of |v|·v_x is at most 2·|v|
		force := law.Formula(f.text, air).WithSlope(along, most).WithSlope(across, most)
		e.Exert(f.row, e.AddLaw(f.name, "N", force))
	}
}

// storm is the fastest wind that the laws expect, m/s.
const storm = 60.
