package sigmap

import (
	"math"
	"math/rand/v2"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
)

func TestEncodeOfPayloadsWorkedOutByHand(t *testing.T) {
	m := bound(t)
	y := []float64{-100, 50, -25, 4.5, 123.4, -100, -1}
	for _, c := range []struct {
		tx   int
		id   uint32
		want string
	}{
		// Raw -5000, 5000, -5000 and 4500 in 15 bits each, one after the other.
		{0, 0x200, "786cc4091e9b3202"},
		{0, 0x200, "786cc4091e9b3212"}, // the counter's next value
		// Raw 1234, -200 and -1, high byte first.
		{1, 0x201, "04d2ff38ffff0000"},
		{1, 0x201, "04d2ff38ffff0100"},
	} {
		var f can.Frame
		f.Data[63] = 1 // what was there before has to go
		if !m.Encode(&f, c.tx, 0, y, false) || f != *frame(t, c.id, c.want) {
			t.Errorf("frame 0x%X % x, want 0x%X %s", f.ID, f.Data[:8], c.id, c.want)
		}
	}
	if m.Saturated != 0 {
		t.Errorf("%d saturated, want none", m.Saturated)
	}
}

func TestEncodeRoundsHalfToEven(t *testing.T) {
	db := &messages.Database{Messages: []messages.Message{{Name: "M", Len: 1, Signals: []messages.Signal{{Name: "s", Len: 8, Signed: true, Factor: 0.5}}}}}
	m, err := Bind(db, Spec{PeriodNs: 1, Send: []Link{{"M", "s", "y"}}, Sendings: []Sending{{Message: "M", CycleNs: 1}}}, nil, ports("1", "y"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		y    float64
		want int8
	}{{0.25, 0}, {0.75, 2}, {1.25, 2}, {1.75, 4}, {-0.25, 0}, {-0.75, -2}, {-1.25, -2}, {0.26, 1}, {-0.26, -1}, {63.5, 127}} {
		var f can.Frame
		if !m.Encode(&f, 0, 0, []float64{c.y}, false) || int8(f.Data[0]) != c.want {
			t.Errorf("%g is sent as %d halves, want %d", c.y, int8(f.Data[0]), c.want)
		}
	}
}

func TestEncodeLimitsValuesToTheirRange(t *testing.T) {
	db := &messages.Database{Messages: []messages.Message{{Name: "M", Len: 8, Signals: []messages.Signal{
		{Name: "raw", Start: 0, Len: 8, Factor: 1},
		{Name: "signed", Start: 8, Len: 8, Signed: true, Factor: 1},
		{Name: "limited", Start: 16, Len: 8, Factor: 0.1, Min: 1, Max: 20.3},
		{Name: "falling", Start: 24, Len: 8, Factor: -1, Offset: 100, Min: 0, Max: 90},
	}}}}
	m, err := Bind(db, Spec{
		PeriodNs: 1, Sendings: []Sending{{Message: "M", CycleNs: 1}},
		Send: []Link{{"M", "raw", "y"}, {"M", "signed", "y"}, {"M", "limited", "y"}, {"M", "falling", "y"}},
	}, nil, ports("1", "y"))
	if err != nil {
		t.Fatal(err)
	}
	saturated := uint64(0)
	for _, c := range []struct {
		y         float64
		want      [4]uint8
		saturated uint64
	}{
		{50, [4]uint8{50, 50, 203, 50}, 1},
		{20.3, [4]uint8{20, 20, 203, 80}, 0},
		{1000, [4]uint8{255, 127, 203, 10}, 4},
		{-1000, [4]uint8{0, 0x80, 10, 100}, 4},
		{math.Inf(1), [4]uint8{255, 127, 203, 10}, 4},
		{math.Inf(-1), [4]uint8{0, 0x80, 10, 100}, 4},
		{math.MaxFloat64, [4]uint8{255, 127, 203, 10}, 4},
		{255.4, [4]uint8{255, 127, 203, 10}, 3},
	} {
		var f can.Frame
		saturated += c.saturated
		if !m.Encode(&f, 0, 0, []float64{c.y}, false) || [4]uint8(f.Data[:4]) != c.want || m.Saturated != saturated {
			t.Errorf("%g is sent as %d with %d saturated, want %d with %d", c.y, f.Data[:4], m.Saturated, c.want, saturated)
		}
	}
}

// Of three values only the first is above its range; the second is forced to ones.
func TestAForcedFieldIsNotSaturated(t *testing.T) {
	m, err := Bind(&messages.Database{Messages: []messages.Message{{Name: "M", Len: 8, Signals: []messages.Signal{
		{Name: "a", Start: 0, Len: 8, Factor: 1}, {Name: "b", Start: 8, Len: 8, Factor: 1}, {Name: "c", Start: 16, Len: 16, Factor: 1},
	}}}}, Spec{
		PeriodNs: 1, Sendings: []Sending{{Message: "M", CycleNs: 1}}, Send: []Link{{"M", "a", "y"}, {"M", "b", "y"}, {"M", "c", "y"}},
	}, nil, ports("1", "y"))
	if err != nil {
		t.Fatal(err)
	}
	m.Tx[0].Fields[1].Force = ForceOnes
	var f can.Frame
	if !m.Encode(&f, 0, 0, []float64{300}, true) || [4]uint8(f.Data[:4]) != [4]uint8{255, 255, 44, 1} || m.Saturated != 1 {
		t.Errorf("% x is sent with %d saturated, want ff ff 2c 01 with 1", f.Data[:4], m.Saturated)
	}
}

func TestNaNIsNotSentAndLeavesNoGapInTheCounter(t *testing.T) {
	m := bound(t)
	y := make([]float64, 7)
	var f can.Frame
	m.Encode(&f, 0, 0, y, false)
	for i := range 4 {
		y[i] = math.NaN()
		if m.Encode(&f, 0, 0, y, false) {
			t.Errorf("a frame with NaN at %d is sent", i)
		}
		if !m.Encode(&f, 1, 0, y, false) {
			t.Error("a frame without NaN is not sent")
		}
		y[i] = 0
	}
	if m.Encode(&f, 0, 0, y, false); f.Data[7]>>4 != 1 || m.Saturated != 0 {
		t.Errorf("counter %d, want 1", f.Data[7]>>4)
	}
}

func TestCounterWrapsByItsOwnLength(t *testing.T) {
	for _, length := range []int{1, 4, 8, 12} {
		for _, big := range []bool{false, true} {
			s := messages.Signal{Name: "n", Start: 8, Len: length, BigEndian: big, Signed: true, Factor: 1}
			if big {
				s.Start = 15
			}
			m, err := Bind(&messages.Database{Messages: []messages.Message{{Name: "M", Len: 4, Signals: []messages.Signal{s}}}},
				Spec{PeriodNs: 1, Sendings: []Sending{{Message: "M", CycleNs: 1, Counter: "n"}}}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for k := range 3 << length {
				var f can.Frame
				m.Encode(&f, 0, 0, nil, false)
				if got, want := slow(&s, &f.Data), uint64(k)&(1<<length-1); got != want {
					t.Fatalf("%d bits, big endian %v: frame %d counts %d, want %d", length, big, k, got, want)
				}
			}
		}
	}
}

func TestLongMessageIsSentAsFD(t *testing.T) {
	db := &messages.Database{Messages: []messages.Message{{Name: "M", ID: 1, Len: 12, Signals: []messages.Signal{{Name: "s", Start: 88, Len: 8, Factor: 1}}}}}
	m, err := Bind(db, Spec{PeriodNs: 1, Send: []Link{{"M", "s", "y"}}, Sendings: []Sending{{Message: "M", CycleNs: 1}}}, nil, ports("1", "y"))
	if err != nil {
		t.Fatal(err)
	}
	var f can.Frame
	if m.Encode(&f, 0, 0, []float64{7}, false); f.Len != 12 || f.Flags != can.FlagFDF || f.Data[11] != 7 {
		t.Errorf("%+v is no CAN FD frame of 12 bytes with 7 in the last", f)
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	m := bound(t)
	var f can.Frame
	y := []float64{1, 2, 3, 4, 5, 6, math.Inf(1)}
	if n := testing.AllocsPerRun(100, func() {
		for i := range m.Tx {
			if m.Tx[i].Due(1) {
				m.Encode(&f, i, 0, y, false)
			}
		}
		y[0] = math.NaN()
		m.Encode(&f, 0, 0, y, false)
	}); n != 0 {
		t.Errorf("%g allocations, want 0", n)
	}
}

func TestRoundHalfEvenEqualsRoundToEven(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(v float64) {
		got, want := roundHalfEven(v), math.RoundToEven(v)
		if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
			t.Errorf("whole(%v) = %v, want %v", v, got, want)
		}
	}
	for _, v := range []float64{0, 0.5, 1.5, 2.5, 0.49999999999999994, 1<<51 + 0.5, 1<<52 - 0.5, 1 << 52, 1<<53 - 1, 1 << 60, math.MaxFloat64, 5e-324, math.Inf(1), math.NaN()} {
		check(v)
		check(-v)
	}
	for range 100000 {
		v := math.Ldexp(2*r.Float64()-1, r.IntN(64))
		check(v)
		check(math.Trunc(v) + 0.5)
		check(math.Float64frombits(r.Uint64()))
	}
}
