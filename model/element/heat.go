package element

import (
	"lockstep/model/law"
	"lockstep/model/network"
)

// heatCapacity is a state of temperature and its heat capacity, J/K.
type heatCapacity struct {
	state int
	C     float64
}

// heatFlow is a heat flow, W, into the capacity whose temperature is a signal.
type heatFlow struct {
	into int
	flow network.Form
	miss func() // refuses a signal that is not the temperature of a capacity; nil: heat may leave the plant
}

// AddHeatCapacity makes a state the temperature of a heat capacity, J/K, and the signal of the element.
func (e *Element) AddHeatCapacity(state int, capacity float64) {
	if e.capacities == nil {
		e.capacities = map[int]heatCapacity{}
	}
	e.capacities[e.OwnSignal] = heatCapacity{state, capacity}
	e.OwnForm(network.StateOf(state))
}

// AddHeatFlow lets heat, W, flow into what has a temperature: a heat capacity, or the surroundings.
func (e *Element) AddHeatFlow(into int, flow network.Form) {
	e.flows = append(e.flows, heatFlow{into: into, flow: flow})
}

// AddLoss makes the loss of an element readable as NAME.lossPower. With the key heat_port it flows into
// that heat capacity.
func (e *Element) AddLoss(power *law.Expr) {
	loss := e.NameLaw("lossPower", power)
	if !e.Has("heat_port") {
		return
	}
	into, at := e.Waveform("heat_port"), e.Place("heat_port")
	e.flows = append(e.flows, heatFlow{into, loss, func() {
		e.Refuse(at, "heat_port: the heat needs a heat capacity; name a heat_capacitor")
	}})
}

// JoinHeatFlows adds the heat flows to the rates of the temperatures, after all elements have been read.
func (p *Plant) JoinHeatFlows() {
	for _, f := range p.flows {
		c, ok := p.capacities[f.into]
		if !ok {
			if f.miss != nil {
				f.miss()
			}
			continue
		}
		s := &p.Network.States[c.state]
		s.Der = s.Der.Plus(f.flow.Scaled(1 / c.C))
	}
}

// HeatParameter is the key of the heat capacity that takes the loss of an element.
func HeatParameter() Parameter {
	return OverTime.Of("heat_port", "K", "none", Any, "heat_capacitor that takes the loss")
}

// LossQuantity is the loss of an element.
var LossQuantity = Quantity{Key: "lossPower", Unit: "W", Meaning: "loss, which becomes heat"}
