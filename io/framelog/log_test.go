package framelog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"lockstep/io/can"
	"lockstep/io/framelog"
	"lockstep/io/record"
)

// readLog reads a log to its end, one line per frame.
func readLog(text string) (out string, skipped int, err error) {
	l, err := framelog.New("log", strings.NewReader(text))
	if err != nil {
		return "", 0, err
	}
	for {
		f, err := l.Next()
		if err == io.EOF {
			return out, l.Skipped, nil
		}
		if err != nil {
			return out, l.Skipped, err
		}
		out += fmt.Sprintf("%d %s %d %s %v\n", f.Line, f.Channel, f.Time, framelog.AppendCandump(nil, &f.Frame), f.Sent)
	}
}

// brokenFile is a file that can be read up to a byte.
type brokenFile struct{ head string }

func (f brokenFile) Size() int64 { return int64(len(f.head)) + 100 }
func (f brokenFile) ReadAt(b []byte, at int64) (n int, err error) {
	if at < int64(len(f.head)) {
		n = copy(b, f.head[at:])
	}
	if n < len(b) {
		err = syscall.EIO
	}
	return n, err
}

func TestLogThatCannotBeReadIsRefusedWithTheCause(t *testing.T) {
	for _, head := range []string{"", "(1.0) can0 1#", "date Fri\n"} {
		if _, err := framelog.New("log", brokenFile{head}); !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), "framelog: log: ") {
			t.Errorf("a log of %q, then an error: %v", head, err)
		}
	}
}

func TestCandumpLogsOfOtherProgramsAreRead(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"plain":               {"(1436509052.249713) vcan0 123#1122", "vcan0 1436509052249713000 123#1122 false"},
		"received":            {"(0.5) can1 00000123#AA R", "can1 500000000 00000123#AA false"},
		"sent":                {"(0.5) can1 123#aa T", "can1 500000000 123#AA true"},
		"nanoseconds":         {"(1.123456789) can1 1#", "can1 1123456789 001#"},
		"no data":             {"(1.0) can1 7FF#", "can1 1000000000 7FF#"},
		"dots":                {"(1.0) can1 7FF#11.22.33", "can1 1000000000 7FF#112233"},
		"remote":              {"(1.0) can1 7FF#R", "can1 1000000000 7FF#R"},
		"remote with length":  {"(1.0) can1 7FF#R5", "can1 1000000000 7FF#R5"},
		"raw length code":     {"(1.0) can1 7FF#1122334455667788_B", "can1 1000000000 7FF#1122334455667788"},
		"FD":                  {"(1.0) can1 7FF##1112233", "can1 1000000000 7FF##1112233"},
		"FD of a new kernel":  {"(1.0) can1 7FF##511", "can1 1000000000 7FF##111"},
		"FD, 9 bytes":         {"(1.0) can1 7FF##0112233445566778899", "can1 1000000000 7FF##0112233445566778899000000"},
		"error frame":         {"(1.0) can1 20000004#0001000000000000", "can1 1000000000 20000004#0001000000000000"},
		"extended, zero":      {"(1.0) can1 00000000#", "can1 1000000000 00000000#"},
		"extended, all":       {"(1.0) can1 1FFFFFFF#", "can1 1000000000 1FFFFFFF#"},
		"extended, with flag": {"(1.0) can1 80000001#", "can1 1000000000 00000001#"},
		"Windows":             {"(1.0) can1 1#\r", "can1 1000000000 001#"},

		// without -L
		"long":              {" (1436509052.249713)  vcan0  123   [2]  11 22", "vcan0 1436509052249713000 123#1122 false"},
		"long, no data":     {"(1.5)  can0       123   [0] ", "can0 1500000000 123# false"},
		"long, extended":    {"(1.5)  can0  00000123   [3]  11 22 33", "can0 1500000000 00000123#112233 false"},
		"long, remote":      {"(1.5)  can0       123   [4]  remote request", "can0 1500000000 123#R4 false"},
		"long, error frame": {"(1.5)  can0  20000080   [8]  00 11 22 33 44 55 66 77   ERRORFRAME", "can0 1500000000 20000080#0011223344556677 false"},
		"long, FD":          {"(1.5)  can0       123  [12]  11 22 33 44 55 66 77 88 99 AA BB CC", "can0 1500000000 123##0112233445566778899AABBCC false"},
		"long, short FD":    {"(1.5)  can0       123  [02]  11 22", "can0 1500000000 123##01122 false"},
		"long, -x":          {"(1.5)  can0  TX B E  123  [02]  11 22", "can0 1500000000 123##31122 true"},
		"long, -a":          {"(1.5)  can0  123   [2]  20 27   ' ''", "can0 1500000000 123#2027 false"},
		"long, -t z":        {" (000.000000)  can0  123   [1]  20", "can0 0 123#20 false"},
	} {
		got, _, err := readLog(c.line + "\n")
		if !strings.HasPrefix(got, "1 "+c.want) || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestASCLogsOfOtherProgramsAreRead(t *testing.T) {
	const head = "date Fri Nov 20 04:59:45.931 am 2026\r\nbase hex  timestamps absolute\r\nno internal events logged\r\n// version 9.0.0\r\nBegin TriggerBlock Fri\r\n"
	for name, c := range map[string]struct{ lines, want string }{
		"classic":      {"   2.501000 1  64              Rx   d 8 00 11 22 33 44 55 66 FF  Length = 240000 BitCount = 124 ID = 100", "1 2501000000 064#00112233445566FF false"},
		"sent":         {" 0.1 2 18FEBF0Bx Tx d 2 aB 01", "2 100000000 18FEBF0B#AB01 true"},
		"no data":      {" 0.1 2 1 Rx d 0", "2 100000000 001# false"},
		"length code":  {" 0.1 2 1 Rx d f 1 2 3 4 5 6 7 8", "2 100000000 001#0102030405060708 false"},
		"remote":       {" 0.1 2 1 Rx r", "2 100000000 001#R false"},
		"remote, new":  {" 0.1 2 1 Rx r 8 Length = 0", "2 100000000 001#R8 false"},
		"remote, odd":  {" 0.1 2 1 Rx r Length = 0", "2 100000000 001#R false"},
		"error":        {" 0.1 2 ErrorFrame ECC: 10100010", "2 100000000 20000000#0000000000000000 false"},
		"FD":           {" 0.1 CANFD   1 Rx        123  1 0 9 12 1 2 3 4 5 6 7 8 9 a b c  0 0 3000 0 0 0 0 0", "1 100000000 123##10102030405060708090A0B0C false"},
		"FD with name": {" 0.1 CANFD   1 Tx      123x  Gear_1  0 1 2 2 1 2  0 0 3000", "1 100000000 00000123##20102 true"},
		"FD remote":    {" 0.1 CANFD   1 Rx        123  0 0 8  0  0 0 10", "1 100000000 123#R8 false"},
		"FD error":     {" 0.1 CANFD   1 Rx   ErrorFrame   Not Acknowledge error", "1 100000000 20000000#0000000000000000 false"},
		"relative":     {"base hex timestamps relative\n 0.1 1 1 Rx d 0\n 0.1 1 1 Rx d 0\n 0.1 2 1 TxRq d 0", "1 100000000 001# false\n8 1 200000000 001# false"},
		"decimal":      {"base dec timestamps absolute\n 0.1 1 100 Rx d 2 10 255", "1 100000000 064#0AFF false"},
		"others":       {" 0.1 1  Statistic: D 0 R 0\n 0.1 CAN 1 Status:chip status error active\n 0.2 2 1 TxRq d 0\n 0.1 1  J1939TP FEE3p 6 0 0 - Rx d 23 A0\n 0.1 SV: 1 0 1 ::x = 1\n 0.3 1 1 Rx d 0", "1 300000000 001# false"},
	} {
		got, _, err := readLog(head + c.lines + "\r\nEnd TriggerBlock\r\n")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, got, _ = strings.Cut(got, " "); got != c.want+"\n" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTRCLogsOfEveryVersionAreRead(t *testing.T) {
	for name, c := range map[string]struct{ lines, want string }{
		"1.0":           {";##########\n 1)  1841  0001  8  00 11 22 33 44 55 66 77\n 2) 1842 FFFFFFFF 4 00 00 00 08 BUSHEAVY", "2 1 1841000000 001#0011223344556677 false"},
		"1.0, extended": {";##########\n 1)  1841  18FEBF0B  1  00", "2 1 1841000000 18FEBF0B#00 false"},
		"1.0, remote":   {";##########\n 1)  1841  0123  4  RTR", "2 1 1841000000 123#R4 false"},
		"1.1":           {";$FILEVERSION=1.1\n;$STARTTIME=37704.5\n 1) 1059.9 Rx 0300 2 00 11\n 2) 1283.2 Warng FFFFFFFF 4 00 00 00 08\n 3) 1 Error 0008 4 00 19 08 08", "3 1 1059900000 300#0011 false"},
		"1.2":           {";$FILEVERSION=1.2\n 1) 1059.900 2 Tx 00000300 2 00 11", "2 2 1059900000 00000300#0011 true"},
		"1.3":           {";$FILEVERSION=1.3\n 1) 1059.900 1 Rx 0300 - 2 00 11", "2 1 1059900000 300#0011 false"},
		"2.0":           {";$FILEVERSION=2.0\n;$COLUMNS=N,O,T,I,d,l,D\n 1 1059.900 DT 0300 Rx 2 00 11\n 2 1 ST 0300 Rx 00 00 00 00\n", "3 1 1059900000 300#0011 false"},
		"2.0, FD":       {";$FILEVERSION=2.0\n 1 1.5 FB 0300 Rx 12 00 11 22 33 44 55 66 77 88 99 AA BB", "2 1 1500000 300##100112233445566778899AABB false"},
		"2.1":           {";$FILEVERSION=2.1\n;$COLUMNS=N,O,T,B,I,d,R,L,D\n 1 0.010 DT 3 0300 Tx - 2 00 11\n 2 1.0 EV hello you", "3 3 10000 300#0011 true"},
		"2.1, FD":       {";$FILEVERSION=2.1\n 1 1.5 BI 1 00000300 Rx - 9 00 11 22 33 44 55 66 77 88 99 AA BB", "2 1 1500000 00000300##300112233445566778899AABB false"},
		"2.1, remote":   {";$FILEVERSION=2.1\n 1 1.5 RR 1 0300 Rx - 3", "2 1 1500000 300#R3 false"},
	} {
		got, _, err := readLog(c.lines + "\n")
		if got != c.want+"\n" || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestLogsThatPythonCanWritesAsTextAreRead(t *testing.T) {
	const head = "timestamp,arbitration_id,extended,remote,error,dlc,data\n"
	for name, c := range map[string]struct{ lines, want string }{
		"CSV":                {head + "1483389946.197,0xdadada,1,0,0,6,WzQyLCA5", "2 1 1483389946197000000 00DADADA#5B34322C2039 false"},
		"CSV, small time":    {head + "1e-05,0x7ff,0,0,0,0,", "2 1 10000 7FF# false"},
		"CSV, remote":        {head + "2.5,0x10,0,1,0,4,", "2 1 2500000000 010#R4 false"},
		"CSV, error":         {head + "2.5,0x0,1,0,1,0,", "2 1 2500000000 20000000#0000000000000000 false"},
		"CSV, FD":            {head + "2.5,0x10,0,0,0,12,AAECAwQFBgcICQoL\r", "2 1 2500000000 010##0000102030405060708090A0B false"},
		"text":               {"Timestamp: 1700000000.000250    ID:      123    S Rx                DL:  2    00 f1", "1 1 1700000000000250000 123#00F1 false"},
		"text, with letters": {"Timestamp:        0.000250    ID: 18febf0b    X Tx                DL:  2    61 62                       'ab'    Channel: vcan0", "1 vcan0 250000 18FEBF0B#6162 true"},
		"text, remote":       {"Timestamp:        0.000250    ID:      123    S Rx   R            DL:  3                                Channel: 1", "1 1 250000 123#R3 false"},
		"text, FD":           {"Timestamp:        0.000250    ID:      123    S Rx     F BS EI    DL: 12    00 01 02 03 04 05 06 07 08 09 0a 0b    Channel: 1", "1 1 250000 123##3000102030405060708090A0B false"},
		"text, error":        {"Timestamp:        0.000250    ID: 00000000    X Rx E              DL:  0                                Channel: 1", "1 1 250000 20000000#0000000000000000 false"},
	} {
		got, _, err := readLog(c.lines + "\n")
		if got != c.want+"\n" || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestRelativeTimesOfCandumpAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		times []string
		want  int64
	}{
		"-t z":        {[]string{"000.000000", "000.010000", "000.019000", "000.019000", "000.031000"}, 31e6},
		"-t d":        {[]string{"000.000000", "000.010000", "000.009000", "000.000000", "000.012000"}, 31e6},
		"-t d, equal": {[]string{"000.000000", "000.010000", "000.010000", "000.010000", "000.010000", "000.010000"}, 50e6},
	} {
		text := ""
		for _, at := range c.times {
			text += " (" + at + ")  can0  123   [1]  20\n"
		}
		got, _, err := readLog(text)
		lines := strings.Split(strings.TrimSpace(got), "\n")
		if last := lines[len(lines)-1]; err != nil || last != fmt.Sprintf("%d can0 %d 123#20 false", len(c.times), c.want) {
			t.Errorf("%s: %v, the last frame %q; want it at %d ns", name, err, last, c.want)
		}
	}
}

func TestCandumpDatesAreLocalTime(t *testing.T) {
	got, _, err := readLog(" (2026-11-20 04:59:45.931002)  can0  123   [1]  20\n (2026-11-20 04:59:45.931003)  can0  20000004   [8]  00 04 00 00 00 00 00 00   ERRORFRAME\n\tcontroller-problem{rx-overflow}\n")
	at := time.Date(2026, 11, 20, 4, 59, 45, 931002000, time.Local).UnixNano()
	want := fmt.Sprintf("1 can0 %d 123#20 false\n2 can0 %d 20000004#0004000000000000 false\n", at, at+1000)
	if err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestBadLinesAreNamedByFileAndLine(t *testing.T) {
	candump := "(1.0) can1 1#\n\n"
	asc := "base hex timestamps absolute\n\n"
	csv := "timestamp,arbitration_id,extended,remote,error,dlc,data\n"
	for _, c := range []struct{ text, want string }{
		{"", "log:1: framelog: not a log of CAN frames"},
		{"hello\n", "log:1: framelog: not a log"},
		{"  vcan0  123   [2]  11 22\n", "log:1: framelog: the log has no times"},
		{strings.Repeat("x", 1<<20), "log:1: framelog: not a log"},
		{candump + "can1 1#", `log:3: framelog: "can1 1#" is neither (TIME) INTERFACE ID#DATA`},
		{candump + "(x) can1 1#", `log:3: framelog: time "x" is not (SECONDS.FRACTION)`},
		{candump + "(1.-5) can1 1#", `log:3: framelog: time "1.-5"`},
		{candump + "(99999999999.0) can1 1#", "log:3: framelog: time"},
		{candump + "(1.0) can1 1", "identifier and [LENGTH] are missing"},
		{candump + "(1.0) can1 123 [2] 11", "1 bytes of data where the length says 2"},
		{candump + "(1.0) can1 123 [2] 11 22 33", `"33" after 2 bytes of data`},
		{candump + "(1.0) can1 123 [9] 11 22 33", `length "[9]" is not`},
		{candump + "(1.0) can1 123 (2) 11 22", `length "(2)" is not`},
		{candump + "(1.0) can1 123 [1] G1", `data: "G1" is not`},
		{candump + "(1.0) can1 1#11 X", `"X" after the frame is not R or T`},
		{candump + "protocol-violation{}", "is neither (TIME)"},
		{candump + "(1.0) can1 800#", "identifier 0x800 has more than 11 bits"},
		{candump + "(1.0) can1 0000#112", "3 digits of data are not whole bytes"},
		{candump + "(1.0) can1 #11", `identifier "" is not`},
		{candump + "(1.0) can1 000000001#11", `identifier "000000001" is not`},
		{candump + "(1.0) can1 1#112233445566778899", "18 digits of data, at most 16"},
		{candump + "(1.0) can1 1#GG", `data byte "GG"`},
		{candump + "(1.0) can1 1##", "flags after ## is missing"},
		{candump + "(1.0) can1 1##x11", `flags "x"`},
		{candump + "(1.0) can1 1#R9", `length "9" of a remote frame`},
		{candump + "(1.0) can1 1##0" + strings.Repeat("11", 65), "130 digits of data, at most 128"},
		{candump + strings.Repeat("(", 64<<10), "log:3: framelog: a line of more than 65536 bytes"},
		{asc + "0.1 1 Gear Rx d 0", `identifier: "Gear" is not a number of base 16 and 32 bits; export a log with names`},
		{asc + "0.1 1 800 Rx d 0", "identifier 0x800 has more than 11 bits"},
		{asc + "0.1 1 20000000x Rx d 0", "identifier 0x20000000 has more than 29 bits"},
		{asc + "0.1 1 1 Rx d", "the length after d is missing"},
		{asc + "0.1 1 1 Rx d 10 1", "log:3: framelog: length"},
		{asc + "0.1 1 1 Rx d 2 1", "1 bytes of data where the length says 2"},
		{asc + "0.1 1 1 Rx d 1 100", `data: "100" is not a number`},
		{asc + "0.1 CANFD 1", "CANFD without channel"},
		{asc + "0.1 CANFD 1 Rx 1 1 0 9", "CANFD without BRS"},
		{asc + "0.1 CANFD 1 Rx 1 name 2 0 9 12", `"2" is not 0 or 1`},
		{asc + "0.1 CANFD 1 Rx 1 1 0 9 65", "length code"},
		{asc + "0.1 CANFD 1 up 1 1 0 9 65", `direction "up"`},
		{asc + "base oct", "is not base hex|dec"},
		{asc + "garbage", "log:3: framelog: \"garbage\" is neither TIME CHANNEL FRAME nor a comment"},
		{asc + "0.x 1 1 Rx d 0", "is neither TIME"},
		{asc + "0.1 x 1 Rx d 0", `channel "x" is not a number`},
		{asc + "0.1 1", "channel without a frame"},
		{asc + "0.1 1 1", `frame "1" without a direction`},
		{asc + "0.1 1 1 Ry d 0", `direction "Ry" is not`},
		{asc + "0.1 1 1 Rx q 0", `"q" after the direction is not d or r`},
		{"-123 garbage\n", "not a log"},
		{";$FILEVERSION=3.0\n", `version "3.0" of TRC is not one of`},
		{";$FILEVERSION=1.1\n 1) 1.0 Rx 0100 2 11", "log:2: framelog: 1 bytes of data"},
		{";$FILEVERSION=1.1\n 1) 1.0 Rx 0100", `has 4 columns; the columns are "NOdIlD"`},
		{";$FILEVERSION=1.1\n 1) 1,0 Rx 0100 0", `time "1,0" is not`},
		{";$FILEVERSION=1.1\n 1) 1.0 Up 0100 0", `direction "Up" is not`},
		{";$FILEVERSION=1.1\n 1) 1.0 Rx 0800 0", "identifier 0x800 has more than 11 bits"},
		{";$FILEVERSION=1.1\n 1) 1.0 Rx 01X0 0", `identifier "01X0" is not`},
		{";$FILEVERSION=1.1\n 1) 1.0 Rx 0100 9", `length "9"`},
		{";$FILEVERSION=2.1\n 1 1.0 XX 1 0100 Rx - 0", `type "XX" is not one of`},
		{";$FILEVERSION=2.0\n 1 1.0 FD 0100 Rx 9 1 2 3 4 5 6 7 8 9", "length 9 is not one of CAN FD"},
		{csv + "1.0,0x1,0,0,0,2,AA==", "log:2: framelog: 1 bytes of data where the length says 2"},
		{csv + "1.0,0x1,0,0,0,2", "has 6 columns"},
		{csv + "1.0,0x800,0,0,0,0,", "identifier 0x800 has more than 11 bits"},
		{csv + "1.0,x,0,0,0,0,", `identifier "x" is not`},
		{csv + "1.0,0x1,2,0,0,0,", `"2" is not 0 or 1`},
		{csv + "-1.0,0x1,0,0,0,0,", `time "-1.0" is not`},
		{csv + "1.0,0x1,0,0,0,1,A", `data "A" are not base64`},
		{csv + "1.0,0x1,0,0,0,65," + strings.Repeat("AAAA", 21) + "AAA=", `length "65" is not`},
		{"Timestamp: 1.0 ID: 1 S Rx DL: 1", "0 bytes of data where the length says 1"},
		{"Timestamp: 1.0 ID: 1 S Rx DL: 9 01 02 03 04 05 06 07 08 09", `length "9" is not`},
		{"Timestamp: 1.0 ID: 1 S Rx Q DL: 1 01", `flag "Q" is not one of`},
		{"Timestamp: 1.0 ID: 1 S Rx DL: 1 x1", `data: "x1" is not`},
		{"Timestamp: 1.0 S Rx DL: 1 11 11 11 11", "is not Timestamp: TIME ID: ID"},
		{"Timestamp: 1.0 ID: 1 S Rx DL: 2 11 1", `data: "1" has not the 2 digits of a byte`},
		{" (1.0)  can0  100   [2]  11 1", `data: "1" has not the 2 digits of a byte`},
		{";$FILEVERSION=1.1\n 1) 1.0 Rx 0100 2 11 1", `data: "1" has not the 2 digits of a byte`},
		{"(1.0) can0 100#\x1b[2J\xb8", `frame "100#\x1b[2J\xb8": `},
		{"(1.0\x1b\xb8) can0 100#", `time "1.0\x1b\xb8" is not`},
		{"date x\n 0.1 1 \x1b\xb8", `frame "\x1b\xb8" without a direction`},
		{";$FILEVERSION=2.1\n;$COLUMNS=N,O,T,I,d,l,D,\x1b\n 1 1.0", "columns"},
		{"SQLite format 3\x00", "log: framelog: a log in SQLite is not read: convert it with python3 -m can.logconvert"},
		{"\x1f\x8b\x08", "log: framelog: a compressed log is not read: unpack it with gunzip"},
		{";$COLUMNS=N,O,T,I,d,D\n", "the last are the length"},
	} {
		_, _, err := readLog(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsFunc(err.Error(), func(c rune) bool { return c == utf8.RuneError || !unicode.IsPrint(c) }) {
			t.Errorf("%.80q: %v; want %q", c.text, err, c.want)
		}
	}
}

func FuzzCandump(f *testing.F) {
	f.Add([]byte("(1436509052.249713) vcan0 123##5112233 R"))
	f.Add([]byte("(1.0) can1 7FF#R5"))
	f.Fuzz(func(t *testing.T, line []byte) { checkLog(t, append([]byte("(1.0) a 1#\n"), line...)) })
}

func FuzzASC(f *testing.F) {
	f.Add([]byte(" 0.1 CANFD   1 Tx      123x  Gear_1  0 1 2 2 1 2  0 0 3000"))
	f.Add([]byte("base dec timestamps relative\n 0.1 1 100 Rx d 2 10 255"))
	f.Fuzz(func(t *testing.T, line []byte) { checkLog(t, append([]byte("date x\n"), line...)) })
}

func FuzzTRC(f *testing.F) {
	f.Add([]byte("1 1.5 BI 1 00000300 Rx - 9 00 11 22 33 44 55 66 77 88 99 AA BB"))
	f.Add([]byte(";$COLUMNS=O,I,l,D\n1.5 300 2 1 1"))
	f.Fuzz(func(t *testing.T, line []byte) { checkLog(t, append([]byte(";$FILEVERSION=2.1\n"), line...)) })
}

func FuzzTextOfPythonCan(f *testing.F) {
	f.Add([]byte("Timestamp: 0.000250 ID: 18febf0b X Tx F BS DL: 2 61 62 'ab' Channel: vcan0"))
	f.Add([]byte("2.5,0x10,0,0,0,12,AAECAwQFBgcICQoL"))
	f.Fuzz(func(t *testing.T, line []byte) {
		checkLog(t, append([]byte("timestamp,arbitration_id,extended,remote,error,dlc,data\n"), line...))
		checkLog(t, append([]byte("Timestamp: 1.0 ID: 1 S Rx DL: 0\n"), line...))
	})
}

func FuzzBLF(f *testing.F) { fuzzBinary(f, "blf") }

func FuzzMDF(f *testing.F) { fuzzBinary(f, "mdf4") }

// fuzzBinary fuzzes the reader of a binary format with exports, whole, cut and with one byte changed.
func fuzzBinary(f *testing.F, format string) {
	path := filepath.Join(f.TempDir(), "log")
	out, err := os.Create(path)
	if err != nil {
		f.Fatal(err)
	}
	x, err := record.NewExporter(format, out, &record.Header{Period: 5e6, Buses: []record.Bus{{}}})
	if err != nil {
		f.Fatal(err)
	}
	for k := range int64(20) {
		e := record.Entry{Kind: record.FrameEntry, Frame: record.Frame{Tick: k, Sent: k%2 == 0}}
		e.Frame.Frame = can.Frame{ID: uint32(k) | []uint32{0, can.EFF, can.RTR, can.ERR}[k%4], Len: 8, Data: [64]byte{byte(k), 9}}
		if k%8 == 0 {
			e.Frame.Len, e.Frame.Flags = 12, can.FlagFDF|can.FlagBRS
		}
		if err := x.Write(&e); err != nil {
			f.Fatal(err)
		}
	}
	if err := errors.Join(x.Close(), out.Close()); err != nil {
		f.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	for i := 0; i < len(file); i += 97 {
		f.Add(file[:i])
		changed := slices.Clone(file)
		changed[i] ^= 0xFF
		f.Add(changed)
	}
	f.Fuzz(func(t *testing.T, file []byte) { checkLog(t, file) })
}

// checkLog reads a log: what is read is a frame that a bus can carry, and writing it
// and reading it again gives the same.
func checkLog(t *testing.T, text []byte) {
	l, err := framelog.New("log", strings.NewReader(string(text)))
	if err != nil {
		return
	}
	for {
		f, err := l.Next()
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		if fd := f.Flags&can.FlagFDF != 0; f.Len > 64 || !fd && f.Len > 8 || can.Lengths[can.DLC(f.Len)] != f.Len || f.Time < -1<<62 {
			t.Fatalf("no frame: %+v", f)
		}
		again, err := framelog.New("log", bytes.NewReader(framelog.AppendCandump([]byte("(1.0) a "), &f.Frame)))
		if err != nil {
			t.Fatal(err)
		}
		if g, err := again.Next(); err != nil || g.Frame != f.Frame {
			t.Fatalf("%v: %+v reads back as %+v", err, f.Frame, g.Frame)
		}
	}
}
