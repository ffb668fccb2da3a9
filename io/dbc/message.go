package dbc

import (
	"fmt"
	"strconv"
	"strings"

	"lockstep/io/messages"
)

// Names that the format uses for a missing node or frame.
const (
	nobody      = "Vector__XXX"
	independent = "VECTOR__INDEPENDENT_SIG_MSG" // message that holds signals without a frame
)

// parseMessage reads BO_ id name: length transmitter.
func (p *parser) parseMessage() {
	p.skipSignals = true // until the message is read
	id := p.integer("the identifier", 32)
	p.skipped[id] = true
	m := messages.Message{Line: p.keyword.line, ID: uint32(id)} // bit 31 is can.EFF
	m.Name = p.identifier("the message's name")
	p.expect(":")
	m.Len = int(p.integer("the message's length in bytes", 31))
	if p.onSameLine() {
		m.Sender = node(p.identifier("the transmitter"))
	}
	p.expectLineEnd()
	if m.Name == independent {
		return
	}
	p.skipSignals = false
	if _, twice := p.messages[id]; !twice {
		p.messages[id] = len(p.db.Messages)
	}
	p.db.Messages = append(p.db.Messages, m)
}

// node returns the name of a node, "" for nobody.
func node(name string) string {
	if name == nobody {
		return ""
	}
	return name
}

// onSameLine reports whether the current token is on the line of the token before.
func (p *parser) onSameLine() bool { return p.tok.kind != end && !p.tok.first }

// expectLineEnd tolerates and skips further tokens on the line.
func (p *parser) expectLineEnd() {
	if t := p.tok; p.onSameLine() {
		p.tolerate(t, t.format()+" where the end of the line should be", "skipped")
		p.skipLine()
	}
}

// parseSignal reads SG_ name mux: start|length@order sign (factor,offset) [min|max]
// unit receivers.
func (p *parser) parseSignal() {
	if p.skipSignals {
		p.skipLine()
		return
	}

	if len(p.db.Messages) == 0 {
		p.fail(p.keyword, "a message (BO_) before the first signal")
	}
	i := len(p.db.Messages) - 1
	m := &p.db.Messages[i]
	s := messages.Signal{Line: p.keyword.line}
	s.Name = p.identifier("the signal's name")
	if _, twice := p.signals[signalKey{i, s.Name}]; !twice {
		p.signals[signalKey{i, s.Name}] = -1 // until the signal is read
	}
	bare := p.tok
	if p.tok.kind == name && p.parseMux(&s) {
		p.unnumbered = append(p.unnumbered, unnumberedMux{signalKey{i, s.Name}, bare})
	}
	p.parseLayout(&s)
	for p.onSameLine() && p.tok.kind != text && wordForm.MatchString(p.src[p.tok.at:]) {
		if name := node(p.identifier("a receiver")); name != "" {
			s.Receivers = append(s.Receivers, name)
		}
		p.accept(",")
	}

	p.expectLineEnd()
	if p.signals[signalKey{i, s.Name}] < 0 {
		p.signals[signalKey{i, s.Name}] = len(m.Signals)
	}
	m.Signals = append(m.Signals, s)
}

// parseLayout reads the part of a signal from its colon to its unit.
func (p *parser) parseLayout(s *messages.Signal) {
	p.expect(":")
	s.Start = int(p.integer("the start bit", 31))
	p.expect("|")
	s.Len = int(p.integer("the length in bits", 31))
	p.expect("@")
	s.BigEndian = p.choice("1", "0", "1 (Intel) or 0 (Motorola)")
	const signs = "+ (unsigned) or - (signed)"
	if t := p.tok; p.lenient && t.kind == mark && t.text == "(" {
		p.tolerate(t, t.format()+" where "+signs+" should be", "taken as +")
	} else {
		s.Signed = p.choice("+", "-", signs)
	}

	p.expect("(")
	m := &p.db.Messages[len(p.db.Messages)-1]
	of := fmt.Sprintf("message %q: signal %q: ", m.Name, s.Name)
	s.Factor = p.decimal(of, "the factor")
	p.expect(",")
	s.Offset = p.decimal(of, "the offset")
	p.expect(")")
	p.expect("[")
	limits := p.tok
	s.Min = p.limit(of, "the minimum")
	p.expect("|")
	s.Max = p.limit(of, "the maximum")
	if s.Min > s.Max {
		p.tolerate(limits, fmt.Sprintf("the minimum %g is above the maximum %g", s.Min, s.Max), "taken as no limits")
	}
	p.expect("]")
	s.Unit = strings.TrimSpace(p.quoted("the unit between quotes"))
}

// parseMux reads the multiplexor mark M, m0 or m0M of a signal. It returns true for an m
// without a number.
func (p *parser) parseMux(s *messages.Signal) (bare bool) {
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
	case t.text == "m" && p.lenient:
		return true
	case !muxed || err != nil:
		p.fail(t, want)
	default:
		s.Multiplexor, s.Ranges = isMultiplexor, [][2]uint64{{value, value}}
	}

	return false
}
