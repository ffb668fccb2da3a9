package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Reader reads a record from its beginning, file by file.
type Reader struct {
	Header Header // of the first file

	name   string
	file   io.ReaderAt
	closer io.Closer // nil: the file is not ours
	rest   []string  // the files after this one

	at     int64  // offset of the next chunk
	number uint32 // that it should have
	unpack unpacker
	codec  codec
	left   []byte // records of the chunk that are not read yet
	entry  Entry
	part   int  // Header.Part of this file
	series bool // the files are a series that Create made
	ended  bool // there is nothing more in this file
	more   bool // its end says that the run goes on
	torn   []Tear
}

// Why a record is torn; see Tear.
var (
	ErrUnended     = errors.New("the writer's end is missing")
	ErrCut         = errors.New("nothing can be read from some byte on")
	ErrFileMissing = errors.New("the run goes on in a file that is missing")
)

// Tear says where the end of a record, or of one of its files, is missing.
type Tear struct {
	File string
	At   int64 // first byte that is missing
	Err  error // one of the errors above

	text string
}

func (t Tear) String() string { return t.File + ": " + t.text }

// Open opens a record: the file at path or, if there is none, the last run of the
// series that Create writes under this name. Close it.
func Open(path string) (*Reader, error) {
	files := []string{path}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if files, err = run(path); err != nil {
			return nil, err
		}
	}
	r := &Reader{}
	if err := r.open(files[0]); err != nil {
		return nil, err
	}
	r.rest, r.series = files[1:], files[0] != path
	return r, nil
}

// NewReader reads the one file of a record from memory or from anywhere else; name is
// for messages.
func NewReader(name string, from io.ReaderAt) (*Reader, error) {
	r := &Reader{name: name, file: from}
	h, err := r.begin()
	if err != nil {
		return nil, err
	}
	r.adopt(h)
	return r, nil
}

// run lists the files of the last run in a series.
func run(path string) (files []string, err error) {
	numbers, err := parts(path)
	if err != nil {
		return nil, err
	}
	var first string
	for i := len(numbers) - 1; i >= 0; i-- {
		name := part(path, numbers[i])
		h, err := headerOf(name)
		if err != nil { // the files before it are a run of their own
			if len(files) > 0 {
				break
			}
			if i > 0 { // the newest has no header yet
				continue
			}
			return nil, err
		}
		if len(files) > 0 && h.Run != first {
			break
		}
		first = h.Run
		files = append([]string{name}, files...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("record: open %s: %w", path, os.ErrNotExist)
	}
	return files, nil
}

// headerOf reads the header of one file.
func headerOf(path string) (Header, error) {
	r := &Reader{}
	if err := r.open(path); err != nil {
		return Header{}, err
	}
	defer r.Close()
	return r.Header, nil
}

// open opens a file and reads its header.
func (r *Reader) open(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	r.name, r.file, r.closer = path, f, f
	h, err := r.begin()
	if err != nil {
		f.Close()
		r.closer = nil
		return err
	}
	if r.Header.Period == 0 {
		r.adopt(h)
		return nil
	}
	if h.Run != r.Header.Run || len(h.Inputs) != len(r.Header.Inputs) ||
		len(h.Outputs) != len(r.Header.Outputs) || len(h.Phases) != len(r.Header.Phases) {
		return fmt.Errorf("record: %s: belongs to another run than the file before it", path)
	}
	return nil
}

// adopt takes the header of the first file.
func (r *Reader) adopt(h Header) {
	r.Header = h
	r.codec = newCodec(&h)
	r.entry.Tick.U = make([]float64, len(h.Inputs))
	r.entry.Tick.Y = make([]float64, len(h.Outputs))
	r.entry.Tick.Phases = make([]int64, len(h.Phases))
}

// begin reads magic and header of a file.
func (r *Reader) begin() (h Header, err error) {
	var m [len(magic)]byte
	if n, err := r.file.ReadAt(m[:], 0); n < len(m) || !slices.Contains(forms, string(m[:])) {
		if err != nil && err != io.EOF {
			return h, fmt.Errorf("record: %w", err)
		}
		if string(m[:len(magic)-1]) == magic[:len(magic)-1] {
			return h, fmt.Errorf("record: %s: form %q of a record, this program reads %q", r.name, m, forms)
		}
		return h, fmt.Errorf("record: %s: no record: it does not begin with %q", r.name, magic)
	}
	c, err := r.unpack.read(r.file, int64(len(magic)))
	if err == nil && c.kind != headerChunk {
		err = errHead
	}
	if err == nil {
		h, err = decodeHeader(c.payload)
	}
	if err != nil {
		return h, fmt.Errorf("record: %s: the header cannot be read: %w", r.name, err)
	}
	r.at, r.number, r.part, r.ended, r.more = c.next, 1, h.Part, false, false
	return h, nil
}

// Next reads the next entry; it is valid until the next call. At the end of the record
// the error is io.EOF. Damage is an entry, not an error.
func (r *Reader) Next() (*Entry, error) {
	for len(r.left) == 0 {
		lost, err := r.chunk()
		if err != nil {
			return nil, err
		}
		if lost != nil {
			r.entry.Kind, r.entry.Event = EventEntry, *lost
			return &r.entry, nil
		}
	}
	rest, err := r.codec.decode(&r.entry, r.left)
	if err != nil {
		return nil, fmt.Errorf("record: %s: before byte %d: %w", r.name, r.at, err)
	}
	r.left = rest
	return &r.entry, nil
}

// chunk goes to the next data chunk; or it returns what it had to leave out before it.
func (r *Reader) chunk() (lost *Event, err error) {
	if r.ended {
		return r.turn()
	}
	c, err := r.unpack.read(r.file, r.at)
	switch {
	case err == errEnd:
		r.tear(ErrUnended, "ends at byte %d without the writer's end: what came after its last flush is lost", r.at)
		return nil, nil
	case err != nil:
		return r.skip(err), nil
	case c.number > r.number:
		return r.damage(r.at, c.number, "they are missing"), nil
	case c.number < r.number || c.kind == headerChunk:
		return nil, fmt.Errorf("record: %s: byte %d: chunk %d of kind %d where chunk %d should be", r.name, r.at, c.number, c.kind, r.number)
	}
	r.at, r.number = c.next, r.number+1
	if c.kind == endChunk {
		r.ended = true
		r.more = len(c.payload) > 0 && c.payload[0] == 1
		return nil, nil
	}
	r.codec.reset()
	r.left = c.payload
	return nil, nil
}

// skip goes to the next chunk that can be read. If there is one, the damage lies
// within the file and is an event; else the rest of the file is cut off.
func (r *Reader) skip(why error) *Event {
	at, number := r.unpack.search(r.file, r.at+1)
	if at < 0 || number < r.number {
		r.tear(ErrCut, "cut off at byte %d: %v", r.at, why)
		return nil
	}
	return r.damage(at, number, why.Error())
}

// tear ends the file where it is and keeps why for Tears.
func (r *Reader) tear(why error, format string, values ...any) {
	r.torn = append(r.torn, Tear{File: r.name, At: r.at, Err: why, text: fmt.Sprintf(format, values...)})
	r.ended = true
}

// damage goes on at an offset, with the chunk of that number.
func (r *Reader) damage(at int64, number uint32, why string) *Event {
	e := &Event{Kind: Damage, Tick: r.entry.Tick.Index, Count: uint64(number - r.number),
		Text: fmt.Sprintf("%s: bytes %d to %d, %d chunks: %s", r.name, r.at, at, number-r.number, why)}
	r.at, r.number = at, number
	return e
}

// turn goes to the next file of the run.
func (r *Reader) turn() (lost *Event, err error) {
	if len(r.rest) == 0 {
		if r.more && r.series {
			r.tear(ErrFileMissing, "the run goes on in a file that is missing")
		}
		r.more = false
		return nil, io.EOF
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	path, before := r.rest[0], r.part
	r.rest = r.rest[1:]
	if err := r.open(path); err != nil {
		return nil, err
	}
	if missing := r.part - before - 1; missing != 0 {
		return &Event{Kind: Damage, Tick: r.entry.Tick.Index, Count: uint64(max(0, missing)),
			Text: fmt.Sprintf("%s: part %d of the run follows part %d", path, r.part, before)}, nil
	}
	return nil, nil
}

// Tears lists what is missing at the end of the record or of one of its files.
func (r *Reader) Tears() []Tear { return r.torn }

// Torn says what Tears lists, one sentence each; empty if nothing is missing.
func (r *Reader) Torn() string {
	var list []string
	for _, t := range r.torn {
		list = append(list, t.String())
	}
	return strings.Join(list, "; ")
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	err := r.closer.Close()
	r.closer = nil
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
