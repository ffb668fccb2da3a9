package plantfile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Assignment gives a parameter of a plant file a value that replaces the value in the file, or chooses a
// start preset.
type Assignment struct {
	Name, Value string
	Place       string // location of the assignment in another file, FILE:LINE:COL; "": the command line
}

// maxAssignment is the longest assignment, bytes. Messages and records repeat it.
const maxAssignment = 1000

// ParseAssignment reads NAME=VALUE, such as "m_car=2000 kg".
func ParseAssignment(text string) (Assignment, error) {
	if len(text) > maxAssignment {
		return Assignment{}, fmt.Errorf("%.40q... has %d bytes; an assignment has at most %d", text, len(text), maxAssignment)
	}
	name, value, ok := strings.Cut(text, "=")
	a := Assignment{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
	if !ok || a.Name == "" || a.Value == "" {
		return a, fmt.Errorf("%q is not NAME=VALUE, such as m_car=2000kg", text)
	}
	return a, nil
}

func (a Assignment) String() string { return a.Name + "=" + a.Value }

// located returns the assignment with its location, for errors.
func (a Assignment) located() string {
	if a.Place == "" {
		return a.String()
	}
	return a.String() + " of " + a.Place
}

// Assign sets the values of parameters for all later calls of Load, which checks them. The parameters
// that depend on them follow.
func (d *Draft) Assign(list []Assignment) { d.set = list }

func (l *loader) readParameters(f yamlfile.Field) {
	l.global = &scope{loader: l, params: map[string]units.Value{}}
	var names []string
	for _, f := range l.optional(f, "parameters") {
		names = append(names, f.Key)
		l.readParameter(f)
	}

	for i, a := range l.set {
		switch {
		case !slices.Contains(names, a.Name):
			l.FailAt(f.At, "set %v: the plant has no parameter %q%s", a, a.Name, units.Meant(a.Name, names))
		case slices.ContainsFunc(l.set[:i], func(b Assignment) bool { return a.Name == b.Name }):
			l.FailAt(f.At, "set %v: %s is set twice", a, a.Name)
		}
	}
}

// readParameter reads "J: 1.2 kg.m2" or "J: {value: 1.2 kg.m2, min: 1 kg.m2, max: 2 kg.m2, tune: true}".
func (l *loader) readParameter(f yamlfile.Field) {
	what := fmt.Sprintf("parameter %q", f.Key)
	if !units.IsName(f.Key, false) || f.Key == "pi" {
		l.FailAt(f.KeyAt, "%s: not a name for a parameter (letters, digits and _; not pi)", what)
	}
	value, fields := f, map[string]yamlfile.Field(nil)
	if yamlfile.IsMapping(f.Node) {
		fields = l.Section(f, what, "value", "min", "max", "tune")
		if value = fields["value"]; value.IsMissing() {
			l.FailAt(f.At, "%s: value is missing", what)
		}
	}

	v := l.global.parameter(value, what)
	want := units.Want(v.Spelled())
	p := network.Parameter{Port: units.Port{Name: f.Key, Unit: want.SI, Declared: declared(want)}}
	l.readRange(&p.Port, fields, what, want)
	if tune, ok := fields["tune"]; ok {
		p.Tunable = l.Choice(tune, what+": tune", "true", "false") == "true"
	}
	if p.Tunable && (math.IsInf(p.Min, 0) || math.IsInf(p.Max, 0)) {
		l.FailAt(f.At, "%s: tune needs min and max", what)
	}

	if i := slices.IndexFunc(l.set, func(a Assignment) bool { return a.Name == f.Key }); i >= 0 {
		v, what = l.assigned(l.set[i], v, value.At), "set "+l.set[i].String()
	}
	if !(v.SI >= p.Min && v.SI <= p.Max) {
		l.FailAt(value.At, "%s: %s is outside %s", what, want.Format(v.SI), want.FormatRange(p.Min, p.Max))
	}

	p.Value = v.SI
	l.Network.Parameters = append(l.Network.Parameters, p)
	l.global.params[f.Key] = v
}

// assigned returns the value of an assignment to a parameter; base is the value in the file.
func (l *loader) assigned(a Assignment, base units.Value, at yamlfile.Pos) units.Value {
	v, err := units.Evaluate(a.Value, l.global.params)
	if err != nil {
		l.FailAt(at, "set %v: %s", a, l.global.explain(err))
	}
	si, err := v.Typed(a.Value, units.Want(base.Spelled()))
	if err != nil {
		l.FailAt(at, "set %v: %s", a, units.Reason(err))
	}
	v, _ = v.Like(base)
	v.SI = si
	return v
}
