package dbc

import (
	"fmt"
	"strconv"
	"strings"

	"lockstep/io/messages"
)

// What the format writes where there is no node or no frame.
const (
	nobody      = "Vector__XXX"
	independent = "VECTOR__INDEPENDENT_SIG_MSG" // the message of signals without a frame
)

// message reads BO_ id name: length transmitter.
func (p *parser) message(word token) {
	p.skip = true // until it is known to be a message
	id := p.integer("the identifier", 32)
	p.lost[id] = true
	m := messages.Message{Line: word.line, ID: uint32(id)} // bit 31 is can.EFF
	m.Name = p.identifier("the message's name")
	p.expect(":")
	m.Len = int(p.integer("the message's length in bytes", 31))
	if p.onLine() {
		m.Sender = node(p.identifier("the transmitter"))
	}
	p.endOfLine()
	if p.bad != nil || m.Name == independent {
		return
	}
	p.skip = false
	if _, twice := p.messages[id]; !twice {
		p.messages[id] = len(p.db.Messages)
	}
	p.db.Messages = append(p.db.Messages, m)
}

// node is the name of a node, "" for nobody.
func node(name string) string {
	if name == nobody {
		return ""
	}
	return name
}

// onLine tells whether the token is on the line of the one before.
func (p *parser) onLine() bool { return p.tok.kind != end && !p.tok.first }

// endOfLine skips what does not belong to a line.
func (p *parser) endOfLine() {
	if t := p.tok; p.onLine() {
		p.forgive(t, t.spell()+" where the end of the line should be", "skipped")
		p.restOfLine()
	}
}

// signal reads SG_ name mux: start|length@order sign (factor,offset) [min|max]
// unit receivers.
func (p *parser) signal(word token) {
	if p.skip {
		p.restOfLine()
		return
	}
	if len(p.db.Messages) == 0 {
		p.fail(word, "a message (BO_) before the first signal")
		return
	}
	i := len(p.db.Messages) - 1
	m := &p.db.Messages[i]
	s := messages.Signal{Line: word.line}
	s.Name = p.identifier("the signal's name")
	if _, twice := p.signals[place{i, s.Name}]; !twice {
		p.signals[place{i, s.Name}] = -1 // until it is read
	}
	bare := p.tok
	if p.tok.kind == name && p.mux(&s) {
		p.bare = append(p.bare, unnumbered{place{i, s.Name}, bare})
	}
	p.layout(&s)
	for p.onLine() && p.tok.kind != text && wordLen(p.src[p.tok.at:]) > 0 {
		if name := node(p.identifier("a receiver")); name != "" {
			s.Receivers = append(s.Receivers, name)
		}
		p.accept(",")
	}
	p.endOfLine()
	if p.bad != nil {
		return
	}
	if p.signals[place{i, s.Name}] < 0 {
		p.signals[place{i, s.Name}] = len(m.Signals)
	}
	m.Signals = append(m.Signals, s)
}

// layout reads the part of a signal from its colon to its unit.
func (p *parser) layout(s *messages.Signal) {
	p.expect(":")
	s.Start = int(p.integer("the start bit", 31))
	p.expect("|")
	s.Len = int(p.integer("the length in bits", 31))
	p.expect("@")
	s.BigEndian = p.choice("1", "0", "1 (Intel) or 0 (Motorola)")
	const signs = "+ (unsigned) or - (signed)"
	if t := p.tok; p.lenient && t.kind == mark && t.text == "(" {
		p.forgive(t, t.spell()+" where "+signs+" should be", "taken as +")
	} else {
		s.Signed = p.choice("+", "-", signs)
	}
	p.expect("(")
	s.Factor = p.decimal("the factor")
	p.expect(",")
	s.Offset = p.decimal("the offset")
	p.expect(")")
	p.expect("[")
	limits := p.tok
	s.Min = p.decimal("the minimum")
	p.expect("|")
	s.Max = p.decimal("the maximum")
	if s.Min > s.Max {
		p.forgive(limits, fmt.Sprintf("the minimum %g is above the maximum %g", s.Min, s.Max), "taken as no limits")
	}
	p.expect("]")
	s.Unit = strings.TrimSpace(p.quoted("the unit between quotes"))
}

// mux reads a multiplexor's mark: M, m0, m0M. It returns true for an m without a
// number.
func (p *parser) mux(s *messages.Signal) (bare bool) {
	const want = "a colon, or the multiplexor's M, m0, m0M"
	t := p.tok
	if p.advance(); t.text == "M" {
		s.Multiplexor = true
		return false
	}
	number, isMultiplexor := strings.CutSuffix(t.text, "M")
	number, muxed := strings.CutPrefix(number, "m")
	value, err := strconv.ParseUint(number, 10, 64)
	switch {
	case p.bad != nil:
	case t.text == "m" && p.lenient:
		return true
	case !muxed || err != nil:
		p.fail(t, want)
	default:
		s.Multiplexor, s.Ranges = isMultiplexor, [][2]uint64{{value, value}}
	}
	return false
}
