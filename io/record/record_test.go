package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"

	"pgregory.net/rapid"
)

// written is a list of items that a test writes, one pointer each.
type written []any

func header(m, p, phases int) Header {
	h := Header{Version: "test", Host: "here", Period: 5e6, Start: 1_700_000_000_123_456_789, Mono: 1e12,
		Buses: []Bus{{Name: "powertrain", Interface: "vcan0"}, {Name: "chassis", Interface: "vcan1"}},
		Files: []File{{Role: "bench", Name: "b.yaml", Text: []byte("period: 5 ms\n\xe4")}}}
	for i := range m {
		h.Inputs = append(h.Inputs, Signal{Name: fmt.Sprintf("u%d", i), Unit: "Pa"})
	}
	for i := range p {
		h.Outputs = append(h.Outputs, Signal{Name: fmt.Sprintf("y%d", i), Unit: "rad/s"})
	}
	for i := range phases {
		h.Phases = append(h.Phases, fmt.Sprintf("phase %d", i))
	}
	return h
}

// put writes all items; a negative int is a Flush.
func put(t testing.TB, w *Writer, all written) {
	t.Helper()
	for _, x := range all {
		var err error
		switch x := x.(type) {
		case *Tick:
			err = w.Tick(x)
		case *Frame:
			err = w.Frame(x)
		case *Event:
			err = w.Event(x)
		case nil:
			err = w.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// record returns the items as a file.
func record(t testing.TB, h Header, all written) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := New(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	put(t, w, all)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// same compares a written item with an entry, bit for bit.
func same(x any) string {
	switch x := x.(type) {
	case *Tick:
		s := fmt.Sprint("tick ", x.Index, x.Flags, x.Phases)
		for _, v := range append(slices.Clone(x.U), x.Y...) {
			s += fmt.Sprintf(" %x", math.Float64bits(v))
		}
		return s
	case *Frame:
		return fmt.Sprint("frame ", *x)
	case *Event:
		return fmt.Sprintf("event %+v", *x)
	case *Entry:
		return same(map[Kind]any{TickEntry: &x.Tick, FrameEntry: &x.Frame, EventEntry: &x.Event}[x.Kind])
	}
	return ""
}

func texts(all written) (list []string) {
	for _, x := range all {
		if x != nil {
			list = append(list, same(x))
		}
	}
	return list
}

// readAll reads to the end.
func readAll(r *Reader) (list []string, err error) {
	for {
		e, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return list, err
		}
		list = append(list, same(e))
	}
}

// draw draws random items, valid ones and invalid ones.
func draw(t *rapid.T, m, p, phases int) (all written) {
	value := rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Inf(-1)), rapid.Just(math.Copysign(0, -1)),
		rapid.Map(rapid.Uint64(), math.Float64frombits))
	for range rapid.IntRange(0, 60).Draw(t, "records") {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			all = append(all, nil)
		case 1, 2:
			all = append(all, &Tick{Index: rapid.Int64().Draw(t, "index"), Flags: Flags(rapid.Uint16().Draw(t, "flags")),
				U: rapid.SliceOfN(value, m, m).Draw(t, "u"), Y: rapid.SliceOfN(value, p, p).Draw(t, "y"),
				Phases: rapid.SliceOfN(rapid.Int64(), phases, phases).Draw(t, "phases")})
		case 3:
			f := &Frame{Bus: rapid.Uint8().Draw(t, "bus"), Sent: rapid.Bool().Draw(t, "sent"), Lost: rapid.Bool().Draw(t, "lost"), Safe: rapid.Bool().Draw(t, "safe"),
				Withheld: rapid.Bool().Draw(t, "withheld"), Copy: rapid.Bool().Draw(t, "copy"), Hard: rapid.SampledFrom([]int64{0, 0, 1, -7, math.MaxInt64}).Draw(t, "hard"),
				Tick: rapid.Int64().Draw(t, "tick"), Time: rapid.Int64().Draw(t, "time"),
				Frame: can.Frame{ID: rapid.Uint32().Draw(t, "id"), Flags: rapid.Uint8().Draw(t, "flags")}}
			data := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "data")
			f.Len = uint8(copy(f.Data[:], data))
			all = append(all, f)
		case 4:
			all = append(all, &Event{Kind: EventKind(rapid.Uint8().Draw(t, "event")), Tick: rapid.Int64().Draw(t, "tick"),
				Time: rapid.Int64().Draw(t, "time"), Count: rapid.Uint64().Draw(t, "count"), Text: rapid.String().Draw(t, "text")})
		}
	}
	return all
}

func TestRecordIsReadBackBitForBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, p, phases := rapid.IntRange(0, 5).Draw(t, "m"), rapid.IntRange(0, 5).Draw(t, "p"), rapid.IntRange(0, 3).Draw(t, "phases")
		all := draw(t, m, p, phases)
		var b bytes.Buffer
		w, err := New(&b, header(m, p, phases))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			switch x := x.(type) {
			case *Tick:
				err = w.Tick(x)
			case *Frame:
				err = w.Frame(x)
			case *Event:
				err = w.Event(x)
			case nil:
				err = w.Flush()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader("r", bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readAll(r)
		if err != nil || r.Torn() != "" {
			t.Fatalf("%v, torn %q", err, r.Torn())
		}
		if want := texts(all); !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

// sample returns a small record with several chunks.
func sample(t testing.TB) (file []byte, all written) {
	for k := range int64(12) {
		v := float64(k)
		all = append(all, &Tick{Index: k, U: []float64{v / 3}, Y: []float64{math.Sin(v), math.NaN()}, Phases: []int64{k * 1000}},
			&Frame{Bus: 1, Other: k%3 == 1, Tick: k, Time: 1_700_000_000_123_456_789 + k*5e6, Frame: can.Frame{ID: 0x123, Len: 3, Data: [64]byte{1, 2, byte(k)}}})
		if k%4 == 3 {
			all = append(all, &Event{Kind: Fault, Tick: k, Text: "clutch1 stays closed"}, nil)
		}
	}
	return record(t, header(1, 2, 1), all), all
}

func TestHeaderIsReadBackUnchanged(t *testing.T) {
	h := header(2, 3, 1)
	h.Hashes = map[string]string{"matrices": "abc"}
	r, err := NewReader("r", bytes.NewReader(record(t, h, nil)))
	if err != nil {
		t.Fatal(err)
	}
	got := r.Header
	if got.Run == "" || string(got.Files[0].Text) != "period: 5 ms\n\xe4" || len(got.Files[0].SHA256) != 64 {
		t.Errorf("header %+v", got)
	}
	got.Run, got.HandoverSHA256, got.Files[0].SHA256, h.Files[0].SHA256 = "", "", "", ""
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", h) {
		t.Errorf("got  %+v\nwant %+v", got, h)
	}
}

// A second hand-over would take the place of ticks without a gap in the numbers of the chunks.
func TestSecondHandoverIsAnError(t *testing.T) {
	var b bytes.Buffer
	h := header(1, 2, 1)
	h.Handover = []byte("matrices")
	w, err := New(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	w.queueChunk(handoverChunk, h.Handover)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader("run.rec", bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(r); err == nil || !strings.Contains(err.Error(), "run.rec: byte ") || !strings.Contains(err.Error(), "chunk 2 of kind 4 where") {
		t.Errorf("a second hand-over: %v, want an error", err)
	}
}

func TestHandoverIsReadBackAndAnotherOneIsRefused(t *testing.T) {
	var file [2][]byte
	for i, text := range []string{"matrices", "other matrices"} {
		h := header(1, 1, 0)
		h.Run, h.Handover = "run", []byte(text)
		file[i] = record(t, h, nil)
		r, err := NewReader("r", bytes.NewReader(file[i]))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Handover(); err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
		if list, err := readAll(r); err != nil || len(list) != 0 || r.Torn() != "" {
			t.Errorf("entries %q, %v, torn %q", list, err, r.Torn())
		}
	}
	a, b := chunks(file[0]), chunks(file[1])
	for want, bad := range map[string][]byte{
		"r: the hand-over does not have the hash of the header": slices.Concat(file[0][:a[1]], file[1][b[1]:b[2]], file[0][a[2]:]),
		"r: the hand-over cannot be read: the CRC-32C":          flip(file[0], a[1]+headSize),
		"r: the hand-over is missing":                           slices.Concat(file[0][:a[1]], file[0][a[2]:]),
	} {
		r, err := NewReader("r", bytes.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Handover(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

func TestTickDoesNotAllocateWhenWritten(t *testing.T) {
	w, err := New(io.Discard, header(20, 80, 5))
	if err != nil {
		t.Fatal(err)
	}
	tick := Tick{U: make([]float64, 20), Y: make([]float64, 80), Phases: make([]int64, 5)}
	frame := Frame{Frame: can.Frame{ID: 1, Len: 8}}
	if err := w.Tick(&tick); err != nil {
		t.Fatal(err)
	}
	w.raw = slices.Grow(w.raw, 2*chunkFull)
	if n := testing.AllocsPerRun(100, func() { // less than a chunk
		tick.Index++
		for i := range tick.Y {
			tick.Y[i] = math.Sqrt(float64(tick.Index * int64(i)))
		}
		_ = w.Tick(&tick)
		_ = w.Frame(&frame)
	}); n != 0 {
		t.Errorf("%g allocations per tick and frame", n)
	}
}

func FuzzReader(f *testing.F) {
	file, _ := sample(f)
	f.Add(file)
	f.Add(file[:len(file)-3])
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := NewReader("r", bytes.NewReader(file))
		if err != nil {
			return
		}
		_, _ = readAll(r)
	})
}

// FuzzRecords decodes records without a checksum.
func FuzzRecords(f *testing.F) {
	h := header(1, 2, 1)
	c := newCodec(&h)
	tick := Tick{Index: 3, U: []float64{1}, Y: []float64{2, 3}, Phases: []int64{4}}
	b := c.append(nil, &Entry{Kind: TickEntry, Tick: tick})
	b = c.append(b, &Entry{Kind: FrameEntry, Frame: Frame{Frame: can.Frame{ID: 5, Len: 8}}})
	f.Add(c.append(b, &Entry{Kind: EventEntry, Event: Event{Text: "text"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newCodec(&h)
		e := Entry{Tick: Tick{U: make([]float64, 1), Y: make([]float64, 2), Phases: make([]int64, 1)}}
		var err error
		for len(b) > 0 && err == nil {
			before := len(b)
			if b, err = c.decode(&e, b); len(b) >= before {
				t.Fatal("a record of no bytes")
			}
		}
	})
}
