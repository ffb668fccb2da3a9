package record

import (
	"bytes"
	"compress/flate"
	"errors"
	"strings"
	"testing"
)

// A chunk whose length is not one of its kind is not read, whatever its checksum says: a damaged or
// foreign file must not make the reader take any amount of memory.
func TestChunkBeyondItsLimitsIsNotRead(t *testing.T) {
	var p packer
	zeros := func(n int) []byte { return make([]byte, n) }
	raw := func(kind byte, n int) chunk { return chunk{kind: kind, stored: zeros(n), unpackedLen: n} }
	packed := func(kind byte, n, says int) chunk {
		c := p.pack(kind, zeros(n))
		c.stored, c.unpackedLen = bytes.Clone(c.stored), says
		return c
	}
	long := packed(headerChunk, maxHeader+1, maxHeader+1)
	handover := long
	handover.kind = handoverChunk
	for _, c := range []struct {
		name  string
		chunk chunk
		want  error
	}{
		{"empty", raw(dataChunk, 0), nil},
		{"as long as possible", raw(dataChunk, maxData), nil},
		{"one byte too long", raw(dataChunk, maxData+1), errHead},
		{"packed, as long as possible", packed(dataChunk, maxData, maxData), nil},
		{"packed, one byte too long", packed(dataChunk, maxData+1, maxData+1), errHead},
		{"packed, longer than it says", packed(dataChunk, 5000, 4999), errHead},
		{"packed, shorter than it says", packed(dataChunk, 5000, 5001), errHead},
		{"stored one byte too long, unpacked not", stored(t, maxData+1), errHead},
		{"stored as long as possible", stored(t, maxData), nil},
		{"an end as long as data", raw(endChunk, maxData+1), errHead},
		{"a header", raw(headerChunk, maxData+1), nil},
		{"packed, a header one byte too long", long, errHead},
		{"packed, a hand-over", handover, nil},
		{"kind 0", raw(0, 1), errHead},
		{"the kind after the last", raw(tablesChunk+1, 1), errHead},
		{"an unknown packing", chunk{kind: dataChunk, packing: 2, stored: zeros(9), unpackedLen: 9}, errHead},
	} {
		file := c.chunk.appendTo([]byte("before"), 7)
		var u unpacker
		f, err := u.read(bytes.NewReader(file), 6)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err == nil && (f.kind != c.chunk.kind || f.number != 7 || len(f.payload) != c.chunk.unpackedLen || f.next != int64(len(file))) {
			t.Errorf("%s: kind %d, number %d, %d bytes, next at %d of %d", c.name, f.kind, f.number, len(f.payload), f.next, len(file))
		}
	}
}

// stored returns a data chunk that deflating makes longer, of n bytes in the file.
func stored(t *testing.T, n int) chunk {
	t.Helper()
	deflated := func(payload int) []byte {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.NoCompression)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(make([]byte, payload))
		_ = w.Close()
		return b.Bytes()
	}
	payload := n - (len(deflated(n-1000)) - (n - 1000)) // the heads of the blocks
	b := deflated(payload)
	if len(b) != n {
		t.Fatalf("%d bytes deflate to %d, want %d", payload, len(b), n)
	}
	return chunk{kind: dataChunk, packing: 1, stored: b, unpackedLen: payload}
}

func TestHeaderTakesAsManyValuesAsFitIntoAChunk(t *testing.T) {
	for n, want := range map[int]bool{maxValues - 1: true, maxValues: true, maxValues + 1: false} {
		h := Header{Period: 1, Inputs: make([]Signal, n/3), Outputs: make([]Signal, n/3), Phases: make([]string, n-2*(n/3))}
		_, err := New(&bytes.Buffer{}, h)
		if (err == nil) != want {
			t.Errorf("%d values per tick: %v, want taken %t", n, err, want)
		}
	}
}

// The disk is full for so many records, and the event says from which tick on they are missing.
func TestLostRecordsAreReportedFromTheirTick(t *testing.T) {
	const first = 1000
	for _, lost := range []int64{1, 2, 30} {
		d := &disk{left: 1 << 20}
		w, err := New(d, header(1, 40, 0))
		if err != nil {
			t.Fatal(err)
		}
		d.left = 0
		refused := int64(-1)
		for k := int64(first); refused < 0 || k < refused+lost; k++ {
			err = write(w, k, k+1) // a tick and a frame
			if refused < 0 && w.lost.sum() > 0 {
				refused = k
			}
		}
		count := w.lost.sum()
		if err == nil || refused <= first {
			t.Fatalf("tick %d is refused: %v", refused, err)
		}
		d.left = 1 << 30
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader("r", bytes.NewReader(d.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		var events []Event
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			if e.Kind == EventEntry {
				events = append(events, e.Event)
			}
		}
		if len(events) != 1 || events[0].Kind != Lost || events[0].Tick != refused || events[0].Count != count || count < 2*uint64(lost)-1 {
			t.Errorf("%d ticks from %d on are lost: %d records; events %+v", lost, refused, count, events)
		}
	}
}

// A single record is lost: its kind and tick are in the event.
func TestOneLostRecordIsReportedAtItsTick(t *testing.T) {
	for _, c := range []struct {
		write func(w *Writer) error
		text  string
	}{
		{func(w *Writer) error { return w.Tick(&Tick{Index: 4711}) }, "1 ticks, 0 frames and 0 events"},
		{func(w *Writer) error { return w.Frame(&Frame{Tick: 4711}) }, "0 ticks, 1 frames and 0 events"},
		{func(w *Writer) error { return w.Event(&Event{Tick: 4711}) }, "0 ticks, 0 frames and 1 events"},
	} {
		d := &disk{left: 1 << 20}
		w, err := New(d, header(0, 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		d.left = 0
		for len(w.raw) < chunkFull || w.err == nil { // one chunk waits for the disk, and the next is full
			_ = w.Event(&Event{Tick: 1, Text: strings.Repeat("x", 100)})
		}
		if err := c.write(w); err == nil || w.lost.sum() != 1 {
			t.Fatalf("%v, %d records lost; want one", err, w.lost.sum())
		}
		d.left = 1 << 30
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader("r", bytes.NewReader(d.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		last := Event{}
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			last = e.Event
		}
		if last.Kind != Lost || last.Tick != 4711 || last.Count != 1 || !strings.HasPrefix(last.Text, c.text) {
			t.Errorf("%+v, want one record lost at tick 4711: %s", last, c.text)
		}
	}
}
