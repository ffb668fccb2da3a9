package unit

import (
	"fmt"
	"slices"
	"strings"
)

// Parameter is a tunable number of a control unit.
type Parameter struct {
	Name        string
	Unit        string   // unit of measure, "bar/(m/s)"; "": none
	Least, Most float64  // valid range
	Value       *float64 // value in the law, at first the default
}

// NewParameter returns a parameter with its name, its unit of measure, "" for none, its valid range and its value in the
// law.
func NewParameter(name, measure string, least, most float64, value *float64) Parameter {
	return Parameter{Name: name, Unit: measure, Least: least, Most: most, Value: value}
}

// Setting is a value of a parameter, in the parameter's unit of measure.
type Setting struct {
	Name  string
	Value float64
}

// Parameters returns the parameters of a control unit of the type, with their defaults; nil if it has none.
func (k Type) Parameters() []Parameter { return k.New(&Base{}).Parameters() }

// set sets the parameters of a law.
func set(name string, list []Parameter, settings []Setting) error {
	for i, s := range settings {
		at := slices.IndexFunc(list, func(p Parameter) bool { return p.Name == s.Name })
		switch {
		case at < 0 && len(list) == 0:
			return fmt.Errorf("ecu: %s has no parameters; remove %s", name, s.Name)
		case at < 0:
			return fmt.Errorf("ecu: %s has no parameter %q; it has %s", name, s.Name, Describe(list))
		case slices.ContainsFunc(settings[:i], func(o Setting) bool { return o.Name == s.Name }):
			return fmt.Errorf("ecu: %s is set twice", s.Name)
		}

		p := list[at]
		if !(s.Value >= p.Least && s.Value <= p.Most) {
			return fmt.Errorf("ecu: %s of %s: %.9g%s is not from %g to %g%s",
				p.Name, name, s.Value, spaced(p.Unit), p.Least, p.Most, spaced(p.Unit))
		}

		*p.Value = s.Value
	}

	return nil
}

// Describe lists parameters with their values, "slip (0.12), margin (0.05 m/s)".
func Describe(list []Parameter) string {
	var names []string
	for _, p := range list {
		names = append(names, fmt.Sprintf("%s (%g%s)", p.Name, *p.Value, spaced(p.Unit)))
	}
	return strings.Join(names, ", ")
}

func spaced(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}
