// Package dbc owns the reading of CAN databases in the DBC format: text in, messages and signals
// (package messages) out.
//
// It does not bind signals to ports (package sigmap). It skips nodes, signal groups, environment
// variables and all attributes except those that messages.Message and messages.Signal have.
//
// The package has its own parser because go.einride.tech/can/pkg/dbc v0.17.0 reads only 167 of 203
// public files. That package lacks m0M, Windows-1252 and 29-bit identifiers without bit 31, returns
// nothing from such files, and skips SG_MUL_VAL_. This parser reads all 203 and reports each
// deviation by line.
//
// Reading order: parse.go (Parse, ParseLenient), tokens.go (tokens), message.go (messages and
// signals), attributes.go, refs.go (statements that refer to a message or signal elsewhere in the
// file).
package dbc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/io/messages"
)

// Deviation is a place where a file deviates from the format, with the remedy taken.
type Deviation struct {
	Line, Col int    // position, from 1; Col 0: the whole line
	Text      string // deviation and remedy
}

// SyntaxError is the first deviation of a file from the format.
type SyntaxError struct {
	File string
	Deviation
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: dbc: %s", e.File, e.Line, e.Col, e.Text)
}

// emptyFile is the deviation of a file without statements.
var emptyFile = Deviation{1, 1, "the file has no statement such as BO_ or SG_"}

// Parse reads a DBC file, UTF-8 or Windows-1252, that follows the format strictly. The
// database returned has passed Database.Check. An error is a *SyntaxError or a
// *messages.Error; its text begins with file and line. file is used for errors only.
func Parse(file string, data []byte) (*messages.Database, error) {
	p := newParser(file, data)
	bad := p.parseFile()
	if bad == nil && p.statementCount == 0 {
		bad = &emptyFile
	}
	if bad != nil {
		return nil, &SyntaxError{file, *bad}
	}
	if err := p.db.Check(); err != nil {
		return nil, err
	}
	return p.db, nil
}

// ParseLenient reads a DBC file as Parse does, but continues after a deviation: it leaves
// out statements without a sensible meaning, keeps all others, and lists the deviations by
// line. The database returned has passed Database.Check. The only error is a file without
// any statement of the format.
func ParseLenient(file string, data []byte) (*messages.Database, []Deviation, error) {
	p := newParser(file, data)
	p.lenient = true
	p.parseFile()
	if p.statementCount == 0 {
		return nil, nil, &SyntaxError{file, append(p.deviations, emptyFile)[0]}
	}
	for _, f := range p.db.Repair() {
		p.deviations = append(p.deviations, Deviation{Line: f.Line, Text: f.String() + "; " + f.Remedy})
	}
	slices.SortStableFunc(p.deviations, func(a, b Deviation) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return p.db, slices.Compact(p.deviations), nil
}

// parser reads statements; tok is the current token. A statement that cannot be read ends
// with a panic: see stop.
type parser struct {
	lexer
	tok            token
	lenient        bool
	deviations     []Deviation
	statementCount int // statements of the format read so far

	statements map[string]func() // parser functions by keyword
	keyword    token             // keyword of the current statement

	db          *messages.Database
	skipSignals bool // the signals that follow do not belong to a frame
	refs
	attributes
}

func newParser(file string, data []byte) *parser {
	p := &parser{
		lexer:      lexer{src: decode(data), line: 1},
		db:         &messages.Database{File: file},
		refs:       refs{messages: map[uint64]int{}, signals: map[signalKey]int{}, skipped: map[uint64]bool{}},
		attributes: attributes{map[string]*definition{}, map[attributeKey]token{}},
	}
	p.statements = map[string]func(){
		"VERSION":      func() { p.expectKind(text, "the version between quotes") },
		"NS_":          p.skipSymbols,
		"BO_":          p.parseMessage,
		"SG_":          p.parseSignal,
		"BO_TX_BU_":    p.parseSenders,
		"CM_":          p.parseComment,
		"VAL_":         p.parseValues,
		"VAL_TABLE_":   p.skipValueTable,
		"SIG_VALTYPE_": p.parseValueType,
		"SG_MUL_VAL_":  p.parseMuxValues,
		"BA_DEF_":      p.parseDefinition,
		"BA_DEF_DEF_":  p.parseDefault,
		"BA_":          p.parseAttribute,
	}
	const skipped = `BS_ BU_ EV_ EV_DATA_ ENVVAR_DATA_ BA_DEF_REL_ BA_REL_ BA_DEF_DEF_REL_ BA_DEF_SGTYPE_ BA_SGTYPE_
		BU_SG_REL_ BU_EV_REL_ BU_BO_REL_ SGTYPE_ SGTYPE_VAL_ SIG_TYPE_REF_ SIG_GROUP_ SIGTYPE_VALTYPE_ CAT_DEF_ CAT_ FILTER`
	for word := range strings.FieldsSeq(skipped) {
		p.statements[word] = p.skipStatement
	}
	return p
}

// parseFile reads all statements; the result is nil or the deviation that ended it.
func (p *parser) parseFile() *Deviation {
	start, read := token{line: 1}, p.advance // first token and parser of the statement
	for {
		bad := try(read)
		switch {
		case bad == nil && p.tok.kind == end:
			return try(func() {
				p.resolveMultiplexors()
				p.applyAttributes()
			})
		case bad == nil:
			start, read = p.tok, p.parseStatement
		case !p.lenient:
			return bad
		default:
			bad.Text += "; " + leftOut
			p.deviations = append(p.deviations, *bad)
			start, read = p.skipToStatement(start), p.advance
		}
	}
}

const leftOut = "left out"

// parseStatement reads a statement.
func (p *parser) parseStatement() {
	if p.keyword = p.tok; p.skipSlashComment() {
		return
	}
	read := p.statements[p.keyword.text]
	if p.keyword.kind != name || read == nil {
		p.fail(p.keyword, "a keyword such as BO_ or SG_")
		return
	}

	p.statementCount++
	p.advance()
	read()
}

// skipSlashComment skips a line that begins with //, which the format does not have.
func (p *parser) skipSlashComment() bool {
	t := p.tok
	if t.text != "/" || t.kind != mark || !strings.HasPrefix(p.src[t.at:], "//") {
		return false
	}
	rest, _, _ := strings.Cut(p.src[t.at:], "\n") // quotes in the comment do not count
	p.pos = t.at + len(rest)
	p.tolerate(t, "the format has no comments with //", "skipped")
	p.advance()
	return true
}

// skipToStatement skips to the next line after start that begins a statement, and returns
// the start of that line.
func (p *parser) skipToStatement(start token) token {
	at := start.at
	p.line, p.lastLine = start.line, 0
	for {
		rest, _, more := strings.Cut(p.src[at:], "\n")
		at += len(rest)
		if !more {
			break
		}
		at++
		p.line++
		word := strings.TrimLeft(p.src[at:min(at+80, len(p.src))], " \t\r")
		if p.statements[nameForm.FindString(word)] != nil || strings.HasPrefix(word, "//") {
			break
		}
	}

	p.pos = at
	return token{at: at, line: p.line}
}
