package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockstep/io/can"
)

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
