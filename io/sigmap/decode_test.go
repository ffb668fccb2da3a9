package sigmap

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/model/units"
)

func TestDecodeOfAPayloadWorkedOutByHand(t *testing.T) {
	m := bound(t)
	u := make([]float64, 5)
	// 18, 24, 17.5 and 0.12 bar: raw 0x708, 0x960, 0x6D6 and 0x00C; counter 9.
	i, r := m.Decode(u, frame(t, 0x110, "080796d6c6009000"))
	if i != 0 || m.Rx[i].Name != "Pressure" || r != OK {
		t.Fatalf("message %d, result %d", i, r)
	}
	for j, want := range []float64{18e5, 24e5, 17.5e5, 0.12e5} {
		if !scalar.EqualWithinRel(u[j], want, 1e-15) {
			t.Errorf("pressure %d is %g Pa, want %g Pa", j+1, u[j], want)
		}
	}
	if i, r := m.Decode(u, frame(t, 0x18F00503|can.EFF, "7fff")); i != 1 || r != OK || u[4] != 2 {
		t.Errorf("message %d, result %d, gear %g, want 2 (raw 127)", i, r, u[4])
	}
}

func TestShortAndUnknownFramesChangeNothing(t *testing.T) {
	m := bound(t)
	short := frame(t, 0x110, "ffffffffffffff") // seven bytes of eight; the signals would be in them
	for _, c := range []struct {
		name string
		f    *can.Frame
		i    int
		want Result
	}{
		{"short", short, 0, Short},
		{"empty", &can.Frame{ID: 0x110}, 0, Short},
		{"just long enough", frame(t, 0x110, "0000000000000000"), 0, OK},
		{"CAN FD for a classic message", &can.Frame{ID: 0x110, Len: 64, Flags: can.FlagFDF}, 0, WrongFormat},
		{"unknown", frame(t, 0x111, "ffffffffffffffff"), -1, Unknown},
		{"what is sent", frame(t, 0x200, "ffffffffffffffff"), -1, Unknown},
		{"extended of the same number", frame(t, 0x110|can.EFF, "ffffffffffffffff"), 0, WrongFormat},
		{"standard of the lowest bits", frame(t, 0x503, "ffff"), -1, Unknown},
		{"remote", &can.Frame{ID: 0x110 | can.RTR, Len: 8}, 0, WrongFormat},
		{"remote and extended", &can.Frame{ID: 0x110 | can.RTR | can.EFF}, 0, WrongFormat},
		{"remote for an extended message", &can.Frame{ID: 0x18F00503 | can.RTR | can.EFF}, 1, WrongFormat},
		{"error", &can.Frame{ID: 0x110 | can.ERR, Len: 8}, -1, Unknown},
		{"highest", &can.Frame{ID: math.MaxUint32, Len: 8}, -1, Unknown},
	} {
		u := []float64{0, 0, 0, 0, 0}
		i, r := m.Decode(u, c.f)
		if i != c.i || r != c.want {
			t.Errorf("%s: message %d, result %d, want %d and %d", c.name, i, r, c.i, c.want)
		}
		for j, v := range u {
			if v != 0 {
				t.Errorf("%s: input %d became %g", c.name, j, v)
			}
		}
	}
}

func TestValueOutOfRangeKeepsTheLastValueOfItsSignalOnly(t *testing.T) {
	m := bound(t)
	u := make([]float64, 5)
	m.Decode(u, frame(t, 0x110, "080796d6c6009000"))
	// p1 40.01 bar, p2 40.00 bar, p3 and p4 0: raw 0xFA1, 0xFA0.
	if i, r := m.Decode(u, frame(t, 0x110, "a10ffa0000000000")); i != 0 || r != Range {
		t.Errorf("message %d, result %d, want 0 and %d", i, r, Range)
	}
	for j, want := range []float64{18e5, 40e5, 0, 0} {
		if !scalar.EqualWithinAbsOrRel(u[j], want, 1e-9, 1e-15) {
			t.Errorf("pressure %d is %g Pa, want %g Pa", j+1, u[j], want)
		}
	}
	if _, r := m.Decode(u, frame(t, 0x110, "a00ffa0000000000")); r != OK || !scalar.EqualWithinRel(u[0], 40e5, 1e-15) {
		t.Errorf("40.00 bar of [0|40] gives %d and %g Pa", r, u[0])
	}
}

func TestRangeOfAPortAppliesInItsUnit(t *testing.T) {
	in := inputs()
	in[0].Min, in[0].Max = 2e5, 20e5 // Pa
	m, err := Bind(gearbox(), spec(), in, outputs())
	if err != nil {
		t.Fatal(err)
	}
	u := make([]float64, 5)
	for _, c := range []struct {
		raw  uint16
		want Result
	}{{199, Range}, {200, OK}, {2000, OK}, {2001, Range}} {
		f := &can.Frame{ID: 0x110, Len: 8, Data: [64]byte{byte(c.raw), byte(c.raw >> 8)}}
		if _, r := m.Decode(u, f); r != c.want {
			t.Errorf("%g bar in a port of 2 to 20 bar gives %d, want %d", float64(c.raw)/100, r, c.want)
		}
	}
}

func TestReceivedValuesAreInTheUnitOfThePort(t *testing.T) {
	for _, c := range []struct {
		signal, port string
		want         float64 // of 100
	}{
		{"bar", "Pa", 1e7}, {"kPa", "Pa", 1e5}, {"psi", "Pa", 689475.7293168}, {"mbar", "Pa", 1e4},
		{"rpm", "rad/s", 10.471975511966}, {"1/min", "rad/s", 10.471975511966}, {"deg/s", "rad/s", 1.7453292519943},
		{"km/h", "m/s", 27.777777777778}, {"mph", "m/s", 44.704}, {"%", "1", 1}, {"Nm", "N.m", 100},
		{"degC", "K", 373.15}, {"°C", "K", 373.15}, {"K", "K", 100}, {"furlong", "furlong", 100},
	} {
		db := &messages.Database{Messages: []messages.Message{{Name: "M", ID: 1, Len: 8, Signals: []messages.Signal{
			{Name: "s", Len: 16, Factor: 0.5, Offset: -50, Min: -40, Max: 30000, Unit: c.signal},
		}}}}
		port := units.Port{Name: "u", Unit: c.port, Min: math.Inf(-1), Max: math.Inf(1)}
		m, err := Bind(db, Spec{PeriodNs: period, Receive: []Link{{"M", "s", "u"}}}, []units.Port{port}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.signal, err)
			continue
		}
		u := []float64{0}
		if _, r := m.Decode(u, &can.Frame{ID: 1, Len: 8, Data: [64]byte{0x2C, 1}}); r != OK || !scalar.EqualWithinRel(u[0], c.want, 1e-12) {
			t.Errorf("100 %s is %v %s, want %v", c.signal, u[0], c.port, c.want)
		}
		if _, r := m.Decode(u, &can.Frame{ID: 1, Len: 8, Data: [64]byte{0xFF, 0xFF}}); r != Range {
			t.Errorf("32717.5 %s of at most 30000: %d", c.signal, r)
		}
		for raw, want := range map[byte]Result{19: Range, 20: OK} {
			if _, r := m.Decode(u, &can.Frame{ID: 1, Len: 8, Data: [64]byte{raw}}); r != want {
				t.Errorf("%g %s of at least -40: %d, want %d", float64(raw)/2-50, c.signal, r, want)
			}
		}
	}
}

func TestDecimalLimitsAreWithinTheRange(t *testing.T) {
	for _, factor := range []float64{0.1, 0.01, 0.3, 0.7, 1.0 / 3, 1e-6, 0.001953125, -0.1} {
		for n := 1; n < 250; n++ {
			f := Field{Len: 8, Factor: factor}
			f.Lo, f.Hi = f.rawRange()
			f.narrow(-math.Abs(factor)*float64(n), math.Abs(factor)*float64(n))
			want := float64(n)
			lo := 0.0
			if !(f.Lo == lo && f.Hi == want) {
				t.Fatalf("factor %g: ±%d bits are raw %g to %g", factor, n, f.Lo, f.Hi)
			}
		}
	}
}

func TestEveryReceivedMessageIsFound(t *testing.T) {
	db := &messages.Database{}
	var links []Link
	var in []units.Port
	for i := range 40 {
		name := string(rune('A'+i%26)) + string(rune('a'+i/26))
		id := uint32(i*37%2048) | can.EFF*uint32(i%2)
		db.Messages = append(db.Messages, messages.Message{Name: name, ID: id, Len: 1, Signals: []messages.Signal{{Name: "s", Len: 8, Factor: 1}}})
		links = append(links, Link{name, "s", name})
		in = append(in, ports("1", name)...)
	}
	m, err := Bind(db, Spec{PeriodNs: 1, Receive: links}, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := make([]float64, len(in))
	for i := range db.Messages {
		f := &can.Frame{ID: db.Messages[i].ID, Len: 1}
		f.Data[0] = byte(i + 1)
		if j, r := m.Decode(u, f); r != OK || m.Rx[j].Name != db.Messages[i].Name || u[i] != float64(i+1) {
			t.Errorf("message %s: found %d, result %d, value %g", db.Messages[i].Name, j, r, u[i])
		}
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	m := bound(t)
	u := make([]float64, 5)
	good, bad := frame(t, 0x110, "080796d6c6009000"), frame(t, 0x110, "ffffffffffffffff")
	other, short := frame(t, 0x7FF, ""), frame(t, 0x110, "00")
	if n := testing.AllocsPerRun(100, func() {
		m.Decode(u, good)
		m.Decode(u, bad)
		m.Decode(u, other)
		m.Decode(u, short)
	}); n != 0 {
		t.Errorf("%g allocations, want 0", n)
	}
}
