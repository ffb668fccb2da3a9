package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Typed evaluates text that a person types for a quantity whose declared unit is unit, and returns
// it in SI. It is Quantity with the rule for typed text: a number without a unit is refused unless
// unit is 1; 0 needs no unit except as a temperature.
func Typed(text, unit string) (float64, error) {
	w, err := ParseWanted(unit)
	if err != nil {
		return 0, err
	}
	return w.Typed(text)
}

// Typed is the function Typed for a quantity in w.
func (w Wanted) Typed(text string) (float64, error) {
	v, err := w.evaluate(text)
	if err == nil {
		v.SI, err = v.Typed(text, w)
	}
	if err != nil {
		return 0, fmt.Errorf("model: %w", err)
	}
	return v.SI, nil
}

// Beside evaluates text whose unit is stated beside it, as for a table: a number without a unit is in w.
func (w Wanted) Beside(text string) (float64, error) {
	v, err := w.evaluate(text)
	if err == nil {
		v.SI, err = v.In(w)
	}
	if err != nil {
		return 0, fmt.Errorf("model: %w", err)
	}
	return v.SI, nil
}

func (w Wanted) evaluate(text string) (Value, error) {
	if w.unknown {
		text = strings.TrimSuffix(text, " "+w.Spelled)
	}
	return Evaluate(text, nil)
}

// SpellColumns returns the units that a table states for its columns.
func SpellColumns(stated []string, columns ...Wanted) ([]Wanted, error) {
	if len(stated) != len(columns) {
		return nil, fmt.Errorf("model: the table has %d columns, got %d units", len(columns), len(stated))
	}
	for i, unit := range stated {
		var err error
		if columns[i], err = columns[i].Spell(unit); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// Typed is In with the rule for typed text; v is the value of text.
func (v Value) Typed(text string, want Wanted) (float64, error) {
	zero := v.SI == 0 && (want.Dim != Dim{4: 1} || want.difference)
	switch {
	case !v.Bare || want.TakesBare():
		return v.In(want)
	case zero:
		return 0, nil
	}

	return 0, &MissingUnit{Text: text, Unit: want.Spelled}
}

// TakesBare reports whether a quantity in w is a number without a unit.
func (w Wanted) TakesBare() bool {
	return w.unknown || w.Spelled == "" || w.Spelled == "-" || w.Spelled == "1" // "%" is a unit: 30 or 0.3?
}

// MissingUnit is the error for a typed number without the unit that its quantity needs.
type MissingUnit struct{ Text, Unit string }

func (m *MissingUnit) Error() string {
	text := strings.TrimSpace(m.Text)
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return fmt.Sprintf("%s needs a unit, such as %s", text, m.Unit)
	case m.Unit == "s": // of a time, both are usual
		return fmt.Sprintf("%s needs a unit: %s ms or %s s?", text, text, text)
	case m.Unit == "rad":
		return fmt.Sprintf("%s needs a unit: %s deg or %s rad?", text, text, text)
	case m.Unit == "%" && math.Abs(x) <= 1: // a share of 1 is meant, perhaps
		return fmt.Sprintf("%s needs a unit: %s %% or %.9g %%?", text, text, float64(100*x))
	}
	if under, ok := strings.CutPrefix(m.Unit, "1/"); ok {
		return fmt.Sprintf("%s needs a unit: %s/%s?", text, text, under)
	}
	return fmt.Sprintf("%s needs a unit: %s?", text, WithUnit(text, m.Unit))
}
