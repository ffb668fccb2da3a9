package sigmap

import (
	"fmt"
	"math"

	"lockstep/io/can"
)

// Check returns the first thing in db that cannot be: a name or identifier
// given twice, an identifier or a length CAN does not have, a signal that is
// empty, beyond its message or over another one, a factor of zero.
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
			err = fmt.Errorf("the name is taken by line %d", line)
		case taken:
			err = fmt.Errorf("identifier 0x%X is taken by message %q", m.ID&can.MaskEFF, other)
		}
		if err != nil {
			return fmt.Errorf("%ssigmap: message %q: %w", db.at(m.Line), m.Name, err)
		}
		names[m.Name], ids[m.ID] = m.Line, m.Name
		if at, err := m.checkSignals(); err != nil {
			return fmt.Errorf("%ssigmap: message %q: signal %q: %w", db.at(at.Line), m.Name, at.Name, err)
		}
	}
	return nil
}

// check is Check for the message without its signals.
func (m *Message) check() error {
	switch id := m.ID &^ can.EFF; {
	case m.ID&can.EFF == 0 && id > can.MaskSFF:
		return fmt.Errorf("identifier 0x%X has more than 11 bits and no mark of an extended one (bit 31)", id)
	case id > can.MaskEFF:
		return fmt.Errorf("identifier 0x%X has more than 29 bits", id)
	}
	switch m.Len {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64:
		return nil
	}
	return fmt.Errorf("no CAN frame has %d bytes: 0 to 8, or with CAN FD 12, 16, 20, 24, 32, 48, 64", m.Len)
}

// checkSignals is Check for the signals of m; at is the one with the error.
func (m *Message) checkSignals() (at *Signal, err error) {
	lines := map[string]int{}
	var plain, muxed Bits        // taken by the plain signals, and by all others
	groups := map[string]*Bits{} // taken by the signals of one multiplexor value
	for i := range m.Signals {
		s := &m.Signals[i]
		if line, twice := lines[s.Name]; twice {
			return s, fmt.Errorf("the name is taken by line %d", line)
		}
		lines[s.Name] = s.Line
		if err := s.check(); err != nil {
			return s, err
		}
		bits, ok := s.Bits()
		if !ok || bits.Bytes() > m.Len {
			return s, fmt.Errorf("%d|%d does not fit the message's %d bytes", s.Start, s.Len, m.Len)
		}
		own, taken := &plain, plain
		if s.plain() {
			taken.join(&muxed)
		} else {
			if own = groups[s.Mux]; own == nil {
				own = &Bits{}
				groups[s.Mux] = own
			}
			taken.join(own)
			muxed.join(&bits)
		}
		if bits.overlaps(&taken) {
			return s, fmt.Errorf("%d|%d overlaps signal %q", s.Start, s.Len, m.under(i, &bits))
		}
		own.join(&bits)
	}
	return nil, nil
}

// check is Check for what s is by itself.
func (s *Signal) check() error {
	for _, v := range []float64{s.Factor, s.Offset, s.Min, s.Max} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("(%g,%g) [%g|%g] is not finite", s.Factor, s.Offset, s.Min, s.Max)
		}
	}
	switch {
	case s.Len < 1 || s.Len > 64:
		return fmt.Errorf("length %d is not 1 to 64 bits", s.Len)
	case s.Factor == 0:
		return fmt.Errorf("the factor is 0")
	case s.Float && s.Len != 32 && s.Len != 64:
		return fmt.Errorf("a float of %d bits, not 32 or 64", s.Len)
	}
	return nil
}

// under names the first signal before i that shares bits with it and can be in
// the same frame.
func (m *Message) under(i int, bits *Bits) string {
	at := &m.Signals[i]
	for j := range m.Signals[:i] {
		s := &m.Signals[j]
		together := s.plain() || at.plain() || s.Mux == at.Mux
		if b, _ := s.Bits(); together && b.overlaps(bits) {
			return s.Name
		}
	}
	return ""
}

// plain tells whether s is in every frame of its message.
func (s *Signal) plain() bool { return s.Mux == "" || s.Mux == "M" }
