package plantfile

import (
	"math"
	"slices"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// maxTeeth is more than any encoder has.
const maxTeeth = 100000

// readPulses is a wheel-speed sensor on a node: three outputs.
func (l *loader) readPulses(f, main yamlfile.Field, beside map[string]yamlfile.Field, what string) {
	what += ": pulses"
	l.forbid(beside, what, "does not go with pulses; they are counted", "onto", "factor", "per", "min", "max")

	n := l.nodeNamed(main, what)
	if l.Network.Nodes[n].Domain == network.Translational {
		l.FailAt(main.At, "%s: %q moves and does not turn; name a node that turns", what, l.Network.Nodes[n].Name)
	}
	teeth, ok := beside["teeth"]
	if !ok {
		l.FailAt(main.KeyAt, "%s: teeth, the edges of a turn, are wanted", what)
	}
	s := model.Pulses{Output: len(l.Network.Outputs)}
	s.Teeth = l.global.whole(teeth, what+": teeth", 1, maxTeeth)
	s.Runout = l.global.option(beside, "runout", what, units.Want("1"), 0)
	if !(s.Runout >= 0 && s.Runout <= 0.5) {
		l.FailAt(beside["runout"].At, "%s: runout %g is outside 0 to 0.5 of a pitch", what, s.Runout)
	}

	s.State = l.Angle(n)
	l.Network.Pulses = append(l.Network.Pulses, s)
	inf := math.Inf(1)
	for _, p := range []units.Port{
		{Name: f.Key, Unit: "1", Max: inf, Beyond: units.Wraps},
		{Name: f.Key + ".age", Unit: "s", Max: inf, Beyond: units.Rests},
		{Name: f.Key + ".period", Unit: "s", Max: inf, Beyond: units.Rests},
	} {
		l.checkOutput(p.Name, f.KeyAt, what)
		l.Network.Outputs = append(l.Network.Outputs, network.Output{Port: p, At: f.KeyAt})
	}
}

// checkOutput refuses a name that is taken.
func (l *loader) checkOutput(name string, at network.Pos, what string) {
	if _, taken := l.inputs[name]; taken {
		l.FailAt(at, "%s: an input has the same name", what)
	}
	if l.reserved(name) {
		l.FailAt(at, "%s: every plant has this output already", what)
	}
	if slices.ContainsFunc(l.Network.Outputs, func(o network.Output) bool { return o.Name == name }) {
		l.FailAt(at, "%s: %q is an output of pulses, too; rename one", what, name)
	}
}
