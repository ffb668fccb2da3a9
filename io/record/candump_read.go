package record

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"lockstep/io/can"
)

// parseCandump reads (SECONDS.FRACTION) INTERFACE FRAME, with R or T behind it where
// the direction is known.
func parseCandump(line []byte, f *Logged) (bool, error) {
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

// parseFrame reads a frame as can-utils write it: ID#DATA, ID#R or ID#R8, and with CAN
// FD ID##FLAGS DATA without the blank. Three digits of ID are a standard identifier,
// more an extended one, or an error frame. Bytes may be separated by dots; behind eight
// of them _X may give a raw length code, which is left out.
func parseFrame(text string, f *Logged) error {
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
	} else if err := f.identify(id&^uint64(can.EFF), len(name) > 3); err != nil {
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

// parseFD reads the digit of flags and the data. Bit 2 of the flags says FD once more;
// kernels from 6.1 on set it.
func parseFD(text string, f *Logged) error {
	if text == "" {
		return errors.New("the digit of flags behind ## is missing")
	}
	flags, err := strconv.ParseUint(text[:1], 16, 8)
	if err != nil {
		return fmt.Errorf("flags %q behind ## are not a hexadecimal digit", text[:1])
	}
	f.Flags = uint8(flags)&(can.FlagBRS|can.FlagESI) | can.FlagFDF
	if err := parseData(text[1:], 64, f); err != nil {
		return err
	}
	f.Len = fdLengths[dlc(f.Len)] // as the kernel fills up what is not a length of CAN FD
	return nil
}

func parseRemote(text string, f *Logged) error {
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

// parseData reads at most most bytes.
func parseData(text string, most int, f *Logged) error {
	text = strings.ReplaceAll(text, ".", "")
	if len(text) > 2*most {
		return fmt.Errorf("%d digits of data, at most %d are possible", len(text), 2*most)
	}
	if len(text)%2 != 0 {
		return fmt.Errorf("%d digits of data are no whole bytes", len(text))
	}
	for i := 0; i < len(text); i += 2 {
		v, err := strconv.ParseUint(text[i:i+2], 16, 8)
		if err != nil {
			return fmt.Errorf("data byte %q is not hexadecimal", text[i:i+2])
		}
		f.Data[i/2] = uint8(v)
	}
	f.Len = uint8(len(text) / 2)
	return nil
}
