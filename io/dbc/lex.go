package dbc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// kind is what a token is.
type kind uint8

const (
	end    kind = iota // of the file
	name               // letters, digits and "_", not a digit first
	number             // decimal, with sign, fraction and exponent
	text               // between quotes, which are not part of it
	mark               // any other character
)

// token is a word of the file.
type token struct {
	kind  kind
	text  string
	at    int  // offset of its first byte
	line  int  // from 1
	first bool // nothing is before it on its line
}

// lexer splits a file into tokens.
type lexer struct {
	src  string
	pos  int
	line int
	last int // line of the last token
	seen int // column of this offset
	col  int // is this
}

// next returns the next token; ok is false if a text has no end.
func (l *lexer) next() (t token, ok bool) {
	for l.pos < len(l.src) && l.src[l.pos] <= ' ' {
		if l.src[l.pos] == '\n' {
			l.line++
		}
		l.pos++
	}
	t = token{at: l.pos, line: l.line, first: l.line != l.last}
	l.last = l.line
	rest := l.src[l.pos:]
	switch {
	case rest == "":
		return t, true
	case rest[0] == '"':
		return l.quoted(t)
	case nameLen(rest) > 0:
		t.kind, t.text = name, rest[:nameLen(rest)]
	case numberLen(rest) > 0:
		t.kind, t.text = number, rest[:numberLen(rest)]
	default:
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
			l.pos, l.last = i+1, l.line
			return t, true
		}
	}
	l.pos = len(l.src)
	return t, false
}

// nameLen is the length of the name at the start of s, 0 if there is none.
func nameLen(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || letter(s[n]) || n > 0 && digit(s[n])) {
		n++
	}
	return n
}

// wordLen is the length of what is at the start of s where a name should be, of
// the characters that files put in names.
func wordLen(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || s[n] == '-' || s[n] == '.' || s[n] >= utf8.RuneSelf || letter(s[n]) || digit(s[n])) {
		n++
	}
	return n
}

// numberLen is the length of the number at the start of s, 0 if there is none.
func numberLen(s string) int {
	n := 0
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		n++
	}
	whole := digits(s[n:])
	n += whole
	if n < len(s) && s[n] == '.' && whole+digits(s[n+1:]) > 0 {
		n += 1 + digits(s[n+1:])
	} else if whole == 0 {
		return 0
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := digits(s[e:]); d > 0 {
			n = e + d
		}
	}
	return n
}

func digits(s string) int {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return n
}

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// column is the position of offset at in its line, in characters from 1. It counts
// on from the last one asked for, so that many in a long line cost little.
func (l *lexer) column(at int) int {
	if at < l.seen {
		l.seen, l.col = strings.LastIndexByte(l.src[:at], '\n')+1, 1
	}
	between := l.src[l.seen:at]
	if i := strings.LastIndexByte(between, '\n'); i >= 0 || l.col == 0 {
		between, l.col = between[i+1:], 1
	}
	l.col += utf8.RuneCountInString(between)
	l.seen = at
	return l.col
}

// spell is a token as shown in messages.
func (t token) spell() string {
	switch {
	case t.kind == end:
		return "the end of the file"
	case len(t.text) > 40:
		return fmt.Sprintf("%.40q...", t.text)
	}
	return fmt.Sprintf("%q", t.text)
}

// decode returns the file as UTF-8 with line feeds at the ends of its lines: it may be
// UTF-8, or UTF-16 with its mark; otherwise it is taken for Windows-1252, the code page
// the format comes from.
func decode(data []byte) string {
	s := strings.TrimPrefix(string(data), "\uFEFF")
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		s = wide(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		s = wide(data[2:], binary.BigEndian)
	case !utf8.ValidString(s):
		s = windows(s)
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
}

// wide decodes UTF-16.
func wide(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}

// windows decodes Windows-1252.
func windows(s string) string {
	// 0x80 to 0x9F; the other bytes are their own code points.
	const high = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"
	runes := []rune(high)
	var b strings.Builder
	for _, c := range []byte(s) {
		if 0x80 <= c && c <= 0x9F {
			b.WriteRune(runes[c-0x80])
		} else {
			b.WriteRune(rune(c))
		}
	}
	return b.String()
}
