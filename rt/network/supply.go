package network

import (
	"fmt"
	"math"
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
