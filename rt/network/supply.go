package network

import (
	"fmt"
	"math"
	"strings"

	"lockstep/model/units"
)

// Supply is a state of the supply of the unit under test: off, on, or a voltage in steps of 10 mV.
type Supply uint16

// The supplies without a voltage.
const (
	SupplyOff Supply = 0
	SupplyOn  Supply = math.MaxUint16 // at the voltage of the supply's own setting
)

// MaxVolts is the largest voltage of a Supply, V.
const MaxVolts = 600

// ParseSupply reads off, on, or a voltage like "9 V".
func ParseSupply(text string) (Supply, error) {
	switch text {
	case "off":
		return SupplyOff, nil
	case "on":
		return SupplyOn, nil
	}
	v, err := units.Typed(text, "V")
	if err != nil || !(v > 0 && v <= MaxVolts) {
		return 0, fmt.Errorf("%.40q is neither off, on, nor a voltage up to %d V, like 9 V", strings.TrimSpace(text), MaxVolts)
	}
	return Supply(max(1, math.RoundToEven(float64(v*100)))), nil
}

// Volts returns the voltage, V; ok is false for off and on.
func (s Supply) Volts() (v float64, ok bool) {
	return float64(s) / 100, s != SupplyOff && s != SupplyOn
}

// String returns the supply as commands have it.
func (s Supply) String() string {
	switch s {
	case SupplyOff:
		return "off"
	case SupplyOn:
		return "on"
	}
	return fmt.Sprintf("%g V", float64(s)/100)
}
