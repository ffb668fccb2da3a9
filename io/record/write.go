package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// Options say how much disk a record may take.
type Options struct {
	MaxBytes int64 // of one file; 0: the record is one file without a limit
	Keep     int   // files of a series to keep, the older ones are deleted; 0: all
}

// Writer writes a record. It is not safe for concurrent use.
//
// When the disk takes no more, Tick, Frame, Event and Flush return the error and the
// run goes on: two chunks are held, what does not fit is counted and not written, and
// later calls try again. The first record that is taken then comes after an event Lost
// that tells how many are missing.
type Writer struct {
	header Header
	series *series // nil: there is one writer and it is not ours
	out    io.Writer

	codec  codec
	packer packer
	raw    []byte // records of the chunk that is being filled
	sealed chunk  // a chunk that waits for its place in a file; stored is nil if none does
	queue  []byte // what the file has not taken yet of its next bytes
	ending bool   // the end chunk is in the queue: after it comes the next file
	number uint32 // of the next chunk of the file
	size   int64  // bytes of the file, with the queue
	first  int64  // bytes of its magic and header

	lost   losses
	wait   int   // calls until the next attempt
	err    error // why the last attempt failed
	closed bool
}

// losses are records that were not taken.
type losses struct {
	ticks, frames, events uint64
	tick                  int64 // of the first
	why                   error
}

func (l *losses) sum() uint64 { return l.ticks + l.frames + l.events }

// patience is how many records are turned away between two attempts to write.
const patience = 64

var errClosed = errors.New("record: the writer is closed")

// Create starts a record in a file, which is overwritten, or with o.MaxBytes in a
// series of files: of run.rec these are run.000001.rec and so on. A series never
// overwrites: it counts on from the files that are there, and deletes the oldest of
// them when there are more than o.Keep.
func Create(path string, h Header, o Options) (*Writer, error) {
	if o.MaxBytes < 0 || o.Keep < 0 {
		return nil, fmt.Errorf("record: %s: limits of %d bytes and %d files", path, o.MaxBytes, o.Keep)
	}
	s, err := newSeries(path, o)
	if err != nil {
		return nil, err
	}
	w := &Writer{header: h, series: s}
	if err := w.start(); err != nil {
		s.abandon()
		return nil, err
	}
	return w, nil
}

// New starts a record on w, which may be a pipe.
func New(out io.Writer, h Header) (*Writer, error) {
	w := &Writer{header: h, out: out}
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, nil
}

// start writes the beginning of the first file.
func (w *Writer) start() error {
	if err := w.header.validate(); err != nil {
		return err
	}
	if w.header.Run == "" {
		w.header.Run = strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.Itoa(os.Getpid())
	}
	w.header.Part = 0
	w.codec = newCodec(&w.header)
	if err := w.open(); err != nil {
		return err
	}
	return w.drain()
}

// open begins the next file: its magic and header are the queue.
func (w *Writer) open() error {
	w.header.Part++
	payload, err := w.header.encode()
	if err == nil && w.series != nil {
		w.out, err = w.series.next()
	}
	if err != nil {
		w.header.Part--
		return err
	}
	w.queue = append(w.queue[:0], magic...)
	w.number = 0
	var p packer // that of the writer may hold a chunk that waits
	c := p.pack(headerChunk, payload)
	w.place(&c)
	w.size = int64(len(w.queue))
	w.first = w.size
	return nil
}

// place appends a chunk to the queue.
func (w *Writer) place(c *chunk) {
	at := len(w.queue)
	w.queue = c.appendTo(w.queue, w.number)
	w.number++
	w.size += int64(len(w.queue) - at)
}

// Tick writes one tick; the slices have the lengths that the header says.
func (w *Writer) Tick(t *Tick) error {
	if len(t.U) != len(w.header.Inputs) || len(t.Y) != len(w.header.Outputs) || len(t.Phases) != len(w.header.Phases) {
		panic("record: a tick of another size than the header's")
	}
	ok, err := w.room()
	if !ok {
		w.lose(&w.lost.ticks, t.Index, err)
		return err
	}
	w.raw = w.codec.appendTick(w.raw, t)
	return err
}

// Frame writes one frame.
func (w *Writer) Frame(f *Frame) error {
	if f.Len > uint8(len(f.Data)) {
		return fmt.Errorf("record: frame %X of %d bytes, at most %d are possible", f.ID, f.Len, len(f.Data))
	}
	ok, err := w.room()
	if !ok {
		w.lose(&w.lost.frames, f.Tick, err)
		return err
	}
	w.raw = w.codec.appendFrame(w.raw, f)
	return err
}

// Event writes one event.
func (w *Writer) Event(e *Event) error {
	ok, err := w.room()
	if !ok {
		w.lose(&w.lost.events, e.Tick, err)
		return err
	}
	w.raw = w.codec.appendEvent(w.raw, e)
	return err
}

// Lost says that n records, from a tick on, never reached the writer, and why.
func (w *Writer) Lost(tick int64, n uint64, why string) error {
	return w.Event(&Event{Kind: Lost, Tick: tick, Count: n, Text: why})
}

// lose counts a record that was not taken.
func (w *Writer) lose(n *uint64, tick int64, why error) {
	if w.lost.sum() == 0 {
		w.lost.tick = tick
	}
	if w.lost.why = errors.Unwrap(why); w.lost.why == nil {
		w.lost.why = why
	}
	*n++
}

// room makes room for one more record; ok says that there is some.
func (w *Writer) room() (ok bool, err error) {
	switch {
	case w.closed:
		return false, errClosed
	case len(w.raw) < fill && w.err == nil:
		return true, nil
	case w.wait > 0:
		w.wait--
		return len(w.raw) < fill, w.err
	}
	err = w.seal()
	return len(w.raw) < fill, err
}

// confess writes the event that marks a gap.
func (w *Writer) confess() {
	l := &w.lost
	w.raw = w.codec.appendEvent(w.raw, &Event{Kind: Lost, Tick: l.tick, Count: l.sum(),
		Text: fmt.Sprintf("%d ticks, %d frames and %d events were not written: %v", l.ticks, l.frames, l.events, l.why)})
	w.lost = losses{}
}

// seal ends the chunk that is being filled, unless one waits already, and writes what
// can be written.
func (w *Writer) seal() error {
	w.err = w.advance()
	if w.err == nil && len(w.raw) > 0 {
		w.sealed = w.packer.pack(dataChunk, w.raw)
		w.raw = w.raw[:0]
		w.codec.reset()
		if w.lost.sum() > 0 {
			w.confess()
		}
		w.err = w.advance()
	}
	w.wait = 0
	if w.err != nil {
		w.wait = patience
	}
	return w.err
}

// advance writes the queue, then the sealed chunk, where its file is full into the
// next one.
func (w *Writer) advance() error {
	for {
		if err := w.drain(); err != nil {
			return err
		}
		switch {
		case w.ending:
			if err := w.turn(); err != nil {
				return err
			}
		case w.sealed.stored == nil:
			return nil
		case w.full():
			w.end(true)
		default:
			w.place(&w.sealed)
			w.sealed = chunk{}
		}
	}
}

// full says that the sealed chunk goes into the next file: every file takes one.
func (w *Writer) full() bool {
	if w.series == nil || w.series.o.MaxBytes == 0 || w.size == w.first {
		return false
	}
	const end = headSize + 1
	return w.size+headSize+int64(len(w.sealed.stored))+end > w.series.o.MaxBytes
}

// end puts the end chunk of the file into the queue.
func (w *Writer) end(more bool) {
	payload := []byte{0}
	if more {
		payload[0] = 1
	}
	w.place(&chunk{kind: endChunk, stored: payload, full: len(payload)})
	w.ending = more
}

// turn goes on to the next file.
func (w *Writer) turn() error {
	if err := w.open(); err != nil {
		return err
	}
	w.ending = false
	return nil
}

// drain hands the queue to the file. What is refused stays, from the byte on at which
// it was: the file then ends within a chunk, which a reader leaves out.
func (w *Writer) drain() error {
	if len(w.queue) == 0 {
		return nil
	}
	n, err := w.out.Write(w.queue)
	w.queue = w.queue[:copy(w.queue, w.queue[n:])]
	if err == nil && len(w.queue) > 0 {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// Flush hands everything to the kernel: it survives the end of this process.
func (w *Writer) Flush() error {
	if w.closed {
		return errClosed
	}
	if err := w.seal(); err != nil || len(w.raw) == 0 {
		return err
	}
	return w.seal() // what the first one had to say of losses
}

// Sync is Flush and waits until everything is on the disk: it survives a loss of
// power.
func (w *Writer) Sync() error {
	if err := w.Flush(); err != nil {
		return err
	}
	if f, ok := w.out.(*os.File); ok && !device(f) {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	return nil
}

// Close writes what is left and the end. A second Close is an error.
func (w *Writer) Close() error {
	if w.closed {
		return errClosed
	}
	err := w.Flush()
	w.closed = true
	if err == nil {
		w.end(false)
		err = w.drain()
	}
	if w.series != nil {
		err = errors.Join(err, w.series.close(err == nil), w.series.trouble)
	}
	return err
}
