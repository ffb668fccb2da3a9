// Package yamlfile owns the reading of YAML files: limits of the parser, access to mappings, lists
// and scalars with their positions, and errors that begin with "FILE:LINE:COL". It knows no key of
// any file; the packages that own a format bring the keys: plants (model/plantfile), benches
// (rt/bench), scenarios and faults (rt/scenario), sweeps (rt/sweep).
//
// Reading order: yamlfile.go (positions and errors), read.go (Reader, limits of the parser, Leaves),
// hints.go (reasons for frequent mistakes).
package yamlfile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Node is a value of a file: a scalar, a list or a mapping.
type Node = ast.Node

// Pos is a position in a file, counted from 1; columns count characters.
type Pos struct{ Line, Col int }

// Scalar is a scalar value of a file and its position; Line and Col count from 1.
type Scalar struct {
	Text      string
	Line, Col int
}

// At returns the position of the scalar.
func (s Scalar) At() Pos { return Pos{s.Line, s.Col} }

// Field is a value with its position and its key; an item of a list has the key of the list.
type Field struct {
	Key   string
	KeyAt Pos
	At    Pos // position of the value; of the key if the value is empty
	Node  Node
}

// IsMissing reports whether a section lacks the field.
func (f Field) IsMissing() bool { return f == Field{} }

// Root returns the top-level value of a file as a field.
func Root(n Node) Field { return Field{At: NodePos(n), Node: n} }

// WithText returns the field with another text as its value.
func (f Field) WithText(text string) Field {
	f.Node = &ast.StringNode{BaseNode: &ast.BaseNode{}, Token: f.Node.GetToken(), Value: text}
	return f
}

// Scalar returns text as a scalar at the position of the value.
func (f Field) Scalar(text string) Scalar { return Scalar{text, f.At.Line, f.At.Col} }

// KeyScalar returns the key with its position.
func (f Field) KeyScalar() Scalar { return Scalar{f.Key, f.KeyAt.Line, f.KeyAt.Col} }

// FileError is an error at a position of a file.
type FileError struct {
	File      string
	Line, Col int    // position, from 1
	Owner     string // package that owns the format of the file: "bench"
	Err       error
}

func (e *FileError) Unwrap() error { return e.Err }
func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", e.File, e.Line, e.Col, e.Owner, oneLine(e.Err.Error()))
}

// WordError is an error at a word of a command.
type WordError struct {
	Command string
	Word    int // number of the word, from 1
	Err     error
}

func (e *WordError) Unwrap() error { return e.Err }
func (e *WordError) Error() string { return fmt.Sprintf("%s: word %d: %v", e.Command, e.Word, e.Err) }

// Origin names the source of a text: a file, or a command with one word per line.
type Origin struct {
	File    string // name of the file, or of the command
	Owner   string // package that owns the format: "bench"
	Command bool   // the text is a command, one word per line
}

// Errorf returns an error at the position of a scalar.
func (o Origin) Errorf(at Scalar, format string, args ...any) error {
	return o.ErrorAt(at.At(), format, args...)
}

// ErrorAt returns an error at a position.
func (o Origin) ErrorAt(at Pos, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if o.Command {
		return &WordError{o.File, at.Line, err}
	}
	return &FileError{o.File, max(1, at.Line), max(1, at.Col), o.Owner, err}
}

const maxError = 1000 // longest text of an error, bytes

// oneLine makes a text from a file safe for one line of a terminal or log.
func oneLine(s string) string {
	if len(s) > maxError {
		s = s[:max(maxError/2, strings.LastIndexByte(s[:maxError], ' '))] + " ..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// IsPrintable reports whether s is printable text without escape sequences.
func IsPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

// NodePos returns the position at which a node begins. The parser itself places a block
// mapping at its first colon.
func NodePos(n Node) Pos {
	if n == nil {
		return Pos{1, 1}
	}
	if list, ok := mappingEntries(n); ok && len(list) > 0 && n.GetToken().Type != token.MappingStartType {
		n = list[0].Key
	}
	return tokenPos(n.GetToken())
}

func tokenPos(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{1, 1}
	}
	return Pos{max(1, t.Position.Line), max(1, t.Position.Column)}
}
