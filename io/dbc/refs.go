package dbc

import (
	"fmt"
	"strconv"

	"lockstep/io/messages"
)

// refs finds what statements refer to.
type refs struct {
	messages map[uint64]int  // index of a message by its number in the file
	signals  map[place]int   // index of a signal, -1 for one that could not be read
	lost     map[uint64]bool // messages that are skipped or could not be read
	bare     []unnumbered
}

// place is the index of a message, and a signal of it.
type place struct {
	message int
	signal  string
}

// unnumbered is a signal marked with an m without a number.
type unnumbered struct {
	place
	at token
}

func newRefs() refs {
	return refs{messages: map[uint64]int{}, signals: map[place]int{}, lost: map[uint64]bool{}}
}

// theMessage takes an identifier and returns the index of its message, -1 if
// there is none.
func (p *parser) theMessage() int {
	at := p.tok
	id := p.integer("the identifier", 32)
	if i, ok := p.messages[id]; ok {
		return i
	}
	if !p.lost[id] {
		p.forgive(at, fmt.Sprintf("no message has the identifier %d", id), leftOut)
	}
	return -1
}

// theSignal takes an identifier and a name and returns where that signal is; the
// index is -1 if there is none.
func (p *parser) theSignal() (place, int) {
	m, at := p.theMessage(), p.tok
	where := place{m, p.identifier("the signal's name")}
	i, ok := p.signals[where]
	if m < 0 || p.bad != nil {
		return where, -1
	}
	if !ok {
		p.forgive(at, fmt.Sprintf("message %q has no signal %q", p.db.Messages[m].Name, where.signal), leftOut)
		return where, -1
	}
	return where, i
}

// ifSignal takes an identifier and a name and returns the signal, nil if there is
// none.
func (p *parser) ifSignal() *messages.Signal {
	where, i := p.theSignal()
	if i < 0 {
		return nil
	}
	return &p.db.Messages[where.message].Signals[i]
}

// senders reads BO_TX_BU_ id : node,node;
func (p *parser) senders() {
	i := p.theMessage()
	p.expect(":")
	var nodes []string
	for p.tok.kind != end && p.tok.text != ";" && !p.tok.first {
		if name := node(p.identifier("a transmitter")); name != "" {
			nodes = append(nodes, name)
		}
		p.accept(",")
	}
	p.semicolon()
	if p.bad != nil || i < 0 {
		return
	}
	m := &p.db.Messages[i]
	for _, name := range nodes {
		if m.Sender == "" {
			m.Sender = name
		}
		if name != m.Sender {
			m.OtherSenders = append(m.OtherSenders, name)
		}
	}
}

// note reads CM_ text; for the file, and CM_ BO_ id text; or with BU_ node, SG_
// id signal, EV_ variable.
func (p *parser) note() {
	const want = "the comment between quotes"
	word := p.tok
	var into *string
	switch {
	case word.kind == text:
	case word.text == "BU_" || word.text == "EV_":
		p.advance()
		p.identifier("a name")
	case word.text == "BO_":
		p.advance()
		into = p.noteOfMessage(p.theMessage())
	case word.text == "SG_":
		p.advance()
		into = p.noteOfSignal()
	case word.kind == number && p.lenient:
		p.forgive(word, word.spell()+" where BO_ should be", "taken as a message's identifier")
		into = p.noteOfMessage(p.theMessage())
	default:
		p.fail(word, want+", or BU_, BO_, SG_, EV_")
	}
	s := p.quoted(want)
	p.semicolon()
	if into != nil && p.bad == nil {
		*into = s
	}
}

// noteOfMessage is where the comment of a message goes, nil if there is none.
func (p *parser) noteOfMessage(i int) *string {
	if i < 0 {
		return nil
	}
	return &p.db.Messages[i].Comment
}

// noteOfSignal takes the identifier and the name of a signal; if a file has no
// name there, the comment is for the message.
func (p *parser) noteOfSignal() *string {
	ahead := p.lexer
	if t, _ := ahead.next(); t.kind == text && p.tok.kind == number && p.lenient {
		i := p.theMessage()
		remedy := "taken for the message"
		into := p.noteOfMessage(i)
		if into != nil && *into != "" {
			into, remedy = nil, leftOut
		}
		p.forgive(p.tok, "a comment where the signal's name should be", remedy)
		return into
	}
	if s := p.ifSignal(); s != nil {
		return &s.Comment
	}
	return nil
}

// values reads VAL_ id signal raw text raw text ...; and skips those of
// environment variables.
func (p *parser) values() {
	if p.tok.kind == name {
		p.advance()
		p.table()
		p.semicolon()
		return
	}
	s := p.ifSignal()
	list := p.table()
	p.semicolon()
	if s != nil && p.bad == nil {
		s.Values = list
	}
}

// table reads raw values, each with its text.
func (p *parser) table() (list []messages.Value) {
	for p.tok.kind == number {
		raw := p.raw("a raw value")
		list = append(list, messages.Value{Raw: raw, Text: p.quoted("the value's text")})
	}
	return list
}

// valueType reads SIG_VALTYPE_ id signal : type; with 1 for a float of 32 bits
// and 2 for one of 64.
func (p *parser) valueType() {
	s := p.ifSignal()
	p.accept(":")
	at := p.tok
	kind := p.integer("0, 1 (float) or 2 (double)", 2)
	p.semicolon()
	if p.bad != nil || s == nil {
		return
	}
	s.Float = kind != 0
	if kind == 3 || kind == 1 && s.Len == 64 || kind == 2 && s.Len == 32 {
		p.forgive(at, fmt.Sprintf("%d (1 is float, 2 is double) for a signal of %d bits", kind, s.Len), "the bits decide")
	}
}

// selected reads SG_MUL_VAL_ id signal multiplexor low-high, low-high, ...;
func (p *parser) selected() {
	s := p.ifSignal()
	by := p.identifier("the multiplexor's name")
	var list [][2]uint64
	for p.bad == nil {
		low := p.integer("the first value that selects the signal", 64)
		list = append(list, [2]uint64{low, p.high()})
		if !p.accept(",") && p.tok.kind != number {
			break
		}
	}
	p.semicolon()
	if s != nil && p.bad == nil {
		s.Under, s.Ranges = by, list
	}
}

// high takes -high, the end of a range, which may look like a negative number.
func (p *parser) high() uint64 {
	const want = `"-" and the last value that selects the signal`
	if p.accept("-") {
		return p.integer(want, 64)
	}
	t := p.tok
	if t.kind == number && t.text[0] == '-' {
		if v, err := strconv.ParseUint(t.text[1:], 10, 64); err == nil {
			p.advance()
			return v
		}
	}
	p.fail(t, want)
	return 0
}

// selectors finds the multiplexor of the signals that are marked with a value
// alone: the one that is no multiplexed signal itself.
func (p *parser) selectors() {
	for _, b := range p.bare {
		if i := p.signals[b.place]; i >= 0 && p.bad == nil {
			s, remedy := &p.db.Messages[b.message].Signals[i], "taken as a plain signal"
			if len(p.roots(b.message)) == 0 {
				s.Multiplexor, remedy = true, "taken as M"
			}
			p.forgive(b.at, `"m" where a multiplexor's M or m0 should be`, remedy)
		}
	}
	for i := range p.db.Messages {
		roots := p.roots(i)
		for j := range p.db.Messages[i].Signals {
			s := &p.db.Messages[i].Signals[j]
			if len(s.Ranges) == 0 || s.Under != "" || len(roots) == 0 {
				continue
			}
			s.Under = roots[0]
			if len(roots) > 1 {
				p.forgive(token{line: s.Line}, fmt.Sprintf("message %q: signal %q: which of %q is its multiplexor?",
					p.db.Messages[i].Name, s.Name, roots), "taken for "+roots[0])
			}
		}
	}
}

// roots are the multiplexors of a message that are in every frame.
func (p *parser) roots(message int) (names []string) {
	for i := range p.db.Messages[message].Signals {
		if s := &p.db.Messages[message].Signals[i]; s.Multiplexor && len(s.Ranges) == 0 {
			names = append(names, s.Name)
		}
	}
	return names
}
