package mechanics

import (
	"lockstep/model/element"
	"lockstep/model/network"
)

func sensorKinds() []element.Kind {
	return []element.Kind{
		{Name: "speed_sensor", Flanges: element.OnSupport(network.AnyDomain), Gives: "rad/s", GivesMoving: "m/s",
			Keys: []string{"range"}, Read: readSpeedSensor},
		{Name: "angle_sensor", Flanges: element.OnSupport(network.Rotational), Gives: "rad",
			Keys: []string{"range"}, Read: readAngleSensor},
		{Name: "position_sensor", Flanges: element.OnSupport(network.Translational), Gives: "m",
			Keys: []string{"range"}, Read: readAngleSensor},
		{Name: "torque_sensor", Flanges: element.Ends(network.Rotational), Gives: "N.m",
			Keys: []string{"range"}, Read: readTorqueSensor},
		{Name: "force_sensor", Flanges: element.Ends(network.Translational), Gives: "N",
			Keys: []string{"range"}, Read: readTorqueSensor},
		{Name: "power_sensor", Flanges: element.Ends(network.AnyDomain), Gives: "W",
			Keys: []string{"range"}, Read: readTorqueSensor},
		{Name: "position_table", Flanges: element.Flanges(network.Translational, "flange"),
			Keys: []string{"table"}, Gives: "1", Read: readPositionTable},
	}
}

func readSpeedSensor(e *element.Element) element.Declared {
	s := &e.Network.Signals[e.OwnSignal]
	s.Law = &network.Law{}
	s.Law.Arg(e.Between.Speeds(1), 1)
	return element.Declared{Rel: e.Between}
}

// readAngleSensor integrates the relative speed.
func readAngleSensor(e *element.Element) element.Declared {
	i := e.AddState(network.State{Name: "phi_rel", Unit: e.Per("rad", "m"), Der: e.Between.Speeds(1), Along: e.Between})
	s := &e.Network.Signals[e.OwnSignal]
	s.Law = &network.Law{}
	s.Law.Arg(network.StateOf(i), 1)
	return element.Declared{Rel: e.Between, Twist: i, Angle: e.Per("rad", "m")}
}

// readTorqueSensor joins its flanges rigidly. What it measures goes from a to b.
func readTorqueSensor(e *element.Element) element.Declared {
	e.Tie(e.Term("a", 1), e.Term("b", -1))
	tau := network.TieOf(len(e.Network.Ties) - 1).Scaled(-1)
	s := &e.Network.Signals[e.OwnSignal]
	if e.Kind.Name == "power_sensor" {
		s.Law = network.Product(tau, network.RowOf(e.Node("a")).Speeds(1))
		return element.Declared{}
	}
	s.Law = &network.Law{}
	s.Law.Arg(tau, 1)
	return element.Declared{}
}

// readPositionTable is a value along the way: rows [position, value] of the flange, linear
// between them and constant outside.
func readPositionTable(e *element.Element) element.Declared {
	f, ok := e.Fields["table"]
	if !ok {
		e.Fail(e.At, "%s: position_table needs table (rows of position and value)", e.What())
		return element.Declared{}
	}
	t := e.Table(f, "m", "1")
	if e.Err != nil {
		return element.Declared{}
	}
	s := network.StateOf(e.Angle(e.Node("flange")))
	var l network.Law
	l.Arg(s, t.MaxSlope())
	l.Look(t)
	e.GuardPoints(s, t.Breakpoints())
	low, high := t.Z[0], t.Z[0]
	for _, z := range t.Z {
		low, high = min(low, z), max(high, z)
	}
	own := &e.Network.Signals[e.OwnSignal]
	own.Law, own.MaxAbs = &l, max(-low, high)
	return element.Declared{}
}
