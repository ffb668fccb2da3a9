package j1939

import (
	"reflect"
	"strings"
	"testing"
)

// The example of SAE J1939-73: SPN 1208, FMI 3, 10 times is B8 04 03 0A. 524287, 31 are the largest numbers.
func TestTroubleCodesAreDecoded(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
		n    int
	}{
		{"one", []byte{0x44, 0xFF, 0xB8, 0x04, 0x03, 0x0A, 0xFF, 0xFF}, "malfunction lamp on; amber warning lamp on; SPN 1208 FMI 3, 10 times", 1},
		{"none", []byte{0, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF}, "", 0},
		{"none, older", []byte{0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, "", 0},
		{"two", []byte{0x11, 0, 0xB8, 4, 3, 10, 0xFF, 0xFF, 0xFF, 0x7F}, "red stop lamp on; protect lamp on; SPN 1208 FMI 3, 10 times; SPN 524287 FMI 31", 2},
		{"old order", []byte{0, 0, 1, 0, 0, 0x81}, "SPN 1 FMI 0, 1 times, in the order of bits before version 4", 1},
	} {
		d, err := ParseTroubleCodes(c.data)
		list := d.Lamps()
		for _, code := range d.Codes {
			list = append(list, code.String())
		}
		if text := strings.Join(list, "; "); err != nil || text != c.want || len(d.Codes) != c.n {
			t.Errorf("%s: %q, %v", c.name, text, err)
		}
	}
	for _, n := range []int{0, 5, 7, 9, 11} {
		if d, err := ParseTroubleCodes(make([]byte, n)); err == nil {
			t.Errorf("%d bytes: %v", n, d)
		}
	}
}

func TestFreezeFramesAreDecoded(t *testing.T) {
	frames, err := ParseFreezeFrames([]byte{6, 0xB8, 4, 3, 10, 1, 2, 4, 1, 0, 2, 5, 0, 0})
	want := []FreezeFrame{{TroubleCode{SPN: 1208, FMI: 3, Occurrences: 10}, []byte{1, 2}}, {TroubleCode{SPN: 1, FMI: 2, Occurrences: 5}, []byte{}}}
	if err != nil || !reflect.DeepEqual(frames, want) {
		t.Errorf("%+v, %v", frames, err)
	}
	if frames, err = ParseFreezeFrames(make([]byte, 8)); err != nil || frames != nil {
		t.Errorf("%+v, %v", frames, err)
	}
	if _, err = ParseFreezeFrames([]byte{9, 1, 2, 3, 4}); err == nil || !strings.Contains(err.Error(), "freeze frame of 9 bytes; 4 are there") {
		t.Error(err)
	}
}

func FuzzDiagnosis(f *testing.F) {
	f.Add([]byte{0x44, 0xFF, 0xB8, 0x04, 0x03, 0x0A, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, data []byte) {
		if d, err := ParseTroubleCodes(data); err == nil && 4*len(d.Codes) > len(data) {
			t.Errorf("%d codes from %d bytes", len(d.Codes), len(data))
		}
		if list, err := ParseFreezeFrames(data); err == nil && 5*len(list) > len(data) {
			t.Errorf("%d frames from %d bytes", len(list), len(data))
		}
	})
}
