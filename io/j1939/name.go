package j1939

import (
	"fmt"
	"strings"
)

// Name is the unique 64-bit NAME of a node; of two nodes that claim an address, the one
// with the lower NAME gets it. SAE J1939-81, 4.1.1.
type Name uint64

// Part is a bit field of a NAME.
type Part struct {
	Key   string // key in a bench file
	Shift uint8  // position of the lowest bit in the NAME
	Bits  uint8  // number of bits
}

// Parts lists the parts of a NAME from the lowest bit up. Bit 48 is reserved. Bit 63 marks a node
// that can take another address when it loses its own; a Node never does.
func Parts() []Part {
	return []Part{
		{"identity", 0, 21},          // serial number of the control unit
		{"manufacturer", 21, 11},     // manufacturer code; SAE J1939 appendix B, table B10
		{"ecu_instance", 32, 3},      // index among several control units with one function
		{"function_instance", 35, 5}, // index among several instances of the function
		{"function", 40, 8},          // table B11; codes below 128 are common to all industries
		{"vehicle_system", 49, 7},
		{"system_instance", 56, 4}, // index among several vehicle systems
		{"industry_group", 60, 3},  // 0: all, 1: on-highway
	}
}

// Max returns the highest value of the part.
func (p Part) Max() int { return 1<<p.Bits - 1 }

// Value returns the value of the part in a NAME.
func (p Part) Value(n Name) int { return int(n>>p.Shift) & p.Max() }

// String returns the NAME in hexadecimal.
func (n Name) String() string { return fmt.Sprintf("%016X", uint64(n)) }

// Function is a code of SAE J1939's table of functions with a name for bench files.
type Function struct {
	Name  string
	Value uint8
}

// Functions lists the functions of a driveline.
func Functions() []Function {
	return []Function{
		{"engine", 0}, {"transmission", 3}, {"shift_console", 5}, {"axle_drive", 8}, {"brakes", 9},
		{"brakes_steer", 10}, {"brakes_drive", 11}, {"retarder_engine", 12}, {"retarder_driveline", 13},
	}
}

// Describe returns function and other parts in words: "brakes, manufacturer 0, identity 7".
func (n Name) Describe() string {
	text := []string{""}
	for _, p := range Parts() {
		v := p.Value(n)
		switch {
		case p.Key == "function":
			text[0] = fmt.Sprintf("function %d", v)
			for _, f := range Functions() {
				if int(f.Value) == v {
					text[0] = f.Name
				}
			}
		case v != 0, p.Key == "manufacturer", p.Key == "identity":
			text = append(text, fmt.Sprintf("%s %d", strings.ReplaceAll(p.Key, "_", " "), v))
		}
	}

	return strings.Join(text, ", ")
}
