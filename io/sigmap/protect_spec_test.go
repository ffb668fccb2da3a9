package sigmap

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockstep/io/messages"
)

func TestProtectionErrorsNameKeyValueAndRange(t *testing.T) {
	w := func(size, okInit, errInit, okValid, errValid, okInvalid, errInvalid int) *WindowLimits {
		return &WindowLimits{
			WindowSize:     size,
			MinOkStateInit: okInit, MaxErrorStateInit: errInit,
			MinOkStateValid: okValid, MaxErrorStateValid: errValid,
			MinOkStateInvalid: okInvalid, MaxErrorStateInvalid: errInvalid,
		}
	}
	id := []uint32{0x123}
	for _, c := range []struct {
		spec ProtectionSpec
		want string
	}{
		{ProtectionSpec{Profile: "e2e-1"}, `profile "e2e-1"; nearest: e2e-1`},
		{ProtectionSpec{Profile: "e2e-1a"}, "data id: 0 of them are given, the profile has 1"},
		{ProtectionSpec{Profile: "e2e-2", DataIDs: id}, "data id: 1 of them are given, the profile has 16"},
		{ProtectionSpec{Profile: "e2e-5", DataIDs: []uint32{0x10000}}, "data id 0x10000: 0 to 0xFFFF are possible"},
		{ProtectionSpec{Profile: "e2e-1c", DataIDs: []uint32{0x1234}}, "data id 0x1234: 0 to 0xFFF are possible"},
		{ProtectionSpec{Profile: "e2e-22", DataIDs: append(upTo(15), 256)}, "data id 0x100: 0 to 0xFF are possible"},
		{ProtectionSpec{Profile: "crc8", Poly: 1, DataIDs: id, Checksum: one("0|8")}, "data id: 1 of them; up to 16 are possible, chosen by a counter"},
		{ProtectionSpec{Profile: "xor", Checksum: one("0|8"), DataIDs: id}, "data id: the profile does not have this key"},
		{ProtectionSpec{Profile: "e2e-1a", DataIDs: id, Poly: 0x2F}, "poly: the profile does not have this key"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), Offset: 1}, "offset: the profile does not have this key"},
		{ProtectionSpec{Profile: "e2e-5", DataIDs: id, SyncCounter: 1}, "sync counter: the profile does not have this key"},
		{ProtectionSpec{Profile: "counter-only", Counter: one("0|4"), Checksum: one("8|8")}, "checksum: the profile does not have this key"},
		{ProtectionSpec{Profile: "e2e-1a", DataIDs: id, Nibble: one("12|4")}, "nibble: the profile does not have this key"},
		{ProtectionSpec{Profile: "e2e-1a", DataIDs: id, Offset: 7}, "counter: 64|4 (64|4) does not fit the message's 8 bytes"},
		{ProtectionSpec{Profile: "e2e-1a", DataIDs: id, Counter: one("4|4")}, "counter: its bits overlap another number of the protection"},
		{ProtectionSpec{Profile: "e2e-1a", DataIDs: id, Counter: one("8|3")}, "modulus 15: 2 to 8 are possible in the counter's 3 bits"},
		{ProtectionSpec{Profile: "e2e-1a", DataIDs: id, Modulus: 16}, "modulus 16: the profile's is 15"},
		{ProtectionSpec{Profile: "counter-only", Counter: one("0|4"), Modulus: 17}, "modulus 17: 2 to 16 are possible"},
		{ProtectionSpec{Profile: "counter-only", Counter: one("0|4"), Modulus: -1}, "modulus -1: 2 to 16 are possible"},
		{ProtectionSpec{Profile: "counter-only", Counter: one("0|4"), Start: at(16)}, "start 16: the counter runs from 0 to 15"},
		{ProtectionSpec{Profile: "counter-only"}, "counter: no place is given"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), Start: at(1)}, "counter: no place is given"},
		{ProtectionSpec{Profile: "sum"}, "checksum: no place is given"},
		{ProtectionSpec{Profile: "sum", Checksum: one("CHECK")}, `checksum: the message has no signal "CHECK"; nearest: CHK`},
		{ProtectionSpec{Profile: "sum", Checksum: one("level")}, "checksum: signal level is a floating-point number"},
		{ProtectionSpec{Profile: "sum", Checksum: one("sometimes")}, "checksum: signal sometimes is not in every frame: it is multiplexed by kind"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|x")}, `"0|x" is not a position: expected start|length`},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8@2")}, `"0|8@2" is not a position: expected start|length`},
		{ProtectionSpec{Profile: "sum", Checksum: one("60|8")}, "60|8 (60|8) does not fit the message's 8 bytes"},
		{ProtectionSpec{Profile: "sum", Checksum: []string{"0|4", "2|4"}}, "0|4 and 2|4 share bits"},
		{ProtectionSpec{Profile: "sum", Checksum: []string{"0|2", "2|2", "4|2"}}, "3 places: a number is in one or two"},
		{ProtectionSpec{Profile: "counter-only", Counter: one("0|33")}, "counter: 33 bits; 1 to 32 are possible"},
		{ProtectionSpec{Profile: "e2e-5", DataIDs: id, MinLength: 8}, "min length: the profile does not have this key"},
		{ProtectionSpec{Profile: "e2e-6", DataIDs: id, MinLength: 4}, "length 4 to 8 bytes: the smallest is 5 to 8, the largest 8 to 64"},
		{ProtectionSpec{Profile: "e2e-6", DataIDs: id, MinLength: 9}, "length 9 to 8 bytes: the smallest is 5 to 8"},
		{ProtectionSpec{Profile: "e2e-6", DataIDs: id, MaxLength: 65}, "length 8 to 65 bytes: the smallest is 5 to 8, the largest 8 to 64"},
		{ProtectionSpec{Profile: "e2e-6", DataIDs: id, MaxLength: 7}, "length 8 to 7 bytes"},
		{ProtectionSpec{Profile: "e2e-4", DataIDs: id}, "checksum: 71|32@0 (71|32) does not fit the message's 8 bytes"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), Range: []int{3}}, "range [3]: expected the first and the last byte covered, 0 to 7"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), Range: []int{3, 8}}, "range [3 8]: expected"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), Range: []int{0, 1}, Skip: one("1")}, "range: bytes 0 to 1 hold only the checksum and skipped bits"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), Skip: one("8")}, "skip: byte 8: the message has bytes 0 to 7"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), Skip: one("CK")}, `skip: the message has no signal "CK"`},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), Init: 256}, "init 0x100: 0 to 0xFF are possible"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|4"), XorOut: 16}, "xor out 0x10: 0 to 0xF are possible"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|4"), XorPerID: map[uint32]uint64{7: 16}}, "xor per id: 0x10 of 0x7: 0 to 0xF are possible"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), IncludeID: "bits"}, `include id: "bits" is not none, bytes or nibbles`},
		{ProtectionSpec{Profile: "crc8", Checksum: one("0|8")}, "poly 0x0: 1 to 0xFF are possible, without the highest bit"},
		{ProtectionSpec{Profile: "crc8", Checksum: one("0|8"), Poly: 0x11D}, "poly 0x11D: 1 to 0xFF are possible, without the highest bit"},
		{ProtectionSpec{Profile: "crc16", Checksum: one("0|8"), Poly: 0x1021}, "checksum: its place has 8 bits, the CRC 16"},
		{ProtectionSpec{Profile: "j1939-tsc1", Checksum: one("60|2")}, "checksum: its place has 2 bits, 3 are needed"},
		{ProtectionSpec{Profile: "j1939-tsc1", Init: 1}, "init: the profile does not have this key"},
		{ProtectionSpec{Profile: "e2e-5", DataIDs: id, MaxDelta: 256}, "max delta 256: 1 to 255 are possible"},
		{ProtectionSpec{Profile: "e2e-5", DataIDs: id, MaxDelta: -1}, "max delta -1: 1 to 255 are possible"},
		{ProtectionSpec{Profile: "sum", Checksum: one("0|8"), MaxDelta: 1}, "max delta: there is no counter"},
		{ProtectionSpec{Profile: "e2e-1a", DataIDs: id, MaxNoNew: at(15)}, "max no new 15: 0 to 14 are possible"},
		{ProtectionSpec{Profile: "e2e-1a", DataIDs: id, SyncCounter: -1}, "sync counter -1: 0 to 14 are possible"},
		{ProtectionSpec{Profile: "j1939-xbr", Window: w(65, 1, 0, 1, 0, 1, 0)}, "window size 65: 1 to 64 are possible"},
		{ProtectionSpec{Profile: "j1939-xbr", Window: w(5, 1, 0, 0, 0, 1, 0)}, "min ok valid 0, init 1, invalid 1: expected 1 <= valid <= init <= invalid"},
		{ProtectionSpec{Profile: "j1939-xbr", Window: w(5, 1, 1, 1, 0, 1, 0)}, "max error valid 0, init 1, invalid 0: expected valid >= init >= invalid >= 0"},
		{ProtectionSpec{Profile: "j1939-xbr", Window: w(5, 2, 0, 2, 0, 6, 0)}, "min ok + max error is 6 in some state, more than the window size 5"},
	} {
		_, err := NewProtection(c.spec, gauge())
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "protection") {
			t.Errorf("%+v: %v, want %s", c.spec, err, c.want)
		}
	}
}

// The moduli of the counters are those of AUTOSAR's E2E profiles and of J1939.
func TestAProfileWithACounterOfItsOwnHasOneModulus(t *testing.T) {
	want := map[string]int{
		"e2e-1a": 15, "e2e-1b": 15, "e2e-1low": 15, "e2e-1c": 15, "e2e-11a": 15, "e2e-11c": 15, "e2e-2": 16, "e2e-22": 16,
		"e2e-4": 1 << 16, "e2e-44": 1 << 16, "e2e-5": 1 << 8, "e2e-6": 1 << 8, "e2e-7": 1 << 32, "e2e-8": 1 << 32,
		"j1939-tsc1": 8, "j1939-xbr": 16,
	}
	long := &messages.Message{Name: "Long", Len: 64}
	for _, name := range Profiles() {
		modulus := want[name]
		if modulus == 0 {
			continue // the specification gives the modulus
		}
		delete(want, name)
		spec := ProtectionSpec{Profile: name, Modulus: modulus}
		switch {
		case strings.HasPrefix(name, "e2e-2"):
			spec.DataIDs = upTo(16)
		case strings.HasPrefix(name, "e2e"):
			spec.DataIDs = []uint32{0x123}
		}
		if p, err := NewProtection(spec, long); err != nil || p.Modulus != uint64(modulus) {
			t.Errorf("%s with modulus %d: %v, has %d", name, modulus, err, p.Modulus)
		}
		spec.Modulus = modulus - 1
		text := fmt.Sprintf("modulus %d: the profile's is %d", modulus-1, modulus)
		if _, err := NewProtection(spec, long); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %s", name, err, text)
		}
	}
	if len(want) > 0 {
		t.Errorf("no profiles %v", want)
	}
}

func TestASkippedByteIsNotInTheChecksum(t *testing.T) {
	const length = 64
	for skip := 1; skip < length; skip++ {
		p, err := NewProtection(ProtectionSpec{Profile: "sum", Checksum: one("0|8"), Skip: one(fmt.Sprint(skip))},
			&messages.Message{Name: "Long", Len: length})
		if err != nil {
			t.Fatal(err)
		}
		for changed := 1; changed < length; changed++ {
			var data [64]byte
			data[changed] = 0x81
			p.Protect(&data, length, 0)
			if counts := data[0] != 0; counts != (changed != skip) {
				t.Errorf("byte %d skipped: byte %d is in the checksum: %v", skip, changed, counts)
			}
		}
	}
}

// A tag that profile.has does not know would refuse the key to every profile.
func TestEveryProtectionKeyHasAProfile(t *testing.T) {
	for field := range reflect.TypeFor[ProtectionSpec]().Fields() {
		of, key := field.Tag.Get("of"), field.Tag.Get("key")
		if key == "" || !slices.ContainsFunc(profiles(), func(f profile) bool { return f.has(of) }) {
			t.Errorf("%s: no profile has %q", field.Name, of)
		}
	}
}

// gauge is a message with signals that a protection can use, and with signals that it
// cannot use.
func gauge() *messages.Message {
	return &messages.Message{Name: "Gauge", ID: 0x123, Len: 8, Signals: []messages.Signal{
		{Name: "CHK", Start: 56, Len: 8, Factor: 1}, {Name: "CNT", Start: 55, Len: 4, BigEndian: true, Signed: true, Factor: 1},
		{Name: "level", Start: 0, Len: 32, Float: true, Factor: 1},
		{Name: "kind", Start: 32, Len: 4, Multiplexor: true, Factor: 1}, {Name: "sometimes", Start: 36, Len: 4, MuxedBy: "kind", Factor: 1},
	}}
}

func TestPlacesAreNamesOfSignalsOrPositions(t *testing.T) {
	named, err := NewProtection(ProtectionSpec{Profile: "crc8", Poly: 0x1D, Checksum: one("CHK"), Counter: one("CNT"), Skip: one("level")}, gauge())
	if err != nil {
		t.Fatal(err)
	}
	placed, err := NewProtection(ProtectionSpec{Profile: "crc8", Poly: 0x1D, Checksum: one("56|8"), Counter: one("55|4@0"), Skip: strings.Fields("0 1 2 3")}, gauge())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(named, placed) {
		t.Errorf("by name %+v\nby position %+v", named, placed)
	}
	// Motorola's 55|4 is the high nibble of byte 6; a counter has no sign.
	named.Next = 9
	var data [64]byte
	named.Protect(&data, 8, 0x123)
	if data[6] != 0x90 || named.Counter.Load(&data) != 9 || len(named.Terms) != 3 {
		t.Errorf("% x: counter %d, %d bytes covered; want 90 in byte 6, 9, 3", data[:8], named.Counter.Load(&data), len(named.Terms))
	}
}

func TestFrameShorterThanItsProtectionIsAnError(t *testing.T) {
	for place, want := range map[string]map[int]State{
		"0|8":  {0: FrameError, 4: FrameError, 5: FrameOK, 8: FrameOK, 12: FrameOK},
		"48|8": {5: FrameError, 6: FrameError, 7: FrameOK},
	} {
		p, err := NewProtection(ProtectionSpec{Profile: "crc8", Poly: 0x1D, Checksum: one(place), Range: []int{1, 4}}, gauge())
		if err != nil {
			t.Fatal(err)
		}
		var data [64]byte
		p.Protect(&data, 8, 0x123)
		for n, want := range want {
			if got := p.Check(&data, n, 0x123).Frame; got != want {
				t.Errorf("checksum at %s, %d bytes: %v, want %v", place, n, got, want)
			}
		}
	}
}

func TestProtectionIsUnchangedByGobAndDoesNotAllocate(t *testing.T) {
	for _, f := range profiles() {
		const n = 32
		spec, _ := random(f, n, rand.New(rand.NewPCG(9, 10)))
		if !f.e2e() {
			spec = ProtectionSpec{Profile: f.name, Counter: []string{"0|4"}}
			if f.algorithm != NoChecksum {
				spec.Checksum = []string{fmt.Sprintf("8|%d", max(8, f.width))}
			}
			if f.algorithm == CRC {
				spec.Poly = 0x1D
			}
		} else {
			spec.Offset = 1
		}
		p := protection(t, n, 0x100, spec)
		var wire bytes.Buffer
		var q Protection
		if err := gob.NewEncoder(&wire).Encode(p); err != nil {
			t.Fatal(err)
		}
		if err := gob.NewDecoder(&wire).Decode(&q); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, q) {
			t.Errorf("%s: gob makes something else of it", f.name)
		}
		var data [64]byte
		if n := testing.AllocsPerRun(100, func() {
			p.Protect(&data, n, 0x100)
			q.Check(&data, n, 0x100)
			q.CheckMissing()
			q.CheckWrong(false)
		}); n != 0 {
			t.Errorf("%s: %g allocations", f.name, n)
		}
	}
}
