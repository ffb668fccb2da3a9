package sigmap

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"lockstep/io/messages"
	"lockstep/model/units"
)

// Specs Bind refuses, and parts of what it says.
var wrongSpecs = []struct {
	name   string
	kind   error
	change func(db *messages.Database, s *Spec, in, out []units.Port)
	want   []string
}{
	{"unknown message", ErrUnknown, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Receive[0].Message = "Presure" },
		[]string{"signal Presure.p1, port c1", `gearbox.dbc has no message "Presure"`, "nearest: Pressure"}},
	{"unknown signal", ErrUnknown, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Send[1].Signal = "W7" },
		[]string{"signal Speeds.W7, port w2", `message Speeds (gearbox.dbc:30) has no signal "W7"`, "nearest: w1, w2, w3"}},
	{"unknown input", ErrUnknown, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Receive[1].Port = "c9" },
		[]string{"signal Pressure.p2, port c9", `no input "c9"`, "nearest: c1, c2, c3"}},
	{"unknown output", ErrUnknown, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Send[0].Port = "c1" },
		[]string{"signal Speeds.w1, port c1", `no output "c1"`, "nearest: w1"}},
	{"units", ErrUnit, func(_ *messages.Database, _ *Spec, in, _ []units.Port) { in[0].Unit = "rad/s" },
		[]string{"signal Pressure.p1, port c1", `signal in "bar" (gearbox.dbc:`, `port in "rad/s"`}},
	{"units of a sent signal", ErrUnit, func(db *messages.Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Unit = "furlong" },
		[]string{"signal Speeds.w1, port w1", `signal in "furlong"`, `port in "rad/s"`}},
	{"number without a unit", ErrUnit, func(db *messages.Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Unit = "" },
		[]string{"signal Speeds.w1, port w1", `signal in ""`, `port in "rad/s"`}},
	{"no common value", ErrRange, func(_ *messages.Database, _ *Spec, in, _ []units.Port) { in[0].Min, in[0].Max = 41e5, 50e5 },
		[]string{"signal Pressure.p1, port c1", `[0|40] "bar"`, `4.1e+06 to 5e+06 "Pa"`}},
	{"port range NaN", ErrRange, func(_ *messages.Database, _ *Spec, in, _ []units.Port) { in[0].Max = math.NaN() },
		[]string{"signal Pressure.p1, port c1", "NaN"}},
	{"range beyond the bits", ErrRange, func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		db.Messages[0].Signals[0].Min, db.Messages[0].Signals[0].Max = 50, 60
	}, []string{"signal Pressure.p1, port c1", "12 bits", `[50|60] "bar"`}},
	{"overflow", ErrRange, func(db *messages.Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Factor = 1e308 },
		[]string{"signal Speeds.w1, port w1", "(1e+308,0)", "beyond what a number"}},
	{"underflow", ErrRange, func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		db.Messages[2].Signals[0].Factor, db.Messages[2].Signals[0].Unit = 5e-324, "rpm"
	}, []string{"signal Speeds.w1, port w1", "beyond what a number"}},
	{"input driven twice", ErrTaken, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Receive[1].Port = "c1" },
		[]string{"signal Pressure.p2, port c1", "driven by Pressure.p1 already"}},
	{"signal sent twice", ErrTaken, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Send[1].Signal = "w1" },
		[]string{"signal Speeds.w1, port w2", "carries port w1 already"}},
	{"counter sent as a value", ErrTaken, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Send[1].Signal = "counter_S" },
		[]string{"signal Speeds.counter_S, port w2", "carries the counter already"}},
	{"both ways", ErrTaken, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Receive[0] = Link{"Speeds", "w1", "c1"} },
		[]string{"signal Speeds.w1, port c1", "is sent too"}},
	{"no cycle", ErrSendType, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings = s.Sendings[:1] },
		[]string{"signal Torque.engine, port tau1", "no cycle"}},
	{"multiplexor sent", ErrKind, func(db *messages.Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Multiplexor = true },
		[]string{"signal Speeds.w1, port w1", "(gearbox.dbc:", "give it a constant value"}},
	{"not selected", ErrKind, func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		s := db.Messages[3].Signals
		s[3].Multiplexor, s[0].Under, s[0].Ranges = true, "counter_T", [][2]uint64{{3, 3}}
	}, []string{"message Torque", "counter_T", "says which others are"}},
	{"two on the same bits", ErrTaken, func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		s := db.Messages[2].Signals
		s[1].Start, s[1].Shares = s[0].Start, true
	}, []string{"signal Speeds.w2, port w2", `overlaps "w1" (gearbox.dbc:`, "which carries port w1"}},
	{"sent message unknown", ErrUnknown, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].Message = "speed" },
		[]string{"message speed", `no message "speed"`, "nearest: Speeds"}},
	{"sent message twice", ErrTaken, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[1] = s.Sendings[0] },
		[]string{"message Speeds: given twice"}},
	{"counter unknown", ErrUnknown, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].Counter = "counter" },
		[]string{"message Speeds: counter", `no signal "counter"`, "nearest: counter_S"}},
	{"cycle off the grid", ErrTime, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].CycleNs = 7_500_000 },
		[]string{"message Speeds", "cycle 7.5 ms", "period 5 ms"}},
	{"cycle zero", ErrTime, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].CycleNs = 0 },
		[]string{"message Speeds", "cycle 0 ms"}},
	{"cycle negative", ErrTime, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].CycleNs = -period },
		[]string{"message Speeds", "cycle -5 ms"}},
	{"phase off the grid", ErrTime, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[1].PhaseNs = 1 },
		[]string{"message Torque", "phase 1e-06 ms", "period 5 ms"}},
	{"phase of a cycle", ErrTime, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[1].PhaseNs = 2 * period },
		[]string{"message Torque", "phase 10 ms", "cycle 10 ms"}},
	{"phase negative", ErrTime, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[1].PhaseNs = -period },
		[]string{"message Torque", "phase -5 ms"}},
	{"period zero", ErrTime, func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.PeriodNs = 0 },
		[]string{"period 0 ns is not positive"}},
	{"database", messages.ErrPlace, func(db *messages.Database, _ *Spec, _, _ []units.Port) { db.Messages[1].Len = 0 },
		[]string{"gearbox.dbc:21: ", `signal "gear"`, "0 bytes"}},
}

func TestBindNamesWhatIsWrong(t *testing.T) {
	for _, c := range wrongSpecs {
		t.Run(c.name, func(t *testing.T) {
			db, s, in, out := gearbox(), spec(), inputs(), outputs()
			c.change(db, &s, in, out)
			m, err := Bind(db, s, in, out)
			if m != nil || !errors.Is(err, c.kind) {
				t.Fatalf("Bind gives %v, %v, want %v", m, err, c.kind)
			}
			if c.kind != messages.ErrPlace && !strings.HasPrefix(err.Error(), "sigmap: ") {
				t.Errorf("%q does not say where it is from", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
		})
	}
}

func TestFieldsKnowTheNamesOfTheirSignals(t *testing.T) {
	course := &Course{At: []int64{0, 1e9}, Value: []float64{0, 10}}
	m := bindRich(t, Spec{
		Send:     []Link{{"Plain", "x", "y0"}},
		Sendings: []Sending{{Message: "Plain", CycleNs: period, Values: []Constant{{Signal: "y", Course: course}}}},
	})
	var names []string
	for i := range m.Tx[0].Fields {
		names = append(names, m.Tx[0].Fields[i].Name)
	}
	if !slices.Equal(names, []string{"x", "y"}) {
		t.Errorf("fields %q", names)
	}
}

func TestNearestPutsTheLikeliestFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		list []string
		want string
	}{
		{"clutch1.presure", []string{"clutch2.pressure", "brake.pressure", "clutch1.pressure", "x"}, "nearest: clutch1.pressure, clutch2.pressure, brake.pressure"},
		{"SPEEDS", []string{"Torque", "Speeds"}, "nearest: Speeds, Torque"},
		{"a", []string{"b"}, "nearest: b"},
		{"a", nil, "there are none"},
	} {
		if got := nearest(c.name, c.list); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
