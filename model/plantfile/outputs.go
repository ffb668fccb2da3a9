package plantfile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// outputKeys say what an output is.
var outputKeys = []string{"speed", "w_rel", "phi_rel", "torque", "signal", "angle", "position", "acceleration",
	"v_rel", "s_rel", "force", "power", "state", "pulses"}

func (l *loader) readOutputs(f syntax.Field) {
	list := l.optional(f, "outputs")
	if len(list) > maxPorts {
		l.Fail(list[maxPorts].KeyAt, "more than %d outputs", maxPorts)
		return
	}
	for _, f := range list {
		what := fmt.Sprintf("output %q", f.Key)
		if !units.IsName(f.Key, true) {
			l.Fail(f.KeyAt, "%s: not a name (letters, digits and _, joined by .)", what)
		}
		l.checkOutput(f.Key, f.KeyAt, what)
		l.readOutput(f, what)
		if l.Err != nil {
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
	return i >= 0 && l.elements[name[:i]].Friction && slices.Contains([]string{"mode", "w_rel", "tau", "v_rel", "f"}, name[i+1:])
}

// readOutput reads one of outputKeys, with onto beside torque and force, teeth and runout
// beside pulses, and factor, per, min and max beside any other.
func (l *loader) readOutput(f syntax.Field, what string) {
	fields := l.Entries(f.Node, f.At, what)
	l.CheckKeys(fields, what, append(outputKeys, "onto", "teeth", "runout", "factor", "per", "min", "max")...)
	var main syntax.Field
	beside := map[string]syntax.Field{}
	for _, g := range fields {
		switch {
		case slices.Index(outputKeys, g.Key) < 0:
			beside[g.Key] = g
		case main.Key != "":
			l.Fail(g.KeyAt, "%s: %s and %s in one output; make two", what, main.Key, g.Key)
		default:
			main = g
		}
	}
	if main.Key == "" {
		l.Fail(f.At, "%s: one of %s is wanted", what, strings.Join(outputKeys, ", "))
	}
	if on := beside["onto"]; on.Key != "" && main.Key != "torque" && main.Key != "force" {
		l.Fail(on.KeyAt, "%s: onto goes with torque", what)
	}
	for _, key := range []string{"teeth", "runout"} {
		if g, ok := beside[key]; ok && main.Key != "pulses" {
			l.Fail(g.KeyAt, "%s: %s goes with pulses", what, key)
		}
	}
	if l.Err != nil {
		return
	}
	if main.Key == "pulses" {
		l.readPulses(f, main, beside, what)
		return
	}
	o := network.Output{Port: units.Port{Name: f.Key, Min: math.Inf(-1), Max: math.Inf(1)}, At: f.KeyAt}
	r := l.reading(main, beside["onto"], what+": "+main.Key)
	o.Unit, o.Form = r.Unit, r.Form
	l.outputRange(&o, beside, what)
	l.Network.Outputs = append(l.Network.Outputs, o)
}

func (l *loader) outputRange(o *network.Output, beside map[string]syntax.Field, what string) {
	if g, ok := beside["factor"]; ok {
		o.Form = o.Form.Scaled(l.quantity(g, what+": factor", units.Want("1")))
	}
	if g, ok := beside["per"]; ok {
		whole := l.quantity(g, what+": per", units.Want(o.Unit))
		if !(whole != 0) {
			l.Fail(g.At, "%s: per is 0 %s; the output is a share of it", what, o.Unit)
		}
		o.Form, o.Unit = o.Form.Scaled(1/whole), "1"
	}
	if g, ok := beside["min"]; ok {
		o.Min = l.quantity(g, what+": min", units.Want(o.Unit))
	}
	if g, ok := beside["max"]; ok {
		o.Max = l.quantity(g, what+": max", units.Want(o.Unit))
		if !(o.Min <= o.Max) {
			l.Fail(g.At, "%s: max %s is below min %s", what, units.Format(o.Max, o.Unit), units.Format(o.Min, o.Unit))
		}
	}
}

// reading is what an output reads.
func (l *loader) reading(f, on syntax.Field, what string) element.Reading {
	switch f.Key {
	case "speed", "acceleration", "angle", "position":
		return l.motion(f, what)
	case "w_rel", "v_rel":
		d := l.elementNamed(f, what)
		if len(d.Rel) == 0 && l.Err == nil {
			l.Fail(f.At, "%s: type %s has no relative speed; name a spring, damper, clutch or brake", what, d.Kind)
		}
		if l.Err != nil {
			return element.Reading{}
		}
		l.matches(f, what, l.Network.Nodes[d.Rel[0].Node].Domain)
		return element.Reading{Form: d.Rel.Speeds(1), Unit: l.Network.Nodes[d.Rel[0].Node].SpeedUnit()}
	case "phi_rel", "s_rel":
		return l.twist(f, what)
	case "signal":
		return l.readSignal(f, what)
	case "state":
		name := l.Text(f, what)
		for i, s := range l.Network.States {
			if s.Name == name {
				return element.Reading{Form: network.StateOf(i), Unit: s.Unit}
			}
		}
		var names []string
		for _, s := range l.Network.States {
			names = append(names, s.Name)
		}
		l.Fail(f.At, "%s: %q is not a state%s", what, name, units.DidYouMean(name, names))
		return element.Reading{}
	case "power":
		return l.power(f, what)
	}
	return l.readTorques(f, on, what)
}

// matches checks that a key for turning, or one for moving, fits what is read.
func (l *loader) matches(f syntax.Field, what string, d network.Domain) {
	for _, k := range [][2]string{{"angle", "position"}, {"w_rel", "v_rel"}, {"phi_rel", "s_rel"}, {"torque", "force"}} {
		switch {
		case f.Key == k[0] && d == network.Translational:
			l.Fail(f.KeyAt, "%s: it moves and does not turn; %s is wanted", what, k[1])
		case f.Key == k[1] && d != network.Translational:
			l.Fail(f.KeyAt, "%s: it turns and does not move; %s is wanted", what, k[0])
		}
	}
}

// motion is speed, acceleration, angle or position of a node.
func (l *loader) motion(f syntax.Field, what string) element.Reading {
	i := l.nodeNamed(f, what)
	if l.Err != nil {
		return element.Reading{}
	}
	n := &l.Network.Nodes[i]
	l.matches(f, what, n.Domain)
	switch f.Key {
	case "speed":
		return element.Reading{Form: network.RowOf(i).Speeds(1), Unit: n.SpeedUnit()}
	case "acceleration":
		return element.Reading{Form: network.AccelOf(i), Unit: n.SpeedUnit() + "2"}
	}
	return element.Reading{Form: network.StateOf(l.Angle(i)), Unit: n.AngleUnit()}
}

// twist is phi_rel of an element: of a spring a state, of a clutch or damper an angle
// that is integrated because it is read.
func (l *loader) twist(f syntax.Field, what string) element.Reading {
	name := l.Text(f, what)
	d := l.elementNamed(f, what)
	if l.Err == nil && len(d.Rel) == 0 {
		l.Fail(f.At, "%s: type %s has no angle; name a spring or spring_damper", what, d.Kind)
	}
	if l.Err != nil {
		return element.Reading{}
	}
	l.matches(f, what, l.Network.Nodes[d.Rel[0].Node].Domain)
	if d.Angle == "" {
		d.Angle = l.Network.Nodes[d.Rel[0].Node].AngleUnit()
		l.Network.States = append(l.Network.States, network.State{Name: name + ".phi_rel", Unit: d.Angle, At: f.At,
			Der: d.Rel.Speeds(1), Along: d.Rel})
		d.Twist = len(l.Network.States) - 1
		l.elements[name] = d
	}
	r := network.StateOf(d.Twist)
	if d.Rest != 0 {
		r = r.Plus(network.One(d.Rest))
	}
	return element.Reading{Form: r, Unit: d.Angle}
}

// readSignal is an input, the signal of an element, or a quantity that an element
// names.
func (l *loader) readSignal(f syntax.Field, what string) element.Reading {
	name := l.Text(f, what)
	if i, _ := l.signalNamed(name); i >= 0 {
		l.Network.Signals[i].Read = true
		return element.Reading{Form: network.SignalOf(i), Unit: l.Network.Signals[i].Unit.SI}
	}
	known := append(slices.Sorted(maps.Keys(l.inputs)), slices.Sorted(maps.Keys(l.provided))...)
	for _, e := range l.list {
		for _, key := range slices.Sorted(maps.Keys(e.Named)) {
			if e.Name+"."+key == name {
				return e.Named[key]
			}
			known = append(known, e.Name+"."+key)
		}
	}
	l.Fail(f.At, "%s: %q is not an input%s", what, name, units.DidYouMean(name, known))
	return element.Reading{}
}

func (l *loader) nodeNamed(f syntax.Field, what string) int {
	name := l.Text(f, what)
	i, ok := l.nodes[name]
	if !ok {
		l.Fail(f.At, "%s: %q is not a node%s", what, name, units.DidYouMean(name, l.nodeNames()))
	}
	return i
}

func (l *loader) elementNamed(f syntax.Field, what string) element.Declared {
	name := l.Text(f, what)
	d, ok := l.elements[name]
	if !ok {
		l.Fail(f.At, "%s: %q is not an element%s", what, name, units.DidYouMean(name, slices.Sorted(maps.Keys(l.elements))))
	}
	return d
}
