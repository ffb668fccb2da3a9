package signals

import (
	"encoding/gob"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/units"
)

const (
	signalInputs  = 12
	signalOutputs = 12
)

func ports(prefix string, n int) (list []units.Port) {
	for i := range n {
		list = append(list, units.Port{Name: fmt.Sprintf("%s%d", prefix, i), Unit: "1", Min: math.Inf(-1), Max: math.Inf(1)})
	}
	return list
}

// randomMap returns a bound map of random messages: positions, types, scales and sending of the
// signals are random.
func randomMap(t *testing.T, seed uint64) *sigmap.Map {
	t.Helper()
	rnd := rand.New(rand.NewPCG(7, seed))
	db, spec := &messages.Database{}, sigmap.Spec{PeriodNs: 5e6}
	for i := range 6 {
		m := randomMessage(rnd, i)
		if len(m.Signals) == 0 {
			continue
		}
		for k, s := range m.Signals {
			if i < 3 {
				spec.Receive = append(spec.Receive, sigmap.Link{Message: m.Name, Signal: s.Name, Port: fmt.Sprintf("u%d", 4*i+k)})
			} else {
				spec.Send = append(spec.Send, sigmap.Link{Message: m.Name, Signal: s.Name, Port: fmt.Sprintf("y%d", rnd.IntN(signalOutputs))})
			}
		}
		if i >= 3 {
			cycle := 1 + rnd.Int64N(4)
			sending := sigmap.Sending{Message: m.Name, Send: sigmap.SendType(rnd.IntN(3)), CycleNs: cycle * 5e6, PhaseNs: rnd.Int64N(cycle) * 5e6}
			if sending.Send != sigmap.Cyclic {
				sending.GapNs, sending.Repeats = 5e6, rnd.IntN(2)
			}
			if sending.Send == sigmap.OnChange {
				sending.CycleNs, sending.PhaseNs = 0, 0
			}
			spec.Sendings = append(spec.Sendings, sending)
		}
		db.Messages = append(db.Messages, m)
	}
	m, err := sigmap.Bind(db, spec, ports("u", signalInputs), ports("y", signalOutputs))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	addBenchOptions(rnd, m)
	protect(t, rnd, m)
	return m
}

// randomMessage returns message i with up to four signals that do not overlap.
func randomMessage(rnd *rand.Rand, i int) messages.Message {
	m := messages.Message{Name: fmt.Sprintf("M%d", i), ID: uint32(0x100*i + rnd.IntN(0x100)), Len: []int{1, 3, 8, 8, 8, 8, 12, 64}[rnd.IntN(8)]}
	if rnd.IntN(4) == 0 {
		m.ID |= can.EFF | uint32(rnd.IntN(1<<29))
		if m.J1939 = i < 3 && m.Len == 8; m.J1939 && rnd.IntN(2) == 0 {
			m.ID |= 0xFE // from any source address
		}
	}
	var taken messages.Bits
	for range 12 {
		s := messages.Signal{
			Name: fmt.Sprintf("s%d", len(m.Signals)), Start: rnd.IntN(8 * m.Len), Len: 1 + rnd.IntN([]int{8, 16, 64}[rnd.IntN(3)]),
			BigEndian: rnd.IntN(2) == 0, Signed: rnd.IntN(2) == 0, Unit: "1", Factor: []float64{1, 1, 0.1, 0.5, -0.25, 3e-5, 1e6}[rnd.IntN(7)],
			Offset: []float64{0, 0, -40, 1e-3, 273.15}[rnd.IntN(5)],
		}
		if rnd.IntN(6) == 0 {
			s.Float, s.Len = true, 32<<rnd.IntN(2)
		}
		bits, ok := s.Bits()
		if !ok || bits.Bytes() > m.Len || len(m.Signals) == 4 {
			continue
		}
		disjoint := true
		for w := range bits {
			disjoint = disjoint && bits[w]&taken[w] == 0
		}
		if disjoint {
			for w := range bits {
				taken[w] |= bits[w]
			}
			m.Signals = append(m.Signals, s)
		}
	}
	return m
}

// addBenchOptions adds options that a bench file, not a database, sets: ranges, invalid values,
// selectors, waveforms, wrapping and counters.
func addBenchOptions(rnd *rand.Rand, m *sigmap.Map) {
	for i := range m.Rx {
		r := &m.Rx[i]
		r.Whole, r.Paired, r.BRS = rnd.IntN(2) == 0, rnd.IntN(4) == 0, r.FD && rnd.IntN(2) == 0
		r.Exact, r.CycleTicks, r.TimeoutTicks, r.FirstTicks = rnd.IntN(3) == 0, 2, 6, 9
		for j := range r.Fields {
			f := &r.Fields[j]
			switch rnd.IntN(4) {
			case 0:
				f.Lo, f.Hi = f.Lo/2, f.Hi/4
			case 1:
				a := rnd.Uint64() >> (64 - f.Len)
				f.Invalid = [][2]uint64{{a, a}, {math.MaxUint64 >> (64 - f.Len) / 2, math.MaxUint64 >> (64 - f.Len)}}
			case 2:
				at := r.Fields[rnd.IntN(len(r.Fields))]
				f.When = []sigmap.Selector{{At: sigmap.Field{At: at.At, Shift: at.Shift, Ninth: at.Ninth, Len: at.Len, Big: at.Big}, Ranges: [][2]uint64{{0, math.MaxUint64 >> (64 - at.Len) / 2}}}}
			}
		}
	}
	for i := range m.Tx {
		t := &m.Tx[i]
		if rnd.IntN(2) == 0 {
			c := sigmap.Sine(1, 50, 7)
			t.Waveforms = append(t.Waveforms, *c)
			t.Fields[0].Index, t.Fields[0].Waveform = -1, 1
		}
		for j := range t.Fields {
			f := &t.Fields[j]
			f.Wraps, f.Rests = !f.Float && rnd.IntN(5) == 0, rnd.IntN(4) == 0
			if rnd.IntN(3) == 0 && !f.Wraps {
				f.Hi /= 3
			}
		}
		for b := range t.Len {
			if rnd.IntN(4) == 0 {
				t.Base[b] = byte(rnd.Uint32()) // also under a signal: the bits are or'ed
			}
		}
		if rnd.IntN(3) == 0 {
			t.HasCounter, t.Counter = true, sigmap.Field{At: 0, Shift: uint8(rnd.IntN(5)), Len: 3, Lo: 0, Hi: 5}
		}
		if rnd.IntN(3) == 0 {
			second := t.Base
			second[0] ^= 1
			t.Pages = [][64]byte{t.Base, second}
			f := &t.Fields[len(t.Fields)-1]
			f.When = []sigmap.Selector{{At: sigmap.Field{Len: 1}, Ranges: [][2]uint64{{1, 1}}}}
		}
	}
}

// protect adds a random end-to-end protection to some messages of 8 bytes or more.
func protect(t *testing.T, rnd *rand.Rand, m *sigmap.Map) {
	t.Helper()
	ids := []uint32{0x3F, 0x69, 0x39, 0xDC, 0x94, 0xF9, 0x14, 0x64, 0xD8, 0x6A, 0x34, 0xCE, 0xA2, 0x55, 0xB5, 0x2C}
	sum, n := []string{"56|8"}, []string{"52|4"}
	specs := []sigmap.ProtectionSpec{
		{Profile: "e2e-1a", DataIDs: []uint32{0x1234}}, {Profile: "e2e-1b", DataIDs: []uint32{0x1234}}, {Profile: "e2e-1low", DataIDs: []uint32{0x34}},
		{Profile: "e2e-1c", DataIDs: []uint32{0x234}}, {Profile: "e2e-2", DataIDs: ids}, {Profile: "e2e-5", DataIDs: []uint32{0x1234}},
		{Profile: "e2e-4", DataIDs: []uint32{0xA0B0C0D}}, {Profile: "e2e-6", DataIDs: []uint32{0x1234}, Offset: 3}, {Profile: "e2e-44", DataIDs: []uint32{7}, Offset: 2, MinLength: 20},
		{Profile: "e2e-7", DataIDs: []uint32{0xA0B0C0D}, Offset: 4}, {Profile: "e2e-8", DataIDs: []uint32{0xFEDCBA98}, MinLength: 20, MaxLength: 64},
		{Profile: "crc32", Poly: 0x04C11DB7, Checksum: []string{"32|32"}, Counter: []string{"0|32"}}, {Profile: "crc64", Poly: 0x1B, Checksum: []string{"7|64@0"}, IncludeLength: true, Skip: []string{"9"}},
		{Profile: "e2e-11a", DataIDs: []uint32{0x1234}}, {Profile: "e2e-11c", DataIDs: []uint32{0x234}}, {Profile: "e2e-22", DataIDs: ids, Offset: 1},
		{Profile: "crc8", Poly: 0x1D, Init: 0x22, XorOut: 0xDF, Checksum: sum, Counter: n, DataIDs: ids[:7]},
		{Profile: "crc8", Poly: 0x31, Reflect: true, Reverse: true, Checksum: sum, Counter: n},
		{Profile: "crc16", Poly: 0x8005, Reflect: true, Checksum: []string{"48|16"}, Counter: []string{"0|2", "12|2"}},
		{Profile: "crc16", Poly: 0x1021, Init: 0x1D0F, Checksum: []string{"55|8@0", "8|8"}, IncludeLength: true},
		{Profile: "sum", IncludeID: "bytes", IncludeLength: true, Checksum: sum}, {Profile: "nibble-sum", Init: 8, Subtract: true, IncludeID: "nibbles", Checksum: []string{"60|4"}, Counter: []string{"56|4"}},
		{Profile: "bit-sum", XorOut: 9, Checksum: []string{"46|2", "62|2"}, Counter: []string{"14|2", "30|2"}, Skip: []string{"14|2", "30|2", "3"}},
		{Profile: "xor", Init: 8, Checksum: []string{"0|8"}, Counter: []string{"8|4"}}, {Profile: "j1939-tsc1"}, {Profile: "j1939-xbr"}, {Profile: "counter-only", Counter: n},
	}
	for _, name := range sigmap.Profiles() {
		if !slices.ContainsFunc(specs, func(s sigmap.ProtectionSpec) bool { return s.Profile == name }) {
			t.Fatalf("the test does not cover profile %s", name)
		}
	}
	random := func(id uint32, bytes int) []sigmap.Protection {
		if bytes < 8 || rnd.IntN(3) == 0 {
			return nil
		}
		var list []sigmap.Protection
		for range 1 + rnd.IntN(2) {
			spec := specs[rnd.IntN(len(specs))]
			if wide := slices.Contains([]string{"e2e-4", "e2e-6", "e2e-7", "e2e-8", "e2e-44", "crc64"}, spec.Profile); wide && bytes < 64 {
				continue // a header of up to 24 bytes
			}
			p, err := sigmap.NewProtection(spec, &messages.Message{Name: "m", ID: id, Len: bytes})
			if err != nil {
				t.Fatalf("%s: %v", spec.Profile, err)
			}
			list = append(list, p)
		}
		return list
	}
	for i := range m.Rx {
		m.Rx[i].Protect = random(m.Rx[i].ID, m.Rx[i].Len)
	}
	for i := range m.Tx {
		m.Tx[i].Protect = random(m.Tx[i].ID, m.Tx[i].Len)
	}
}

// TestSignalsCodeGivesTheFramesOfTheTables builds testdata/signals with the code for random maps.
func TestSignalsCodeGivesTheFramesOfTheTables(t *testing.T) {
	t.Parallel()
	var maps []*sigmap.Map
	job := Job{Inputs: ports("u", signalInputs), Outputs: ports("y", signalOutputs), Internal: "lockstep", Command: "lockstep gen", Package: "main"}
	for seed := range uint64(40) {
		maps = append(maps, randomMap(t, seed))
		job.Buses = append(job.Buses, fmt.Sprintf("%d\nof many", seed))
	}
	job.Maps = maps
	text, err := Generate(job)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Generate(job); string(again) != string(text) {
		t.Error("two generations from the same maps differ")
	}
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	here, err := filepath.Abs("testdata/signals")
	if err != nil {
		t.Fatal(err)
	}
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "signals.go"): file("signals.go", text)}})
	program := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-overlay", file("overlay.json", overlay), "-o", program, "./testdata/signals")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var wire strings.Builder
	if err := gob.NewEncoder(&wire).Encode(struct {
		Maps []*sigmap.Map
		M, P int
	}{maps, signalInputs, signalOutputs}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, file("maps", []byte(wire.String()))).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.4000s", err, out)
	}
	var seen [10]int
	var ratio float64
	if _, err := fmt.Sscan(string(out), &seen[0], &seen[1], &seen[2], &seen[3], &seen[4], &seen[5], &seen[6], &seen[7], &seen[8], &seen[9], &ratio); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, n := range seen {
		if n < 1000 {
			t.Errorf("result %d occurred %d times, want 1000 or more", i, n)
		}
	}
	t.Logf("%v frames; encoding by the tables takes %.1f times as long as by the code", seen, ratio)
}
