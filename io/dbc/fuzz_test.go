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
			var frame [64]byte
			if m.Present(s, &frame) {
				s.Value(s.Raw(&frame))
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
