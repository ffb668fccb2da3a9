package framelog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"lockstep/io/can"
)

// trcState reads a trace of PEAK's programs, of version 1.0 to 2.1: PEAK CAN TRC File Format,
// PEAK-System. Its times are ms since the start.
//
// columns holds a letter for each column, as in the head of version 2: N number, O time, T type,
// B bus, I identifier, d direction, R reserved, l length, L length code, D data.
type trcState struct{ columns string }

// trcHead matches the first line of a trace.
var trcHead = regexp.MustCompile(`^;(\$FILEVERSION=|#{10})`)

// trcColumns holds the columns of each version. A file without a version is of version 1.0.
var trcColumns = map[string]string{
	"1.0": "NOIlD", "1.1": "NOdIlD", "1.2": "NOBdIlD", "1.3": "NOBdIRlD", "2.0": "NOTIdlD", "2.1": "NOTBIdRLD",
}

func (t *trcState) parse(line []byte, f *Frame) (bool, error) {
	if line[0] == ';' {
		return false, t.parseHead(string(line[1:]))
	}
	if t.columns == "" {
		t.columns = trcColumns["1.0"]
	}
	words := strings.Fields(string(line))
	value := map[rune]string{'B': "1", 'd': "Rx", 'T': "DT"}
	for i, column := range t.columns {
		if column == 'D' {
			break
		}
		if i >= len(words) {
			return false, fmt.Errorf("%.60q has %d columns; the columns are %.60q", line, len(words), t.columns)
		}
		if value[column] = words[i]; t.isNoFrame(column, words[i]) {
			return false, nil
		}
	}
	data := words[len(t.columns)-1:]
	if err := t.parseColumns(value, f); err != nil {
		return false, err
	}
	if value['T'] == "RR" || len(data) > 0 && data[0] == "RTR" {
		f.ID, f.Flags, f.Len = f.ID|can.RTR, 0, min(f.Len, 8)
		return true, nil
	}
	return true, parseBytes(data, 16, 2, f)
}

// parseHead reads the version and the columns.
func (t *trcState) parseHead(line string) error {
	key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
	switch key {
	case "$FILEVERSION":
		if t.columns = trcColumns[value]; t.columns == "" {
			return fmt.Errorf("version %.20q of TRC is not one of 1.0, 1.1, 1.2, 1.3, 2.0, 2.1", value)
		}
	case "$COLUMNS":
		t.columns = strings.ReplaceAll(value, ",", "")
		for _, need := range []string{"O", "I", "D"} {
			if !strings.Contains(t.columns, need) {
				return fmt.Errorf("columns %.60q have no %s", value, need)
			}
		}
		if !strings.HasSuffix(t.columns, "D") || !strings.ContainsAny(t.columns, "lL") {
			return fmt.Errorf("columns %.60q: the last are the length, l or L, and D", value)
		}
	}
	return nil
}

// isNoFrame reports whether the word of a column marks a line that holds no frame: a state, an error
// frame, a counter of errors, a mark of the user.
func (t *trcState) isNoFrame(column rune, word string) bool {
	switch column {
	case 'T':
		return word == "ST" || word == "ER" || word == "EC" || word == "EV"
	case 'd':
		return word == "Warng" || word == "Error"
	}
	return column == 'I' && word == "FFFFFFFF"
}

// parseColumns reads all columns but the data.
func (t *trcState) parseColumns(value map[rune]string, f *Frame) error {
	var ok bool
	if f.Time, ok = parseDecimal(value['O'], 6); !ok {
		return fmt.Errorf("time %.40q is not a number of ms", value['O'])
	}
	f.Channel = value['B']
	id, err := strconv.ParseUint(value['I'], 16, 32)
	if err != nil {
		return fmt.Errorf("identifier %.40q is not 1 to 8 hexadecimal digits", value['I'])
	}
	if err := f.setID(id, len(value['I']) > 4); err != nil {
		return err
	}
	if f.Sent = value['d'] == "Tx"; !f.Sent && value['d'] != "Rx" {
		return fmt.Errorf("direction %.20q is not Rx or Tx", value['d'])
	}
	return setTRCLength(value, f)
}

// setTRCLength sets the length and the flags by the type and the column l or L.
func setTRCLength(value map[rune]string, f *Frame) error {
	code, isCode := value['L']
	if !isCode {
		code = value['l']
	}
	n, err := strconv.ParseUint(code, 10, 8)
	fd := len(value['T']) == 2 && strings.Contains("FD FB FE BI", value['T'])
	switch {
	case !fd && value['T'] != "DT" && value['T'] != "RR":
		return fmt.Errorf("type %.20q is not one of DT, RR, FD, FB, FE, BI, ST, ER, EC, EV", value['T'])
	case err != nil || isCode && n > 15 || !isCode && !fd && n > 8 || n > 64:
		return fmt.Errorf("length %.20q: a code is 0 to 15, a length 0 to 8, or of CAN FD to 64", code)
	case !fd:
		f.Len = uint8(min(n, 8)) // codes above 8 are valid and mean 8
	default:
		if isCode {
			n = uint64(can.Lengths[n])
		}
		if can.Lengths[can.DLC(uint8(n))] != uint8(n) {
			return fmt.Errorf("length %d is not one of CAN FD", n)
		}
		f.setFD(uint8(n), value['T'] == "FB" || value['T'] == "BI", value['T'] == "FE" || value['T'] == "BI")
	}
	return nil
}
