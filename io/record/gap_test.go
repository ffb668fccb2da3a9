package record

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/framelog"
)

// memory is a Target.
type memory struct{ bytes.Buffer }

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	if n := int(at) + len(b) - m.Len(); n > 0 {
		m.Write(make([]byte, n))
	}
	return copy(m.Bytes()[at:], b), nil
}

// export exports a record; the error is of Export.
func export(t *testing.T, file []byte, format string) ([]byte, error) {
	t.Helper()
	r, err := NewReader("run.rec", bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var out memory
	err = Export(r, format, &out)
	return out.Bytes(), err
}

// longer returns a record of n ticks from 1 on, with a frame each, in chunks of four ticks.
func longer(t *testing.T, n int64) []byte {
	t.Helper()
	var all written
	for k := int64(1); k <= n; k++ {
		all = append(all, &Frame{Tick: k, Time: 1_700_000_000_123_456_789 + k*5e6, Frame: can.Frame{ID: 0x123, Len: 1, Data: [64]byte{byte(k)}}},
			&Tick{Index: k, U: []float64{float64(k)}, Y: []float64{0, 1}, Phases: []int64{1000}})
		if k%4 == 0 {
			all = append(all, nil)
		}
	}
	h := header(1, 2, 1)
	h.Handover = []byte("matrices")
	return record(t, h, all)
}

var missingRows = regexp.MustCompile(`(\d+) rows?, (is|are) missing`)

func TestExportOfARecordWithAFlippedByteIsCompleteOrNamesTheGap(t *testing.T) {
	file := longer(t, 20)
	whole := map[string][]byte{}
	for _, format := range Formats() {
		out, err := export(t, file, format)
		if err != nil {
			t.Fatal(err)
		}
		whole[format] = out
	}
	lines := func(b []byte) []string { return strings.Split(strings.TrimSpace(string(b)), "\n") }
	refused, gaps := 0, 0
	for i := range file {
		bad := flip(file, i)
		if _, err := NewReader("run.rec", bytes.NewReader(bad)); err != nil {
			refused++
			continue
		}
		for format, want := range whole {
			got, err := export(t, bad, format)
			var gap *GapError
			if err == nil && bytes.Equal(got, want) {
				t.Fatalf("byte %d, %s: the damage is not named", i, format)
			}
			if !errors.As(err, &gap) || gap.Count != 1 || !strings.HasPrefix(gap.Error(), "run.rec: ") {
				t.Fatalf("byte %d, %s: %v, want one gap", i, format, err)
			}
			gaps++
			if format != "csv" && format != "candump" {
				continue
			}
			rows, all := lines(got), lines(want)
			missing, known := len(all)-len(rows), missingRows.FindStringSubmatch(gap.Error())
			if format == "csv" && known != nil && known[1] != strconv.Itoa(missing) {
				t.Fatalf("byte %d: %d rows are missing, but %s", i, missing, gap)
			}
			marked := 0
			for j, row := range rows {
				if format == "csv" && strings.HasSuffix(row, ",8,1000") {
					marked++
					row = strings.TrimSuffix(row, "8,1000") + "0,1000"
					if k := slices.Index(all, row); k <= 0 || j > 0 && all[k-1] == strings.Replace(rows[j-1], ",8,", ",0,", 1) {
						t.Fatalf("byte %d: row %q is marked, but no row is missing before it", i, row)
					}
				}
				if !slices.Contains(all, row) {
					t.Fatalf("byte %d, %s: %q is not in the record", i, format, row)
				}
			}
			if known != nil && format == "csv" && marked != 1 {
				t.Fatalf("byte %d: %d rows are marked; %s", i, marked, gap)
			}
		}
	}
	if refused < 100 || gaps < 1000 {
		t.Errorf("%d files refused, %d gaps named: the test flips too few bytes", refused, gaps)
	}
}

func TestGapsAreNamedWithTheirTicksAndTimes(t *testing.T) {
	file := longer(t, 20)
	at := chunks(file) // header, hand-over, five of four ticks, end
	without := func(from, to int) []byte { return slices.Concat(file[:at[from]], file[at[to]:]) }
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"damage in the middle": {flip(file, at[4]+30), "ticks 9 to 12 (0.045 s to 0.06 s), 4 rows, are missing, with the frames and events of this time"},
		"two chunks gone":      {without(3, 5), "ticks 5 to 12 (0.025 s to 0.06 s), 8 rows, are missing"},
		"length of a chunk":    {flip(file, at[4]+14), "ticks 9 to 12 (0.045 s to 0.06 s), 4 rows"},
		"first chunk":          {flip(file, at[2]+30), "what preceded tick 5 (0.025 s) is missing"},
		"last chunk":           {flip(file, at[6]+30), "what followed tick 16 (0.08 s) is missing, up to the end"},
		"all chunks":           {without(2, 7), "all ticks, frames and events are missing"},
		"hand-over":            {flip(file, at[1]+30), "the hand-over, which only a replay needs, cannot be read; no tick, frame or event is missing"},
		"end chunk":            {flip(file, at[7]+8), "after tick 20 (0.1 s)"},
		"cut in a chunk":       {file[:at[5]+9], fmt.Sprintf("cut off at byte %d, after tick 12 (0.06 s)", at[5])},
		"cut between chunks":   {file[:at[5]], fmt.Sprintf("ends at byte %d, after tick 12 (0.06 s)", at[5])},
		"another record after": {slices.Concat(file, file), "the file goes on"},
	} {
		for _, format := range Formats() {
			out, err := export(t, c.file, format)
			var gap *GapError
			if !errors.As(err, &gap) || gap.Count != 1 || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "more") {
				t.Errorf("%s, %s: %v; want %s", name, format, err, c.want)
			}
			if format == "blf" {
				z, err := zlib.NewReader(bytes.NewReader(out[blfHeader+framelog.BLFContainerHead:]))
				if err != nil {
					t.Fatal(err)
				}
				out, _ = io.ReadAll(z)
			}
			if marks := slices.Contains([]string{"asc", "blf", "mdf4"}, format); marks != bytes.Contains(out, []byte(c.want)) {
				t.Errorf("%s: the gap is in the export to %s: %t", name, format, !marks)
			}
		}
	}
}

// A chunk of the frames between two ticks is gone.
func TestGapWithoutATickIsNamedSo(t *testing.T) {
	tick := func(k int64) *Tick { return &Tick{Index: k, U: []float64{1}, Y: []float64{0, 1}, Phases: []int64{0}} }
	frame := &Frame{Tick: 5, Time: 1_700_000_000_000_000_000, Frame: can.Frame{ID: 0x123, Len: 1}}
	file := record(t, header(1, 2, 1), written{tick(3), tick(4), nil, frame, nil, frame, tick(5), nil})
	at := chunks(file) // header, hand-over, ticks, frame, tick, end
	_, err := export(t, slices.Concat(file[:at[3]], file[at[4]:]), "csv")
	const want = "frames or events between tick 4 (0.02 s) and tick 5 (0.025 s) are missing, but no tick"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestEntriesThatWereNotWrittenAreAGapOfTheExport(t *testing.T) {
	tick := func(k int64) *Tick { return &Tick{Index: k, U: []float64{1}, Y: []float64{0, 1}, Phases: []int64{0}} }
	for name, c := range map[string]struct {
		between written
		next    int64
		want    map[string]string // by format; "": no gap
	}{
		"lost entries":         {written{&Event{Kind: Lost, Tick: 2, Count: 3, Text: "the disk was full"}}, 3, map[string]string{"csv": "about tick 2 (0.01 s), 3 entries are missing: the disk was full", "asc": "3 entries"}},
		"ticks without reason": {nil, 5, map[string]string{"csv": "ticks 3 to 4 (0.015 s to 0.02 s), 2 rows, are missing", "mdf4": "2 rows"}},
		"one tick":             {nil, 4, map[string]string{"csv": "tick 3 (0.015 s), 1 row, is missing"}},
		"a tick again":         {nil, 2, map[string]string{"csv": "tick 2 follows tick 2"}},
		"monitored frames":     {written{&Event{Kind: MonitorLost, Tick: 2, Count: 7, Text: "bus b"}}, 3, map[string]string{"csv": "", "candump": "7 frames of the bus monitor are missing: bus b"}},
		"nothing":              {written{&Event{Kind: Note, Tick: 2, Count: 7, Text: "bus b"}}, 3, map[string]string{"csv": "", "candump": ""}},
	} {
		file := record(t, header(1, 2, 1), slices.Concat(written{tick(1), tick(2)}, c.between, written{tick(c.next)}))
		for format, want := range c.want {
			_, err := export(t, file, format)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v; want %q", name, format, err, want)
			}
		}
	}
}

func TestManyGapsAreListedUpToALimit(t *testing.T) {
	file := longer(t, 400)
	for i, at := range chunks(file) {
		if i > 1 && i%2 == 1 {
			file[at+30] ^= 1
		}
	}
	_, err := export(t, file, "csv")
	var gap *GapError
	if !errors.As(err, &gap) || gap.Count != 50 || len(gap.Gaps) != maxGaps || !strings.HasSuffix(err.Error(), "\nand 30 gaps more") {
		t.Errorf("%v", err)
	}
}
