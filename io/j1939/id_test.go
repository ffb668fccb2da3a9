package j1939_test

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"lockstep/io/can"
	"lockstep/io/j1939"
)

// Identifiers of Detroit Diesel's DDEC VI manual and of SAE J1939-21's examples.
func TestIdentifiersOfPublishedMessagesAreParsed(t *testing.T) {
	for bits, want := range map[uint32]j1939.ID{
		0x0CF00400: {Priority: 3, PGN: 61444, Destination: j1939.Global, Source: 0},   // EEC1
		0x0C000003: {Priority: 3, PGN: 0, Destination: 0, Source: 3},                  // TSC1, transmission to engine
		0x0C010305: {Priority: 3, PGN: 256, Destination: 3, Source: 5},                // TC1
		0x0CF00203: {Priority: 3, PGN: 61442, Destination: j1939.Global, Source: 3},   // ETC1
		0x18F00503: {Priority: 6, PGN: 61445, Destination: j1939.Global, Source: 3},   // ETC2
		0x18F0010B: {Priority: 6, PGN: 61441, Destination: j1939.Global, Source: 11},  // EBC1
		0x18FEBF0B: {Priority: 6, PGN: 65215, Destination: j1939.Global, Source: 11},  // EBC2
		0x08FE6E0B: {Priority: 2, PGN: 65134, Destination: j1939.Global, Source: 11},  // HRW
		0x18FEF100: {Priority: 6, PGN: 65265, Destination: j1939.Global, Source: 0},   // CCVS1
		0x18EEFF03: {Priority: 6, PGN: 60928, Destination: j1939.Global, Source: 3},   // address claimed
		0x18EA0BF9: {Priority: 6, PGN: 59904, Destination: 11, Source: 0xF9},          // request
		0x1DF11903: {Priority: 7, PGN: 0x1F119, Destination: j1939.Global, Source: 3}, // data page 1
	} {
		if got := j1939.ParseID(bits); got != want {
			t.Errorf("%08X is %+v, want %+v", bits, got, want)
		}
		if got := want.Bits(); got != bits|can.EFF {
			t.Errorf("%+v is %08X, want %08X", want, got, bits|can.EFF)
		}
	}
}

func TestParseIDAndBitsAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.Uint32Range(0, can.MaskEFF).Draw(t, "identifier")
		if back := j1939.ParseID(bits).Bits(); back != bits|can.EFF {
			t.Fatalf("%08X comes back as %08X", bits, back)
		}
	})
}

// One NAME with ones in a single part at a time: SAE J1939-81, figure 1.
func TestEveryPartOfANameHasItsStandardBits(t *testing.T) {
	want := map[string]j1939.Name{
		"identity":          0x00000000001FFFFF,
		"manufacturer":      0x00000000FFE00000,
		"ecu_instance":      0x0000000700000000,
		"function_instance": 0x000000F800000000,
		"function":          0x0000FF0000000000,
		"vehicle_system":    0x00FE000000000000,
		"system_instance":   0x0F00000000000000,
		"industry_group":    0x7000000000000000,
	}
	for _, p := range j1939.Parts() {
		ones := j1939.Name(p.Max()) << p.Shift
		if ones != want[p.Key] {
			t.Errorf("%s is %v, want %v", p.Key, ones, want[p.Key])
		}
		if p.Value(ones) != p.Max() || p.Value(^ones) != 0 {
			t.Errorf("%s: %d of %v, %d of %v", p.Key, p.Value(ones), ones, p.Value(^ones), ^ones)
		}
		delete(want, p.Key)
	}
	if len(want) > 0 {
		t.Errorf("no part is %v", want)
	}
	if got := j1939.Name(9<<40 | 7 | 1<<35).Describe(); got != "brakes, identity 7, manufacturer 0, function instance 1" {
		t.Errorf("about: %q", got)
	}
}

func TestFiltersPassClaimsAndRequestsOnly(t *testing.T) {
	passes := func(id uint32) bool {
		for _, f := range j1939.Filters(j1939.PGNClaim, j1939.PGNRequest, j1939.PGNConnection, j1939.PGNPacket) {
			if id&f.Mask == f.ID&f.Mask {
				return true
			}
		}
		return false
	}
	for id, want := range map[uint32]bool{
		can.EFF | 0x18EEFF03: true, can.EFF | 0x18EA0BF9: true, can.EFF | 0x18EAFF00: true, can.EFF | 0x0CEEFF03: true,
		0x18EEFF03 & can.MaskSFF: false, can.EFF | can.RTR | 0x18EEFF03: false, can.EFF | 0x18EDFF03: false,
		can.EFF | 0x18FEEE03: false, can.EFF | 0x19EEFF03: false, // another data page
	} {
		if passes(id) != want {
			t.Errorf("%08X: passes %v", id, !want)
		}
	}
}

// claimOf returns the address and the NAME of a claim.
func claimOf(t interface{ Fatalf(string, ...any) }, f *can.Frame) (uint8, j1939.Name) {
	id := j1939.ParseID(f.ID)
	if id.PGN != j1939.PGNClaim || id.Destination != j1939.Global || id.Priority != 6 || f.Len != 8 || f.ID&can.EFF == 0 {
		t.Fatalf("%08X with %d bytes is no claim", f.ID, f.Len)
	}
	return id.Source, j1939.Name(binary.LittleEndian.Uint64(f.Data[:]))
}
