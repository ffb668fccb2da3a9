package framelog

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"lockstep/io/can"
)

// ascState holds settings of an ASC log that apply to the following lines.
type ascState struct {
	decimal  bool  // identifiers and data are decimal
	relative bool  // times are relative to the line before
	last     int64 // time of the line before, ns
}

// ascHead matches the first line of an ASC log that has a head.
var ascHead = regexp.MustCompile(`^(?i:date |base |begin |//|(no )?internal events)`)

// isASC reports whether head, the first line, begins an ASC log.
func isASC(head []byte) bool {
	if ascHead.Match(head) {
		return true
	}
	words := strings.Fields(string(head))
	if len(words) < 4 || !strings.Contains(words[0], ".") {
		return false
	}
	_, ok := parseSeconds(words[0])
	return ok
}

// ascText matches a line without a time that holds no frame: of the head, or a comment.
var ascText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i://|date |(no )?internal events|(begin|end) ?trigger|previous log file|` +
		`measurement uuid|start of measurement)`)
})

// parse reads one line. It returns false for a line without a CAN frame: head, comments,
// statistics, other buses, transmit requests.
func (a *ascState) parse(line []byte, f *Frame) (bool, error) {
	words := strings.Fields(string(line))
	switch {
	case strings.EqualFold(words[0], "base"):
		return false, a.parseBase(words)
	case ascText().Match(line):
		return false, nil
	}
	at, ok := parseSeconds(words[0])
	if !ok || len(words) < 2 {
		return false, fmt.Errorf("%.60q is neither TIME CHANNEL FRAME nor a comment", line)
	}
	if a.relative {
		at += a.last
	}
	if at < 0 {
		return false, fmt.Errorf("time %s is too large", words[0])
	}
	a.last, f.Time = at, at
	words = words[1:]
	if strings.EqualFold(words[0], "CANFD") {
		return a.parseFD(words[1:], f)
	}
	if _, err := strconv.ParseUint(words[0], 10, 16); err != nil {
		if len(words) > 3 && (words[2] == "Rx" || words[2] == "Tx") && (words[3] == "d" || words[3] == "r") {
			return false, fmt.Errorf("channel %.20q is not a number", words[0])
		}
		return false, nil // an entry of another bus or of the measurement
	}
	f.Channel = words[0]
	return a.parseClassic(words[1:], f)
}

// parseBase reads base hex|dec timestamps absolute|relative.
func (a *ascState) parseBase(words []string) error {
	for i := 0; i+1 < len(words); i += 2 {
		switch setting := strings.ToLower(words[i] + " " + words[i+1]); setting {
		case "base hex", "base dec":
			a.decimal = setting == "base dec"
		case "timestamps absolute", "timestamps relative":
			a.relative = setting == "timestamps relative"
		default:
			return fmt.Errorf("%q is not base hex|dec timestamps absolute|relative", strings.Join(words, " "))
		}
	}

	return nil
}

// base returns the base of identifiers and data.
func (a *ascState) base() int {
	if a.decimal {
		return 10
	}
	return 16
}

// parseNumber reads a number in the base of the log.
func (a *ascState) parseNumber(text string, bits int) (uint64, error) {
	v, err := strconv.ParseUint(text, a.base(), bits)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number of base %d and %d bits", text, a.base(), bits)
	}
	return v, nil
}

// parseID reads an identifier; a trailing x marks an extended one.
func (a *ascState) parseID(text string, f *Frame) error {
	digits := strings.TrimRight(text, "xX")
	id, err := a.parseNumber(digits, 32)
	if err != nil {
		return fmt.Errorf("identifier: %w; export a log with names again with numbers", err)
	}
	return f.setID(id, len(digits) < len(text))
}

// setDirection sets f.Sent and reports whether the frame was on the bus.
func (f *Frame) setDirection(text string) (onBus, isFrame bool) {
	switch strings.ToLower(text) {
	case "rx":
		return true, true
	case "tx":
		f.Sent = true
		return true, true
	}

	return false, strings.EqualFold(text, "txrq")
}

// parseClassic reads ID DIRECTION d|r DLC BYTES, or ErrorFrame.
func (a *ascState) parseClassic(words []string, f *Frame) (bool, error) {
	if len(words) == 0 {
		return false, errors.New("channel without a frame")
	}
	switch strings.ToLower(words[0]) {
	case "errorframe":
		f.ID, f.Len = can.ERR, 8
		return true, nil
	case "statistic:", "overloadframe":
		return false, nil
	}
	if len(words) < 2 {
		return false, fmt.Errorf("frame %.20q without a direction", words[0])
	}
	onBus, isFrame := f.setDirection(words[1])
	_, noID := a.parseNumber(strings.TrimRight(words[0], "xX"), 32)
	switch {
	case !isFrame && noID != nil:
		return false, nil // an entry of another kind, such as J1939TP
	case !isFrame:
		return false, fmt.Errorf("direction %.20q is not Rx, Tx or TxRq", words[1])
	case !onBus:
		return false, nil
	case len(words) < 3:
		return false, errors.New("the letter d or r after the direction is missing")
	}
	kind := strings.ToLower(words[2])
	if kind != "d" && kind != "r" {
		return false, fmt.Errorf("%.20q after the direction is not d or r", words[2])
	}
	if err := a.parseID(words[0], f); err != nil {
		return false, err
	}
	if words = words[3:]; kind == "r" {
		f.ID |= can.RTR
		if len(words) > 0 { // newer versions write Length = ... here, which is ignored
			n, _ := a.parseNumber(words[0], 4)
			f.Len = uint8(min(n, 8))
		}

		return true, nil
	}

	if len(words) == 0 {
		return false, errors.New("the length after d is missing")
	}
	n, err := a.parseNumber(words[0], 4)
	if err != nil {
		return false, fmt.Errorf("length: %w", err)
	}
	f.Len = uint8(min(n, 8)) // codes above 8 are valid and mean 8
	return true, parseBytes(words[1:], a.base(), 1, f)
}

// parseFD reads CHANNEL DIRECTION ID [NAME] BRS ESI DLC LENGTH BYTES.
func (a *ascState) parseFD(words []string, f *Frame) (bool, error) {
	if len(words) < 3 {
		return false, errors.New("CANFD without channel, direction and identifier")
	}
	f.Channel = words[0]
	onBus, isFrame := f.setDirection(words[1])
	switch {
	case onBus && strings.EqualFold(words[2], "ErrorFrame"):
		f.ID, f.Len = can.ERR, 8
		return true, nil
	case !isFrame:
		return false, fmt.Errorf("CANFD: direction %.20q is not Rx or Tx", words[1])
	case !onBus:
		return false, nil
	}

	if err := a.parseID(words[2], f); err != nil {
		return false, err
	}
	words = words[3:]
	if len(words) > 0 && words[0] != "0" && words[0] != "1" {
		words = words[1:] // name of the frame
	}
	if len(words) < 4 {
		return false, errors.New("CANFD without BRS, ESI, length code and length")
	}
	for i, bit := range [...]uint8{can.FlagBRS, can.FlagESI} {
		switch words[i] {
		case "0":
		case "1":
			f.Flags |= bit
		default:
			return false, fmt.Errorf("CANFD: %.20q is not 0 or 1: BRS and ESI", words[i])
		}
	}

	code, err := strconv.ParseUint(words[2], 16, 4)
	n, err2 := strconv.ParseUint(words[3], 10, 8)
	if err != nil || err2 != nil || n > 64 {
		return false, fmt.Errorf("CANFD: length code %.20q and length %.20q: they go to f and to 64", words[2], words[3])
	}
	f.Len = uint8(n)
	if n == 0 && code > 0 { // a remote frame, which is classic
		f.ID, f.Flags, f.Len = f.ID|can.RTR, 0, uint8(min(code, 8))
		return true, nil
	}

	f.Flags |= can.FlagFDF
	if err := parseBytes(words[4:], a.base(), 1, f); err != nil {
		return false, err
	}
	f.Len = can.Lengths[can.DLC(f.Len)]
	return true, nil
}
