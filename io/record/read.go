package record

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"

	"lockstep/io/inputfile"
)

// Reader reads a record from its beginning.
type Reader struct {
	Header   Header
	Progress func(read, size int64) // called with the bytes read, of size, once per chunk; nil: not called

	name   string
	file   io.ReaderAt
	closer io.Closer // file to close; nil: the caller owns the file
	size   int64     // of the file when it was opened, bytes; 0: not known

	handover int64 // offset of the chunk after the header
	tables   int64 // offset of the last chunk of tables; 0: none yet

	at       int64  // offset of the next chunk
	number   uint32 // expected number of the next chunk
	unpack   unpacker
	codec    codec
	pending  []byte // unread records of the chunk
	entry    Entry
	first    bool   // no tick was read yet
	dataLost bool   // the last damage may have held ticks, frames or events
	ended    bool   // the end of the file is reached
	torn     string // description of what is missing at the end; "" if complete
}

// Open opens a record; the caller closes it.
func Open(path string) (*Reader, error) {
	f, err := inputfile.Open(path, inputfile.Record)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r, err := NewReader(path, f)
	if err != nil {
		f.Close()
		return nil, err
	}

	r.closer = f
	r.size = f.Size()
	return r, nil
}

// IsRecord reports whether a file that begins with head is a record, of any version.
func IsRecord(head []byte) bool { return bytes.HasPrefix(head, []byte(magic[:len(magic)-1])) }

// NewReader reads a record from memory or another source; name is for errors.
func NewReader(name string, from io.ReaderAt) (*Reader, error) {
	r := &Reader{name: name, file: from}
	var m [len(magic)]byte
	if n, err := r.file.ReadAt(m[:], 0); n < len(m) || string(m[:]) != magic {
		switch {
		case err != nil && err != io.EOF:
			return nil, fmt.Errorf("record: %w", err)
		case n == 0:
			return nil, fmt.Errorf("record: %s: the file is empty: its run ended before it wrote the header", r.name)
		case n < len(m) && bytes.HasPrefix([]byte(magic), m[:n]):
			return nil, fmt.Errorf("record: %s: the header cannot be read: the file ends at byte %d", r.name, n)
		case IsRecord(m[:]):
			return nil, fmt.Errorf("record: %s: the record has version %q, this program reads %q only: make the record anew",
				r.name, m, magic)
		}
		return nil, fmt.Errorf("record: %s: not a record: it does not begin with %q", r.name, magic)
	}

	c, err := r.unpack.read(r.file, int64(len(magic)))
	if err == nil && c.kind != headerChunk {
		err = errHead
	}
	if err == nil {
		r.Header, err = decodeHeader(c.payload)
	}
	if err != nil {
		return nil, fmt.Errorf("record: %s: the header cannot be read: %w", r.name, err)
	}
	h := &r.Header
	r.handover, r.at, r.number, r.codec, r.first = c.next, c.next, 1, newCodec(h), true
	r.entry = newEntry(h)
	return r, nil
}

// newEntry returns an entry with room for a tick.
func newEntry(h *Header) Entry {
	return Entry{Tick: Tick{
		U: make([]float64, len(h.Inputs)), Y: make([]float64, len(h.Outputs)), Phases: make([]int64, len(h.Phases)),
	}}
}

// Handover reads the hand-over of the run. Call it before the first call of Next. The error names a
// hand-over that is damaged, or that is not the one of the header. The slice is valid until Next.
func (r *Reader) Handover() ([]byte, error) {
	c, err := r.unpack.read(r.file, r.handover)
	switch {
	case err != nil:
		return nil, fmt.Errorf("record: %s: the hand-over cannot be read: %w", r.name, err)
	case c.kind != handoverChunk:
		return nil, fmt.Errorf("record: %s: the hand-over is missing", r.name)
	case fmt.Sprintf("%x", sha256.Sum256(c.payload)) != r.Header.HandoverSHA256:
		return nil, fmt.Errorf("record: %s: the hand-over does not have the hash of the header: the file was changed", r.name)
	}
	return c.payload, nil
}

// Tables reads the prepared data that Writer.Tables has written last before the present entry.
func (r *Reader) Tables() ([]byte, error) {
	if r.tables == 0 {
		return nil, fmt.Errorf("record: %s: the tables of a change are missing", r.name)
	}
	c, err := new(unpacker).read(r.file, r.tables)
	if err != nil {
		return nil, fmt.Errorf("record: %s: the tables of a change cannot be read: %w", r.name, err)
	}
	return c.payload, nil
}

// Next reads the next entry, which is valid until the next call. At the end of the record
// the error is io.EOF. Damage is returned as an entry, not as an error.
func (r *Reader) Next() (*Entry, error) {
	for len(r.pending) == 0 {
		lost, err := r.nextChunk()
		if err != nil {
			return nil, err
		}
		if lost != nil {
			r.entry.Kind, r.entry.Event = EventEntry, *lost
			return &r.entry, nil
		}
	}

	rest, err := r.codec.decode(&r.entry, r.pending)
	if err != nil {
		return nil, fmt.Errorf("record: %s: before byte %d: %w", r.name, r.at, err)
	}
	r.pending = rest
	r.first = r.first && r.entry.Kind != TickEntry
	return &r.entry, nil
}

// nextChunk reads the next data chunk, or returns an event for chunks that it had to skip.
func (r *Reader) nextChunk() (lost *Event, err error) {
	if r.ended {
		return nil, io.EOF
	}
	c, err := r.unpack.read(r.file, r.at)
	switch {
	case err == errEnd:
		r.endTorn("ends at byte %d%s, without an end chunk: data after the writer's last flush is lost", r.at, r.afterTick())
		return nil, nil
	case err != nil:
		return r.skipDamage(err), nil
	case c.number > r.number:
		return r.damageEvent(r.at, &c, "they are missing"), nil
	case c.number < r.number || c.kind == headerChunk || c.kind == handoverChunk && c.number != handoverNumber:
		return nil, fmt.Errorf("record: %s: byte %d: chunk %d of kind %d where chunk %d should be",
			r.name, r.at, c.number, c.kind, r.number)
	}

	if c.kind == tablesChunk {
		r.tables = r.at
	}
	r.at, r.number = c.next, r.number+1
	if r.Progress != nil {
		r.Progress(min(r.at, r.size), r.size)
	}
	switch c.kind {
	case endChunk:
		r.ended = true
		if n, _ := r.file.ReadAt(make([]byte, 1), r.at); n > 0 {
			r.torn = fmt.Sprintf("%s: the record ends at byte %d%s, but the file goes on: the rest is not read",
				r.name, r.at, r.afterTick())
		}
	case dataChunk:
		r.codec.reset()
		r.pending = c.payload
	}
	return nil, nil
}

// skipDamage skips to the next readable chunk and returns an event for the damage. If there
// is none, it ends the record.
func (r *Reader) skipDamage(why error) *Event {
	at, c := r.unpack.findNext(r.file, r.at+1)
	if at < 0 || c.number < r.number {
		r.endTorn("cut off at byte %d%s: %v", r.at, r.afterTick(), why)
		return nil
	}

	return r.damageEvent(at, &c, why.Error())
}

// endTorn ends the record and stores the reason for Torn.
func (r *Reader) endTorn(format string, values ...any) {
	r.torn, r.ended = r.name+": "+fmt.Sprintf(format, values...), true
}

// damageEvent returns the event for the gap before chunk next at an offset, and continues there.
func (r *Reader) damageEvent(at int64, next *foundChunk, why string) *Event {
	lost := next.number - r.number
	e := &Event{Kind: Damage, Tick: r.entry.Tick.Index, Count: uint64(lost)}
	e.Text = fmt.Sprintf("%s: bytes %d to %d, %d chunks: %s", r.describeGap(e, next), r.at, at, lost, why)
	r.at, r.number = at, next.number
	return e
}

// describeGap describes what is missing before chunk next, and sets the tick of e to the first tick
// missing.
func (r *Reader) describeGap(e *Event, next *foundChunk) string {
	h, last := &r.Header, r.entry.Tick.Index
	to, found := r.firstTick(next)
	r.dataLost = r.number != handoverNumber || next.number != r.number+1
	switch {
	case !r.dataLost:
		return "the hand-over, which only a replay needs, cannot be read; no tick, frame or event is missing"
	case next.kind == endChunk && r.first:
		return "all ticks, frames and events are missing"
	case next.kind == endChunk:
		e.Tick = last + 1
		return fmt.Sprintf("what followed tick %d (%s) is missing, up to the end", last, h.seconds(last))
	case r.first && found:
		return fmt.Sprintf("what preceded tick %d (%s) is missing", to, h.seconds(to))
	case r.first:
		return "the beginning is missing"
	case found && to > last+1:
		e.Tick = last + 1
		return h.missingTicks(last+1, to-1) + ", with the frames and events of this time"
	case found:
		return fmt.Sprintf("frames or events between tick %d (%s) and tick %d (%s) are missing, but no tick",
			last, h.seconds(last), to, h.seconds(to))
	}

	e.Tick = last + 1
	return fmt.Sprintf("what followed tick %d (%s) is missing", last, h.seconds(last))
}

// firstTick returns the index of the first tick in a chunk; false if it has no tick.
func (r *Reader) firstTick(c *foundChunk) (index int64, found bool) {
	if c.kind != dataChunk {
		return 0, false
	}
	h := &r.Header
	e, code := newEntry(h), newCodec(h)
	for rest := c.payload; len(rest) > 0; {
		var err error
		if rest, err = code.decode(&e, rest); err != nil {
			return 0, false
		}
		if e.Kind == TickEntry {
			return e.Tick.Index, true
		}
	}

	return 0, false
}

// afterTick describes the last tick read, for an error about what follows it.
func (r *Reader) afterTick() string {
	if r.first {
		return ", before the first tick"
	}
	return fmt.Sprintf(", after tick %d (%s)", r.entry.Tick.Index, r.Header.seconds(r.entry.Tick.Index))
}

// Torn describes what is missing at the end of the record; "" if nothing is missing.
func (r *Reader) Torn() string { return r.torn }

// Close closes the file.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	err := r.closer.Close()
	r.closer = nil
	return wrapError(err)
}

// wrapError prefixes an error of the host with the name of this package.
func wrapError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("record: %w", err)
}
