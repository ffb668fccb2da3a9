package dbc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	end    tokenKind = iota // end of the file
	name                    // letters, digits and "_", not a digit first
	number                  // decimal number, with sign, fraction and exponent
	text                    // text between quotes, without the quotes
	mark                    // any other character
)

// token is a token of the file.
type token struct {
	kind  tokenKind
	text  string
	at    int  // offset of the first byte
	line  int  // line, from 1
	first bool // the token is the first on its line
}

// lexer splits a file into tokens.
type lexer struct {
	src       string
	pos       int
	line      int
	lastLine  int // line of the last token
	colOffset int // offset whose column is col
	col       int // column of colOffset, in characters from 1
}

// next returns the next token; ok is false if a text lacks its closing quote.
func (l *lexer) next() (t token, ok bool) {
	for l.pos < len(l.src) && l.src[l.pos] <= ' ' {
		if l.src[l.pos] == '\n' {
			l.line++
		}
		l.pos++
	}

	t = token{at: l.pos, line: l.line, first: l.line != l.lastLine}
	l.lastLine = l.line
	rest := l.src[l.pos:]
	switch {
	case rest == "":
		return t, true
	case rest[0] == '"':
		return l.quoted(t)
	}

	if t.kind, t.text = name, nameForm.FindString(rest); t.text == "" {
		t.kind, t.text = number, numberForm.FindString(rest)
	}
	if t.text == "" {
		_, n := utf8.DecodeRuneInString(rest)
		t.kind, t.text = mark, rest[:n]
	}

	l.pos += len(t.text)
	return t, true
}

// quoted reads a text, which may span lines; \" is a quote inside it.
func (l *lexer) quoted(t token) (token, bool) {
	for i := l.pos + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == '\\' && strings.HasPrefix(l.src[i+1:], `"`):
			i++
		case c == '\n':
			l.line++
		case c == '"':
			t.kind, t.text = text, l.src[l.pos+1:i]
			l.pos, l.lastLine = i+1, l.line
			return t, true
		}
	}

	l.pos = len(l.src)
	return t, false
}

// Forms of a name and of a number; wordForm also accepts the other characters that files use in names.
var (
	nameForm   = regexp.MustCompile(`^[A-Za-z_]\w*`)
	wordForm   = regexp.MustCompile(`^[-.\w\x{80}-\x{10FFFF}]+`)
	numberForm = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?`)
)

// column returns the column of offset at, in characters from 1. It counts from the last
// offset asked for, so that many calls on a long line cost little.
func (l *lexer) column(at int) int {
	if at < l.colOffset {
		l.colOffset, l.col = strings.LastIndexByte(l.src[:at], '\n')+1, 1
	}
	between := l.src[l.colOffset:at]
	if i := strings.LastIndexByte(between, '\n'); i >= 0 || l.col == 0 {
		between, l.col = between[i+1:], 1
	}
	l.col += utf8.RuneCountInString(between)
	l.colOffset = at
	return l.col
}

// format returns the token for messages.
func (t token) format() string {
	switch {
	case t.kind == end:
		return "the end of the file"
	case len(t.text) > 40:
		return fmt.Sprintf("%.40q...", t.text)
	}

	return fmt.Sprintf("%q", t.text)
}

// decode returns the file as UTF-8 with line feeds at line ends. The file may be UTF-8, or
// UTF-16 with a byte order mark; otherwise it is taken as Windows-1252, the code page of
// the format.
func decode(data []byte) string {
	s := strings.TrimPrefix(string(data), "\uFEFF")
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		s = decodeUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		s = decodeUTF16(data[2:], binary.BigEndian)
	case !utf8.ValidString(s):
		s = decodeWindows1252(s)
	}

	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
}

// decodeUTF16 decodes UTF-16.
func decodeUTF16(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(data)/2)
	_, _ = binary.Decode(data, order, units) // data is long enough
	return string(utf16.Decode(units))
}

// decodeWindows1252 decodes Windows-1252.
func decodeWindows1252(s string) string {
	// 0x80 to 0x9F; the other bytes are their own code points.
	const high = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"
	out, runes := make([]rune, len(s)), []rune(high)
	for i, c := range []byte(s) {
		if out[i] = rune(c); 0x80 <= c && c <= 0x9F {
			out[i] = runes[c-0x80]
		}
	}

	return string(out)
}

// advance reads the next token into p.tok.
func (p *parser) advance() {
	var ok bool
	if p.tok, ok = p.next(); !ok {
		p.fail(p.tok, "the closing quote of this text")
	}
}

// try runs do and returns the deviation that stopped it, nil if none did.
func try(do func()) (why *Deviation) {
	defer func() {
		r := recover()
		if why, _ = r.(*Deviation); why == nil && r != nil {
			panic(r)
		}
	}()

	do()
	return nil
}

// fail stops the statement: found is at the place where want should be.
func (p *parser) fail(found token, want string) {
	p.stop(found, fmt.Sprintf("%s where %s should be", found.format(), want))
}

// stop ends the statement with an error. It does not return: try does.
func (p *parser) stop(at token, problem string) {
	panic(&Deviation{at.line, p.column(at.at), problem})
}

// tolerate records a problem that can be remedied, and its remedy. In strict mode it stops
// the statement instead.
func (p *parser) tolerate(at token, problem, remedy string) {
	if !p.lenient {
		p.stop(at, problem)
	}
	p.deviations = append(p.deviations, Deviation{at.line, p.column(at.at), problem + "; " + remedy})
}

// expectKind reads a token of kind k; want describes it in errors.
func (p *parser) expectKind(k tokenKind, want string) token {
	t := p.tok
	if t.kind != k {
		p.fail(t, want)
	}
	p.advance()
	return t
}

// accept reads the mark s if it is the current token.
func (p *parser) accept(s string) bool {
	ok := p.tok.kind == mark && p.tok.text == s
	if ok {
		p.advance()
	}
	return ok
}

// expect reads the mark s.
func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.fail(p.tok, strconv.Quote(s))
	}
}

// expectSemicolon reads the semicolon at the end of a statement.
func (p *parser) expectSemicolon() {
	if p.accept(";") {
		return
	}
	if t := p.tok; t.kind == end || t.first && t.kind == name && p.statements[t.text] != nil {
		p.tolerate(t, t.format()+` where ";" should be`, "taken as if it were there")
		return
	}

	p.fail(p.tok, `";"`)
}

// identifier reads a name: letters, digits and "_", not a digit first.
func (p *parser) identifier(want string) string {
	t := p.tok
	word := wordForm.FindString(p.src[t.at:])
	if word == "" || t.kind == text || t.kind == end {
		p.fail(t, want)
	}
	if word != t.text || t.kind != name {
		t.text = word
		p.tolerate(t, fmt.Sprintf("%s is not a name: letters, digits and _, not a digit first", t.format()), "taken as it is")
		p.pos = t.at + len(word)
	}

	p.advance()
	return t.text
}

// quoted reads a text.
func (p *parser) quoted(want string) string {
	return strings.ReplaceAll(p.expectKind(text, want).text, `\"`, `"`)
}

// choice reads no or yes and reports which: true for yes.
func (p *parser) choice(no, yes, want string) bool {
	t := p.tok
	if t.text != no && t.text != yes || t.kind == text {
		p.fail(t, want)
	}
	p.advance()
	return t.text == yes
}

// takeNumber reads a number with the function read.
func takeNumber[T any](p *parser, want string, read func(text string) (T, error)) (v T) {
	t := p.tok
	if t.kind == number {
		var err error
		if v, err = read(t.text); err == nil {
			p.advance()
			return v
		}
	}

	p.fail(t, want)
	return v
}

// integer reads a whole number of at most the given bits, not negative.
func (p *parser) integer(want string, bits int) uint64 {
	return takeNumber(p, want, func(text string) (uint64, error) { return strconv.ParseUint(text, 10, bits) })
}

// decimal reads a finite number; of names its signal in errors.
func (p *parser) decimal(of, want string) float64 {
	return p.number(of, want, func(t token, problem string, _ float64) float64 {
		p.stop(t, problem)
		return 0
	})
}

// limit is decimal for a limit of a range. Lenient, a limit beyond the largest number is taken as that
// number.
func (p *parser) limit(of, want string) float64 {
	return p.number(of, want, func(t token, problem string, v float64) float64 {
		p.tolerate(t, problem, "taken as no limit")
		return math.Copysign(math.MaxFloat64, v)
	})
}

// number reads a number; beyond returns the value of one beyond the largest number, v is ±Inf then.
func (p *parser) number(of, want string, beyond func(t token, problem string, v float64) float64) float64 {
	return takeNumber(p, want, func(text string) (float64, error) {
		v, err := strconv.ParseFloat(text, 64)
		if errors.Is(err, strconv.ErrRange) {
			v, err = beyond(p.tok, fmt.Sprintf("%s%s %s is beyond the largest number, %.1e", of, want, text, math.MaxFloat64), v), nil
		}
		if err == nil {
			p.checkNumberForm(p.tok)
		}
		return v, err
	})
}

// checkNumberForm tolerates a number whose form deviates from the format.
func (p *parser) checkNumberForm(t token) {
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

	p.tolerate(t, fmt.Sprintf("the number %s %s", t.format(), problem), "read as a number")
}

// rawValue reads a raw value: 64 bits, with or without a sign.
func (p *parser) rawValue(want string) int64 {
	return takeNumber(p, want, func(text string) (int64, error) {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			var u uint64
			u, err = strconv.ParseUint(text, 10, 64)
			v = int64(u)
		}

		if err == nil {
			p.checkNumberForm(p.tok)
			return v, nil
		}

		f, bad := strconv.ParseFloat(text, 64)
		if bad == nil && f == float64(int64(f)) && -1<<53 < f && f < 1<<53 {
			problem := fmt.Sprintf("the number %s is not written as a whole number", p.tok.format())
			p.tolerate(p.tok, problem, fmt.Sprintf("taken as %.0f", f))
			return int64(f), nil
		}

		return 0, err
	})
}

// skipStatement skips to the end of a statement: its semicolon, or before the next keyword
// at the start of a line.
func (p *parser) skipStatement() {
	for p.tok.kind != end {
		t := p.tok
		if t.first && t.kind == name && p.statements[t.text] != nil {
			return
		}
		p.advance()
		if t.kind == mark && t.text == ";" {
			return
		}
	}
}

// skipLine skips the rest of a line.
func (p *parser) skipLine() {
	for p.tok.kind != end && !p.tok.first {
		p.advance()
	}
}

// skipSymbols skips the list of keywords in NS_: it has one keyword on a line, where a
// statement continues after its keyword.
func (p *parser) skipSymbols() {
	p.expect(":")
	for p.tok.kind == name {
		ahead := p.lexer
		if t, ok := ahead.next(); ok && t.kind != end && !t.first {
			return
		}
		p.advance()
	}
}
