//go:build long

package interop

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"lockstep/hil_test/lab"
	"lockstep/io/can"
	"lockstep/io/dbc"
	"lockstep/io/framelog"
	"lockstep/io/inputfile"
	"lockstep/io/messages"
	"lockstep/io/record"
)

// peersFolder returns the folder that LOCKSTEP_PEERS names. It holds checkouts of cantools, textparser,
// canmatrix, python-can, asammdf and opendbc; io/README.md has their commits.
func peersFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("LOCKSTEP_PEERS")
	if folder == "" {
		lab.Skip(t, "LOCKSTEP_PEERS names no folder with checkouts of other programs: io/README.md")
	}
	return folder
}

// peers starts peers.py with the programs of LOCKSTEP_PEERS.
func peers(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	folder := peersFolder(t)
	var path []string
	for _, program := range []string{"cantools/src", "textparser", "canmatrix/src", "python-can", "asammdf/src"} {
		path = append(path, filepath.Join(folder, program))
	}
	cmd := exec.Command("/usr/bin/python3", append([]string{"peers.py"}, args...)...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+strings.Join(path, ":"))
	cmd.Stderr = os.Stderr
	return cmd
}

// peerLines runs peers.py and returns the lines of its output.
func peerLines(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := peers(t, args...).Output()
	if err != nil {
		t.Fatalf("peers.py %v: %v", args, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// foreignFiles returns the files of LOCKSTEP_PEERS with an extension, and logs the commits of its folders.
func foreignFiles(t *testing.T, extensions ...string) (list []string) {
	t.Helper()
	folder := peersFolder(t)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if commit, err := exec.Command("git", "-C", filepath.Join(folder, e.Name()), "log", "-1", "--format=%H of %cs").Output(); err == nil {
			t.Logf("%s: commit %s", e.Name(), strings.TrimSpace(string(commit)))
		}
	}
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Type().IsRegular() && slices.Contains(extensions, strings.ToLower(filepath.Ext(path))) {
			list = append(list, path)
		}
		return err
	})
	if err != nil || len(list) == 0 {
		t.Fatalf("%d files %v in %s, %v", len(list), extensions, folder, err)
	}
	return list
}

// namedLine matches an error that names a line, or a byte, of a file.
var namedLine = regexp.MustCompile(`^[^\n]*: byte \d+: [^\n]+$|^[^\n]*:\d+(:\d+)?: [^\n]+$`)

// foreign sums up a walk through the databases of others.
type foreign struct {
	files, strict, lenient, refused, signals int
	values                                   map[string]int // compared with a program
	theirs                                   map[string]int // files that a program refuses
}

// peerFrames is what one program makes of the frames of a database.
type peerFrames struct {
	Refused string
	Frames  []map[string][2]*string // raw value, nil for a float, and physical value, by signal; nil: not decoded
}

func TestForeignDatabasesAreReadOrRefusedWithALineAndDecodedAsByOthers(t *testing.T) {
	files := foreignFiles(t, ".dbc")
	cmd := peers(t, "decode")
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), cmd.Wait() }()
	answers, random := bufio.NewReaderSize(out, 1<<20), rand.New(rand.NewPCG(8, 9))
	total := foreign{values: map[string]int{}, theirs: map[string]int{}}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		total.files++
		db, list, err := dbc.ParseLenient(file, data)
		switch {
		case err != nil && !namedLine.MatchString(err.Error()):
			t.Errorf("%s is refused without a line: %v", file, err)
			fallthrough
		case err != nil:
			t.Logf("refused: %v", err)
			total.refused++
			continue
		case len(list) == 0:
			total.strict++
		default:
			total.lenient++
		}
		for _, m := range db.Messages {
			total.signals += len(m.Signals)
		}

		forgetRenamed(db, list)
		frames := foreignFrames(db, random)
		encoding := "cp1252"
		if utf8.Valid(data) {
			encoding = "utf-8"
		}
		job := map[string]any{"File": file, "Encoding": encoding, "Frames": [][3]string{}}
		for _, f := range frames {
			job["Frames"] = append(job["Frames"].([][3]string),
				[3]string{f.m.Name, fmt.Sprint(f.m.ID &^ can.EFF), hex.EncodeToString(f.data[:f.m.Len])})
		}
		if err := json.NewEncoder(in).Encode(job); err != nil {
			t.Fatal(err)
		}
		line, err := answers.ReadBytes('\n')
		var by map[string]peerFrames
		if err := errors.Join(err, json.Unmarshal(line, &by)); err != nil {
			t.Fatalf("%s: %v: %.200s", file, err, line)
		}
		for program, answer := range by {
			if answer.Refused != "" {
				t.Logf("%s refuses %s: %s", program, file, answer.Refused)
				total.theirs[program]++
				continue
			}
			for i := range frames {
				total.values[program] += compareForeign(t, file, program, &frames[i], answer.Frames[i])
			}
		}
	}
	t.Logf("%d files: %d read, %d read with deviations, %d refused; %d signals; values compared %v; refused by others %v",
		total.files, total.strict, total.lenient, total.refused, total.signals, total.values, total.theirs)
	if total.values["cantools"] < 10_000 || total.values["canmatrix"] < 10_000 {
		t.Errorf("values compared: %v, want at least 10000 each", total.values)
	}
}

// forgetRenamed removes the signals that a message has twice. ParseLenient renames the second signal;
// other programs keep one of the two.
func forgetRenamed(db *messages.Database, list []dbc.Deviation) {
	for i := range db.Messages {
		m := &db.Messages[i]
		twice := map[string]bool{}
		for j := range m.Signals {
			s := &m.Signals[j]
			base, _, ok := cutLast(s.Name)
			if ok && m.Signal(base) != nil && slices.ContainsFunc(list, func(l dbc.Deviation) bool { return l.Line == s.Line }) {
				twice[base], twice[s.Name] = true, true
			}
		}
		m.Signals = slices.DeleteFunc(m.Signals, func(s messages.Signal) bool { return twice[s.Name] && !m.Selects(&s) })
	}
}

// cutLast cuts a name at its last underscore.
func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndexByte(name, '_')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}

// foreignFrames returns 4 frames of each message that one frame carries and whose name is unique.
func foreignFrames(db *messages.Database, random *rand.Rand) (list []messageFrame) {
	names := map[string]int{}
	for i := range db.Messages {
		names[db.Messages[i].Name]++
	}
	for _, f := range randomFrames(&messages.Database{Messages: slices.DeleteFunc(slices.Clone(db.Messages),
		func(m messages.Message) bool { return m.Len > 64 || m.Len == 0 || names[m.Name] > 1 })}, random) {
		if random.IntN(5) == 0 {
			list = append(list, f)
		}
	}
	return list
}

// knownErrors are messages that a program decodes wrongly, and why.
var knownErrors = map[[3]string]string{
	{"cantools", "vw_pq.dbc", "Motor_2"}: "the multiplexor is marked m, not M: its signals are never there",
}

// compareForeign compares the values of a frame and returns their number.
func compareForeign(t *testing.T, file, program string, f *messageFrame, by map[string][2]*string) (values int) {
	t.Helper()
	if by == nil || knownErrors[[3]string{program, filepath.Base(file), f.m.Name}] != "" {
		return 0
	}
	where := fmt.Sprintf("%s: %s %x", file, f.m.Name, f.data[:f.m.Len])
	for i := range f.m.Signals {
		s := &f.m.Signals[i]
		other, there := by[s.Name]
		if present := f.m.Present(s, &f.data); present != there {
			t.Errorf("%s: %s is present: %v, by %s %v", where, s.Name, present, program, there)
		}
		if !there {
			continue
		}
		values++
		raw := s.Raw(&f.data)
		got := s.Value(raw)
		want, err := strconv.ParseFloat(*other[1], 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			t.Fatal(err)
		}
		if other[0] != nil && *other[0] != strconv.FormatUint(raw, 10) && !s.Float {
			t.Errorf("%s: %s is raw %d, by %s %s", where, s.Name, raw, program, *other[0])
		}
		most := math.Abs(got-s.Offset) + math.Abs(s.Offset)
		if !(math.Abs(got-want) <= 1e-15*most) && got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s: %s is %v, by %s %v", where, s.Name, got, program, want)
		}
	}
	return values
}

// foreignLog returns the lines of a log, and its error.
func foreignLog(path string) (lines []string, err error) {
	file, err := inputfile.Open(path, inputfile.Log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	l, err := framelog.New(path, file)
	if err != nil {
		return nil, err
	}
	for {
		f, err := l.Next()
		switch {
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return lines, err
		case f.ID&can.ERR != 0:
			lines = append(lines, fmt.Sprintf("%d - 0 -E ", f.Time/1000))
		default:
			if f.ID&can.RTR != 0 {
				f.Len = min(f.Len, 8)
			}
			lines = append(lines, line(f.Time/1000, "-", &f.Frame, f.Sent))
		}
	}
}

// relative returns lines of frames with times since the first of them, and without the channels, which
// programs number differently.
func relative(lines []string) (list []string) {
	var first int64
	for i, s := range lines {
		var at int64
		words := strings.SplitN(s, " ", 3)
		at, _ = strconv.ParseInt(words[0], 10, 64)
		if i == 0 {
			first = at
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%d %s", at-first, words[2])))
	}
	return list
}

func TestForeignLogsAreReadAsByPythonCanOrRefusedWithALine(t *testing.T) {
	read, refused, frames := 0, 0, 0
	files := foreignFiles(t, ".asc", ".blf", ".trc", ".log")
	by, at := map[string][]string{}, ""
	for _, s := range peerLines(t, append([]string{"logs"}, files...)...) {
		if name, ok := strings.CutPrefix(s, "= "); ok {
			at, by[name] = name, nil
		} else {
			by[at] = append(by[at], s)
		}
	}
	for _, file := range files {
		got, err := foreignLog(file)
		if err != nil {
			if refused++; !namedLine.MatchString(err.Error()) {
				t.Errorf("%s is refused without a line: %v", file, err)
			}
			t.Logf("refused: %v", err)
			continue
		}
		want := by[file]
		if n := len(want); n > 0 && want[n-1][0] == '!' {
			t.Logf("python-can refuses %s: %s", file, want[n-1])
			continue
		}
		read, frames = read+1, frames+len(got)
		comparePeer(t, file, relative(got), relative(want))
	}
	t.Logf("%d logs with %d frames agree, %d are refused", read, frames, refused)
	if read < 10 {
		t.Errorf("%d logs are read, want at least 10", read)
	}
}

// comparePeer compares the frames of a log with those that another program reads, with times within 2 us.
func comparePeer(t *testing.T, file string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d frames, by the other program %d", file, len(got), len(want))
		return
	}
	for i := range got {
		if !within(got[i], want[i], 2) {
			t.Errorf("%s: frame %d is\n%q, by the other program\n%q", file, i, got[i], want[i])
			return
		}
	}
}

func TestMDF4LogsOfPythonCanAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.mf4")
	want := relative(peerLines(t, "write", path, fmt.Sprint(logFrames)))
	got, err := foreignLog(path)
	if err != nil {
		t.Fatal(err)
	}
	comparePeer(t, path, relative(got), want)
}

func TestAsammdfReadsTheFramesOfOurMDF4(t *testing.T) {
	h, list := randomLog(t)
	path := filepath.Join(t.TempDir(), "x.mf4")
	exportTo(t, path, "mdf4", h, list)
	var got, want []string
	for _, s := range peerLines(t, "mdf", path) {
		if !strings.HasPrefix(s, "signal ") {
			got = append(got, s)
		}
	}
	for i := range list {
		want = append(want, line((list[i].Time-h.Start)/1000, fmt.Sprint(list[i].Bus+1), &list[i].Frame, list[i].Sent))
	}
	byTime := func(a, b string) int {
		x, _, _ := strings.Cut(a, " ")
		y, _, _ := strings.Cut(b, " ")
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	}
	slices.SortFunc(got, byTime)
	slices.SortFunc(want, byTime)
	comparePeer(t, path, got, want)
}

// The frames are held in records or blocks of variable length.
func TestAsammdfReadsDataOfVariableLengthAsWeDo(t *testing.T) {
	folder := t.TempDir()
	write := exec.Command("go", "test", "lockstep/io/record", "-count=1", "-run", "^TestMDFDataOfVariableLengthAreRead$", "-mdf", folder)
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.mf4"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		got, err := foreignLog(file)
		if err != nil {
			t.Fatal(err)
		}
		comparePeer(t, file, relative(got), relative(peerLines(t, "mdf", file)))
	}
}

// A value is exact, in its unit, and an integer where the raw value is one.
func TestAsammdfReadsTheSignalsOfOurMDF4(t *testing.T) {
	const file = "../../io/dbc/testdata/gearbox.dbc"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	db, err := dbc.Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	// A signal of 64 bits is exact.
	db.Messages = append(db.Messages, messages.Message{Name: "Exact", ID: 0x7F0, Len: 8, Signals: []messages.Signal{{Name: "u64", Len: 64, Factor: 1}}},
		messages.Message{Name: "Negative", ID: 0x7F1, Len: 8, Signals: []messages.Signal{{Name: "i64", Len: 64, Signed: true, Factor: 1}}})
	h := &record.Header{Period: 5e6, Start: 1_700_000_000_000_000_000,
		Buses: []record.Bus{{Name: "drive", Interface: "vcan0", Layout: db}}}
	var list []record.Frame
	type key struct{ group, signal string }
	want := map[key][]uint64{}
	of := map[key]*messages.Signal{}
	for k, f := range randomFrames(db, rand.New(rand.NewPCG(3, 3))) {
		if f.m.Len > 64 {
			continue
		}
		x := record.Frame{Tick: int64(k), Time: h.At(int64(k)), Frame: can.Frame{ID: f.m.ID, Len: uint8(f.m.Len), Data: f.data}}
		if f.m.IsFD() {
			x.Flags = can.FlagFDF
		}
		list = append(list, x)
		for i := range f.m.Signals {
			s := &f.m.Signals[i]
			if f.m.Present(s, &f.data) {
				at := key{"drive." + f.m.Name, f.m.Name + "." + s.Name}
				want[at], of[at] = append(want[at], s.Raw(&f.data)), s
			}
		}
	}
	path := filepath.Join(t.TempDir(), "x.mf4")
	exportTo(t, path, "mdf4", h, list)
	values := 0
	for _, row := range peerLines(t, "mdf", path) {
		words := strings.SplitN(row, " ", 7)
		if words[0] != "signal" || !strings.HasPrefix(words[1], "drive.") {
			continue
		}
		at := key{words[1], words[2]}
		s := of[at]
		if s == nil || len(want[at]) == 0 {
			t.Fatalf("%q is not expected", row)
		}
		raw := want[at][0]
		want[at] = want[at][1:]
		values++
		exact := fmt.Sprint(raw)
		if s.Signed {
			exact = fmt.Sprint(int64(raw<<(64-s.Len)) >> (64 - s.Len))
		}
		number, _ := strconv.ParseFloat(words[6], 64)
		text, isText := strings.CutPrefix(words[6], "'")
		named := slices.IndexFunc(s.Values, func(v messages.Value) bool { return fmt.Sprint(v.Raw) == exact })
		switch got := s.Value(raw); {
		case words[3] != cmp.Or(s.Unit, "-"):
			t.Fatalf("%q: the unit is not %q", row, s.Unit)
		case !s.Float && (words[5] != exact || words[4] == "f"):
			t.Fatalf("%q: the raw value is not the integer %s", row, exact)
		case isText && (named >= 0 && text != s.Values[named].Text || named < 0 && text != ""):
			t.Fatalf("%q: the text is not that of %s in %v", row, exact, s.Values)
		case named >= 0: // asammdf makes NaN of texts where other values of the signal have numbers
		case !isText && !(math.Abs(got-number) <= 1e-15*(math.Abs(got)+math.Abs(s.Offset))) && !(math.IsNaN(got) && math.IsNaN(number)):
			t.Fatalf("%q: the value is not %v", row, got)
		}
	}
	for at, rest := range want {
		if len(rest) > 0 {
			t.Errorf("%d values of %v are missing", len(rest), at)
		}
	}
	t.Logf("%d values of %d signals", values, len(of))
}
