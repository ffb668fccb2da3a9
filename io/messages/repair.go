package messages

import (
	"fmt"

	"lockstep/io/can"
)

// Flaw is something in a database that cannot be, and what Repair made of it.
type Flaw struct {
	Line int // in Database.File
	Text string
}

// Repair changes db until Check finds nothing in it and returns what it changed.
// What has no sensible meaning is left out; everything else stays.
func (db *Database) Repair() []Flaw {
	r := repairer{ids: map[uint32]string{}, names: newScope()}
	for i := range db.Messages {
		r.names.all[db.Messages[i].Name] = true
	}
	kept := db.Messages[:0]
	for _, m := range db.Messages {
		if r.message(&m) {
			r.rename(&m.Name, m.Line)
			kept = append(kept, m)
		}
	}
	clear(db.Messages[len(kept):])
	db.Messages = kept
	for i := range kept {
		r.at = &kept[i]
		r.signals()
	}
	return r.flaws
}

const leftOut = "left out"

// repairer is Repair at work.
type repairer struct {
	flaws []Flaw
	ids   map[uint32]string // the message with an identifier
	names scope             // of messages, or of the signals of at
	at    *Message          // whose signals are repaired
}

// scope holds the names of messages, or of the signals of one.
type scope struct {
	all   map[string]bool // names that must not be made up
	lines map[string]int  // where a name is given first
	count map[string]int  // how many have it
}

func newScope() scope {
	return scope{map[string]bool{}, map[string]int{}, map[string]int{}}
}

// note adds a flaw.
func (r *repairer) note(line int, what string, err error, remedy string) {
	r.flaws = append(r.flaws, Flaw{line, fmt.Sprintf("%s: %v; %s", what, err, remedy)})
}

// message repairs m without its signals; it returns false to leave m out.
func (r *repairer) message(m *Message) bool {
	what := fmt.Sprintf("message %q", m.Name)
	if m.unmarked() {
		err := m.check()
		m.ID |= can.EFF
		r.note(m.Line, what, err, "taken as extended")
	}
	err := m.check()
	if l := FrameLen(m.Len); l > m.Len && !m.J1939 {
		m.Len = l
		if long := err; m.check() == nil {
			r.note(m.Line, what, long, fmt.Sprintf("taken as %d", l))
			err = nil
		}
	}
	if other, taken := r.ids[m.ID]; err == nil && taken {
		err = errTakenID(m.ID, other)
	}
	if err != nil {
		r.note(m.Line, what, err, leftOut)
		return false
	}
	r.ids[m.ID] = m.Name
	return true
}

// rename gives what is called *name another name if that is taken.
func (r *repairer) rename(name *string, line int) {
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
	r.note(line, r.what(*name), errTaken(n.lines[*name]), "called "+other)
	*name, n.all[other] = other, true
}

// what is a signal of at, or a message, for messages.
func (r *repairer) what(name string) string {
	if r.at == nil {
		return fmt.Sprintf("message %q", name)
	}
	return fmt.Sprintf("message %q: signal %q", r.at.Name, name)
}

// signals repairs the signals of at.
func (r *repairer) signals() {
	m := r.at
	r.names = newScope()
	for i := range m.Signals {
		r.names.all[m.Signals[i].Name] = true
	}
	r.keep(func(s *Signal) error {
		r.numbers(s)
		err := s.check(m.Len)
		if err == nil {
			r.rename(&s.Name, s.Line)
		}
		return err
	})
	for before := -1; before != len(m.Signals); { // who loses its multiplexor goes, too
		before = len(m.Signals)
		r.keep(newFinder(m).checkMux)
	}
	f := newFinder(m)
	for i := range m.Signals {
		s := &m.Signals[i]
		f.enter(s)
		if by := f.collision(i); by != nil && !s.Shares {
			s.Shares = true
			r.note(s.Line, r.what(s.Name), errOverlap(s, by), "both stay")
		}
	}
}

// keep leaves out the signals of at that have an error.
func (r *repairer) keep(check func(*Signal) error) {
	kept := make([]Signal, 0, len(r.at.Signals)) // check may look at the others
	for i := range r.at.Signals {
		s := &r.at.Signals[i]
		if err := check(s); err != nil {
			r.note(s.Line, r.what(s.Name), err, leftOut)
			continue
		}
		kept = append(kept, *s)
	}
	if len(kept) < len(r.at.Signals) {
		r.at.Signals = kept
	}
}

// numbers repairs what s is by itself.
func (r *repairer) numbers(s *Signal) {
	if s.Factor == 0 {
		s.Factor = 1
		r.note(s.Line, r.what(s.Name), problemf(ErrScale, "the factor is 0"), "taken as 1")
	}
	if s.oddFloat() {
		s.Float = false
		r.note(s.Line, r.what(s.Name), problemf(ErrFloat, "a float of %d bits, not 32 or 64", s.Len), "taken as an integer")
	}
}
