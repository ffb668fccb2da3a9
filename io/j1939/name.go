package j1939

import (
	"fmt"
	"strings"
)

// Name is the 64-bit NAME of a node, which no other node has; of two nodes that claim
// an address the one with the lower NAME gets it. SAE J1939-81, 4.1.1.
type Name uint64

// Fields are the parts of a NAME, the one that decides last first.
type Fields struct {
	Identity         uint32 // number of this very unit, 21 bits
	Manufacturer     uint16 // its maker, 11 bits; SAE J1939 appendix B, table B10
	ECUInstance      uint8  // which of several units with one function, 3 bits
	FunctionInstance uint8  // which of several of the function, 5 bits
	Function         uint8  // table B11; below 128 the same in every industry
	VehicleSystem    uint8  // 7 bits
	SystemInstance   uint8  // which of several, 4 bits
	IndustryGroup    uint8  // 0: all, 1: on-highway; 3 bits
	Arbitrary        bool   // the node can take another address when it loses its own
}

// part is where a field lies in a NAME.
type part struct {
	name   string
	at, n  uint8 // lowest bit, and how many
	field  func(*Fields) uint64
	assign func(*Fields, uint64)
}

// parts lists the fields of a NAME; bit 48 is reserved.
func parts() []part {
	return []part{
		{"identity", 0, 21, func(f *Fields) uint64 { return uint64(f.Identity) }, func(f *Fields, v uint64) { f.Identity = uint32(v) }},
		{"manufacturer", 21, 11, func(f *Fields) uint64 { return uint64(f.Manufacturer) }, func(f *Fields, v uint64) { f.Manufacturer = uint16(v) }},
		{"ecu_instance", 32, 3, func(f *Fields) uint64 { return uint64(f.ECUInstance) }, func(f *Fields, v uint64) { f.ECUInstance = uint8(v) }},
		{"function_instance", 35, 5, func(f *Fields) uint64 { return uint64(f.FunctionInstance) }, func(f *Fields, v uint64) { f.FunctionInstance = uint8(v) }},
		{"function", 40, 8, func(f *Fields) uint64 { return uint64(f.Function) }, func(f *Fields, v uint64) { f.Function = uint8(v) }},
		{"vehicle_system", 49, 7, func(f *Fields) uint64 { return uint64(f.VehicleSystem) }, func(f *Fields, v uint64) { f.VehicleSystem = uint8(v) }},
		{"system_instance", 56, 4, func(f *Fields) uint64 { return uint64(f.SystemInstance) }, func(f *Fields, v uint64) { f.SystemInstance = uint8(v) }},
		{"industry_group", 60, 3, func(f *Fields) uint64 { return uint64(f.IndustryGroup) }, func(f *Fields, v uint64) { f.IndustryGroup = uint8(v) }},
	}
}

const arbitrary Name = 1 << 63

// Name puts the fields together; one that has more bits than its place is an error.
func (f Fields) Name() (Name, error) {
	var n Name
	for _, p := range parts() {
		v := p.field(&f)
		if v>>p.n != 0 {
			return 0, fmt.Errorf("j1939: NAME: %s %d is beyond its %d bits, %d at most", p.name, v, p.n, 1<<p.n-1)
		}
		n |= Name(v << p.at)
	}
	if f.Arbitrary {
		n |= arbitrary
	}
	return n, nil
}

// Fields takes the NAME apart.
func (n Name) Fields() (f Fields) {
	for _, p := range parts() {
		p.assign(&f, uint64(n)>>p.at&(1<<p.n-1))
	}
	f.Arbitrary = n&arbitrary != 0
	return f
}

// String is the NAME in hexadecimal.
func (n Name) String() string { return fmt.Sprintf("%016X", uint64(n)) }

// Function is a number of SAE J1939's table of functions with a word for it.
type Function struct {
	Word  string
	Value uint8
}

// Functions lists those of a driveline.
func Functions() []Function {
	return []Function{{"engine", 0}, {"transmission", 3}, {"shift_console", 5}, {"axle_drive", 8}, {"brakes", 9},
		{"brakes_steer", 10}, {"brakes_drive", 11}, {"retarder_engine", 12}, {"retarder_driveline", 13}}
}

// About says in words whose NAME it is: "brakes, manufacturer 0, identity 7".
func (n Name) About() string {
	f := n.Fields()
	text := []string{fmt.Sprintf("function %d", f.Function)}
	for _, k := range Functions() {
		if k.Value == f.Function {
			text[0] = k.Word
		}
	}
	for _, p := range parts() {
		if v := p.field(&f); v != 0 && p.name != "function" || p.name == "manufacturer" || p.name == "identity" {
			text = append(text, fmt.Sprintf("%s %d", strings.ReplaceAll(p.name, "_", " "), v))
		}
	}
	return strings.Join(text, ", ")
}
