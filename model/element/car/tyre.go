package car

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

func tyreKind() element.Kind {
	number, over := element.AsNumber.Of, element.OverTime.Of
	free, positive, notNegative := element.Any, element.Positive, element.NotNegative
	return element.Kind{Name: "mf_tyre", Flanges: element.Flanges(network.Rotational, "a"), Read: readTyre,
		Adds: []element.Quantity{
			{Key: "kappa", Unit: "1", Meaning: "longitudinal slip in the formula"},
			{Key: "alpha", Unit: "rad", Meaning: "slip angle in the formula"},
			{Key: "f_x", Unit: "N", Meaning: "force along the wheel"},
			{Key: "f_y", Unit: "N", Meaning: "force across the wheel, to the left"},
			{Key: "v_x", Unit: "m/s", Meaning: "speed of the wheel along itself"},
			{Key: "v_y", Unit: "m/s", Meaning: "speed across itself, to the left"},
			{Key: "fn", Unit: "N", Meaning: "normal force"},
			{Key: "u", Unit: "m", Meaning: "longitudinal deflection"},
			{Key: "v", Unit: "m", Meaning: "lateral deflection"},
		},
		Parameters: []element.Parameter{
			element.Word("b", "", "place of the wheel on a planar_car: CAR.fl, CAR.fr, CAR.rl or CAR.rr"),
			number("radius", "m", "", positive, "effective radius of the wheel"),
			over("steer", "rad", "0", free, "angle of the wheel, to the left"),
			over("friction", "1", "1", positive, "friction of the road over that of the data").Within(0, 1e3),
			element.Word("tyre", "or coefficients", "name of a .tir file, beside the plant file"),
			element.AsMap.Of("coefficients", "1", "or tyre", free, "{PCX1: ..., PDX1: ..., ...} as in a .tir file"),
			number("FNOMIN", "N", "of tyre", positive, "nominal normal force of the data"),
			element.Word("version", "6.1, or of tyre", "version of the formula", "5.2", "6.1"),
			number("pressure", "1", "0, or of tyre", free, "pressure of the tyre over the nominal one, less 1").Within(0, 1),
			number("relaxation_x", "m", "of tyre", positive, "longitudinal relaxation length").Within(shortest, longest),
			number("relaxation_y", "m", "of tyre", positive, "lateral relaxation length").Within(shortest, longest),
			element.Flag("mirror", "false, or of tyre", "data of the other side of the car"),
			number("damping", "s", "0.01", notNegative, "damping of the tread near standstill"),
			number("v_low", "m/s", "2", positive, "speed up to which it acts"),
		}}
}

// tyre is a tyre during reading.
type tyre struct {
	*element.Element
	car      *car
	at       string  // its wheel
	x, y     float64 // place of the wheel, m
	radius   float64
	fn       network.Form
	cos, sin *law.Expr // of the steering angle; nil: not steered
}

// mostSlip is the slip beyond which the tread relaxes by the slip speed: a spinning wheel of a car at rest has a
// bounded deflection.
const mostSlip = 10.

// readTyre reads a tyre with the transient slip of Pacejka, Tyre and Vehicle Dynamics, 3rd ed., ch. 7 and 8:
//
//	sigma_x·u' + p_x·u = -sigma_x·V_sx        kappa = u/sigma_x        V_sx = V_x - radius·w
//	sigma_y·v' + p_y·v = sigma_y·V_y          tan(alpha) = v/sigma_y
//
// p is |V_x|, at least the slip speed over mostSlip. Near standstill the tread also damps: the formula reads
// kappa + T·kappa' and alpha + T·alpha', where T falls from damping at rest to 0 at v_low. It changes no force
// that is steady.
//
// Where both V_x and the slip speed fall below v_low, the deflection comes back to that of the largest force, see
// unwound: the tread of a locked wheel slides, and does not throw the car back when it stops (there, ch. 7.2.3 limits the
// deflection for the same reason). There sigma also falls with the slope of the force, as for a carcass whose force is
// proportional to its deflection (there, ch. 7.2.2): the car springs back by the force over that stiffness.
func readTyre(e *element.Element) element.Declared {
	t := tyre{Element: e, radius: e.Number("radius")}
	t.mount()
	t.fn = e.NameForm("fn", t.car.fn[t.at])
	vx, vy := t.speeds()
	slip := network.RowOf(e.Node("a")).Speeds(-t.radius).Plus(vx)

	d := readData(e)
	low := e.Number("v_low")
	still := e.AddLaw("still", "1", law.Formula("(1 + cos(clamped))/2", law.Names{"clamped": law.Lookup(model.Table{
		X: []float64{-low, low}, Z: []float64{-math.Pi, math.Pi}}, named(vx, -fastest, fastest)).Plain()}).WithCombinedSlope(vx, 0))
	c := d.list
	kappa := t.deflect("u", "kappa", slip.Scaled(-1), slip, vx, still, d.relaxationX, c["PDX1"]*c["LMUX"]/(c["PKX1"]*c["LKX"]))
	alpha := t.deflect("v", "alpha", vy, vy, vx, still, d.relaxationY, c["PDY1"]*c["LMUY"]/(c["PKY1"]*math.Sin(c["PKY4"]*math.Atan(1/c["PKY2"]))*c["LKY"]))

	fx, fy := t.forces(d, kappa, alpha)
	e.Exert(network.RowOf(e.Node("a")), fx.Scaled(-t.radius))
	bx, by := fx, fy
	if t.cos != nil {
		names := law.Names{"f_x": fx, "f_y": fy, "cos": t.cos, "sin": t.sin}
		bx = e.AddLaw("b_x", "N", law.Formula("f_x*cos - f_y*sin", names))
		by = e.AddLaw("b_y", "N", law.Formula("f_x*sin + f_y*cos", names))
	}
	e.Exert(t.along(), bx)
	e.Exert(t.across(), by)
	return element.Declared{}
}

// findCar returns the car that a key of an element names, and the index in wheels of the wheel after the name.
func findCar(e *element.Element, key string, wheels []string) (*car, int) {
	name := e.FullName(e.Word(key))
	var known []string
	for _, other := range e.Elements {
		c, ok := other.Data.(*car)
		if !ok {
			continue
		}
		for i, w := range wheels {
			if c.name+w == name {
				return c, i
			}
			known = append(known, c.name+w)
		}
	}
	slices.Sort(known)
	if wheels[0] != "" {
		e.Refuse(e.Place(key), "%s: %q is no wheel of a planar_car%s", key, name, units.Meant(name, known))
	}
	e.Refuse(e.Place(key), "%s: %q is no planar_car%s", key, name, units.Meant(name, known))
	return nil, 0
}

// mount finds the car of the wheel and its place on it.
func (t *tyre) mount() {
	var i int
	t.car, i = findCar(t.Element, "b", []string{".fl", ".fr", ".rl", ".rr"})
	c := t.car
	t.at = places[i]
	t.x, t.y = c.front, c.half[i/2]
	if i >= 2 {
		t.x = -c.rear
	}
	if i%2 == 1 {
		t.y = -t.y
	}
}

// along returns the row of the speed of the hub to the front, in the axes of the car. The wheel turns on its own,
// so that its force along acts on the body at the height of the hub.
func (t *tyre) along() network.Row {
	return network.Row{network.TermOf(t.car.x, 1), network.TermOf(t.car.pitch, t.radius-t.car.h), network.TermOf(t.car.yaw, -t.y)}
}

// across returns the row of the speed of the contact to the left. The wheel rolls over with the body.
func (t *tyre) across() network.Row {
	return network.Row{network.TermOf(t.car.y, 1), network.TermOf(t.car.roll, t.car.h), network.TermOf(t.car.yaw, t.x)}
}

// speeds returns the speeds of the wheel along and across itself.
func (t *tyre) speeds() (vx, vy network.Form) {
	steer := t.OptionalWaveform("steer")
	if steer == nil || t.alwaysZero(steer) {
		return t.NameForm("v_x", t.along().Speeds(1)), t.NameForm("v_y", t.across().Speeds(1))
	}
	angle := named(steer, -largestSteer, largestSteer)
	t.cos = named(t.AddLaw("cos", "1", law.Formula("cos(delta)", law.Names{"delta": angle})), -1, 1)
	t.sin = named(t.AddLaw("sin", "1", law.Formula("sin(delta)", law.Names{"delta": angle})), -1, 1)
	names := law.Names{"x": named(t.along().Speeds(1), -fastest, fastest), "y": named(t.across().Speeds(1), -sideways, sideways),
		"cos": t.cos, "sin": t.sin}
	return t.NameLaw("v_x", law.Formula("x*cos + y*sin", names)), t.NameLaw("v_y", law.Formula("y*cos - x*sin", names))
}

// alwaysZero reports whether a signal is 0 at all times: the laws of a wheel that is not steered are left out.
func (t *tyre) alwaysZero(signal network.Form) bool {
	low, high := t.Network.Range(signal.Index())
	return low == 0 && high == 0
}

// unwound is the slip to which the deflection comes back near standstill, over the largest force per slip stiffness, and
// unwinding the speed at which it does so, over v_low and that slip.
//
// steepened bounds the part of that slip up to which sigma falls: there the force of F = F_max·(x - x²/4), x = slip over
// F_max per slip stiffness, has a quarter of its slope at 0.
const (
	unwound   = 2.
	unwinding = 20.
	steepened = 0.75
)

// deflect makes the deflection of the tread along one axis and returns the slip that the formula reads. push is
// its rate without relaxation, slip the slip speed, still 1 at rest and 0 from v_low on, peak the largest force over the
// slip stiffness, at the nominal load on a road of friction 1.
func (t *tyre) deflect(state, name string, push, slip, vx, still network.Form, length, peak float64) network.Form {
	i := t.AddState(network.State{Name: state})
	at := network.StateOf(i)
	names := law.Names{"x": named(at, -mostSlip*length, mostSlip*length), "length": length, "most": mostSlip,
		"v_x": named(vx, -fastest, fastest), "v_s": named(slip, -fastest, fastest),
		"still": named(still, 0, 1), "damping": t.Number("damping"), "push": named(push, -fastest, fastest),
		"low": t.Number("v_low"), "limit": unwound * math.Abs(peak), "unwinding": unwinding * t.Number("v_low"), "friction": 1.,
		"steepened": steepened}
	var road network.Form
	if t.Has("friction") {
		road = network.SignalOf(t.Waveform("friction"))
		names["friction"] = law.Formula("max(0, friction)", law.Names{"friction": named(road, slippery, t.Network.MaxAbs(road.Index()))})
	}
	// No event ends a substep at the corners of these parts. Those of pace at V_x = 0 and V_sx = 0 matter where both
	// are 0, and there the deflection hardly relaxes.
	for _, part := range [][2]string{
		{"speed", "abs(v_x)"}, {"spin", "abs(v_s)"}, {"pace", "max(speed, spin/most)"},
		{"limit", "limit*friction"}, {"below", "min(limit, x/length)"}, {"within", "max(-limit, below)"},
		{"slow", "max(0, 1 - spin/low)"}, {"size", "abs(x)"}, {"part", "min(steepened, size/(length*limit))"},
	} {
		names[part[0]] = law.Formula(part[1], names).Plain()
	}
	// The deflection comes back by slip or by unwinding: pace is small where still and slow are not 0. Where pace or part
	// change the rate much, the force is as flat: the deflection follows V_sx by at most 1 where it counts.
	returning := law.Formula("pace*x/length + still*slow*(unwinding*(x/length - within) - part/(1 - part)*push)", names).
		WithCombinedSlope(at, max(fastest, (1+unwinding)*t.Number("v_low"))/length).WithCombinedSlope(vx, 0).WithCombinedSlope(slip, 0).
		WithCombinedSlope(push, 0).WithCombinedSlope(still, 0)
	if road != nil {
		returning = returning.WithCombinedSlope(road, 0)
	}
	back := t.AddLaw(state+"_back", "m/s", returning)
	names["back"] = back
	t.Network.States[i].Der = push.Plus(back.Scaled(-1))
	value := "(x + damping*still*(push - back))/length"
	slipped := law.Formula(value, names).WithSlope(at, 1/length).WithCombinedSlope(push, t.Number("damping")/length).
		WithCombinedSlope(still, 0).WithCombinedSlope(back, 0)
	return t.NameLaw(name, slipped)
}

// forces makes the forces of the formula. Version 5.2 reads the angle alpha, 6.1 its tangent.
func (t *tyre) forces(d data, kappa, alpha network.Form) (fx, fy network.Form) {
	f := formula{Element: t.Element, kappa: kappa, alpha: alpha, fn: t.fn, names: law.Names{"friction": 1.,
		"FNOMIN": d.nominal, "dpi": d.pressure, "mirror": 1., "kappa": named(kappa, -mostSlip, mostSlip)}}
	if t.mirrored(d.side) {
		f.names["mirror"] = -1.
	}
	f.names["tan"] = named(alpha, -mostSlip, mostSlip)
	f.set("alpha", map[string]string{"5.2": "mirror*atan(tan)", "6.1": "mirror*tan"}[d.version])
	for key, v := range d.list {
		f.names[key] = v
	}
	f.names["fz"] = law.Formula("max(0, fn)", law.Names{"fn": named(t.fn, d.nominal/20, max(d.nominal, t.car.most/2))})
	f.set("dfz", "fz/(FNOMIN*LFZO) - 1")
	if t.Has("friction") {
		f.road = network.SignalOf(t.Waveform("friction"))
		f.names["friction"] = law.Formula("max(0, friction)", law.Names{"friction": named(f.road, slippery, t.Network.MaxAbs(f.road.Index()))})
	}
	return f.longitudinal(), f.lateral()
}

// slippery is the least friction of the road that the laws expect.
const slippery = 0.01

// mirrored reports whether the data are those of the other side of the car. side is the side that a file names.
func (t *tyre) mirrored(side string) bool {
	if t.Has("mirror") {
		return t.Flag("mirror")
	}
	return side == "left" && t.y < 0 || side == "right" && t.y > 0
}
