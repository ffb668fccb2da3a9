package car

import (
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

func steeringKind() element.Kind {
	number, over := element.AsNumber.Of, element.OverTime.Of
	free, notNegative := element.Any, element.NotNegative
	return element.Kind{Name: "steering", Read: readSteering,
		Adds: []element.Quantity{
			{Key: "left", Unit: "rad", Meaning: "angle of the left wheel, to the left"},
			{Key: "right", Unit: "rad", Meaning: "angle of the right wheel, to the left"},
			{Key: "yield", Unit: "rad", Meaning: "angle by which the torque turns the wheels, with compliance"},
		},
		Parameters: []element.Parameter{
			element.Word("car", "", "planar_car that it steers"),
			over("angle", "rad", "", free, "angle of the steering wheel, to the left"),
			number("ratio", "1", "1", element.Nonzero, "angle of the steering wheel over that of the wheels"),
			number("ackermann", "1", "1", element.Share, "0: parallel wheels, 1: no slip in a slow turn"),
			number("compliance", "rad/N.m", "0", notNegative, "angle of the wheels per torque"),
			over("torque", "N.m", "with compliance", free, "torque on both wheels about their steering axes, to the left"),
			number("lag", "s", "0.02", element.Positive, "time constant of the compliance").Within(1e-4, 10),
		}}
}

// largestSteer is the largest angle of a wheel that the laws expect, rad.
const largestSteer = 0.8

// readSteering reads a steering: the mean angle of its wheels is
//
//	delta = angle/ratio + yield        lag·yield' + yield = compliance·torque
//
// and with the wheelbase L and the track t the wheels stand at
//
//	tan(delta_left) = tan(delta)/(1 - a)        tan(delta_right) = tan(delta)/(1 + a)
//	a = ackermann·t/(2·L)·tan(delta)
//
// so that with ackermann: 1 the axes of all wheels meet in one point.
func readSteering(e *element.Element) element.Declared {
	c, _ := findCar(e, "car", []string{""})
	delta := network.SignalOf(e.Waveform("angle")).Scaled(1 / e.Number("ratio"))
	if soft := e.Number("compliance"); soft > 0 {
		torque := network.SignalOf(e.Waveform("torque"))
		delta = delta.Plus(e.AddLag(network.State{Name: "yield"}, torque.Scaled(soft), e.Number("lag")))
	} else {
		e.Forbid("goes with compliance", "torque", "lag")
	}
	names := law.Names{"delta": named(delta, -largestSteer, largestSteer),
		"part": e.Number("ackermann") * c.half[0] / (c.front + c.rear)}
	for _, side := range [][2]string{{"left", "-"}, {"right", "+"}} {
		value := law.Formula("atan(sin(delta)/(cos(delta) "+side[1]+" part*sin(delta)))", names)
		e.NameLaw(side[0], value.WithSlope(delta, mostAckermann))
	}
	return element.Declared{}
}

// mostAckermann is the largest slope of the angle of one wheel over the mean angle that the laws expect.
const mostAckermann = 2.
