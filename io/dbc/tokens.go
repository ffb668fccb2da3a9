package dbc

import (
	"fmt"
	"strconv"
	"strings"
)

// advance looks at the next token.
func (p *parser) advance() {
	if p.bad != nil {
		return
	}
	t, ok := p.next()
	p.tok = t
	if !ok {
		p.fail(t, "the closing quote of this text")
	}
}

// fail notes that found stands where want should be: the statement cannot be
// read.
func (p *parser) fail(found token, want string) {
	if p.bad == nil {
		p.stop(found, fmt.Sprintf("%s where %s should be", found.spell(), want))
	}
}

// stop notes why the statement cannot be read.
func (p *parser) stop(at token, problem string) {
	p.bad = &Leniency{at.line, p.column(at.at), problem}
	p.tok = token{}
}

// forgive notes a problem that does not hinder, and what is made of it. Without
// lenience the file cannot be read.
func (p *parser) forgive(at token, problem, remedy string) {
	switch {
	case p.bad != nil:
	case p.lenient:
		p.list = append(p.list, Leniency{at.line, p.column(at.at), problem + "; " + remedy})
	default:
		p.stop(at, problem)
	}
}

// failure is the error of a file that cannot be read.
func (p *parser) failure(l *Leniency) error {
	return &SyntaxError{File: p.db.File, Leniency: *l}
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

// accept takes the mark s, if it is there.
func (p *parser) accept(s string) bool {
	ok := p.tok.kind == mark && p.tok.text == s
	if ok {
		p.advance()
	}
	return ok
}

// expect takes the mark s.
func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.fail(p.tok, strconv.Quote(s))
	}
}

// semicolon takes the end of a statement.
func (p *parser) semicolon() {
	if p.accept(";") {
		return
	}
	if t := p.tok; t.kind == end || t.first && t.kind == name && keyword(t.text) {
		p.forgive(t, t.spell()+` where ";" should be`, "taken as if it were there")
		return
	}
	p.fail(p.tok, `";"`)
}

// identifier takes a name: letters, digits and "_", not a digit first.
func (p *parser) identifier(want string) string {
	t := p.tok
	n := 0
	if t.kind == name || t.kind == number || t.kind == mark {
		n = wordLen(p.src[t.at:])
	}
	if n == 0 {
		p.fail(t, want)
		return ""
	}
	if n != len(t.text) || t.kind != name {
		t.text = p.src[t.at : t.at+n]
		p.forgive(t, fmt.Sprintf("%s is no name: letters, digits and _, not a digit first", t.spell()), "taken as it is")
		if p.bad != nil {
			return ""
		}
		p.pos = t.at + n
	}
	p.advance()
	return t.text
}

// quoted takes a text.
func (p *parser) quoted(want string) string {
	return strings.ReplaceAll(p.take(text, want).text, `\"`, `"`)
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
	p.spelling(t)
	p.advance()
	return v
}

// spelling notes a number that is not written as the format writes it.
func (p *parser) spelling(t token) {
	unsigned := strings.TrimLeft(t.text, "+-")
	mantissa, _, _ := strings.Cut(strings.ToLower(unsigned), "e")
	problem := ""
	switch {
	case t.text[0] == '+':
		problem = "begins with +"
	case mantissa[0] == '.':
		problem = "has no digit before its point"
	case strings.HasSuffix(mantissa, "."):
		problem = "has no digit after its point"
	default:
		return
	}
	p.forgive(t, fmt.Sprintf("the number %s %s", t.spell(), problem), "taken as it is meant")
}

// raw takes a raw value: 64 bits, with or without a sign.
func (p *parser) raw(want string) int64 {
	t := p.tok
	if t.kind != number {
		p.fail(t, want)
		return 0
	}
	v, err := strconv.ParseInt(t.text, 10, 64)
	if err != nil {
		var u uint64
		u, err = strconv.ParseUint(t.text, 10, 64)
		v = int64(u)
	}
	if f, bad := strconv.ParseFloat(t.text, 64); err != nil && bad == nil && f == float64(int64(f)) && -1<<53 < f && f < 1<<53 {
		p.forgive(t, fmt.Sprintf("the number %s is not written as a whole one", t.spell()), fmt.Sprintf("taken as %.0f", f))
		v, err = int64(f), nil
	} else if err == nil {
		p.spelling(t)
	}
	if err != nil {
		p.fail(t, want)
		return 0
	}
	p.advance()
	return v
}

// rest skips to the end of a statement: its semicolon, or the next keyword at the
// start of a line.
func (p *parser) rest() {
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

// restOfLine skips what is left of a line.
func (p *parser) restOfLine() {
	for p.tok.kind != end && !p.tok.first {
		p.advance()
	}
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
