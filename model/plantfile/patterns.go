package plantfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/network"
	"lockstep/model/units"
)

// variables gives the key of an output for the last part of a pattern NAMES.VARIABLE with the value all, by the names of
// the Modelica library; speed and acceleration also the domain of the nodes. Other variables are signals or states.
var variables = map[string]struct {
	key    string
	domain network.Domain
}{
	"w": {"speed", network.Rotational}, "v": {"speed", network.Translational}, "phi": {"angle", network.AnyDomain},
	"s": {"position", network.AnyDomain}, "a": {"acceleration", network.AnyDomain}, "tau": {"torque", network.AnyDomain},
	"f": {"force", network.AnyDomain}, "w_rel": {"w_rel", network.AnyDomain}, "v_rel": {"v_rel", network.AnyDomain},
	"phi_rel": {"phi_rel", network.AnyDomain}, "s_rel": {"s_rel", network.AnyDomain}, "power": {"power", network.AnyDomain},
	"energy": {"energy", network.AnyDomain}, "work": {"work", network.AnyDomain}, "dissipated": {"dissipated", network.AnyDomain},
}

// readPattern reads an entry whose name has a *: one output for each node, element, signal or state that the entry can
// read and whose name the pattern matches. Names that an entry of the section or the plant itself has already are left out.
//
//	"*.w": {speed: "*", unit: rpm}    the entry has a pattern, too; its * stands for the same text
//	"left.*.w": all                   the variable after the last dot, of all names before it
func (l *loader) readPattern(f yamlfile.Field, explicit map[string]bool, what string) {
	name, pattern, domain := f.Key, "", network.AnyDomain
	var main yamlfile.Field
	var options map[string]yamlfile.Field
	if text, ok := yamlfile.ScalarText(f.Node); ok {
		i := strings.LastIndexByte(name, '.')
		if text != "all" || i < 1 || strings.Contains(name[i:], "*") {
			l.FailAt(f.At, "%s: a pattern is NAMES.VARIABLE: all, such as \"*.w\": all, or has an entry, such as {speed: \"*\"}", what)
		}
		pattern = name[:i]
		v, known := variables[name[i+1:]]
		if domain = v.domain; !known {
			v.key, pattern = "signal", name
			if !slices.ContainsFunc(l.readable("signal"), func(s string) bool { _, ok := matched(pattern, s); return ok }) {
				v.key = "state"
			}
		}
		main = yamlfile.Field{Key: v.key, KeyAt: f.KeyAt, At: f.At, Node: f.Node}
		name = strings.Replace(name, pattern, "*", 1)
		if !known {
			name = "*"
		}
	} else {
		main, options = l.quantity(termKeys, f, what, "output", "per", "unit", "min", "max")
		pattern = l.Text(main, what+": "+main.Key)
		if strings.Count(pattern, "*") != 1 || strings.Count(name, "*") != 1 {
			l.FailAt(main.At, "%s: %s: a pattern needs one * in the name of the output and one in %q", what, main.Key, pattern)
		}
	}

	made := 0
	for _, candidate := range l.readable(main.Key) {
		star, ok := matched(pattern, candidate)
		if _, isAll := yamlfile.ScalarText(f.Node); isAll {
			star = candidate
		}
		output := strings.Replace(name, "*", star, 1)
		if !ok || domain != network.AnyDomain && l.Network.Nodes[l.nodes[candidate]].Domain.Per("turns", "moves") != domain.Per("turns", "moves") {
			continue
		}
		one := main.WithText(candidate)
		if u, ok := options["unit"]; ok && options["per"].Key == "" {
			if _, err := units.Want(l.reading(one, options["onto"], what).Unit).Spell(l.Text(u, what+": unit")); err != nil {
				continue
			}
		}
		made++
		_, input := l.inputs[output]
		same := func(o network.Output) bool { return o.Name == output }
		if explicit[output] || input || l.reserved(output) || slices.ContainsFunc(l.Network.Outputs, same) {
			continue
		}
		if len(l.Network.Outputs) >= maxPorts {
			l.FailAt(f.KeyAt, "%s: more than %d outputs", what, maxPorts)
		}
		l.addOutput(yamlfile.Field{Key: output, KeyAt: f.KeyAt, At: f.At}, one, options, what)
	}
	if made == 0 {
		l.FailAt(f.KeyAt, "%s: nothing that %s can read matches %q%s", what, main.Key, pattern, l.example(main.Key))
	}
}

// example continues the error for a pattern that matches nothing.
func (l *loader) example(key string) string {
	if list := l.readable(key); len(list) > 0 {
		return fmt.Sprintf("; there is %s", strings.Join(list[:min(3, len(list))], ", "))
	}
	return "; there is none in this plant"
}

// matched reports whether a name fits a pattern with *, which stands for any text; star is the text of the first *.
func matched(pattern, name string) (star string, ok bool) {
	parts := strings.Split(pattern, "*")
	head, tail := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(name, head) || len(name) < len(head)+len(tail) || !strings.HasSuffix(name, tail) {
		return "", false
	}
	star = name[len(head) : len(name)-len(tail)]
	rest := star
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return "", false
		}
		rest = rest[i+len(part):]
	}
	return star, true
}

// readable returns the names that an output with a key can read, in the order of the file; those of signals and states in
// alphabetical order.
func (l *loader) readable(key string) (names []string) {
	switch key {
	case "speed", "acceleration", "angle", "position":
		for _, n := range l.Network.Nodes {
			if moves := n.Domain == network.Translational; n.Owner != "fixed" && !(key == "angle" && moves) && !(key == "position" && !moves) {
				names = append(names, n.Name)
			}
		}
		return names
	case "signal":
		names = slices.Concat(slices.Collect(maps.Keys(l.inputs)), slices.Collect(maps.Keys(l.provided)))
		for _, e := range l.Elements {
			for key := range e.Named {
				names = append(names, e.Name+"."+key)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	case "state":
		for _, s := range l.Network.States {
			names = append(names, s.Name)
		}
		return names
	}
	for _, e := range l.Elements {
		if l.canRead(key, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}

// canRead reports whether an output with a key can read an element.
func (l *loader) canRead(key, name string) bool {
	d := l.elements[name]
	switch _, loses := d.Named["lossPower"]; {
	case key == "energy":
		return d.Energy != nil
	case key == "dissipated":
		return loses || d.Contacts != nil
	case len(d.Rel) == 0:
		return false
	}
	moves := l.Network.Nodes[d.Rel[0].Node].Domain == network.Translational
	switch key {
	case "w_rel", "phi_rel":
		return !moves
	case "v_rel", "s_rel":
		return moves
	case "torque":
		return d.Tau != nil && d.Unit != "N"
	case "force":
		return d.Tau != nil && d.Unit == "N"
	}
	return d.Tau != nil
}
