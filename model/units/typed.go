package units

import (
	"fmt"
	"strconv"
	"strings"
)

// Typed evaluates text that a person types for a quantity whose declared unit is unit, and returns
// it in SI. It is Quantity with the rule for typed text: a number without a unit is refused unless
// unit is 1; 0 needs no unit except as a temperature.
func Typed(text, unit string) (float64, error) {
	si, err := typed(text, unit)
	if err != nil {
		return 0, fmt.Errorf("model: %w", err)
	}
	return si, nil
}

func typed(text, unit string) (float64, error) {
	celsius := unit == "degC" || unit == "°C"
	spelled := unit
	if celsius {
		spelled = "K"
	}
	u, err := Parse(spelled)
	if err != nil {
		return 0, err
	}
	v, err := Evaluate(text, nil)
	if err != nil {
		return 0, err
	}

	bare := spelled == "" || spelled == "-" || spelled == "1" // "%" is a unit: 30 or 0.3?
	zero := v.SI == 0 && u.Dim != Dim{4: 1}
	if v.Bare && !bare && !zero {
		return 0, &MissingUnit{Text: text, Unit: unit}
	}
	return v.In(Wanted{u, unit})
}

// MissingUnit is the error for a typed number without the unit that its quantity needs.
type MissingUnit struct{ Text, Unit string }

func (m *MissingUnit) Error() string {
	text := strings.TrimSpace(m.Text)
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return fmt.Sprintf("%s needs a unit, such as %s", text, m.Unit)
	}
	return fmt.Sprintf("%s needs a unit: %s?", text, WithUnit(text, m.Unit))
}
