// Package tir owns the format of tyre property files (.tir): sections of KEY = VALUE lines, with $ and ! before
// comments (TNO, MF-Tyre/MF-Swift user manual; Pacejka, Tyre and Vehicle Dynamics, 3rd ed., app. 3). It does not know
// what a key means, except for those of the section UNITS.
package tir

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// File is a tyre property file.
type File struct {
	Name   string           // in errors
	Values map[string]Value // by key, in upper case; keys of the section UNITS are not among them
	Units  map[string]Value // section UNITS: LENGTH, FORCE, ANGLE, MASS, TIME, PRESSURE
}

// Value is the value of a key.
type Value struct {
	Text   string  // without quotes
	Number float64 // NaN: the value is no number
	Line   int     // from 1
}

// maxSize is the largest file, bytes.
const maxSize = 1 << 20

// Parse reads a file; name stands in errors, "NAME:LINE: tir: ...". A number that is not finite, a key that comes
// twice and a line of another form are errors. Rows of a table, as in the section SHAPE, are skipped.
func Parse(name string, data []byte) (*File, error) {
	if len(data) > maxSize {
		return nil, fmt.Errorf("%s: tir: %d bytes; a tyre property file has at most %d", name, len(data), maxSize)
	}
	f := &File{Name: name, Values: map[string]Value{}, Units: map[string]Value{}}
	section, number := "", 0
	for line := range strings.Lines(string(data)) {
		number++
		text := strings.TrimSpace(withoutComment(line))
		switch {
		case text == "" || text[0] == '{' || section != "" && isRow(text):
			continue
		case text[0] == '[':
			end := strings.IndexByte(text, ']')
			if end < 0 || strings.TrimSpace(text[end+1:]) != "" {
				return nil, f.Errorf(number, "%.40q is not a section, such as [UNITS]", text)
			}
			section = strings.ToUpper(strings.TrimSpace(text[1:end]))
			continue
		}
		if err := f.add(section, text, number); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// add adds a line KEY = VALUE of a section.
func (f *File) add(section, text string, line int) error {
	key, value, ok := strings.Cut(text, "=")
	key, value = strings.ToUpper(strings.TrimSpace(key)), strings.TrimSpace(value)
	if !ok || key == "" || strings.ContainsAny(key, " \t'") || value == "" {
		return f.Errorf(line, "%.40q is not KEY = VALUE", text)
	}
	v := Value{Text: value, Number: math.NaN(), Line: line}
	if value[0] == '\'' || value[0] == '"' {
		if len(value) < 2 || value[len(value)-1] != value[0] {
			return f.Errorf(line, "%s: %.40s: the closing quote is missing", key, value)
		}
		v.Text = strings.TrimSpace(value[1 : len(value)-1])
	} else if x, err := strconv.ParseFloat(value, 64); err == nil || isRange(err) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return f.Errorf(line, "%s: %.40s is not a finite number", key, value)
		}
		v.Number = x
	}
	into := f.Values
	if section == "UNITS" {
		into = f.Units
	}
	if first, twice := into[key]; twice {
		return f.Errorf(line, "%s is already in line %d", key, first.Line)
	}
	into[key] = v
	return nil
}

// isRange reports whether a number is too large.
func isRange(err error) bool { return strings.Contains(err.Error(), strconv.ErrRange.Error()) }

// Errorf returns an error with the location of a line.
func (f *File) Errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: tir: %s", f.Name, line, fmt.Sprintf(format, args...))
}

// withoutComment returns a line up to $ or !, which in quotes begin no comment.
func withoutComment(line string) string {
	quote := byte(0)
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '$' || c == '!':
			return line[:i]
		}
	}
	return line
}

// isRow reports whether a text is a row of numbers.
func isRow(text string) bool {
	for _, field := range strings.Fields(text) {
		if _, err := strconv.ParseFloat(field, 64); err != nil {
			return false
		}
	}
	return true
}

// factors are the sizes of units in SI, by the key of the section UNITS.
var factors = map[string]map[string]float64{
	"LENGTH": {"meter": 1, "m": 1, "mm": 1e-3, "cm": 1e-2, "km": 1e3, "inch": 0.0254, "foot": 0.3048},
	"FORCE": {"newton": 1, "n": 1, "kilonewton": 1e3, "knewton": 1e3, "kn": 1e3, "pound_force": 4.4482216152605,
		"lbf": 4.4482216152605, "kg_force": 9.80665, "kgf": 9.80665},
	"ANGLE": {"radians": 1, "radian": 1, "rad": 1, "degrees": math.Pi / 180, "degree": math.Pi / 180, "deg": math.Pi / 180},
}

// Unit returns the size of a unit in SI: of LENGTH in m, FORCE in N or ANGLE in rad. It is 1 where the section UNITS
// does not name it.
func (f *File) Unit(key string) (float64, error) {
	v, ok := f.Units[key]
	if !ok {
		return 1, nil
	}
	size, ok := factors[key][strings.ToLower(v.Text)]
	if !ok {
		return 0, f.Errorf(v.Line, "%s: unit %.40q is not known", key, v.Text)
	}
	return size, nil
}
