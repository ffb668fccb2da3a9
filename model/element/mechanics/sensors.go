package mechanics

import (
	"slices"

	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

func sensorKinds() []element.Kind {
	ends, on := element.Ends, element.OnSupport
	path := adds{{Key: "phi_rel", Unit: angle, Meaning: "the measured value as a state"}}
	size := func(unit string) parameters {
		return parameters{number("range", unit, "as it starts", positive, "largest absolute value expected")}
	}
	return []element.Kind{
		{Name: "speed_sensor", Flanges: on(either), Gives: speed, Parameters: size(speed), Read: readSpeedSensor},
		{Name: "angle_sensor", Flanges: on(turns), Gives: angle, Parameters: size(angle), Adds: path, Read: readAngleSensor},
		{Name: "position_sensor", Flanges: on(moves), Gives: angle, Parameters: size(angle), Adds: path, Read: readAngleSensor},
		{Name: "torque_sensor", Flanges: ends(turns), Gives: torque, Parameters: size(torque), Read: readTorqueSensor},
		{Name: "force_sensor", Flanges: ends(moves), Gives: torque, Parameters: size(torque), Read: readTorqueSensor},
		{Name: "power_sensor", Flanges: ends(either), Gives: "W", Parameters: size("W"), Read: readTorqueSensor},
		{Name: "position_table", Flanges: element.Flanges(moves, "flange"), Gives: "1", Read: readPositionTable,
			Parameters: parameters{rows("table", "m, 1", "", unbounded, "[position, value]")}},
	}
}

func readSpeedSensor(e *element.Element) element.Declared {
	e.OwnForm(e.Between.Speeds(1))
	return element.Declared{Rel: e.Between}
}

// readAngleSensor integrates the relative speed.
func readAngleSensor(e *element.Element) element.Declared {
	i := e.AddState(network.State{Name: "phi_rel", Der: e.Between.Speeds(1), Along: e.Between})
	e.OwnForm(network.StateOf(i))
	return element.Declared{Rel: e.Between, Twist: i, Angle: e.Per("rad", "m")}
}

// readTorqueSensor ties its flanges rigidly and measures the torque or power from a to b.
func readTorqueSensor(e *element.Element) element.Declared {
	e.Tie(e.Term("a", 1), e.Term("b", -1))
	tau := network.TieOf(len(e.Network.Ties) - 1).Scaled(-1)
	if e.Kind.Name == "power_sensor" {
		e.OwnLaw(law.Power(tau, network.RowOf(e.Node("a")).Speeds(1)))
	} else {
		e.OwnLaw(law.Of(tau))
	}
	return element.Declared{}
}

// readPositionTable reads a value over the position of the flange: rows [position, value], linear
// between them and constant outside.
func readPositionTable(e *element.Element) element.Declared {
	t := e.Table("table")
	s := network.StateOf(e.Angle(e.Node("flange")))
	e.OwnLaw(law.Lookup(t, law.Of(s)))
	e.Own().MaxAbs = max(-slices.Min(t.Z), slices.Max(t.Z))
	return element.Declared{}
}
