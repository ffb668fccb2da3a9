package interop

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"lockstep/hil_test/lab"
	"lockstep/io/dbc"
	"lockstep/io/messages"
)

// read is a database as databases.py prints it.
type read struct {
	Messages []messages.Message
	Frames   []map[string][2]string // of a signal: raw, and the value
}

// filled is the data of a frame of a message.
type filled struct {
	m    *messages.Message
	data [64]byte
}

func TestDatabasesReadAsByCanmatrix(t *testing.T) {
	t.Parallel()
	if exec.Command("/usr/bin/python3", "-c", "import canmatrix").Run() != nil {
		lab.Skip(t, "python3-canmatrix is missing: apt-get install python3-canmatrix")
	}
	random := rand.New(rand.NewPCG(1, 2))
	files := []string{"../../io/dbc/testdata/gearbox.dbc", "../../model/plants/powershift.dbc", "../../model/plants/j1939.dbc", "../../model/plants/abs.dbc", "../../model/plants/wsp.dbc"}
	folder := t.TempDir()
	generate := exec.Command("go", "test", "lockstep/io/dbc", "-count=1", "-run", "TestGeneratedDatabasesAreWritten", "-generated", folder)
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	generated, err := filepath.Glob(filepath.Join(folder, "*.dbc"))
	if err != nil || len(generated) != 24 {
		t.Fatalf("%d generated databases, %v", len(generated), err)
	}
	files = append(files, generated...)
	signals, values := 0, 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s, v := compareDatabase(t, file, random)
			signals, values = signals+s, values+v
		})
	}
	t.Logf("%d files, %d signals, %d values", len(files), signals, values)
	if signals < 100 || values < 1000 {
		t.Errorf("only %d signals and %d values were compared", signals, values)
	}
}

// compareDatabase compares a file and random frames as we read them and as
// canmatrix does, and returns how many signals and values.
func compareDatabase(t *testing.T, file string, random *rand.Rand) (signals, values int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	db, err := dbc.Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	encoding := "utf-8"
	if !utf8.Valid(data) {
		encoding = "cp1252"
	}
	frames := randomFrames(db, random)
	other := canmatrix(t, file, encoding, frames)
	if len(other.Messages) != len(db.Messages) || len(other.Frames) != len(frames) {
		t.Fatalf("canmatrix reads %d messages and %d frames, we %d and %d", len(other.Messages), len(other.Frames), len(db.Messages), len(frames))
	}
	for i := range db.Messages {
		got, want := known(&db.Messages[i], true), known(&other.Messages[i], false)
		if got != want {
			t.Errorf("we read\n%s\ncanmatrix\n%s", got, want)
		}
		signals += len(db.Messages[i].Signals)
	}
	for i := range frames {
		values += compareFrame(t, &frames[i], other.Frames[i])
	}
	return signals, values
}

// randomFrames are frames of every message; their multiplexors are small numbers,
// so that they select something.
func randomFrames(db *messages.Database, random *rand.Rand) (frames []filled) {
	for i := range db.Messages {
		m := &db.Messages[i]
		for n := range 20 {
			c := filled{m: m}
			for j := range m.Len {
				c.data[j] = byte(random.Uint32())
				if n%2 == 0 {
					c.data[j] &= byte(random.Uint32() & random.Uint32() & random.Uint32())
				}
			}
			frames = append(frames, c)
		}
	}
	return frames
}

// canmatrix runs databases.py.
func canmatrix(t *testing.T, file, encoding string, frames []filled) (r read) {
	t.Helper()
	var b strings.Builder
	for _, c := range frames {
		fmt.Fprintf(&b, "%s %s\n", c.m.Name, hex.EncodeToString(c.data[:c.m.Len]))
	}
	list := filepath.Join(t.TempDir(), "frames")
	if err := os.WriteFile(list, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/python3", "databases.py", encoding, file, list)
	var trouble strings.Builder
	cmd.Stderr = &trouble
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("databases.py %s: %v\n%s%s", file, err, out, trouble.String())
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// known is a message as text, as far as canmatrix tells it. Its start values are
// physical.
func known(m *messages.Message, ours bool) string {
	text := fmt.Sprintf("%s %X, %d bytes, from %q, every %d ns, FD %v, J1939 %v\n", m.Name, m.ID, m.Len, m.Sender, m.CycleNs, m.FD, m.J1939)
	for _, s := range m.Signals {
		slices.SortFunc(s.Values, func(a, b messages.Value) int { return cmp.Compare(a.Raw, b.Raw) })
		if ours {
			s.Initial = s.Initial*s.Factor + s.Offset
		}
		text += fmt.Sprintf("  %s %d|%d big %v signed %v float %v (%g,%g) [%g|%g] %q %v %q M %v %v start %.9g\n", s.Name, s.Start, s.Len, s.BigEndian,
			s.Signed, s.Float, s.Factor, s.Offset, s.Min, s.Max, s.Unit, s.Values, s.Receivers, s.Multiplexor, s.Ranges, s.Initial)
	}
	return text
}

// compareFrame compares the signals that are in a frame, bit for bit, and their
// values; canmatrix computes them in decimals.
func compareFrame(t *testing.T, c *filled, other map[string][2]string) (values int) {
	t.Helper()
	for i := range c.m.Signals {
		s := &c.m.Signals[i]
		theirs, there := other[s.Name]
		if present := c.m.Present(s, &c.data); present != there {
			t.Errorf("%s %x: %s is there: %v, by canmatrix %v", c.m.Name, c.data[:c.m.Len], s.Name, present, there)
		}
		if !there {
			continue
		}
		values++
		raw := s.Raw(&c.data)
		got := s.Value(raw)
		want, err := strconv.ParseFloat(theirs[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if math.IsNaN(got) && math.IsNaN(want) && s.Float { // which one is not passed on
			continue
		}
		if text := strconv.FormatUint(raw, 10); text != theirs[0] {
			t.Errorf("%s %x: %s is raw %s, by canmatrix %v", c.m.Name, c.data[:c.m.Len], s.Name, text, theirs[0])
		}
		// The factor, the product and the sum are rounded, each by 1.1e-16 of this.
		most := math.Abs(got-s.Offset) + math.Abs(s.Offset)
		if !(math.Abs(got-want) <= 3.4e-16*most) && got != want { // got == want: infinite
			t.Errorf("%s %x: %s is %v, by canmatrix %v", c.m.Name, c.data[:c.m.Len], s.Name, got, want)
		}
	}
	return values
}
