package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"lockstep/io/can"
)

// Logged is one frame of a log.
type Logged struct {
	Time    int64  // ns, as the log counts: candump since 1970 UTC, ASC since its start
	Channel string // as the log names it: an interface, or a number from 1
	Sent    bool   // by the one who logged
	Line    int    // of the file, from 1
	can.Frame
}

// Log reads a log of another program line by line: one of candump -L, or Vector's ASC.
// Which of them it is shows in the first line.
type Log struct {
	Skipped int // lines that hold no frame: comments, statistics, other buses

	name   string
	in     *bufio.Reader
	closer io.Closer // nil: the file is not ours
	line   int
	parse  func(line []byte, f *Logged) (isFrame bool, err error)
	asc    ascState
}

// maxLine bounds a line of a log, bytes.
const maxLine = 64 << 10

// OpenLog opens a log. Close it.
func OpenLog(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	l, err := NewLog(path, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	l.closer = f
	return l, nil
}

// NewLog reads a log from anywhere; name is for messages.
func NewLog(name string, from io.Reader) (*Log, error) {
	l := &Log{name: name, in: bufio.NewReaderSize(from, maxLine)}
	for at := 256; ; at *= 4 {
		head, err := l.in.Peek(min(at, maxLine))
		head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return nil, fmt.Errorf("record: %s: %w", name, err)
		}
		end := bytes.IndexByte(head, '\n')
		if end < 0 && err == nil && at < maxLine {
			continue // the line is longer than what was seen of it
		}
		if end >= 0 {
			head = head[:end]
		}
		switch {
		case len(head) > 0 && head[0] == '(':
			l.parse = parseCandump
		case isASC(head):
			l.parse = l.asc.parse
		default:
			return nil, fmt.Errorf("%s:1: record: neither a log of candump -L, which begins with (TIME), nor an ASC log, which begins with its date", name)
		}
		return l, nil
	}
}

// Next reads the next frame; at the end of the log the error is io.EOF. Errors name
// file and line.
func (l *Log) Next() (f Logged, err error) {
	for {
		line, err := l.in.ReadSlice('\n')
		l.line++
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return f, fmt.Errorf("%s:%d: record: a line of more than %d bytes", l.name, l.line, maxLine)
		case err != nil && err != io.EOF:
			return f, fmt.Errorf("%s:%d: record: %w", l.name, l.line, err)
		case err == io.EOF && len(line) == 0:
			return f, io.EOF
		}
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		if len(line) == 0 {
			continue
		}
		f = Logged{Line: l.line}
		ok, err := l.parse(line, &f)
		if err != nil {
			return f, fmt.Errorf("%s:%d: record: %w", l.name, l.line, err)
		}
		if ok {
			return f, nil
		}
		l.Skipped++
	}
}

// Close closes the log.
func (l *Log) Close() error {
	if l.closer == nil {
		return nil
	}
	err := l.closer.Close()
	l.closer = nil
	return err
}

// parseSeconds reads a decimal number of seconds as ns; digits beyond are dropped.
func parseSeconds(text string) (ns int64, ok bool) {
	whole, fraction, _ := bytes.Cut([]byte(text), []byte{'.'})
	s, err := strconv.ParseUint(string(whole), 10, 33)
	if err != nil {
		return 0, false
	}
	ns = int64(s) * 1e9
	unit := int64(1e8)
	for _, c := range fraction {
		if c < '0' || c > '9' {
			return 0, false
		}
		ns += int64(c-'0') * unit
		unit /= 10
	}
	return ns, true
}

// identify sets a data or remote identifier, which has to fit into its bits.
func (f *Logged) identify(id uint64, extended bool) error {
	switch {
	case extended && id <= uint64(can.MaskEFF):
		f.ID = uint32(id) | can.EFF
	case !extended && id <= uint64(can.MaskSFF):
		f.ID = uint32(id)
	default:
		return fmt.Errorf("identifier %X has more than %d bits", id, map[bool]int{false: 11, true: 29}[extended])
	}
	return nil
}
