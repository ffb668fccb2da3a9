// Package inputfile owns the opening of files that a person names: on a command line, or in a file
// that a person wrote.
//
// Open accepts regular files only, within the size limit of their kind. It does not block, and it
// does not open a device, because some devices act when they are opened. A file ends at the size
// that it had when it was opened: a growing file is read up to there, and a file of /proc, which has
// the size 0, is empty.
package inputfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Kind is a kind of file. It decides about the size limit.
type Kind int

// The kinds of files.
const (
	Text        Kind = iota // plant, bench, scenario, sweep, database
	Inputs                  // inputs over time in CSV
	Record                  // record of a run
	Log                     // log of CAN frames
	Certificate             // certificate of a host
	State                   // state of a soak
	Table                   // table or journal of a sweep
	Executable              // target executable
	Head                    // the beginning of any file
)

// limits holds the largest size of a file of each kind, bytes; 0: none, because the reader holds a
// bounded part of the file in memory.
var limits = [...]struct {
	what string
	max  int64
}{
	Text:        {"a plant, bench, scenario, sweep or database", 16 << 20},
	Inputs:      {"inputs", 1 << 30}, // ten million rows
	Record:      {"a record", 0},     // chunks of at most 1 MiB, a header of 64 MiB, a hand-over of 256 MiB
	Log:         {"a log", 0},        // lines of at most 64 KiB; in MDF4 blocks of at most 64 MiB
	Certificate: {"a certificate", 64 << 20},
	State:       {"the state of a soak", 64 << 20},
	Table:       {"a table of a sweep", 1 << 30},
	Executable:  {"an executable", 256 << 20},
	Head:        {"a file", 0},
}

// Limit returns the largest size of a file of a kind, bytes; 0: none.
func (k Kind) Limit() int64 { return limits[k].max }

var (
	// ErrTooLarge is the error for a file above the size limit of its kind.
	ErrTooLarge = errors.New("the file is too large for its kind")

	// ErrNotRegular is the error for a FIFO, a socket or a device. The error for a folder is
	// syscall.EISDIR.
	ErrNotRegular = errors.New("not a regular file")
)

// File is an open file.
type File struct {
	*io.SectionReader
	file *os.File
}

// Open opens a file of a kind; the caller closes it. The error names the file.
func Open(name string, kind Kind) (*File, error) {
	info, err := os.Stat(name) // before opening: a device may act when it is opened
	if err == nil {
		err = check(name, kind, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil { // again: the name may be of another file by now
		err = check(name, kind, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}

	if kind != Head && kind != State {
		opened.Store(name, true)
	}
	return &File{io.NewSectionReader(f, 0, info.Size()), f}, nil
}

// opened holds the names of the files that this process has opened as input. Not an input is a file
// opened to find its kind, and the state of a soak, which the same soak writes.
var opened sync.Map

// WasRead reports whether a file is an input of this process, by any name.
func WasRead(file fs.FileInfo) (was bool) {
	opened.Range(func(name, _ any) bool {
		info, err := os.Stat(name.(string))
		was = err == nil && os.SameFile(info, file)
		return !was
	})
	return was
}

// check refuses what is no regular file, and a file above the limit of its kind.
func check(name string, kind Kind, info fs.FileInfo) error {
	what := ""
	switch mode := info.Mode(); {
	case mode.IsDir():
		return fmt.Errorf("%s %w", name, syscall.EISDIR)
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe (FIFO)"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	case !mode.IsRegular():
		what = "a special file"
	}
	if what != "" {
		return fmt.Errorf("%s is %s, %w: write its content to a file and name that file", name, what, ErrNotRegular)
	}

	if l := limits[kind]; l.max > 0 && info.Size() > l.max {
		return fmt.Errorf("%s: %w: %d bytes; %s has at most %d", name, ErrTooLarge, info.Size(), l.what, l.max)
	}
	return nil
}

// Read reads a whole file of a kind. Of a file above the limit it returns ErrTooLarge and the
// beginning, HeadSize bytes.
func Read(name string, kind Kind) ([]byte, error) {
	f, err := Open(name, kind)
	if errors.Is(err, ErrTooLarge) {
		head, _ := ReadHead(name)
		return head, err
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, f.Size())
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // the file has become shorter
		err = nil
	}
	return data[:n], err
}

// HeadSize is the beginning of a file that ReadHead returns, bytes.
const HeadSize = 64 << 10

// ReadHead reads the first HeadSize bytes of a file of any size.
func ReadHead(name string) ([]byte, error) {
	f, err := Open(name, Head)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, HeadSize))
}

// SkipHole returns the offset of the first data at or after an offset: it skips a hole of a sparse
// file, which reads as zeros. At the end of the data it returns the size of the file.
func (f *File) SkipHole(at int64) int64 {
	const seekData = 3 // SEEK_DATA of Linux
	next, err := f.file.Seek(at, seekData)
	if errors.Is(err, syscall.ENXIO) {
		return f.Size()
	}
	if err != nil { // a file system without holes
		return at
	}
	return next
}

// LimitLines returns a reader of r that fails at a line of more than max bytes.
func LimitLines(r io.Reader, max int) io.Reader { return &lineReader{r: r, max: max, line: 1} }

type lineReader struct {
	r         io.Reader
	max       int
	line, len int // number of the line, from 1, and its length so far
}

// ErrLongLine is the error for a line above the limit of LimitLines.
var ErrLongLine = errors.New("the line is too long")

func (l *lineReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if l.len += len(rest); end >= 0 {
			l.len += end - len(rest)
		}
		if l.len > l.max {
			return 0, fmt.Errorf("line %d: %w: it has more than %d bytes", l.line, ErrLongLine, l.max)
		}
		if end < 0 {
			break
		}
		rest, l.line, l.len = rest[end+1:], l.line+1, 0
	}

	return n, err
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
