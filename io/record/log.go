package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"lockstep/io/can"
)

// LogFrame is one frame of a log.
type LogFrame struct {
	Time    int64  // time, ns: in candump logs since 1970 UTC, in ASC since the start
	Channel string // channel of the log: an interface, or a number from 1
	Sent    bool   // sent by the host that logged
	Line    int    // line in the file, from 1
	can.Frame
}

// Log reads a log of candump -L or a Vector ASC log line by line. The first line decides the
// format.
type Log struct {
	Skipped int // lines without a frame: comments, statistics, other buses

	name  string
	in    *bufio.Reader
	line  int
	parse func(line []byte, f *LogFrame) (isFrame bool, err error)
	asc   ascState
}

// maxLine is the longest line of a log, bytes.
const maxLine = 64 << 10

// IsLog reports whether a file that begins with head is a log of candump -L or an ASC log. A log that
// begins with a comment is not recognised.
func IsLog(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	if len(line) > 1 && line[0] == '(' {
		return line[1] >= '0' && line[1] <= '9'
	}
	return !bytes.HasPrefix(line, []byte("//")) && isASC(line)
}

// NewLog reads a log; name is for errors.
func NewLog(name string, from io.Reader) (*Log, error) {
	l := &Log{name: name, in: bufio.NewReaderSize(from, maxLine)}
	for at := 256; ; at *= 4 {
		head, err := l.in.Peek(min(at, maxLine))
		head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("record: %s: %w", name, err)
		}
		end := bytes.IndexByte(head, '\n')
		if end < 0 && err == nil && at < maxLine {
			continue // the line is longer than head
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
			return nil, fmt.Errorf("%s:1: record: neither a log of candump -L, which begins with (TIME), "+
				"nor an ASC log, which begins with its date", name)
		}

		return l, nil
	}
}

// Next reads the next frame; at the end of the log the error is io.EOF. Errors name
// file and line.
func (l *Log) Next() (f LogFrame, err error) {
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
		f = LogFrame{Line: l.line}
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

// parseSeconds reads a decimal number of seconds as ns; further digits are dropped.
func parseSeconds(text string) (ns int64, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, false
	}
	ns, err := strconv.ParseInt(whole+(fraction + "000000000")[:9], 10, 64)
	return ns, err == nil
}

// setID sets a data or remote identifier, which must fit into 11 or 29 bits.
func (f *LogFrame) setID(id uint64, extended bool) error {
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
