package element

import (
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// heatCapacity is a state of temperature and its heat capacity, J/K.
type heatCapacity struct {
	state int
	C     float64
}

// heatFlow is a heat flow, W, from an element into the capacity whose temperature is a signal.
type heatFlow struct {
	from *Element
	key  string // names the signal
	into int
	flow network.Form
}

// AddHeatCapacity makes a state the temperature of a heat capacity, J/K, and the signal of the element.
func (e *Element) AddHeatCapacity(state int, capacity float64) {
	if e.capacities == nil {
		e.capacities = map[int]heatCapacity{}
	}
	e.capacities[e.OwnSignal] = heatCapacity{state, capacity}
	e.OwnForm(network.StateOf(state))
}

// HeatPort reads the name of a heat capacity and returns the signal of its temperature.
func (e *Element) HeatPort(key string) int {
	f := e.Entry(key)
	text, _ := yamlfile.ScalarText(f.Node)
	if _, s := e.ValueUnit(f, e.What()+": "+key); s == UnitBare && units.IsName(text, true) {
		var known []string
		for _, c := range e.Elements {
			if c.Kind.Name == "heat_capacitor" {
				known = append(known, strings.TrimPrefix(c.Name, e.FullName("")))
			}
		}
		advice := units.Meant(text, known)
		if advice == "" && len(known) > 0 {
			advice = ", such as " + known[0]
		}
		e.Refuse(f.At, "%s: %q is not a temperature; name a heat_capacitor%s", key, text, advice)
	}
	return e.Waveform(key)
}

// AddHeatFlow lets heat, W, flow into the signal that a key names: the temperature of a heat capacity, or
// of the surroundings.
func (e *Element) AddHeatFlow(key string, into int, flow network.Form) {
	e.flows = append(e.flows, heatFlow{e, key, into, flow})
}

// AddLoss makes the loss of an element readable as NAME.lossPower. With the key heat_port it flows into
// that heat capacity.
func (e *Element) AddLoss(power *law.Expr) {
	loss := e.NameLaw("lossPower", power)
	if e.Has("heat_port") {
		e.AddHeatFlow("heat_port", e.HeatPort("heat_port"), loss)
	}
}

// JoinHeatFlows adds the heat flows to the rates of the temperatures, after all elements have been read.
// An element whose heat flows meet no heat capacity is refused.
func (p *Plant) JoinHeatFlows() {
	meets := map[*Element]bool{}
	for _, f := range p.flows {
		if c, ok := p.capacities[f.into]; ok {
			s := &p.Network.States[c.state]
			s.Der = s.Der.Plus(f.flow.Scaled(1 / c.C))
			meets[f.from] = true
		}
	}
	for _, f := range p.flows {
		if !meets[f.from] {
			f.from.Refuse(f.from.Place(f.key), "%s: the heat needs a heat capacity; name a heat_capacitor", f.key)
		}
	}
}

// Temperature returns the signal of the temperature that a key needs: temperature, or that of the heat_port.
func (e *Element) Temperature(key string) int {
	switch {
	case e.Has("temperature"):
		return e.Waveform("temperature")
	case e.Has("heat_port"):
		return e.HeatPort("heat_port")
	}
	e.Refuse(e.Place(key), "%s needs temperature (a temperature over time, K) or heat_port", key)
	return 0
}

// TemperatureFactor reads factor_T and returns the factor at the present temperature, and the largest factor; nil and 1
// without the key.
func (e *Element) TemperatureFactor() (factor *law.Expr, most float64) {
	if !e.Has("factor_T") {
		e.Forbid("goes with factor_T", "temperature")
		return nil, 1
	}
	t := e.Table("factor_T")
	most = network.Largest(t.Z)
	return law.Lookup(t, law.Of(network.SignalOf(e.Temperature("factor_T")))).Within(0, most), most
}

// FactorParameters returns the parameters of a factor of something by temperature.
func FactorParameters(what string) (factor, temperature Parameter) {
	return AsRows.Of("factor_T", "K, 1", "none", NotNegative, "[temperature, factor of the "+what+"]").Within(0, 1e3),
		OverTime.Of("temperature", "K", "heat_port", NotNegative, "temperature of factor_T")
}

// HeatParameter is the key of the heat capacity that takes the loss of an element.
func HeatParameter() Parameter {
	return AsWord.Of("heat_port", "K", "none", Any, "heat_capacitor that takes the loss")
}

// LossQuantity is the loss of an element.
var LossQuantity = Quantity{Key: "lossPower", Unit: "W", Meaning: "loss, which becomes heat"}
