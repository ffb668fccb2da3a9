package dbc

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// violations lists the deviations in testdata/violations.dbc: line, column, text. Those with
// column 0 come from messages.Repair.
const violations = `1:1 the format has no comments with //; skipped
7:0 message "Good": signal "over": ...; both stay
8:0 message "Good": signal "beyond": ...; left out
9:0 message "Good": signal "first": ...; called first_2
10:6 "0_COUNTER" is not a name: letters, digits and _, not a digit first; taken as it is
11:6 "with-dash" is not a name: letters, digits and _, not a digit first; taken as it is
11:27 the number ".25" has no digit before its point; read as a number
11:31 the number "-.5" has no digit before its point; read as a number
11:37 the number "-.5" has no digit before its point; read as a number
11:41 the number "+3.25" begins with +; read as a number
12:23 "(" where + (unsigned) or - (signed) should be; taken as +
13:0 message "Good": signal "no_factor": ...; taken as 1
14:23 "1" where "(" should be; left out
15:22 the number "1." has no digit after its point; read as a number
15:38 ";" where the end of the line should be; skipped
17:0 message "Unmarked": ...; taken as extended
20:0 message "TooLong": ...; left out
23:9 "2017_5" is not a name: letters, digits and _, not a digit first; taken as it is
24:0 message "Again": ...; left out
26:0 message "Good": ...; called Good_2
27:0 message "Nine": ...; taken as 12
28:0 message "Long": ...; left out
29:5 "x" where the identifier should be; left out
33:10 "m" where a multiplexor's M or m0 should be; taken as M
36:8 "m" where a multiplexor's M or m0 should be; taken as a plain signal
37:0 message "Mux": signal "d": ...; left out
40:0 message "NoMux": signal "a": ...; left out
45:1 message "TwoMux": signal "a": which of ["m1st" "m2nd"] is its multiplexor?; taken for m1st
48:0 message "Float": signal "half": ...; taken as an integer
51:1 "FUTURE_" where a keyword such as BO_ or SG_ should be; left out
52:13 a comment where the signal's name should be; taken for the message
53:5 "101" where BO_ should be; taken as a message's identifier
54:9 no message has the identifier 999; left out
55:13 message "Good" has no signal "nobody"; left out
57:5 attribute "Undefined" is not defined (BA_DEF_); taken as it is
59:31 "-5" for the attribute "GenMsgCycleTime", a number from 0 to 1e+09; left out
61:1 "VAL_" where ";" should be; taken as if it were there
61:15 the number "1.0" is not written as a whole number; taken as 1
64:27 2 (1 is float, 2 is double) for a signal of 32 bits; the bits decide
65:17 the end of the file where the closing quote of this text should be; left out
`

// survivors is the database that remains.
const survivors = `64 Good 8 "no name" first 0|8(1,0) over 4|8(1,0) shares first_2 16|8(1,0) 0_COUNTER 24|4(1,0) with-dash 28|4(0.25,-0.5) no_sign 32|8(1,0) no_factor 40|8(1,0) last 56|4(1,0)
18FF0503 Unmarked 8 "with the number as it is above" slip 0|16(1,0)
65 2017_5 8 "no BO_"
66 Good_2 8 ""
67 Nine 12 ""
69 Mux 8 "" sel 0|8(1,0) a 8|8(1,0) under sel [[0 0]] b 8|8(1,0) under sel [[1 1]] c 16|8(1,0)
6A NoMux 8 ""
6B TwoMux 8 "" m1st 0|8(1,0) m2nd 8|8(1,0) a 16|8(1,0) under m1st [[0 0]]
6C Float 8 "" half 0|16(1,0) single 32|32(1,0)
`

// reason matches a message of messages.Repair with names, reason and remedy.
var reason = regexp.MustCompile(`^(message "\w+": (?:signal "\w+": )?).*(; [^;]*)$`)

func TestLenientReportsEveryViolationByLine(t *testing.T) {
	data, err := os.ReadFile("testdata/violations.dbc")
	if err != nil {
		t.Fatal(err)
	}
	db, list, err := ParseLenient("x.dbc", data)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Check(); err != nil {
		t.Error(err)
	}
	var got strings.Builder
	for _, l := range list {
		text := l.Text
		if l.Col == 0 {
			text = reason.ReplaceAllString(text, "$1...$2")
		}
		fmt.Fprintf(&got, "%d:%d %s\n", l.Line, l.Col, text)
	}
	if got.String() != violations {
		t.Errorf("deviations\n%s\nwant\n%s", got.String(), violations)
	}
	if got := summary(db); got != survivors {
		t.Errorf("the database is\n%s\nwant\n%s", got, survivors)
	}
}

// summary returns a database as text, one line per message.
func summary(db *messages.Database) string {
	var b strings.Builder
	for i := range db.Messages {
		m := &db.Messages[i]
		fmt.Fprintf(&b, "%X %s %d %q", m.ID&can.MaskEFF, m.Name, m.Len, m.Comment)
		for _, s := range m.Signals {
			fmt.Fprintf(&b, " %s %d|%d(%g,%g)", s.Name, s.Start, s.Len, s.Factor, s.Offset)
			if s.MuxedBy != "" {
				fmt.Fprintf(&b, " under %s %v", s.MuxedBy, s.Ranges)
			}
			if s.MayOverlap {
				b.WriteString(" shares")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// ParseLenient reads every file that Parse refuses and names the line, too. It fails only
// if it can read no statement.
func TestLenientReadsFilesThatStrictRefuses(t *testing.T) {
	for name, text := range refused() {
		t.Run(name, func(t *testing.T) {
			_, failure := Parse("x.dbc", []byte(text))
			db, list, err := ParseLenient("x.dbc", []byte(text))
			switch {
			case failure == nil:
				t.Fatal("strict accepts it")
			case err != nil:
				if newParser("", nil).statements[nameForm.FindString(text)] != nil || strings.TrimSuffix(err.Error(), "; left out") != failure.Error() {
					t.Errorf("error %v, strict %v", err, failure)
				}
				return
			}
			if err := db.Check(); err != nil {
				t.Error(err)
			}
			line := 0
			var syntax *SyntaxError
			var checked *messages.Error
			if errors.As(failure, &syntax) {
				line = syntax.Line
			} else if errors.As(failure, &checked) {
				line = checked.Line
			}
			for _, l := range list {
				if l.Line == line {
					return
				}
			}
			t.Errorf("%v is not in %v", failure, list)
		})
	}
}

// refused returns the files that Parse refuses, by name.
func refused() map[string]string {
	all := map[string]string{}
	for _, c := range wrongFiles {
		all[c.name] = c.text
	}
	for _, c := range impossibleFiles {
		all[c.name] = c.text
	}
	return all
}
