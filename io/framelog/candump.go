package framelog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockstep/io/can"
)

// candumpState reads the output of candump, with -L or without.
type candumpState struct {
	deltas bool  // times are since the line before: candump -t d
	last   int64 // time of the line before, ns
	failed bool  // the line before is an error frame, which candump -e explains in the next lines
}

// candumpHead matches a line of candump: a time, which is missing without -L and -t, an interface,
// and the frame.
var candumpHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\([0-9.]+\)|\([0-9-]+ [0-9:.]+\))?\s*[^\s(]+\s+` +
		`([0-9A-Fa-f]{1,8}#|((TX|RX) [-B] [-E]\s+)?[0-9A-F]{3,8}\s+\[\d+\])`)
})

// findClock finds the meaning of the times from the beginning of a log. Both candump -t z and -t d begin
// with (000.000000): the times of -t z rise, those of -t d rise and fall.
func (c *candumpState) findClock(head []byte) error {
	if head[0] != '(' {
		return errors.New("the log has no times, so its frames cannot be played: log with candump -L or candump -t a")
	}
	if !bytes.HasPrefix(head, []byte("(000.000000)")) {
		return nil
	}
	rising, lines := 0, bytes.Split(head, []byte("\n"))
	for i := range lines[1:] {
		if bytes.Compare(bytes.TrimSpace(lines[i]), bytes.TrimSpace(lines[i+1])) < 0 {
			rising++
		}
	}
	c.deltas = rising < len(lines)*3/4-1
	return nil
}

// candumpExplanation matches a line of candump -e that explains an error frame.
var candumpExplanation = regexp.MustCompile(`^[a-z-]+(\{|$)`)

// parse reads (TIME) INTERFACE FRAME. In a line of -L, R or T follows if the direction is known. A line
// without -L may have the direction and the flags of CAN FD before the identifier: candump -x.
func (c *candumpState) parse(line []byte, f *Frame) (bool, error) {
	if line[0] == '#' || c.failed && candumpExplanation.Match(line) {
		return false, nil // a comment, in logs written by hand, or an explanation
	}
	words := strings.Fields(string(line))
	if len(words) > 1 && !strings.HasSuffix(words[0], ")") && strings.HasSuffix(words[1], ")") { // a date
		words = slices.Replace(words, 0, 2, words[0]+" "+words[1])
	}
	if len(words) < 3 || len(words[0]) < 3 || words[0][0] != '(' || words[0][len(words[0])-1] != ')' {
		return false, fmt.Errorf("%.60q is neither (TIME) INTERFACE ID#DATA nor (TIME) INTERFACE ID [LENGTH] DATA", line)
	}
	if err := c.parseTime(words[0], f); err != nil {
		return false, err
	}
	f.Channel = words[1]
	var err error
	if strings.Contains(words[2], "#") {
		err = parseCompact(words[2:], f)
	} else {
		err = parseLong(words[2:], f)
	}
	c.failed = f.ID&can.ERR != 0
	return err == nil, err
}

// parseTime reads (SECONDS.FRACTION), or (DATE TIME) in the local time of this machine.
func (c *candumpState) parseTime(text string, f *Frame) (err error) {
	text = text[1 : len(text)-1]
	var ok bool
	if date, err := time.ParseInLocation("2006-01-02 15:04:05", text, time.Local); err == nil {
		f.Time, ok = date.UnixNano(), date.Year() >= 1970 && date.Year() < 2262
	} else {
		f.Time, ok = parseSeconds(text)
	}
	if c.deltas {
		f.Time += c.last
	}
	if !ok || f.Time < 0 {
		return fmt.Errorf("time %.40q is not (SECONDS.FRACTION)", text)
	}
	c.last = f.Time
	return nil
}

// parseCompact reads a frame of candump -L and its direction.
func parseCompact(words []string, f *Frame) error {
	if len(words) > 1 {
		if f.Sent = strings.EqualFold(words[1], "T"); len(words) > 2 || !f.Sent && !strings.EqualFold(words[1], "R") {
			return fmt.Errorf("%.40q after the frame is not R or T", strings.Join(words[1:], " "))
		}
	}
	if err := parseFrame(words[0], f); err != nil {
		return fmt.Errorf("frame %.160q: %w", words[0], err)
	}
	return nil
}

// parseLong reads a frame as candump without -L prints it: ID [LENGTH] DATA, with two digits of
// LENGTH for CAN FD, then the data as characters in quotes, or ERRORFRAME.
func parseLong(words []string, f *Frame) error {
	flags := ""
	if f.Sent = words[0] == "TX"; len(words) > 2 && (f.Sent || words[0] == "RX") {
		flags, words = words[1]+words[2], words[3:]
	}
	if len(words) < 2 {
		return errors.New("identifier and [LENGTH] are missing")
	}
	if err := parseID(words[0], f); err != nil {
		return err
	}
	length := words[1]
	n, err := strconv.ParseUint(strings.Trim(length, "[]"), 10, 8)
	fd := len(length) == 4
	if err != nil || length[0] != '[' || length[len(length)-1] != ']' || n > 64 || !fd && n > 8 {
		return fmt.Errorf("length %.20q is not [0] to [8], or of CAN FD to [64]", length)
	}
	f.Len = uint8(n)
	if words = words[2:]; len(words) > 1 && words[0] == "remote" && words[1] == "request" {
		f.ID |= can.RTR
		return nil
	}
	if err := parseBytes(words, 16, 2, f); err != nil {
		return err
	}
	if rest := words[n:]; len(rest) > 0 && rest[0][0] != '\'' && rest[0] != "ERRORFRAME" {
		return fmt.Errorf("%.40q after %d bytes of data", strings.Join(rest, " "), n)
	}
	if fd {
		f.setFD(f.Len, strings.Contains(flags, "B"), strings.Contains(flags, "E"))
	}
	return nil
}

// AppendCandump appends a frame in the notation of can-utils: ID#DATA, ID#R or ID##FLAGS DATA.
func AppendCandump(b []byte, f *can.Frame) []byte {
	switch {
	case f.ID&can.ERR != 0:
		b = fmt.Appendf(b, "%08X", f.ID&(can.ERR|can.MaskEFF))
	case f.ID&can.EFF != 0:
		b = fmt.Appendf(b, "%08X", f.ID&can.MaskEFF)
	default:
		b = fmt.Appendf(b, "%03X", f.ID&can.MaskSFF)
	}

	switch {
	case f.ID&can.RTR != 0:
		b = append(b, "#R"...)
		if f.Len > 0 {
			b = append(b, '0'+min(f.Len, 8))
		}
		return b
	case f.FD():
		b = fmt.Appendf(b, "##%X", f.Flags&(can.FlagBRS|can.FlagESI))
	default:
		b = append(b, '#')
	}

	return fmt.Appendf(b, "%X", f.Data[:f.Len])
}

// parseFrame reads a frame in the notation of can-utils: ID#DATA, ID#R or ID#R8, and for
// CAN FD ID##FLAGS and DATA without a blank between. An ID of three digits is a standard
// identifier, one of more digits an extended identifier or an error frame. Dots may separate
// bytes; a raw length code _X after eight bytes is ignored.
func parseFrame(text string, f *Frame) error {
	name, data, ok := strings.Cut(text, "#")
	if !ok {
		return errors.New("there is no # between identifier and data")
	}
	if err := parseID(name, f); err != nil {
		return err
	}

	switch {
	case strings.HasPrefix(data, "#"):
		return parseFD(data[1:], f)
	case strings.HasPrefix(data, "R") || strings.HasPrefix(data, "r"):
		return parseRemote(data[1:], f)
	}

	data, _, _ = strings.Cut(data, "_")
	return parseData(data, 8, f)
}

// parseID reads an identifier, or the bits of an error frame.
func parseID(text string, f *Frame) error {
	id, err := strconv.ParseUint(text, 16, 32)
	if err != nil || len(text) > 8 {
		return fmt.Errorf("identifier %.40q is not 1 to 8 hexadecimal digits", text)
	}
	if len(text) == 8 && id&uint64(can.ERR) != 0 {
		f.ID = uint32(id) & (can.ERR | can.MaskEFF)
		return nil
	}
	return f.setID(id&^uint64(can.EFF), len(text) > 3)
}

// parseFD reads the digit of flags and the data. Bit 2 of the flags is FDF, which kernels
// from 6.1 set.
func parseFD(text string, f *Frame) error {
	if text == "" {
		return errors.New("the digit of flags after ## is missing")
	}
	flags, err := strconv.ParseUint(text[:1], 16, 8)
	if err != nil {
		return fmt.Errorf("flags %q after ## are not a hexadecimal digit", text[:1])
	}
	if err := parseData(text[1:], 64, f); err != nil {
		return err
	}
	f.setFD(f.Len, uint8(flags)&can.FlagBRS != 0, uint8(flags)&can.FlagESI != 0)
	return nil
}

func parseRemote(text string, f *Frame) error {
	text, _, _ = strings.Cut(text, "_")
	f.ID |= can.RTR
	if text == "" {
		return nil
	}
	if len(text) != 1 || text[0] < '0' || text[0] > '8' {
		return fmt.Errorf("length %q of a remote frame is not 0 to 8", text)
	}
	f.Len = text[0] - '0'
	return nil
}

// parseData reads at most most data bytes.
func parseData(text string, most int, f *Frame) error {
	text = strings.ReplaceAll(text, ".", "")
	if len(text) > 2*most {
		return fmt.Errorf("%d digits of data, at most %d are possible", len(text), 2*most)
	}
	if len(text)%2 != 0 {
		return fmt.Errorf("%d digits of data are not whole bytes", len(text))
	}
	n, err := hex.Decode(f.Data[:], []byte(text))
	if err != nil {
		return fmt.Errorf("data byte %q is not hexadecimal", text[2*n:2*n+2])
	}
	f.Len = uint8(n)
	return nil
}
