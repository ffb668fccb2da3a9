package model

import "math"

func sourceKinds() []kind {
	return []kind{
		{name: "torque", flanges: onSupport(rotational), keys: []string{"tau"}, read: readTorque},
		{name: "force", flanges: onSupport(translational), keys: []string{"f"}, read: readTorque},
		{name: "harmonic_torque", flanges: onSupport(rotational), keys: []string{"tau", "orders", "phi_rel_start", "w_max"}, read: readHarmonics},
		{name: "speed", owns: true, itself: anyDomain, flanges: onSupport(anyDomain), keys: []string{"w_ref", "v_ref", "exact", "f_crit"}, read: readSpeed},
		{name: "position", owns: true, itself: anyDomain, flanges: onSupport(anyDomain), keys: []string{"phi_ref", "s_ref", "exact", "f_crit"}, read: readSpeed},
	}
}

func readTorque(e *element) declared {
	key, unit := "tau", "N.m"
	if e.domain == translational {
		key, unit = "f", "N"
	}
	f, ok := e.fields[key]
	if !ok {
		e.fail(e.at, "%s: %s needs %s (%s, or the name of an input)", e.what(), e.kind.name, key, unit)
		return declared{}
	}
	tau := signalOf(e.drive(f, unit))
	e.act(e.between, tau)
	return declared{rel: e.between, tau: tau, unit: unit}
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
func readSpeed(e *element) declared {
	own := e.ownNode
	n := &e.plant.nodes[own]
	n.domain = e.domain
	key, wrong, unit := "w_ref", "v_ref", e.per("rad/s", "m/s")
	if e.kind.name == "position" {
		key, wrong, unit = "phi_ref", "s_ref", e.per("rad", "m")
	}
	if e.domain == translational {
		key, wrong = wrong, key
	}
	if f, ok := e.fields[wrong]; ok {
		e.fail(f.keyAt, "%s: it is %s; %s is wanted", e.what(), e.domain, key)
	}
	ref := e.command(key, unit, "what the flange does")
	crit := 2 * math.Pi * e.above0("f_crit", "Hz", 50)
	if e.err != nil {
		return declared{}
	}
	e.tie(termOf(own, 1), e.term("flange", -1), e.term("support", 1))
	if e.flag("exact") {
		followExactly(e, n, ref)
	} else {
		followFiltered(e, n, ref, crit)
	}
	return declared{rel: e.between, tau: driveOf(own), unit: e.per("N.m", "N")}
}

// flag reads true or false.
func (e *element) flag(key string) bool {
	f, ok := e.fields[key]
	if !ok {
		return false
	}
	text := e.text(f, e.what()+": "+key)
	if text != "true" && text != "false" {
		e.fail(f.at, "%s: %s: %q is neither true nor false", e.what(), key, text)
	}
	return text == "true"
}

func followFiltered(e *element, n *node, ref int, crit float64) {
	speed := e.per("rad/s", "m/s")
	if e.kind.name == "speed" {
		w := e.addState(state{name: "w", unit: speed, speed: e.between})
		e.plant.states[w].der = signalOf(ref).scaled(crit).plus(stateOf(w).scaled(-crit))
		n.driven = w + 1
		return
	}
	w := e.addState(state{name: "w", unit: speed, speed: e.between})
	phi := e.addState(state{name: "phi", unit: e.per("rad", "m"), der: stateOf(w), along: e.between})
	const af, bf = 1.3617, 0.6180
	e.plant.states[w].der = signalOf(ref).scaled(crit * crit / bf).
		plus(stateOf(phi).scaled(-crit * crit / bf)).plus(stateOf(w).scaled(-crit * af / bf))
	n.driven = w + 1
}

// followExactly needs a source that is known in advance and smooth enough.
func followExactly(e *element, n *node, ref int) {
	f := e.fields["exact"]
	s := &e.plant.signals[ref]
	if s.law != nil || ref < len(e.plant.inputs) {
		e.fail(f.at, "%s: exact wants a source that is known in advance; %q is not, use f_crit", e.what(), s.name)
		return
	}
	list := []Source{s.source} // it and its derivatives, up to the acceleration
	for i, what := range []string{"the source", "its speed"} {
		if i == 1 && e.kind.name == "speed" {
			break
		}
		d, ok := derivative(list[i])
		if !ok {
			e.fail(f.at, "%s: exact: %s jumps, which takes an infinite torque; use f_crit", e.what(), what)
			return
		}
		list = append(list, d)
	}
	last := len(list) - 1
	accel := addSource(e, "accel", list[last])
	w := e.addState(state{name: "w", unit: e.per("rad/s", "m/s"), start: startOfSource(list[last-1])})
	if e.kind.name == "position" {
		n.phi0 = startOfSource(s.source)
		phi := e.addState(state{name: "phi", unit: e.per("rad", "m"), der: stateOf(w), start: n.phi0})
		accel = accel.plus(addSource(e, "speed", list[1]).scaled(2 * recall)).plus(stateOf(w).scaled(-2 * recall)).
			plus(signalOf(ref).scaled(recall * recall)).plus(stateOf(phi).scaled(-recall * recall))
	} else {
		accel = accel.plus(signalOf(ref).scaled(recall)).plus(stateOf(w).scaled(-recall))
	}
	e.plant.states[w].der = accel
	n.driven = w + 1
}

// recall is how fast, 1/s, an exact motion returns to its source: what a sine is more than
// parabolas over pieces of a step would otherwise add up, to a drift.
const recall = 1.0

// addSource is a signal of the element that is known in advance.
func addSource(e *element, name string, s Source) form {
	e.plant.signals = append(e.plant.signals, signal{name: e.name + "." + name, at: e.at, source: s, read: true})
	return signalOf(len(e.plant.signals) - 1)
}

// startOfSource is its value at time 0.
func startOfSource(s Source) float64 {
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
func tableStart(s Source) float64 {
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
func derivative(s Source) (Source, bool) {
	if len(s.Sum) == 0 {
		return leafDerivative(s)
	}
	var d Source
	for _, factors := range s.Sum {
		for i := range factors {
			rate, ok := leafDerivative(factors[i])
			if !ok {
				return d, false
			}
			term := []Source{rate}
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

func leafDerivative(s Source) (Source, bool) {
	d := Source{Held: true, Start: s.Start, Period: s.Period}
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
