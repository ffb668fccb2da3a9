package model

import (
	"math"
	"slices"
)

// maxTeeth is more than any encoder has.
const maxTeeth = 100000

// readPulses is a wheel-speed sensor on a node: three outputs.
func (l *loader) readPulses(f, main field, beside map[string]field, what string) {
	what += ": pulses"
	for _, key := range []string{"onto", "factor", "per", "min", "max"} {
		if g, ok := beside[key]; ok {
			l.fail(g.keyAt, "%s: %s does not go with pulses; they are counted", what, key)
		}
	}
	n := l.nodeNamed(main, what)
	if l.err == nil && l.plant.nodes[n].domain == translational {
		l.fail(main.at, "%s: %q moves and does not turn; name a node that turns", what, l.plant.nodes[n].name)
	}
	teeth, ok := beside["teeth"]
	if !ok {
		l.fail(main.keyAt, "%s: teeth, the edges of a turn, are wanted", what)
	}
	if l.err != nil {
		return
	}
	number, _ := Units("1")
	s := Pulses{Output: len(l.plant.outputs)}
	edges := l.quantity(teeth, what+": teeth", wanted{number, "1"})
	if s.Teeth = int(edges); !(edges >= 1 && edges <= maxTeeth) || float64(s.Teeth) != edges {
		l.fail(teeth.at, "%s: teeth %g is not a whole number from 1 to %d", what, edges, maxTeeth)
	}
	if g, ok := beside["runout"]; ok {
		if s.Runout = l.quantity(g, what+": runout", wanted{number, "1"}); !(s.Runout >= 0 && s.Runout <= 0.5) {
			l.fail(g.at, "%s: runout %g is outside 0 to 0.5 of a pitch", what, s.Runout)
		}
	}
	if l.err != nil {
		return
	}
	s.State = l.angle(n)
	l.plant.pulses = append(l.plant.pulses, s)
	inf := math.Inf(1)
	for _, p := range []Port{
		{f.key, "1", 0, inf, Wraps}, {f.key + ".age", "s", 0, inf, Rests}, {f.key + ".period", "s", 0, inf, Rests},
	} {
		l.checkOutput(p.Name, f.keyAt, what)
		l.plant.outputs = append(l.plant.outputs, output{Port: p, at: f.keyAt})
	}
}

// checkOutput refuses a name that is taken.
func (l *loader) checkOutput(name string, at pos, what string) {
	if _, taken := l.inputs[name]; taken {
		l.fail(at, "%s: an input has the same name", what)
	}
	if l.reserved(name) {
		l.fail(at, "%s: every plant has this output already", what)
	}
	if slices.ContainsFunc(l.plant.outputs, func(o output) bool { return o.Name == name }) {
		l.fail(at, "%s: %q is an output of pulses, too; rename one", what, name)
	}
}
