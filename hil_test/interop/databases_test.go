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

// decoded is the output of databases.py.
type decoded struct {
	Messages []messages.Message
	Frames   []map[string][2]string // raw and physical value, by signal
}

// messageFrame is a message with the data of a frame.
type messageFrame struct {
	m    *messages.Message
	data [64]byte
}

func TestDatabasesAgreeWithCanmatrix(t *testing.T) {
	t.Parallel()
	if exec.Command("/usr/bin/python3", "-c", "import canmatrix").Run() != nil {
		lab.Skip(t, "python3-canmatrix is missing: apt-get install python3-canmatrix")
	}
	random := rand.New(rand.NewPCG(1, 2))
	files := []string{"../../io/dbc/testdata/gearbox.dbc", "../../model/plants/powershift.dbc", "../../model/plants/j1939.dbc", "../../model/plants/abs.dbc", "../../model/plants/esc.dbc", "../../model/plants/wsp.dbc"}
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
	for i, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s, v := compareDatabase(t, file, dbc.Parse, random)
			signals, values = signals+s, values+v
		})
		t.Run(filepath.Base(file)+" written by canmatrix", func(t *testing.T) {
			written := filepath.Join(folder, fmt.Sprintf("written%d.dbc", i))
			databases(t, "write", encodingOf(t, file), file, written)
			s, v := compareDatabase(t, written, parseLenient, random)
			signals, values = signals+s, values+v
		})
	}
	t.Logf("%d files, %d signals, %d values", len(files), signals, values)
	if signals < 100 || values < 1000 {
		t.Errorf("%d signals and %d values compared, want at least 100 and 1000", signals, values)
	}
}

// encodingOf returns the encoding of a database.
func encodingOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if utf8.Valid(data) {
		return "utf-8"
	}
	return "cp1252"
}

// parseLenient reads a database of canmatrix, which writes attributes of environment variables
// without their names.
func parseLenient(file string, data []byte) (*messages.Database, error) {
	db, _, err := dbc.ParseLenient(file, data)
	return db, err
}

// compareDatabase compares the messages of a file and the values of random frames with canmatrix.
// It returns the numbers of signals and values.
func compareDatabase(t *testing.T, file string, parse func(string, []byte) (*messages.Database, error), random *rand.Rand,
) (signals, values int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	db, err := parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	frames := randomFrames(db, random)
	other := canmatrix(t, file, encodingOf(t, file), frames)
	if len(other.Messages) != len(db.Messages) || len(other.Frames) != len(frames) {
		t.Fatalf("canmatrix reads %d messages and %d frames, lockstep %d and %d", len(other.Messages), len(other.Frames), len(db.Messages), len(frames))
	}
	for i := range db.Messages {
		got, want := format(&db.Messages[i], true), format(&other.Messages[i], false)
		if got != want {
			t.Errorf("lockstep reads\n%s\ncanmatrix\n%s", got, want)
		}
		signals += len(db.Messages[i].Signals)
	}
	for i := range frames {
		values += compareFrame(t, &frames[i], other.Frames[i])
	}
	return signals, values
}

// randomFrames returns 20 frames of every message. Half of them have few set bits, so that their
// multiplexors are small and select signals.
func randomFrames(db *messages.Database, random *rand.Rand) (frames []messageFrame) {
	for i := range db.Messages {
		m := &db.Messages[i]
		for n := range 20 {
			c := messageFrame{m: m}
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

// canmatrix decodes a database and frames with databases.py.
func canmatrix(t *testing.T, file, encoding string, frames []messageFrame) (r decoded) {
	t.Helper()
	var b strings.Builder
	for _, c := range frames {
		fmt.Fprintf(&b, "%s %s\n", c.m.Name, hex.EncodeToString(c.data[:c.m.Len]))
	}
	list := filepath.Join(t.TempDir(), "frames")
	if err := os.WriteFile(list, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out := databases(t, encoding, file, list)
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// databases runs databases.py and returns its output.
func databases(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("/usr/bin/python3", append([]string{"databases.py"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("databases.py %q: %v\n%s%s", args, err, out, stderr.String())
	}
	return out
}

// format returns the properties of a message that canmatrix knows, as text. The start values of
// canmatrix are physical, those of lockstep (own) are raw.
func format(m *messages.Message, own bool) string {
	text := fmt.Sprintf("%s %X, %d bytes, from %q, every %d ns, FD %v, J1939 %v\n", m.Name, m.ID, m.Len, m.Sender, m.CycleNs, m.FD, m.J1939)
	for _, s := range m.Signals {
		slices.SortFunc(s.Values, func(a, b messages.Value) int { return cmp.Compare(a.Raw, b.Raw) })
		if own {
			s.Initial = s.Initial*s.Factor + s.Offset
		}
		text += fmt.Sprintf("  %s %d|%d big %v signed %v float %v (%g,%g) [%g|%g] %q %v %q M %v %v start %.9g\n", s.Name, s.Start, s.Len, s.BigEndian,
			s.Signed, s.Float, s.Factor, s.Offset, s.Min, s.Max, s.Unit, s.Values, s.Receivers, s.Multiplexor, s.Ranges, s.Initial)
	}
	return text
}

// compareFrame compares the raw values of the signals in a frame exactly, and the physical values
// within rounding: canmatrix computes in decimals. It returns the number of values.
func compareFrame(t *testing.T, c *messageFrame, other map[string][2]string) (values int) {
	t.Helper()
	for i := range c.m.Signals {
		s := &c.m.Signals[i]
		canmatrix, there := other[s.Name]
		if present := c.m.Present(s, &c.data); present != there {
			t.Errorf("%s %x: %s is present: %v, by canmatrix %v", c.m.Name, c.data[:c.m.Len], s.Name, present, there)
		}
		if !there {
			continue
		}
		values++
		raw := s.Raw(&c.data)
		got := s.Value(raw)
		want, err := strconv.ParseFloat(canmatrix[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if math.IsNaN(got) && math.IsNaN(want) && s.Float { // databases.py prints all NaN alike
			continue
		}
		if text := strconv.FormatUint(raw, 10); text != canmatrix[0] {
			t.Errorf("%s %x: %s is raw %s, by canmatrix %v", c.m.Name, c.data[:c.m.Len], s.Name, text, canmatrix[0])
		}
		// The factor, the product and the sum are each rounded by 1.1e-16 of most.
		most := math.Abs(got-s.Offset) + math.Abs(s.Offset)
		if !(math.Abs(got-want) <= 3.4e-16*most) && got != want { // both may be infinite
			t.Errorf("%s %x: %s is %v, by canmatrix %v", c.m.Name, c.data[:c.m.Len], s.Name, got, want)
		}
	}
	return values
}
