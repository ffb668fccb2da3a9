package mechanics

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
)

func sourceKinds() []element.Kind {
	return []element.Kind{
		{Name: "torque", Flanges: element.OnSupport(network.Rotational), Keys: []string{"tau"}, Read: readTorque},
		{Name: "force", Flanges: element.OnSupport(network.Translational), Keys: []string{"f"}, Read: readTorque},
		{Name: "harmonic_torque", Flanges: element.OnSupport(network.Rotational),
			Keys: []string{"tau", "orders", "phi_rel_start", "w_max"}, Read: readHarmonics},
		{Name: "speed", Owns: true, Itself: network.AnyDomain, Flanges: element.OnSupport(network.AnyDomain),
			Keys: []string{"w_ref", "v_ref", "exact", "f_crit"}, Read: readSpeed},
		{Name: "position", Owns: true, Itself: network.AnyDomain, Flanges: element.OnSupport(network.AnyDomain),
			Keys: []string{"phi_ref", "s_ref", "exact", "f_crit"}, Read: readSpeed},
	}
}

func readTorque(e *element.Element) element.Declared {
	key, unit := "tau", "N.m"
	if e.Domain == network.Translational {
		key, unit = "f", "N"
	}
	f, ok := e.Fields[key]
	if !ok {
		e.Fail(e.At, "%s: %s needs %s (%s, or the name of an input)", e.What(), e.Kind.Name, key, unit)
		return element.Declared{}
	}
	tau := network.SignalOf(e.Waveform(f, unit))
	e.Exert(e.Between, tau)
	return element.Declared{Rel: e.Between, Tau: tau, Unit: unit}
}

// readSpeed drives a flange with a given speed or angle. The element is a node whose
// speed is a state of its own, with the given rate; a tie carries it to the flange.
//
// With exact the rate is the derivative of the source, and for an angle its second
// one, with a slow return to the source itself. Otherwise, as in the Modelica Standard Library, a low-pass filter of f_crit
// makes the motion smooth:
//
//	speed     w' = w_crit·(w_ref - w)
//	position  w' = w_crit·((phi_ref - phi)·w_crit - 1.3617·w)/0.6180,  phi' = w
func readSpeed(e *element.Element) element.Declared {
	own := e.OwnNode
	n := &e.Network.Nodes[own]
	n.Domain = e.Domain
	key, wrong, unit := "w_ref", "v_ref", e.Per("rad/s", "m/s")
	if e.Kind.Name == "position" {
		key, wrong, unit = "phi_ref", "s_ref", e.Per("rad", "m")
	}
	if e.Domain == network.Translational {
		key, wrong = wrong, key
	}
	if f, ok := e.Fields[wrong]; ok {
		e.Fail(f.KeyAt, "%s: it is %s; %s is wanted", e.What(), e.Domain, key)
	}
	ref := e.NeedWaveform(key, unit, "what the flange does")
	crit := 2 * math.Pi * e.AboveZero("f_crit", "Hz", 50)
	if e.Err != nil {
		return element.Declared{}
	}
	e.Tie(network.TermOf(own, 1), e.Term("flange", -1), e.Term("support", 1))
	if e.Flag("exact") {
		followExactly(e, n, ref)
	} else {
		followFiltered(e, n, ref, crit)
	}
	return element.Declared{Rel: e.Between, Tau: network.DriveOf(own), Unit: e.Per("N.m", "N")}
}

func followFiltered(e *element.Element, n *network.Node, ref int, crit float64) {
	speed := e.Per("rad/s", "m/s")
	if e.Kind.Name == "speed" {
		w := e.AddState(network.State{Name: "w", Unit: speed, Speed: e.Between})
		e.Network.States[w].Der = network.SignalOf(ref).Scaled(crit).Plus(network.StateOf(w).Scaled(-crit))
		n.Driven = w + 1
		return
	}
	w := e.AddState(network.State{Name: "w", Unit: speed, Speed: e.Between})
	phi := e.AddState(network.State{Name: "phi", Unit: e.Per("rad", "m"), Der: network.StateOf(w), Along: e.Between})
	const af, bf = 1.3617, 0.6180
	e.Network.States[w].Der = network.SignalOf(ref).Scaled(crit * crit / bf).
		Plus(network.StateOf(phi).Scaled(-crit * crit / bf)).Plus(network.StateOf(w).Scaled(-crit * af / bf))
	n.Driven = w + 1
}

// followExactly needs a source that is known in advance and smooth enough.
func followExactly(e *element.Element, n *network.Node, ref int) {
	f := e.Fields["exact"]
	s := &e.Network.Signals[ref]
	if s.Law != nil || ref < len(e.Network.Inputs) {
		e.Fail(f.At, "%s: exact wants a source that is known in advance; %q is not, use f_crit", e.What(), s.Name)
		return
	}
	list := []model.Source{s.Source} // it and its derivatives, up to the acceleration
	for i, what := range []string{"the source", "its speed"} {
		if i == 1 && e.Kind.Name == "speed" {
			break
		}
		d, ok := derivative(list[i])
		if !ok {
			e.Fail(f.At, "%s: exact: %s jumps, which takes an infinite torque; use f_crit", e.What(), what)
			return
		}
		list = append(list, d)
	}
	last := len(list) - 1
	accel := addSource(e, "accel", list[last])
	w := e.AddState(network.State{Name: "w", Unit: e.Per("rad/s", "m/s"), Start: startOfSource(list[last-1])})
	if e.Kind.Name == "position" {
		n.Phi0 = startOfSource(s.Source)
		phi := e.AddState(network.State{Name: "phi", Unit: e.Per("rad", "m"), Der: network.StateOf(w), Start: n.Phi0})
		accel = accel.Plus(addSource(e, "speed", list[1]).Scaled(2 * recall)).Plus(network.StateOf(w).Scaled(-2 * recall)).
			Plus(network.SignalOf(ref).Scaled(recall * recall)).Plus(network.StateOf(phi).Scaled(-recall * recall))
	} else {
		accel = accel.Plus(network.SignalOf(ref).Scaled(recall)).Plus(network.StateOf(w).Scaled(-recall))
	}
	e.Network.States[w].Der = accel
	n.Driven = w + 1
}

// recall is how fast, 1/s, an exact motion returns to its source: what a sine is more than
// parabolas over pieces of a step would otherwise add up, to a drift.
const recall = 1.0

// addSource is a signal of the element that is known in advance.
func addSource(e *element.Element, name string, s model.Source) network.Form {
	e.Network.Signals = append(e.Network.Signals, network.Signal{Name: e.Name + "." + name, At: e.At, Source: s, Read: true})
	return network.SignalOf(len(e.Network.Signals) - 1)
}

// startOfSource is its value at time 0.
func startOfSource(s model.Source) float64 {
	if len(s.Sum) > 0 {
		total := 0.0
		for _, factors := range s.Sum {
			p := 1.0
			for _, f := range factors {
				p *= startOfSource(f)
			}
			total += p
		}
		return total
	}
	v := 0.0
	if len(s.T) > 0 {
		v = tableStart(s)
	}
	if s.Start <= 0 {
		v += s.Amplitude * math.Sin(-2*math.Pi*s.Frequency*s.Start+s.Phase)
	}
	return v
}

// tableStart is the value of a table at time 0.
func tableStart(s model.Source) float64 {
	t := 0.0
	if s.Period > 0 {
		if s.Start > 0 {
			return s.V[0]
		}
		t = math.Mod(-s.Start, s.Period)
	}
	last := -1
	for i, at := range s.T {
		if at <= t {
			last = i
		}
	}
	switch {
	case last < 0:
		return s.V[0]
	case last == len(s.T)-1 || s.Held:
		return s.V[last]
	}
	return s.V[last] + (s.V[last+1]-s.V[last])*(t-s.T[last])/(s.T[last+1]-s.T[last])
}

// derivative is the rate of a source; false if the source jumps.
func derivative(s model.Source) (model.Source, bool) {
	if len(s.Sum) == 0 {
		return leafDerivative(s)
	}
	var d model.Source
	for _, factors := range s.Sum {
		for i := range factors {
			rate, ok := leafDerivative(factors[i])
			if !ok {
				return d, false
			}
			term := []model.Source{rate}
			for j := range factors {
				if j != i {
					term = append(term, factors[j])
				}
			}
			d.Sum = append(d.Sum, term)
		}
	}
	return d, true
}

func leafDerivative(s model.Source) (model.Source, bool) {
	d := model.Source{Held: true, Start: s.Start, Period: s.Period}
	if s.Amplitude != 0 {
		d.Amplitude = s.Amplitude * 2 * math.Pi * s.Frequency
		d.Frequency, d.Phase = s.Frequency, s.Phase+math.Pi/2
		if s.Start > 0 && math.Abs(math.Sin(s.Phase)) > 1e-12 {
			return d, false
		}
	}
	n := len(s.T)
	if s.Period > 0 && n > 0 && s.V[0] != s.V[n-1] {
		return d, false
	}
	for i := range n - 1 {
		dt, dv := s.T[i+1]-s.T[i], s.V[i+1]-s.V[i]
		if dv != 0 && (dt == 0 || s.Held) {
			return d, false
		}
		if i == 0 {
			d.T, d.V = append(d.T, s.T[0]), append(d.V, 0)
		}
		if dt > 0 {
			d.T, d.V = append(d.T, s.T[i]), append(d.V, dv/dt)
		}
	}
	if len(d.T) > 0 {
		d.T, d.V = append(d.T, s.T[n-1]), append(d.V, 0)
	}
	return d, true
}
