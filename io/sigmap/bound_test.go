package sigmap

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/model/units"
)

// rich is a database with floats, extended multiplexing, texts, start values and J1939.
func rich() *messages.Database {
	octet := func(name string, at int) messages.Signal {
		return messages.Signal{Name: name, Start: at, Len: 8, Factor: 1}
	}
	under := func(s messages.Signal, by string, lo, hi uint64) messages.Signal {
		s.MuxedBy, s.Ranges = by, [][2]uint64{{lo, hi}}
		return s
	}
	mux := octet("page", 0)
	mux.Multiplexor = true
	deep := under(octet("sub", 8), "page", 1, 2)
	deep.Multiplexor = true
	mode := messages.Signal{Name: "mode", Start: 0, Len: 4, Factor: 1, HasInitial: true, Initial: 5,
		Values: []messages.Value{{Raw: 0, Text: "off"}, {Raw: 3, Text: "drive on"}, {Raw: 15, Text: "SNA"}}}
	level := octet("level", 8)
	level.Factor, level.Offset, level.Unit, level.HasInitial, level.Initial = 0.5, -40, "bar", true, 7
	return &messages.Database{File: "rich.dbc", Messages: []messages.Message{
		{Name: "Floats", ID: 1, Len: 16, FD: true, BRS: true, Signals: []messages.Signal{
			{Name: "single", Start: 7, Len: 32, BigEndian: true, Float: true, Factor: 2, Offset: 1},
			{Name: "double", Start: 32, Len: 64, Float: true, Factor: 1},
			{Name: "limited", Start: 96, Len: 32, Float: true, Factor: 1, Min: -0.3, Max: 0.3},
		}},
		{Name: "Pages", ID: 2, Len: 8, Signals: []messages.Signal{
			mux, deep, under(octet("a", 16), "page", 1, 1), under(octet("b", 16), "page", 2, 7), under(octet("c", 24), "sub", 4, 9), octet("always", 56),
		}},
		{Name: "Plain", ID: 3, Len: 8, CycleNs: 20e6, Signals: []messages.Signal{mode, level, octet("x", 16), octet("y", 24)}},
		{Name: "Heat", ID: 4, Len: 8, Signals: []messages.Signal{{Name: "warm", Len: 8, Factor: 1, Offset: -40, Min: -40, Max: 215, Unit: "degC"}}},
		{Name: "Odd", ID: 5, Len: 8, Signals: []messages.Signal{{Name: "all", Len: 64, Factor: 1}}},
		{Name: "Signed", ID: 6, Len: 8, Signals: []messages.Signal{{Name: "all", Len: 64, Signed: true, Factor: 1}}},
		{Name: "Truck", ID: 0x18F00503 | can.EFF, Len: 8, J1939: true, Signals: []messages.Signal{
			octet("gear", 0), {Name: "speed", Start: 8, Len: 16, Factor: 0.125}, {Name: "lock", Start: 24, Len: 2, Factor: 1},
			{Name: "kind", Start: 26, Len: 2, Factor: 1, Values: []messages.Value{{Raw: 3, Text: "limit"}, {Raw: 2, Text: "torque"}}},
		}},
	}}
}

func bindRich(t *testing.T, s Spec) *Map {
	t.Helper()
	s.PeriodNs = period
	m, err := Bind(rich(), s, wide("1", "u0", "u1", "u2", "u3"), ports("1", "y0", "y1", "y2"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFloatsAreSentAndReceived(t *testing.T) {
	out := bindRich(t, Spec{
		Sendings: []Sending{{Message: "Floats", CycleNs: period}},
		Send:     []Link{{"Floats", "single", "y0"}, {"Floats", "double", "y1"}, {"Floats", "limited", "y2"}},
	})
	in := bindRich(t, Spec{Receive: []Link{{"Floats", "single", "u0"}, {"Floats", "double", "u1"}, {"Floats", "limited", "u2"}}})
	r := rand.New(rand.NewPCG(1, 2))
	u := make([]float64, 4)
	for range 10000 {
		y := []float64{math.Ldexp(r.NormFloat64(), r.IntN(60)-30), math.Ldexp(r.NormFloat64(), r.IntN(600)-300), 0.6*r.Float64() - 0.3}
		var f can.Frame
		if !out.Encode(&f, 0, 0, y, false) || f.Flags != can.FlagFDF|can.FlagBRS {
			t.Fatalf("%v is not sent, or with flags %d", y, f.Flags)
		}
		want := []uint64{
			uint64(math.Float32bits(float32((y[0] - 1) / 2))), math.Float64bits(y[1]), uint64(math.Float32bits(float32(y[2]))),
		}
		got := []uint64{uint64(binary.BigEndian.Uint32(f.Data[:])), binary.LittleEndian.Uint64(f.Data[4:]), uint64(binary.LittleEndian.Uint32(f.Data[12:]))}
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("%g is sent as %x, want %x", y[i], got[i], want[i])
			}
		}
		if _, res := in.Decode(u, &f); res != OK || u[1] != y[1] || u[2] != float64(float32(y[2])) || u[0] != 2*float64(float32((y[0]-1)/2))+1 {
			t.Fatalf("%v comes back as %v, result %d", y, u, res)
		}
	}
	if out.Saturated != 0 {
		t.Errorf("%d values saturated", out.Saturated)
	}
	var f can.Frame
	if out.Encode(&f, 0, 0, []float64{math.MaxFloat64, math.Inf(1), 7}, false); out.Saturated != 3 || binary.BigEndian.Uint32(f.Data[:]) != math.Float32bits(math.MaxFloat32) {
		t.Errorf("values beyond the range: %d saturated, % x", out.Saturated, f.Data[:16])
	}
}

// A text of the database stands for bits that are no number.
func TestConstantThatIsNoNumberIsSentAsItsBits(t *testing.T) {
	for _, bits := range []uint32{0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000} { // Inf, -Inf, NaN, 1
		db := &messages.Database{Messages: []messages.Message{{Name: "M", ID: 1, Len: 4, Signals: []messages.Signal{
			{Name: "x", Len: 32, Float: true, Factor: -2, Values: []messages.Value{{Raw: int64(bits), Text: "none"}}},
		}}}}
		m, err := Bind(db, Spec{PeriodNs: 1, Sendings: []Sending{
			{Message: "M", CycleNs: 1, Values: []Constant{{Signal: "x", Text: "none"}}},
		}}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var f can.Frame
		sent := m.Encode(&f, 0, 0, nil, false)
		if got := binary.LittleEndian.Uint32(f.Data[:]); !sent || got != bits || m.Saturated != 0 {
			t.Errorf("0x%X is sent as 0x%X: %t, %d saturated", bits, got, sent, m.Saturated)
		}
		if number := bits == 0x3F800000; number != (len(m.Tx[0].Fields) == 1) {
			t.Errorf("0x%X: %d fields", bits, len(m.Tx[0].Fields))
		}
	}
}

func TestConstantsOfMoreThan53BitsAreFieldsWithExactBits(t *testing.T) {
	db := &messages.Database{Messages: []messages.Message{{Name: "M", ID: 1, Len: 24, FD: true, Signals: []messages.Signal{
		{Name: "text", Start: 0, Len: 64, Factor: 1},
		{Name: "start", Start: 64, Len: 64, Factor: 1, HasInitial: true, Initial: 1 << 64, InitialRaw: -1},
		{Name: "signed", Start: 128, Len: 54, Factor: 1, Signed: true, HasInitial: true, Initial: -(1 << 53), InitialRaw: -(1<<53 - 1)},
	}}}}
	m, err := Bind(db, Spec{PeriodNs: 1, Sendings: []Sending{
		{Message: "M", CycleNs: 1, Restbus: true, Values: []Constant{{Signal: "text", Text: "9007199254740993"}}},
	}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.Tx[0].Fields); n != 3 {
		t.Fatalf("%d fields, want 3", n)
	}
	want := [3]uint64{1<<53 + 1, 1<<64 - 1, 1<<53 + 1} // of signed: the two's complement of -(2^53 - 1)
	sent := func() (raw [3]uint64) {
		var f can.Frame
		if !m.Encode(&f, 0, 0, nil, false) || m.Saturated != 0 {
			t.Fatalf("not sent, or %d saturated", m.Saturated)
		}
		for i := range raw {
			raw[i] = binary.LittleEndian.Uint64(f.Data[8*i:])
		}
		return raw
	}
	if got := sent(); got != want {
		t.Errorf("sent is %x, want %x", got, want)
	}

	i := slices.IndexFunc(m.Tx[0].Fields, func(d Field) bool { return d.Name == "text" })
	w := &m.Tx[0].Waveforms[m.Tx[0].Fields[i].Waveform-1]
	w.Held, w.HeldValue = true, 5
	if got := sent(); got[0] != 5 {
		t.Errorf("set to 5, %d is sent", got[0])
	}
	if w.Held = false; sent() != want {
		t.Error("the constant does not return")
	}
}

func TestReceivedNaNIsOutOfRange(t *testing.T) {
	in := bindRich(t, Spec{Receive: []Link{{"Floats", "single", "u0"}, {"Floats", "double", "u1"}}})
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		u := []float64{3, 4, 5, 6}
		f := can.Frame{ID: 1, Len: 16, Flags: can.FlagFDF}
		binary.BigEndian.PutUint32(f.Data[:], math.Float32bits(float32(v)))
		binary.LittleEndian.PutUint64(f.Data[4:], math.Float64bits(v))
		if _, r := in.Decode(u, &f); r != Range || u[0] != 3 || u[1] != 4 || in.Rx[0].Counts.Range == 0 {
			t.Errorf("%g gives %d and %v", v, r, u)
		}
	}
}

func TestMultiplexedSignalsAreDecodedOnlyIfPresent(t *testing.T) {
	in := bindRich(t, Spec{Receive: []Link{{"Pages", "a", "u0"}, {"Pages", "b", "u1"}, {"Pages", "c", "u2"}, {"Pages", "always", "u3"}}})
	msg := &rich().Messages[1]
	r := rand.New(rand.NewPCG(3, 4))
	seen := [4]int{}
	for range 20000 {
		f := can.Frame{ID: 2, Len: 8}
		for i := range 8 {
			f.Data[i] = byte(r.IntN(12))
		}
		u := []float64{-1, -1, -1, -1}
		if _, res := in.Decode(u, &f); res != OK {
			t.Fatalf("% x gives %d", f.Data[:8], res)
		}
		for i, name := range []string{"a", "b", "c", "always"} {
			want := -1.0
			if s := msg.Signal(name); msg.Present(s, &f.Data) {
				want = s.Value(s.Raw(&f.Data))
				seen[i]++
			}
			if u[i] != want {
				t.Fatalf("% x: %s is %g, want %g", f.Data[:8], name, u[i], want)
			}
		}
	}
	if min(seen[0], seen[1], seen[2]) < 100 {
		t.Errorf("seen %v times: this proves little", seen)
	}
}

func TestConstantMultiplexorsSelectTheSignalsSent(t *testing.T) {
	s := Spec{
		Sendings: []Sending{{Message: "Pages", CycleNs: period, Values: []Constant{{Signal: "page", Text: "1"}, {Signal: "sub", Text: "6"}, {Signal: "always", Text: "9"}}}},
		Send:     []Link{{"Pages", "a", "y0"}, {"Pages", "c", "y1"}},
	}
	m := bindRich(t, s)
	var f can.Frame
	if m.Encode(&f, 0, 0, []float64{17, 18, 0}, false); [8]byte(f.Data[:8]) != [8]byte{1, 6, 17, 18, 0, 0, 0, 9} {
		t.Errorf("sent % x", f.Data[:8])
	}
	for _, c := range []struct {
		name   string
		values []Constant
		want   string
	}{
		{"no selector", nil, `signal a is in a frame only if page (rich.dbc:0) is 1: give page a constant value (values: {page: 1})`},
		{"wrong page", []Constant{{Signal: "page", Text: "2"}}, "signal a is in a frame only if page"},
		{"wrong sub", []Constant{{Signal: "page", Text: "1"}, {Signal: "sub", Text: "3"}}, "signal c is in a frame only if sub (rich.dbc:0) is 4-9"},
		{"b over a", []Constant{{Signal: "page", Text: "1"}, {Signal: "sub", Text: "6"}, {Signal: "b", Text: "3"}}, "signal b is in a frame only if page"},
		{"text", []Constant{{Signal: "page", Text: "one"}}, `"one" is not a number`},
		{"range", []Constant{{Signal: "page", Text: "256"}}, "beyond its range, 0 to 255"},
		{"unknown", []Constant{{Signal: "pag", Text: "1"}}, "nearest: page"},
		{"driven", []Constant{{Signal: "a", Text: "1"}}, "carries port y0 already"},
	} {
		s.PeriodNs, s.Sendings[0].Values = period, c.values
		_, err := Bind(rich(), s, nil, ports("1", "y0", "y1", "y2"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestSignalsWithoutAPortCarryConstantsOrStartValues(t *testing.T) {
	send := func(message string, values ...Constant) []byte {
		m := bindRich(t, Spec{Sendings: []Sending{{Message: message, CycleNs: period, Values: values}}})
		var f can.Frame
		if !m.Encode(&f, 0, 0, nil, false) {
			t.Fatal("not sent")
		}
		return f.Data[:4]
	}
	for _, c := range []struct {
		message string
		values  []Constant
		want    [4]byte
	}{
		{"Plain", nil, [4]byte{5, 7, 0, 0}},
		{"Plain", []Constant{{Signal: "mode", Text: "drive on"}, {Signal: "level", Text: "1e5 Pa"}, {Signal: "x", Text: "0x1p3"}}, [4]byte{3, 82, 8, 0}},
		{"Plain", []Constant{{Signal: "mode", Text: "0xE"}, {Signal: "level", Text: "-30 bar"}, {Signal: "x", Text: "010"}}, [4]byte{14, 20, 10, 0}},
		{"Odd", []Constant{{Signal: "all", Text: "9007199254740993"}}, [4]byte{1, 0, 0, 0}},
		{"Odd", []Constant{{Signal: "all", Text: "18446744073709551615"}}, [4]byte{255, 255, 255, 255}},
		{"Signed", []Constant{{Signal: "all", Text: "-9007199254740993"}}, [4]byte{255, 255, 255, 255}},
		{"Heat", []Constant{{Signal: "warm", Text: "20 degC"}}, [4]byte{60, 0, 0, 0}},
		{"Heat", []Constant{{Signal: "warm", Waveform: &Waveform{At: []int64{0}, Value: []float64{30}}}}, [4]byte{70, 0, 0, 0}},
		{"Truck", nil, [4]byte{255, 255, 255, 255}},
		{"Truck", []Constant{{Signal: "speed", Text: "1000"}, {Signal: "lock", Text: "1"}}, [4]byte{255, 0x40, 0x1F, 0xFD}},
	} {
		if got := [4]byte(send(c.message, c.values...)); got != c.want {
			t.Errorf("%s with %v: % x, want % x", c.message, c.values, got, c.want)
		}
	}
}

// A number of a signal carries the unit of the signal, or one that fits.
func TestAConstantWithoutItsUnitIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"20":    "signal level: 20 needs a unit: 20 bar?",
		"20 N":  `signal level: "20 N": unit N does not fit, bar is wanted`,
		"0x14":  `signal level: "0x14" is not a number in "bar"`,
		"20 br": `signal level: "20 br" is not a number in "bar"`,
	} {
		_, err := Bind(rich(), Spec{PeriodNs: period, Sendings: []Sending{
			{Message: "Plain", CycleNs: period, Values: []Constant{{Signal: "level", Text: text}}},
		}}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestInvalidRawValuesAreNotDecoded(t *testing.T) {
	in := bindRich(t, Spec{
		Receive: []Link{{"Truck", "gear", "u0"}, {"Truck", "speed", "u1"}, {"Truck", "lock", "u2"}, {"Truck", "kind", "u3"}},
	})
	for _, c := range []struct {
		data [4]byte
		want Result
		u    [4]float64
	}{
		{[4]byte{250, 0xFF, 0xFA, 0x01}, OK, [4]float64{250, 64255 * 0.125, 1, 0}},
		{[4]byte{251, 0xFF, 0xFD, 0x00}, OK, [4]float64{251, 65023 * 0.125, 0, 0}},
		{[4]byte{254, 0x00, 0xFE, 0x0E}, Invalid, [4]float64{-1, -1, -1, 3}}, // kind has a meaning for 3
		{[4]byte{255, 0xFF, 0xFF, 0x0F}, Invalid, [4]float64{-1, -1, -1, 3}},
		{[4]byte{1, 0xFF, 0xFF, 0x08}, Invalid, [4]float64{1, -1, 0, 2}},
	} {
		u := []float64{-1, -1, -1, -1}
		f := can.Frame{ID: 0x18F00503 | can.EFF, Len: 8}
		copy(f.Data[:], c.data[:])
		if _, r := in.Decode(u, &f); r != c.want || [4]float64(u) != c.u {
			t.Errorf("% x gives %d and %v, want %d and %v", c.data, r, u, c.want, c.u)
		}
	}
	if in.Rx[0].Counts.Invalid != 3 {
		t.Errorf("%d counted", in.Rx[0].Counts.Invalid)
	}
	in = bindRich(t, Spec{
		Receive: []Link{{"Plain", "mode", "u0"}, {"Plain", "x", "u1"}, {"Truck", "gear", "u2"}},
		Receptions: []Reception{
			{Message: "Plain", Invalid: []InvalidSpec{{"mode", []string{"SNA", "7"}}, {"x", []string{"250-0xFE"}}}},
			{Message: "Truck", Invalid: []InvalidSpec{{Signal: "gear"}}},
		},
	})
	for raw, want := range map[[2]byte]Result{{14, 249}: OK, {15, 0}: Invalid, {7, 0}: Invalid, {6, 250}: Invalid, {6, 254}: Invalid, {6, 255}: OK} {
		f := can.Frame{ID: 3, Len: 8}
		f.Data[0], f.Data[2] = raw[0], raw[1]
		if _, r := in.Decode(make([]float64, 4), &f); r != want {
			t.Errorf("mode %d, x %d: %d, want %d", raw[0], raw[1], r, want)
		}
	}
	f := can.Frame{ID: 0x18F00503 | can.EFF, Len: 8, Data: [64]byte{255}}
	if _, r := in.Decode(make([]float64, 4), &f); r != OK {
		t.Errorf("an empty list leaves 255 %d", r)
	}
}

func TestReceptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		r    Reception
		want string
	}{
		{Reception{Message: "Plane"}, "nearest: Plain"},
		{Reception{Message: "Plain", DLC: 9}, "no CAN frame has 9 bytes"},
		{Reception{Message: "Plain", DLC: 1}, "signal x is beyond a frame of 1 bytes"},
		{Reception{Message: "Plain", Invalid: []InvalidSpec{{"mode", []string{"SNA"}}}}, "the signal drives no port"},
		{Reception{Message: "Plain", Invalid: []InvalidSpec{{"x", []string{"256"}}}}, "raw values of 8 bits are 0 to 255"},
		{Reception{Message: "Plain", Invalid: []InvalidSpec{{"x", []string{"9-3"}}}}, "the lower first"},
		{Reception{Message: "Plain", Invalid: []InvalidSpec{{"x", []string{"none"}}}}, `"none" is not a raw value (255)`},
		{Reception{Message: "Plain", TimeoutNs: 1e9, OnTimeout: ReactionSpec{Substitute, []PortValue{{"u1", "3"}}}}, "on_timeout: the message does not drive port u1"},
		{Reception{Message: "Plain", OnError: ReactionSpec{Substitute, []PortValue{{"u9", "3"}}}}, `no input "u9"`},
		{Reception{Message: "Plain", OnError: ReactionSpec{Substitute, []PortValue{{"u0", "300"}}}}, "takes 0 to 200, not 300"},
		{Reception{Message: "Plain", OnError: ReactionSpec{Substitute, []PortValue{{"u0", "3 bar"}}}}, "on_error: "},
		{Reception{Message: "Plain", Protect: []ProtectionSpec{{Profile: "e2e-3"}}}, `profile "e2e-3"`},
		{Reception{Message: "Plain", DLC: 3, Protect: []ProtectionSpec{{Profile: "crc8", Poly: 0x1D, Checksum: []string{"56|8"}}}}, "needs 8 bytes"},
		{Reception{Message: "Truck", CycleNs: -1}, "cycle"},
		{Reception{Message: "Truck", FirstNs: 1e9}, "a timeout of the first frame needs a timeout"},
		{Reception{Message: "Truck", TimeoutNs: DefaultTimeout, OnTimeout: ReactionSpec{Action: SafeState}}, "on_timeout: the message has no timeout"},
		{Reception{Message: "Plain", OnTimeout: ReactionSpec{Action: SafeState}}, "on_timeout: the message has no timeout"},
		{Reception{Message: "Plain", BRS: true}, "brs: the database has a classic message"},
		{Reception{Message: "Plain", TimeoutNs: DefaultTimeout, OnTimeout: ReactionSpec{Action: Substitute}}, "on_timeout: substitute names no port"},
	} {
		in := ports("1", "u0", "u1")
		in[0].Min, in[0].Max = 0, 200
		_, err := Bind(rich(), Spec{PeriodNs: period, Receive: []Link{{"Plain", "x", "u0"}}, Receptions: []Reception{c.r}}, in, []units.Port{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.r, err, c.want)
		} else if strings.Count(err.Error(), "message "+c.r.Message+":") != 1 {
			t.Errorf("the message is not named once: %v", err)
		}
	}
}
