package plantfile

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// maxTeeth is more than any encoder has.
const maxTeeth = 100000

// readPulses is a wheel-speed sensor on a node: three outputs.
func (l *loader) readPulses(f, main syntax.Field, beside map[string]syntax.Field, what string) {
	what += ": pulses"
	for _, key := range []string{"onto", "factor", "per", "min", "max"} {
		if g, ok := beside[key]; ok {
			l.Fail(g.KeyAt, "%s: %s does not go with pulses; they are counted", what, key)
		}
	}
	n := l.nodeNamed(main, what)
	if l.Err == nil && l.Network.Nodes[n].Domain == network.Translational {
		l.Fail(main.At, "%s: %q moves and does not turn; name a node that turns", what, l.Network.Nodes[n].Name)
	}
	teeth, ok := beside["teeth"]
	if !ok {
		l.Fail(main.KeyAt, "%s: teeth, the edges of a turn, are wanted", what)
	}
	if l.Err != nil {
		return
	}
	s := model.Pulses{Output: len(l.Network.Outputs)}
	edges := l.quantity(teeth, what+": teeth", units.Want("1"))
	if s.Teeth = int(edges); !(edges >= 1 && edges <= maxTeeth) || float64(s.Teeth) != edges {
		l.Fail(teeth.At, "%s: teeth %g is not a whole number from 1 to %d", what, edges, maxTeeth)
	}
	if g, ok := beside["runout"]; ok {
		if s.Runout = l.quantity(g, what+": runout", units.Want("1")); !(s.Runout >= 0 && s.Runout <= 0.5) {
			l.Fail(g.At, "%s: runout %g is outside 0 to 0.5 of a pitch", what, s.Runout)
		}
	}
	if l.Err != nil {
		return
	}
	s.State = l.Angle(n)
	l.Network.Pulses = append(l.Network.Pulses, s)
	inf := math.Inf(1)
	for _, p := range []units.Port{
		{Name: f.Key, Unit: "1", Min: 0, Max: inf, Beyond: units.Wraps}, {Name: f.Key + ".age", Unit: "s", Min: 0, Max: inf, Beyond: units.Rests}, {Name: f.Key + ".period", Unit: "s", Min: 0, Max: inf, Beyond: units.Rests},
	} {
		l.checkOutput(p.Name, f.KeyAt, what)
		l.Network.Outputs = append(l.Network.Outputs, network.Output{Port: p, At: f.KeyAt})
	}
}

// checkOutput refuses a name that is taken.
func (l *loader) checkOutput(name string, at network.Pos, what string) {
	if _, taken := l.inputs[name]; taken {
		l.Fail(at, "%s: an input has the same name", what)
	}
	if l.reserved(name) {
		l.Fail(at, "%s: every plant has this output already", what)
	}
	if slices.ContainsFunc(l.Network.Outputs, func(o network.Output) bool { return o.Name == name }) {
		l.Fail(at, "%s: %q is an output of pulses, too; rename one", what, name)
	}
}
