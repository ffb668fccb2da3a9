package interop

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/io/can"
	"lockstep/io/framelog"
	"lockstep/io/inputfile"
	"lockstep/io/record"
)

// logFrames is the number of frames in the logs of these tests.
const logFrames = 2000

// randomLog returns frames of every kind on two buses, and the header of their record.
func randomLog(t *testing.T) (*record.Header, []record.Frame) {
	t.Helper()
	h := &record.Header{Period: 5e6, Start: 1_700_000_000_123_456_789, // not a whole millisecond, nor microsecond
		Buses: []record.Bus{{Name: "powertrain", Interface: "vcan0"}, {Name: "chassis", Interface: "vcan1"}}}
	r := rand.New(rand.NewPCG(5, 5))
	lengths := []uint8{1, 2, 3, 7, 8, 12, 16, 20, 24, 32, 48, 64}
	var list []record.Frame
	for k := range int64(logFrames) {
		f := record.Frame{Bus: uint8(k % 2), Sent: r.IntN(2) == 0, Tick: k, Time: h.At(k) + r.Int64N(4000)*1e3}
		f.ID, f.Len = r.Uint32N(can.MaskSFF+1), uint8(r.IntN(9))
		if r.IntN(2) == 0 {
			f.ID = r.Uint32N(can.MaskEFF+1) | can.EFF
		}
		switch r.IntN(5) {
		case 0:
			f.Flags, f.Len = can.FlagFDF|uint8(r.IntN(4)), lengths[r.IntN(len(lengths))]
		case 1:
			f.ID |= can.RTR
		}
		if f.ID&can.RTR == 0 {
			for i := range f.Len {
				f.Data[i] = uint8(r.Uint32())
			}
		}
		list = append(list, f)
	}
	return h, list
}

// exportTo writes the frames, with events between them, to a file of a format.
func exportTo(t *testing.T, path, format string, h *record.Header, list []record.Frame) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	x, err := record.NewExporter(format, f, h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if i%500 == 7 {
			err = errors.Join(err, x.Write(&record.Entry{Kind: record.EventEntry,
				Event: record.Event{Kind: record.Overrun, Tick: list[i].Tick, Text: strings.Repeat("late ", i/500)}}))
		}
		err = errors.Join(err, x.Write(&record.Entry{Kind: record.FrameEntry, Frame: list[i]}))
	}
	if err := errors.Join(err, x.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// line returns a frame in the form that logs.py prints.
func line(us int64, channel string, f *can.Frame, sent bool) string {
	flags, data := "", fmt.Sprintf("%x", f.Data[:f.Len])
	for _, c := range []struct {
		name string
		on   bool
	}{{"x", f.ID&can.EFF != 0}, {"r", f.ID&can.RTR != 0}, {"f", f.FD()}, {"b", f.Flags&can.FlagBRS != 0}, {"e", f.Flags&can.FlagESI != 0}, {"t", sent}} {
		if c.on {
			flags += c.name
		}
	}
	if f.ID&can.RTR != 0 {
		data = fmt.Sprintf("length %d", f.Len)
	}
	return fmt.Sprintf("%d %s %X -%s %s", us, channel, f.ID&can.MaskEFF, flags, data)
}

// python runs logs.py and returns the lines of its output.
func python(t *testing.T, args ...string) []string {
	t.Helper()
	if err := exec.Command("/usr/bin/python3", "-c", "import can").Run(); err != nil {
		lab.Skip(t, "python3-can is missing: apt-get install python3-can")
	}
	cmd := exec.Command("/usr/bin/python3", append([]string{"logs.py"}, args...)...)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("logs.py %v: %v", args, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// compare compares two logs line by line.
func compare(t *testing.T, name string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d frames, want %d", name, len(got), len(want))
	}
	for i := range got {
		if strings.TrimSpace(got[i]) != strings.TrimSpace(want[i]) {
			t.Fatalf("%s: frame %d is\n%q, want\n%q", name, i, got[i], want[i])
		}
	}
}

func TestPythonCanReadsOurLogs(t *testing.T) {
	t.Parallel()
	h, list := randomLog(t)
	for extension, format := range map[string]string{"log": "candump", "asc": "asc", "blf": "blf"} {
		path := filepath.Join(t.TempDir(), "x."+extension)
		exportTo(t, path, format, h, list)
		var want []string
		for i := range list {
			f := list[i]
			at, channel := f.Time/1000, fmt.Sprint(f.Bus)
			switch format {
			case "candump":
				channel = h.Buses[f.Bus].Interface
			case "asc": // since the date of its head, a whole millisecond
				at = (f.Time - h.Start/1e6*1e6) / 1000
			}
			want = append(want, line(at, channel, &f.Frame, f.Sent))
		}
		got := python(t, "read", path)
		if len(got) != len(want) {
			t.Fatalf("%s: %d frames, want %d", format, len(got), len(want))
		}
		for i := range got { // python-can prints a float64 of seconds, rounded to 1 us
			if !within(got[i], want[i], 1) {
				t.Fatalf("%s: frame %d is\n%q, want\n%q", format, i, got[i], want[i])
			}
		}
	}
}

// readLog returns the lines of a log that lockstep reads.
func readLog(t *testing.T, path string, channel func(string) string) (lines []string) {
	t.Helper()
	file, err := inputfile.Open(path, inputfile.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l, err := framelog.New(path, file)
	if err != nil {
		t.Fatal(err)
	}
	for {
		f, err := l.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line(f.Time/1000, channel(f.Channel), &f.Frame, f.Sent))
	}
}

func TestLogsOfPythonCanAreRead(t *testing.T) {
	t.Parallel()
	for _, extension := range []string{"log", "asc", "blf", "trc", "csv", "txt"} {
		path := filepath.Join(t.TempDir(), "x."+extension)
		want := python(t, "write", path, fmt.Sprint(logFrames))
		var first int64
		fmt.Sscan(want[0], &first)
		for i, s := range want {
			var at int64
			fmt.Sscan(s, &at)
			_, rest, _ := strings.Cut(s, " ")
			if slices.Contains([]string{"asc", "blf", "trc"}, extension) {
				at -= first // these count from the first frame
			}
			want[i] = fmt.Sprint(at, " ", rest)
		}
		channel := channelNumber
		if extension == "txt" { // as python-can counts
			channel = func(name string) string { return name }
		}
		got := readLog(t, path, channel)
		if len(got) != logFrames {
			t.Fatalf("%s: %d frames, want %d", extension, len(got), logFrames)
		}
		for i := range got { // python-can adds seconds in floating point, so times differ by up to 1 µs
			if !within(got[i], want[i], 1) {
				t.Fatalf("%s: frame %d is\n%q, want\n%q", extension, i, got[i], want[i])
			}
		}
	}
}

// within reports whether two lines agree, with times that differ by at most us microseconds.
func within(a, b string, us int64) bool {
	var x, y int64
	fmt.Sscan(a, &x)
	fmt.Sscan(b, &y)
	_, a, _ = strings.Cut(a, " ")
	_, b, _ = strings.Cut(b, " ")
	return x-y <= us && y-x <= us && strings.TrimSpace(a) == strings.TrimSpace(b)
}

// requireCanUtils skips a test if can-utils is missing.
func requireCanUtils(t *testing.T) {
	t.Helper()
	for _, program := range []string{"log2asc", "asc2log", "log2long"} {
		if _, err := exec.LookPath(program); err != nil {
			lab.Skip(t, program+" is missing: apt-get install can-utils")
		}
	}
}

func TestCanUtilsConvertOurLogs(t *testing.T) {
	t.Parallel()
	requireCanUtils(t)
	h, list := randomLog(t)
	dir := t.TempDir()
	ours := map[string]string{"candump": filepath.Join(dir, "ours.log"), "asc": filepath.Join(dir, "ours.asc")}
	for format, path := range ours {
		exportTo(t, path, format, h, list)
	}
	converted := map[string]string{"asc": filepath.Join(dir, "theirs.asc"), "candump": filepath.Join(dir, "theirs.log")}
	for _, c := range [][]string{
		{"log2asc", "-I", ours["candump"], "-O", converted["asc"], "vcan0", "vcan1"},
		{"asc2log", "-I", ours["asc"], "-O", converted["candump"]},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	for format, path := range converted {
		got := readLog(t, path, channelNumber)
		var want []string
		var first int64
		fmt.Sscan(got[0], &first) // asc2log ignores the date and uses the time of day
		for i := range list {
			want = append(want, line(first+(list[i].Time-list[0].Time)/1000, fmt.Sprint(list[i].Bus), &list[i].Frame, list[i].Sent))
		}
		compare(t, "can-utils, "+format, got, want)
	}
}

// log2long prints a log as candump without -L does.
func TestLongLogsOfCanUtilsAreRead(t *testing.T) {
	t.Parallel()
	requireCanUtils(t)
	h, list := randomLog(t)
	dir := t.TempDir()
	ours, long := filepath.Join(dir, "ours.log"), filepath.Join(dir, "long.log")
	exportTo(t, ours, "candump", h, list)
	in, err := os.Open(ours)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := exec.Command("log2long")
	cmd.Stdin = in
	out, err := cmd.Output()
	if err := errors.Join(err, os.WriteFile(long, out, 0o666)); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range list {
		f := list[i].Frame
		if f.FD() { // the flags are not printed
			f.Flags = can.FlagFDF
		}
		want = append(want, line(list[i].Time/1000, fmt.Sprint(list[i].Bus), &f, false))
	}
	compare(t, "log2long", readLog(t, long, channelNumber), want)
}

// channelNumber returns the number, from 0, of a channel can0, vcan0 or, in ASC logs, 1.
func channelNumber(name string) string {
	if _, number, ok := strings.Cut(name, "can"); ok {
		return number
	}
	n, _ := strconv.Atoi(name)
	return strconv.Itoa(n - 1)
}

// The test plays a log with canplayer on buses on which candump listens, and reads the log of
// candump as a source.
func TestLabCanplayerPlaysOurLogs(t *testing.T) {
	if !lab.InVCAN(t, "candump", "canplayer") {
		return
	}
	h, list := randomLog(t)
	list = list[:300]
	dir := t.TempDir()
	ours, dumped := filepath.Join(dir, "ours.log"), filepath.Join(dir, "dumped.log")
	exportTo(t, ours, "candump", h, list)
	out, err := os.Create(dumped)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	dump := exec.Command("candump", "-L", "-n", fmt.Sprint(len(list)), "-T", "60000", "vcan0", "vcan1")
	dump.Stdout = out
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, "candump listens to both buses", func() bool { return lab.Listeners(t, "vcan0") > 0 && lab.Listeners(t, "vcan1") > 0 })
	if out, err := exec.Command("canplayer", "-I", ours).CombinedOutput(); err != nil {
		t.Fatalf("canplayer: %v\n%s", err, out)
	}
	if err := dump.Wait(); err != nil {
		t.Fatalf("candump: %v", err)
	}
	source, err := record.OpenSource(dumped, "") // candump writes the frames of two sockets in any order
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var got, want []string
	for i := range list {
		f, err := source.Next()
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		got = append(got, line(0, channelNumber(f.Channel), &f.Frame, f.Sent))
		want = append(want, line(0, fmt.Sprint(list[i].Bus), &list[i].Frame, false))
	}
	compare(t, "canplayer and candump", got, want)
}
