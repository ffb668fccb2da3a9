package dbc

import (
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/units"
)

// A file that Parse accepts binds, and ParseLenient reads it equally. A file that only
// ParseLenient reads passes Check, too, and its deviations are listed.
func FuzzParseNeverPanics(f *testing.F) {
	for _, file := range []string{"testdata/gearbox.dbc", "testdata/violations.dbc"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(sample))
	f.Add([]byte("BO_ 1 M: 8 X\n SG_ s m0M : 0|8@0- (.25,-1E3) [0|0] \"\xB0\" X"))
	f.Add([]byte(`CM_ "\"`))
	f.Add([]byte("\""))
	f.Add([]byte("\"\nBO_ 1 M: 8 X\n\""))
	f.Add([]byte("NS_ :\n CM_"))
	for _, text := range refused() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		db, list, err := ParseLenient("x.dbc", data)
		if err == nil {
			checkSane(t, db, data)
		}
		lines := strings.Count(decode(data), "\n") + 1
		for _, l := range list {
			if l.Line < 1 || l.Line > lines || l.Col < 0 || l.Col > len(data)+4 || l.Text == "" || len(l.Text) > 20*len(data)+300 {
				t.Errorf("leniency %+v in %d lines", l, lines)
			}
		}
		strict, failure := Parse("x.dbc", data)
		switch {
		case failure != nil:
			if strict != nil || !strings.HasPrefix(failure.Error(), "x.dbc:") || len(failure.Error()) > 20*len(data)+300 {
				t.Errorf("database %v with error %q", strict, failure)
			}
			if err == nil && len(list) == 0 {
				t.Errorf("refused for %v, and no leniency tells of it", failure)
			}
		case err != nil || len(list) > 0 || !reflect.DeepEqual(strict, db):
			t.Errorf("accepted, and lenient %+v with %v, %v, not %+v", db, list, err, strict)
		}
	})
}

// checkSane checks invariants of every accepted database.
func checkSane(t *testing.T, db *messages.Database, data []byte) {
	lines := strings.Count(decode(data), "\n") + 1
	for i := range db.Messages {
		m := &db.Messages[i]
		if m.Line < 1 || m.Line > lines || m.Len > 64 || m.CycleNs < 0 || m.BRS && !m.FD {
			t.Errorf("message %+v in %d lines", m, lines)
		}
		for j := range m.Signals {
			s := &m.Signals[j]
			if bits, ok := s.Bits(); !ok || bits.Bytes() > m.Len {
				t.Errorf("signal %+v does not fit %d bytes", s, m.Len)
			}
			for _, v := range []float64{s.Factor, s.Offset, s.Min, s.Max, s.Initial} {
				if !(math.Abs(v) <= math.MaxFloat64) {
					t.Errorf("signal %+v is not finite", s)
				}
			}
			if s.Factor == 0 || s.MuxedBy != "" && (len(s.Ranges) == 0 || m.Signal(s.MuxedBy) == nil) {
				t.Errorf("signal %+v has no factor or no multiplexor", s)
			}
			if i < 4 && j < 8 {
				checkBits(t, db, m, s, data)
			}
		}
	}
	if _, err := sigmap.Bind(db, sigmap.Spec{PeriodNs: 1}, nil, nil); err != nil {
		t.Errorf("an accepted database does not bind: %v", err)
	}
	for i := range db.Messages {
		CheckPages(t, db, &db.Messages[i])
	}
}

// checkBits checks that the raw value of a signal has the bits of the frame, that sigmap decodes the value,
// and that the value encodes to the same bits. The frame is made of the file.
func checkBits(t *testing.T, db *messages.Database, m *messages.Message, s *messages.Signal, data []byte) {
	f := can.Frame{ID: m.ID, Len: uint8(min(m.Len, 64))}
	for i := range f.Len {
		f.Data[i] = data[(int(i)*37+s.Start)%len(data)] * 167
	}
	for _, by := range m.Selectors(s) { // select it
		clearBits(&f.Data, m.Signal(by.MuxedBy))
		setBits(&f.Data, m.Signal(by.MuxedBy), by.Ranges[0][0])
	}
	raw := s.Raw(&f.Data)
	var again [64]byte
	setBits(&again, s, raw)
	bits, _ := s.Bits()
	for i := range again {
		if again[i] != f.Data[i]&byte(bits[i/8]>>(i%8*8)) {
			t.Fatalf("%+v: raw 0x%X of % x is % x", s, raw, f.Data[:f.Len], again[:f.Len])
		}
	}
	const exact = 1 << 50 // larger values are rounded
	value := s.Value(raw)
	if s.Float || !(math.Abs(value-s.Offset)+math.Abs(s.Offset) < exact*math.Abs(s.Factor)) || m.J1939 || !m.Present(s, &f.Data) ||
		s.Min < s.Max && !(s.Min <= value && value <= s.Max) {
		return
	}

	one := *db
	one.Messages = []messages.Message{*m}
	one.Messages[0].Signals = slices.Clone(m.Signals)
	for i := range one.Messages[0].Signals {
		one.Messages[0].Signals[i].Unit = ""
	}
	link := []sigmap.Link{{Message: m.Name, Signal: s.Name, Port: "x"}}
	port := []units.Port{{Name: "x", Unit: "1", Min: math.Inf(-1), Max: math.Inf(1)}}
	if m.IsFD() {
		f.Flags = can.FlagFDF
	}
	in, err := sigmap.Bind(&one, sigmap.Spec{PeriodNs: 1, Receive: link}, port, nil)
	if err != nil {
		return // two names alike, a range that is not reached: the error says so
	}
	u := []float64{math.NaN()}
	if _, r := in.Decode(u, &f); r != sigmap.OK || u[0] != value {
		t.Fatalf("%+v: raw 0x%X is decoded as %v (result %d), want %v", s, raw, u[0], r, value)
	}
	mux := m.Selectors(s)
	if len(mux) > 0 {
		return // a page is sent: CheckPages
	}
	out, err := sigmap.Bind(&one, sigmap.Spec{PeriodNs: 1, Send: link, Sendings: []sigmap.Sending{{Message: m.Name, CycleNs: 1}}}, nil, port)
	if err != nil {
		return
	}
	var sent can.Frame
	if !out.Encode(&sent, 0, 0, u, false) || s.Raw(&sent.Data) != raw {
		t.Fatalf("%+v: %v is encoded as raw 0x%X, want 0x%X", s, value, s.Raw(&sent.Data), raw)
	}
}

// setBits sets the bits of a raw value in a frame in which they are 0, one by one as the format says.
func setBits(data *[64]byte, s *messages.Signal, raw uint64) {
	at := s.Start
	for i := range s.Len {
		bit := byte(raw >> i & 1)
		if s.BigEndian {
			bit = byte(raw >> (s.Len - 1 - i) & 1)
		}
		data[at/8] |= bit << (at % 8)
		switch {
		case !s.BigEndian:
			at++
		case at%8 == 0:
			at += 15
		default:
			at--
		}
	}
}

// clearBits clears the bits of a signal.
func clearBits(data *[64]byte, s *messages.Signal) {
	bits, _ := s.Bits()
	for i := range data {
		data[i] &^= byte(bits[i/8] >> (i % 8 * 8))
	}
}

// CheckPages checks that a message whose pages can be sent in turn is sent with all its signals. It
// returns the number of pages.
func CheckPages(t *testing.T, db *messages.Database, msg *messages.Message) int {
	m, err := sigmap.Bind(db, sigmap.Spec{PeriodNs: 1, Sendings: []sigmap.Sending{{Message: msg.Name, CycleNs: 1, Mux: &sigmap.Rotation{}}}}, nil, nil)
	if err != nil {
		return 0 // one page, or too many
	}
	sent := map[string]bool{}
	for k := range len(m.Tx[0].Pages) {
		var f can.Frame
		if !m.Encode(&f, 0, int64(k), nil, false) {
			t.Fatalf("page %d of %s is not sent", k, msg.Name)
		}
		for j := range msg.Signals {
			sent[msg.Signals[j].Name] = sent[msg.Signals[j].Name] || msg.Present(&msg.Signals[j], &f.Data)
		}
	}
	for j := range msg.Signals {
		s, selectable := &msg.Signals[j], true
		for _, by := range msg.Selectors(s) {
			most := uint64(math.MaxUint64) >> (64 - msg.Signal(by.MuxedBy).Len)
			selectable = selectable && slices.ContainsFunc(by.Ranges, func(r [2]uint64) bool { return r[0] <= most })
		}
		if selectable && !sent[s.Name] {
			t.Errorf("no page of %s has %s: %+v", msg.Name, s.Name, msg)
		}
	}

	return len(m.Tx[0].Pages)
}
