// Package thermal owns the element types of heat: capacities, conductors, convection and radiation, with
// the names and meanings of Modelica.Thermal.HeatTransfer. A heat port is the name of a temperature: a
// heat_capacitor, or for the surroundings any temperature over time. Losses of elements of other families
// flow into a capacity by their key heat_port: see package element. There is no node of heat without a
// capacity.
package thermal

import (
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// stefanBoltzmann is the constant of radiation, W/(m2.K4): CODATA 2018, as in Modelica.Constants.
const stefanBoltzmann = 5.670374419e-8

// Sizes of temperatures in laws, K.
const (
	mostDifference  = 1e3 // between two sides of a convection
	mostTemperature = 2e3 // of a body that radiates
)

// Kinds returns the element types of the family.
func Kinds() []element.Kind {
	type parameters = []element.Parameter
	number, over := element.AsNumber.Of, element.OverTime.Of
	flow := []element.Quantity{{Key: "Q_flow", Unit: "W", Meaning: "heat flow from the first to the second port"}}
	port := func(key, meaning string) element.Parameter { return over(key, "K", "", element.NotNegative, meaning) }
	a, b := port("port_a", "first temperature"), port("port_b", "second temperature")
	return []element.Kind{
		{Name: "heat_capacitor", Gives: "K", Read: readCapacitor,
			Adds: []element.Quantity{{Key: "T", Unit: "K", Meaning: "temperature as a state"}},
			Parameters: parameters{
				number("C", "J/K", "", element.Positive, "heat capacity"),
				number("T_start", "K", "293.15", element.NotNegative, "temperature at the start")}},
		{Name: "thermal_conductor", Adds: flow, Read: readConductor,
			Parameters: parameters{a, b, number("G", "W/K", "", element.NotNegative, "thermal conductance")}},
		{Name: "thermal_resistor", Adds: flow, Read: readConductor,
			Parameters: parameters{a, b, number("R", "K/W", "", element.Positive, "thermal resistance")}},
		{Name: "convection", Adds: flow, Read: readConvection,
			Parameters: parameters{port("solid", "temperature of the solid"), port("fluid", "temperature of the fluid"),
				over("Gc", "W/K", "", element.NotNegative, "convective conductance")}},
		{Name: "body_radiation", Adds: flow, Read: readRadiation,
			Parameters: parameters{a, b, number("Gr", "m2", "", element.NotNegative, "net area of radiation")}},
		{Name: "prescribed_heat_flow", Read: readHeatFlow,
			Parameters: parameters{element.AsWord.Of("port", "K", "", element.Any, "heat_capacitor that takes the heat"),
				over("Q_flow", "W", "", element.Any, "heat flow into the port")}},
	}
}

// readCapacitor reads C·T' = sum of the heat flows into it.
func readCapacitor(e *element.Element) element.Declared {
	i := e.AddState(network.State{Name: "T", Start: e.Number("T_start")})
	e.ReadStart("T_start", network.StartCondition{State: 1 + i})
	e.AddHeatCapacity(i, e.Number("C"))
	return element.Declared{}
}

// ports is the two ends of a heat flow: their keys, and the signals of their temperatures.
type ports struct {
	keys     [2]string
	from, to int
}

func readPorts(e *element.Element, from, to string) ports {
	p := ports{[2]string{from, to}, e.Waveform(from), e.Waveform(to)}
	if p.from == p.to {
		e.Refuse(e.Place(to), "%s and %s are the same temperature; no heat flows", from, to)
	}
	return p
}

// dT returns the difference of the temperatures.
func (p ports) dT() network.Form {
	return network.SignalOf(p.from).Plus(network.SignalOf(p.to).Scaled(-1))
}

// conduct lets a heat flow through the element.
func (p ports) conduct(e *element.Element, flow network.Form) element.Declared {
	e.NameForm("Q_flow", flow)
	e.AddHeatFlow(p.keys[0], p.from, flow.Scaled(-1))
	e.AddHeatFlow(p.keys[1], p.to, flow)
	return element.Declared{}
}

// readConductor reads Q = G·(T_a - T_b), or G = 1/R.
func readConductor(e *element.Element) element.Declared {
	p := readPorts(e, "port_a", "port_b")
	if e.Kind.Name == "thermal_resistor" {
		return p.conduct(e, p.dT().Scaled(1/e.Number("R")))
	}
	return p.conduct(e, p.dT().Scaled(e.Number("G")))
}

// readConvection reads Q = Gc·(T_solid - T_fluid). A Gc whose range is unknown counts as 0 while it is
// negative.
func readConvection(e *element.Element) element.Declared {
	p, conductance := readPorts(e, "solid", "fluid"), e.Waveform("Gc")
	if s := e.Network.Signals[conductance]; s.Law == nil && conductance >= len(e.Network.Inputs) && s.Source.IsConstant() {
		return p.conduct(e, p.dT().Scaled(s.Source.V[0]))
	}
	formula := "max(Gc, 0)*dT"
	if low, _ := e.Network.Range(conductance); low >= 0 {
		formula = "Gc*dT"
	}
	return p.conduct(e, e.AddLaw("Q_flow", "W", law.Formula(formula, law.Names{"Gc": network.SignalOf(conductance),
		"dT": law.Of(p.dT()).Within(-mostDifference, mostDifference)})))
}

// readRadiation reads Q = Gr·sigma·(T_a⁴ - T_b⁴).
func readRadiation(e *element.Element) element.Declared {
	p := readPorts(e, "port_a", "port_b")
	temperature := func(signal int) *law.Expr { return law.Of(network.SignalOf(signal)).Within(0, mostTemperature) }
	return p.conduct(e, e.AddLaw("Q_flow", "W", law.Formula("Gr*sigma*(a*a*a*a - b*b*b*b)", law.Names{
		"Gr": e.Number("Gr"), "sigma": stefanBoltzmann, "a": temperature(p.from), "b": temperature(p.to)})))
}

// readHeatFlow reads a heat flow over time into a capacity.
func readHeatFlow(e *element.Element) element.Declared {
	e.AddHeatFlow("port", e.HeatPort("port"), network.SignalOf(e.Waveform("Q_flow")))
	return element.Declared{}
}
