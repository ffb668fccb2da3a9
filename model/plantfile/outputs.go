package plantfile

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// termKeys holds the keys of the quantity that an output, or a term of its sum, reads; outputKeys
// holds those of an output.
var (
	termKeys = []string{"speed", "w_rel", "phi_rel", "torque", "signal", "angle", "position", "acceleration",
		"v_rel", "s_rel", "force", "power", "energy", "work", "dissipated", "state"}
	outputKeys = append(slices.Clone(termKeys), "sum", "pulses")
)

func (l *loader) readOutputs(f yamlfile.Field) {
	list, explicit := l.ports(f, "outputs"), map[string]bool{}
	for _, f := range list {
		explicit[f.Key] = true
	}
	for _, f := range list {
		what := fmt.Sprintf("output %q", f.Key)
		if strings.Contains(f.Key, "*") {
			l.readPattern(f, explicit, what)
			continue
		}
		if !units.IsName(f.Key, true) {
			l.FailAt(f.KeyAt, "%s: not a name (letters, digits and _, joined by .)", what)
		}
		l.checkOutput(f.Key, f.KeyAt, what)
		l.readOutput(f, what)
	}
}

// reserved reports whether the kernel adds an output with this name.
func (l *loader) reserved(name string) bool {
	if slices.Contains([]string{"eta", "lag", "events", "transitions", "fault"}, name) {
		return true
	}
	i := max(0, strings.LastIndexByte(name, '.'))
	return l.elements[name[:i]].Friction && slices.Contains([]string{".mode", ".w_rel", ".tau", ".v_rel", ".f"}, name[i:])
}

// readOutput reads one of outputKeys with its options: onto for torque and force, teeth and runout
// for pulses, and factor, offset, per, unit, min and max for all keys except pulses.
func (l *loader) readOutput(f yamlfile.Field, what string) {
	main, options := l.quantity(outputKeys, f, what, "output", "teeth", "runout", "per", "unit", "min", "max")
	if main.Key == "pulses" {
		l.readPulses(f, main, options, what)
		return
	}
	l.forbid(options, what, "goes with pulses", "teeth", "runout")
	l.addOutput(f, main, options, what)
}

// addOutput adds the output f.Key, which reads main.
func (l *loader) addOutput(f, main yamlfile.Field, options map[string]yamlfile.Field, what string) {
	r := l.scaledReading(main, options, what)
	o := network.Output{Port: units.Port{Name: f.Key, Unit: r.Unit, Declared: r.Declared}, At: f.KeyAt, Form: r.Form}
	l.outputRange(&o, options, what)
	l.Network.Outputs = append(l.Network.Outputs, o)
}

// quantity returns the entry of a mapping whose key is one of keys, and its other entries: onto,
// factor, offset and more.
func (l *loader) quantity(keys []string, f yamlfile.Field, what, kind string, more ...string) (
	main yamlfile.Field, options map[string]yamlfile.Field) {
	known := slices.Concat(keys, []string{"onto", "factor", "offset"}, more)
	main, options = l.oneOf(keys, f, what, kind+"; make two", known)
	if main.Key == "" {
		l.FailAt(f.At, "%s: one of %s is wanted", what, strings.Join(keys, ", "))
	}
	if on := options["onto"]; on.Key != "" && main.Key != "torque" && main.Key != "force" {
		l.FailAt(on.KeyAt, "%s: onto goes with torque", what)
	}
	return main, options
}

// scaledReading returns factor times what main reads, plus offset.
func (l *loader) scaledReading(main yamlfile.Field, options map[string]yamlfile.Field, what string) element.Reading {
	var r element.Reading
	if main.Key == "sum" {
		r = l.sum(main, what+": sum")
	} else {
		r = l.reading(main, options["onto"], what+": "+main.Key)
	}
	factor := l.global.option(options, "factor", what, units.Want("1"), 1)
	r.Form = r.Form.Scaled(factor)
	want := units.Want(cmp.Or(r.Declared, r.Unit))
	if factor != 1 && want.Zero != 0 {
		r.Declared = "" // a multiple of a temperature is in K
	}
	if u, ok := options["unit"]; ok && options["per"].Key == "" {
		if shown, err := want.Spell(l.Text(u, what+": unit")); err == nil {
			want = shown
		}
	}
	if offset := l.global.option(options, "offset", what, want.Difference().Strict(), 0); offset != 0 {
		r.Form = r.Form.Plus(network.One(offset))
	}
	return r
}

// sum reads a list of terms, which have the same unit, and returns their sum.
func (l *loader) sum(f yamlfile.Field, what string) (sum element.Reading) {
	items := l.Items(f, what)
	if len(items) == 0 {
		l.FailAt(f.At, "%s: the list is empty; write terms such as {speed: NODE, factor: -1}", what)
	}
	for i, g := range items {
		term := fmt.Sprintf("%s: term %d", what, i+1)
		main, options := l.quantity(termKeys, g, term, "term")
		r := l.scaledReading(main, options, term)
		if i > 0 && r.Unit != sum.Unit {
			l.FailAt(g.At, "%s is in %s, the first term in %s; a sum needs one unit", term, r.Unit, sum.Unit)
		}
		sum = element.Reading{Form: sum.Form.Plus(r.Form), Unit: r.Unit}
	}
	return sum
}

// outputRange reads the options of an output. A declared unit that o has holds without the option unit.
func (l *loader) outputRange(o *network.Output, options map[string]yamlfile.Field, what string) {
	if g, ok := options["per"]; ok {
		whole, least := l.global.sized(g, what+": per", units.Want(o.Unit).Strict()), units.SizesOf(units.Want(o.Unit).Unit).Least
		if !(math.Abs(whole) >= least) {
			l.FailAt(g.At, "%s: per is %s; the output is a share of it, which is at least %s", what,
				units.Format(whole, o.Unit), units.Format(least, o.Unit))
		}
		o.Form, o.Unit, o.Declared = o.Form.Scaled(1/whole), "1", ""
	}

	want := o.DeclaredUnit().Strict()
	if u, ok := options["unit"]; ok {
		shown, err := want.Spell(l.Text(u, what+": unit"))
		if err != nil {
			l.FailAt(u.At, "%s: %s", what, units.Reason(err))
		}
		want, o.Declared = shown, declared(shown)
	}

	l.readRange(&o.Port, options, what, want)
}

// reading returns the value that an output reads.
func (l *loader) reading(f, on yamlfile.Field, what string) element.Reading {
	switch f.Key {
	case "speed", "acceleration", "angle", "position":
		return l.motion(f, what)
	case "w_rel", "v_rel":
		d, n := l.related(f, what, "relative speed; name a spring, damper, clutch or brake")
		return element.Reading{Form: d.Rel.Speeds(1), Unit: n.SpeedUnit()}
	case "phi_rel", "s_rel":
		return l.twist(f, what)
	case "signal":
		return l.readSignal(f, what)
	case "state":
		name := l.Text(f, what)
		var names []string
		for i, s := range l.Network.States {
			if s.Name == name {
				return element.Reading{Form: network.StateOf(i), Unit: s.Unit}
			}
			names = append(names, s.Name)
		}

		l.FailAt(f.At, "%s: %q is not a state%s", what, name, units.Meant(name, names))
		return element.Reading{}
	case "power":
		return l.power(f, what)
	case "energy":
		d := l.elementNamed(f, what)
		if d.Energy == nil {
			l.FailAt(f.At, "%s: type %s stores no energy to read; name an inertia, mass or spring", what, d.Kind)
		}
		return l.addQuantity(f, "energy", "J", d.Energy)
	case "work":
		return l.integral(f, "work", l.power(f, what).Form)
	case "dissipated":
		d := l.elementNamed(f, what)
		loss, ok := d.Named["lossPower"]
		switch may := slices.ContainsFunc(l.kinds, func(k element.Kind) bool {
			return k.Name == d.Kind && slices.Contains(k.Adds, element.LossQuantity)
		}); {
		case ok || d.Contacts != nil:
		case may:
			l.FailAt(f.At, "%s: this %s has no friction or damping, and so no lossPower", what, d.Kind)
		default:
			l.FailAt(f.At, "%s: type %s has no lossPower; name a damper, clutch, brake or lossy gear", what, d.Kind)
		}
		if d.Loss != nil {
			loss = l.addQuantity(f, "loss", "W", d.Loss)
		}
		r := l.integral(f, "dissipated", loss.Form)
		for _, i := range slices.Concat(d.Contacts, d.Frictions) {
			l.Network.Frictions[i].Impacts = 1 + r.Form.Index()
		}
		return r
	}

	return l.readTorques(f, on, what)
}

// matches refuses a rotational key for a translational quantity, and the reverse.
func (l *loader) matches(f yamlfile.Field, what string, d network.Domain) {
	for _, k := range [][2]string{{"angle", "position"}, {"w_rel", "v_rel"}, {"phi_rel", "s_rel"}, {"torque", "force"}} {
		switch {
		case f.Key == k[0] && d == network.Translational:
			l.FailAt(f.KeyAt, "%s: it moves and does not turn; %s is wanted", what, k[1])
		case f.Key == k[1] && d != network.Translational:
			l.FailAt(f.KeyAt, "%s: it turns and does not move; %s is wanted", what, k[0])
		}
	}
}

// motion returns speed, acceleration, angle or position of a node.
func (l *loader) motion(f yamlfile.Field, what string) element.Reading {
	i := l.nodeNamed(f, what)
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

// twist returns phi_rel of an element: the state of a spring, or for a clutch or damper a new state
// that integrates the relative speed.
func (l *loader) twist(f yamlfile.Field, what string) element.Reading {
	name := l.Text(f, what)
	d, n := l.related(f, what, "angle; name a spring or spring_damper")
	if d.Angle == "" {
		d.Angle = n.AngleUnit()
		d.Twist = network.Add(&l.Network.States, network.State{Name: name + ".phi_rel", Unit: d.Angle, At: f.At,
			Der: d.Rel.Speeds(1), Along: d.Rel})
		l.elements[name] = d
	}

	r := network.StateOf(d.Twist)
	if d.Rest != 0 {
		r = r.Plus(network.One(d.Rest))
	}
	return element.Reading{Form: r, Unit: d.Angle}
}

// related returns an element with two ends, and the node of one end.
func (l *loader) related(f yamlfile.Field, what, wanted string) (element.Declared, *network.Node) {
	d := l.elementNamed(f, what)
	if len(d.Rel) == 0 {
		l.FailAt(f.At, "%s: type %s has no %s", what, d.Kind, wanted)
	}
	n := &l.Network.Nodes[d.Rel[0].Node]
	l.matches(f, what, n.Domain)
	return d, n
}

// readSignal returns an input, the signal of an element, or a quantity in Kind.Adds.
func (l *loader) readSignal(f yamlfile.Field, what string) element.Reading {
	name := l.Text(f, what)
	if i, _ := l.global.signalNamed(name); i >= 0 {
		l.Network.Signals[i].Read = true
		r := element.Reading{Form: network.SignalOf(i), Unit: l.Network.Signals[i].Unit.SI}
		for k := range l.Network.Inputs {
			if in := &l.Network.Inputs[k]; in.Signal == i {
				r.Declared = in.Port.Declared
			}
		}
		return r
	}

	known := append(slices.Sorted(maps.Keys(l.inputs)), slices.Sorted(maps.Keys(l.provided))...)
	for _, e := range l.Elements {
		for _, key := range slices.Sorted(maps.Keys(e.Named)) {
			if e.Name+"."+key == name {
				return e.Named[key]
			}
			known = append(known, e.Name+"."+key)
		}
	}

	l.FailAt(f.At, "%s: %q is not an input%s", what, name, units.Meant(name, known))
	return element.Reading{}
}

func (l *loader) nodeNamed(f yamlfile.Field, what string) int {
	return named(l, f, what, "a node", l.nodes)
}

func (l *loader) elementNamed(f yamlfile.Field, what string) element.Declared {
	return named(l, f, what, "an element", l.elements)
}

// named returns the entry of list that a field names; kind names the entries in errors.
func named[T any](l *loader, f yamlfile.Field, what, kind string, list map[string]T) T {
	name := l.Text(f, what)
	item, ok := list[name]
	if !ok {
		l.FailAt(f.At, "%s: %q is not %s%s", what, name, kind, units.Meant(name, slices.Sorted(maps.Keys(list))))
	}
	return item
}

// maxTeeth bounds the edges per turn; encoders have fewer.
const maxTeeth = 100000

// readPulses reads a wheel-speed sensor on a node, which has three outputs.
func (l *loader) readPulses(f, main yamlfile.Field, options map[string]yamlfile.Field, what string) {
	what += ": pulses"
	l.forbid(options, what, "does not go with pulses; they are counted", "onto", "factor", "offset", "per", "unit",
		"min", "max")

	n := l.nodeNamed(main, what)
	if l.Network.Nodes[n].Domain == network.Translational {
		l.FailAt(main.At, "%s: %q moves and does not turn; name a node that turns", what, l.Network.Nodes[n].Name)
	}
	teeth, ok := options["teeth"]
	if !ok {
		l.FailAt(main.KeyAt, "%s: teeth, the edges of a turn, are wanted", what)
	}
	s := model.Pulses{Output: len(l.Network.Outputs)}
	s.Teeth = l.global.whole(teeth, what+": teeth", 1, maxTeeth)
	s.Runout = l.global.option(options, "runout", what, units.Want("1"), 0)
	if !(s.Runout >= 0 && s.Runout <= 0.5) {
		l.FailAt(options["runout"].At, "%s: runout %g is outside 0 to 0.5 of a pitch", what, s.Runout)
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

// checkOutput refuses the name of another port.
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

// power returns torque times relative speed of an element, a law.
func (l *loader) power(f yamlfile.Field, what string) element.Reading {
	d := l.elementNamed(f, what)
	if d.Tau == nil || len(d.Rel) == 0 {
		l.FailAt(f.At, "%s: type %s has no power to read", what, d.Kind)
	}
	return l.addQuantity(f, "power", "W", law.Power(d.Tau, d.Rel.Speeds(1)))
}

// addQuantity returns a law of the element that f names as its signal NAME.key.
func (l *loader) addQuantity(f yamlfile.Field, key, unit string, value *law.Expr) element.Reading {
	name, _ := yamlfile.ScalarText(f.Node)
	s := network.Signal{Name: name + "." + key, Unit: units.Want(unit).Unit, At: f.At, Read: true}
	i := network.Add(&l.Network.Signals, s)
	l.setLaw(i, value)
	return element.Reading{Form: network.SignalOf(i), Unit: unit}
}

// integral returns the integral of a power of the element that f names since the start, the state NAME.key.
func (l *loader) integral(f yamlfile.Field, key string, power network.Form) element.Reading {
	name, _ := yamlfile.ScalarText(f.Node)
	name += "." + key
	i := slices.IndexFunc(l.Network.States, func(s network.State) bool { return s.Name == name })
	if i < 0 {
		i = network.Add(&l.Network.States, network.State{Name: name, Unit: "J", At: f.At, Der: power})
	}
	return element.Reading{Form: network.StateOf(i), Unit: "J"}
}

// readTorques reads the key torque or force: one element or a list. With onto: NODE the output is the
// torque of these elements on that node, otherwise the sum of their tau.
func (l *loader) readTorques(f, on yamlfile.Field, what string) element.Reading {
	list := []yamlfile.Field{f}
	if _, single := yamlfile.ScalarText(f.Node); !single {
		list = l.Items(f, what)
		if len(list) == 0 {
			l.FailAt(f.At, "%s: the list is empty; name elements", what)
		}
	}

	at := network.Ground
	if on.Key != "" {
		at = l.nodeNamed(on, what+": onto")
	}
	r := element.Reading{Form: network.Form{}, Unit: "N.m"}
	if f.Key == "force" {
		r.Unit = "N"
	}
	for _, g := range list {
		d := l.elementNamed(g, what)
		if on.Key != "" {
			r.Form = r.Form.Plus(l.exerted(g, at, d, what, l.Text(on, what)))
			continue
		}

		if d.Tau == nil || len(d.Rel) == 0 {
			l.FailAt(g.At, "%s: type %s has no torque to read; %s", what, d.Kind, l.torqueHint(l.Text(g, what)))
		}
		of := network.Rotational
		if d.Unit == "N" { // also for a joint between bodies that only turn
			of = network.Translational
		}
		l.matches(g, what, of)
		r.Form = r.Form.Plus(d.Tau)
	}

	return r
}

// torqueHint tells how to read the torque of an element without tau.
func (l *loader) torqueHint(name string) string {
	if slices.ContainsFunc(l.Network.Ties, func(t network.Tie) bool { return t.Name == name }) {
		return fmt.Sprintf("with onto: NODE beside it, it is what %q exerts on that node", name)
	}
	return "name a torque, spring, damper, clutch, brake or inertia"
}

// exerted returns the torque of an element on node at, from its efforts and from its ties as a gear.
// A tie to the node of the element itself is internal and does not count.
func (l *loader) exerted(f yamlfile.Field, at int, d element.Declared, what, node string) network.Form {
	name := l.Text(f, what)
	var sum network.Form
	acts, touches := false, false
	add := func(c float64, value network.Form) {
		acts = true
		if c != 0 {
			touches = true
			sum = sum.Plus(value.Scaled(c))
		}
	}

	for _, a := range l.Network.Efforts {
		if a.Element == name {
			add(a.Row.Coef(at), a.Value)
		}
	}

	for i, t := range l.Network.Ties {
		if t.Name == name && node != name {
			add(t.Row.Coef(at), network.TieOf(i))
		}
	}

	switch {
	case !acts:
		l.FailAt(f.At, "%s: type %s exerts no torque; %s", what, d.Kind, l.torqueHint(name))
	case !touches:
		l.FailAt(f.At, "%s: element %q does not touch node %q", what, name, node)
	default:
		l.matches(f, what, l.Network.Nodes[at].Domain)
	}

	return sum
}
