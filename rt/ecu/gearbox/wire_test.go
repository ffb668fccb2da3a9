package gearbox

import (
	"bytes"
	"testing"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit/unittest"
)

func TestPressureFrameMatchesAHandCalculation(t *testing.T) {
	// pressure_C5  8.5  bar =  850 = 0x352, bits  0..11
	// pressure_C6 18    bar = 1800 = 0x708, bits 12..23
	// pressure_C7  0.01 bar =    1 = 0x001, bits 24..35
	// pressure_C8 40    bar = 4000 = 0xFA0, bits 36..47
	// bits 48..51 are unused, counter_P2 15 = 0xF, bits 52..55
	//
	// byte 0  52    low byte of 0x352
	// byte 1  83    low digit of 0x708 in the high half, 3 of 0x352 in the low one
	// byte 2  70    upper digits of 0x708
	// byte 3  01    low byte of 0x001
	// byte 4  00    low digit of 0xFA0, high digit of 0x001
	// byte 5  FA    upper digits of 0xFA0
	// byte 6  F0    counter, unused
	// byte 7  00
	want := can.Frame{ID: 0x111, Length: 8, Data: [8]uint8{0x52, 0x83, 0x70, 0x01, 0x00, 0xFA, 0xF0, 0x00}}
	if got := encode(idPressure2, [4]float64{8.5, 18, 0.01, 40}, 15); got != want {
		t.Errorf("encode = % X, want % X", got, want)
	}
}

func TestPressureIsRoundedAndLimitedToItsField(t *testing.T) {
	// 41 bar is more than 40 bar = 4000 = 0xFA0; -1 bar is 0.
	// 0.004 bar rounds to 0, 0.006 bar to 1; the counter 17 wraps to 1.
	want := can.Frame{ID: 0x110, Length: 8, Data: [8]uint8{0xA0, 0x0F, 0x00, 0x00, 0x10, 0x00, 0x10, 0x00}}
	if got := encode(idPressure1, [4]float64{41, -1, 0.004, 0.006}, 17); got != want {
		t.Errorf("encode = % X, want % X", got, want)
	}
}

func TestSpeedsFrameMatchesAHandCalculation(t *testing.T) {
	// w1  100    rad/s / 0.02  =  5000 = 0x1388,                         bits  0..14
	// w2  -33.33 rad/s / 0.01  = -3333 = 0x8000 - 0x0D05 = 0x72FB,       bits 15..29
	// w3    8.335 rad/s / 0.005 = 1667 = 0x0683,                         bits 30..44
	// w4   -2.083 rad/s / 0.001 = -2083 = 0x8000 - 0x0823 = 0x77DD,      bits 45..59
	// counter_S 3, bits 60..63
	//
	//	0x0000000000001388   0x1388
	//	0x00000000397D8000   0x72FB << 15
	//	0x000001A0C0000000   0x0683 << 30
	//	0x0EFBA00000000000   0x77DD << 45
	//	0x3000000000000000   3 << 60
	//	0x3EFBA1A0F97D9388   all together, lowest byte first on the wire
	f := can.Frame{ID: 0x200, Length: 8, Data: [8]uint8{0x88, 0x93, 0x7D, 0xF9, 0xA0, 0xA1, 0xFB, 0x3E}}
	raw := [4]float64{5000, -3333, 1667, -2083}
	got := decodeSpeeds(&f)
	for i := range got {
		if got[i] != raw[i]*radPerBit[i] {
			t.Errorf("w%d = %v rad/s, want %v", i+1, got[i], raw[i]*radPerBit[i])
		}
	}
}

func TestStatusFrameMatchesAHandCalculation(t *testing.T) {
	// Three bits each from bit 0: C1 stuck 000, C2 free 010, C3 stuck 000,
	// C4 free 010, C5 free 010, C6 backward -1 = 111, C7 free 010, C8 forward 001.
	//
	//	0x000010  010 << 3
	//	0x000400  010 << 9
	//	0x002000  010 << 12
	//	0x038000  111 << 15
	//	0x080000  010 << 18
	//	0x200000  001 << 21
	//	0x2BA410
	//
	// lag 1 ms = 1000 = 0x03E8 in bytes 3 and 4, counter_A 9 in the top of byte 7.
	f := can.Frame{ID: 0x202, Length: 8, Data: [8]uint8{0x10, 0xA4, 0x2B, 0xE8, 0x03, 0x00, 0x00, 0x90}}
	want := [8]int8{0, 2, 0, 2, 2, -1, 2, 1}
	if got := decodeStatus(&f); got != want {
		t.Errorf("decodeStatus = %v, want %v", got, want)
	}
}

func TestOtherFramesAreNotTakenForSpeeds(t *testing.T) {
	for name, f := range map[string]can.Frame{
		"short":     {ID: 0x200, Length: 7},
		"too long":  {ID: 0x200, Length: 64},
		"other":     {ID: 0x201, Length: 8},
		"29 bits":   {ID: 0x200 | can.MaskEff, Length: 8},
		"remote":    {ID: 0x200 | can.MaskRtr, Length: 8},
		"bus error": {ID: 0x200 | can.MaskErr, Length: 8},
	} {
		u := newUnit(t, "powershift", &bytes.Buffer{}, &bytes.Buffer{})
		if u.Receive(unittest.Pack(t, f), 0); u.Awake {
			t.Errorf("%s: frame % X was taken for Speeds", name, f)
		}
	}
}
