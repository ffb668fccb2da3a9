package messages

import (
	"math"

	"lockstep/io/can"
)

// Check returns the first thing in db that cannot be, as an *Error: a name or identifier
// given twice, an identifier or a length CAN does not have, a signal that is
// empty, beyond its message, over another one of the same frames (unless it
// Shares) or under a multiplexor that is none, a factor of zero.
func (db *Database) Check() error {
	names, ids := map[string]int{}, map[uint32]string{}
	for i := range db.Messages {
		m := &db.Messages[i]
		err := m.check()
		line, twice := names[m.Name]
		other, taken := ids[m.ID]
		switch {
		case err != nil:
		case twice:
			err = errTaken(line)
		case taken:
			err = errTakenID(m.ID, other)
		}
		if err != nil {
			return &Error{File: db.File, Line: m.Line, Message: m.Name, Err: err}
		}
		names[m.Name], ids[m.ID] = m.Line, m.Name
		if at, err := m.checkSignals(); err != nil {
			return &Error{File: db.File, Line: at.Line, Message: m.Name, Signal: at.Name, Err: err}
		}
	}
	return nil
}

func errTaken(line int) error { return problemf(ErrName, "the name is taken by line %d", line) }

func errTakenID(id uint32, by string) error {
	return problemf(ErrIdentifier, "identifier 0x%X is taken by message %q", id&can.MaskEFF, by)
}

// check is Check for the message without its signals.
func (m *Message) check() error {
	switch id := m.ID &^ can.EFF; {
	case m.unmarked():
		return problemf(ErrIdentifier, "identifier 0x%X has more than 11 bits and no mark of an extended one (bit 31)", id)
	case id > can.MaskEFF:
		return problemf(ErrIdentifier, "identifier 0x%X has more than 29 bits", id)
	case m.J1939 && m.Len > 8:
		return problemf(ErrLength, "J1939 sends %d bytes in several frames", m.Len)
	case m.Len != FrameLen(m.Len):
		return problemf(ErrLength, "no CAN frame has %d bytes: 0 to 8, or with CAN FD 12, 16, 20, 24, 32, 48, 64", m.Len)
	}
	return nil
}

// unmarked tells whether ID must be an extended one and does not say so.
func (m *Message) unmarked() bool { return can.MaskSFF < m.ID && m.ID <= can.MaskEFF }

// FrameLen is the least length of a frame that holds n bytes, -1 if none does.
func FrameLen(n int) int {
	if 0 <= n && n <= 8 {
		return n
	}
	for _, l := range []int{12, 16, 20, 24, 32, 48, 64} {
		if 0 <= n && n <= l {
			return l
		}
	}
	return -1
}

// checkSignals is Check for the signals of m; at is the one with the error.
func (m *Message) checkSignals() (at *Signal, err error) {
	lines := map[string]int{}
	for i := range m.Signals {
		s := &m.Signals[i]
		if line, twice := lines[s.Name]; twice {
			return s, errTaken(line)
		}
		lines[s.Name] = s.Line
		if err := s.check(m.Len); err != nil {
			return s, err
		}
	}
	f := newFinder(m)
	for i := range m.Signals {
		s := &m.Signals[i]
		if err := f.checkMux(s); err != nil {
			return s, err
		}
		f.enter(s)
		if by := f.collision(i); by != nil && !s.Shares {
			return s, errOverlap(s, by)
		}
	}
	return nil, nil
}

func errOverlap(s, by *Signal) error {
	return problemf(ErrOverlap, "%d|%d overlaps signal %q", s.Start, s.Len, by.Name)
}

// check is Check for what s is by itself, in a message of so many bytes.
func (s *Signal) check(bytes int) error {
	for _, v := range []float64{s.Factor, s.Offset, s.Min, s.Max} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return problemf(ErrScale, "(%g,%g) [%g|%g] is not finite", s.Factor, s.Offset, s.Min, s.Max)
		}
	}
	switch {
	case s.Len < 1 || s.Len > 64:
		return problemf(ErrPlace, "length %d is not 1 to 64 bits", s.Len)
	case s.Factor == 0:
		return problemf(ErrScale, "the factor is 0")
	case s.oddFloat():
		return problemf(ErrFloat, "a float of %d bits, not 32 or 64", s.Len)
	}
	if bits, ok := s.Bits(); !ok || bits.Bytes() > bytes {
		return problemf(ErrPlace, "%d|%d does not fit the message's %d bytes", s.Start, s.Len, bytes)
	}
	return nil
}

func (s *Signal) oddFloat() bool { return s.Float && s.Len != 32 && s.Len != 64 }
