package units

import "fmt"

// Wanted is the unit that a value is asked in; a bare number counts in it.
type Wanted struct {
	Unit
	Spelled string
}

// Want is a known unit as wanted.
func Want(spelled string) Wanted {
	u, _ := Parse(spelled)
	return Wanted{u, spelled}
}

// Format prints an SI value in the wanted unit.
func (w Wanted) Format(si float64) string {
	return Format(si/w.Factor, w.Spelled)
}

// Format prints "3 bar", and a bare number alone.
func Format(x float64, unit string) string {
	if spell(unit) == "1" {
		return fmt.Sprintf("%.9g", x)
	}
	return fmt.Sprintf("%.9g %s", x, unit)
}

// DropRounding drops what is rounding in a difference.
func DropRounding(v float64) float64 {
	out := v
	if _, err := fmt.Sscan(fmt.Sprintf("%.9g", v), &out); err != nil {
		return v
	}
	return out
}
