package model

func sensorKinds() []kind {
	return []kind{
		{name: "speed_sensor", flanges: onSupport(anyDomain), gives: "rad/s", givesMoving: "m/s", keys: []string{"range"}, read: readSpeedSensor},
		{name: "angle_sensor", flanges: onSupport(rotational), gives: "rad", keys: []string{"range"}, read: readAngleSensor},
		{name: "position_sensor", flanges: onSupport(translational), gives: "m", keys: []string{"range"}, read: readAngleSensor},
		{name: "torque_sensor", flanges: ends(rotational), gives: "N.m", keys: []string{"range"}, read: readTorqueSensor},
		{name: "force_sensor", flanges: ends(translational), gives: "N", keys: []string{"range"}, read: readTorqueSensor},
		{name: "power_sensor", flanges: ends(anyDomain), gives: "W", keys: []string{"range"}, read: readTorqueSensor},
		{name: "position_table", flanges: []flange{{"flange", translational, false}}, keys: []string{"table"}, gives: "1", read: readPositionTable},
	}
}

func readSpeedSensor(e *element) declared {
	s := &e.plant.signals[e.ownSignal]
	s.law = &law{}
	s.law.arg(e.between.speeds(1), 1)
	return declared{rel: e.between}
}

// readAngleSensor integrates the relative speed.
func readAngleSensor(e *element) declared {
	i := e.addState(state{name: "phi_rel", unit: e.per("rad", "m"), der: e.between.speeds(1), along: e.between})
	s := &e.plant.signals[e.ownSignal]
	s.law = &law{}
	s.law.arg(stateOf(i), 1)
	return declared{rel: e.between, twist: i, angle: e.per("rad", "m")}
}

// readTorqueSensor joins its flanges rigidly. What it measures goes from a to b.
func readTorqueSensor(e *element) declared {
	e.tie(e.term("a", 1), e.term("b", -1))
	tau := tieOf(len(e.plant.ties) - 1).scaled(-1)
	s := &e.plant.signals[e.ownSignal]
	if e.kind.name == "power_sensor" {
		s.law = product(tau, rowOf(e.node("a")).speeds(1))
		return declared{}
	}
	s.law = &law{}
	s.law.arg(tau, 1)
	return declared{}
}

// readPositionTable is a value along the way: rows [position, value] of the flange, linear
// between them and constant outside.
func readPositionTable(e *element) declared {
	f, ok := e.fields["table"]
	if !ok {
		e.fail(e.at, "%s: position_table needs table (rows of position and value)", e.what())
		return declared{}
	}
	t := e.table(f, "m", "1")
	if e.err != nil {
		return declared{}
	}
	s := stateOf(e.angle(e.node("flange")))
	var l law
	l.arg(s, t.steepest())
	l.look(t)
	e.guardPoints(s, t.bends())
	low, high := t.Z[0], t.Z[0]
	for _, z := range t.Z {
		low, high = min(low, z), max(high, z)
	}
	own := &e.plant.signals[e.ownSignal]
	own.law, own.most = &l, max(-low, high)
	return declared{}
}
