// Package dbc owns the reading of CAN databases in the DBC format: text in,
// messages and signals out.
//
// It does not bind signals to anything (package sigmap), and skips what nobody
// uses yet: comments, attributes, value tables, groups, environment variables.
package dbc

import (
	"fmt"
	"strconv"
	"strings"

	"lockstep/io/sigmap"
)

// The message Vector's tools keep signals without a frame in.
const (
	independent   = "VECTOR__INDEPENDENT_SIG_MSG"
	independentID = 0xC0000000
)

// Parse reads a DBC file, UTF-8 or Windows-1252. The messages and signals it
// returns have passed Database.Check. An error begins with file and line and
// names what was found; file is used for nothing else.
func Parse(file string, data []byte) (*sigmap.Database, error) {
	p := &parser{lexer: lexer{src: decode(data), line: 1}, db: &sigmap.Database{File: file}}
	if err := p.file(); err != nil {
		return nil, err
	}
	if err := p.db.Check(); err != nil {
		return nil, err
	}
	return p.db, nil
}

// parser reads statements; tok is the token it looks at. After an error tok is
// the end and err stays what it is.
type parser struct {
	lexer
	tok  token
	err  error
	db   *sigmap.Database
	skip bool // the signals that follow belong to no frame
}

// keyword tells whether s begins a statement.
func keyword(s string) bool {
	switch s {
	case "VERSION", "NS_", "BS_", "BU_", "BO_", "SG_", "BO_TX_BU_",
		"VAL_TABLE_", "VAL_", "CM_", "EV_", "EV_DATA_", "ENVVAR_DATA_",
		"BA_DEF_", "BA_DEF_DEF_", "BA_", "BA_DEF_REL_", "BA_REL_", "BA_DEF_DEF_REL_",
		"BA_DEF_SGTYPE_", "BA_SGTYPE_", "BU_SG_REL_", "BU_EV_REL_", "BU_BO_REL_",
		"SGTYPE_", "SGTYPE_VAL_", "SIG_TYPE_REF_", "SIG_GROUP_", "SIG_VALTYPE_",
		"SIGTYPE_VALTYPE_", "SG_MUL_VAL_", "CAT_DEF_", "CAT_", "FILTER":
		return true
	}
	return false
}

// file reads all statements.
func (p *parser) file() error {
	p.advance()
	for p.tok.kind != end {
		word := p.tok
		if word.kind != name || !keyword(word.text) {
			p.fail(word, "a keyword such as BO_ or SG_")
			break
		}
		p.advance()
		switch word.text {
		case "VERSION":
			p.take(text, "the version between quotes")
		case "NS_":
			p.symbols()
		case "BO_":
			p.message(word)
		case "SG_":
			p.signal(word)
		case "SIG_VALTYPE_":
			p.valueType()
		default:
			p.statement()
		}
	}
	return p.err
}

// symbols skips the list of keywords that may be used: one on a line, while a
// statement goes on after its keyword.
func (p *parser) symbols() {
	p.expect(":")
	for p.tok.kind == name {
		ahead := p.lexer
		if t, ok := ahead.next(); ok && t.kind != end && !t.first {
			return
		}
		p.advance()
	}
}

// message reads BO_ id name: length transmitter.
func (p *parser) message(word token) {
	id := p.integer("the identifier", 32)
	m := sigmap.Message{Line: word.line, ID: uint32(id)} // bit 31 is can.EFF
	m.Name = p.take(name, "the message's name").text
	p.expect(":")
	m.Len = int(p.integer("the message's length in bytes", 31))
	p.restOfLine()
	if p.skip = m.Name == independent; !p.skip && p.err == nil {
		p.db.Messages = append(p.db.Messages, m)
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
	s := sigmap.Signal{Line: word.line}
	s.Name = p.take(name, "the signal's name").text
	if p.tok.kind == name {
		s.Mux = p.mux()
	}
	p.expect(":")
	s.Start = int(p.integer("the start bit", 31))
	p.expect("|")
	s.Len = int(p.integer("the length in bits", 31))
	p.expect("@")
	s.BigEndian = p.choice("1", "0", "1 (Intel) or 0 (Motorola)")
	s.Signed = p.choice("+", "-", "+ (unsigned) or - (signed)")
	p.expect("(")
	s.Factor = p.decimal("the factor")
	p.expect(",")
	s.Offset = p.decimal("the offset")
	p.expect(")")
	p.expect("[")
	s.Min = p.decimal("the minimum")
	p.expect("|")
	s.Max = p.decimal("the maximum")
	p.expect("]")
	s.Unit = strings.TrimSpace(p.take(text, "the unit between quotes").text)
	p.restOfLine()
	if p.err == nil {
		m := &p.db.Messages[len(p.db.Messages)-1]
		m.Signals = append(m.Signals, s)
	}
}

// mux reads a multiplexor mark: M, m0, m0M.
func (p *parser) mux() string {
	t := p.tok
	value, _ := strings.CutPrefix(strings.TrimSuffix(t.text, "M"), "m")
	if t.text != "M" && (t.text[0] != 'm' || value == "" || digits(value) != len(value)) {
		p.fail(t, "a colon, or the multiplexor's M, m0, m0M")
		return ""
	}
	p.advance()
	return t.text
}

// valueType reads SIG_VALTYPE_ id signal : type; with 1 and 2 for floats.
func (p *parser) valueType() {
	at := p.tok
	id := uint32(p.integer("the identifier", 32))
	sig := p.take(name, "the signal's name").text
	if p.tok.text == ":" {
		p.advance()
	}
	float := p.integer("0, 1 (float) or 2 (double)", 2) != 0
	p.expect(";")
	if p.err != nil || id == independentID {
		return
	}
	for i := range p.db.Messages {
		m := &p.db.Messages[i]
		for j := range m.Signals {
			if s := &m.Signals[j]; m.ID == id && s.Name == sig {
				s.Float = float
				return
			}
		}
	}
	p.fail(at, fmt.Sprintf("the identifier of a message with a signal %q", sig))
}

// statement skips to the end of a statement: its semicolon, or the next keyword
// at the start of a line.
func (p *parser) statement() {
	for p.tok.kind != end {
		t := p.tok
		if t.first && t.kind == name && keyword(t.text) {
			return
		}
		p.advance()
		if t.kind == mark && t.text == ";" {
			return
		}
	}
}

// restOfLine skips the names a line ends with.
func (p *parser) restOfLine() {
	for p.tok.kind != end && !p.tok.first {
		p.advance()
	}
}

// advance looks at the next token.
func (p *parser) advance() {
	if p.err != nil {
		return
	}
	t, ok := p.next()
	p.tok = t
	if !ok {
		p.fail(t, "the closing quote of this text")
	}
}

// fail notes the error that found stands where want should be.
func (p *parser) fail(found token, want string) {
	if p.err != nil {
		return
	}
	p.err = fmt.Errorf("%s:%d:%d: dbc: %s where %s should be",
		p.db.File, found.line, p.column(found.at), found.spell(), want)
	p.tok = token{}
}

// take returns the token if it is of kind k, and advances.
func (p *parser) take(k kind, want string) token {
	t := p.tok
	if t.kind != k {
		p.fail(t, want)
		return token{}
	}
	p.advance()
	return t
}

// expect takes the mark s.
func (p *parser) expect(s string) {
	if p.tok.kind != mark || p.tok.text != s {
		p.fail(p.tok, strconv.Quote(s))
		return
	}
	p.advance()
}

// choice takes no or yes and tells which.
func (p *parser) choice(no, yes, want string) bool {
	t := p.tok
	if t.text != no && t.text != yes || t.kind == text {
		p.fail(t, want)
		return false
	}
	p.advance()
	return t.text == yes
}

// integer takes a whole number of so many bits, not negative.
func (p *parser) integer(want string, bits int) uint64 {
	t := p.tok
	v, err := strconv.ParseUint(t.text, 10, bits)
	if t.kind != number || err != nil {
		p.fail(t, want)
		return 0
	}
	p.advance()
	return v
}

// decimal takes a finite number.
func (p *parser) decimal(want string) float64 {
	t := p.tok
	v, err := strconv.ParseFloat(t.text, 64)
	if t.kind != number || err != nil {
		p.fail(t, want)
		return 0
	}
	p.advance()
	return v
}
