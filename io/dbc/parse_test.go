package dbc

import (
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// sample has one of each construct of real files.
const sample = `VERSION "1.0"


NS_ :
	NS_DESC_
	CM_
	BA_DEF_
	VAL_
	SG_MUL_VAL_

BS_:

BU_: TCU Bench
VAL_TABLE_ OnOff 1 "on" 0 "off" ;

BO_ 272 Pressure: 8 TCU
 SG_ p1 : 0|12@1+ (0.01,0) [0|40] "bar"  Bench
 SG_ p2:12|12@1+(1E-2,-0.5)[-0.5|40.0] "bar" Bench,Other
 SG_ counter : 52|4@1+ (1,0) [0|15] ""  Bench

BO_ 2566849795 ETC1: 8 Vector__XXX
 SG_ mode M : 0|2@1+ (1,0) [0|3] "" Vector__XXX
 SG_ slip m0 : 8|16@0- (0.125,0) [0|0] "rpm" Vector__XXX
 SG_ gear m1M : 8|8@1- (1,-125) [-125|125] "" Vector__XXX

BO_ 3221225472 VECTOR__INDEPENDENT_SIG_MSG: 0 Vector__XXX
 SG_ orphan : 0|8@1+ (1,0) [0|0] "" Vector__XXX

BO_ 1024 Long: 64 Bench
 SG_ f32 : 480|32@1- (1,0) [0|0] "N.m" TCU

BO_TX_BU_ 272 : TCU,Bench;
EV_ env: 0 [0|1] "" 0 1 DUMMY_NODE_VECTOR0 Vector__XXX;
CM_ "a file; with BO_ 1 X: 8 in a comment
BO_ 2 Y: 8 Z";
CM_ SG_ 272 p1 "says \"bar\"; really";
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_ "GenMsgCycleTime" BO_ 272 10;
VAL_ 272 counter 15 "last" 0 "first";
VAL_ 272 p1 0 "none" ;
SIG_GROUP_ 272 group 1 : p1 p2;
SG_MUL_VAL_ 2566849795 slip mode 0-0, 2-3;
SIG_VALTYPE_ 1024 f32 : 1;
SIG_VALTYPE_ 3221225472 orphan : 1;
`

func parse(t *testing.T, text string) *messages.Database {
	t.Helper()
	db, err := Parse("x.dbc", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestParseReadsMessagesAndSignals(t *testing.T) {
	bench, other, tcu := []string{"Bench"}, []string{"Bench", "Other"}, []string{"TCU"}
	want := []messages.Message{
		{Name: "Pressure", ID: 0x110, Len: 8, Line: 16, Sender: "TCU", OtherSenders: bench, CycleNs: 10e6, NoFormat: true, Signals: []messages.Signal{
			{Name: "p1", Start: 0, Len: 12, Factor: 0.01, Max: 40, Unit: "bar", Line: 17, Receivers: bench,
				Comment: `says "bar"; really`, Values: []messages.Value{{Raw: 0, Text: "none"}}},
			{Name: "p2", Start: 12, Len: 12, Factor: 0.01, Offset: -0.5, Min: -0.5, Max: 40, Unit: "bar", Line: 18, Receivers: other},
			{Name: "counter", Start: 52, Len: 4, Factor: 1, Max: 15, Line: 19, Receivers: bench,
				Values: []messages.Value{{Raw: 15, Text: "last"}, {Raw: 0, Text: "first"}}},
		}},
		{Name: "ETC1", ID: 0x18FF0503 | can.EFF, Len: 8, Line: 21, NoFormat: true, Signals: []messages.Signal{
			{Name: "mode", Start: 0, Len: 2, Factor: 1, Max: 3, Multiplexor: true, Line: 22},
			{Name: "slip", Start: 8, Len: 16, BigEndian: true, Signed: true, Factor: 0.125, Unit: "rpm",
				MuxedBy: "mode", Ranges: [][2]uint64{{0, 0}, {2, 3}}, Line: 23},
			{Name: "gear", Start: 8, Len: 8, Signed: true, Factor: 1, Offset: -125, Min: -125, Max: 125,
				Multiplexor: true, MuxedBy: "mode", Ranges: [][2]uint64{{1, 1}}, Line: 24},
		}},
		{Name: "Long", ID: 0x400, Len: 64, Line: 29, Sender: "Bench", FD: true, LongFD: true, NoFormat: true, Signals: []messages.Signal{
			{Name: "f32", Start: 480, Len: 32, Signed: true, Factor: 1, Unit: "N.m", Float: true, Line: 30, Receivers: tcu},
		}},
	}
	db := parse(t, sample)
	if db.File != "x.dbc" || !reflect.DeepEqual(db.Messages, want) {
		t.Errorf("read %+v\nwant %+v", db.Messages, want)
	}
}

func TestParseIgnoresTheKindOfLineEnds(t *testing.T) {
	want := parse(t, sample)
	for name, text := range map[string]string{
		"CR LF":           strings.ReplaceAll(sample, "\n", "\r\n"),
		"CR":              strings.ReplaceAll(sample, "\n", "\r"),
		"byte order mark": "\uFEFF" + sample,
		"UTF-16":          wideText(sample, binary.LittleEndian),
		"UTF-16 BE":       wideText(sample, binary.BigEndian),
		"no end of line":  strings.TrimSpace(sample),
		"tabs":            strings.ReplaceAll(sample, " SG_", "\tSG_"),
	} {
		if got := parse(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %+v\nwant %+v", name, got, want)
		}
	}
}

// wideText returns s as UTF-16 with its byte order mark.
func wideText(text string, order binary.AppendByteOrder) string {
	b := order.AppendUint16(nil, 0xFEFF)
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func TestParseReadsSmallFiles(t *testing.T) {
	for _, text := range []string{
		`VERSION ""`, "NS_ :\nBS_:\n", "NS_ :\n BS_\n", "BS_: 500,1,1;\nBU_:\n  A B\n  C\n", "NS_ :\n\tCM_\n\tFUTURE_\n\nBS_:\n",
	} {
		if db := parse(t, text); len(db.Messages) != 0 {
			t.Errorf("%q has messages %+v", text, db.Messages)
		}
	}
}

func TestTextIsUTF8OrWindows1252(t *testing.T) {
	file := func(unit string) string {
		return "BO_ 1 M: 8 X\n SG_ s : 0|8@1+ (1,0) [0|0] \"" + unit + "\" X\n"
	}
	for _, c := range []struct{ name, unit, want string }{
		{"UTF-8", "N·m", "N·m"},
		{"middle dot of 1252", "N\xB7m", "N·m"},
		{"degree of 1252", "\xB0C", "°C"},
		{"squared of 1252", "m/s\xB2", "m/s²"},
		{"euro of 1252", "\x80/km", "€/km"},
		{"per mille of 1252", "\x89", "‰"},
		{"last of the block", "\x9F", "Ÿ"},
		{"unassigned", "\x81\x9D", "\u0081\u009D"},
	} {
		if got := parse(t, file(c.unit)).Messages[0].Signals[0].Unit; got != c.want {
			t.Errorf("%s: unit %q, want %q", c.name, got, c.want)
		}
	}
}

// message and signal form a file of one message, on line 1, and one signal, on line 2.
const message = "BO_ 1 M: 8 X\n"

func signal(rest string) string { return message + " SG_ s " + rest + "\n" }

// wrongFiles are files that Parse refuses, with a part of the error.
var wrongFiles = []struct{ name, text, want string }{
	{"not a database", "plant: powershift\n", `x.dbc:1:1: dbc: "plant" where a keyword such as BO_ or SG_ should be`},
	{"number at the start", "\n\n  5\n", `x.dbc:3:3: dbc: "5" where a keyword`},
	{"version without a text", "VERSION 1\n", `x.dbc:1:9: dbc: "1" where the version between quotes should be`},
	{"identifier", "BO_ x M: 8 X", `x.dbc:1:5: dbc: "x" where the identifier should be`},
	{"identifier of 33 bits", "BO_ 4294967296 M: 8 X", `x.dbc:1:5: dbc: "4294967296" where the identifier`},
	{"negative identifier", "BO_ -1 M: 8 X", `x.dbc:1:5: dbc: "-1" where the identifier`},
	{"identifier with a fraction", "BO_ 1.5 M: 8 X", `x.dbc:1:5: dbc: "1.5" where the identifier`},
	{"message name", "BO_ 1 \"M\": 8 X", `x.dbc:1:7: dbc: "M" where the message's name`},
	{"colon", "BO_ 1 M 8 X", `x.dbc:1:9: dbc: "8" where ":" should be`},
	{"length", "BO_ 1 M: X", `x.dbc:1:10: dbc: "X" where the message's length`},
	{"end in a message", "BO_ 1", `dbc: the end of the file where the message's name should be`},
	{"signal without a message", " SG_ s : 0|8@1+ (1,0) [0|0] \"\" X", `x.dbc:1:2: dbc: "SG_" where a message (BO_) before`},
	{"multiplexor", signal(`x0 : 0|8@1+ (1,0) [0|0] "" X`), `x.dbc:2:8: dbc: "x0" where a colon, or the multiplexor's`},
	{"multiplexor without a value", signal(`m : 0|8@1+ (1,0) [0|0] "" X`), `x.dbc:2:8: dbc: "m" where`},
	{"multiplexor without a value, extended", signal(`mM : 0|8@1+ (1,0) [0|0] "" X`), `x.dbc:2:8: dbc: "mM" where`},
	{"start", signal(`: -1|8@1+ (1,0) [0|0] "" X`), `x.dbc:2:10: dbc: "-1" where the start bit`},
	{"bar", signal(`: 0 8@1+ (1,0) [0|0] "" X`), `x.dbc:2:12: dbc: "8" where "|"`},
	{"bits", signal(`: 0|e@1+ (1,0) [0|0] "" X`), `dbc: "e" where the length in bits`},
	{"byte order", signal(`: 0|8@2+ (1,0) [0|0] "" X`), `dbc: "2" where 1 (Intel) or 0 (Motorola)`},
	{"sign", signal(`: 0|8@1 (1,0) [0|0] "" X`), `dbc: "(" where + (unsigned) or - (signed)`},
	{"factor", signal(`: 0|8@1+ (a,0) [0|0] "" X`), `dbc: "a" where the factor`},
	{"factor too large", signal(`: 0|8@1+ (1e999,0) [0|0] "" X`), `dbc: message "M": signal "s": the factor 1e999 is beyond the largest number`},
	{"factor NaN", signal(`: 0|8@1+ (NaN,0) [0|0] "" X`), `dbc: "NaN" where the factor`},
	{"decimal comma", signal(`: 0|8@1+ (0,5,0) [0|0] "" X`), `dbc: "," where ")"`},
	{"limits", signal(`: 0|8@1+ (1,0) [0;0] "" X`), `dbc: ";" where "|"`},
	{"nothing", "", `x.dbc:1:1: dbc: the file has no statement`},
	{"blank", " \r\n\n", `x.dbc:1:1: dbc: the file has no statement`},
	{"limits the wrong way round", signal(`: 0|8@1+ (1,0) [9|-1] "" X`), `x.dbc:2:24: dbc: the minimum 9 is above the maximum -1`},
	{"unit", signal(`: 0|8@1+ (1,0) [0|0] bar X`), `dbc: "bar" where the unit between quotes`},
	{"text without end", signal(`: 0|8@1+ (1,0) [0|0] "bar X`), `x.dbc:2:29: dbc: the end of the file where the closing quote of this text should be`},
	{"float of nothing", message + `SIG_VALTYPE_ 1 s : 1;`, `x.dbc:2:16: dbc: message "M" has no signal "s"`},
	{"float type", signal(`: 0|32@1+ (1,0) [0|0] "" X`) + `SIG_VALTYPE_ 1 s : 7;`, `dbc: "7" where 0, 1 (float) or 2 (double)`},
	{"long token", "BO_ 1 \"" + strings.Repeat("x", 100) + "\"", strings.Repeat("x", 40) + `"... where`},
	{"column in characters", "VERSION \"é\" ü", `x.dbc:1:13: dbc: "ü" where a keyword`},
	{"name with a digit first", "BO_ 1 2017_5: 8 X", `x.dbc:1:7: dbc: "2017_5" is not a name`},
	{"name with a dash", signal(`: 0|8@1+ (1,0) [0|0] "" A,B-C`), `x.dbc:2:34: dbc: "B-C" is not a name`},
	{"point without a digit before", signal(`: 0|8@1+ (.25,0) [0|0] "" X`), `x.dbc:2:18: dbc: the number ".25" has no digit before its point`},
	{"point without a digit after", signal(`: 0|8@1+ (1,0) [0|-2.E1] "" X`), `dbc: the number "-2.E1" has no digit after its point`},
	{"plus", signal(`: 0|8@1+ (1,0) [0|+127] "" X`), `dbc: the number "+127" begins with +`},
	{"end of a signal", signal(`: 0|8@1+ (1,0) [0|0] "" X; BO_`), `x.dbc:2:33: dbc: ";" where the end of the line should be`},
	{"end of a message", "BO_ 1 M: 8 X Y", `x.dbc:1:14: dbc: "Y" where the end of the line`},
	{"comment with slashes", message + "// \" BO_ \n", `x.dbc:2:1: dbc: the format has no comments with //`},
	{"semicolon", message + "CM_ BO_ 1 \"a\"\nBO_ 2 N: 8 X", `x.dbc:3:1: dbc: "BO_" where ";" should be`},
	{"semicolon at the end", message + "CM_ BO_ 1 \"a\"\n", `dbc: the end of the file where ";" should be`},
	{"statement goes on", message + "CM_ BO_ 1 \"a\" \"b\";", `x.dbc:2:15: dbc: "b" where ";" should be`},
	{"comment of no message", message + `CM_ BO_ 2 "a";`, `x.dbc:2:9: dbc: no message has the identifier 2`},
	{"comment of no signal", message + `CM_ SG_ 1 s "a";`, `x.dbc:2:11: dbc: message "M" has no signal "s"`},
	{"comment without the signal's name", message + `CM_ SG_ 1 "a";`, `x.dbc:2:11: dbc: "a" where the signal's name should be`},
	{"comment without BO_", message + `CM_ 1 "a";`, `x.dbc:2:5: dbc: "1" where the comment between quotes, or BU_, BO_, SG_, EV_ should be`},
	{"value of no signal", message + `VAL_ 1 s 1 "a";`, `dbc: message "M" has no signal "s"`},
	{"value without a text", signal(`: 0|8@1+ (1,0) [0|0] "" X`) + `VAL_ 1 s 1 2 "a";`, `x.dbc:3:12: dbc: "2" where the value's text`},
	{"value with a fraction", signal(`: 0|8@1+ (1,0) [0|0] "" X`) + `VAL_ 1 s 1.0 "a";`, `x.dbc:3:10: dbc: the number "1.0" is not written as a whole number`},
	{"value of 65 bits", signal(`: 0|8@1+ (1,0) [0|0] "" X`) + `VAL_ 1 s 18446744073709551616 "a";`, `"18446744073709551616" where a raw value should be`},
	{"double of 32 bits", signal(`: 0|32@1+ (1,0) [0|0] "" X`) + `SIG_VALTYPE_ 1 s : 2;`, `dbc: 2 (1 is float, 2 is double) for a signal of 32 bits`},
	{"type of an attribute", `BA_DEF_ BO_ "A" NUMBER;`, `x.dbc:1:17: dbc: "NUMBER" where INT, HEX, FLOAT, STRING or ENUM should be`},
	{"attribute that is not defined", message + `BA_ "A" BO_ 1 5;`, `x.dbc:2:5: dbc: attribute "A" is not defined (BA_DEF_)`},
	{"attribute without a value", message + `BA_DEF_ "A" INT 0 1;` + "\n" + `BA_ "A";`, `x.dbc:3:8: dbc: ";" where the attribute's value should be`},
	{"negative cycle", message + `BA_DEF_ BO_ "GenMsgCycleTime" INT 0 1;` + "\n" + `BA_ "GenMsgCycleTime" BO_ 1 -1;`, `x.dbc:3:29: dbc: "-1" for the attribute "GenMsgCycleTime", a number from 0 to 1e+09`},
	{"start value", signal(`: 0|8@1+ (1,0) [0|0] "" X`) + `BA_DEF_ SG_ "GenSigStartValue" STRING ;` + "\n" + `BA_ "GenSigStartValue" SG_ 1 s "x";`, `x.dbc:4:32: dbc: "x" for the attribute "GenSigStartValue", a number`},
	{"range without its end", signal(`M : 0|8@1+ (1,0) [0|0] "" X`) + ` SG_ t m0 : 8|8@1+ (1,0) [0|0] "" X` + "\nSG_MUL_VAL_ 1 t s 2;", `x.dbc:4:20: dbc: ";" where "-" and the last value`},
	{"two multiplexors", signal(`M : 0|8@1+ (1,0) [0|0] "" X`) + ` SG_ t M : 8|8@1+ (1,0) [0|0] "" X` + "\n" + ` SG_ u m0 : 16|8@1+ (1,0) [0|0] "" X`, `message "M": signal "u": which of ["s" "t"] is its multiplexor?`},
}

func TestSyntaxErrorsNamePositionAndText(t *testing.T) {
	for _, c := range wrongFiles {
		t.Run(c.name, func(t *testing.T) {
			db, err := Parse("x.dbc", []byte(c.text))
			var e *SyntaxError
			if db != nil || !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Parse gives %v, want %q", err, c.want)
			}
		})
	}
}

// impossibleFiles follow the format but describe an impossible database.
var impossibleFiles = []struct {
	name, text string
	want       messages.Flaw
}{
	{"beyond the message", signal(`: 60|8@1+ (1,0) [0|0] "" X`), messages.Flaw{Line: 2, Message: "M", Signal: "s", Err: errors.New(`60|8 does not fit the message's 8 bytes`)}},
	{"length zero", signal(`: 0|0@1+ (1,0) [0|0] "" X`), messages.Flaw{Line: 2, Message: "M", Signal: "s", Err: errors.New(`length 0 is not 1 to 64 bits`)}},
	{"factor zero", signal(`: 0|8@1+ (0,0) [0|0] "" X`), messages.Flaw{Line: 2, Message: "M", Signal: "s", Err: errors.New(`the factor is 0`)}},
	{"overlap", signal(`: 0|8@1+ (1,0) [0|0] "" X`) + ` SG_ t : 7|8@1+ (1,0) [0|0] "" X`, messages.Flaw{Line: 3, Message: "M", Signal: "t", Err: errors.New(`7|8 overlaps signal "s"`)}},
	{"signal twice", signal(`: 0|8@1+ (1,0) [0|0] "" X`) + ` SG_ s : 8|8@1+ (1,0) [0|0] "" X`, messages.Flaw{Line: 3, Message: "M", Signal: "s", Err: errors.New(`the name is taken by line 2`)}},
	{"message twice", message + message, messages.Flaw{Line: 2, Message: "M", Err: errors.New(`identifier 0x1 is taken by message "M" in line 1`)}},
	{"identifier twice", message + "BO_ 1 N: 8 X", messages.Flaw{Line: 2, Message: "N", Err: errors.New(`identifier 0x1 is taken by message "M" in line 1`)}},
	{"float of 16 bits", signal(`: 0|16@1+ (1,0) [0|0] "" X`) + `SIG_VALTYPE_ 1 s : 1;`, messages.Flaw{Line: 2, Message: "M", Signal: "s", Err: errors.New(`a float has 32 or 64 bits, not 16`)}},
	{"no multiplexor", signal(`m0 : 0|8@1+ (1,0) [0|0] "" X`), messages.Flaw{Line: 2, Message: "M", Signal: "s", Err: errors.New(`the signal is multiplexed, but the message has no multiplexor (M)`)}},
	{"multiplexor that is none", signal(`m0 : 0|8@1+ (1,0) [0|0] "" X`) + ` SG_ t : 8|8@1+ (1,0) [0|0] "" X` + "\nSG_MUL_VAL_ 1 s t 0-0;", messages.Flaw{Line: 2, Message: "M", Signal: "s", Err: errors.New(`its multiplexor "t" is not marked as one (M)`)}},
	{"multiplexor that is no signal", signal(`m0 : 0|8@1+ (1,0) [0|0] "" X`) + "SG_MUL_VAL_ 1 s t 0-0;", messages.Flaw{Line: 2, Message: "M", Signal: "s", Err: errors.New(`the message has no signal "t", its multiplexor`)}},
	{"multiplexor of itself", signal(`m0M : 0|8@1+ (1,0) [0|0] "" X`) + "SG_MUL_VAL_ 1 s s 0-0;", messages.Flaw{Line: 2, Message: "M", Signal: "s", Err: errors.New(`it is multiplexed in a circle, or more than 16 levels deep`)}},
	{"range of nothing", signal(`M : 0|8@1+ (1,0) [0|0] "" X`) + ` SG_ t m0 : 8|8@1+ (1,0) [0|0] "" X` + "\nSG_MUL_VAL_ 1 t s 2-1;", messages.Flaw{Line: 3, Message: "M", Signal: "t", Err: errors.New(`2-1 selects nothing`)}},
	{"J1939 beyond the longest message", "BO_ 2566844926 M: 1786 X\n" + `BA_DEF_ "ProtocolType" STRING ;` + "\n" + `BA_ "ProtocolType" "J1939";`, messages.Flaw{Line: 1, Message: "M", Err: errors.New(`a J1939 message has up to 1785 bytes, not 1786`)}},
	{"29 bits without bit 31", "BO_ 419366147 M: 8 X", messages.Flaw{Line: 1, Message: "M", Err: errors.New(`identifier 0x18FF0503`)}},
}

func TestParseChecksTheDatabase(t *testing.T) {
	for _, c := range impossibleFiles {
		t.Run(c.name, func(t *testing.T) {
			db, err := Parse("x.dbc", []byte(c.text))
			var e *messages.Error
			if db != nil || !errors.As(err, &e) || !strings.HasPrefix(e.Err.Error(), c.want.Err.Error()) {
				t.Fatalf("Parse gives %v, want %v", err, c.want.Err)
			}
			if e.File != "x.dbc" || e.Line != c.want.Line || e.Message != c.want.Message || e.Signal != c.want.Signal {
				t.Errorf("Parse gives %v, want line %d, message %q, signal %q", err, c.want.Line, c.want.Message, c.want.Signal)
			}
		})
	}
}

func TestNumberFormMatchesTheWholeNumber(t *testing.T) {
	for text, want := range map[string]int{
		"1": 1, "12.5": 4, ".25": 3, "1.": 2, "-1": 2, "+1": 2, "1e3": 3, "1E-06": 5, "1e+3x": 4,
		"1e": 1, "1e+": 1, "1+": 1, "1-(": 1, "-": 0, "+(": 0, ".": 0, "-.": 0, "e3": 0, "": 0, "-.5E1|": 5,
	} {
		if got := len(numberForm.FindString(text)); got != want {
			t.Errorf("%q begins with a number of %d characters, want %d", text, got, want)
		}
	}
}
