package framelog

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

// Frame is one frame of a log.
type Frame struct {
	Time    int64  // time, ns: of candump and python-can since 1970 UTC, in others since the start; in MDF4 also less than 0
	Channel string // channel of the log: an interface, or a number from 1
	Sent    bool   // sent by the host that logged
	Line    int    // line in the file, from 1; in BLF and MDF4 the number of the frame
	can.Frame
}

// Log reads a log of CAN frames: of candump with or without -L, ASC, TRC, BLF, MDF4, or CSV or text of
// python-can. The beginning of the file decides the format.
type Log struct {
	Skipped int // entries that are no frames: comments, statistics, other buses

	next func(*Frame) error
}

// Input is the file of a log.
type Input interface {
	io.ReaderAt
	Size() int64
}

// IsText reports whether a file that begins with head is a log in a format of text. A log that begins
// with a comment is not recognised.
func IsText(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	if bytes.HasPrefix(line, []byte("//")) || bytes.HasPrefix(line, []byte("(")) && !candumpHead().Match(line) {
		return false
	}
	if bytes.HasPrefix(line, []byte(";")) {
		return trcHead.Match(line)
	}
	return lineFormat(line) != nil
}

// lineFormat returns the parser for a log of text whose first line is head; nil: the format is unknown.
func lineFormat(head []byte) lineParser {
	switch {
	case len(head) > 0 && head[0] == '(' || candumpHead().Match(head):
		return &candumpState{}
	case isASC(head):
		return &ascState{}
	case len(head) > 0 && head[0] == ';':
		return &trcState{}
	case string(bytes.TrimSpace(head)) == csvHead:
		return csvState{}
	case bytes.HasPrefix(head, []byte(printedHead)):
		return printedState{}
	}
	return nil
}

// errFormat is the error for a file that is no log.
const errFormat = "not a log of CAN frames: none of candump (with -L or with -t a), ASC, TRC, BLF, MDF4, and CSV and text of python-can"

// New reads a log; name is for errors.
func New(name string, in Input) (*Log, error) {
	var magic [8]byte
	if _, err := in.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("framelog: %s: %w", name, err)
	}
	if err := refuseKnown(magic[:]); err != nil {
		return nil, fmt.Errorf("%s: framelog: %w", name, err)
	}
	l := &Log{}
	switch {
	case string(magic[:4]) == BLFMagic:
		r, err := newBLFReader(name, in, &l.Skipped)
		if err != nil {
			return nil, err
		}
		l.next = r.next
	case string(magic[:]) == MDFMagic || string(magic[:]) == MDFUnfinished:
		r, err := newMDFReader(name, in)
		if err != nil {
			return nil, err
		}
		l.next = r.next
	default:
		r, err := newLines(name, in, &l.Skipped)
		if err != nil {
			return nil, err
		}
		l.next = r.next
	}
	return l, nil
}

// Next reads the next frame; at the end of the log the error is io.EOF. Errors name the file and the
// line, or in BLF and MDF4 the byte.
func (l *Log) Next() (f Frame, err error) {
	err = l.next(&f)
	return f, err
}

// lineParser reads a line of a log in a format of text. It reports no frame for a line of the format
// that holds none.
type lineParser interface {
	parse(line []byte, f *Frame) (isFrame bool, err error)
}

// lines reads a log line by line.
type lines struct {
	name    string
	in      *bufio.Reader
	rest    int64 // bytes of the file not read yet
	line    int
	skipped *int
	parser  lineParser
}

// maxLine is the longest line of a log, bytes.
const maxLine = 64 << 10

// newLines reads the first line, which decides the format.
func newLines(name string, in Input, skipped *int) (*lines, error) {
	r := &lines{name: name, in: bufio.NewReaderSize(io.NewSectionReader(in, 0, in.Size()), maxLine), rest: in.Size(), skipped: skipped}
	head, err := r.in.Peek(maxLine)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("framelog: %s: %w", name, err)
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	first, _, _ := bytes.Cut(head, []byte("\n"))
	if r.parser = lineFormat(first); r.parser == nil {
		return nil, fmt.Errorf("%s:1: framelog: %s", name, errFormat)
	}
	if c, ok := r.parser.(*candumpState); ok {
		if err := c.findClock(head); err != nil {
			return nil, fmt.Errorf("%s:1: framelog: %w", name, err)
		}
	}
	return r, nil
}

// next reads the next frame.
func (r *lines) next(f *Frame) error {
	for {
		line, err := r.in.ReadSlice('\n')
		r.line++
		r.rest -= int64(len(line))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%s:%d: framelog: a line of more than %d bytes", r.name, r.line, maxLine)
		case err != nil && err != io.EOF:
			return fmt.Errorf("%s:%d: framelog: %w", r.name, r.line, err)
		case err == io.EOF && r.rest > 0:
			return fmt.Errorf("%s:%d: framelog: the file has become %d bytes shorter since it was opened", r.name, r.line, r.rest)
		case err == io.EOF && len(line) == 0:
			return io.EOF
		}

		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		if len(line) == 0 {
			continue
		}
		*f = Frame{Line: r.line}
		ok, err := r.parser.parse(line, f)
		if err != nil {
			return fmt.Errorf("%s:%d: framelog: %w", r.name, r.line, err)
		}
		if ok {
			return nil
		}
		*r.skipped++
	}
}

// parseSeconds reads a decimal number of seconds as ns; further digits are dropped.
func parseSeconds(text string) (ns int64, ok bool) { return parseDecimal(text, 9) }

// parseDecimal reads a decimal number times 10^digits; further digits are dropped.
func parseDecimal(text string, digits int) (n int64, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+(fraction + "000000000")[:digits], 10, 64)
	return n, err == nil
}

// setID sets a data or remote identifier, which must fit into 11 or 29 bits.
func (f *Frame) setID(id uint64, extended bool) error {
	switch {
	case extended && id <= uint64(can.MaskEFF):
		f.ID = uint32(id) | can.EFF
	case !extended && id <= uint64(can.MaskSFF):
		f.ID = uint32(id)
	default:
		return fmt.Errorf("identifier 0x%X has more than %d bits", id, map[bool]int{false: 11, true: 29}[extended])
	}

	return nil
}

// setFD sets the length and the flags of a CAN FD frame. The length becomes one of CAN FD.
func (f *Frame) setFD(n uint8, brs, esi bool) {
	f.Len, f.Flags = can.Lengths[can.DLC(n)], can.FlagFDF
	if brs {
		f.Flags |= can.FlagBRS
	}
	if esi {
		f.Flags |= can.FlagESI
	}
}

// parseBytes reads f.Len bytes in a base, each with at least a number of digits.
func parseBytes(words []string, base, digits int, f *Frame) error {
	if len(words) < int(f.Len) {
		return fmt.Errorf("%d bytes of data where the length says %d", len(words), f.Len)
	}
	for i := range f.Len {
		v, err := parseByte(words[i], base, digits)
		if err != nil {
			return err
		}
		f.Data[i] = v
	}
	return nil
}

// parseByte reads a byte. With two digits in base 16 a byte that is cut off is noticed.
func parseByte(text string, base, digits int) (uint8, error) {
	v, err := strconv.ParseUint(text, base, 8)
	switch {
	case err != nil:
		return 0, fmt.Errorf("data: %.40q is not a number of base %d and 8 bits", text, base)
	case len(text) < digits:
		return 0, fmt.Errorf("data: %.40q has not the %d digits of a byte", text, digits)
	}
	return uint8(v), nil
}
