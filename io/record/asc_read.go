package record

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"lockstep/io/can"
)

// ascState is what lines of an ASC log say about those that follow.
type ascState struct {
	decimal  bool  // identifiers and data are decimal
	relative bool  // times count from the line before
	last     int64 // time of the line before, ns
}

// isASC tells by its first line.
func isASC(head []byte) bool {
	head = bytes.ToLower(head)
	for _, word := range [...]string{"date ", "base ", "begin ", "//", "internal events", "no internal events"} {
		if bytes.HasPrefix(head, []byte(word)) {
			return true
		}
	}
	words := strings.Fields(string(head))
	if len(words) < 4 || !strings.Contains(words[0], ".") {
		return false
	}
	_, ok := parseSeconds(words[0])
	return ok
}

// parse reads one line. What is no frame of a CAN bus is skipped: the head, comments,
// statistics, other buses, requests to send.
func (a *ascState) parse(line []byte, f *Logged) (bool, error) {
	words := strings.Fields(string(line))
	if strings.EqualFold(words[0], "base") {
		return false, a.base(words)
	}
	at, ok := parseSeconds(words[0])
	if !ok || !strings.Contains(words[0], ".") || len(words) < 3 {
		return false, nil
	}
	if a.relative {
		at += a.last
	}
	a.last, f.Time = at, at
	words = words[1:]
	if strings.EqualFold(words[0], "CANFD") {
		return a.fd(words[1:], f)
	}
	if _, err := strconv.ParseUint(words[0], 10, 16); err != nil {
		return false, nil
	}
	f.Channel = words[0]
	return a.classic(words[1:], f)
}

// base reads base hex|dec timestamps absolute|relative.
func (a *ascState) base(words []string) error {
	for i := 0; i+1 < len(words); i += 2 {
		switch strings.ToLower(words[i] + " " + words[i+1]) {
		case "base hex":
			a.decimal = false
		case "base dec":
			a.decimal = true
		case "timestamps absolute":
			a.relative = false
		case "timestamps relative":
			a.relative = true
		default:
			return fmt.Errorf("%q is not base hex|dec timestamps absolute|relative", strings.Join(words, " "))
		}
	}
	return nil
}

// number reads a number in the base of the log.
func (a *ascState) number(text string, bits int) (uint64, error) {
	base := 16
	if a.decimal {
		base = 10
	}
	v, err := strconv.ParseUint(text, base, bits)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number of base %d and %d bits", text, base, bits)
	}
	return v, nil
}

// identifier reads one; an x behind it says that it is extended.
func (a *ascState) identifier(text string, f *Logged) error {
	digits := strings.TrimRight(text, "xX")
	id, err := a.number(digits, 32)
	if err != nil {
		return fmt.Errorf("identifier: %w; a log with names has to be exported with numbers", err)
	}
	return f.identify(id, len(digits) < len(text))
}

// direction tells whether a frame was on the bus, and whose it was.
func (f *Logged) direction(text string) (onBus, isFrame bool) {
	switch strings.ToLower(text) {
	case "rx":
		return true, true
	case "tx":
		f.Sent = true
		return true, true
	}
	return false, strings.EqualFold(text, "txrq")
}

// classic reads ID DIRECTION d|r DLC BYTES, or ErrorFrame.
func (a *ascState) classic(words []string, f *Logged) (bool, error) {
	if strings.EqualFold(words[0], "ErrorFrame") {
		f.ID, f.Len = can.ERR, 8
		return true, nil
	}
	if len(words) < 3 {
		return false, nil
	}
	if onBus, _ := f.direction(words[1]); !onBus {
		return false, nil
	}
	kind := strings.ToLower(words[2])
	if kind != "d" && kind != "r" {
		return false, nil
	}
	if err := a.identifier(words[0], f); err != nil {
		return false, err
	}
	words = words[3:]
	if kind == "r" {
		f.ID |= can.RTR
		if len(words) == 0 {
			return true, nil
		}
	}
	if len(words) == 0 {
		return false, errors.New("the length behind d is missing")
	}
	n, err := a.number(words[0], 4)
	switch {
	case err != nil && kind == "r":
		return true, nil // Length = ... of newer versions, and no DLC
	case err != nil:
		return false, fmt.Errorf("length: %w", err)
	}
	f.Len = uint8(min(n, 8)) // codes above 8 are legal and mean 8
	if kind == "r" {
		return true, nil
	}
	return true, a.data(words[1:], f)
}

// fd reads CHANNEL DIRECTION ID [NAME] BRS ESI DLC LENGTH BYTES.
func (a *ascState) fd(words []string, f *Logged) (bool, error) {
	if len(words) < 3 {
		return false, errors.New("CANFD without channel, direction and identifier")
	}
	f.Channel = words[0]
	onBus, isFrame := f.direction(words[1])
	switch {
	case onBus && strings.EqualFold(words[2], "ErrorFrame"):
		f.ID, f.Len = can.ERR, 8
		return true, nil
	case !isFrame:
		return false, fmt.Errorf("CANFD: direction %.20q is not Rx or Tx", words[1])
	case !onBus:
		return false, nil
	}
	if err := a.identifier(words[2], f); err != nil {
		return false, err
	}
	words = words[3:]
	if len(words) > 0 && words[0] != "0" && words[0] != "1" {
		words = words[1:] // the frame's name
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
	if err := a.data(words[4:], f); err != nil {
		return false, err
	}
	f.Len = fdLengths[dlc(f.Len)]
	return true, nil
}

// data reads the bytes of a frame.
func (a *ascState) data(words []string, f *Logged) error {
	if len(words) < int(f.Len) {
		return fmt.Errorf("%d bytes of data where the length says %d", len(words), f.Len)
	}
	for i := range f.Len {
		v, err := a.number(words[i], 8)
		if err != nil {
			return fmt.Errorf("data: %w", err)
		}
		f.Data[i] = uint8(v)
	}
	return nil
}
