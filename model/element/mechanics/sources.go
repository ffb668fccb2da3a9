package mechanics

import (
	"math"
	"math/cmplx"
	"sort"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

func sourceKinds() []element.Kind {
	on := element.OnSupport
	driven := element.Quantity{Key: "w", Unit: speed, Meaning: "speed that the source gives"}
	effort := over("tau|f", torque, "", unbounded, "torque on the flange|force on the flange")
	filter := parameters{
		element.Flag("exact", "false", "true: the source is followed exactly; it must not jump"),
		number("f_crit", "Hz", "50", positive, "cutoff frequency of the filter without exact"),
	}
	return []element.Kind{
		{Name: "torque", Flanges: on(turns), Read: readTorque,
			Parameters: parameters{effort}},
		{Name: "force", Flanges: on(moves), Read: readTorque,
			Parameters: parameters{effort}},
		{Name: "harmonic_torque", Flanges: on(turns), Read: readHarmonics,
			Parameters: parameters{
				over("tau", "N.m", "", unbounded, "mean torque"),
				rows("orders", "1, 1", "", unbounded, "[order, amplitude], orders > 0").Within(0, 1e6),
				number("phi_rel_start", "rad", "solved", unbounded, "angle at the start"),
				element.Word("angle", "relative", "angle in the sines: against the support, or that of the flange",
					"relative", "absolute"),
				number("w_max", "rad/s", "650", positive, "largest speed expected"),
			},
			Adds: adds{{Key: "phi_rel", Unit: "rad", Meaning: "angle of the flange against the support, unless absolute"}}},
		{Name: "speed", Owns: true, Flanges: on(either), Read: readSpeed, Adds: adds{driven},
			Parameters: append(parameters{over("w_ref|v_ref", speed, "", unbounded, "speed of the flange")}, filter...)},
		{Name: "position", Owns: true, Flanges: on(either), Read: readSpeed,
			Parameters: append(parameters{
				over("phi_ref|s_ref", angle, "", unbounded, "angle of the flange|position of the flange")}, filter...),
			Adds: adds{driven, {Key: "phi", Unit: angle, Meaning: "angle that it gives|position that it gives"}}},
		{Name: "accelerate", Owns: true, Flanges: on(either), Read: readAccelerate, Adds: adds{driven},
			Parameters: append(parameters{
				over("a_ref", "rad/s2|m/s2", "", unbounded, "acceleration of the flange")}, initial...)},
	}
}

func readTorque(e *element.Element) element.Declared {
	return e.Drive(network.SignalOf(e.Waveform("tau")))
}

// readSpeed drives a flange with a given speed or angle. The element is a node whose speed is a
// state; a tie connects it to the flange.
//
// With exact the rate of that state is the first derivative of a speed, or the second derivative of
// an angle, with a slow return to the source. Otherwise, as in the Modelica Standard Library, a
// low-pass filter of f_crit makes the motion smooth:
//
//	speed     w' = w_crit·(w_ref - w)
//	position  w' = w_crit·((phi_ref - phi)·w_crit - 1.3617·w)/0.6180,  phi' = w
func readSpeed(e *element.Element) element.Declared {
	own := e.OwnNode
	n := &e.Network.Nodes[own]
	n.Domain = e.Domain
	key := "w_ref"
	if e.Kind.Name == "position" {
		key = "phi_ref"
	}
	ref := e.Waveform(key)
	crit := 2 * math.Pi * e.Number("f_crit")
	e.Tie(network.TermOf(own, 1), e.Term("flange", -1), e.Term("support", 1))
	if e.Flag("exact") {
		e.Forbid("goes with exact: false", "f_crit")
		followExactly(e, n, ref)
	} else {
		followFiltered(e, n, ref, crit)
	}

	return element.Declared{Rel: e.Between, Tau: network.DriveOf(own), Unit: e.Per("N.m", "N")}
}

// readAccelerate drives a flange with an acceleration against the support: w' = a_ref. Any value over time is
// followed exactly, also one that jumps.
func readAccelerate(e *element.Element) element.Declared {
	own := e.OwnNode
	n := &e.Network.Nodes[own]
	n.Domain = e.Domain
	rate := network.SignalOf(e.Waveform("a_ref"))
	e.ReadNodeStart(own, "w_start", "phi_start")
	e.Tie(network.TermOf(own, 1), e.Term("flange", -1), e.Term("support", 1))
	n.Driven = e.AddState(network.State{Name: "w", Speed: network.RowOf(own), Der: rate}) + 1
	return element.Declared{Rel: e.Between, Tau: network.DriveOf(own), Unit: e.Per("N.m", "N")}
}

func followFiltered(e *element.Element, n *network.Node, ref int, crit float64) {
	i := e.AddState(network.State{Name: "w", Speed: e.Between})
	n.Driven = i + 1
	isSpeed := e.Kind.Name == "speed"
	if s := &e.Network.Signals[ref]; s.Law == nil {
		e.AddStart(network.StartCondition{Row: e.Between, Speed: isSpeed, Value: startOfSource(s.Source), At: e.At,
			Rank: network.StartGuess, Weight: 1})
	}
	source, w := network.SignalOf(ref), network.StateOf(i)
	if isSpeed {
		e.Network.States[i].Der = source.Scaled(crit).Plus(w.Scaled(-crit))
		return
	}

	const af, bf = 1.3617, 0.6180
	phi := network.StateOf(e.AddState(network.State{Name: "phi", Der: w, Along: e.Between}))
	e.Network.States[i].Der = source.Scaled(crit * crit / bf).
		Plus(phi.Scaled(-crit * crit / bf)).Plus(w.Scaled(-crit * af / bf))
}

// followExactly makes the states of an exact motion. The source must be known in advance and must not
// jump, for an angle also its first derivative.
func followExactly(e *element.Element, n *network.Node, ref int) {
	at, s, own := e.Place("exact"), &e.Network.Signals[ref], network.RowOf(e.OwnNode)
	if s.Law != nil || ref < len(e.Network.Inputs) {
		e.Refuse(at, "exact wants a source that is known in advance; %q is not, use f_crit", s.Name)
	}
	source, wanted := s.Source, network.SignalOf(ref)
	rate := func(s model.Source, what string) model.Source {
		d, ok := derivative(s)
		if !ok {
			e.Refuse(at, "exact: %s jumps, which takes an infinite torque; use f_crit", what)
		}
		return d
	}

	add := func(name string, s model.Source) network.Form {
		return network.SignalOf(e.AddSignal(name, network.Signal{Source: s}))
	}

	isSpeed := e.Kind.Name == "speed"
	speed, what := source, "the source"
	if !isSpeed {
		speed, what = rate(source, what), "its speed"
	}
	accel := add("accel", rate(speed, what))
	i := e.AddState(network.State{Name: "w", Speed: own})
	n.Driven = i + 1
	begin := network.StartCondition{Key: e.Per("w_ref", "v_ref"), At: s.At, Row: own, Speed: true,
		Value: startOfSource(speed), Unit: n.SpeedUnit()}
	if !isSpeed {
		begin.Key = e.Per("rate of phi_ref", "rate of s_ref")
	}
	e.AddStart(begin)
	w := network.StateOf(i)
	if isSpeed {
		e.Network.States[i].Der = accel.Plus(wanted.Scaled(returnRate)).Plus(w.Scaled(-returnRate))
		return
	}

	phi := network.StateOf(e.AddState(network.State{Name: "phi", Der: w, Along: own}))
	e.AddStart(network.StartCondition{Key: e.Per("phi_ref", "s_ref"), At: s.At, Row: own,
		Value: startOfSource(source), Unit: n.AngleUnit()})
	e.Network.States[i].Der = accel.Plus(add("speed", speed).Scaled(2 * returnRate)).Plus(w.Scaled(-2 * returnRate)).
		Plus(wanted.Scaled(returnRate * returnRate)).Plus(phi.Scaled(-returnRate * returnRate))
}

// returnRate is the rate, 1/s, at which an exact motion returns to its source. A substep integrates
// a sine as a parabola; without the return these errors would add up to a drift.
const returnRate = 1.0

// startOfSource returns the value of a source at time 0.
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
		v += s.Amplitude * math.Exp(s.Damping*s.Start) * math.Sin(-2*math.Pi*s.Frequency*s.Start+s.Phase)
	}
	return v
}

// tableStart returns the value of the table of a source at time 0.
func tableStart(s model.Source) float64 {
	t := 0.0
	if s.Period > 0 {
		if s.Start > 0 {
			return s.V[0]
		}
		t = math.Mod(-s.Start, s.Period)
	}

	last := sort.Search(len(s.T), func(i int) bool { return s.T[i] > t }) - 1
	switch {
	case last < 0:
		return s.V[0]
	case last == len(s.T)-1 || s.Held:
		return s.V[last]
	}

	return s.V[last] + (s.V[last+1]-s.V[last])*(t-s.T[last])/(s.T[last+1]-s.T[last])
}

// derivative returns the rate of a source; false if the source jumps.
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

// leafDerivative is derivative for a source without Sum.
func leafDerivative(s model.Source) (model.Source, bool) {
	d := model.Source{Held: true, Start: s.Start, Period: s.Period}
	if s.Amplitude != 0 {
		rate := complex(-s.Damping, 2*math.Pi*s.Frequency) // the sine is the imaginary part of exp(rate·t)
		d.Amplitude, d.Damping = s.Amplitude*cmplx.Abs(rate), s.Damping
		d.Frequency, d.Phase = s.Frequency, s.Phase+cmplx.Phase(rate)
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

// readHarmonics reads a torque with engine orders over the angle (Modeling and simulation of
// longitudinal dynamics coupled with clutch judder, section 4, which misprints the angle as speed
// times time):
//
//	tau·(1 + sum of amplitude·sin(order·phi_rel))
//
// With angle: absolute, phi_rel is the angle of the flange itself.
func readHarmonics(e *element.Element) element.Declared {
	mean := e.Waveform("tau")
	rows := e.Columns("orders")
	if !(rows[0][0] > 0) {
		e.Refuse(e.Place("orders"), "orders: order %g is not positive; it counts periods per turn", rows[0][0])
	}
	absolute := e.Word("angle") == "absolute"
	var turn int
	along := e.Between
	if absolute {
		e.Forbid("goes with angle: relative; the flange starts at its phi_start", "phi_rel_start")
		turn, along = e.Angle(e.Node("flange")), network.RowOf(e.Node("flange"))
	} else {
		turn = e.AddDeflection(network.State{Name: "phi_rel"})
	}
	sum := law.Number(1)
	for i, order := range rows[0] {
		sum = law.Formula("sum + amplitude*sin(order*phi_rel)", law.Names{"sum": sum, "order": order,
			"amplitude": rows[1][i], "phi_rel": network.StateOf(turn)})
	}
	torque := law.Formula("tau*sum", law.Names{"tau": network.SignalOf(mean), "sum": sum})
	fastest := rows[0][len(rows[0])-1] * e.Number("w_max")
	d := e.Drive(e.AddLaw("tau", "N.m", torque.WithOscillation(along.Speeds(1), fastest)))
	if !absolute {
		d.Twist, d.Angle = turn, "rad"
	}
	return d
}
