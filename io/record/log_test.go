package record

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/can"
)

// readLog reads a log to its end, one line per frame.
func readLog(text string) (out string, skipped int, err error) {
	l, err := NewLog("log", strings.NewReader(text))
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
		out += fmt.Sprintf("%d %s %d %s %v\n", f.Line, f.Channel, f.Time, appendCandump(nil, &f.Frame), f.Sent)
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
		"others":       {" 0.1 1  Statistic: D 0 R 0\n 0.1 CAN 1 Status:chip status error active\n 0.2 2 1 TxRq d 0\n 0.1 J1939TP FEE3p 6 0 0 - Rx d 23 A0\n 0.1 SV: 1 0 1 ::x = 1\n 0.3 1 1 Rx d 0", "1 300000000 001# false"},
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

func TestBadLinesAreNamedByFileAndLine(t *testing.T) {
	candump := "(1.0) can1 1#\n\n"
	asc := "base hex timestamps absolute\n\n"
	for _, c := range []struct{ text, want string }{
		{"", "log:1: record: not a log of CAN frames"},
		{"hello\n", "log:1: record: not a log"},
		{"  vcan0  123   [2]  11 22\n", "log:1: record: the log has no times"},
		{strings.Repeat("x", 1<<20), "log:1: record: not a log"},
		{candump + "can1 1#", `log:3: record: "can1 1#" is neither (TIME) INTERFACE ID#DATA`},
		{candump + "(x) can1 1#", "log:3: record: time (x) is not (SECONDS.FRACTION)"},
		{candump + "(1.-5) can1 1#", "log:3: record: time (1.-5)"},
		{candump + "(99999999999.0) can1 1#", "log:3: record: time"},
		{candump + "(1.0) can1 1", "identifier and [LENGTH] are missing"},
		{candump + "(1.0) can1 800#", "identifier 800 has more than 11 bits"},
		{candump + "(1.0) can1 0000#112", "3 digits of data are not whole bytes"},
		{candump + "(1.0) can1 #11", `identifier "" is not`},
		{candump + "(1.0) can1 000000001#11", `identifier "000000001" is not`},
		{candump + "(1.0) can1 1#112233445566778899", "18 digits of data, at most 16"},
		{candump + "(1.0) can1 1#GG", `data byte "GG"`},
		{candump + "(1.0) can1 1##", "flags after ## is missing"},
		{candump + "(1.0) can1 1##x11", `flags "x"`},
		{candump + "(1.0) can1 1#R9", `length "9" of a remote frame`},
		{candump + "(1.0) can1 1##0" + strings.Repeat("11", 65), "130 digits of data, at most 128"},
		{candump + strings.Repeat("(", maxLine), "log:3: record: a line of more than 65536 bytes"},
		{asc + "0.1 1 Gear Rx d 0", `identifier: "Gear" is not a number of base 16 and 32 bits; export a log with names`},
		{asc + "0.1 1 800 Rx d 0", "identifier 800 has more than 11 bits"},
		{asc + "0.1 1 20000000x Rx d 0", "identifier 20000000 has more than 29 bits"},
		{asc + "0.1 1 1 Rx d", "the length after d is missing"},
		{asc + "0.1 1 1 Rx d 10 1", "log:3: record: length"},
		{asc + "0.1 1 1 Rx d 2 1", "1 bytes of data where the length says 2"},
		{asc + "0.1 1 1 Rx d 1 100", `data: "100" is not a number`},
		{asc + "0.1 CANFD 1", "CANFD without channel"},
		{asc + "0.1 CANFD 1 Rx 1 1 0 9", "CANFD without BRS"},
		{asc + "0.1 CANFD 1 Rx 1 name 2 0 9 12", `"2" is not 0 or 1`},
		{asc + "0.1 CANFD 1 Rx 1 1 0 9 65", "length code"},
		{asc + "0.1 CANFD 1 up 1 1 0 9 65", `direction "up"`},
		{asc + "base oct", "is not base hex|dec"},
	} {
		_, _, err := readLog(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: %v; want %q", c.text, err, c.want)
		}
	}
}

func TestSourceOfALogIsInTheOrderOfTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var text strings.Builder
	const n = 2000
	for i := range n { // two queues, of which one is read later
		fmt.Fprintf(&text, "(100.%06d) can%d %03X#\n", i-i%2*100+1000, i%2, i)
	}
	text.WriteString("(1.0) can0 7FF#\n(200.0) can0 20000004#0000000000000000\n") // far too late, and an error frame
	if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSource(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	last, count := int64(0), 0
	for {
		f, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil || f.Time < last || f.ID&can.ERR != 0 {
			t.Fatalf("%v, frame %X at %d ns after %d ns", err, f.ID, f.Time, last)
		}
		last = f.Time
		count++
	}
	if count != n+1 || s.Disorder != 1 {
		t.Errorf("%d frames, %d in disorder; want %d and 1", count, s.Disorder, n+1)
	}
}

func TestSourceErrorsNameTheLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("(1.0) can0 1#\n(2.0) can0 1#1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSource(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(); err != nil {
		t.Errorf("the first frame: %v", err)
	}
	if _, err := s.Next(); err == nil || !strings.Contains(err.Error(), path+":2: ") {
		t.Errorf("%v; want file and line 2", err)
	}
	if _, err := OpenSource("/nowhere/log", ""); !os.IsNotExist(unwrapped(err)) {
		t.Errorf("%v", err)
	}
}

func unwrapped(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
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

// checkLog reads a log: what is read is a frame that a bus can carry, and writing it
// and reading it again gives the same.
func checkLog(t *testing.T, text []byte) {
	l, err := NewLog("log", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for {
		f, err := l.Next()
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		if fd := f.Flags&can.FlagFDF != 0; f.Len > 64 || !fd && f.Len > 8 || can.Lengths[can.DLC(f.Len)] != f.Len || f.Time < 0 {
			t.Fatalf("no frame: %+v", f)
		}
		var again LogFrame
		if err := parseFrame(string(appendCandump(nil, &f.Frame)), &again); err != nil || again.Frame != f.Frame {
			t.Fatalf("%v: %+v reads back as %+v", err, f.Frame, again.Frame)
		}
	}
}
