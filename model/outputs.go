package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// outputKeys say what an output is.
var outputKeys = []string{"speed", "w_rel", "phi_rel", "torque", "signal", "angle", "position", "acceleration",
	"v_rel", "s_rel", "force", "power", "state", "pulses"}

func (l *loader) readOutputs(f field) {
	list := l.optional(f, "outputs")
	if len(list) > maxPorts {
		l.fail(list[maxPorts].keyAt, "more than %d outputs", maxPorts)
		return
	}
	for _, f := range list {
		what := fmt.Sprintf("output %q", f.key)
		if !isName(f.key, true) {
			l.fail(f.keyAt, "%s: not a name (letters, digits and _, joined by .)", what)
		}
		l.checkOutput(f.key, f.keyAt, what)
		l.readOutput(f, what)
		if l.err != nil {
			return
		}
	}
}

// reserved tells whether the kernel adds an output of this name.
func (l *loader) reserved(name string) bool {
	if slices.Contains([]string{"eta", "lag", "events", "transitions", "fault"}, name) {
		return true
	}
	i := strings.LastIndexByte(name, '.')
	return i >= 0 && l.elements[name[:i]].friction && slices.Contains([]string{"mode", "w_rel", "tau", "v_rel", "f"}, name[i+1:])
}

// readOutput reads one of outputKeys, with onto beside torque and force, teeth and runout
// beside pulses, and factor, per, min and max beside any other.
func (l *loader) readOutput(f field, what string) {
	fields := l.entries(f.node, f.at, what)
	l.known(fields, what, append(outputKeys, "onto", "teeth", "runout", "factor", "per", "min", "max")...)
	var main field
	beside := map[string]field{}
	for _, g := range fields {
		switch {
		case slices.Index(outputKeys, g.key) < 0:
			beside[g.key] = g
		case main.key != "":
			l.fail(g.keyAt, "%s: %s and %s in one output; make two", what, main.key, g.key)
		default:
			main = g
		}
	}
	if main.key == "" {
		l.fail(f.at, "%s: one of %s is wanted", what, strings.Join(outputKeys, ", "))
	}
	if on := beside["onto"]; on.key != "" && main.key != "torque" && main.key != "force" {
		l.fail(on.keyAt, "%s: onto goes with torque", what)
	}
	for _, key := range []string{"teeth", "runout"} {
		if g, ok := beside[key]; ok && main.key != "pulses" {
			l.fail(g.keyAt, "%s: %s goes with pulses", what, key)
		}
	}
	if l.err != nil {
		return
	}
	if main.key == "pulses" {
		l.readPulses(f, main, beside, what)
		return
	}
	o := output{Port: Port{Name: f.key, Min: math.Inf(-1), Max: math.Inf(1)}, at: f.keyAt}
	r := l.reading(main, beside["onto"], what+": "+main.key)
	o.Unit, o.form = r.unit, r.form
	l.outputRange(&o, beside, what)
	l.plant.outputs = append(l.plant.outputs, o)
}

func (l *loader) outputRange(o *output, beside map[string]field, what string) {
	if g, ok := beside["factor"]; ok {
		number, _ := Units("1")
		o.form = o.form.scaled(l.quantity(g, what+": factor", wanted{number, "1"}))
	}
	u, _ := Units(o.Unit)
	if g, ok := beside["per"]; ok {
		whole := l.quantity(g, what+": per", wanted{u, o.Unit})
		if !(whole != 0) {
			l.fail(g.at, "%s: per is 0 %s; the output is a share of it", what, o.Unit)
		}
		o.form, o.Unit = o.form.scaled(1/whole), "1"
		u, _ = Units(o.Unit)
	}
	if g, ok := beside["min"]; ok {
		o.Min = l.quantity(g, what+": min", wanted{u, o.Unit})
	}
	if g, ok := beside["max"]; ok {
		o.Max = l.quantity(g, what+": max", wanted{u, o.Unit})
		if !(o.Min <= o.Max) {
			l.fail(g.at, "%s: max %s is below min %s", what, withUnit(o.Max, o.Unit), withUnit(o.Min, o.Unit))
		}
	}
}

// reading is what an output reads.
func (l *loader) reading(f, on field, what string) reading {
	switch f.key {
	case "speed", "acceleration", "angle", "position":
		return l.motion(f, what)
	case "w_rel", "v_rel":
		d := l.elementNamed(f, what)
		if len(d.rel) == 0 && l.err == nil {
			l.fail(f.at, "%s: type %s has no relative speed; name a spring, damper, clutch or brake", what, d.kind)
		}
		if l.err != nil {
			return reading{}
		}
		l.matches(f, what, l.plant.nodes[d.rel[0].node].domain)
		return reading{d.rel.speeds(1), l.plant.nodes[d.rel[0].node].speedUnit()}
	case "phi_rel", "s_rel":
		return l.twist(f, what)
	case "signal":
		return l.readSignal(f, what)
	case "state":
		name := l.text(f, what)
		for i, s := range l.plant.states {
			if s.name == name {
				return reading{stateOf(i), s.unit}
			}
		}
		var names []string
		for _, s := range l.plant.states {
			names = append(names, s.name)
		}
		l.fail(f.at, "%s: %q is not a state%s", what, name, didYouMean(name, names))
		return reading{}
	case "power":
		return l.power(f, what)
	}
	return l.readTorques(f, on, what)
}

// matches checks that a key for turning, or one for moving, fits what is read.
func (l *loader) matches(f field, what string, d domain) {
	for _, k := range [][2]string{{"angle", "position"}, {"w_rel", "v_rel"}, {"phi_rel", "s_rel"}, {"torque", "force"}} {
		switch {
		case f.key == k[0] && d == translational:
			l.fail(f.keyAt, "%s: it moves and does not turn; %s is wanted", what, k[1])
		case f.key == k[1] && d != translational:
			l.fail(f.keyAt, "%s: it turns and does not move; %s is wanted", what, k[0])
		}
	}
}

// motion is speed, acceleration, angle or position of a node.
func (l *loader) motion(f field, what string) reading {
	i := l.nodeNamed(f, what)
	if l.err != nil {
		return reading{}
	}
	n := &l.plant.nodes[i]
	l.matches(f, what, n.domain)
	switch f.key {
	case "speed":
		return reading{rowOf(i).speeds(1), n.speedUnit()}
	case "acceleration":
		return reading{accelOf(i), n.speedUnit() + "2"}
	}
	return reading{stateOf(l.angle(i)), n.angleUnit()}
}

// twist is phi_rel of an element: of a spring a state, of a clutch or damper an angle
// that is integrated because it is read.
func (l *loader) twist(f field, what string) reading {
	name := l.text(f, what)
	d := l.elementNamed(f, what)
	if l.err == nil && len(d.rel) == 0 {
		l.fail(f.at, "%s: type %s has no angle; name a spring or spring_damper", what, d.kind)
	}
	if l.err != nil {
		return reading{}
	}
	l.matches(f, what, l.plant.nodes[d.rel[0].node].domain)
	if d.angle == "" {
		d.angle = l.plant.nodes[d.rel[0].node].angleUnit()
		l.plant.states = append(l.plant.states, state{name: name + ".phi_rel", unit: d.angle, at: f.at,
			der: d.rel.speeds(1), along: d.rel})
		d.twist = len(l.plant.states) - 1
		l.elements[name] = d
	}
	r := stateOf(d.twist)
	if d.rest != 0 {
		r = r.plus(one(d.rest))
	}
	return reading{r, d.angle}
}

// readSignal is an input, the signal of an element, or a quantity that an element
// names.
func (l *loader) readSignal(f field, what string) reading {
	name := l.text(f, what)
	if i, _ := l.signalNamed(name); i >= 0 {
		l.plant.signals[i].read = true
		return reading{signalOf(i), l.plant.signals[i].unit.SI}
	}
	known := append(slices.Sorted(maps.Keys(l.inputs)), slices.Sorted(maps.Keys(l.provided))...)
	for _, e := range l.list {
		for _, key := range slices.Sorted(maps.Keys(e.named)) {
			if e.name+"."+key == name {
				return e.named[key]
			}
			known = append(known, e.name+"."+key)
		}
	}
	l.fail(f.at, "%s: %q is not an input%s", what, name, didYouMean(name, known))
	return reading{}
}

func (l *loader) nodeNamed(f field, what string) int {
	name := l.text(f, what)
	i, ok := l.nodes[name]
	if !ok {
		l.fail(f.at, "%s: %q is not a node%s", what, name, didYouMean(name, l.nodeNames()))
	}
	return i
}

func (l *loader) elementNamed(f field, what string) declared {
	name := l.text(f, what)
	d, ok := l.elements[name]
	if !ok {
		l.fail(f.at, "%s: %q is not an element%s", what, name, didYouMean(name, slices.Sorted(maps.Keys(l.elements))))
	}
	return d
}
