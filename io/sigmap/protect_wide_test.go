package sigmap

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// The frames are the examples of AUTOSAR PRS_E2EProtocol, "Protocol Examples" of each profile: the first
// two frames of a sender, all other bytes 0. Two implementations under the MIT licence publish the
// bytes in their tests; source names the implementation:
//   - a: github.com/zariiii9003/autosar-e2e, commit 750dbd8, test/test_p04.py to test_p07.py
//   - b: github.com/handohun/autosar-e2e, commit a52ce72, src/profiles/profile8.rs
//
// The header of profile 44 is that of profile 4, and so are its bytes. The checksums of profiles 4, 7 and 8
// are also those of CRC-32/AUTOSAR and CRC-64/XZ in the catalogue of CRCs, over all other bytes.
func TestFramesOfTheProtocolExamplesOfAUTOSAR(t *testing.T) {
	for _, c := range []struct {
		source  string
		profile string
		id      uint32
		offset  int
		frames  []string // with the counters 0 and 1
	}{
		{"a", "e2e-4", 0x0A0B0C0D, 0, []string{"00100000 0a0b0c0d 862b0556 00000000", "00100001 0a0b0c0d a58e6807 00000000"}},
		{"a", "e2e-4", 0x0A0B0C0D, 8, []string{"0000000000000000 00180000 0a0b0c0d 69d7502e 00000000",
			"0000000000000000 00180001 0a0b0c0d 4a723d7f 00000000"}},
		{"a", "e2e-44", 0x0A0B0C0D, 0, []string{"00100000 0a0b0c0d 862b0556 00000000", "00100001 0a0b0c0d a58e6807 00000000"}},
		{"a", "e2e-5", 0x1234, 0, []string{"1cca000000000000", "cf8d010000000000"}},
		{"a", "e2e-5", 0x1234, 8, []string{"0000000000000000 2891000000000000", "0000000000000000 fbd6010000000000"}},
		{"a", "e2e-6", 0x1234, 0, []string{"b155000800000000", "f4f5000801000000"}},
		{"a", "e2e-6", 0x1234, 8, []string{"0000000000000000 4eb7001000000000", "0000000000000000 0b17001001000000"}},
		{"a", "e2e-7", 0x0A0B0C0D, 0, []string{"1fb2e737fcedbcd9 00000018 00000000 0a0b0c0d 00000000",
			"7bde7268b8e9bc27 00000018 00000001 0a0b0c0d 00000000"}},
		{"a", "e2e-7", 0x0A0B0C0D, 8, []string{"0000000000000000 17f7c817323865a8 00000020 00000000 0a0b0c0d 00000000",
			"0000000000000000 739b5d48763c6556 00000020 00000001 0a0b0c0d 00000000"}},
		{"b", "e2e-8", 0x0A0B0C0D, 0, []string{"41494e52 00000014 00000000 0a0b0c0d 00000000"}},
		{"b", "e2e-8", 0x0A0B0C0D, 8, []string{"0000000000000000 e891e5a8 0000001c 00000000 0a0b0c0d 00000000"}},
	} {
		var sender, judge Protection
		for i, frame := range c.frames {
			want := strings.ReplaceAll(frame, " ", "")
			n := len(want) / 2
			if i == 0 {
				sender = protection(t, n, 0x100, ProtectionSpec{Profile: c.profile, DataIDs: []uint32{c.id}, Offset: c.offset})
				judge = sender
			}
			var data [64]byte
			sender.Protect(&data, n, 0x100)
			if got := hex.EncodeToString(data[:n]); got != want {
				t.Errorf("%s at %d: %s, want %s", c.profile, c.offset, got, want)
			}
			var given [64]byte
			b, _ := hex.DecodeString(want)
			copy(given[:], b)
			if s := judge.Check(&given, n, 0x100).Frame; s != FrameOK {
				t.Errorf("%s at %d: %s is %v", c.profile, c.offset, want, s)
			}
		}
	}
}

// Frames of two real networks, recorded by the authors of opendbc (MIT licence, test_checksums.py):
// Volkswagen MQB, gearbox and brake, e2e-2. Their counters are 0 to 15.
func TestRecordedFramesOfAGearboxAndABrakeAreOK(t *testing.T) {
	sevens := make([]uint32, 16)
	for i := range sevens {
		sevens[i] = 7
	}
	for _, c := range []struct {
		name   string
		id     uint32
		ids    []uint32
		frames string
	}{
		{"Getriebe_11", 0xAD, zoo()["VW MQB"].spec.DataIDs, `f8e0bfff5f202020 b0e1bfffc6982180 d2e2bfff5f202020 00e3bfffaa202010
			f1e4bfff5f202020 c4e5bfff5f202020 dae6bfff5f202020 85e7bfff5f202020 12e8bfff5f202020 45e9bfffaa202010 03eabfffcc202010
			fcebbfff5f202120 feecbfffad202010 bdedbfffaa202010 67eebfffaa202010 36efbfffaa202010`},
		{"ESP_05", 0x106, sevens, `908064000000e710 f48164000000e710 908263000000e810 a08363000000e610
			e78463000000e810 2e8578040000ea30 7b8663000000e610 718779040000d030 508879040000ea30 818964000000e110 6a8a68000004d010
			178b6a040000e610 c78c63000000d110 538d64040000e210 248e63000000e710 3f8f82040000e630`},
	} {
		p := protection(t, 8, c.id, ProtectionSpec{Profile: "e2e-2", DataIDs: c.ids})
		for i, text := range strings.Fields(c.frames) {
			var data [64]byte
			b, _ := hex.DecodeString(text)
			copy(data[:], b)
			want := FrameOK
			if i == 0 {
				want = FrameInitial
			}
			if s := p.Check(&data, 8, c.id).Frame; s != want {
				t.Errorf("%s, frame %d: %s is %v, want %v", c.name, i, text, s, want)
			}
			wrong := p
			if data[7] ^= 1; wrong.Check(&data, 8, c.id).Frame != FrameError {
				t.Errorf("%s, frame %d: another last bit is no error", c.name, i)
			}
		}
	}
}

// The counters of profiles 4 and 44 have 16 bits, those of 7 and 8 have 32.
func TestWideCountersWrapAndAreInSequence(t *testing.T) {
	for name, last := range map[string]uint64{
		"e2e-4": math.MaxUint16, "e2e-44": math.MaxUint16, "e2e-6": math.MaxUint8, "e2e-7": math.MaxUint32, "e2e-8": math.MaxUint32,
	} {
		start := int(last - 1)
		p := protection(t, 32, 0x100, ProtectionSpec{Profile: name, DataIDs: []uint32{5}, Start: &start, MaxDelta: int(last - 2)})
		judge := p
		judge.Last = last - 2
		for i, want := range []uint64{last - 1, last, 0, 1, 2} {
			var data [64]byte
			p.Protect(&data, 32, 0x100)
			if n := p.Counter.Load(&data); n != want {
				t.Errorf("%s: frame %d has counter %d, want %d", name, i, n, want)
			}
			if s := judge.Check(&data, 32, 0x100).Frame; s != FrameOK {
				t.Errorf("%s: counter %d: %v", name, want, s)
			}
			if s := judge.Check(&data, 32, 0x100).Frame; s != FrameRepeated {
				t.Errorf("%s: counter %d again: %v", name, want, s)
			}
		}
		var data [64]byte
		for step, want := range map[uint64]State{2: FrameSomeLost, last - 2: FrameSomeLost, last - 1: FrameWrongSequence, last: FrameWrongSequence} {
			q, sends := judge, p
			sends.Next = (q.Last + step) % q.Modulus
			sends.Protect(&data, 32, 0x100)
			if s := q.Check(&data, 32, 0x100).Frame; s != want {
				t.Errorf("%s: a step of %d: %v, want %v", name, step, s, want)
			}
		}
	}
}

// A receiver of 20 to 48 bytes in a message of 32.
func TestLengthInAFrameIsCheckedAndSaysWhatIsCovered(t *testing.T) {
	for _, name := range []string{"e2e-4", "e2e-6", "e2e-7", "e2e-8", "e2e-44"} {
		id := []uint32{77}
		judge := protection(t, 32, 0x100, ProtectionSpec{Profile: name, DataIDs: id, MinLength: 20, MaxLength: 48})
		for length := 20; length <= 64; length++ {
			sends := protection(t, length, 0x100, ProtectionSpec{Profile: name, DataIDs: id})
			for n := length - 1; n <= 64; n++ {
				var data [64]byte
				for i := range data {
					data[i] = byte(7 * i)
				}
				p, q := sends, judge
				p.Protect(&data, length, 0x100)
				want := FrameError
				if length <= 48 && n >= length {
					want = FrameOK
				}
				if s := q.Check(&data, n, 0x100).Frame; s != want {
					t.Fatalf("%s: %d bytes in a frame of %d: %v, want %v", name, length, n, s, want)
				}
				if q = judge; n > length && want == FrameOK {
					data[length]++ // beyond the data
					if s := q.Check(&data, n, 0x100).Frame; s != FrameOK {
						t.Fatalf("%s: a byte beyond %d: %v", name, length, s)
					}
				}
			}
		}
		short := protection(t, 20, 0x100, ProtectionSpec{Profile: name, DataIDs: id})
		narrow := protection(t, 32, 0x100, ProtectionSpec{Profile: name, DataIDs: id, MinLength: 21})
		var data [64]byte
		short.Protect(&data, 20, 0x100)
		if s := narrow.Check(&data, 32, 0x100).Frame; s != FrameError {
			t.Errorf("%s: 20 bytes, at least 21: %v", name, s)
		}
	}
}

// A frame of another sender has a right checksum: only its data identifier differs.
func TestDataIdentifierInAFrameIsChecked(t *testing.T) {
	for _, name := range []string{"e2e-4", "e2e-7", "e2e-8", "e2e-44"} {
		ours := protection(t, 32, 0x100, ProtectionSpec{Profile: name, DataIDs: []uint32{0x12345678}})
		theirs := protection(t, 32, 0x100, ProtectionSpec{Profile: name, DataIDs: []uint32{0x92345678}})
		var data [64]byte
		theirs.Protect(&data, 32, 0x100)
		if s := ours.Check(&data, 32, 0x100).Frame; s != FrameError {
			t.Errorf("%s: the frame of another identifier is %v", name, s)
		}
	}
}

// A message with a smallest length takes frames down to it; signals that may be missing are refused.
func TestSmallestLengthIsTheShortestFrame(t *testing.T) {
	db := &messages.Database{Messages: []messages.Message{{Name: "M", ID: 1, Len: 32, Signals: []messages.Signal{
		{Name: "early", Start: 8 * 19, Len: 8, Factor: 1}, {Name: "late", Start: 8 * 20, Len: 8, Factor: 1},
	}}}}
	spec := ProtectionSpec{Profile: "e2e-4", DataIDs: []uint32{1}, MinLength: 20}
	bind := func(signal string, dlc int) (*Map, error) {
		return Bind(db, Spec{PeriodNs: 1, Receive: []Link{{"M", signal, "u"}},
			Receptions: []Reception{{Message: "M", DLC: dlc, Protect: []ProtectionSpec{spec}}}}, ports("1", "u"), nil)
	}
	for _, dlc := range []int{0, 32} {
		if _, err := bind("late", dlc); err == nil || !strings.Contains(err.Error(), "signal late is beyond ") {
			t.Errorf("a signal at byte 20 of 20: %v", err)
		}
	}
	m, err := bind("early", 0)
	if err != nil {
		t.Fatal(err)
	}
	sends := protection(t, 20, 1, ProtectionSpec{Profile: "e2e-4", DataIDs: []uint32{1}})
	f := can.Frame{ID: 1, Len: 20, Flags: can.FlagFDF}
	f.Data[19] = 9
	sends.Protect(&f.Data, 20, 1)
	u := []float64{0}
	if _, r := m.Decode(u, &f); r != OK || u[0] != 9 {
		t.Errorf("20 bytes: result %d, input %g", r, u[0])
	}
	f.Len = 16
	if _, r := m.Decode(u, &f); r != Short {
		t.Errorf("16 bytes: result %d, want %d", r, Short)
	}
}

// The input bytes are a specification and a frame. A frame is OK only if its checksum is the remainder of
// the polynomial division and length, identifier and counter are right.
func FuzzCheckOfProfilesWithALength(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 10 {
		b := []byte{byte(i), byte(i), 1, 0xFF, byte(i), 64}
		for range 64 {
			b = append(b, byte(r.Uint32()))
		}
		f.Add(b)
	}
	var wide []profile
	for _, f := range profiles() {
		if f.length != "" {
			wide = append(wide, f)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 6 {
			return
		}
		kind := wide[int(b[0])%len(wide)]
		at, _, header, _ := layout(&kind)
		offset, id := int(b[1]%40), uint32(b[2])<<8|uint32(b[0])
		lo := header + offset + int(b[3]%8)
		size := messages.FrameLen(min(64, lo))
		spec := ProtectionSpec{Profile: kind.name, DataIDs: []uint32{id}, Offset: offset, MinLength: lo, MaxLength: 64}
		p, err := NewProtection(spec, &messages.Message{Name: "M", ID: 1, Len: size})
		if err != nil {
			if lo <= 64 {
				t.Fatalf("%+v in %d bytes: %v", spec, size, err)
			}
			return
		}
		n := int(b[5] % 65)
		var data [64]byte
		copy(data[:n], b[6:])
		length := lo + int(b[4])%(n+1)
		if b[4] > 9 { // else the length is what the input has
			p.Length.Store(&data, uint64(length))
			p.ID.Store(&data, uint64(id))
			p.First, p.end, p.n = 0, byte(min(length, 64)), byte(n)
			p.Checksum.Store(&data, p.checksum(&data))
		}
		length = int(min(p.Length.Load(&data), 1000))
		right := length >= lo && length <= min(64, n) && (p.ID.N == 0 || p.ID.Load(&data) == uint64(id))
		if right {
			size := int(kind.width / 8)
			message := append(append([]byte{}, data[:at+offset]...), data[at+offset+size:length]...)
			if kind.ids == idAfterHigh {
				message = append(message, byte(id>>8), byte(id))
			}
			right = fmt.Sprintf("%0*x", 2*size, division(message, &kind)) == hex.EncodeToString(data[at+offset:at+offset+size])
		}
		if s := p.Check(&data, n, 1).Frame; (s != FrameError) != right {
			t.Fatalf("%s at %d: % x: %v, right %v", kind.name, offset, data[:n], s, right)
		}
	})
}
