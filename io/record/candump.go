package record

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"lockstep/io/can"
)

// newCandump starts the log format of candump -L, followed by the direction as in can-utils:
// (SECONDS.MICROSECONDS) INTERFACE ID#DATA R, or T for sent.
func newCandump(to Target, h *Header) (Exporter, error) {
	x := &lineExporter{h: h, out: bufio.NewWriter(to), clock: clock{last: math.MinInt64}}
	x.format = x.appendCandump
	return x, nil
}

// appendCandump appends the line of an entry in a candump log.
func (x *lineExporter) appendCandump(b []byte, e *Entry) []byte {
	if e.Kind != FrameEntry {
		return b
	}
	f := &e.Frame
	t := max(0, x.clock.elapsed(x.h.timeOr(f.Time, f.Tick)))
	b = fmt.Appendf(b, "(%010d.%06d) %s ", t/1e9, t%1e9/1e3, x.h.busName(f.Bus))
	b = appendCandump(b, &f.Frame)
	if f.Sent {
		return append(b, " T\n"...)
	}
	return append(b, " R\n"...)
}

// appendCandump appends ID#DATA, ID#R or ID##FLAGS DATA.
func appendCandump(b []byte, f *can.Frame) []byte {
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

// parseCandump reads (SECONDS.FRACTION) INTERFACE FRAME, followed by R or T if the direction
// is known.
func parseCandump(line []byte, f *LogFrame) (bool, error) {
	if line[0] == '#' {
		return false, nil // a comment, in logs written by hand
	}
	words := strings.Fields(string(line))
	if len(words) < 3 || len(words[0]) < 3 || words[0][0] != '(' || words[0][len(words[0])-1] != ')' {
		return false, fmt.Errorf("%.60q is not (TIME) INTERFACE ID#DATA", line)
	}
	var ok bool
	if f.Time, ok = parseSeconds(words[0][1 : len(words[0])-1]); !ok {
		return false, fmt.Errorf("time %s is not (SECONDS.FRACTION)", words[0])
	}
	f.Channel = words[1]
	f.Sent = len(words) > 3 && strings.EqualFold(words[3], "T")
	if err := parseFrame(words[2], f); err != nil {
		return false, fmt.Errorf("frame %.160s: %w", words[2], err)
	}
	return true, nil
}

// parseFrame reads a frame in the notation of can-utils: ID#DATA, ID#R or ID#R8, and for
// CAN FD ID##FLAGS and DATA without a blank between. An ID of three digits is a standard
// identifier, one of more digits an extended identifier or an error frame. Dots may separate
// bytes; a raw length code _X after eight bytes is ignored.
func parseFrame(text string, f *LogFrame) error {
	name, data, ok := strings.Cut(text, "#")
	if !ok {
		return errors.New("there is no # between identifier and data")
	}
	id, err := strconv.ParseUint(name, 16, 32)
	if err != nil || len(name) > 8 {
		return fmt.Errorf("identifier %q is not 1 to 8 hexadecimal digits", name)
	}
	if len(name) == 8 && id&uint64(can.ERR) != 0 {
		f.ID = uint32(id) & (can.ERR | can.MaskEFF)
	} else if err := f.setID(id&^uint64(can.EFF), len(name) > 3); err != nil {
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

// parseFD reads the digit of flags and the data. Bit 2 of the flags is FDF, which kernels
// from 6.1 set.
func parseFD(text string, f *LogFrame) error {
	if text == "" {
		return errors.New("the digit of flags after ## is missing")
	}
	flags, err := strconv.ParseUint(text[:1], 16, 8)
	if err != nil {
		return fmt.Errorf("flags %q after ## are not a hexadecimal digit", text[:1])
	}
	f.Flags = uint8(flags)&(can.FlagBRS|can.FlagESI) | can.FlagFDF
	if err := parseData(text[1:], 64, f); err != nil {
		return err
	}
	f.Len = can.Lengths[can.DLC(f.Len)] // the kernel pads to a length of CAN FD
	return nil
}

func parseRemote(text string, f *LogFrame) error {
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
func parseData(text string, most int, f *LogFrame) error {
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
