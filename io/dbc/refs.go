package dbc

import (
	"fmt"
	"strconv"
	"strings"

	"lockstep/io/messages"
)

// refs finds the messages and signals that statements refer to.
type refs struct {
	messages   map[uint64]int    // index of a message by its identifier in the file
	signals    map[signalKey]int // index of a signal in its message; -1: it could not be read
	skipped    map[uint64]bool   // identifiers of messages skipped or not readable
	unnumbered []unnumberedMux
}

// signalKey is the index of a message and the name of one of its signals.
type signalKey struct {
	message int
	signal  string
}

// unnumberedMux is a signal whose mark m has no number.
type unnumberedMux struct {
	signalKey
	at token
}

// messageIndex reads an identifier and returns the index of its message, -1 if there is
// none.
func (p *parser) messageIndex() int {
	at := p.tok
	id := p.integer("the identifier", 32)
	if i, ok := p.messages[id]; ok {
		return i
	}
	if !p.skipped[id] {
		p.tolerate(at, fmt.Sprintf("no message has the identifier %d", id), leftOut)
	}
	return -1
}

// unknownSignal is the key of a signal or message that the database does not have.
var unknownSignal = signalKey{message: -1}

// signalIndex reads an identifier and a name; it returns the key of that signal and its index in
// the message, unknownSignal and -1 if there is none.
func (p *parser) signalIndex() (signalKey, int) {
	m, at := p.messageIndex(), p.tok
	where := signalKey{m, p.identifier("the signal's name")}
	switch i, known := p.signals[where]; {
	case known && i >= 0:
		return where, i
	case !known && m >= 0:
		p.tolerate(at, fmt.Sprintf("message %q has no signal %q", p.db.Messages[m].Name, where.signal), leftOut)
	}

	return unknownSignal, -1
}

// messageRef reads an identifier and returns its message; a new one, which is not in the
// database, if there is none.
func (p *parser) messageRef() *messages.Message {
	if i := p.messageIndex(); i >= 0 {
		return &p.db.Messages[i]
	}
	return &messages.Message{}
}

// signalRef reads an identifier and a name and returns the signal; a new one, which is not in
// the database, if there is none.
func (p *parser) signalRef() (s *messages.Signal, ok bool) {
	where, i := p.signalIndex()
	if i < 0 {
		return &messages.Signal{}, false
	}
	return &p.db.Messages[where.message].Signals[i], true
}

// parseSenders reads BO_TX_BU_ id : node,node;
func (p *parser) parseSenders() {
	m := p.messageRef()
	p.expect(":")
	var nodes []string
	for p.tok.kind != end && p.tok.text != ";" && !p.tok.first {
		if name := node(p.identifier("a transmitter")); name != "" {
			nodes = append(nodes, name)
		}
		p.accept(",")
	}

	p.expectSemicolon()
	for _, name := range nodes {
		if m.Sender == "" {
			m.Sender = name
		}
		if name != m.Sender {
			m.OtherSenders = append(m.OtherSenders, name)
		}
	}
}

// parseComment reads CM_ text; for the file, CM_ BO_ id text; for a message, or with
// SG_ id signal, BU_ node, EV_ variable.
func (p *parser) parseComment() {
	const want = "the comment between quotes"
	into, word := new(string), p.tok
	switch {
	case word.kind == text:
	case word.text == "BU_" || word.text == "EV_":
		p.advance()
		p.identifier("a name")
	case word.text == "BO_":
		p.advance()
		into = &p.messageRef().Comment
	case word.text == "SG_":
		p.advance()
		into = p.signalComment()
	case word.kind == number && p.lenient:
		p.tolerate(word, word.format()+" where BO_ should be", "taken as a message's identifier")
		into = &p.messageRef().Comment
	default:
		p.fail(word, want+", or BU_, BO_, SG_, EV_")
	}

	s := p.quoted(want)
	p.expectSemicolon()
	*into = s
}

// signalComment reads the identifier and the name of a signal and returns its Comment
// field. If the name is missing, the comment is for the message.
func (p *parser) signalComment() *string {
	ahead := p.lexer
	if t, _ := ahead.next(); t.kind == text && p.tok.kind == number && p.lenient {
		into, remedy := &p.messageRef().Comment, "taken for the message"
		if *into != "" {
			into, remedy = new(string), leftOut
		}
		p.tolerate(p.tok, "a comment where the signal's name should be", remedy)
		return into
	}

	s, _ := p.signalRef()
	return &s.Comment
}

// parseValues reads VAL_ id signal raw text raw text ...; and skips value tables of
// environment variables.
func (p *parser) parseValues() {
	if p.tok.kind == name {
		p.advance()
		p.parseTable()
		return
	}

	s, _ := p.signalRef()
	s.Values = p.parseTable()
}

// skipValueTable skips VAL_TABLE_ name raw text raw text ...;
func (p *parser) skipValueTable() {
	p.identifier("the table's name")
	p.parseTable()
}

// parseTable reads pairs of a raw value and its text, to the end of the statement.
func (p *parser) parseTable() (list []messages.Value) {
	for p.tok.kind == number {
		raw := p.rawValue("a raw value")
		list = append(list, messages.Value{Raw: raw, Text: p.quoted("the value's text")})
	}

	p.expectSemicolon()
	return list
}

// parseValueType reads SIG_VALTYPE_ id signal : type; type 1 is a float of 32 bits, 2 of 64
// bits.
func (p *parser) parseValueType() {
	s, known := p.signalRef()
	p.accept(":")
	at := p.tok
	kind := p.integer("0, 1 (float) or 2 (double)", 2)
	p.expectSemicolon()
	s.Float = kind != 0
	if known && (kind == 3 || kind == 1 && s.Len == 64 || kind == 2 && s.Len == 32) {
		p.tolerate(at, fmt.Sprintf("%d (1 is float, 2 is double) for a signal of %d bits", kind, s.Len), "the bits decide")
	}
}

// parseMuxValues reads SG_MUL_VAL_ id signal multiplexor low-high, low-high, ...;
func (p *parser) parseMuxValues() {
	s, _ := p.signalRef()
	by := p.identifier("the multiplexor's name")
	var list [][2]uint64
	for {
		low := p.integer("the first value that selects the signal", 64)
		list = append(list, [2]uint64{low, p.parseRangeEnd()})
		if !p.accept(",") && p.tok.kind != number {
			break
		}
	}

	p.expectSemicolon()
	s.MuxedBy, s.Ranges = by, list
}

// parseRangeEnd reads -high, the end of a range, which may look like a negative number.
func (p *parser) parseRangeEnd() uint64 {
	const want = `"-" and the last value that selects the signal`
	if p.accept("-") {
		return p.integer(want, 64)
	}
	return takeNumber(p, want, func(text string) (uint64, error) {
		high, isRange := strings.CutPrefix(text, "-")
		if !isRange {
			return 0, strconv.ErrSyntax
		}
		return strconv.ParseUint(high, 10, 64)
	})
}

// resolveMultiplexors sets the multiplexor of signals that are marked with a value only:
// the multiplexor of the message that is in every frame.
func (p *parser) resolveMultiplexors() {
	for _, b := range p.unnumbered {
		if i := p.signals[b.signalKey]; i >= 0 {
			s, remedy := &p.db.Messages[b.message].Signals[i], "taken as a plain signal"
			if len(p.rootMultiplexors(b.message)) == 0 {
				s.Multiplexor, remedy = true, "taken as M"
			}
			p.tolerate(b.at, `"m" where a multiplexor's M or m0 should be`, remedy)
		}
	}

	for i := range p.db.Messages {
		roots := p.rootMultiplexors(i)
		for j := range p.db.Messages[i].Signals {
			s := &p.db.Messages[i].Signals[j]
			if len(s.Ranges) == 0 || s.MuxedBy != "" || len(roots) == 0 {
				continue
			}
			s.MuxedBy = roots[0]
			if len(roots) > 1 {
				p.tolerate(token{line: s.Line}, fmt.Sprintf("message %q: signal %q: which of %q is its multiplexor?",
					p.db.Messages[i].Name, s.Name, roots), "taken for "+roots[0])
			}
		}
	}
}

// rootMultiplexors returns the names of the multiplexors that are in every frame of a
// message.
func (p *parser) rootMultiplexors(message int) (names []string) {
	for i := range p.db.Messages[message].Signals {
		if s := &p.db.Messages[message].Signals[i]; s.Multiplexor && len(s.Ranges) == 0 {
			names = append(names, s.Name)
		}
	}

	return names
}
