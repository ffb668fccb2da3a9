package messages

import (
	"fmt"
	"math"
	"slices"

	"lockstep/io/can"
)

// Flaw is an impossible entry of a database, and its repair.
type Flaw struct {
	Line    int    // line in Database.File, from 1; 0 if there is no file
	Message string // name of the message
	Signal  string // name of the signal; "" if the flaw is in the message itself
	Err     error  // description of the flaw
	Remedy  string // change that Repair made
}

// String returns message, signal and error in one line.
func (f *Flaw) String() string {
	if f.Signal == "" {
		return fmt.Sprintf("message %q: %v", f.Message, f.Err)
	}
	return fmt.Sprintf("message %q: signal %q: %v", f.Message, f.Signal, f.Err)
}

// Error is the error of Check.
type Error struct {
	File string // name of the database file
	Flaw
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.String()
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, &e.Flaw)
}

// Check returns the first flaw that Repair would repair, as an *Error: a name or identifier
// used twice, an identifier or a length that CAN does not have, a factor of zero, or a
// signal that is empty, beyond its message, overlaps another one of the same frames
// (unless MayOverlap) or has an invalid multiplexor.
func (db *Database) Check() error {
	tried := Database{Messages: slices.Clone(db.Messages)}
	for i := range tried.Messages {
		tried.Messages[i].Signals = slices.Clone(tried.Messages[i].Signals)
	}
	if flaws := tried.Repair(); len(flaws) > 0 {
		return &Error{db.File, flaws[0]}
	}
	return nil
}

// check checks the message without its signals.
func (m *Message) check() error {
	switch id := m.ID &^ can.EFF; {
	case m.lacksExtendedBit():
		return fmt.Errorf("identifier 0x%X has more than 11 bits and is not marked as extended (bit 31)", id)
	case id > can.MaskEFF:
		return fmt.Errorf("identifier 0x%X has more than 29 bits", id)
	case m.J1939 && m.Len > MaxLong:
		return fmt.Errorf("a J1939 message has up to %d bytes, not %d", MaxLong, m.Len)
	case m.Long():
	case m.Len != FrameLen(m.Len):
		return fmt.Errorf("no CAN frame has %d bytes: 0 to 8, or with CAN FD 12, 16, 20, 24, 32, 48, 64", m.Len)
	}

	return nil
}

// lacksExtendedBit reports whether ID needs 29 bits but is not marked as extended.
func (m *Message) lacksExtendedBit() bool { return can.MaskSFF < m.ID && m.ID <= can.MaskEFF }

// MaxLong is the length of the longest J1939 message, bytes.
const MaxLong = 1785

// Long reports whether several frames carry the message.
func (m *Message) Long() bool { return m.J1939 && m.Len > 8 }

// FrameLen returns the length of the smallest frame that holds n bytes, -1 if none does.
func FrameLen(n int) int {
	if n < 0 || n > 64 {
		return -1
	}
	return int(can.Lengths[can.DLC(uint8(n))])
}

// check checks bits and limits of s, apart from other signals, in a message of the given length.
func (s *Signal) check(bytes int) error {
	for _, v := range []float64{s.Factor, s.Offset, s.Min, s.Max} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("(%g,%g) [%g|%g] is not finite", s.Factor, s.Offset, s.Min, s.Max)
		}
	}

	if s.Len < 1 || s.Len > 64 {
		return fmt.Errorf("length %d is not 1 to 64 bits", s.Len)
	}
	if _, last := s.Span(); s.Start < 0 || last >= bytes {
		return fmt.Errorf("%d|%d does not fit the message's %d bytes", s.Start, s.Len, bytes)
	}
	return nil
}

// overlaps reports whether two signals of a message have a bit in common.
func (s *Signal) overlaps(o *Signal) bool {
	first, last := s.Span()
	other, otherLast := o.Span()
	if last < other || otherLast < first {
		return false
	}
	a, b, origin := *s, *o, 8*min(first, other)
	a.Start, b.Start = s.Start-origin, o.Start-origin // within 17 bytes
	bits, _ := a.Bits()
	otherBits, _ := b.Bits()
	return bits.Overlaps(&otherBits)
}

// Repair changes db until Check passes, and returns the changes. It removes entries that
// have no sensible meaning and keeps all others.
func (db *Database) Repair() []Flaw {
	r := repairer{ids: map[uint32]Message{}}
	names := newScope()
	for i := range db.Messages {
		names.all[db.Messages[i].Name] = true
	}
	preserved := db.Messages[:0]
	for _, m := range db.Messages {
		r.message, r.names = &m, names
		if r.repairMessage() {
			r.makeNameUnique(&m.Name, "", m.Line)
			r.repairSignals()
			preserved = append(preserved, m)
		}
	}

	clear(db.Messages[len(preserved):])
	db.Messages = preserved
	return r.flaws
}

const leftOut = "left out"

// repairer holds the state of Repair.
type repairer struct {
	flaws   []Flaw
	ids     map[uint32]Message // messages by identifier, with their names in the file
	names   scope              // names of messages, or of the signals of message
	message *Message           // message under repair
}

// scope holds the names of all messages, or of the signals of one message.
type scope struct {
	all   map[string]bool // names in use, old and new
	lines map[string]int  // line of the first use of a name
	count map[string]int  // number of uses of a name
}

func newScope() scope {
	return scope{map[string]bool{}, map[string]int{}, map[string]int{}}
}

// addFlaw adds a flaw of the message, or of one of its signals.
func (r *repairer) addFlaw(line int, signal string, err error, remedy string) {
	r.flaws = append(r.flaws, Flaw{line, r.message.Name, signal, err, remedy})
}

// repairMessage repairs the message without its signals; false means to leave it out.
func (r *repairer) repairMessage() bool {
	m := r.message
	if m.lacksExtendedBit() {
		err := m.check()
		m.ID |= can.EFF
		r.addFlaw(m.Line, "", err, "taken as extended")
	}

	err := m.check()
	if l := FrameLen(m.Len); l > m.Len && !m.J1939 {
		m.Len = l
		if long := err; m.check() == nil {
			r.addFlaw(m.Line, "", long, fmt.Sprintf("taken as %d", l))
			err = nil
		}
	}

	if by, is := r.ids[m.ID]; err == nil && is {
		err = fmt.Errorf("identifier 0x%X is taken by message %q in line %d", m.ID&can.MaskEFF, by.Name, by.Line)
	}
	if err != nil {
		r.addFlaw(m.Line, "", err, leftOut)
		return false
	}

	r.ids[m.ID] = *m
	return true
}

// makeNameUnique changes *name if it is in use already. signal is the name of the signal, or "" if
// *name is that of a message.
func (r *repairer) makeNameUnique(name *string, signal string, line int) {
	n := &r.names
	n.count[*name]++
	if n.count[*name] == 1 {
		n.lines[*name] = line
		return
	}

	other := ""
	for other == "" || n.all[other] {
		other = fmt.Sprintf("%s_%d", *name, n.count[*name])
		n.count[*name]++
	}

	n.count[*name]--
	r.addFlaw(line, signal, fmt.Errorf("the name is taken by line %d", n.lines[*name]), "called "+other)
	*name, n.all[other] = other, true
}

// repairSignals repairs the signals of the message.
func (r *repairer) repairSignals() {
	m := r.message
	r.names = newScope()
	for i := range m.Signals {
		r.names.all[m.Signals[i].Name] = true
	}
	r.filterSignals(func(s *Signal) error {
		if s.Factor == 0 {
			s.Factor = 1
			r.addFlaw(s.Line, s.Name, fmt.Errorf("the factor is 0"), "taken as 1")
		}

		if s.Float && s.Len != 32 && s.Len != 64 {
			s.Float = false
			r.addFlaw(s.Line, s.Name, fmt.Errorf("a float has 32 or 64 bits, not %d", s.Len), "taken as an integer")
		}

		err := s.check(m.Len)
		if err == nil {
			r.makeNameUnique(&s.Name, s.Name, s.Line)
		}
		return err
	})
	for before := -1; before != len(m.Signals); { // a signal without its multiplexor is left out, too
		before = len(m.Signals)
		r.filterSignals(m.checkMux)
	}

	chains := make([][]*Signal, len(m.Signals))
	for i := range m.Signals {
		s := &m.Signals[i]
		chains[i] = m.Selectors(s)
		for j := range i {
			if !s.MayOverlap && s.overlaps(&m.Signals[j]) && canCoexist(chains[i], chains[j]) {
				s.MayOverlap = true
				r.addFlaw(s.Line, s.Name, fmt.Errorf("%d|%d overlaps signal %q", s.Start, s.Len, m.Signals[j].Name), "both stay")
			}
		}
	}
}

// filterSignals removes the signals of the message that fail the check.
func (r *repairer) filterSignals(check func(*Signal) error) {
	preserved := make([]Signal, 0, len(r.message.Signals)) // check may read the other signals
	for i := range r.message.Signals {
		s := &r.message.Signals[i]
		if err := check(s); err != nil {
			r.addFlaw(s.Line, s.Name, err, leftOut)
			continue
		}

		preserved = append(preserved, *s)
	}

	if len(preserved) < len(r.message.Signals) {
		r.message.Signals = preserved
	}
}
