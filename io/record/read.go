package record

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// Reader reads a record from its beginning.
type Reader struct {
	Header Header

	name   string
	file   io.ReaderAt
	closer io.Closer // file to close; nil: the caller owns the file

	handover int64 // offset of the chunk after the header

	at      int64  // offset of the next chunk
	number  uint32 // expected number of the next chunk
	unpack  unpacker
	codec   codec
	pending []byte // unread records of the chunk
	entry   Entry
	ended   bool   // the end of the file is reached
	torn    string // description of what is missing at the end; "" if complete
}

// Open opens a record; the caller closes it.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r, err := NewReader(path, f)
	if err != nil {
		f.Close()
		return nil, err
	}

	r.closer = f
	return r, nil
}

// IsRecord reports whether a file that begins with head is a record, of any version.
func IsRecord(head []byte) bool { return bytes.HasPrefix(head, []byte(magic[:len(magic)-1])) }

// NewReader reads a record from memory or another source; name is for errors.
func NewReader(name string, from io.ReaderAt) (*Reader, error) {
	r := &Reader{name: name, file: from}
	var m [len(magic)]byte
	if n, err := r.file.ReadAt(m[:], 0); n < len(m) || string(m[:]) != magic {
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("record: %w", err)
		}
		if IsRecord(m[:]) {
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
	r.handover, r.at, r.number, r.codec = c.next, c.next, 1, newCodec(h)
	r.entry.Tick = Tick{
		U: make([]float64, len(h.Inputs)), Y: make([]float64, len(h.Outputs)), Phases: make([]int64, len(h.Phases)),
	}
	return r, nil
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
		r.endTorn("ends at byte %d without an end chunk: data after the writer's last flush is lost", r.at)
		return nil, nil
	case err != nil:
		return r.skipDamage(err), nil
	case c.number > r.number:
		return r.damageEvent(r.at, c.number, "they are missing"), nil
	case c.number < r.number || c.kind == headerChunk:
		return nil, fmt.Errorf("record: %s: byte %d: chunk %d of kind %d where chunk %d should be",
			r.name, r.at, c.number, c.kind, r.number)
	}

	r.at, r.number = c.next, r.number+1
	switch c.kind {
	case endChunk:
		r.ended = true
	case dataChunk:
		r.codec.reset()
		r.pending = c.payload
	}
	return nil, nil
}

// skipDamage skips to the next readable chunk and returns an event for the damage. If there
// is none, it ends the record.
func (r *Reader) skipDamage(why error) *Event {
	at, number := r.unpack.findNext(r.file, r.at+1)
	if at < 0 || number < r.number {
		r.endTorn("cut off at byte %d: %v", r.at, why)
		return nil
	}

	return r.damageEvent(at, number, why.Error())
}

// endTorn ends the record and stores the reason for Torn.
func (r *Reader) endTorn(format string, values ...any) {
	r.torn, r.ended = r.name+": "+fmt.Sprintf(format, values...), true
}

// damageEvent continues at an offset with chunk number and returns the event for the gap.
func (r *Reader) damageEvent(at int64, number uint32, why string) *Event {
	e := &Event{Kind: Damage, Tick: r.entry.Tick.Index, Count: uint64(number - r.number),
		Text: fmt.Sprintf("%s: bytes %d to %d, %d chunks: %s", r.name, r.at, at, number-r.number, why)}
	r.at, r.number = at, number
	return e
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
