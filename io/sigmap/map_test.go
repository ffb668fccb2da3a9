package sigmap

import (
	"bytes"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/model/units"
)

const period = 5_000_000 // ns

// gearbox is an excerpt of the demo's database.
func gearbox() *messages.Database {
	pressure := func(name string, start int) messages.Signal {
		return messages.Signal{Name: name, Start: start, Len: 12, Factor: 0.01, Max: 40, Unit: "bar"}
	}
	speed := func(name string, start int, factor float64) messages.Signal {
		return messages.Signal{Name: name, Start: start, Len: 15, Signed: true, Factor: factor, Unit: "rad/s"}
	}
	torque := func(name string, start int, factor float64) messages.Signal {
		return messages.Signal{Name: name, Start: start, Len: 16, BigEndian: true, Signed: true, Factor: factor, Unit: "N.m"}
	}
	counter := func(name string, start int, big bool) messages.Signal {
		return messages.Signal{Name: name, Start: start, Len: 4, BigEndian: big, Factor: 1, Max: 15}
	}
	return &messages.Database{File: "gearbox.dbc", Messages: []messages.Message{
		{Name: "Pressure", ID: 0x110, Len: 8, Line: 10, Signals: []messages.Signal{
			pressure("p1", 0), pressure("p2", 12), pressure("p3", 24), pressure("p4", 36), counter("counter_P", 52, false),
		}},
		{Name: "Gear", ID: 0x18F00503 | can.EFF, Len: 2, Line: 20, Signals: []messages.Signal{
			{Name: "gear", Start: 0, Len: 8, Factor: 1, Offset: -125, Min: -125, Max: 125, Line: 21},
		}},
		{Name: "Speeds", ID: 0x200, Len: 8, Line: 30, Signals: []messages.Signal{
			speed("w1", 0, 0.02), speed("w2", 15, 0.01), speed("w3", 30, 0.005), speed("w4", 45, 0.001), counter("counter_S", 60, false),
		}},
		{Name: "Torque", ID: 0x201, Len: 8, Line: 40, Signals: []messages.Signal{
			torque("engine", 7, 0.1), torque("load", 23, 0.5), torque("output", 39, 1), counter("counter_T", 51, true),
		}},
	}}
}

func ports(unit string, names ...string) (list []units.Port) {
	for _, name := range names {
		list = append(list, units.Port{Name: name, Unit: unit, Min: math.Inf(-1), Max: math.Inf(1)})
	}
	return list
}

// wide returns ports with limits beyond those of any unit.
func wide(unit string, names ...string) (list []units.Port) {
	for _, name := range names {
		list = append(list, units.Port{Name: name, Unit: unit, Min: -math.MaxFloat64, Max: math.MaxFloat64})
	}
	return list
}

// inputs and outputs are the ports of a plant for gearbox.
func inputs() []units.Port { return append(ports("Pa", "c1", "c2", "c3", "c4"), ports("1", "gear")...) }

func outputs() []units.Port {
	return append(ports("rad/s", "w1", "w2", "w3", "w4"), ports("N.m", "tau1", "tau2", "tau3")...)
}

func spec() Spec {
	return Spec{
		PeriodNs: period,
		Receive: []Link{
			{"Pressure", "p1", "c1"}, {"Pressure", "p2", "c2"}, {"Pressure", "p3", "c3"}, {"Pressure", "p4", "c4"},
			{"Gear", "gear", "gear"},
		},
		Send: []Link{
			{"Speeds", "w1", "w1"}, {"Speeds", "w2", "w2"}, {"Speeds", "w3", "w3"}, {"Speeds", "w4", "w4"},
			{"Torque", "engine", "tau1"}, {"Torque", "load", "tau2"}, {"Torque", "output", "tau3"},
		},
		Sendings: []Sending{
			{Message: "Speeds", CycleNs: period, Counter: "counter_S"},
			{Message: "Torque", CycleNs: 2 * period, PhaseNs: period, Counter: "counter_T"},
		},
	}
}

func bound(t *testing.T) *Map {
	t.Helper()
	m, err := Bind(gearbox(), spec(), inputs(), outputs())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// frame returns a frame with a hexadecimal payload.
func frame(t *testing.T, id uint32, payload string) *can.Frame {
	t.Helper()
	data, err := hex.DecodeString(payload)
	if err != nil {
		t.Fatal(err)
	}
	f := &can.Frame{ID: id, Len: uint8(len(data))}
	copy(f.Data[:], data)
	return f
}

func TestDueFollowsCycleAndPhase(t *testing.T) {
	for _, c := range []struct {
		cycle, phase int64
		want         []int64
	}{
		{1, 0, []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		{2, 0, []int64{2, 4, 6, 8}},
		{2, 1, []int64{1, 3, 5, 7}},
		{4, 3, []int64{3, 7}},
		{20, 0, nil},
	} {
		tx := Tx{CycleTicks: c.cycle, PhaseTicks: c.phase}
		var got []int64
		for k := int64(1); k <= 8; k++ {
			if tx.Due(k) {
				got = append(got, k)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("cycle %d, phase %d: sent at %d, want %d", c.cycle, c.phase, got, c.want)
		}
	}
}

func TestFiltersPassTheReceivedNumbersInEveryFormat(t *testing.T) {
	want := []can.Filter{{ID: 0x110, Mask: 0x1FFFFFFF}, {ID: 0x18F00503, Mask: 0x1FFFFFFF}}
	if got := bound(t).Filters(); !reflect.DeepEqual(got, want) {
		t.Errorf("filters %X, want %X", got, want)
	}
}

func TestLoopFiltersNameTheSentDataFramesToo(t *testing.T) {
	m := bound(t)
	m.Tx = []Tx{{ID: 0x200}, {ID: 0x0CF00400 | can.EFF}}
	want := append(m.Filters(), can.Filter{ID: 0x200, Mask: 0x7FF | can.EFF | can.RTR},
		can.Filter{ID: 0x0CF00400 | can.EFF, Mask: 0x1FFFFFFF | can.EFF | can.RTR})
	if got := m.LoopFilters(); !reflect.DeepEqual(got, want) {
		t.Errorf("filters %X, want %X", got, want)
	}
}

func TestMapIsUnchangedByGob(t *testing.T) {
	m := bound(t)
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(m); err != nil {
		t.Fatal(err)
	}
	got := &Map{}
	if err := gob.NewDecoder(&buf).Decode(got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, m) {
		t.Errorf("decoded %+v, want %+v", got, m)
	}
}

func TestRoundTripStaysWithinHalfABit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		s := messages.Signal{
			Name: "s", Start: r.IntN(512), Len: 1 + r.IntN(52), BigEndian: r.IntN(2) == 1, Signed: r.IntN(2) == 1,
			Factor: math.Ldexp(1+r.Float64(), r.IntN(20)-15), Offset: math.Trunc(r.NormFloat64() * 100), Unit: "rpm",
		}
		if _, ok := s.Bits(); !ok {
			continue
		}
		out, in := messages.Message{Name: "Out", ID: 1, Len: 64, Signals: []messages.Signal{s}}, messages.Message{Name: "In", ID: 2, Len: 64, Signals: []messages.Signal{s}}
		m, err := Bind(&messages.Database{Messages: []messages.Message{out, in}}, Spec{
			PeriodNs: 1, Send: []Link{{"Out", "s", "x"}}, Receive: []Link{{"In", "s", "x"}},
			Sendings: []Sending{{Message: "Out", CycleNs: 1}},
		}, wide("rad/s", "x"), ports("rad/s", "x"))
		if err != nil {
			t.Fatal(err)
		}
		d := &m.Tx[0].Fields[0]
		want := (d.Lo+(d.Hi-d.Lo)*r.Float64())*d.Factor + d.Offset
		var f can.Frame
		u := []float64{math.NaN()}
		if !m.Encode(&f, 0, 0, []float64{want}, false) {
			t.Fatalf("%+v: %g is not sent", s, want)
		}
		f.ID = 2
		if _, res := m.Decode(u, &f); res != OK {
			t.Fatalf("%+v: %g comes back with %d", s, want, res)
		}
		// Half a bit, and the float64 rounding of scaling there and back.
		tol := math.Abs(d.Factor)/2 + 8*0x1p-52*(math.Abs(want)+math.Abs(d.Offset))
		if !scalar.EqualWithinAbs(u[0], want, tol) {
			t.Fatalf("%+v: %g rad/s comes back as %g, off by %g of %g", s, want, u[0], u[0]-want, tol)
		}
	}
}

func TestBindErrorsNameTheDatabaseLine(t *testing.T) {
	s := spec()
	s.Receive[3].Signal = "p5"
	_, err := Bind(gearbox(), s, inputs(), outputs())
	var e *SpecError
	if !errors.As(err, &e) || e.List != "receive" || e.Index != 3 {
		t.Errorf("error %#v does not point at entry 3 of receive", err)
	}
}

// The numbers of a protection are wider than in earlier versions, whose records have them in gob.
func TestProtectionOfAnEarlierVersionIsRead(t *testing.T) {
	old := struct {
		Profile              string
		Counter, Checksum    Split
		Modulus, Next, Last  uint32
		Init, XorOut         uint32
		Width                uint8
		Table                [256]uint16
		DataIDs              [16]uint8
		DataID               uint16
		Nibble               Split
		MaxDelta, Delta, Any uint32
	}{Profile: "e2e-5", Modulus: 256, Next: 7, Last: 9, Init: 0xFFFF, XorOut: 3, Width: 16, DataID: 0xFEDC, MaxDelta: 3, Delta: 4}
	for i := range old.Table {
		old.Table[i] = uint16(257 * i)
	}
	old.DataIDs[15] = 5
	var wire bytes.Buffer
	var p Protection
	if err := errors.Join(gob.NewEncoder(&wire).Encode(old), gob.NewDecoder(&wire).Decode(&p)); err != nil {
		t.Fatal(err)
	}
	for i, v := range p.Table {
		if v != uint64(257*i) {
			t.Fatalf("entry %d of the table is 0x%X", i, v)
		}
	}
	if p.Modulus != 256 || p.Next != 7 || p.Last != 9 || p.Init != 0xFFFF || p.XorOut != 3 || p.DataID != 0xFEDC || p.DataIDs[15] != 5 || p.Delta != 4 {
		t.Errorf("read %+v", p)
	}
}
