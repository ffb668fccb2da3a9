package messages

import (
	"errors"
	"math"
	"strings"
	"testing"

	"lockstep/io/can"
)

func TestCheckRefusesImpossibleMessagesAndSignals(t *testing.T) {
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
		{"name of a message twice", []Message{message(), {Name: "M", ID: 2, Line: 9}}, `x.dbc:9: message "M": the name is taken by line 1`},
		{"identifier twice", []Message{message(), {Name: "N", ID: 1, Line: 9}}, `x.dbc:9: message "N": identifier 0x1 is taken by message "M"`},
		{"twelve bits", []Message{{Name: "M", ID: 0x800, Line: 1}}, "identifier 0x800 has more than 11 bits"},
		{"thirty bits", []Message{{Name: "M", ID: 1<<29 | can.EFF, Line: 1}}, "identifier 0x20000000 has more than 29 bits"},
		{"nine bytes", []Message{{Name: "M", Len: 9, Line: 1}}, "no CAN frame has 9 bytes"},
		{"sixty-five bytes", []Message{{Name: "M", Len: 65, Line: 1}}, "no CAN frame has 65 bytes"},
		{"name of a signal twice", []Message{message(other(func(s *Signal) { s.Name = "a" })...)}, `x.dbc:3: message "M": signal "a": the name is taken by line 2`},
		{"no bits", []Message{message(other(func(s *Signal) { s.Len = 0 })...)}, `signal "b": length 0 is not 1 to 64 bits`},
		{"many bits", []Message{message(other(func(s *Signal) { s.Len = 65 })...)}, "length 65 is not 1 to 64 bits"},
		{"factor zero", []Message{message(other(func(s *Signal) { s.Factor = 0 })...)}, "the factor is 0"},
		{"factor NaN", []Message{message(other(func(s *Signal) { s.Factor = math.NaN() })...)}, "is not finite"},
		{"limit infinite", []Message{message(other(func(s *Signal) { s.Max = math.Inf(1) })...)}, "is not finite"},
		{"float of odd length", []Message{message(other(func(s *Signal) { s.Float = true })...)}, "a float has 32 or 64 bits, not 8"},
		{"beyond the message", []Message{message(other(func(s *Signal) { s.Start = 57 })...)}, `x.dbc:3: message "M": signal "b": 57|8 does not fit the message's 8 bytes`},
		{"motorola beyond the message", []Message{message(other(func(s *Signal) { s.Start, s.BigEndian = 62, true })...)}, "62|8 does not fit"},
		{"beyond any message", []Message{message(other(func(s *Signal) { s.Start = 1 << 30 })...)}, "does not fit"},
		{"overlap", []Message{message(other(func(s *Signal) { s.Start = 7 })...)}, `x.dbc:3: message "M": signal "b": 7|8 overlaps signal "a"`},
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
	var e *Error
	err := (&Database{Messages: []Message{{Name: "M", Len: 9}}}).Check()
	if !errors.As(err, &e) || e.File != "" || e.Line != 0 || e.Message != "M" || !strings.HasPrefix(err.Error(), `message "M": `) {
		t.Errorf("error %v", err)
	}
}
