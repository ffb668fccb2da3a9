// Package car owns the element types of a car in the plane of the road: its body with yaw, roll and pitch
// (planar_car), its steering, and a tyre with combined slip after the Magic Formula (mf_tyre). Wheels, brakes and
// the drivetrain are not here: they are elements of other families.
//
// Axes are those of ISO 8855: x to the front, y to the left, z upwards; the angles of yaw, roll and pitch turn
// from x to y, from y to z and from z to x.
//
// Reading order: car.go (planar_car), air.go (wind on it), steering.go, tyre.go (mf_tyre), formula.go (its forces),
// coefficients.go (the coefficients of the formula), tir.go (those of a .tir file).
package car

import (
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Kinds returns the element types of the family.
func Kinds() []element.Kind { return []element.Kind{carKind(), steeringKind(), tyreKind()} }

// places are the wheels of a car: front left, front right, rear left, rear right.
var places = []string{"fl", "fr", "rl", "rr"}

// Largest speeds of a car that its laws expect, in m/s and rad/s; beyond, they hold, but steps may be too long.
const (
	fastest  = 70.
	sideways = 40.
	turning  = 4.
)

func carKind() element.Kind {
	type parameters = []element.Parameter
	number, over := element.AsNumber.Of, element.OverTime.Of
	free, positive, notNegative := element.Any, element.Positive, element.NotNegative
	adds := []element.Quantity{
		{Key: "psi", Unit: "rad", Meaning: "yaw angle"},
		{Key: "X", Unit: "m", Meaning: "position of the centre of gravity on the ground"},
		{Key: "Y", Unit: "m", Meaning: "position across X, to the left"},
		{Key: "a_x", Unit: "m/s2", Meaning: "acceleration that a sensor at the place sensor reads, to the front"},
		{Key: "a_y", Unit: "m/s2", Meaning: "acceleration that it reads, to the left"},
	}
	for _, at := range places {
		adds = append(adds, element.Quantity{Key: "fn_" + at, Unit: "N", Meaning: "normal force of the wheel " + at})
	}
	return element.Kind{Name: "planar_car", MakeNodes: makeCar, Read: readCar, Adds: adds,
		Hint: "its flanges are NAME.x, NAME.y, NAME.yaw, NAME.roll and NAME.pitch",
		Parameters: parameters{
			number("m", "kg", "", positive, "mass"),
			number("J_yaw", "kg.m2", "", positive, "moment of inertia about z"),
			number("J_roll", "kg.m2", "", positive, "moment of inertia about x"),
			number("J_pitch", "kg.m2", "", positive, "moment of inertia about y"),
			number("h", "m", "", notNegative, "height of the centre of gravity"),
			number("l_f", "m", "", positive, "distance from the centre of gravity to the front axle"),
			number("l_r", "m", "", positive, "distance to the rear axle"),
			number("track_f", "m", "", positive, "track of the front axle"),
			number("track_r", "m", "", positive, "track of the rear axle"),
			number("c_roll", "N.m/rad", "", positive, "stiffness of the suspension in roll; above that of m, g and h"),
			number("d_roll", "N.m.s/rad", "", positive, "damping in roll"),
			number("share_f", "1", "0.5", element.Share, "part of roll stiffness and damping at the front axle"),
			number("c_pitch", "N.m/rad", "", positive, "stiffness in pitch; above that of m, g and h"),
			number("d_pitch", "N.m.s/rad", "", positive, "damping in pitch"),
			number("g", "m/s2", "9.81", positive, "gravitational acceleration"),
			over("slope", "rad", "0", free, "angle at which the road rises along X"),
			over("bank", "rad", "0", free, "angle at which it rises along Y"),
			number("A_drag", "m2", "0", notNegative, "drag coefficient times area"),
			number("A_side", "m2", "0", notNegative, "coefficient times area of the side force"),
			number("x_side", "m", "0", free, "distance of the side force in front of the centre of gravity"),
			number("rho", "kg/m3", "1.2", positive, "density of the air"),
			over("wind_X", "m/s", "0", free, "speed of the wind along X"),
			over("wind_Y", "m/s", "0", free, "speed of the wind along Y"),
			element.AsList.Of("sensor", "m", "[0, 0]", free, "[x, y] of the acceleration sensor"),
			number("v_x_start", "m/s", "solved", free, "speed to the front at the start"),
			number("v_y_start", "m/s", "solved", free, "speed to the left at the start"),
			number("w_start", "rad/s", "solved", free, "yaw rate at the start"),
			number("psi_start", "rad", "0", free, "yaw angle at the start"),
			number("X_start", "m", "0", free, "position at the start"),
			number("Y_start", "m", "0", free, "position across X at the start"),
		}}
}

// car is a car with its nodes, as its tyres see it.
type car struct {
	name                   string
	x, y, yaw, roll, pitch int             // nodes; x and y: the centre of gravity, in the axes of the car
	inertia                map[int]float64 // mass or moment of inertia of the car at each of them
	h, front, rear         float64         // of the centre of gravity: height, distances to the axles
	half                   [2]float64      // tracks over 2, front and rear
	fn                     map[string]network.Form
	most                   float64 // weight, N
}

// makeCar makes the nodes of a car.
func makeCar(e *element.Element) {
	add := func(name string, d network.Domain) int {
		return network.Add(&e.Network.Nodes, network.Node{Name: e.Name + "." + name, At: e.At, Owner: e.Kind.Name, Domain: d, By: e.Name})
	}
	const t, r = network.Translational, network.Rotational
	e.Data = &car{name: e.Name, x: add("x", t), y: add("y", t), yaw: add("yaw", r), roll: add("roll", r), pitch: add("pitch", r)}
}

// readCar reads the body of a car. With the speeds u, v of its centre of gravity and the yaw rate r,
//
//	m·(u' - v·r) = sum of F_x        m·(v' + u·r) = sum of F_y
//
// exact for any yaw angle. Roll phi and pitch theta are small: they turn the body about axes in the road, so that
// a point of the road below it moves at u - h·theta' and v + h·phi'.
//
//	J_roll·phi'' = -c_roll·phi - d_roll·phi' + m·g·h·phi + h·(sum of F_y)
//	J_pitch·theta'' = -c_pitch·theta - d_pitch·theta' + m·g·h·theta - h·(sum of F_x)
//
// (Pacejka, Tyre and Vehicle Dynamics, ch. 1.3; Mitschke and Wallentowitz, Dynamik der Kraftfahrzeuge). What the
// suspension carries in roll and pitch is the change of the normal forces.
func readCar(e *element.Element) element.Declared {
	c := e.Data.(*car)
	m, g, h := e.Number("m"), e.Number("g"), e.Number("h")
	c.h, c.front, c.rear = h, e.Number("l_f"), e.Number("l_r")
	c.half = [2]float64{e.Number("track_f") / 2, e.Number("track_r") / 2}
	c.inertia = map[int]float64{c.x: m, c.y: m, c.yaw: e.Number("J_yaw"), c.roll: e.Number("J_roll"), c.pitch: e.Number("J_pitch")}
	for node, J := range c.inertia {
		e.Network.Nodes[node].J += J // an element at a flange may have added its own
	}

	e.ReadStart("v_x_start", network.StartCondition{Row: network.RowOf(c.x), Speed: true})
	e.ReadStart("v_y_start", network.StartCondition{Row: network.RowOf(c.y), Speed: true})
	e.ReadStart("w_start", network.StartCondition{Row: network.RowOf(c.yaw), Speed: true})

	u, v, r := speed(c.x, fastest), speed(c.y, sideways), speed(c.yaw, turning)
	names := law.Names{"m": m, "u": u, "v": v, "r": r}
	turn := [2]network.Form{e.AddLaw("f_x", "N", law.Formula("m*v*r", names)), e.AddLaw("f_y", "N", law.Formula("-m*u*r", names))}
	e.Exert(network.RowOf(c.x), turn[0])
	e.Exert(network.RowOf(c.y), turn[1])

	psi := network.StateOf(c.addState(e, "psi", network.RowOf(c.yaw).Speeds(1)))
	names["sin"] = e.AddLaw("sin", "1", law.Formula("sin(psi)", law.Names{"psi": psi}))
	names["cos"] = e.AddLaw("cos", "1", law.Formula("cos(psi)", law.Names{"psi": psi}))
	c.addState(e, "X", e.AddLaw("v_X", "m/s", law.Formula("u*cos - v*sin", names)))
	c.addState(e, "Y", e.AddLaw("v_Y", "m/s", law.Formula("u*sin + v*cos", names)))

	weight, pull := c.weigh(e, m*g, names)
	c.blow(e, names)
	c.press(e, m*g*h, weight)
	c.sense(e, m, turn, pull, names)
	return element.Declared{Energy: c.energy(e, m*g*h)}
}

// energy returns the kinetic energy of the car and that of its suspension, from which the sinking weight takes tilt per
// angle.
func (c *car) energy(e *element.Element, tilt float64) *law.Expr {
	sum := law.Number(0)
	add := func(half float64, x network.Form) {
		sum = law.Formula("sum + half*x*x", law.Names{"sum": sum, "half": half, "x": x})
	}
	for _, n := range []int{c.x, c.y, c.yaw, c.roll, c.pitch} {
		add(c.inertia[n]/2, network.RowOf(n).Speeds(1))
	}
	add((e.Number("c_roll")-tilt)/2, network.StateOf(e.Angle(c.roll)))
	add((e.Number("c_pitch")-tilt)/2, network.StateOf(e.Angle(c.pitch)))
	return sum.WithoutSlopes()
}

// addState makes a state of the car with a rate; the key NAME_start gives its start.
func (c *car) addState(e *element.Element, name string, rate network.Form) int {
	i := e.AddState(network.State{Name: name, Start: e.Number(name + "_start"), Der: rate})
	e.ReadStart(name+"_start", network.StartCondition{State: 1 + i})
	return i
}

// weigh makes the weight act on a road that rises. It returns the force onto the road, and the forces along x
// and y; nil: none.
func (c *car) weigh(e *element.Element, weight float64, names law.Names) (press network.Form, pull [2]network.Form) {
	c.most = weight
	if !e.Has("slope") && !e.Has("bank") {
		return network.One(weight), pull
	}
	names["weight"] = weight
	for _, key := range []string{"slope", "bank"} {
		names["sin_"+key], names["cos_"+key] = 0., 1.
		if rise := e.OptionalWaveform(key); rise != nil {
			angle := law.Names{"angle": named(rise, -steepest, steepest)}
			names["sin_"+key] = e.AddLaw("sin_"+key, "1", law.Formula("sin(angle)", angle))
			names["cos_"+key] = e.AddLaw("cos_"+key, "1", law.Formula("cos(angle)", angle))
		}
	}
	pull[0] = e.AddLaw("pull_x", "N", law.Formula("-weight*(sin_slope*cos + sin_bank*sin)", names))
	pull[1] = e.AddLaw("pull_y", "N", law.Formula("weight*(sin_slope*sin - sin_bank*cos)", names))
	e.Exert(network.RowOf(c.x), pull[0])
	e.Exert(network.RowOf(c.y), pull[1])
	return e.AddLaw("weight", "N", law.Formula("weight*cos_slope*cos_bank", names)), pull
}

// steepest is the largest angle of a road that the laws expect, rad.
const steepest = 1.

// press makes the suspension, and the normal forces of the wheels from the weight and what the suspension
// carries. tilt is the torque of the weight per angle.
func (c *car) press(e *element.Element, tilt float64, weight network.Form) {
	carried := func(node int, stiffness, damping string) network.Form {
		k, d := e.Number(stiffness), e.Number(damping)
		if !(k > tilt) {
			e.Refuse(e.Place(stiffness), "%s %s does not carry the body: m*g*h is %s", stiffness,
				units.Format(k, "N.m/rad"), units.Format(tilt, "N.m/rad"))
		}
		angle := network.StateOf(e.Angle(node))
		tau := angle.Scaled(k).Plus(network.RowOf(node).Speeds(d))
		e.Exert(network.RowOf(node), tau.Scaled(-1).Plus(angle.Scaled(tilt)))
		return tau
	}
	roll, pitch := carried(c.roll, "c_roll", "d_roll"), carried(c.pitch, "c_pitch", "d_pitch")
	share, length := e.Number("share_f"), c.front+c.rear
	c.fn = map[string]network.Form{}
	for i, at := range places {
		front, right := i < 2, i%2 == 1
		lever, across, sign := c.rear, share/(2*c.half[0]), 1.
		if !front {
			lever, across, sign = c.front, (1-share)/(2*c.half[1]), -1
		}
		if !right {
			across = -across
		}
		c.fn[at] = e.NameForm("fn_"+at, weight.Scaled(lever/(2*length)).Plus(pitch.Scaled(sign/(2*length))).Plus(roll.Scaled(across)))
	}
}

// sense makes the accelerations that a sensor reads at its place: those of the body less that of free fall.
func (c *car) sense(e *element.Element, m float64, turn, pull [2]network.Form, names law.Names) {
	at := [2]float64{}
	if f, ok := e.Field("sensor"); ok {
		list := e.NumbersOf(f, element.Parameter{Key: "sensor", Unit: "m"})
		if len(list) != 2 {
			e.Refuse(f.At, "sensor: %d values; [x, y] from the centre of gravity are wanted%s", len(list), e.DecimalAdvice(f))
		}
		at = [2]float64(list)
	}
	for i, node := range []int{c.x, c.y} {
		a := network.AccelOf(node).Plus(turn[i].Scaled(-1 / m)).Plus(pull[i].Scaled(-1 / m))
		if at[0] != 0 || at[1] != 0 {
			if names["r2"] == nil {
				names["r2"] = e.AddLaw("r2", "rad2/s2", law.Formula("r*r", names))
			}
			a = a.Plus(network.AccelOf(c.yaw).Scaled([2]float64{-at[1], at[0]}[i])).Plus(names["r2"].(network.Form).Scaled(-at[i]))
		}
		e.NameForm([]string{"a_x", "a_y"}[i], a)
	}
}

// speed returns the speed of a node, up to most.
func speed(n int, most float64) *law.Expr {
	return law.Of(network.RowOf(n).Speeds(1)).Within(-most, most)
}
