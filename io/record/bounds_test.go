package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockstep/io/can"
)

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
		if _, err := NewLog("log", brokenFile{head}); !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), "record: log: ") {
			t.Errorf("a log of %q, then an error: %v", head, err)
		}
	}
}

// A frame may follow up to 255 frames that are later than it.
func TestFrameOfALogIsOutOfOrderByAtMost255Frames(t *testing.T) {
	for later, disorder := range map[int]int{0: 0, 1: 0, 255: 0, 256: 1} {
		var text strings.Builder
		for i := range later {
			fmt.Fprintf(&text, "(100.%06d) can0 001#\n", i+5)
		}
		fmt.Fprintf(&text, "(100.000000) can0 002#\n")
		for i := range 300 {
			fmt.Fprintf(&text, "(101.%06d) can0 003#\n", i)
		}
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSource(path, "")
		if err != nil {
			t.Fatal(err)
		}
		first, err := s.Next()
		if err != nil || first.Time != 0 || (first.ID == 2) != (disorder == 0) {
			t.Errorf("a frame after %d later ones: the first is %X at %d ns, %v", later, first.ID, first.Time, err)
		}
		n, last := 1, first
		for ; ; n++ {
			f, err := s.Next()
			if err != nil {
				break
			}
			last = f
		}
		start := map[bool]int64{true: 0, false: 5000}[disorder == 0] // ns, of the earliest frame
		if n != later+301 || s.Disorder != disorder || last.Time != 1e9+299e3-start {
			t.Errorf("a frame after %d later ones: %d frames, %d in disorder, the last at %d ns; want %d, %d, %d",
				later, n, s.Disorder, last.Time, later+301, disorder, int64(1e9+299e3)-start)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRecordOfAnUnknownKindIsAnError(t *testing.T) {
	for _, kind := range []byte{0, byte(EventEntry) + 1, 255} {
		var p packer
		c := p.pack(dataChunk, []byte{kind})
		file := record(t, header(0, 0, 0), nil)
		end := chunks(file)[2]
		r, err := NewReader("r", bytes.NewReader(c.appendTo(bytes.Clone(file[:end]), 2)))
		if err != nil {
			t.Fatal(err)
		}
		if list, err := readAll(r); !errors.Is(err, errRecord) || len(list) > 0 {
			t.Errorf("kind %d: %v, %v", kind, list, err)
		}
	}
}

// attempts counts the attempts to write to a disk.
type attempts struct {
	disk
	n int
}

func (a *attempts) Write(b []byte) (int, error) {
	a.n++
	return a.disk.Write(b)
}

// While the disk is full, the writer tries again after every 64 records: 65 refused records hold one
// attempt. When there is room, it goes on by itself.
func TestFullDiskIsTriedAgainAfter64Records(t *testing.T) {
	d := &attempts{disk: disk{left: 1 << 20}}
	w, err := New(d, header(0, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	d.left = 0
	event := func() error { return w.Event(&Event{Text: strings.Repeat("x", 100)}) }
	for len(w.raw) < chunkFull || w.err == nil {
		_ = event()
	}
	for w.wait != 0 { // until an attempt is next
		_ = event()
	}
	before := d.n
	for range 10 * 65 {
		if err := event(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("a full disk: %v", err)
		}
	}
	if d.n-before != 10 {
		t.Errorf("650 records are refused in %d attempts to write, want 10", d.n-before)
	}
	d.left = 1 << 30
	refused := 0
	for ; event() != nil; refused++ {
		if refused > 1000 {
			t.Fatal("the writer does not go on")
		}
	}
	if refused > 64 {
		t.Errorf("%d records are refused after there is room, want at most 64", refused)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMDF4OfAnEmptyRunHasGroupsWithoutRecords(t *testing.T) {
	h := header(1, 2, 1)
	_, file := exported(t, "mdf4", &h, nil)
	groups, events := readMDF(t, file)
	if len(groups) != 4 || len(events) != 0 {
		t.Fatalf("%d groups, events %q", len(groups), events)
	}
	for i, g := range groups {
		if g.cycles != 0 {
			t.Errorf("group %d has %d records", i, g.cycles)
		}
	}
}

// The disk is full at each byte of the end: Close says so, and the record is torn.
func TestCloseReportsAnEndThatIsNotWritten(t *testing.T) {
	file := record(t, header(0, 0, 0), written{&Event{Text: "x"}})
	end := len(file) - chunks(file)[len(chunks(file))-1] // bytes of the end chunk
	for missing := range end + 1 {
		d := &disk{left: 1 << 20}
		w, err := New(d, header(0, 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Event(&Event{Text: "x"}), w.Flush()); err != nil {
			t.Fatal(err)
		}
		d.left = end - missing
		if err := w.Close(); errors.Is(err, syscall.ENOSPC) != (missing > 0) {
			t.Errorf("%d bytes of the end are missing: %v", missing, err)
		}
		if err := w.Close(); !errors.Is(err, errClosed) {
			t.Errorf("closed twice: %v", err)
		}
		r, err := NewReader("r", bytes.NewReader(d.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if list, err := readAll(r); err != nil || len(list) != 1 || (r.Torn() != "") != (missing > 0) {
			t.Errorf("%d bytes of the end are missing: %v, %v, torn %q", missing, list, err, r.Torn())
		}
	}
}

func TestCreateHoldsItsFileUntilClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.rec")
	open := func() (n int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range list {
			if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(name, path) { // or "path (deleted)"
				n++
			}
		}
		return n
	}
	w, err := Create(path, header(1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Tick(&Tick{U: []float64{1}}), w.Sync()); err != nil || open() != 1 {
		t.Errorf("%v, open %d times", err, open())
	}
	if err := w.Close(); err != nil || open() != 0 {
		t.Errorf("%v, after Close open %d times", err, open())
	}
	if err := w.Sync(); !errors.Is(err, errClosed) {
		t.Errorf("Sync after Close: %v", err)
	}
	if _, err := Create(path, Header{}); err == nil || open() != 0 { // the period is not positive
		t.Errorf("a header that is refused: %v, open %d times", err, open())
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a header that is refused leaves a file: %v", err)
	}
}

func TestFrameOf64BytesIsReadBackAndNoLonger(t *testing.T) {
	for _, n := range []uint8{0, 63, 64} {
		f := &Frame{Tick: 1, Time: 2, Frame: can.Frame{ID: 3, Len: n, Flags: can.FlagFDF}}
		for i := range n {
			f.Data[i] = i + 1
		}
		r, err := NewReader("r", bytes.NewReader(record(t, header(0, 0, 0), written{f})))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readAll(r); err != nil || !slices.Equal(got, texts(written{f})) {
			t.Errorf("%d bytes: %v, %v", n, got, err)
		}
	}
	w, err := New(&bytes.Buffer{}, header(0, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Frame(&Frame{Frame: can.Frame{ID: 3, Len: 65}}); err == nil || !strings.Contains(err.Error(), "frame 0x003 of 65 bytes, at most 64 are possible") {
		t.Errorf("65 bytes: %v", err)
	}
}

// The memory of the hand-over is not touched: its length alone is checked.
func TestHandoverHasAtMost256MB(t *testing.T) {
	for n, want := range map[int]bool{256 << 20: true, 256<<20 + 1: false} {
		h := Header{Period: 1, Handover: make([]byte, n)}
		if err := h.validate(); (err == nil) != want {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
