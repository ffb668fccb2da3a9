package sigmap

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// paged has a message with pages 0, 1 and 3; page 3 has pages of its own, 0 and 2.
func paged() *messages.Database {
	value := func(v uint64) [][2]uint64 { return [][2]uint64{{v, v}} }
	signal := func(name string, start, n int) messages.Signal {
		return messages.Signal{Name: name, Start: start, Len: n, Factor: 1, Unit: "1"}
	}
	list := []messages.Signal{signal("page", 0, 4), signal("a", 8, 8), signal("b", 8, 8), signal("inner", 8, 4),
		signal("c", 16, 8), signal("d", 16, 8), signal("always", 56, 4), signal("n", 60, 4)}
	list[0].Multiplexor, list[3].Multiplexor = true, true
	for i, at := range map[int]struct {
		by    string
		value uint64
	}{1: {"page", 0}, 2: {"page", 1}, 3: {"page", 3}, 4: {"inner", 0}, 5: {"inner", 2}} {
		list[i].MuxedBy, list[i].Ranges = at.by, value(at.value)
	}
	list[5].HasInitial, list[5].Initial = true, 0xD0
	plain := signal("m", 0, 8)
	plain.Multiplexor = true // selects nothing
	return &messages.Database{File: "paged.dbc", Messages: []messages.Message{
		{Name: "Pages", ID: 0x300, Len: 8, Signals: list}, {Name: "Plain", ID: 0x301, Len: 1, Signals: []messages.Signal{plain}},
	}}
}

// bindPaged binds a and b of paged to outputs.
func bindPaged(s Sending, links ...string) (*Map, error) {
	s.Message, s.CycleNs, s.PhaseNs, s.Counter = "Pages", 4*period, period, "n"
	spec := Spec{PeriodNs: period, Sendings: []Sending{s}}
	for i, name := range links {
		spec.Send = append(spec.Send, Link{"Pages", name, fmt.Sprintf("y%d", i)})
	}
	return Bind(paged(), spec, nil, ports("1", "y0", "y1", "y2"))
}

func TestEveryPageOfAMultiplexedMessageIsSentInTurn(t *testing.T) {
	for _, c := range []struct {
		mux   Rotation
		links []string // to outputs with 11, 12 and 9
		want  []string // first three bytes of the frames
	}{
		{Rotation{}, []string{"a", "b", "always"}, []string{"000B00", "010C00", "030007", "0302D0"}},
		{Rotation{Values: []string{"3", "0x0"}}, []string{"a", "always"}, []string{"030007", "0302D0", "000B00"}},
		{Rotation{Values: []string{"1", "0", "1"}}, []string{"a", "b"}, []string{"010C00", "000B00", "010C00"}},
	} {
		s := Sending{Mux: &c.mux}
		if c.want[0] != "010C00" { // the third rotation has no page with c
			s.Values = []Constant{{Signal: "c", Text: "7"}}
		}
		m, err := bindPaged(s, c.links...)
		if err != nil {
			t.Fatal(err)
		}
		var f can.Frame
		for i := range 3 * len(c.want) {
			tick := int64(4*i + 1)
			for k := tick; k < tick+2; k++ { // a frame that the bus refuses is sent again with its page
				count := m.Tx[0].Count
				if !m.Encode(&f, 0, k, []float64{11, 12, 9}, false) {
					t.Fatal("not encoded")
				}
				if got := fmt.Sprintf("%X", f.Data[:3]); got != c.want[i%len(c.want)] || f.Data[7]>>4 != byte(count) {
					t.Errorf("%v: tick %d: %s and % X, want %s; counter %d", c.mux, k, got, f.Data[:8], c.want[i%len(c.want)], count)
				}
			}
		}
		if n := testing.AllocsPerRun(10, func() { m.Encode(&f, 0, 5, []float64{11, 12, 9}, false) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestPagesThatCannotBeSentAreRefused(t *testing.T) {
	all := &Rotation{}
	for _, c := range []struct {
		name  string
		s     Sending
		links []string
		want  string
	}{
		{"no page has it", Sending{Mux: &Rotation{Values: []string{"0", "1"}}}, []string{"c"}, "signal c is in a frame only if inner"},
		{"one page", Sending{Mux: &Rotation{Values: []string{"0"}}}, nil, "the message has one page"},
		{"not cyclic", Sending{Mux: all, Send: Both}, nil, "the message must be cyclic"},
		{"no value", Sending{Mux: &Rotation{Values: []string{"x"}}}, nil, "mux: signal page"},
		{"constant", Sending{Mux: &Rotation{Values: []string{"0", "1"}}, Values: []Constant{{Signal: "page", Text: "1"}}}, nil, "the message has 0 without a constant value"},
		{"without mux", Sending{}, []string{"a"}, "or send every page (mux: all)"},
	} {
		_, err := bindPaged(c.s, c.links...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	db := paged()
	db.Messages[0].Signals[0].Len, db.Messages[0].Signals[0].Start = 64, 64
	db.Messages[0].Len = 16
	db.Messages[0].Signals[1].Ranges[0] = [2]uint64{4, math.MaxUint64}
	_, err := Bind(db, Spec{PeriodNs: period, Sendings: []Sending{{Message: "Pages", CycleNs: period, Mux: all}}}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "more than 256 pages") {
		t.Errorf("a range of 2^64 pages: %v", err)
	}
}

// A constant of the outer multiplexor leaves the pages of the inner one.
func TestAConstantMultiplexorLeavesThePagesOfTheOther(t *testing.T) {
	m, err := bindPaged(Sending{Mux: &Rotation{}, Values: []Constant{{Signal: "page", Text: "3"}}}, "c")
	if err != nil || len(m.Tx[0].Pages) != 2 || m.Tx[0].Pages[0][0] != 3 || m.Tx[0].Pages[1][1] != 2 {
		t.Errorf("%v, %+v", err, m)
	}
}

// An M that selects no signal is bound as a plain signal, in both directions.
func TestAMultiplexorThatSelectsNothingIsAPlainSignal(t *testing.T) {
	m, err := Bind(paged(), Spec{PeriodNs: period, Sendings: []Sending{{Message: "Plain", CycleNs: period}},
		Send: []Link{{"Plain", "m", "y0"}}}, nil, ports("1", "y0"))
	var f can.Frame
	if err != nil || !m.Encode(&f, 0, 0, []float64{42}, false) || f.Data[0] != 42 {
		t.Errorf("%v, %v", err, f.Data[0])
	}
}

// A plant computes no speed of 1e300 rad/s. A signal without a range of its own is limited to what the
// input takes, and refused if that leaves one value.
func TestReceivedValuesAreWithinTheBoundsOfTheirUnit(t *testing.T) {
	bind := func(s messages.Signal) (*Map, error) {
		s.Name, s.Unit = "s", "rad/s"
		return Bind(&messages.Database{File: "x.dbc", Messages: []messages.Message{{Name: "M", ID: 1, Len: 8, Signals: []messages.Signal{s}}}},
			Spec{PeriodNs: period, Receive: []Link{{"M", "s", "x"}}}, ports("rad/s", "x"), nil)
	}
	for _, s := range []messages.Signal{{Len: 16, Factor: 1e300}, {Len: 16, Factor: -1e300, Offset: 5}, {Len: 64, Factor: 1e12, Float: true}} {
		if _, err := bind(s); err == nil || !strings.Contains(err.Error(), "signal M.s, port x") || !strings.Contains(err.Error(), "ranges: {M.s:") {
			t.Errorf("factor %g: %v", s.Factor, err)
		}
	}
	for _, s := range []messages.Signal{{Len: 64, Factor: 1}, {Len: 32, Factor: 1, Float: true}, {Len: 16, Factor: 1e300, Min: -1, Max: 1}, {Len: 40, Signed: true, Factor: 0.5}} {
		m, err := bind(s)
		if err != nil {
			t.Fatal(err)
		}
		f := &m.Rx[0].Fields[0]
		for _, end := range []float64{f.Lo, f.Hi} {
			if v := end*f.Factor + f.Offset; !(math.Abs(v) <= 1e7*(1+1e-6)) {
				t.Errorf("%+v: takes %g rad/s", s, v)
			}
		}
	}
}

func TestCheckSignalRefusesWhatNoPortCanBind(t *testing.T) {
	db := &messages.Database{File: "x.dbc", Messages: []messages.Message{{Name: "M", ID: 1, Len: 8}}}
	for want, s := range map[string]messages.Signal{
		"hold no value of the signal's range": {Len: 8, Factor: 1, Min: 300, Max: 400},
		"beyond the largest number":           {Len: 16, Factor: 1e307},
		"":                                    {Len: 16, Factor: 1e300, Unit: "furlong"},
	} {
		s.Name = "s"
		err := CheckSignal(db, &db.Messages[0], &s)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "ranges: {M.s:")) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
