package framelog

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"lockstep/io/can"
)

// csvHead is the first line of a log in CSV of python-can.
const csvHead = "timestamp,arbitration_id,extended,remote,error,dlc,data"

// printedHead begins each line of a log that python-can prints (.txt).
const printedHead = "Timestamp:"

// csvState reads a log in CSV of python-can, which has neither channel nor direction nor flags of CAN FD: a
// frame of more than 8 bytes is CAN FD. The channel is 1.
type csvState struct{}

func (csvState) parse(line []byte, f *Frame) (bool, error) {
	if string(line) == csvHead {
		return false, nil
	}
	words := strings.Split(string(line), ",")
	if len(words) != 7 {
		return false, fmt.Errorf("%.60q has %d columns; the columns are %s", line, len(words), csvHead)
	}
	for _, word := range words[2:5] {
		if word != "0" && word != "1" {
			return false, fmt.Errorf("%.20q is not 0 or 1: extended, remote and error", word)
		}
	}
	f.Channel = "1"
	if err := f.setPrintedTime(words[0]); err != nil {
		return false, err
	}
	if words[4] == "1" {
		f.ID, f.Len = can.ERR, 8
		return true, nil
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(words[1], "0x"), 16, 32)
	if err != nil {
		return false, fmt.Errorf("identifier %.40q is not hexadecimal", words[1])
	}
	data, err := base64.StdEncoding.DecodeString(words[6])
	if err != nil {
		return false, fmt.Errorf("data %.100q are not base64", words[6])
	}
	return true, f.setPrinted(id, words[2] == "1", words[3] == "1", words[5], data, len(data) > 8)
}

// printedState reads a log that python-can prints. A line is
//
//	Timestamp: TIME ID: ID S|X Rx|Tx [E] [R] [F] [BS] [EI] DL: LENGTH [BYTES] ['TEXT'] [Channel: CHANNEL]
//
// with the data as text, too, if they are letters and digits.
type printedState struct{}

func (printedState) parse(line []byte, f *Frame) (bool, error) {
	words := strings.Fields(string(line))
	length := 0
	for length < len(words) && words[length] != "DL:" {
		length++
	}
	if len(words) < 8 || words[0] != printedHead || words[2] != "ID:" || length < 6 || length+1 >= len(words) {
		return false, fmt.Errorf("%.60q is not Timestamp: TIME ID: ID FLAGS DL: LENGTH BYTES", line)
	}
	if err := f.setPrintedTime(words[1]); err != nil {
		return false, err
	}
	id, err := strconv.ParseUint(words[3], 16, 32)
	if err != nil {
		return false, fmt.Errorf("identifier %.40q is not hexadecimal", words[3])
	}
	flags := map[string]bool{}
	for _, word := range words[4:length] {
		if !strings.Contains(" S X Rx Tx E R F BS EI ", " "+word+" ") {
			return false, fmt.Errorf("flag %.20q is not one of S, X, Rx, Tx, E, R, F, BS, EI", word)
		}
		flags[word] = true
	}
	f.Sent, f.Channel = flags["Tx"], "1"
	rest := words[length+2:]
	if n := len(rest); n > 1 && rest[n-2] == "Channel:" {
		f.Channel, rest = rest[n-1], rest[:n-2]
	}
	if n := len(rest); n > 0 && rest[n-1][0] == '\'' {
		rest = rest[:n-1]
	}
	if flags["E"] {
		f.ID, f.Len = can.ERR, 8
		return true, nil
	}
	var data []byte
	for _, word := range rest {
		v, err := parseByte(word, 16, 2)
		if err != nil {
			return false, err
		}
		data = append(data, v)
	}
	if err := f.setPrinted(id, flags["X"], flags["R"], words[length+1], data, flags["F"]); err != nil {
		return false, err
	}
	if flags["F"] && !flags["R"] {
		f.setFD(f.Len, flags["BS"], flags["EI"])
	}
	return true, nil
}

// setPrintedTime reads a decimal number of seconds, which may have an exponent.
func (f *Frame) setPrintedTime(text string) error {
	ns, ok := parseSeconds(text)
	if v, err := strconv.ParseFloat(text, 64); !ok && err == nil && v >= 0 && v < 9e9 {
		ns, ok = int64(math.RoundToEven(v*1e9)), true
	}
	if f.Time = ns; !ok {
		return fmt.Errorf("time %.40q is not a number of seconds", text)
	}
	return nil
}

// setPrinted sets identifier, length and data.
func (f *Frame) setPrinted(id uint64, extended, remote bool, length string, data []byte, fd bool) error {
	if err := f.setID(id, extended); err != nil {
		return err
	}
	n, err := strconv.ParseUint(length, 10, 8)
	switch {
	case err != nil || n > 64 || (!fd || remote) && n > 8:
		return fmt.Errorf("length %.20q is not 0 to 8, or of CAN FD to 64", length)
	case remote:
		f.ID, f.Len = f.ID|can.RTR, uint8(n)
		return nil
	case int(n) != len(data):
		return fmt.Errorf("%d bytes of data where the length says %d", len(data), n)
	}
	f.Len = uint8(n)
	copy(f.Data[:], data)
	if fd {
		f.setFD(f.Len, false, false)
	}
	return nil
}

// refuseKnown returns the error for a file of a format that is known but not read.
func refuseKnown(magic []byte) error {
	switch {
	case bytes.HasPrefix(magic, []byte("SQLite f")):
		return errors.New("a log in SQLite is not read: convert it with python3 -m can.logconvert LOG.db LOG.blf")
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		return errors.New("a compressed log is not read: unpack it with gunzip")
	}
	return nil
}
