package ecu

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Parameter is a number of a control unit that can be set, to tune it.
type Parameter struct {
	Name        string
	Unit        string // "" of none; values are given without it
	Least, Most float64
	Value       *float64 // in a law; what it holds at first is the default
}

// Setting gives a parameter a value, in the parameter's unit.
type Setting struct {
	Name  string
	Value float64
}

// String is the setting as ParseSetting reads it.
func (s Setting) String() string { return s.Name + "=" + strconv.FormatFloat(s.Value, 'g', -1, 64) }

// ParseSetting reads NAME=VALUE.
func ParseSetting(text string) (Setting, error) {
	name, number, ok := strings.Cut(text, "=")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || name == "" || err != nil {
		return Setting{}, fmt.Errorf("ecu: %q is not NAME=VALUE with a bare number, like slip=0.14", text)
	}
	return Setting{name, v}, nil
}

// Check says what is wrong with settings of the control unit called name.
func Check(name string, list []Setting) error {
	_, err := NewStepped(name, nil, io.Discard, list...)
	return err
}

// Parameters are those of the control unit called name, with their defaults; nil where it
// has none.
func Parameters(name string) []Parameter {
	k, err := find(name)
	if err != nil {
		return nil
	}
	return k.begin(&session{}).parameters()
}

// Describe lists the parameters of the control unit called name with their defaults.
func Describe(name string) string { return describe(Parameters(name)) }

// set gives the parameters of a law their values.
func set(name string, list []Parameter, settings []Setting) error {
	for i, s := range settings {
		at := slices.IndexFunc(list, func(p Parameter) bool { return p.Name == s.Name })
		switch {
		case at < 0 && len(list) == 0:
			return fmt.Errorf("ecu: %s has no parameters to set, and so no %s", name, s.Name)
		case at < 0:
			return fmt.Errorf("ecu: %s has no parameter %q; it has %s", name, s.Name, describe(list))
		case slices.ContainsFunc(settings[:i], func(o Setting) bool { return o.Name == s.Name }):
			return fmt.Errorf("ecu: %s is set twice", s.Name)
		}

		p := list[at]
		if !(s.Value >= p.Least && s.Value <= p.Most) {
			return fmt.Errorf("ecu: %s of %s: %g is not from %g to %g%s",
				p.Name, name, s.Value, p.Least, p.Most, spaced(p.Unit))
		}

		*p.Value = s.Value
	}

	return nil
}

func describe(list []Parameter) string {
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
