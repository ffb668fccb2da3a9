package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"lockstep/io/can"
)

// Writer writes a record. It is not safe for concurrent use.
//
// When a write fails, for example on a full disk, Tick, Frame, Event and Flush return the
// error and the run continues: the writer holds two chunks, counts further records without
// writing them, and later calls try again. After a gap the first record written is an event
// Lost with the number of missing records.
type Writer struct {
	header Header
	out    io.Writer
	file   *os.File // out, if Create opened it

	codec  codec
	packer packer
	raw    []byte // records of the current chunk
	queue  []byte // bytes not yet written to the file
	number uint32 // number of the next chunk

	lost   lossCounts
	wait   int   // calls until the next attempt to write
	err    error // error of the last attempt
	closed bool
}

// lossCounts counts the records not written.
type lossCounts struct {
	n    [EventEntry + 1]uint64 // records by Kind
	tick int64                  // tick of the first record
	why  error                  // cause
}

func (l *lossCounts) sum() uint64 { return l.n[TickEntry] + l.n[FrameEntry] + l.n[EventEntry] }

// retryAfter is the number of records refused between two attempts to write.
const retryAfter = 64

var errClosed = errors.New("record: the writer is closed")

// Create starts a record in a file and overwrites the file.
func Create(path string, h Header) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	syncFolder(filepath.Dir(path))
	w, err := New(f, h)
	if err != nil {
		if !isDevice(f) {
			os.Remove(path)
		}
		f.Close()
		return nil, err
	}

	w.file = f
	return w, nil
}

// syncFolder makes new names in a folder survive a loss of power. Errors are ignored: file
// systems without fsync of folders do this by themselves.
func syncFolder(folder string) {
	if d, err := os.Open(folder); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// isDevice reports whether f is not a regular file but, for example, a pipe, which cannot be synced.
func isDevice(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && !info.Mode().IsRegular()
}

// New starts a record on out, which may be a pipe.
func New(out io.Writer, h Header) (*Writer, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	if h.Run == "" {
		h.Run = strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.Itoa(os.Getpid())
	}
	payload, err := h.encode()
	if err != nil {
		return nil, err
	}
	w := &Writer{header: h, out: out, codec: newCodec(&h), queue: []byte(magic)}
	w.queueChunk(headerChunk, payload)
	w.queueChunk(handoverChunk, h.Handover)
	if err := w.writeQueue(); err != nil {
		return nil, err
	}
	return w, nil
}

// queueChunk packs a payload and appends the chunk to the queue.
func (w *Writer) queueChunk(kind byte, payload []byte) {
	c := w.packer.pack(kind, payload)
	w.queue = c.appendTo(w.queue, w.number)
	w.number++
}

// Tick writes one tick; its slices have the lengths given in the header.
func (w *Writer) Tick(t *Tick) error {
	if len(t.U) != len(w.header.Inputs) || len(t.Y) != len(w.header.Outputs) || len(t.Phases) != len(w.header.Phases) {
		panic("record: a tick of another size than the header's")
	}
	return w.write(&Entry{Kind: TickEntry, Tick: *t}, t.Index)
}

// Frame writes one frame.
func (w *Writer) Frame(f *Frame) error {
	if f.Len > uint8(len(f.Data)) {
		return fmt.Errorf("record: frame %s of %d bytes, at most %d are possible", can.FormatID(f.ID), f.Len, len(f.Data))
	}
	return w.write(&Entry{Kind: FrameEntry, Frame: *f}, f.Tick)
}

// Event writes one event.
func (w *Writer) Event(e *Event) error { return w.write(&Entry{Kind: EventEntry, Event: *e}, e.Tick) }

// Tables writes prepared data of the run, which replaces that before it for the events that follow. The
// payload may change afterwards.
func (w *Writer) Tables(payload []byte) error {
	if w.closed {
		return errClosed
	}
	if err := w.sealChunk(); err != nil {
		return err
	}
	w.queueChunk(tablesChunk, payload)
	w.err = w.writeQueue()
	return w.err
}

// Lost writes an event: n records, from a tick on, did not reach the writer because of why.
func (w *Writer) Lost(tick int64, n uint64, why string) error {
	return w.Event(&Event{Kind: Lost, Tick: tick, Count: n, Text: why})
}

// write writes an entry of a tick, or counts it as lost if there is no room.
func (w *Writer) write(e *Entry, tick int64) error {
	ok, err := w.reserve()
	if ok {
		w.raw = w.codec.append(w.raw, e)
		return err
	}

	if w.lost.sum() == 0 {
		w.lost.tick = tick
	}
	if w.lost.why = errors.Unwrap(err); w.lost.why == nil {
		w.lost.why = err
	}
	w.lost.n[e.Kind]++
	return err
}

// reserve makes room for one more record; ok is false if there is none.
func (w *Writer) reserve() (ok bool, err error) {
	switch {
	case w.closed:
		return false, errClosed
	case len(w.raw) < chunkFull && w.err == nil:
		return true, nil
	case w.wait > 0:
		w.wait--
		return len(w.raw) < chunkFull, w.err
	}

	err = w.sealChunk()
	return len(w.raw) < chunkFull, err
}

// appendLost appends the event that marks a gap.
func (w *Writer) appendLost() {
	l := &w.lost
	text := fmt.Sprintf("%d ticks, %d frames and %d events were not written: %v",
		l.n[TickEntry], l.n[FrameEntry], l.n[EventEntry], l.why)
	lost := Event{Kind: Lost, Tick: l.tick, Count: l.sum(), Text: text}
	w.raw = w.codec.append(w.raw, &Entry{Kind: EventEntry, Event: lost})
	w.lost = lossCounts{}
}

// sealChunk ends the current chunk, unless an older one still waits, and writes the queue.
func (w *Writer) sealChunk() error {
	w.err = w.writeQueue()
	if w.err == nil && len(w.raw) > 0 {
		w.queueChunk(dataChunk, w.raw)
		w.raw = w.raw[:0]
		w.codec.reset()
		if w.lost.sum() > 0 {
			w.appendLost()
		}
		w.err = w.writeQueue()
	}

	w.wait = 0
	if w.err != nil {
		w.wait = retryAfter
	}
	return w.err
}

// writeQueue writes the queue to the file. Bytes that were not written stay queued: until
// they follow, the file ends within a chunk, which a reader leaves out.
func (w *Writer) writeQueue() error {
	if len(w.queue) == 0 {
		return nil
	}
	n, err := w.out.Write(w.queue)
	w.queue = w.queue[:copy(w.queue, w.queue[n:])]
	if err == nil && len(w.queue) > 0 {
		err = io.ErrShortWrite
	}
	return wrapError(err)
}

// Flush passes all data to the kernel, where it survives the end of this process.
func (w *Writer) Flush() error {
	if w.closed {
		return errClosed
	}
	if err := w.sealChunk(); err != nil || len(w.raw) == 0 {
		return err
	}
	return w.sealChunk() // the event Lost of the first call
}

// Sync is Flush and waits until all data is on the disk, where it survives a loss of power.
func (w *Writer) Sync() error {
	if err := w.Flush(); err != nil {
		return err
	}
	return w.sync()
}

// sync waits until the kernel has written the file to the disk.
func (w *Writer) sync() error {
	if w.file == nil || isDevice(w.file) {
		return nil
	}
	return wrapError(w.file.Sync())
}

// Close writes the remaining data and the end chunk. A second Close returns an error.
func (w *Writer) Close() error {
	if w.closed {
		return errClosed
	}
	err := w.Flush()
	w.closed = true
	if err == nil {
		w.queueChunk(endChunk, []byte{0})
		err = w.writeQueue()
	}

	if w.file != nil {
		if err == nil {
			err = w.sync()
		}
		err = errors.Join(err, wrapError(w.file.Close()))
	}

	return err
}
