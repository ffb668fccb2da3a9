package element

import "strings"

// Instead returns what a plant file has in place of a component of the Modelica library that is not an
// element type; "" if there is nothing to say. The name may have a path, capitals and "_".
func Instead(name string) string { return instead[squeeze(name)] }

// squeeze returns the last part of a name in small letters, without "_".
func squeeze(name string) string {
	name = name[strings.LastIndexByte(name, '.')+1:]
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

// Advice that several components share. Names of element types are between `.
const (
	rigid = "elements are joined rigidly where they name the same node, " +
		"others by a `disc` or a `rod`"
	startValue        = "use w_start and phi_start (v_start, s_start) of an element"
	asOutput          = "use an output, such as {w_rel: ELEMENT}"
	speedOf           = "use `speed` with a value over time"
	torqueOf          = "use `torque` or `force` with a value over time"
	twoTorques        = "use `torque` or `force` with flange and support"
	otherInput        = "use `torque` or `position`, driven by an input of the plant"
	planeBody         = "use `body`, which moves in a plane"
	summed            = "use `sum` with u: [u1, u2] and k: [1, -1]"
	temperatureAtPort = "write the temperature at the port, such as port_b: 20 degC of a `thermal_conductor`"
	overTime          = "write the value over time where it is used, such as {step: {height: 5, startTime: 1 s}}"
)

// instead holds advice for components of Modelica.Mechanics, of Modelica.Blocks where a plant file has
// a value over time, and for names of everyday use, by their squeezed names.
var instead = map[string]string{
	// Rotational and Translational
	"initializeflange":       startValue,
	"relativestates":         startValue,
	"backlash":               "use `elasto_backlash`, or `clearance` for a backlash without elasticity",
	"gap":                    "use `clearance` or `elasto_gap`",
	"rollingresistance":      "use `vehicle` with Cr",
	"friction":               "use `bearing_friction`, `support_friction`, `clutch` or `brake`",
	"torquetoangleadaptor":   otherInput,
	"angletotorqueadaptor":   otherInput,
	"forcetopositionadaptor": otherInput,
	"positiontoforceadaptor": otherInput,
	"move":                   "use `position` with a value over time",
	"constantspeed":          speedOf,
	"constanttorque":         torqueOf,
	"constantforce":          torqueOf,
	"torquestep":             torqueOf + ", such as {step: {height: 50 N.m, startTime: 1 s}}",
	"forcestep":              torqueOf + ", such as {step: {height: 50 N, startTime: 1 s}}",
	"torque2":                twoTorques,
	"force2":                 twoTorques,
	"accsensor":              "use an output, {acceleration: NODE}",
	"relanglesensor":         asOutput,
	"relpositionsensor":      asOutput,
	"relspeedsensor":         asOutput,
	"relaccsensor":           asOutput,
	"multisensor":            "use `speed_sensor`, `torque_sensor` and `power_sensor`",
	"flexibleshaft":          "use `spring_damper` between inertias",
	"shaft":                  "use `spring_damper` between inertias for an elastic shaft; " + rigid,
	"flywheel":               "use `inertia`",
	"gear":                   "use `ideal_gear` or `lossy_gear`",
	"planetary":              "use `ideal_planetary` or `ravigneaux`",
	"motor":                  "use `electric_machine` or `engine` with an `inertia`, or `torque`",
	"wheel":                  "use `ideal_rolling_wheel`, `tyre` or `rail_contact`, with an `inertia`",
	"road":                   "use inclination of `vehicle`",

	// MultiBody
	"world":             "give each `body` its g",
	"bodyshape":         planeBody,
	"bodybox":           planeBody,
	"bodycylinder":      planeBody,
	"pointmass":         planeBody,
	"rigidbody":         planeBody,
	"fixedtranslation":  "name points of a `body` under nodes, and join elements to NAME.POINT",
	"prismatic":         "use `translational_joint`",
	"actuatedprismatic": "use `translational_joint`",
	"revolute":          "`translational_joint` is the only joint between bodies",
	"bevelgear1d":       "use `ideal_gear`",

	// Blocks
	"constant":       overTime,
	"step":           overTime,
	"ramp":           overTime,
	"sine":           overTime,
	"cosine":         overTime,
	"expsine":        overTime,
	"sawtooth":       overTime,
	"pulse":          overTime,
	"trapezoid":      overTime,
	"timetable":      overTime,
	"combitimetable": overTime,
	"realexpression": overTime,
	"add":            summed,
	"add3":           summed,
	"feedback":       summed,
	"multisum":       summed,
	"multiproduct":   "use `product` with u: [u1, u2, ...]",
	"pid":            "use `lim_pid`",
	"padedelay":      "use `fixed_delay`",

	// Thermal
	"fixedtemperature":      temperatureAtPort,
	"prescribedtemperature": temperatureAtPort,
	"temperaturesensor":     "the name of a `heat_capacitor` is its temperature",
	"heatflowsensor":        "use the output Q_flow, such as {signal: NAME.Q_flow}, of a `thermal_conductor`",
	"fixedheatflow":         "use `prescribed_heat_flow`",
}
