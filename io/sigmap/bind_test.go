package sigmap

import (
	"math"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/model/units"
)

// Specs Bind refuses, and parts of what it says.
var wrongSpecs = []struct {
	name   string
	change func(db *Database, s *Spec, in, out []units.Port)
	want   []string
}{
	{"unknown message", func(_ *Database, s *Spec, _, _ []units.Port) { s.Receive[0].Message = "Presure" },
		[]string{"signal Presure.p1, port c1", `gearbox.dbc has no message "Presure"`, "nearest: Pressure"}},
	{"unknown signal", func(_ *Database, s *Spec, _, _ []units.Port) { s.Send[1].Signal = "W7" },
		[]string{"signal Speeds.W7, port w2", `message Speeds (gearbox.dbc:30) has no signal "W7"`, "nearest: w1, w2, w3"}},
	{"unknown input", func(_ *Database, s *Spec, _, _ []units.Port) { s.Receive[1].Port = "c9" },
		[]string{"signal Pressure.p2, port c9", `no input "c9"`, "nearest: c1, c2, c3"}},
	{"unknown output", func(_ *Database, s *Spec, _, _ []units.Port) { s.Send[0].Port = "c1" },
		[]string{"signal Speeds.w1, port c1", `no output "c1"`, "nearest: w1"}},
	{"units", func(_ *Database, _ *Spec, in, _ []units.Port) { in[0].Unit = "rad/s" },
		[]string{"signal Pressure.p1, port c1", `signal in "bar" (gearbox.dbc:`, `port in "rad/s"`}},
	{"units of a sent signal", func(db *Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Unit = "furlong" },
		[]string{"signal Speeds.w1, port w1", `signal in "furlong"`, `port in "rad/s"`}},
	{"number without a unit", func(db *Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Unit = "" },
		[]string{"signal Speeds.w1, port w1", `signal in ""`, `port in "rad/s"`}},
	{"no common value", func(_ *Database, _ *Spec, in, _ []units.Port) { in[0].Min, in[0].Max = 41e5, 50e5 },
		[]string{"signal Pressure.p1, port c1", `[0|40] "bar"`, `4.1e+06 to 5e+06 "Pa"`}},
	{"port range NaN", func(_ *Database, _ *Spec, in, _ []units.Port) { in[0].Max = math.NaN() },
		[]string{"signal Pressure.p1, port c1", "NaN"}},
	{"range beyond the bits", func(db *Database, _ *Spec, _, _ []units.Port) {
		db.Messages[0].Signals[0].Min, db.Messages[0].Signals[0].Max = 50, 60
	}, []string{"signal Pressure.p1, port c1", "12 bits", `[50|60] "bar"`}},
	{"overflow", func(db *Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Factor = 1e308 },
		[]string{"signal Speeds.w1, port w1", "(1e+308,0)", "beyond what a number"}},
	{"underflow", func(db *Database, _ *Spec, _, _ []units.Port) {
		db.Messages[2].Signals[0].Factor, db.Messages[2].Signals[0].Unit = 5e-324, "rpm"
	}, []string{"signal Speeds.w1, port w1", "beyond what a number"}},
	{"input driven twice", func(_ *Database, s *Spec, _, _ []units.Port) { s.Receive[1].Port = "c1" },
		[]string{"signal Pressure.p2, port c1", "driven by Pressure.p1 already"}},
	{"signal sent twice", func(_ *Database, s *Spec, _, _ []units.Port) { s.Send[1].Signal = "w1" },
		[]string{"signal Speeds.w1, port w2", "carries port w1 already"}},
	{"counter sent as a value", func(_ *Database, s *Spec, _, _ []units.Port) { s.Send[1].Signal = "counter_S" },
		[]string{"signal Speeds.counter_S, port w2", "carries the counter already"}},
	{"both ways", func(_ *Database, s *Spec, _, _ []units.Port) { s.Receive[0] = Link{"Speeds", "w1", "c1"} },
		[]string{"signal Speeds.w1, port c1", "is sent too"}},
	{"no cycle", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings = s.Sendings[:1] },
		[]string{"signal Torque.engine, port tau1", "no cycle"}},
	{"multiplexor sent", func(db *Database, _ *Spec, _, _ []units.Port) { db.Messages[2].Signals[0].Multiplexor = true },
		[]string{"signal Speeds.w1, port w1", "(gearbox.dbc:", "give it a constant value"}},
	{"not selected", func(db *Database, _ *Spec, _, _ []units.Port) {
		s := db.Messages[3].Signals
		s[3].Multiplexor, s[0].Under, s[0].Ranges = true, "counter_T", [][2]uint64{{3, 3}}
	}, []string{"message Torque", "counter_T", "says which others are"}},
	{"two on the same bits", func(db *Database, _ *Spec, _, _ []units.Port) {
		s := db.Messages[2].Signals
		s[1].Start, s[1].Shares = s[0].Start, true
	}, []string{"signal Speeds.w2, port w2", `overlaps "w1" (gearbox.dbc:`, "which carries port w1"}},
	{"sent message unknown", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings[0].Message = "speed" },
		[]string{"message speed", `no message "speed"`, "nearest: Speeds"}},
	{"sent message twice", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings[1] = s.Sendings[0] },
		[]string{"message Speeds: given twice"}},
	{"counter unknown", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings[0].Counter = "counter" },
		[]string{"message Speeds: counter", `no signal "counter"`, "nearest: counter_S"}},
	{"cycle off the grid", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings[0].CycleNs = 7_500_000 },
		[]string{"message Speeds", "cycle 7.5 ms", "period 5 ms"}},
	{"cycle zero", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings[0].CycleNs = 0 },
		[]string{"message Speeds", "cycle 0 ms"}},
	{"cycle negative", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings[0].CycleNs = -period },
		[]string{"message Speeds", "cycle -5 ms"}},
	{"phase off the grid", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings[1].PhaseNs = 1 },
		[]string{"message Torque", "phase 1e-06 ms", "period 5 ms"}},
	{"phase of a cycle", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings[1].PhaseNs = 2 * period },
		[]string{"message Torque", "phase 10 ms", "cycle 10 ms"}},
	{"phase negative", func(_ *Database, s *Spec, _, _ []units.Port) { s.Sendings[1].PhaseNs = -period },
		[]string{"message Torque", "phase -5 ms"}},
	{"period zero", func(_ *Database, s *Spec, _, _ []units.Port) { s.PeriodNs = 0 },
		[]string{"period 0 ns is not positive"}},
	{"database", func(db *Database, _ *Spec, _, _ []units.Port) { db.Messages[1].Len = 0 },
		[]string{"gearbox.dbc:21: sigmap: ", `signal "gear"`, "0 bytes"}},
}

func TestBindNamesWhatIsWrong(t *testing.T) {
	for _, c := range wrongSpecs {
		t.Run(c.name, func(t *testing.T) {
			db, s, in, out := gearbox(), spec(), inputs(), outputs()
			c.change(db, &s, in, out)
			m, err := Bind(db, s, in, out)
			if m != nil || err == nil {
				t.Fatalf("Bind gives %v, %v", m, err)
			}
			if !strings.Contains(err.Error(), "sigmap: ") {
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

func TestCheckNamesWhatCannotBe(t *testing.T) {
	good := Signal{Name: "a", Start: 0, Len: 8, Factor: 1, Line: 2}
	other := func(change func(s *Signal)) []Signal {
		s := Signal{Name: "b", Start: 8, Len: 8, Factor: 1, Line: 3}
		change(&s)
		return []Signal{good, s}
	}
	message := func(signals ...Signal) Message {
		return Message{Name: "M", ID: 1, Len: 8, Line: 1, Signals: signals}
	}
	for _, c := range []struct {
		name     string
		messages []Message
		want     string
	}{
		{"name of a message twice", []Message{message(), {Name: "M", ID: 2, Line: 9}}, `x.dbc:9: sigmap: message "M": the name is taken by line 1`},
		{"identifier twice", []Message{message(), {Name: "N", ID: 1, Line: 9}}, `x.dbc:9: sigmap: message "N": identifier 0x1 is taken by message "M"`},
		{"twelve bits", []Message{{Name: "M", ID: 0x800, Line: 1}}, "identifier 0x800 has more than 11 bits"},
		{"thirty bits", []Message{{Name: "M", ID: 1<<29 | can.EFF, Line: 1}}, "identifier 0x20000000 has more than 29 bits"},
		{"nine bytes", []Message{{Name: "M", Len: 9, Line: 1}}, "no CAN frame has 9 bytes"},
		{"sixty-five bytes", []Message{{Name: "M", Len: 65, Line: 1}}, "no CAN frame has 65 bytes"},
		{"name of a signal twice", []Message{message(other(func(s *Signal) { s.Name = "a" })...)}, `x.dbc:3: sigmap: message "M": signal "a": the name is taken by line 2`},
		{"no bits", []Message{message(other(func(s *Signal) { s.Len = 0 })...)}, `signal "b": length 0 is not 1 to 64 bits`},
		{"many bits", []Message{message(other(func(s *Signal) { s.Len = 65 })...)}, "length 65 is not 1 to 64 bits"},
		{"factor zero", []Message{message(other(func(s *Signal) { s.Factor = 0 })...)}, "the factor is 0"},
		{"factor NaN", []Message{message(other(func(s *Signal) { s.Factor = math.NaN() })...)}, "is not finite"},
		{"limit infinite", []Message{message(other(func(s *Signal) { s.Max = math.Inf(1) })...)}, "is not finite"},
		{"float of odd length", []Message{message(other(func(s *Signal) { s.Float = true })...)}, "a float of 8 bits"},
		{"beyond the message", []Message{message(other(func(s *Signal) { s.Start = 57 })...)}, `x.dbc:3: sigmap: message "M": signal "b": 57|8 does not fit the message's 8 bytes`},
		{"motorola beyond the message", []Message{message(other(func(s *Signal) { s.Start, s.BigEndian = 62, true })...)}, "62|8 does not fit"},
		{"beyond any message", []Message{message(other(func(s *Signal) { s.Start = 1 << 30 })...)}, "does not fit"},
		{"overlap", []Message{message(other(func(s *Signal) { s.Start = 7 })...)}, `x.dbc:3: sigmap: message "M": signal "b": 7|8 overlaps signal "a"`},
		{"overlap of byte orders", []Message{message(other(func(s *Signal) { s.Start, s.Len, s.BigEndian = 0, 2, true })...)}, `0|2 overlaps signal "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := (&Database{File: "x.dbc", Messages: c.messages}).Check()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check gives %v, want %q", err, c.want)
			}
		})
	}
}

func TestErrorsOfADatabaseWithoutAFileHaveNoPosition(t *testing.T) {
	err := (&Database{Messages: []Message{{Name: "M", Len: 9}}}).Check()
	if err == nil || !strings.HasPrefix(err.Error(), "sigmap: message ") {
		t.Errorf("error %v", err)
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
