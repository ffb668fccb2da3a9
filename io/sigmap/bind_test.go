package sigmap

import (
	"math"
	"slices"
	"strings"
	"testing"

	"lockstep/io/messages"
	"lockstep/model/units"
)

// Specs that Bind refuses, with parts of the error.
var wrongSpecs = []struct {
	name   string
	change func(db *messages.Database, s *Spec, in, out []units.Port)
	want   []string
}{
	{"unknown message", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Receive[0].Message = "Presure" },
		[]string{"signal Presure.p1, port c1", `gearbox.dbc has no message "Presure"`, "nearest: Pressure"}},
	{"unknown signal", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Send[1].Signal = "W7" },
		[]string{"signal Speeds.W7, port w2", `message Speeds (gearbox.dbc:30) has no signal "W7"`, "nearest: w1, w2, w3"}},
	{"unknown input", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Receive[1].Port = "c9" },
		[]string{"signal Pressure.p2, port c9", `no input "c9"`, "nearest: c1, c2, c3"}},
	{"unknown output", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Send[0].Port = "c1" },
		[]string{"signal Speeds.w1, port c1", `no output "c1"`, "nearest: w1"}},
	{"units", func(_ *messages.Database, _ *Spec, in, _ []units.Port) { in[0].Unit = "rad/s" },
		[]string{"signal Pressure.p1, port c1", `signal in "bar" (gearbox.dbc:`, `port in "rad/s"`}},
	{"units of a sent signal", func(db *messages.Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Unit = "furlong" },
		[]string{"signal Speeds.w1, port w1", `signal in "furlong"`, `port in "rad/s": "furlong" is not a known unit; state it in the bench: units: {furlong: rad/s}`}},
	{"units of a maker", func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		db.Messages[2].Signals[0].Unit = "Unit_MinutInver"
	}, []string{`"Unit_MinutInver" is not a known unit; state it in the bench: units: {Unit_MinutInver: rpm}`}},
	{"units in a declared unit", func(db *messages.Database, _ *Spec, _, out []units.Port) {
		db.Messages[2].Signals[0].Unit, out[0].Declared = "1/minuto", "rpm"
	}, []string{`port in "rpm": "1/minuto" is not a known unit; state it in the bench: units: {"1/minuto": rpm}`}},
	{"number without a unit", func(db *messages.Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Unit = "" },
		[]string{"signal Speeds.w1, port w1", `signal in ""`, `port in "rad/s": the database gives no unit; state it in the bench: units: {Speeds.w1: rad/s}`}},
	{"no common value", func(_ *messages.Database, _ *Spec, in, _ []units.Port) { in[0].Min, in[0].Max = 41e5, 50e5 },
		[]string{"signal Pressure.p1, port c1", `[0|40] "bar"`, `4.1e+06 to 5e+06 "Pa"`}},
	{"port range NaN", func(_ *messages.Database, _ *Spec, in, _ []units.Port) { in[0].Max = math.NaN() },
		[]string{"signal Pressure.p1, port c1", "NaN"}},
	{"range beyond the bits", func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		db.Messages[0].Signals[0].Min, db.Messages[0].Signals[0].Max = 50, 60
	}, []string{"signal Pressure.p1, port c1", "12 bits", `[50|60] "bar"`}},
	{"overflow", func(db *messages.Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Factor = 1e308 },
		[]string{"signal Speeds.w1, port w1", "(1e+308,0)", "beyond the largest number"}},
	{"underflow", func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		db.Messages[2].Signals[0].Factor, db.Messages[2].Signals[0].Unit = 5e-324, "rpm"
	}, []string{"signal Speeds.w1, port w1", "beyond the largest number"}},
	{"input driven twice", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Receive[1].Port = "c1" },
		[]string{"signal Pressure.p2, port c1", "driven by Pressure.p1 already"}},
	{"signal sent twice", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Send[1].Signal = "w1" },
		[]string{"signal Speeds.w1, port w2", "carries port w1 already"}},
	{"counter sent as a value", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Send[1].Signal = "counter_S" },
		[]string{"signal Speeds.counter_S, port w2", "carries the counter already"}},
	{"both ways", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Receive[0] = Link{"Speeds", "w1", "c1"} },
		[]string{"signal Speeds.w1, port c1", "is sent too"}},
	{"no cycle", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings = s.Sendings[:1] },
		[]string{"signal Torque.engine, port tau1", "no cycle"}},
	{"multiplexor sent", func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		s := db.Messages[2].Signals
		s[0].Multiplexor, s[3].MuxedBy, s[3].Ranges = true, s[0].Name, [][2]uint64{{3, 3}}
	},
		[]string{"signal Speeds.w1, port w1", "(gearbox.dbc:", "give it a constant value"}},
	{"not selected", func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		s := db.Messages[3].Signals
		s[3].Multiplexor, s[0].MuxedBy, s[0].Ranges = true, "counter_T", [][2]uint64{{3, 3}}
	}, []string{"message Torque", "counter_T", "a multiplexor, or not"}},
	{"two on the same bits", func(db *messages.Database, _ *Spec, _, _ []units.Port) {
		s := db.Messages[2].Signals
		s[1].Start, s[1].MayOverlap = s[0].Start, true
	}, []string{"signal Speeds.w2, port w2", `overlaps "w1" (gearbox.dbc:`, "which carries port w1"}},
	{"sent message unknown", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].Message = "speed" },
		[]string{"message speed", `no message "speed"`, "nearest: Speeds"}},
	{"sent message twice", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[1] = s.Sendings[0] },
		[]string{"message Speeds: given twice"}},
	{"counter unknown", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].Counter = "counter" },
		[]string{"message Speeds: counter", `no signal "counter"`, "nearest: counter_S"}},
	{"cycle off the grid", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].CycleNs = 7_500_000 },
		[]string{"message Speeds", "cycle 7.5 ms", "period 5 ms"}},
	{"cycle zero", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].CycleNs = 0 },
		[]string{"message Speeds", "cycle 0 ms"}},
	{"cycle negative", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[0].CycleNs = -period },
		[]string{"message Speeds", "cycle -5 ms"}},
	{"phase off the grid", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[1].PhaseNs = 1 },
		[]string{"message Torque", "phase 1e-06 ms", "period 5 ms"}},
	{"phase of a cycle", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[1].PhaseNs = 2 * period },
		[]string{"message Torque", "phase 10 ms", "cycle 10 ms"}},
	{"phase negative", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.Sendings[1].PhaseNs = -period },
		[]string{"message Torque", "phase -5 ms"}},
	{"period zero", func(_ *messages.Database, s *Spec, _, _ []units.Port) { s.PeriodNs = 0 },
		[]string{"period 0 ns is not positive"}},
	{"database", func(db *messages.Database, _ *Spec, _, _ []units.Port) { db.Messages[1].Len = 0 },
		[]string{"gearbox.dbc:21: ", `signal "gear"`, "0 bytes"}},
}

func TestBindErrorsNameTheCause(t *testing.T) {
	for _, c := range wrongSpecs {
		t.Run(c.name, func(t *testing.T) {
			db, s, in, out := gearbox(), spec(), inputs(), outputs()
			c.change(db, &s, in, out)
			m, err := Bind(db, s, in, out)
			if m != nil || err == nil {
				t.Fatalf("Bind gives %v, %v, want an error", m, err)
			}
			if c.name != "database" && !strings.HasPrefix(err.Error(), "sigmap: ") {
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

func TestFieldsHaveTheNamesOfTheirSignals(t *testing.T) {
	course := &Waveform{At: []int64{0, 1e9}, Value: []float64{0, 10}}
	m := bindRich(t, Spec{
		Send:     []Link{{"Plain", "x", "y0"}},
		Sendings: []Sending{{Message: "Plain", CycleNs: period, Values: []Constant{{Signal: "y", Waveform: course}}}},
	})
	var names []string
	for i := range m.Tx[0].Fields {
		names = append(names, m.Tx[0].Fields[i].Name)
	}
	if !slices.Equal(names, []string{"x", "y"}) {
		t.Errorf("fields %q", names)
	}
}

func TestErrorsListTheMostSimilarNamesFirst(t *testing.T) {
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
		i, got := findByName(c.list, c.name, func(s *string) string { return *s })
		if i >= 0 || got != c.want {
			t.Errorf("%s: %d, %q, want %q", c.name, i, got, c.want)
		}
	}
}
