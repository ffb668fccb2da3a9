package record

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/framelog"
)

func TestCandumpLogEqualsThatOfCandump(t *testing.T) {
	h := header(1, 2, 1)
	list := []Entry{
		{Kind: FrameEntry, Frame: Frame{Bus: 1, Time: 1_700_000_001_000_002_999, Frame: can.Frame{ID: 0x7, Len: 2, Data: [64]byte{0xAB, 1}}}},
		{Kind: FrameEntry, Frame: Frame{Sent: true, Tick: 200, Frame: can.Frame{ID: 0x18FEBF0B | can.EFF}}}, // a second later
		{Kind: FrameEntry, Frame: Frame{Tick: 200, Frame: can.Frame{ID: 0x1 | can.EFF, Len: 12, Flags: can.FlagFDF | can.FlagBRS | can.FlagESI}}},
		{Kind: FrameEntry, Frame: Frame{Tick: 200, Frame: can.Frame{ID: 0x7FF | can.RTR, Len: 3}}},
		{Kind: FrameEntry, Frame: Frame{Bus: 7, Tick: 100, Frame: can.Frame{ID: can.ERR | 4, Len: 8}}}, // earlier: raised
		{Kind: TickEntry}, {Kind: EventEntry},
	}
	_, got := exported(t, "candump", &h, list)
	want := "(1700000001.000002) vcan1 007#AB01 R\n" +
		"(1700000001.123456) vcan0 18FEBF0B# T\n" +
		"(1700000001.123456) vcan0 00000001##3000000000000000000000000 R\n" +
		"(1700000001.123456) vcan0 7FF#R3 R\n" +
		"(1700000001.123456) can7 20000004#0000000000000000 R\n"
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestASCEqualsThatOfVector(t *testing.T) {
	defer func(l *time.Location) { time.Local = l }(time.Local)
	time.Local = time.UTC
	h := header(1, 2, 1)
	h.Start = time.Date(2026, 11, 20, 4, 59, 45, 931_000_000, time.UTC).UnixNano()
	list := []Entry{
		{Kind: FrameEntry, Frame: Frame{Sent: true, Time: h.Start, Frame: can.Frame{ID: 0x100, Len: 8, Data: [64]byte{7: 0xFF}}}},
		{Kind: FrameEntry, Frame: Frame{Bus: 1, Time: h.Start + 12_345_678_901, Frame: can.Frame{ID: 0x18FEBF0B | can.EFF, Len: 12, Flags: can.FlagFDF | can.FlagBRS}}},
		{Kind: EventEntry, Event: Event{Kind: Fault, Tick: 2470, Text: "two\nlines"}},
		{Kind: FrameEntry, Frame: Frame{Time: h.Start + 13e9, Frame: can.Frame{ID: 0x7FF | can.RTR, Len: 3}}},
		{Kind: FrameEntry, Frame: Frame{Time: h.Start + 14e9, Frame: can.Frame{ID: can.ERR | 4, Len: 8}}},
	}
	_, got := exported(t, "asc", &h, list)
	want := "date Fri Nov 20 04:59:45.931 2026\nbase hex  timestamps absolute\nno internal events logged\n" +
		"Begin Triggerblock Fri Nov 20 04:59:45.931 2026\n   0.000000 Start of measurement\n" +
		"   0.000000 1  100             Tx   d 8 00 00 00 00 00 00 00 FF\n" +
		"  12.345678 CANFD   2 Rx   18FEBF0Bx                                   1 0 9 12 00 00 00 00 00 00 00 00 00 00 00 00        0    0     3000        0        0        0        0        0\n" +
		"//   12.350000 tick 2470 fault: two lines\n" +
		"  13.000000 1  7FF             Rx   r 3\n" +
		"  14.000000 1  ErrorFrame\n" +
		"End TriggerBlock\n"
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestWrittenLogsAreReadBack drives frames of every kind through all formats of frames.
func TestWrittenLogsAreReadBack(t *testing.T) {
	h := header(1, 2, 1)
	list := drive(&h, 500)
	for _, format := range slices.DeleteFunc(Formats(), func(name string) bool { return name == "csv" }) {
		_, file := exported(t, format, &h, list)
		l, err := framelog.New(format, bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Kind != FrameEntry {
				continue
			}
			f := e.Frame
			want := framelog.Frame{Time: f.Time - h.Start, Channel: fmt.Sprint(f.Bus + 1), Sent: f.Sent, Frame: f.Frame}
			switch format {
			case "candump":
				want.Time, want.Channel = f.Time/1e3*1e3, fmt.Sprintf("vcan%d", f.Bus)
			case "asc":
				want.Time = (f.Time - h.Start/1e6*1e6) / 1e3 * 1e3
			case "blf":
				want.Time = f.Time - h.Start/1e6*1e6
			}
			if format != "candump" && f.ID&can.ERR != 0 { // the kind of error and who saw it have no place there
				want.Frame, want.Sent = can.Frame{ID: can.ERR, Len: 8}, false
			}
			got, err := l.Next()
			if want.Line = got.Line; err != nil || got != want {
				t.Fatalf("%s:%d: %v\ngot  %+v\nwant %+v", format, got.Line, err, got, want)
			}
		}
		if _, err := l.Next(); err != io.EOF {
			t.Errorf("%s: after the last frame: %v", format, err)
		}
	}
}

func TestBLFHasTheLayoutOfVector(t *testing.T) {
	h := header(1, 2, 1)
	list := drive(&h, 5000)
	open, file := exported(t, "blf", &h, list)
	if len(open) <= 144 || string(open[:4]) != "LOGG" {
		t.Errorf("before Close the file has %d bytes", len(open))
	}
	word := func(b []byte, i int) int { return int(binary.LittleEndian.Uint32(b[i:])) }
	if word(file, 36) != 0 || word(file, 4) != 144 || word(file, 16) != len(file) || word(file, 32) != 5001 {
		t.Errorf("header says %d bytes, file of %d, %d objects; want 144, %d, 5001", word(file, 4), word(file, 16), word(file, 32), len(file))
	}
	var objects []byte
	full := 144
	for at := 144; at < len(file); {
		size := word(file, at+8)
		if string(file[at:at+4]) != "LOBJ" || word(file, at+12) != 10 || file[at+16] != 2 || word(file, at+24) > 128<<10 {
			t.Fatalf("at %d: no container: %x", at, file[at:at+32])
		}
		z, err := zlib.NewReader(bytes.NewReader(file[at+32 : at+size]))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(z)
		if err != nil || len(body) != word(file, at+24) {
			t.Fatalf("container of %d bytes, %v; its head says %d", len(body), err, word(file, at+24))
		}
		objects = append(objects, body...)
		full += 32 + len(body)
		at += size + size%4
	}
	if word(file, 24) != full {
		t.Errorf("header says %d bytes unpacked, they are %d", word(file, 24), full)
	}
	counts := map[int]int{}
	for at := 0; at < len(objects); {
		kind, size := word(objects, at+12), word(objects, at+8)
		if want := map[int]int{1: 48, 73: 64, 100: 116}[kind]; size%4 != 0 || want != 0 && size != want {
			t.Fatalf("object of kind %d has %d bytes, want %d", kind, size, want)
		}
		counts[kind]++
		at += size
	}
	if want := map[int]int{1: 3900, 73: 100, 100: 1000, 96: 1}; fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("objects by kind %v, want %v", counts, want)
	}
}

func TestCSVReadsBackToTheSameValues(t *testing.T) {
	h := header(1, 2, 1)
	h.Inputs[0].Name = "a,b"
	list := drive(&h, 100)
	list[0].Tick.Y[0] = math.NaN()
	_, file := exported(t, "csv", &h, list)
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil || len(rows) != 101 || strings.Join(rows[0], ";") != "time[s];a,b[Pa];y0[rad/s];y1[rad/s];flags[1];phase 0[ns]" {
		t.Fatalf("%v, %d rows, head %q", err, len(rows), rows[0])
	}
	for k, row := range rows[1:] {
		e := list[2*k].Tick
		for i, want := range []float64{float64(k) * 0.005, e.U[0], e.Y[0], e.Y[1], 0, float64(e.Phases[0])} {
			got, err := strconv.ParseFloat(row[i], 64)
			// The time is written in decimals; the values come back bit for bit, a NaN as one.
			same := scalar.EqualWithinAbs(got, want, 1e-12)
			if i > 0 {
				same = math.Float64bits(got) == math.Float64bits(want) || math.IsNaN(got) && math.IsNaN(want)
			}
			if err != nil || !same {
				t.Errorf("row %d, column %d: %s, want %g", k, i, row[i], want)
			}
		}
	}
}

// CSV and MDF4 carry the numbers in the unit that their column names.
func TestExportsAreInTheDeclaredUnit(t *testing.T) {
	h := header(1, 2, 0)
	h.Inputs[0].Declared, h.Outputs[0].Declared = "bar", "rpm"
	list := []Entry{{Kind: TickEntry, Tick: Tick{Index: 1, U: []float64{50e5}, Y: []float64{100 * math.Pi, 2}, Phases: []int64{}}}}
	for _, c := range []struct {
		csv  string
		unit string
		u    float64
	}{
		{"time[s],u0[bar],y0[rpm],y1[rad/s],flags[1]\n0.005,50,3000,2,0\n", "bar", 50},
		{"time[s],u0[Pa],y0[rad/s],y1[rad/s],flags[1]\n0.005,5e+06,314.1592653589793,2,0\n", "Pa", 50e5},
	} {
		if _, file := exported(t, "csv", &h, list); string(file) != c.csv {
			t.Errorf("CSV is %q, want %q", file, c.csv)
		}
		_, file := exported(t, "mdf4", &h, list)
		groups, _ := readMDF(t, file)
		if g := groups[0]; g.units["u0"] != c.unit || g.channels["u0"][0] != c.u {
			t.Errorf("MDF4 has %v %s, want %v %s", g.channels["u0"], g.units["u0"], c.u, c.unit)
		}
		if list[0].Tick.U[0] != 50e5 {
			t.Fatal("the export changed its entry")
		}
		h.DropDeclaredUnits()
	}
}

func TestExportReportsErrors(t *testing.T) {
	h := header(1, 2, 1)
	if _, err := NewExporter("mf4", nil, &h); err == nil || !strings.Contains(err.Error(), "use one of candump, asc, blf, mdf4, csv") {
		t.Errorf("%v", err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	for _, format := range []string{"blf", "mdf4"} {
		if _, err := NewExporter(format, out, &h); err == nil || !strings.Contains(err.Error(), "illegal seek") {
			t.Errorf("%s into a pipe: %v", format, err)
		}
	}
}

func TestExportWritesAWholeRecord(t *testing.T) {
	file, all := sample(t)
	for _, format := range Formats() {
		r, err := NewReader("r", bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(t.TempDir(), "x"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Export(r, format, f), f.Close()); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(f.Name())
		if n := bytes.Count(got, []byte("\n")); format == "candump" && n != 12 || format == "csv" && n != 13 || len(got) < 100 {
			t.Errorf("%s: %d lines, %d bytes of %d records", format, n, len(got), len(all))
		}
	}
}

func TestSourceReturnsReceivedFramesInTheOrderOfTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.rec")
	w, err := Create(path, header(1, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		time        int64
		sent, other bool
		bus         uint8
	}{{100, false, false, 0}, {300, true, false, 0}, {400, false, false, 0}, {250, false, true, 1}, {350, false, true, 0}} {
		if err := w.Frame(&Frame{Time: x.time * 1e6, Sent: x.sent, Other: x.other, Bus: x.bus, Frame: can.Frame{ID: uint32(x.time), Len: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for channel, want := range map[string][]int64{"": {0, 150, 250, 300}, "vcan0": {0, 250, 300}, "vcan1": {150}, "vcan9": nil} {
		s, err := OpenSource(path, channel)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for {
			f, err := s.Next()
			if err != nil {
				break
			}
			if got = append(got, f.Time/1e6); int64(f.ID) != f.Time/1e6+100 {
				t.Errorf("frame %d at %d ms", f.ID, f.Time/1e6)
			}
		}
		if !slices.Equal(got, want) || s.Disorder != 0 {
			t.Errorf("channel %q: times %v ms, %d in disorder; want %v", channel, got, s.Disorder, want)
		}
		s.Close()
	}
}

func TestSourceReportsGapsOfARecord(t *testing.T) {
	file := record(t, header(1, 1, 0), written{
		&Frame{Time: 1, Frame: can.Frame{ID: 1}}, nil, &Event{Kind: MonitorLost, Count: 7}, &Event{Kind: Note}, nil, &Frame{Time: 2, Frame: can.Frame{ID: 2}}, nil})
	for cut, want := range map[int]string{0: "", 1: "ends within a chunk"} {
		path := filepath.Join(t.TempDir(), "run.rec")
		if err := os.WriteFile(path, file[:len(file)-cut], 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSource(path, "")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err = s.Next(); err == nil; _, err = s.Next() {
			n++
		}
		if torn := s.Torn(); n != 2 || !errors.Is(err, io.EOF) || s.Gaps != 1 || (torn == "") != (want == "") || !strings.Contains(torn, want) {
			t.Errorf("cut by %d: %d frames, %v, %d gaps, torn %q; want 2 frames, 1 gap, %q", cut, n, err, s.Gaps, torn, want)
		}
		s.Close()
	}
}

func TestBusesInLogsHaveLegalInterfaceNames(t *testing.T) {
	for _, c := range []struct{ interfaces, want string }{
		{"vcan0 vcan1", "vcan0 vcan1"}, {"pair", "pair"}, {"pair pair", "can0 can1"}, {"file:a.log vcan0", "can0 vcan0"}, {"", "can0"},
	} {
		h, names := Header{}, []string{}
		for _, name := range strings.Fields(c.interfaces) {
			h.Buses = append(h.Buses, Bus{Interface: name})
		}
		for i := range max(1, len(h.Buses)) {
			names = append(names, h.busName(uint8(i)))
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%q: %s, want %s", c.interfaces, got, c.want)
		}
	}
}

// A frame withheld from the bus was not on the bus; a frame withheld from the plant was.
func TestLogsContainTheFramesOnTheBus(t *testing.T) {
	h := header(1, 1, 0)
	list := []Entry{}
	for id, f := range map[uint32]Frame{
		0x101: {Sent: true}, 0x102: {Sent: true, Lost: true}, 0x103: {Sent: true, Withheld: true}, 0x104: {Sent: true, Copy: true},
		0x105: {Sent: true, Withheld: true, Copy: true}, 0x106: {}, 0x107: {Withheld: true}, 0x108: {Copy: true}, 0x109: {Withheld: true, Copy: true},
		0x10A: {Other: true},
	} {
		f.Frame = can.Frame{ID: id, Len: 1}
		list = append(list, Entry{Kind: FrameEntry, Frame: f})
	}
	_, file := exported(t, "candump", &h, list)
	for id, want := range map[uint32]bool{0x101: true, 0x102: false, 0x103: false, 0x104: true, 0x105: false, 0x106: true, 0x107: true, 0x108: false, 0x109: false, 0x10A: true} {
		if got := strings.Contains(string(file), fmt.Sprintf(" %X#", id)); got != want {
			t.Errorf("frame %X is in the log: %t, want %t", id, got, want)
		}
	}
}
