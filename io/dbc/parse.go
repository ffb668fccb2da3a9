// Package dbc owns the reading of CAN databases in the DBC format: text in, messages and signals
// (package messages) out.
//
// It does not bind signals to anything (package sigmap). It skips nodes, signal groups,
// environment variables and all attributes but those of Message and Signal.
//
// The parser is our own. Of 203 public files go.einride.tech/can/pkg/dbc v0.17.0 reads 167 (no
// m0M, no Windows-1252, no identifier of 29 bits without its mark) and of the others nothing, and
// it skips SG_MUL_VAL_. This one reads all of them, and says line by line what is wrong with them.
//
// Reading order: parse.go (Parse, ParseLenient), lex.go and tokens.go (tokens), message.go
// (messages and signals), attributes.go, refs.go (what a line says of a message or signal
// elsewhere in the file).
package dbc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/io/messages"
)

// Leniency is something in a file that should not be there, and what was made of
// it.
type Leniency struct {
	Line, Col int // from 1; 0 for a column that does not matter
	Text      string
}

// SyntaxError says where a file does not keep to the format, and what was found there.
type SyntaxError struct {
	File string
	Leniency
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: dbc: %s", e.File, e.Line, e.Col, e.Text)
}

// nothing is what is wrong with a file that is empty.
var nothing = Leniency{1, 1, "there is not a single statement such as BO_ or SG_"}

// Parse reads a DBC file, UTF-8 or Windows-1252, that keeps to the format. The
// messages and signals it returns have passed Database.Check. An error is a
// *SyntaxError or a *messages.Error: it begins with file and line and names what was
// found; file is used for nothing else.
func Parse(file string, data []byte) (*messages.Database, error) {
	p := newParser(file, data)
	p.file()
	if p.bad == nil && p.known == 0 {
		p.bad = &nothing
	}
	if p.bad != nil {
		return nil, p.failure(p.bad)
	}
	if err := p.db.Check(); err != nil {
		return nil, err
	}
	return p.db, nil
}

// ParseLenient reads a DBC file as Parse does, and goes on where that fails: what
// has no sensible meaning is left out, everything else stays, and each of these
// places is in the list, by line. What it returns has passed Database.Check. Only
// a file without a single statement of the format is an error.
func ParseLenient(file string, data []byte) (*messages.Database, []Leniency, error) {
	p := newParser(file, data)
	p.lenient = true
	p.file()
	if p.known == 0 {
		return nil, nil, p.failure(&append(p.list, nothing)[0])
	}
	for _, f := range p.db.Repair() {
		p.list = append(p.list, Leniency{Line: f.Line, Text: f.Text})
	}
	slices.SortStableFunc(p.list, func(a, b Leniency) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return p.db, slices.Compact(p.list), nil
}

// parser reads statements; tok is the token it looks at. After a failure tok is
// the end and bad stays what it is.
type parser struct {
	lexer
	tok     token
	bad     *Leniency // why the statement, or if not lenient the file, cannot be read
	lenient bool
	list    []Leniency
	known   int // statements that are of the format

	db   *messages.Database
	skip bool // the signals that follow belong to no frame
	refs
	attributes
}

func newParser(file string, data []byte) *parser {
	return &parser{
		lexer:      lexer{src: decode(data), line: 1},
		db:         &messages.Database{File: file},
		refs:       newRefs(),
		attributes: newAttributes(),
	}
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
func (p *parser) file() {
	p.advance()
	start := token{line: 1} // of the statement
	for p.tok.kind != end || p.bad != nil {
		if p.bad == nil {
			start = p.tok
			p.statement()
		}
		if p.bad == nil {
			continue
		}
		if !p.lenient {
			return
		}
		p.bad.Text += "; " + leftOut
		p.list = append(p.list, *p.bad)
		p.bad = nil
		start = p.resync(start)
	}
	p.selectors()
	p.apply()
}

const leftOut = "left out"

// statement reads a statement.
func (p *parser) statement() {
	word := p.tok
	if p.comment() {
		return
	}
	if word.kind != name || !keyword(word.text) {
		p.fail(word, "a keyword such as BO_ or SG_")
		return
	}
	p.known++
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
	case "BO_TX_BU_":
		p.senders()
	case "CM_":
		p.note()
	case "VAL_":
		p.values()
	case "VAL_TABLE_":
		p.identifier("the table's name")
		p.table()
		p.semicolon()
	case "SIG_VALTYPE_":
		p.valueType()
	case "SG_MUL_VAL_":
		p.selected()
	case "BA_DEF_":
		p.define()
	case "BA_DEF_DEF_":
		p.preset()
	case "BA_":
		p.set()
	default:
		p.rest()
	}
}

// comment takes a line that begins with //, which the format has not.
func (p *parser) comment() bool {
	t := p.tok
	if t.text != "/" || t.kind != mark || !strings.HasPrefix(p.src[t.at:], "//") {
		return false
	}
	rest, _, _ := strings.Cut(p.src[t.at:], "\n") // a quote in it means nothing
	p.pos = t.at + len(rest)
	p.forgive(t, "the format has no comments with //", "skipped")
	p.advance()
	return true
}

// resync goes to the first line after that of start that begins a statement, and
// returns its begin.
func (p *parser) resync(start token) token {
	at := start.at
	p.line, p.last = start.line, 0
	for {
		rest, _, more := strings.Cut(p.src[at:], "\n")
		at += len(rest)
		if !more {
			break
		}
		at++
		p.line++
		word := strings.TrimLeft(p.src[at:min(at+80, len(p.src))], " \t\r")
		if keyword(word[:nameLen(word)]) || strings.HasPrefix(word, "//") {
			break
		}
	}
	p.pos = at
	begin := token{at: at, line: p.line}
	p.advance()
	return begin
}
