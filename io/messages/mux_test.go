package messages

import (
	"slices"
	"strings"
	"testing"
)

// octet returns a signal of eight bits; under is the name of its multiplexor, and ranges are the
// raw values of the multiplexor that select the signal.
func octet(name string, start int, under string, ranges ...[2]uint64) Signal {
	return Signal{Name: name, Start: start, Len: 8, Factor: 1, MuxedBy: under, Ranges: ranges}
}

// selector returns a multiplexor of eight bits.
func selector(name string, start int, under string, ranges ...[2]uint64) Signal {
	s := octet(name, start, under, ranges...)
	s.Multiplexor = true
	return s
}

func value(v uint64) [2]uint64 { return [2]uint64{v, v} }

func TestSignalsCollideOnlyIfTheyCanBeInTheSameFrame(t *testing.T) {
	shared := octet("c", 12, "s", value(1))
	shared.MayOverlap = true
	for _, c := range []struct {
		name    string
		signals []Signal
		want    string
	}{
		{"two values", []Signal{selector("s", 0, ""), octet("a", 8, "s", value(0)), octet("b", 8, "s", value(1)), octet("c", 16, "s", value(1))}, ""},
		{"same value", []Signal{selector("s", 0, ""), octet("a", 8, "s", value(0)), octet("b", 8, "s", value(1)), octet("c", 12, "s", value(1))}, `signal "c": 12|8 overlaps signal "b"`},
		{"same value, known", []Signal{selector("s", 0, ""), octet("b", 8, "s", value(1)), shared}, ""},
		{"ranges apart", []Signal{selector("s", 0, ""), octet("a", 8, "s", [2]uint64{0, 3}, value(9)), octet("b", 8, "s", [2]uint64{4, 8})}, ""},
		{"ranges that meet", []Signal{selector("s", 0, ""), octet("a", 8, "s", [2]uint64{0, 3}, value(9)), octet("b", 8, "s", [2]uint64{4, 9})}, `signal "b": 8|8 overlaps signal "a"`},
		{"the multiplexor", []Signal{octet("a", 0, "s", value(0)), selector("s", 4, "")}, `signal "s": 4|8 overlaps signal "a"`},
		{"plain after multiplexed", []Signal{selector("s", 0, ""), octet("a", 8, "s", value(0)), octet("b", 8, "")}, `signal "b": 8|8 overlaps signal "a"`},
		{"under two selectors", []Signal{selector("s", 0, ""), selector("t", 8, ""), octet("a", 16, "s", value(0)), octet("b", 16, "t", value(1))}, `signal "b": 16|8 overlaps signal "a"`},
		{"under a selector that is not there", []Signal{selector("s", 0, ""), selector("t", 8, "s", value(0)), octet("a", 16, "t", value(5)), octet("b", 16, "s", value(1))}, ""},
		{"under a selector that is there", []Signal{selector("s", 0, ""), selector("t", 8, "s", value(0)), octet("a", 16, "t", value(5)), octet("b", 16, "s", value(0))}, `signal "b": 16|8 overlaps signal "a"`},
		{"two selectors on the same bits", []Signal{selector("s", 0, ""), selector("t", 8, "s", value(0)), selector("u", 8, "s", value(1)), octet("a", 16, "t", value(5)), octet("b", 16, "u", value(5))}, ""},
		{"no values", []Signal{selector("s", 0, ""), octet("a", 8, "s")}, `no value of "s" selects it`},
		{"values of nothing", []Signal{octet("a", 8, "", value(0))}, "has no multiplexor"},
		{"selector unknown", []Signal{octet("a", 8, "s", value(0))}, `the message has no signal "s", its multiplexor`},
		{"selector plain", []Signal{octet("s", 0, ""), octet("a", 8, "s", value(0))}, `its multiplexor "s" is not marked as one (M)`},
		{"circle", []Signal{selector("s", 0, "t", value(0)), selector("t", 8, "s", value(0))}, "in a circle"},
		{"empty range", []Signal{selector("s", 0, ""), octet("a", 8, "s", [2]uint64{2, 1})}, "2-1 selects nothing"},
	} {
		err := (&Database{Messages: []Message{{Name: "M", Len: 8, Signals: c.signals}}}).Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Check gives %v, want %q", c.name, err, c.want)
		}
	}
}

func TestSignalIsPresentIfItsMultiplexorsSelectIt(t *testing.T) {
	m := Message{Name: "M", Len: 8, Signals: []Signal{
		selector("s", 0, ""), selector("t", 8, "s", value(1), [2]uint64{5, 7}), octet("a", 16, "t", value(2)), octet("b", 24, ""),
	}}
	for _, c := range []struct {
		s, t byte
		want []string
	}{
		{0, 2, []string{"s", "b"}},
		{1, 0, []string{"s", "t", "b"}},
		{1, 2, []string{"s", "t", "a", "b"}},
		{4, 2, []string{"s", "b"}},
		{6, 2, []string{"s", "t", "a", "b"}},
		{8, 2, []string{"s", "b"}},
	} {
		var got []string
		for i := range m.Signals {
			if m.Present(&m.Signals[i], &[64]byte{c.s, c.t}) {
				got = append(got, m.Signals[i].Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("s=%d t=%d: %v, want %v", c.s, c.t, got, c.want)
		}
	}
}
